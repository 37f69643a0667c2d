"""Functions that change shapes, join and split."""

from __future__ import annotations

from functools import reduce

from turnout.dtypes import INT, int64
from turnout.errors import ArgumentError, CallError, ShapeError
from turnout_array_api.namespace.promotion import axes_of, promote
from turnout_aten.errors.arguments import copy_forbidden, repeated_dim
from turnout_aten.functions import broadcasting as variadics
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as fn
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_array_api.namespace.promotion import Axis


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays expanded to their common shape. Raises ShapeError if they have none.

    Example:
        >>> turnout.array_api.broadcast_arrays(turnout.tensor([1, 2]), turnout.tensor([[3]]))
        (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    return variadics.broadcast_tensors(*arrays) if arrays else ()


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that all given shapes broadcast to. Raises ArgumentError, a ValueError, if there is none.

    Arguments:
        shapes: the shapes

    Example:
        >>> turnout.array_api.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    try:
        return tuple(variadics.broadcast_shapes(*shapes))
    except ShapeError as error:
        raise ArgumentError(f"broadcast_shapes: {error}") from None


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """x expanded to a shape, without a copy. Raises ShapeError if it does not fit.

    Example:
        >>> turnout.array_api.broadcast_to(turnout.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return fn.broadcast_to(x, tuple(shape))


def _alike(name: str, arrays: Sequence[Tensor]) -> list[Tensor]:
    if not arrays:
        raise CallError(f"{name}: needs at least one array")
    dtype = reduce(promote, [each.dtype for each in arrays])
    return [each.to(dtype) for each in arrays]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays joined along an existing axis; None flattens them first.

    Example:
        >>> turnout.array_api.concat([turnout.tensor([1, 2]), turnout.tensor([3])])
        tensor([1, 2, 3])
    """
    joined = _alike("concat", arrays)
    return fn.cat([fn.flatten(each) for each in joined]) if axis is None else fn.cat(joined, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays joined along a new axis.

    Example:
        >>> turnout.array_api.stack([turnout.tensor([1, 2]), turnout.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    return fn.stack(_alike("stack", arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of x along an axis, as views without it.

    Example:
        >>> turnout.array_api.unstack(turnout.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    return tuple(fn.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int | Sequence[int]) -> Tensor:
    """A view with new axes of length 1.

    Raises DimError, an IndexError, for a position out of range, ArgumentError, a ValueError, for one that is named twice.

    Arguments:
        axis: the place of the new axis in the result, or the places of several

    Example:
        >>> turnout.array_api.expand_dims(turnout.tensor([1, 2]), 0)
        tensor([[1, 2]])
    """
    if isinstance(axis, int):
        return fn.unsqueeze(x, axis)
    ndim = x.ndim + len(axis)
    places = [wrap_dim(each, ndim) for each in axis]
    if len(set(places)) < len(places):
        raise ArgumentError(repeated_dim("expand_dims", axis))
    for place in sorted(places):
        x = fn.unsqueeze(x, place)
    return x


def squeeze(x: Tensor, /, axis: int | Sequence[int]) -> Tensor:
    """A view without the given axes, which must have length 1. Raises ArgumentError, a ValueError, for a longer axis.

    Example:
        >>> turnout.array_api.squeeze(turnout.tensor([[1, 2]]), 0)
        tensor([1, 2])
    """
    axes = axes_of("squeeze", x, axis)
    for each in axes:
        if x.shape[each] != 1:
            raise ArgumentError(f"squeeze: axis {each} has length {x.shape[each]}; only axes of length 1 can be removed")
    return fn.squeeze(x, axes)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """The elements in reverse order along some axes; None means all axes.

    Example:
        >>> turnout.array_api.flip(turnout.tensor([1, 2]))
        tensor([2, 1])
    """
    return fn.flip(x, axes_of("flip", x, axis))


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """A view with axes moved elsewhere; the others keep their order.

    Arguments:
        source: the axes to move
        destination: where to

    Example:
        >>> turnout.array_api.moveaxis(turnout.zeros(2, 3, 4), 0, 2).shape
        turnout.Size([3, 4, 2])
    """
    return fn.movedim(x, axes_of("moveaxis", x, source), axes_of("moveaxis", x, destination))


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """A view with the axes in another order.

    Arguments:
        axes: the axes of x, in the order of the result

    Example:
        >>> turnout.array_api.permute_dims(turnout.tensor([[1, 2], [3, 4]]), (1, 0))
        tensor([[1, 3],
                [2, 4]])
    """
    return fn.permute(x, tuple(axes))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each slice along an axis repeated; `repeats` is a number, or an integer array of one per slice. axis=None flattens x.

    Arguments:
        repeats: how often
        axis: the axis, or None

    Example:
        >>> turnout.array_api.repeat(turnout.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    if isinstance(repeats, Tensor) and repeats.dtype.category == INT:
        repeats = repeats.to(int64)
    return fn.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape, in row-major order; one length may be -1.

    copy  True: always new memory. None: a view if the strides allow it. False: ArgumentError, a ValueError, if they do not

    Arguments:
        copy: True always copies, False never does, None does where it is needed

    Example:
        >>> turnout.array_api.reshape(turnout.tensor([1, 2, 3, 4]), (2, 2))
        tensor([[1, 2],
                [3, 4]])
    """
    if copy is False:
        try:
            return x.view(tuple(shape))
        except ShapeError:
            fn.reshape(x, tuple(shape))  # which raises for a shape that does not fit
            own = f"a tensor of shape {list(x.shape)} and strides {list(x.stride())}"
            raise ArgumentError(copy_forbidden("reshape", f"shape {list(shape)} needs a copy of {own}")) from None
    made = fn.reshape(x, tuple(shape))
    return fn.clone(made) if copy else made


def roll(x: Tensor, /, shift: int | Sequence[int], *, axis: Axis = None) -> Tensor:
    """The elements shifted along axes, wrapping around at the ends. axis=None shifts x flattened.

    Arguments:
        shift: by how many places

    Example:
        >>> turnout.array_api.roll(turnout.tensor([1, 2, 3]), 1)
        tensor([3, 1, 2])
    """
    if axis is None:
        return fn.roll(x, shift)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return fn.roll(x, (shift,) * len(axes) if isinstance(shift, int) else tuple(shift), axes)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """x repeated the given number of times along each axis.

    Arguments:
        repetitions: how often, for each axis

    Example:
        >>> turnout.array_api.tile(turnout.tensor([1, 2]), (2,))
        tensor([1, 2, 1, 2])
    """
    return fn.tile(x, tuple(repetitions))


describe(globals(), arrays="the arrays", x="an array", shape="the shape", axis="the axis, or the axes")
