"""What stands in place of the replaceable functions: each gets what was made in Python and the same arguments.

Where the compiled form can say the same, it is returned, with the Python function beside it. Anything else is returned as it is.
"""

from __future__ import annotations

import linecache
import re
from typing import TYPE_CHECKING, Any

import numpy

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.keys import TRACKED
from turnout.operators.arguments import MISSING
from turnout.operators.stubs import default_source, python_name
from turnout.registry import find_operator
from turnout.state import BELOW_ADINPLACEORVIEW, BELOW_AUTOGRAD, DISPATCH, FRESH, STUB_BUILTINS
from turnout_aten.kernels.wrapping import BOOL, SAME
from turnout_aten.tensor.levels import CLOCK, GRAD
from turnout_aten.tensor.storage import Storage, View
from turnout_aten.tensor.tensor import Tensor
from turnout_aten.views.recording import attach
from turnout_speed import _calls, _rules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from turnout.operators import Operator
    from turnout.schema import Argument

# The types of arguments that are passed on as they are when they have the right class.
KINDS = {
    "Tensor": "Tensor", "Scalar": "Scalar", "int": "int", "SymInt": "int", "float": "float", "bool": "bool", "str": "str",
    "ScalarType": "ScalarType", "Device": "Device",
}  # fmt: skip
_INTS = re.compile(r"(int|SymInt)\[\d*\]\??")
MOST = 12  # arguments


def configure() -> None:
    """Tell the extension modules which classes and variables calls read."""
    _rules.configure(Tensor, STUB_BUILTINS, DISPATCH)
    _calls.configure({
        "Tensor": Tensor, "STUB_BUILTINS": STUB_BUILTINS, "DISPATCH": DISPATCH, "FRESH": FRESH, "GRAD": GRAD, "CLOCK": CLOCK,
        "DType": DType, "Device": Device, "Storage": Storage, "View": View,
        "add": numpy.add, "subtract": numpy.subtract, "multiply": numpy.multiply, "divide": numpy.divide,
    })  # fmt: skip


# ---- calls


def stub(made: Any, op: Operator) -> Any:
    """The stub of an operator with tensors among its arguments, all of plain types."""
    arguments = op.schema.arguments
    positional = sum(not a.kwarg_only for a in arguments)
    rows = _rows(arguments, [str(i) for i in range(positional)] + ["-"] * (len(arguments) - positional), by_name=True)
    return made if rows is None else _calls.call(made, ((op.cache, positional, rows),), MISSING)


def function(made: Any, *_: Any) -> Any:
    """A public function that looks into one operator's cache."""
    return _call_of_text(made)


def method(made: Any, *_: Any) -> Any:
    """A method, likewise; the stub itself where the method is that."""
    return _call_of_text(made)


_LOOKUP = re.compile(r"    kernel = (K_\w+|CACHE)\[ks\]")
_LAST = re.compile(r"    return kernel\(ks, (.*)\)")
_NUMBER = re.compile(r"        return op_(\w+)\((\w+), (\w+)\)")


def _call_of_text(made: Any) -> Any:
    """The compiled form of a generated text: its look-up, and the arguments of `return kernel(ks, ...)` in its last line."""
    code = getattr(made, "__code__", None)
    if code is None or hasattr(made, "__wrapped__"):
        return made
    text = "".join(linecache.getlines(code.co_filename))
    lookup, last = _LOOKUP.findall(text), _LAST.findall(text)
    if len(lookup) != 1 or len(last) != 1 or code.co_kwonlyargcount:
        return made
    cache = made.__globals__.get(lookup[0])
    op = _operator_of(made, lookup[0], cache)
    names = code.co_varnames[: code.co_argcount]
    given = last[0].split(", ")
    if op is None or len(given) != len(op.schema.arguments):
        return made
    sources = [str(names.index(value)) if value in names else "-" for value in given]
    rows = _rows(op.schema.arguments, sources, by_name=False)
    constants = [(value, a) for value, s, a in zip(given, sources, op.schema.arguments, strict=True) if s == "-"]
    if rows is None or any(not a.has_default or default_source(a) != value for value, a in constants):
        return made
    targets = [(cache, len(names), rows)]
    for overload, *passed in _NUMBER.findall(text):
        other = _find(overload)
        if passed == list(names) and "in NUMBERS:" in text and other is not None:
            count = len(other.schema.arguments)
            more = _rows(other.schema.arguments, ["0", "1", *["-"] * (count - 2)], by_name=False)
            targets += [] if more is None else [(other.cache, 2, more)]
    return _calls.call(made, tuple(targets[:2]), MISSING)


def _operator_of(made: Any, variable: str, cache: Any) -> Operator | None:
    op = find_operator(made.operator_name) if variable == "CACHE" else _find(variable.removeprefix("K_"))
    return op if op is not None and op.cache is cache else None


def _find(name: str) -> Operator | None:
    """The operator whose name is written as an identifier, `add__Tensor`."""
    from turnout_aten.declarations.tables import standard

    overload = standard().find(name)
    return None if overload is None else find_operator(overload.qualified_name)


def _rows(arguments: Sequence[Argument], sources: Sequence[str], *, by_name: bool) -> tuple[Any, ...] | None:
    """The arguments as the extension module reads them: (kind, may be None, parameter, default, name). None: one is not plain."""
    rows = []
    for argument, source in zip(arguments, sources, strict=True):
        canonical = argument.type.canonical
        kind = "ints" if _INTS.fullmatch(canonical) else KINDS.get(canonical.rstrip("?"))
        if kind is None or (kind == "Tensor" and argument.has_default and not canonical.endswith("?")):
            return None
        default = argument.default if argument.has_default else MISSING
        optional = canonical.endswith("?") or default is None
        rows.append(
            (kind, optional, int(source) if source != "-" else -1, default, python_name(argument.name) if by_name else None)
        )
    tensors = any(kind == "Tensor" for kind, *_ in rows)
    return tuple(rows) if tensors and len(rows) <= MOST else None


# ---- kernels


def array_kernel(made: Any, s: Any, backend: Any, row: Any, general: Any) -> Any:
    """The wrapper of an array kernel whose arrays are NumPy's."""
    arguments = [a for a in s.op.schema.arguments if a.name in s.names]
    rows: list[tuple[str, Any, int]] = []
    ranks = iter(row.ranks)
    for argument in arguments:
        canonical = argument.type.canonical
        is_tensor = argument.name in s.tensors
        if is_tensor and canonical.endswith("?"):
            rows.append(("absent", MISSING, -1))
        elif is_tensor:
            rank = next(ranks, None)
            rows.append(("tensor", MISSING, -1 if rank is None else rank))
        else:
            number = canonical == "Scalar" and not argument.has_default
            default = argument.default if argument.has_default else MISSING
            rows.append(("number" if number else "value", default, -1))
    if backend.array_type is not numpy.ndarray or len(rows) > MOST:
        return made
    numbers = any(role == "number" for role, *_ in rows)
    unsure = row.allocates == SAME or (numbers and row.allocates != BOOL)
    variables = made.__globals__
    half = variables["HALF"] if numbers and not row.halves else None
    framed = _framed(made, row.simple), _framed(made, row.fn)
    return _calls.array_kernel(
        made, tuple(rows), *framed, variables["as_array"], backend.keys, half, row.simple, row.limit, row.bools, unsure,
        row.refuses, MISSING,
    )  # fmt: skip


def _framed(made: Any, fn: Any) -> Any:
    """A function of the array library in a frame of the wrapper's module, to which warnings filters look."""
    if fn is None or hasattr(fn, "__code__"):
        return fn
    variables = {"__name__": made.__globals__["__name__"], "fn": fn}
    exec(compile("def framed(*arrays): return fn(*arrays)", made.__code__.co_filename, "exec"), variables)
    return variables["framed"]


def record_kernel(made: Any, op: Operator, family: ModuleType) -> Any:
    """A kernel at Autograd, from the row of its family."""
    row = family.RECORDS.get(op.qualified_name)
    if row is None or row[1] > MOST:
        return made
    f = vars(family)
    below = (op.cache, BELOW_AUTOGRAD, TRACKED, f["next_seq"], f["metas"], f["unlike"], f["Kept"])
    return _calls.record_kernel(made, *below, *row)


def view_kernel(made: Any, op: Operator) -> Any:
    """A kernel that records a view of the first argument."""
    returns = [str(r.type) for r in op.schema.returns]
    if op.schema.arguments[0].annotation is None or returns != ["Tensor"]:
        return made
    return _calls.view_kernel(made, op, op.cache, BELOW_ADINPLACEORVIEW, attach)


def rule_kernel(made: Any, op: Operator, rule: Any, kind: str, call: Any, switches: int, names: dict[str, Any]) -> Any:
    """The kernel at Batched of an operator without lists of tensors."""
    arguments = op.schema.arguments
    lists = any(a.type.is_tensor_list for a in arguments)
    if lists or len(arguments) > MOST or any(a.is_write for a in arguments):
        return made
    at = tuple(i for i, a in enumerate(arguments) if a.type.is_tensor)
    return _rules.rule_kernel(made, ("", "unary", "aligned").index(kind), rule, call, len(arguments), at, switches, names)


REPLACEMENTS = {
    "turnout.operators.stubs:compile_stub":                   stub,
    "turnout_aten.functions.compilation:make_function":       function,
    "turnout_aten.functions.compilation:make_method":         method,
    "turnout_aten.kernels.wrapping:fast_functional":          array_kernel,
    "turnout_aten.views.recording:recording_view":            view_kernel,
    "turnout_autograd.recording.standard_kernels:kernel_of":  record_kernel,
    "turnout_batched.kernels:rule_kernel":                    rule_kernel,
}  # fmt: skip
