"""Questions about any object: `is_tensor`, `numel`, `typename`."""

from __future__ import annotations

from turnout.operators.tracebacks import shortening
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard


def is_tensor(obj: object) -> TypeGuard[Tensor]:
    """Whether an object is a tensor, of `Tensor` or of a class derived from it.

    Arguments:
        obj: any object

    Example:
        >>> turnout.is_tensor(turnout.ones(2)), turnout.is_tensor([1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


@shortening
def numel(input: Tensor) -> int:
    """The number of elements of a tensor.

    Arguments:
        input: the tensor

    Example:
        >>> turnout.numel(turnout.ones(2, 3))
        6
    """
    return input.numel()


def typename(obj: Any) -> str:
    """The name of an object's type; for a tensor that of its dtype and device, as `Tensor.type()` gives it.

    Arguments:
        obj: any object

    Example:
        >>> turnout.typename(turnout.ones(2)), turnout.typename([1.0])
        ('turnout.FloatTensor', 'list')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    if isinstance(obj, type) or callable(obj):
        return f"{obj.__module__}.{obj.__qualname__}"
    kind = type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
