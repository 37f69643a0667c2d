"""What stands in place of the replaceable functions: each gets what was made in Python and the same arguments.

Where the compiled form can say the same, it is returned, with the Python function beside it. Anything else is returned as it is.
"""

from __future__ import annotations

import sys
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy

from turnout import config, devices, dtypes
from turnout.devices import Device, default_device
from turnout.dtypes import DType
from turnout.guards import restore
from turnout.keys import TRACKED
from turnout.operators import Operator, Packet
from turnout.operators.arguments import MISSING
from turnout.operators.calls import Given, Target
from turnout.operators.stubs import python_name
from turnout.registry import find_operator
from turnout.state import BELOW_ADINPLACEORVIEW, BELOW_AUTOGRAD, DISPATCH, FRESH, STUB_BUILTINS
from turnout_aten import operators as aten
from turnout_aten.declarations.tables import SEEDED
from turnout_aten.kernels.facts import NOTHING, facts_of
from turnout_aten.kernels.plans import AS_GIVEN, LIMIT, SOURCE_NAMES, Plans, array_lines, key_source
from turnout_aten.kernels.rows import COUNT, FREEDOM, Compiled, Move, Steps
from turnout_aten.kernels.specs import CUSTOM, INTO, MAKES, PLANNED, SHAPELESS
from turnout_aten.kernels.stepping import preparing, steps_of
from turnout_aten.kernels.unstructured import wrap_result
from turnout_aten.tensor.devices import FAKE_MODE
from turnout_aten.tensor.levels import CLOCK, GRAD
from turnout_aten.tensor.random import default_generator
from turnout_aten.tensor.size import Size
from turnout_aten.tensor.storage import Storage, View
from turnout_aten.tensor.tensor import Tensor
from turnout_aten.views.recording import AS_STRIDED, attach
from turnout_speed import _calls, _rules
from turnout_speed.callables import MOST, call, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from turnout.operators.calls import Source
    from turnout.operators.kernels import Kernel
    from turnout.schema import Argument
    from turnout_aten.kernels.specs import KernelSpec, Wrapper


def configure() -> None:
    """Tell the extension modules which classes and variables calls read."""
    _calls.call_operators(Operator, Packet)
    _rules.configure(Tensor, STUB_BUILTINS, DISPATCH, restore)
    _calls.configure({
        "Tensor": Tensor, "STUB_BUILTINS": STUB_BUILTINS, "DISPATCH": DISPATCH, "FRESH": FRESH, "GRAD": GRAD, "CLOCK": CLOCK,
        "DType": DType, "Device": Device, "Storage": Storage, "View": View,
        "Size": Size, "FAKE_MODE": FAKE_MODE,
        "EMPTY": numpy.empty, "DEFAULT_DTYPES": dtypes.DEFAULT, "DEFAULT_DEVICES": devices.DEFAULT, "OVERRIDES": config.OVERRIDES,
        "DEFAULT_GENERATOR": default_generator, "TRACKED": TRACKED, "MISSING": MISSING, "restore": restore,
        "LOG": numpy.log, "SQRT": numpy.sqrt, "COS": numpy.cos, "ADD": numpy.add,
    })  # fmt: skip


# ---- kernels


def array_kernel(made: Any, spec: Wrapper, source: Source, general: Any = None) -> Any:
    """The wrapper of an array kernel whose arrays are NumPy's: what it returns is new, or is written into the first tensor."""
    inputs, kernel, backend, inplace = spec.inputs, spec.kernel, spec.kernel.backend, spec.form == INTO
    assert inputs is not None
    if backend.array_type is not numpy.ndarray or len(inputs.arguments) > MOST:
        return made
    accepts, names = inputs.accepts, [a.name for a in inputs.arguments]
    arguments = tuple([(a.role, a.default, -1 if a.rank is None else a.rank) for a in inputs.arguments])
    return _calls.array_kernel(
        made, arguments=arguments, cases=_cases(spec, source), keys=backend.keys, sized=kernel.sized, large=spec.large,
        general=general or spec.general, program=_program(steps_of(kernel), names, ranked=bool(accepts.ranks)),
        as_array=spec.as_array, kept=inputs.kept, bools=accepts.bools, refuses=accepts.refuses, unsure=inputs.unsure,
        inplace=inplace, ordered=kernel.pointwise and not inplace,
    )  # fmt: skip


def _cases(spec: Wrapper, source: Source) -> tuple[tuple[Any, ...], ...]:
    """The cases of a wrapper as the extension module reads them."""
    return tuple([(_framed(source, case.run), case.upto, case.halves, case.brief) for case in spec.cases])


_OF_STEP, _COUNT, _FREEDOM = 16, 48, 49  # how the extension module numbers operands
_EXTRA = 64  # and from where on what a plan adds


def _program(program: Steps, names: Sequence[str], *, ranked: bool) -> Any:
    """Steps as the extension module reads them, or None. `ranked` says that the arguments must have certain dims."""
    made = []
    for ufunc, *given in program.steps:
        operands = [_operand(value, names) for value in given]
        if not isinstance(ufunc, numpy.ufunc) or None in operands:
            return None
        made.append((ufunc, *operands))
    at = [names.index(name) if name in names else -1 for name in ("dim", "keepdim", "correction")]
    return (tuple(made), program.upto or 1 << 30, *at, not ranked) if made else None


def _operand(value: Any, names: Sequence[str]) -> Any:
    if value is COUNT or value is FREEDOM:
        return _COUNT if value is COUNT else _FREEDOM
    if isinstance(value, str):
        return names.index(value) if value in names else None
    return value if isinstance(value, float) else _OF_STEP + value


def plain_kernel(made: Any, spec: Wrapper, source: Source) -> Any:
    """The wrapper of a row without a shape function: of tensors that must be given, with one tensor as the result."""
    op, backend, program = spec.kernel.op, spec.kernel.backend, spec.kernel.program
    arguments, returns = op.schema.arguments, op.schema.returns
    if isinstance(program, Compiled) and not any(a.type.is_tensor for a in arguments):
        return _calls.draw_kernel(made, *program) if backend.new_array is numpy.empty else made
    others = any(a.type.is_tensor_list or a.is_write for a in arguments) or SEEDED in op.tags
    if others or len(returns) != 1 or not returns[0].type.is_tensor or backend.array_type is not numpy.ndarray:
        return made
    if not arguments or arguments[0].type.canonical != "Tensor" or len(arguments) > MOST:
        return made
    roles = {"Tensor": "tensor", "Tensor?": "absent"}
    rows = tuple((roles.get(a.type.canonical, "value"), MISSING, -1) for a in arguments)
    rest = source.line(spec.lines["below"]) if "below" in spec.lines else None
    steps = _program(program, [a.name for a in arguments], ranked=False) if isinstance(program, Steps) else None
    return _calls.array_kernel(
        made, arguments=rows, cases=((spec.cases[0].run, 0, 0, False),), keys=backend.keys, program=steps,
        below=spec.general, few=spec.kernel.few, rest=rest, finish=partial(wrap_result, backend),
    )  # fmt: skip


def plan_kernel(made: Any, spec: Wrapper, source: Source) -> Any:
    """The wrapper of an array kernel that is given its outputs, by kept answers of the shape function."""
    kernel, s, backend = spec.kernel, spec.kernel.shaped, spec.kernel.backend
    roles = [_role(a) for a in s.inputs]
    if backend.new_array is not numpy.empty or len(roles) > MOST or None in roles:
        return made
    names = [python_name(a.name) for a in s.inputs]
    passed: list[int] = []
    extra = _EXTRA
    for at, argument in enumerate(s.inputs):
        replaced = len(s.precomputed.get(argument.name, ()))
        passed += range(extra, extra + replaced) if replaced else [at]
        extra += replaced
    passed += range(extra, extra + len(s.precomputed.get("", ())))
    if len(passed) > MOST:
        return made
    lines = [
        f"def find({', '.join(names)}):",
        "    try:",
        *(f"        {array_lines(a, name)}" for a, name in zip(s.inputs, names, strict=True) if a.type.is_tensor_like),
        f"        key = {key_source(s.inputs, names)}",
        "        plan = KNOWN.get(key)",
        "        if plan is None and key not in ASKED:",  # an answer that is not kept is not asked for again
        f"            if len(ASKED) >= {LIMIT}: ASKED.clear()",
        "            ASKED.add(key)",
        f"            ANSWER(key, SHAPE, {', '.join(names)})",
        "            plan = KNOWN.get(key)",
        "        return plan",
        "    except Exception:",  # the whole path meets it again
        "        return None",
    ]
    # Not the plans of the Python function: theirs are called where the array module's warnings are off already.
    kept = [a.name for a in s.inputs if a.type.is_tensor_like]
    plans = Plans(backend, kept, s.plain, s.precomputed, _prepared(kernel))
    own: dict[str, Any] = {
        "KNOWN": plans.known, "ANSWER": plans.answer, "SHAPE": s.answer, "ASKED": set(), "__name__": __name__, **SOURCE_NAMES,
    }  # fmt: skip
    exec(compile("\n".join(lines), source.file, "exec"), own)
    find = own.pop("find")  # a function among its own globals would be a cycle
    count = s.outs or len(s.op.schema.returns)
    program, steps = kernel.program, None
    if isinstance(program, Steps) and not s.precomputed:
        steps = _program(program, s.names, ranked=kernel.inputs is not None and bool(kernel.inputs.accepts.ranks))
    defaults = tuple([a.default if a.has_default else MISSING for a in s.inputs])
    return _calls.plan_kernel(
        made, find=find, cases=_cases(spec, source), sized=kernel.sized, keys=backend.keys,
        as_given=AS_GIVEN, roles=tuple(roles), passed=tuple(passed), defaults=defaults, outs=count,
        moves=program.value if isinstance(program, Move) else "", compiled=program if isinstance(program, Compiled) else None,
        program=steps,
    )  # fmt: skip


def _prepared(kernel: KernelSpec) -> Any:
    """What makes a function for the calls of one plan, in the context that the kernel is called in."""
    prepare = preparing(kernel)
    if prepare is None or kernel.quiet:
        return prepare

    def prepared(result: Any, args: Any) -> Any:
        ready = prepare(result, args)
        return None if ready is None else kernel.backend.in_kernel_context(ready)

    return prepared


def _role(argument: Argument) -> str | None:
    """What an argument is to a planned call; None for one that only Python passes on."""
    canonical = argument.type.canonical
    if argument.type.is_tensor_list:
        return None if canonical.endswith("?") else "list"
    if argument.type.is_tensor:
        return "optional" if canonical.endswith("?") else "tensor"
    return "value"


def into_kernel(made: Any, spec: Wrapper, source: Source) -> Any:
    """The wrapper of a variant that writes: it makes the result, or copies what the functional variant computes."""
    s = spec.kernel.shaped
    copies = made
    if len(s.inputs) < MOST and _calls.is_compiled(spec.below):
        finish = source.line(spec.lines["finish"])
        dtype_at = -1 if s.dtype_at is None else s.dtype_at
        copies = _calls.into_kernel(made, spec.below, finish, len(s.inputs), len(s.inputs) if s.outs else 0, dtype_at)
    return copies if spec.inputs is None else array_kernel(made, spec, source, copies)


def guard_kernel(made: Any, call: Any, mask: int) -> Any:
    """A kernel that calls operators, below guards."""
    return _calls.guard_kernel(made, call, mask) if _calls.is_compiled(call) else made


def write_kernel(made: Any, op: Operator) -> Any:
    """A kernel that counts writes of the first argument."""
    return _calls.write_kernel(made, op.cache, BELOW_ADINPLACEORVIEW, 0)


def writes_kernel(made: Any, op: Operator, mutated: tuple[int, ...]) -> Any:
    """A kernel that counts writes of other arguments."""
    if len(mutated) != 1 or not op.schema.arguments[mutated[0]].type.is_tensor or len(op.schema.arguments) > MOST:
        return made
    return _calls.write_kernel(made, op.cache, BELOW_ADINPLACEORVIEW, mutated[0])


def _framed(source: Source, fn: Any) -> Any:
    """A function of the array library in a frame of the wrapper's text."""
    if fn is None or isinstance(fn, (FunctionType, MethodType)):
        return fn
    if isinstance(fn, BuiltinFunctionType) and not (fn.__module__ or "").startswith("numpy"):
        return fn  # another extension module's
    return source.framed(fn)


def custom_kernel(made: Any, spec: Wrapper, source: Source) -> Any:
    """The wrapper of a kernel of the user. The lines of its text that call anything are called from C, as functions."""
    arguments, backend = spec.kernel.op.schema.arguments, spec.kernel.backend
    count = len(arguments)
    if backend.array_type is not numpy.ndarray or count > MOST:
        return made
    run, general, finish = [source.line(spec.lines[name]) for name in ("kernel", "general", "finish")]
    tensors = tuple([i for i, a in enumerate(arguments) if a.type.is_tensor])
    return _calls.custom_kernel(
        made, call=run, general=general, finish=finish, keys=backend.keys, arguments=count, tensors=tensors
    )


FORMS = {MAKES: array_kernel, PLANNED: plan_kernel, INTO: into_kernel, SHAPELESS: plain_kernel, CUSTOM: custom_kernel}


def kernel(made: Any, _: Any, spec: Wrapper, source: Source) -> Any:
    """The wrapper of an array kernel."""
    return FORMS[spec.form](made, spec, source)


def record_kernel(made: Any, op: Operator, family: ModuleType) -> Any:
    """A kernel at Autograd, from the row of its family. Without a row, only calls that no level records are taken."""
    row = family.RECORDS.get(op.qualified_name)
    count = len(op.schema.arguments)
    if count > MOST:
        return made
    if row is None:
        return _calls.record_kernel(made, op.cache, BELOW_AUTOGRAD, count)
    if row[6]:
        _add_formula(row[0], row[3], row[4] != "", row[6])
    f = vars(family)
    node, arguments, differentiable, saves, fits, dtype_argument = row[:6]
    return _calls.record_kernel(
        made, op.cache, BELOW_AUTOGRAD, arguments, tracked=TRACKED, next_seq=f["next_seq"], metas=f["metas"], unlike=f["unlike"],
        kept=f["Kept"], node=node, differentiable=differentiable, saves=saves, fits=fits, dtype_argument=dtype_argument,
    )  # fmt: skip


def _add_formula(node: type, saves: Sequence[Any], fits: bool, gradients: Sequence[Any]) -> None:
    """Say what the nodes of a class compute, as the extension module reads it: a list of steps for all edges."""
    reads = [("result" if kind == "result" else kind if kind == "tensor" else "value", slot) for kind, slot, *_ in saves]
    numbers: list[Any] = []
    steps: list[tuple[str, Any, tuple[Any, ...]]] = []
    needs: dict[Any, int] = {}

    def place(made: Any, edge: int) -> Any:
        """What stands for the register of an expression, until it is known how many there are."""
        if isinstance(made, str):
            found: Any = ("read", -1 if made == "grad" else [slot for _, slot in reads].index(made))
        elif made[0] == "number":
            numbers.append(made[1])
            found = ("number", len(numbers) - 1)
        else:
            word, *given = made
            operands = tuple([place(each, edge) for each in given])
            if word[0] == ".":
                steps.append(("method", sys.intern(word[1:]), operands))
            elif word in _calls.FORMULA_WORDS:
                steps.append((word, getattr(aten, _CALLED[word]) if word in _CALLED else None, operands))
            else:
                steps.append(("operator", getattr(aten, word), operands))
            found = ("step", len(steps) - 1)
        needs[found] = needs.get(found, 0) | 1 << edge
        return found

    results = [place(made, edge) for edge, made in enumerate(gradients)]
    before = {"read": 1, "number": 1 + len(reads), "step": 1 + len(reads) + len(numbers)}
    if before["step"] + len(steps) > _calls.FORMULA_REGISTERS or any(len(g) > _calls.FORMULA_OPERANDS for *_, g in steps):
        return

    def register(found: Any) -> int:
        return before[found[0]] + int(found[1])

    _calls.add_formula(
        node, tuple([(*read, needs.get(("read", i), 0)) for i, read in enumerate(reads)]), tuple(numbers),
        tuple([(word, call, needs["step", i], tuple(map(register, given))) for i, (word, call, given) in enumerate(steps)]),
        tuple(map(register, results)), fits,
    )  # fmt: skip


_CALLED = {"sum_to": "sum__dim_IntList"}  # the overload that the extension module calls for one of its functions


def run_ahead(made: Any, node: type, freed: Any, freed_output: Any) -> Any:
    """What takes the nodes of a backward pass whose formulas are data."""
    from heapq import heappop, heappush  # the engine has loaded it

    return _calls.sweep(node, freed, freed_output, heappush, heappop)


def view_kernel(made: Any, op: Operator) -> Any:
    """A kernel that records a view, or several, of the first argument."""
    returns = [str(r.type) for r in op.schema.returns]
    if op.schema.arguments[0].annotation is None or returns not in (["Tensor"], ["Tensor[]"]):
        return made
    is_as_strided, is_list = op.qualified_name == AS_STRIDED, returns == ["Tensor[]"]
    return _calls.view_kernel(made, op, op.cache, BELOW_ADINPLACEORVIEW, attach, is_as_strided=is_as_strided, is_list=is_list)


def rule_kernel(made: Any, op: Operator, rule: Any, kind: str, call: Any, switches: int, names: dict[str, Any]) -> Any:
    """The kernel at Batched of an operator without lists of tensors."""
    arguments = op.schema.arguments
    lists = any(a.type.is_tensor_list for a in arguments)
    if lists or len(arguments) > MOST or any(a.is_write for a in arguments):
        return made
    at = tuple(i for i, a in enumerate(arguments) if a.type.is_tensor)
    number = ("", "unary", "aligned").index(kind)
    return _rules.rule_kernel(made, rule, len(arguments), at, names, kind=number, call=call, switches=switches)


def tangent_kernel(made: Any, op: Operator, rule: Any, reads: Any, names: dict[str, Any]) -> Any:
    """The kernel at Forward of an operator that writes nothing, has no lists of tensors and returns one tensor."""
    arguments, returns = op.schema.arguments, op.schema.returns
    others = any(a.is_write or a.type.is_tensor_list for a in arguments)
    if others or len(arguments) > MOST or len(returns) != 1 or not returns[0].type.is_tensor:
        return made
    at = tuple(i for i, a in enumerate(arguments) if a.type.is_tensor)
    return _rules.tangent_kernel(made, rule, len(arguments), at, names, cache=op.cache, resolve=op.resolve)


def parts_kernel(made: Any, op: Operator, parts: Any, names: dict[str, Any]) -> Any:
    """The kernel at Forward of an operator without lists of tensors whose kernel is written in operators."""
    arguments = op.schema.arguments
    if any(a.type.is_tensor_list for a in arguments) or len(arguments) > MOST:
        return made
    at = tuple(i for i, a in enumerate(arguments) if a.type.is_tensor)
    return _rules.tangent_kernel(made, parts, len(arguments), at, names, cache=op.cache, resolve=op.resolve, through=True)


def composite_kernel(made: Any, op: Operator, kernel: Kernel, _: str) -> Any:
    """A composite kernel that says what it ends in, or that it copies."""
    names = [python_name(a.name) for a in op.schema.arguments]
    facts = facts_of(kernel.fn.__wrapped__)
    if facts.element:
        return _calls.element_kernel(made, facts.element)
    if facts.copies is not None:
        return _calls.copy_kernel(made, names.index(facts.copies) if facts.copies else -1)
    if not facts.endings or len(names) > MOST:
        return made
    from turnout_speed.endings import rows_of

    rows = rows_of(facts.endings, names)
    return made if rows is None else _calls.composite_kernel(made, len(names), rows)


def select_kernel(made: Any, op: Operator, at: int) -> Any:
    """A factory at BackendSelect."""
    above = ~op.registry.keys.bit("BackendSelect")
    return _calls.select_kernel(made, op.cache, above, default_device, at) if len(op.schema.arguments) <= MOST else made


def factory_kernel(made: Any, op: Operator, kernel: Kernel, _: str) -> Any:
    """A factory that fills with one number, or what says in a word what it does."""
    facts = facts_of(kernel.fn.__wrapped__)
    if facts.element:
        return _calls.element_kernel(made, facts.element)
    fills = facts.fills
    if fills is NOTHING or len(op.schema.arguments) > MOST:
        return made
    if op.schema.kind == "inplace":
        return _calls.fill_kernel(made, fills if isinstance(fills, int) else None)
    names = [a.name for a in op.schema.arguments]
    places = {"like": "self", "size": "size", "value": fills, "dtype": "dtype", "device": "device"}
    at = {field: names.index(name) for field, name in places.items() if name in names}
    return _calls.factory_kernel(made, fills=fills is not None, number=fills if isinstance(fills, int) else None, **at)


def late_method(made: Any, function: Any, name: str) -> Any:
    """What is defined in another module: `x[index]`, `x[index] = value` and `x.item()` of `Tensor`, its shape and its dtype."""
    if name in ("shape", "dtype"):
        return _calls.fact(function, name)
    if name == "item":
        op = find_operator("aten::_local_scalar_dense")
        return _calls.call(made, (row_of(Target(op, (Given(0),), 1)),), None, None, None)
    if name not in ("__getitem__", "__setitem__"):
        return made
    operators = {"select": "select.int", "slice": "slice.Tensor", "unsqueeze": "unsqueeze", "index": "index.Tensor"}
    if name == "__setitem__":
        operators |= {"put": "index_put_", "copy": "copy_", "fill": "fill_.Scalar", "full": "full"}
    return _calls.getter(made, **{field: find_operator(f"aten::{operator}") for field, operator in operators.items()})


def plain_root(made: Any) -> Any:
    """What makes the root of a backward pass at one plain number."""
    return _calls.plain_root


def keep_first(made: Any, lock: Any) -> Any:
    """What makes a plain gradient the first one of its leaf."""
    return _calls.keeper(lock)


REPLACEMENTS = {
    "turnout.registry.core_kernels:selecting":                select_kernel,
    "turnout_aten.kernels.factories:bind_factory":            factory_kernel,
    "turnout.operators.calls:entry_point":                    call,
    "turnout_aten.kernels.specs:wrapper":                     kernel,
    "turnout.operators.kernels:guarded":                      guard_kernel,
    "turnout_aten.views.recording:recording_view":            view_kernel,
    "turnout_aten.views.recording:counting_writes_of_self":   write_kernel,
    "turnout_aten.views.recording:counting_writes":           writes_kernel,
    "turnout_aten.views.temporaries:bind_composite":          composite_kernel,
    "turnout_aten.tensor.late_methods:named":                 late_method,
    "turnout_autograd.recording.standard_kernels:kernel_of":  record_kernel,
    "turnout_autograd.engine.sweep:running_ahead":            run_ahead,
    "turnout_autograd.passes.roots:plain_root":               plain_root,
    "turnout_autograd.engine.accumulation:keeping_first":     keep_first,
    "turnout_autograd.forward.kernels:tangent_kernel":        tangent_kernel,
    "turnout_autograd.forward.kernels:parts_kernel":          parts_kernel,
    "turnout_batched.kernels:rule_kernel":                    rule_kernel,
}  # fmt: skip
