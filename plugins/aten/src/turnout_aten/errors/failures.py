"""What a user is told when a kernel raises: an error of Turnout that names the operator.

Kernels call array libraries and Python, whose errors name neither the operator nor its arguments. The wrappers of kernels pass
such an error to `retell`, which raises one of Turnout's of the same kind. The original is its `__cause__`. An error of Turnout
gets the operator's name where its text comes from a function that many operators share, and so begins with no name.
"""

from __future__ import annotations

import math
import re

from turnout import plugins
from turnout.devices import Device
from turnout.errors import (
    AliasError,
    ArgumentError,
    CallError,
    DeviceError,
    DimError,
    DTypeError,
    OutOfMemoryError,
    RangeError,
    ShapeError,
    TurnoutError,
)
from turnout.errors.calls import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from turnout.dtypes import DType
    from turnout.operators import Operator

# The kinds of errors that arguments can cause. Any other error is a fault of the kernel, and passes unchanged.
_KINDS: tuple[tuple[type[Exception], type[TurnoutError]], ...] = (
    (MemoryError, OutOfMemoryError),
    (IndexError, DimError),
    (TypeError, CallError),
    (ValueError, ArgumentError),
    (ArithmeticError, ArgumentError),
    (BufferError, ArgumentError),
)

# The errors of Turnout that arguments cause. A text that names its operator begins with the name and a colon.
_ABOUT_ARGUMENTS = (ArgumentError, CallError, DeviceError, DimError, DTypeError, ShapeError)
_NAMED = r"[\w.:/]+: "

_REMEDY = "to fix     use smaller tensors or a smaller dtype, or delete tensors that are no longer needed"


def retell(op: Operator, error: Exception, args: tuple[Any, ...]) -> None:
    """Raise the error of a call for what its kernel raised. Returns where the caller must raise `error` itself."""
    if isinstance(error, OutOfMemoryError) and error.operator is None:
        raise _out_of_memory(op, error, args) from error
    if isinstance(error, _ABOUT_ARGUMENTS):
        name_operator(error, op.name)
    if isinstance(error, (TurnoutError, Warning)):
        return
    backend = next((value.device.backend for value in _tensors(args)), None)
    kind = None if backend is None else backend.error_kind(error)
    if kind is None:
        kind = next((ours for theirs, ours in _KINDS if isinstance(error, theirs)), None)
    if kind is None:
        return
    if kind is OutOfMemoryError:
        raise _out_of_memory(op, error, args) from error
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.is_write:
            for tensor in _tensors((value,)):
                if tensor.device.backend.is_read_only(tensor.array):
                    raise AliasError(read_only(op.qualified_name, argument.name)) from error
    if re.match(r"Python int too large|cannot fit 'int'|int too big", str(error)):
        why = "a number among the arguments, or a size that they lead to, exceeds 64 bits"
        raise RangeError(_failed(op, why, args)) from error
    raise kind(_failed(op, str(error) or type(error).__name__, args)) from error


def retell_composite(op: Operator, error: Exception, args: tuple[Any, ...]) -> None:
    """`retell` for a kernel that calls operators. What other code raises in these, a mode or another plugin, passes unchanged."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    if plugins.is_ours(module) and (type(error).__module__ == "builtins" or isinstance(error, TurnoutError)):
        retell(op, error, args)


def name_operator(error: TurnoutError, operator: str) -> None:
    """Put the name of the operator before an error's text, unless the text begins with a name."""
    text = str(error)
    operator = operator if operator.endswith("__") else operator.lstrip("_")
    if not re.match(_NAMED, text) and not text.startswith(f"{operator} "):
        error.args = (f"{operator}: {text}",)


def read_only(name: str, argument: str) -> str:
    """A write into memory that must not be written."""
    return f"{name}: '{argument}' cannot be written, because its memory is read-only\n  to fix  write into a copy: clone() it"


def no_room(device_type: str, shape: tuple[int, ...], dtype: DType, cause: BaseException | None = None) -> OutOfMemoryError:
    """The error of an allocation, before the operator is known. `cause` may say what the memory is used for."""
    return _no_room(f"{device_type} has no room for {_size(shape, dtype)}", shape, dtype, cause)


def _no_room(text: str, shape: tuple[int, ...] | None, dtype: Any, cause: BaseException | None = None) -> OutOfMemoryError:
    known = cause if isinstance(cause, OutOfMemoryError) else OutOfMemoryError()
    error = OutOfMemoryError(f"{text}{known.facts}\n  {_REMEDY}{known.remedy}")
    error.shape, error.dtype, error.facts, error.remedy = shape, dtype, known.facts, known.remedy
    return error


def _out_of_memory(op: Operator, error: Exception, args: tuple[Any, ...]) -> OutOfMemoryError:
    # NumPy's error says what it was asked for, as does the one that a backend raises where it allocates.
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    device = next((v if isinstance(v, Device) else v.device for v in _placed(args)), "the device")
    what = "the result" if shape is None or dtype is None else _size(shape, dtype)
    text = f"{op.qualified_name}: {device} has no room for {what}\n  arguments  {_arguments(op, args)}"
    made = _no_room(text, shape, dtype, error)
    made.operator = op.qualified_name
    return made


def _failed(op: Operator, why: str, args: tuple[Any, ...]) -> str:
    return (
        f"{op.qualified_name}: {why}\n"
        f"  arguments  {_arguments(op, args)}\n"
        "  to fix     check the values and shapes of these arguments"
    )


def _arguments(op: Operator, args: tuple[Any, ...]) -> str:
    """The arguments that were given, in a few words each."""
    shown = []
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.has_default and not argument.type.is_tensor_like and _is_default(value, argument.default):
            continue
        if isinstance(value, (list, tuple)) and any(hasattr(v, "device") for v in value):
            shown += [f"{argument.name}[{i}]: {describe(v)}" for i, v in enumerate(value[:4])]
            shown += [f"and {len(value) - 4} more"] if len(value) > 4 else []
        elif value is not None:
            shown.append(f"{argument.name}: {describe(value)}")
    return ", ".join(shown) or "none"


def _is_default(value: Any, default: Any) -> bool:
    """Whether they are equal. An array, whose comparison is no bool, is never a default."""
    return not hasattr(value, "shape") and bool(value == default)


def _placed(args: tuple[Any, ...]) -> Iterator[Any]:
    """The tensors and devices among arguments."""
    yield from _tensors(args)
    yield from [value for value in args if isinstance(value, Device)]


def _tensors(args: tuple[Any, ...]) -> Iterator[Any]:
    for value in args:
        for element in value if isinstance(value, (list, tuple)) else (value,):
            if hasattr(element, "array") and hasattr(element, "device"):
                yield element


def _size(shape: tuple[int, ...], dtype: Any) -> str:
    """The memory of an array, as people read it: `1.5 GiB (float32 [402653184])`."""
    return f"{amount(math.prod(shape) * dtype.itemsize)} ({getattr(dtype, 'name', dtype)} {list(shape)})"


def amount(count: float) -> str:
    """A number of bytes, as people read it: `1.5 GiB`."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(len(units) - 1, max(0, int(count).bit_length() - 1) // 10)
    return f"{count / 1024**power:.{power and 1}f} {units[power]}"
