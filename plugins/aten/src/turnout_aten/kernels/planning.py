"""The planned path: a call for which the shape function's answer is kept takes it, allocates, and calls the kernel.

The answers are those of `turnout_aten.kernels.plans`. Here are the callables that use them, as generated source.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.operators.stubs import compile_function, python_name
from turnout.plugins import replaceable
from turnout_aten.kernels.contract import check_returned
from turnout_aten.kernels.plans import SOURCE_NAMES, Plans, array_lines, chosen, converted, key_source
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.kernels.wrapping import Row, Structured

    Call = Callable[..., Any]


@replaceable
def planned(s: Structured, backend: TensorBackend, row: Row, general: Call, compute: Call) -> Call:
    """The functional variant as generated source: the planned path, then `general`. Its locals begin with an underscore, because
    an argument of the operator may have any other name (`values` of index_put)."""
    names = [python_name(a.name) for a in s.inputs]
    tensors = [python_name(a.name) for a in s.inputs if a.type.is_tensor_like]
    others = [python_name(a.name) for a in s.inputs if not a.type.is_tensor_like]
    plans = Plans(backend, [a.name for a in s.inputs if python_name(a.name) in tensors], s.plain, s.precomputed)
    given = ", ".join(names)
    count = s.outs or len(s.op.schema.returns)
    outs = [f"out{i}" for i in range(count)]
    first = next(a for a in s.inputs if a.name in s.required)
    device = f"{python_name(first.name)}{'[0]' if first.type.is_tensor_list else ''}.device"
    facts = ", ".join(f"shape{i}, native{i}, dtype{i}, strides{i}" for i in range(count))
    take = [array_lines(a, python_name(a.name)) for a in s.inputs if a.type.is_tensor_like]
    passed = _passed(s)
    made = []
    for i in range(count):
        array = f"NEW(shape{i}, native{i}) if strides{i} is None else EMPTY(shape{i}, dtype{i}, _device, strides{i})"
        made.append(f"        out{i} = {array}")
    results = []
    for i in range(count):
        results += ["    " + line for line in wrapping_lines(array=f"out{i}", keys="KEYS", device="_device")]
        results.append(f"    t{i} = t")
    replace = [f"        if _values is not None: {', '.join(others)}, = chosen(_values, {', '.join(others)})"] if others else []
    arrays = ", ".join(t + "_a" for t in tensors)
    lines = [
        f"def planned(ks, {given}):",
        "    _key = _plan = None",
        "    try:",
        *("        " + line for line in take),
        f"        _key = {key_source(s.inputs, names)}",
        "        _plan = KNOWN.get(_key)",
        "    except (AttributeError, TypeError):",  # no call that the shape function accepts, or a list in a direct call
        "        _key = None",
        "    if _plan is None:",
        f"        return compute(({given},), partial(answer, _key, SHAPE) if _key is not None else SHAPE)",
        f"    {facts}, _casts, _values, _extra = _plan",
        f"    _device = {device}",
        "    _failed = False",
        "    try:",
        f"        if _casts is not None: {arrays}, = converted(BACKEND, _casts, {arrays})",
        *replace,
        *made,
        f"        _made = {row.function_for(f'{tensors[0]}_a', 'out0')}({', '.join([*passed, *outs])})",
        "    except Exception:",
        "        _failed = True",  # not here: an error below would be shown with this one as its context
        "    if _failed:",
        f"        return general(ks, {given})",
        f"    if _made is not None{'' if count > 1 else ' and _made is not out0'}:",
        f"        CHECK(_made, ({', '.join(outs)},))",
        *results,
        f"    return {'t' if count == 1 else '(' + ', '.join(f't{i}' for i in range(count)) + ')'}",
    ]
    name = s.op.qualified_name

    def check(made: Any, arrays: tuple[Any, ...]) -> None:
        check_returned(name, backend, row.fn, made, arrays)

    namespace = {
        "__name__": backend.wrapper_module, "kernel": row.fn if row.quiet else backend.in_kernel_context(row.fn),
        "few": row.few if row.quiet or row.few is None else backend.in_kernel_context(row.few),
        "general": general, "compute": compute, "KNOWN": plans.known, "answer": plans.answer, "SHAPE": s.answer,
        "NEW": backend.new_array, "EMPTY": backend.empty, "BACKEND": backend, "KEYS": backend.keys, "CLOCK": CLOCK,
        "Tensor": Tensor, "CHECK": check, "chosen": chosen, "converted": converted,
        "partial": partial, **SOURCE_NAMES,
    }  # fmt: skip
    return compile_function("\n".join(lines) + "\n", "planned", f"<{backend.name} plans of {name}>", namespace)


def kept_answers(s: Structured, backend: TensorBackend) -> Call:
    """`Structured.answer` for a variant that writes: it keeps its answers, too."""
    if backend.new_array is None or not s.plannable:
        return s.answer
    names = [python_name(a.name) for a in s.inputs]
    tensors = [a for a in s.inputs if a.type.is_tensor_like]
    plans = Plans(backend, [a.name for a in tensors], s.plain, s.precomputed)
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
