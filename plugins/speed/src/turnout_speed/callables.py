"""What stands in place of stubs, functions and methods: their arguments as the extension module reads them, from schemas and from
generated texts."""

from __future__ import annotations

import linecache
import re
from types import FunctionType
from typing import TYPE_CHECKING, Any

from turnout.operators.arguments import MISSING
from turnout.operators.stubs import default_source, python_name
from turnout.registry import find_operator
from turnout_speed import _calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.operators import Operator
    from turnout.schema import Argument

# The types of arguments that are passed on as they are when they have the right class.
KINDS = {
    "Tensor": "Tensor", "Scalar": "Scalar", "int": "int", "SymInt": "int", "float": "float", "bool": "bool", "str": "str",
    "ScalarType": "ScalarType", "Device": "Device", "MemoryFormat": "str",
}  # fmt: skip
_INTS = re.compile(r"(?:int|SymInt)\[(\d*)\]\??")
MOST = 12  # arguments


# ---- stubs, functions and methods


def stub(made: Any, op: Operator) -> Any:
    """The stub of an operator whose arguments are all of known types."""
    arguments = op.schema.arguments
    positional = sum(not a.kwarg_only for a in arguments)
    rows = rows_of(arguments, [str(i) for i in range(positional)] + ["-"] * (len(arguments) - positional), by_name=True)
    if rows is None:
        return made
    tail = _tail(made, [python_name(a.name) for a in arguments])
    return _calls.call(made, ((op.cache, positional, rows, -1, False),), MISSING, tail, None, None)


def function(made: Any, *_: Any) -> Any:
    """A public function that looks into one operator's cache."""
    return _call_of_text(made)


def method(made: Any, *_: Any) -> Any:
    """A method, likewise; the stub itself where the method is that."""
    return _call_of_text(made)


_LOOKUP = re.compile(r"    kernel = (K_\w+|CACHE)\[ks\]")
_LAST = re.compile(r"    return (?:new_tuple\((?P<named>R_\w+), )?kernel\(ks, (?P<given>.*?)\)\)?")
_NUMBER = re.compile(r"        return op_(\w+)\((\w+), (\w+)\)")
_SIZES = re.compile(
    r"return (?P<operator>\w+)\((?P<self>self, )?(?P<sizes>\w+) if len\(\3\) > 1 or \3\[0\].__class__ is int else spread\(\3\)\)"
)
_ONLY_SIZES = re.compile(r"only_ints\(map\(type, (?P<sizes>\w+)\)\):\n +return (?P<operator>\w+)\((?P<self>self, )?\1\)")
_OVERLOADS = re.compile(r"return (?:(?:named|new_tuple)\((?P<named>R_\w+), )?(?P<packet>P_\w+)\((?P<given>[\w, *]*)\)")
_OUT = re.compile(r"return op_(\w+)\((.*), out=out\)")


def _call_of_text(made: Any) -> Any:
    """The compiled form of a generated text: its look-up, and the arguments of `return kernel(ks, ...)` in its last line."""
    code = getattr(made, "__code__", None)
    if code is None or hasattr(made, "__wrapped__"):
        return made
    text = "".join(linecache.getlines(code.co_filename))
    target, tail = _target_of_text(made, text)
    targets = [] if target is None else [target]
    names = code.co_varnames[: code.co_argcount]
    for overload, *passed in _NUMBER.findall(text) if targets else ():
        other = _find(overload)
        if passed == list(names) and "in NUMBERS:" in text and other is not None:
            count = len(other.schema.arguments)
            more = rows_of(other.schema.arguments, ["0", "1", *["-"] * (count - 2)], by_name=False)
            targets += [] if more is None else [(other.cache, 2, more, -1, False)]
    targets += _targets_of_sizes(made, text)
    targets += _target_of_out(names, text) if targets else []
    overloads, named = _overloads_of_text(made, text)
    if not targets and overloads is None:
        return made
    return _calls.call(made, tuple(targets[:3]), MISSING, tail, named, overloads)


def _target_of_out(names: Sequence[str], text: str) -> list[Any]:
    """The operator of a text that takes `out=`, with all other arguments by position, as above."""
    found = _OUT.findall(text)
    op = _find(found[0][0]) if len(found) == 1 else None
    if op is None or found[0][1].split(", ") != list(names):
        return []
    arguments = op.schema.arguments
    rows = rows_of(arguments, [*map(str, range(len(names))), *["-"] * (len(arguments) - len(names))], by_name=False)
    if rows is None or len(arguments) != len(names) + 1 or not arguments[-1].is_write:
        return []
    return [(op.cache, len(names), (*rows[:-1], (*rows[-1][:5], "out")), -1, False)]


def _overloads_of_text(made: Any, text: str) -> tuple[Any, Any]:
    """The overloads by the types of a call that a text looks into last, as the extension module reads them, and the class of
    several results. The positional arguments are passed on as they are; whether one is left out is no difference there."""
    code = made.__code__
    names = list(code.co_varnames[: code.co_argcount])
    calls = [each.groupdict() for each in _OVERLOADS.finditer(text)]
    classes = {each["named"] for pattern in (_OVERLOADS, _LAST) for each in pattern.finditer(text)}
    named = made.__globals__[classes.pop()] if len(classes) == 1 and None not in classes else None
    given = [each["given"].split(", ") for each in calls]
    plain = all([value for value in each if "*" not in value] == names for each in given)
    if len({each["packet"] for each in calls}) != 1 or (named is None and classes != {None}) or not plain:
        return None, named
    more = any("*args" in each for each in given)
    most = len(names) + 1 if "(args,)" in text else MOST if more else len(names)  # several arguments may be one list
    least = len(names) - sum(default is MISSING for default in made.__defaults__ or ())
    by_name = any("**kwargs" in each for each in given)
    return (made.__globals__[calls[0]["packet"]].chosen, least, most, by_name), named


def _targets_of_sizes(made: Any, text: str) -> list[Any]:
    """The operator of a text that takes sizes one by one, `reshape(self, *shape)` or `view(self, *args)`, as above."""
    found = _SIZES.search(text) or _ONLY_SIZES.search(text)
    if found is None:
        return []
    written, name, alone = found["operator"], found["sizes"], found.re is _ONLY_SIZES
    factory = _LOOKUP.search(text) if written.startswith("_") else None
    identifier = factory[1].removeprefix("K_") if factory else written.removeprefix("op_")
    op = _find(identifier)
    if op is None:
        return []
    at = 1 if found["self"] else 0
    arguments = op.schema.arguments
    sources = ["0", "1"][: at + 1] + ["-"] * (len(arguments) - at - 1)
    rows = rows_of(arguments, sources, by_name=True)
    is_sizes = len(arguments) > at and _INTS.fullmatch(arguments[at].type.canonical) is not None
    ready = rows is not None and is_sizes and (alone or python_name(arguments[at].name) == name)
    return [(op.cache, at + 1, rows, at, alone)] if ready else []


def _target_of_text(made: Any, text: str) -> tuple[Any, Any]:
    """The operator whose cache a text looks into, as the extension module reads it, and the function's last line."""
    code = made.__code__
    lookup, last = _LOOKUP.findall(text), _LAST.findall(text)
    if len(lookup) != 1 or len(last) != 1:
        return None, None
    cache = made.__globals__.get(lookup[0])
    op = _operator_of(made, lookup[0], cache)
    names = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    given = last[0][1].split(", ")
    if op is None or len(given) != len(op.schema.arguments):
        return None, None
    sources = [str(names.index(value)) if value in names else "-" for value in given]
    rows = rows_of(op.schema.arguments, sources, by_name=False)
    constants = [(v, a) for v, a in zip(given, op.schema.arguments, strict=True) if v not in names and v not in keywords]
    if rows is None or any(not a.has_default or default_source(a) != value for value, a in constants):
        return None, None
    named = tuple([(*row[:5], value if value in keywords else None) for row, value in zip(rows, given, strict=True)])
    return (cache, len(names), named, -1, False), _tail(made, [value for value in given if value in names or value in keywords])


def _tail(made: Any, names: Sequence[str]) -> Any:
    """The last line of a generated function as a function of what it uses. It calls a kernel of Python, so that the kernel and
    tracebacks find the frame that the whole function would have; None if that line does something else."""
    lines = linecache.getlines(made.__code__.co_filename)
    if not _LAST.fullmatch(lines[-1].rstrip("\n")):
        return None
    return line_of(made, len(lines), lines[-1].strip(), ["kernel", "ks", *names])


def line_of(made: Any, number: int, statement: str, names: Sequence[str]) -> Any:
    """A statement as a function of these names, in the line with that number of a generated function's text."""
    code = made.__code__
    text = f"def {code.co_name}({', '.join(names)}):" + "\n" * (number - 1) + f"    {statement}\n"
    own: dict[str, Any] = {}
    exec(compile(text, code.co_filename, "exec", dont_inherit=True), own)
    found = own.pop(code.co_name)  # it would hold itself: a cycle that only the collector ends
    return FunctionType(found.__code__, made.__globals__, code.co_name)


def _operator_of(made: Any, variable: str, cache: Any) -> Operator | None:
    op = find_operator(made.operator_name) if variable == "CACHE" else _find(variable.removeprefix("K_"))
    return op if op is not None and op.cache is cache else None


def _find(name: str) -> Operator | None:
    """The operator whose name is written as an identifier, `add__Tensor`."""
    from turnout_aten.declarations.tables import standard

    overload = standard().find(name)
    return None if overload is None else find_operator(overload.qualified_name)


def rows_of(arguments: Sequence[Argument], sources: Sequence[str], *, by_name: bool) -> tuple[Any, ...] | None:
    """The arguments as the extension module reads them: (kind, may be None, size, parameter, default, name).

    None if one of them is of another kind, and may be given.
    """
    rows = []
    for argument, source in zip(arguments, sources, strict=True):
        canonical = argument.type.canonical
        default = argument.default if argument.has_default else MISSING
        optional = canonical.endswith("?") or default is None
        ints = _INTS.fullmatch(canonical)
        kind = "ints" if ints else KINDS.get(canonical.rstrip("?"))
        if canonical in ("Tensor[]", "Tensor?[]"):
            kind, optional = "tensors", "?[" in canonical
        elif kind is None and canonical.endswith("?") and not argument.type.is_tensor_like:
            kind = "none"  # a generator, a layout, floats: only where it is not given
        if kind is None or (kind == "Tensor" and argument.has_default and not canonical.endswith("?")):
            return None
        at = int(source) if source != "-" else -1
        name = python_name(argument.name) if by_name else None
        rows.append((kind, optional, int(ints[1] or 0) if ints else 0, at, default, name))
    return tuple(rows) if len(rows) <= MOST else None
