"""`turnout.asarray`: that of the array API standard, for programs that also ask for gradients."""

from __future__ import annotations

from turnout.dtypes import DType
from turnout.errors import ArgumentError
from turnout.operators.arguments import as_dtype
from turnout.operators.tracebacks import shortening
from turnout_aten.errors.arguments import copy_forbidden
from turnout_aten.tensor import creation as factories
from turnout_aten.tensor.devices import default_device
from turnout_aten.tensor.devices import device as device_named
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@shortening
def asarray(
    obj: Any, *, dtype: DType | type | None = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor from a tensor, a Python number, nested sequences, or another library's array.

    Raises ArgumentError where a copy is needed and forbidden, OverflowError for a Python int that does not fit in the dtype;
    otherwise as `turnout.tensor` does.

    Arguments:
        obj: the tensor, number, sequences or array
        dtype: the dtype; the default depends on the values
        device: the device
        copy: True always copies, False never does, None does where it is needed
        requires_grad: whether gradients with respect to it are wanted; a tensor that requires one does so anyway

    Example:
        >>> turnout.asarray([1.0, 2.0], requires_grad=True)
        tensor([1., 2.], requires_grad=True)
    """
    made = _made(obj, dtype, None if device is None else device_named(device), copy)
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


def _made(obj: Any, dtype: DType | type | None, place: Any, copy: bool | None) -> Tensor:
    if dtype is not None and type(dtype) is not DType:
        dtype = as_dtype("asarray", "dtype", dtype)
    if isinstance(obj, Tensor):
        fits = (dtype is None or obj.dtype is dtype) and (place is None or place is obj.device)
        if copy is False and not fits:
            raise ArgumentError(copy_forbidden("asarray", "another dtype or device needs a copy"))
        return obj.to(dtype=dtype or obj.dtype, device=place or obj.device, copy=bool(copy))  # it keeps its history
    if copy is False:
        backend = (place or default_device()).backend
        adopted = backend.adopt(obj)
        if adopted is None or (dtype is not None and backend.dtype_of(adopted) is not dtype):
            raise ArgumentError(copy_forbidden("asarray", f"data of type {type(obj).__name__} needs a copy here"))
    if isinstance(obj, int) and dtype is None and not -(2**63) <= obj < 2**63:
        raise OverflowError(f"asarray: {obj} does not fit in int64, the default integer dtype")
    return factories.tensor(obj, dtype=dtype, device=place) if copy else factories.as_tensor(obj, dtype, place)
