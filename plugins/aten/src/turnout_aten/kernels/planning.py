"""The planned path: a call for which the shape function's answer is kept takes it, allocates, and calls the kernel.

The answers are those of `turnout_aten.kernels.plans`. Here are the callables that use them, as generated source.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.operators.calls import Source
from turnout.operators.stubs import compile_function, python_name
from turnout_aten.kernels.contract import check_returned
from turnout_aten.kernels.plans import AS_GIVEN, SOURCE_NAMES, Plans, array_lines, array_maker, converted, key_source
from turnout_aten.kernels.rows import FEW, KERNEL, Move
from turnout_aten.kernels.specs import PLANNED, KernelSpec, Wrapper, choice, in_context, wrapper
from turnout_aten.kernels.stepping import preparing
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.kernels.structured import Structured

    Call = Callable[..., Any]


def planned(kernel: KernelSpec, general: Call, compute: Call) -> Call:
    """The functional variant as generated source: the planned path, then `compute`. Its locals begin with an underscore, because
    an argument of the operator may have any other name (`values` of index_put)."""
    s, backend = kernel.shaped, kernel.backend
    names = [python_name(a.name) for a in s.inputs]
    tensors = [python_name(a.name) for a in s.inputs if a.type.is_tensor_like]
    kept = [a.name for a in s.inputs if python_name(a.name) in tensors]
    plans = Plans(backend, kept, s.plain, s.precomputed, preparing(kernel))
    given = ", ".join(names)
    count = s.outs or len(s.op.schema.returns)
    outs = [f"out{i}" for i in range(count)]
    first = next(a for a in s.inputs if a.name in s.required)
    device = f"{python_name(first.name)}{'[0]' if first.type.is_tensor_list else ''}.device"
    facts = ", ".join(f"shape{i}, native{i}, dtype{i}, strides{i}" for i in range(count))
    maker = array_maker(backend, s.op)
    made = []
    for i in range(count):
        array = f"EMPTY(shape{i}, dtype{i}, _device, strides{i})"
        if maker is not None:
            array = f"NEW(shape{i}, native{i}) if strides{i} is None else {array}"
        made.append(f"        out{i} = {array}")
    # Without an own class of arrays, the kernel may serve devices of other backends, too: fake tensors.
    shared = backend.array_type is None
    keys = "_device.backend.keys" if shared else "KEYS"
    results = []
    for i in range(count):
        results += ["    " + line for line in wrapping_lines(array=f"out{i}", keys=keys, device="_device")]
        results.append(f"    t{i} = t")
    find = [
        "try:",
        *("    " + array_lines(a, python_name(a.name)) for a in s.inputs if a.type.is_tensor_like),
        f"    _key = {key_source(s.inputs, names)}{f' if {device}.backend is BACKEND else None' if shared else ''}",
        "    _plan = KNOWN.get(_key)",
        # No call that the shape function accepts, a list in a direct call, or one without tensors.
        "except (AttributeError, IndexError, TypeError):",
        "    _key = None",
    ]
    prepare = s.facts.prepare
    again = [
        "    if _plan is None and _key is not None:",
        f"        _given = PREPARE({given})",
        "        if _given is not None:",
        f"            _first, ({given},) = ({given},), _given",
        *("            " + line for line in find),
        "            if _plan is None and _key is not None and LEARN(_key, SHAPE, *_given) is not None:",
        "                _plan = KNOWN.get(_key)",  # not from the first arguments, of which the positions would be made once more
        "            if _plan is None:",  # an error is told of the arguments as they were
        "                return compute(_first, SHAPE)",
    ]
    computing = f"        return compute(({given},), _answer)"  # one text: an error shows the same lines, with a plan or without
    joins = kernel.program is Move.JOIN and backend.joined is not None and backend.row_major is not None
    lines = [
        f"def planned(ks, {given}):",
        *(_joining(names) if joins else ()),
        "    _key = _plan = None",
        *("    " + line for line in find),
        *(again if prepare is not None else ()),
        "    if _plan is None:",
        "        _answer = SHAPE if _key is None else partial(answer, _key, SHAPE)",
        computing,
        f"    {facts}, _casts, _values, _extra, _ready = _plan",
        f"    _device = {device}",
        "    _failed = False",
        "    try:",
        *("        " + line for line in _replacing(s)),
        *made,
        *("        " + line for line in _calling(kernel, outs)),
        "    except Exception:",
        "        _failed = True",  # not here: an error below would be shown with this one as its context
        "    if _failed:",
        "        _answer = SHAPE",
        computing,
        f"    if _made is not None{'' if count > 1 else ' and _made is not out0'}:",
        f"        CHECK(_made, ({', '.join(outs)},))",
        *results,
        f"    return {'t' if count == 1 else '(' + ', '.join(f't{i}' for i in range(count)) + ')'}",
    ]
    namespace = _namespace(kernel) | {
        "compute": compute, "KNOWN": plans.known, "answer": plans.answer, "SHAPE": s.answer,
        "EMPTY": backend.empty, "KEYS": backend.keys, "CLOCK": CLOCK, "Tensor": Tensor, "partial": partial, "PREPARE": prepare,
        "LEARN": plans.learn, "JOINED": backend.joined, "ROW_MAJOR": backend.row_major,
    }  # fmt: skip
    source = Source(f"<{backend.name} plans of {s.op.qualified_name}>", "planned", namespace)
    cases = kernel.cases if kernel.quiet else in_context(backend, kernel.cases)
    spec = Wrapper(PLANNED, kernel, cases, general)
    return wrapper(compile_function("\n".join(lines) + "\n", source.function, source.file, namespace), spec, source)


# Up to so many arrays of so many elements each are joined by one call of the array module.
_JOINED, _ELEMENTS = 8, 1 << 10


def _joining(names: list[str]) -> list[str]:
    """The source that joins few arrays of one dtype without a plan. Anything else, and what fails, goes on behind it."""
    tensors, dim = names
    each = f"for _each in {tensors}_a:"
    return [
        f"    if len({tensors}) <= {_JOINED}:",
        "        try:",
        f"            {tensors}_a = list(map(ARRAY_OF, {tensors}))",
        f"            _dtype = {tensors}_a[0].dtype",
        f"            {each}",
        f"                if _each.dtype is not _dtype or _each.size > {_ELEMENTS}: break",
        "            else:",
        f"                _made = JOINED({tensors}_a, {dim})",
        "                if ROW_MAJOR(_made):",
        *("                    " + line for line in wrapping_lines(array="_made", keys="KEYS", device=f"{tensors}[0].device")),
        "                    return t",
        "        except Exception:",
        "            pass",
    ]


def _replacing(s: Structured) -> list[str]:
    """The source that converts arrays and replaces other arguments as a plan says."""
    tensors = [python_name(a.name) for a in s.inputs if a.type.is_tensor_like]
    others = [python_name(a.name) for a in s.inputs if not a.type.is_tensor_like]
    lines = [
        "if _casts is not None:",
        *(f"    if _casts[{i}] is not None: {t}_a = converted(BACKEND, {t}_a, _casts[{i}])" for i, t in enumerate(tensors)),
    ]
    if others:
        lines += ["if _values is not None:"]
        lines += [f"    if _values[{i}] is not AS_GIVEN: {name} = _values[{i}]" for i, name in enumerate(others)]
    return lines


def _calling(kernel: KernelSpec, outs: list[str]) -> list[str]:
    """The source that calls the kernel in its context, with the arguments of a plan: `_made` is what it returns."""
    s = kernel.shaped
    sized = python_name(s.names[kernel.sized]) + "_a"
    function = choice(kernel.cases, {FEW: FEW, KERNEL: KERNEL}, [sized, outs[0]])
    return calling_lines(f"(_ready or ({function}))({', '.join([*_passed(s), *outs])})", kernel.backend, quiet=kernel.quiet)


def _namespace(kernel: KernelSpec) -> dict[str, Any]:
    """What the source of planned paths reads."""
    s, backend, fn = kernel.shaped, kernel.backend, kernel.fn
    name = s.op.qualified_name
    bare = kernel.quiet or backend.silence is not None

    def check(made: Any, arrays: tuple[Any, ...]) -> None:
        check_returned(name, backend, fn, made, arrays)

    return {
        "__name__": backend.wrapper_module, "NEW": array_maker(backend, s.op), "BACKEND": backend, "CHECK": check,
        "AS_GIVEN": AS_GIVEN, "converted": converted, **SOURCE_NAMES, **silencing(backend),
        **{case.name: case.run for case in (kernel.cases if bare else in_context(backend, kernel.cases))},
    }  # fmt: skip


def calling_lines(call: str, backend: TensorBackend, *, quiet: bool) -> list[str]:
    """The source of `_made = call`. Where warnings of the array module have to be off, and can be switched off in line, they are:
    a kernel in its context would have a frame more."""
    if quiet or backend.silence is None:
        return [f"_made = {call}"]
    return ["_before = SILENCED(QUIET)", "try:", f"    _made = {call}", "finally:", "    SPOKEN(_before)"]


def silencing(backend: TensorBackend) -> dict[str, Any]:
    """What `calling_lines` reads."""
    return dict(zip(("SILENCED", "SPOKEN", "QUIET"), backend.silence or (), strict=False))


def kept_answers(kernel: KernelSpec) -> Call:
    """`Structured.answer` for a variant that writes: it keeps its answers, too. Without `new_array`, it does not copy what the
    functional variant computes, and calls what plans call."""
    s, backend = kernel.shaped, kernel.backend
    if array_maker(backend, s.op) is None or not s.plannable:
        return s.answer
    names = [python_name(a.name) for a in s.inputs]
    tensors = [a for a in s.inputs if a.type.is_tensor_like]
    prepared = preparing(kernel) if backend.new_array is None else None
    plans = Plans(backend, [a.name for a in tensors], s.plain, s.precomputed, prepared)
    given = ", ".join(names)
    lines = [
        f"def answer({given}):",
        "    _key = _result = None",
        "    try:",
        *("        " + array_lines(a, python_name(a.name)) for a in tensors),
        f"        _key = {key_source(s.inputs, names)}",
        "        _result = KNOWN.get(_key)",
        "    except (AttributeError, TypeError):",  # no call that the shape function accepts, or a list in a direct call
        "        _key = None",
        "    if _result is not None:",
        "        return _result",
        f"    return SHAPE({given}) if _key is None else learn(_key, SHAPE, {given})",
    ]
    namespace = {
        "__name__": backend.wrapper_module,
        "KNOWN": plans.results,
        "SHAPE": s.answer,
        "learn": plans.answer,
        **SOURCE_NAMES,
    }
    return compile_function("\n".join(lines) + "\n", "answer", f"<{backend.name} answers of {s.op.qualified_name}>", namespace)


def _passed(s: Structured) -> list[str]:
    """What the kernel of a planned call gets before the outputs, as source."""
    passed: list[str] = []
    at = 0
    for argument in s.inputs:
        replaced = len(s.precomputed.get(argument.name, ()))
        if replaced:
            passed += [f"_extra[{at + i}]" for i in range(replaced)]
            at += replaced
        else:
            passed.append(python_name(argument.name) + ("_a" if argument.type.is_tensor_like else ""))
    return passed + [f"_extra[{at + i}]" for i in range(len(s.precomputed.get("", ())))]
