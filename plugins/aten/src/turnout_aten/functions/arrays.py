"""`turnout.asarray`: that of the array API standard, for programs that also ask for gradients."""

from __future__ import annotations

from turnout.operators.tracebacks import shortening
from turnout_aten import array_api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


@shortening
def asarray(
    obj: Any, *, dtype: DType | type | None = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor from a tensor, a Python number, nested sequences, or another library's array, as `turnout.array_api.asarray`.

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
    made = array_api.asarray(obj, dtype=dtype, device=device, copy=copy)
    return made.requires_grad_() if requires_grad and not made.requires_grad else made
