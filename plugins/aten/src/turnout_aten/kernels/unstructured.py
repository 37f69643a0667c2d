"""The wrapper of array kernels without a shape function."""

from __future__ import annotations

from math import prod
from operator import is_
from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.operators.calls import Line, Source
from turnout.operators.stubs import compile_function, python_name
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.contract import check_returned
from turnout_aten.kernels.outputs import check_writable
from turnout_aten.kernels.planning import calling_lines, silencing
from turnout_aten.kernels.specs import SHAPELESS, KernelSpec, Wrapper, in_context, wrapper
from turnout_aten.kernels.structured import to_array
from turnout_aten.shapes.extents import contiguous_strides
from turnout_aten.shapes.layouts import RESULTS
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrap, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


def plain(kernel: KernelSpec, below: Call | None = None, *, repeatable: bool = True) -> Call:
    """The wrapper of a kernel without a shape function: it passes arrays for tensors and returns tensors for arrays.

    In-place and out variants write into the given arrays. The call returns the mutated tensors, whatever the kernel returns.
    Where that is NotImplemented, `below` is called; at once, if the first argument is a tensor, or a size, of up to as many
    elements as are `few`. A `repeatable` kernel may run again after an error: it has no effect but its result.
    """
    op, backend, fn, limit, quiet = kernel.op, kernel.backend, kernel.fn, kernel.few, kernel.quiet
    schema = op.schema
    names = [python_name(a.name) for a in schema.arguments]
    given = ", ".join(names)
    everything = f"({given}{',' if len(names) == 1 else ''})"
    mutated = schema.mutated_places
    lead = bool(schema.arguments) and schema.arguments[0].type.canonical == "Tensor"
    at = next((python_name(a.name) for a in schema.arguments if a.type.canonical.startswith("Device")), None)
    arrays, converting = [], []
    for argument, name in zip(schema.arguments, names, strict=True):
        if not argument.type.is_tensor_like:
            arrays.append(name)
            continue
        arrays.append(f"{name}_a")
        own = f"{name}.array if {name}.__class__ is TENSOR else " if argument.type.is_tensor else ""
        absent = f"None if {name} is None else " if argument.type.is_optional else ""
        converting.append(f"{name}_a = {own}{absent}TO_ARRAY(BACKEND, {name})")
    silent = not (quiet and below is not None)
    function = "FN" if backend.silence is not None or not silent else "QUIETLY"
    running = calling_lines(f"{function}({', '.join(arrays)})", backend, quiet=not silent)
    lines = [f"def wrapped(ks{''.join(', ' + name for name in names)}):"]
    if limit and below is not None:
        size = f"({names[0]}.array.size if {names[0]}.__class__ is TENSOR else PROD({names[0]}))"
        lines += [f"    if {size} <= {limit}:", f"        return BELOW(ks, {given})"]
    lines += [
        "    try:",
        *(f"        if isinstance({names[i]}, TENSOR): CHECK_WRITABLE(OP, BACKEND, {names[i]}, ())" for i in mutated),
        *("        " + line for line in [*converting, *running]),
        "    except Exception as _error:",
        f"        RETELL(OP, _error, {everything})",
        "        raise",
    ]
    called = {}
    if below is not None:
        going_on = f"return BELOW(ks, {given})"
        lines += ["    if _made is NotImplemented:", f"        {going_on}"]
        called["below"] = Line(len(lines), going_on, ["ks", *names])
    if mutated:
        targets = f"({''.join(names[i] + ', ' for i in mutated)})"
        written = "[" + ", ".join(arrays[i] for i in mutated) + "]"
        lines += ["    if _made is not None:", f"        CHECK({op.qualified_name!r}, BACKEND, ROW, _made, {written})"]
        lines += [f"    return {names[mutated[0]] if len(schema.returns) == 1 else targets if schema.returns else 'None'}"]
    else:
        # The usual call: 1 us of 3 less.
        if lead and backend.array_type is not None:
            lines += [f"    _device = {names[0]}.device"]
            lines += ["    if _made.__class__ is ARRAY:", *_wrapped("_device")]
            if len(schema.returns) > 1:
                each = f"WRAP(v, _device) if v.__class__ is ARRAY else WRAP_RESULT(BACKEND, v, {everything})"
                lines += ["    if _made.__class__ is tuple:", f"        return tuple([{each} for v in _made])"]
        elif at is not None and not schema.takes_tensors and backend.array_type is not None:
            lines += [f"    if _made.__class__ is ARRAY and {at} is not None and {at} is BACKEND.place and not BACKEND.indexed:"]
            lines += _wrapped(at)
        lines += [f"    return WRAP_RESULT(BACKEND, _made, {everything})"]
    cases = in_context(backend, kernel.cases) if silent else kernel.cases
    namespace = {
        "__name__": __name__, "TENSOR": Tensor, "PROD": prod, "BELOW": below, "OP": op, "BACKEND": backend, "TO_ARRAY": to_array,
        "CHECK_WRITABLE": check_writable, "FN": fn, "QUIETLY": cases[0].run, "Tensor": Tensor, "CLOCK": CLOCK,
        "RETELL": retell, "CHECK": check_returned, "ROW": fn, "WRAP": wrap, "WRAP_RESULT": wrap_result,
        "ARRAY": backend.array_type, **silencing(backend),
    }  # fmt: skip
    source = Source(f"<{backend.name} call of {op.qualified_name}>", "wrapped", namespace)
    made = compile_function("\n".join(lines) + "\n", source.function, source.file, namespace)
    return wrapper(made, Wrapper(SHAPELESS, kernel, cases, below, lines=called), source) if repeatable else made


def _wrapped(device: str) -> list[str]:
    """The source that returns the tensor around `_made`, without the frame of `wrap`."""
    lines = wrapping_lines(array="_made", keys=f"{device}.backend.keys", device=device)
    return ["        " + line for line in [*lines, "return t"]]


def finished(op: Operator, backend: TensorBackend, call: Call) -> Call:
    """A kernel that makes its results: those that lie otherwise than their rule says (`shapes.layouts.RESULTS`) are copied."""
    rule = RESULTS.get(op.qualified_name.removeprefix("aten::"))
    if rule is None:
        return call
    which, strides_for, deciding = rule
    row_major = backend.row_major

    def finish(ks: int, *args: Any) -> Any:
        made = call(ks, *args)
        if made.__class__ is Tensor and row_major is not None and row_major(made.array):  # the usual case makes no list
            for i in deciding:
                if not row_major(args[i].array):
                    break
            else:
                return made
        results = made if made.__class__ is tuple else (made,)
        laid = list(results)
        for at in which:
            result = results[at]
            if result is not None and not (
                row_major is not None and all(map(row_major, [result.array, *[args[i].array for i in deciding]]))
            ):
                laid[at] = _laid_out(backend, result, strides_for(result.array.shape, *[args[i] for i in deciding]))
        return made if all(map(is_, laid, results)) else tuple(laid) if made.__class__ is tuple else laid[0]

    return finish


def _laid_out(backend: TensorBackend, tensor: Tensor, strides: tuple[int, ...] | None) -> Tensor:
    wanted = contiguous_strides(tensor.array.shape) if strides is None else strides
    if all(n == 1 or s == w for n, s, w in zip(tensor.array.shape, tensor.stride(), wanted, strict=True)):
        return tensor
    array = backend.empty(tensor.array.shape, tensor.dtype, tensor.device, strides)
    backend.copy(array, tensor.array)
    return wrap(array, tensor.device)


def wrap_result(backend: TensorBackend, made: Any, args: Sequence[Any]) -> Any:
    """A kernel's result with arrays as tensors on the call's device; numbers stay numbers."""
    if isinstance(made, (tuple, list)):
        return type(made)(wrap_result(backend, m, args) for m in made)
    if hasattr(made, "shape"):
        array = made if backend.array_type is None or made.__class__ is backend.array_type else backend.as_array(made)
        return wrap(array, call_device(backend, args))
    return made


def call_device(backend: TensorBackend, args: Sequence[Any]) -> Device:
    """The device of the first tensor, else the first Device among the arguments, else the backend's current device."""
    for value in args:
        for element in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(element, Tensor):
                return element.device
    for value in args:
        if isinstance(value, Device):
            return backend.resolve_device(value)
    return backend.current_device()
