"""Functions that make arrays."""

from __future__ import annotations

from turnout.devices import Device
from turnout.dtypes import DType, get_default_dtype, int64
from turnout.errors import ArgumentError
from turnout_aten.functions import arrays
from turnout_aten.functions import broadcasting as variadics
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as fn
from turnout_aten.tensor import interop
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_array_api.namespace.promotion import Number

    Shape = int | Sequence[int]
    Place = str | Device | None


def _sizes(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj: Any, /, *, dtype: DType | type | None = None, device: Place = None, copy: bool | None = None) -> Tensor:
    """An array from an array, a Python number, nested sequences, or another library's array.

    copy  True: always new memory. None: shared memory if dtype and device allow it. False: ValueError if they do not

    Raises OverflowError for a Python int that does not fit in the dtype; otherwise as `turnout.tensor` does.

    Arguments:
        obj: the array, number or sequences

    Example:
        >>> turnout.array_api.asarray([1, 2])
        tensor([1, 2])
    """
    return arrays.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Place = None, copy: bool | None = None) -> Tensor:
    """An array that shares the memory of an object with `__dlpack__`. It is a copy for another `device` or with copy=True.

    Raises ArgumentError if a copy is needed but copy=False; otherwise as `turnout.from_dlpack` does.

    Example:
        >>> turnout.array_api.from_dlpack(turnout.tensor([1, 2]))
        tensor([1, 2])
    """
    return interop.from_dlpack(x, device=device, copy=copy)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None, device: Place = None
) -> Tensor:
    """start, start + step, ... up to `stop`, which is excluded. With one argument, counts from 0 to it. May be empty.

    Arguments:
        start: the first number, or the end if it is alone
        stop: the number before which it ends
        step: the distance of neighbours

    Example:
        >>> turnout.array_api.arange(1, 10, 3)
        tensor([1, 4, 7])
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = int64 if all(isinstance(each, int) for each in (start, stop, step)) else get_default_dtype()
    if step and (stop - start) / step <= 0:
        return fn.empty((0,), dtype=dtype, device=device)
    return fn.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: DType | None = None, device: Place = None, endpoint: bool = True
) -> Tensor:
    """`num` evenly spaced numbers. The last is `stop`; without `endpoint` it is one step before `stop`.

    Arguments:
        start: the first number
        stop: the last number
        num: how many numbers
        endpoint: whether `stop` is the last number

    Example:
        >>> turnout.array_api.linspace(0, 1, 3)
        tensor([0.0000, 0.5000, 1.0000])
    """
    if endpoint:
        return fn.linspace(start, stop, num, dtype=dtype, device=device)
    return fn.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: Place = None) -> Tensor:
    """Ones on a diagonal, the main one or the k-th above it, zeros elsewhere.

    Arguments:
        n_rows: the number of rows
        n_cols: the number of columns, by default that of rows

    Example:
        >>> turnout.array_api.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return fn.eye(n_rows, columns, dtype=dtype, device=device)
    k = max(-n_rows, min(k, columns))  # beyond them there is no one, and a sum could overflow
    ones = fn.arange(columns, device=device) == fn.arange(n_rows, device=device)[:, None] + k
    return ones.to(dtype=dtype or get_default_dtype())


def empty(shape: Shape, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """An array with unspecified contents.

    Example:
        >>> turnout.array_api.empty((2, 3)).shape
        turnout.Size([2, 3])
    """
    return fn.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """An array of zeros.

    Example:
        >>> turnout.array_api.zeros((2,))
        tensor([0., 0.])
    """
    return fn.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """An array of ones.

    Example:
        >>> turnout.array_api.ones((2,))
        tensor([1., 1.])
    """
    return fn.ones(_sizes(shape), dtype=dtype, device=device)


def full(shape: Shape, fill_value: Number, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """An array filled with one number. The dtype defaults to the default dtype of the number's kind.

    Example:
        >>> turnout.array_api.full((2,), 7)
        tensor([7, 7])
    """
    return fn.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """`empty` in the shape, dtype and device of x.

    Example:
        >>> turnout.array_api.empty_like(turnout.tensor([1, 2])).shape
        turnout.Size([2])
    """
    return fn.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """`zeros` in the shape, dtype and device of x.

    Example:
        >>> turnout.array_api.zeros_like(turnout.tensor([1, 2]))
        tensor([0, 0])
    """
    return fn.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """`ones` in the shape, dtype and device of x.

    Example:
        >>> turnout.array_api.ones_like(turnout.tensor([1, 2]))
        tensor([1, 1])
    """
    return fn.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Number, *, dtype: DType | None = None, device: Place = None) -> Tensor:
    """`full` in the shape, dtype and device of x.

    Example:
        >>> turnout.array_api.full_like(turnout.tensor([1, 2]), 7)
        tensor([7, 7])
    """
    return fn.full_like(x, fill_value, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices, up to the k-th diagonal above the main one; zeros elsewhere.

    Example:
        >>> turnout.array_api.tril(turnout.tensor([[1, 2], [3, 4]]))
        tensor([[1, 0],
                [3, 4]])
    """
    return fn.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices, from the k-th diagonal above the main one; zeros elsewhere.

    Example:
        >>> turnout.array_api.triu(turnout.tensor([[1, 2], [3, 4]]))
        tensor([[1, 2],
                [0, 4]])
    """
    return fn.triu(x, k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid from vectors; "xy" exchanges the first two axes, "ij" does not.

    Raises ArgumentError for arrays of several dtypes.

    Arguments:
        arrays: the vectors
        indexing: "xy" or "ij"

    Example:
        >>> turnout.array_api.meshgrid(turnout.tensor([1, 2]), turnout.tensor([3]))
        (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    for each in arrays[1:]:
        if each.dtype is not arrays[0].dtype:
            raise ArgumentError(f"meshgrid: the arrays must have one dtype, got {arrays[0].dtype.name} and {each.dtype.name}")
    return variadics.meshgrid(*arrays, indexing=indexing) if arrays else ()


describe(
    globals(),
    dtype="the dtype; the default depends on the values",
    device="the device",
    copy="True always copies, False never does, None does where it is needed",
    x="an array",
    k="the diagonal, counted upwards from the main one",
    shape="the lengths of the axes",
    fill_value="the number",
)
