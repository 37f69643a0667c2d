"""Pooling functions of `turnout.nn.functional`: window sizes by number or tuple, and indices on request."""

from __future__ import annotations

from turnout.errors import ArgumentError, ShapeError
from turnout.operators.tracebacks import shorten, shortening
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated
from turnout_aten.shapes.images import check_images

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

    Size = int | Sequence[int]
    MaybeTwo = Any  # the largest elements and their places, with `return_indices`


def _each(value: Any, ndim: int) -> tuple[Any, ...]:
    """One Python int for each dim: the products of NumPy's narrow ones would wrap around."""
    given = value if isinstance(value, (tuple, list)) else (value,) * ndim
    return tuple([v.__index__() if hasattr(v, "__index__") else v for v in given])


@shortening
def max_pool1d(
    input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor | MaybeTwo:  # fmt: skip
    """The largest elements of windows over [N, C, L] or [C, L]; with `return_indices`, also their indices along L.

    The stride defaults to the kernel. Raises ShapeError for windows that do not fit.

    Example:
        >>> turnout.nn.functional.max_pool1d(turnout.tensor([[1.0, 3.0, 5.0]]), 2, 1)
        tensor([[3., 5.]])
    """
    made = max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return made if return_indices else made[0]


@shortening
def max_pool1d_with_indices(
    input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
    ceil_mode: bool = False, return_indices: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """max_pool1d that always returns the indices.

    Example:
        >>> turnout.nn.functional.max_pool1d_with_indices(turnout.tensor([[1.0, 3.0, 5.0]]), 2, 1)
        (tensor([[3., 5.]]), tensor([[1, 2]]))
    """
    return _functions.max_pool1d_with_indices(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor | MaybeTwo:  # fmt: skip
    """max_pool1d for [N, C, H, W] or [C, H, W]; indices count in the flattened image.

    Example:
        >>> turnout.nn.functional.max_pool2d(turnout.ones(1, 4, 4), 2)[0]
        tensor([[1., 1.],
                [1., 1.]])
    """
    try:
        made = max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return made if return_indices else made[0]
    except Exception as error:
        shorten(error)
        raise


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
    ceil_mode: bool = False, return_indices: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """max_pool2d that always returns the indices.

    Example:
        >>> turnout.nn.functional.max_pool2d_with_indices(turnout.ones(1, 4, 4), 2)[1][0]
        tensor([[ 0,  2],
                [ 8, 10]])
    """
    try:
        return _generated.max_pool2d_with_indices(
            input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
        )
    except Exception as error:
        shorten(error)
        raise


@shortening
def max_pool3d(
    input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor | MaybeTwo:  # fmt: skip
    """max_pool1d for [N, C, D, H, W] or [C, D, H, W].

    Example:
        >>> turnout.nn.functional.max_pool3d(turnout.ones(1, 4, 4, 4), 2).shape
        turnout.Size([1, 2, 2, 2])
    """
    made = max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return made if return_indices else made[0]


@shortening
def max_pool3d_with_indices(
    input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1,
    ceil_mode: bool = False, return_indices: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """max_pool3d that always returns the indices.

    Example:
        >>> turnout.nn.functional.max_pool3d_with_indices(turnout.ones(1, 4, 4, 4), 2)[1].shape
        turnout.Size([1, 2, 2, 2])
    """
    return _generated.max_pool3d_with_indices(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def _filled(name: str, input: Tensor, output_size: Any, ndim: int) -> list[int]:
    """An output size with None replaced by the input's length. One of another number of dims is for the operator to refuse."""
    if input.ndim <= ndim:
        raise ArgumentError(f"{name}: 'input' must have at least {ndim + 1} dimensions, got shape {list(input.shape)}")
    given, lengths = _each(output_size, ndim), input.shape[-ndim:]
    return [n if o is None else o for n, o in zip(lengths, given, strict=True)] if len(given) == ndim else list(given)


@shortening
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of windows that cover the image evenly; None keeps a length.

    Example:
        >>> turnout.nn.functional.adaptive_avg_pool2d(turnout.ones(1, 4, 4), 2)[0]
        tensor([[1., 1.],
                [1., 1.]])
    """
    return _generated.adaptive_avg_pool2d(input, _filled("adaptive_avg_pool2d", input, output_size, 2))


@shortening
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """adaptive_avg_pool2d with three dims.

    Example:
        >>> turnout.nn.functional.adaptive_avg_pool3d(turnout.ones(1, 4, 4, 4), 2).shape
        turnout.Size([1, 2, 2, 2])
    """
    return _generated.adaptive_avg_pool3d(input, _filled("adaptive_avg_pool3d", input, output_size, 3))


@shortening
def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: bool = False) -> Tensor | MaybeTwo:
    """The largest elements of windows that cover the last dim evenly; with `return_indices`, also their indices.

    Example:
        >>> turnout.nn.functional.adaptive_max_pool1d(turnout.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
        tensor([[3., 7.]])
    """
    made = adaptive_max_pool1d_with_indices(input, output_size)
    return made if return_indices else made[0]


@shortening
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool1d that always returns the indices.

    Example:
        >>> turnout.nn.functional.adaptive_max_pool1d_with_indices(turnout.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
        (tensor([[3., 7.]]), tensor([[1, 3]]))
    """
    return _functions.adaptive_max_pool1d(input, output_size)


@shortening
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor | MaybeTwo:
    """adaptive_max_pool1d with two dims; None keeps a length.

    Example:
        >>> turnout.nn.functional.adaptive_max_pool2d(turnout.ones(1, 4, 4), 2)[0]
        tensor([[1., 1.],
                [1., 1.]])
    """
    made = adaptive_max_pool2d_with_indices(input, output_size)
    return made if return_indices else made[0]


@shortening
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d that always returns the indices.

    Example:
        >>> turnout.nn.functional.adaptive_max_pool2d_with_indices(turnout.ones(1, 4, 4), 2)[1][0]
        tensor([[ 0,  2],
                [ 8, 10]])
    """
    return _generated.adaptive_max_pool2d(input, _filled("adaptive_max_pool2d", input, output_size, 2))


@shortening
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor | MaybeTwo:
    """adaptive_max_pool2d with three dims.

    Example:
        >>> turnout.nn.functional.adaptive_max_pool3d(turnout.ones(1, 4, 4, 4), 2).shape
        turnout.Size([1, 2, 2, 2])
    """
    made = adaptive_max_pool3d_with_indices(input, output_size)
    return made if return_indices else made[0]


@shortening
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool3d that always returns the indices.

    Example:
        >>> turnout.nn.functional.adaptive_max_pool3d_with_indices(turnout.ones(1, 4, 4, 4), 2)[1].shape
        turnout.Size([1, 2, 2, 2])
    """
    return _generated.adaptive_max_pool3d(input, _filled("adaptive_max_pool3d", input, output_size, 3))


def _fractional(
    name: str, ndim: int, input: Tensor, kernel_size: Size, output_size: Any, output_ratio: Any,
    random_samples: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    check_images(name, ndim, input.shape, "input")
    if output_size is None:
        if output_ratio is None:
            raise ArgumentError(f"{name}: give output_size or output_ratio")
        ratios = _each(output_ratio, ndim)
        output_size = [int(n * r) for n, r in zip(input.shape[-ndim:], ratios, strict=True)]
    if random_samples is None:
        batch = 1 if input.ndim == ndim + 1 else input.shape[0]
        random_samples = _functions.rand(batch, input.shape[-ndim - 1], ndim, dtype=input.dtype, device=input.device)
    return getattr(_generated, name)(input, kernel_size, output_size, random_samples)


@shortening
def fractional_max_pool2d(
    input: Tensor, kernel_size: Size, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | MaybeTwo:  # fmt: skip
    """The largest elements of windows at random steps. The output has a given size, or a ratio of the input's size.

    Raises ArgumentError if neither is given.

    Arguments:
        output_size: the number of windows in each dim

    Example:
        >>> turnout.nn.functional.fractional_max_pool2d(turnout.ones(1, 4, 4), 2, output_size=2)[0]
        tensor([[1., 1.],
                [1., 1.]])
    """
    made = fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return made if return_indices else made[0]


@shortening
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Size, output_size: Any = None, output_ratio: Any = None, return_indices: bool = True,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """fractional_max_pool2d that always returns the indices.

    Example:
        >>> turnout.nn.functional.fractional_max_pool2d_with_indices(turnout.ones(1, 4, 4), 2, output_size=2)[0][0]
        tensor([[1., 1.],
                [1., 1.]])
    """
    return _fractional("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples)


@shortening
def fractional_max_pool3d(
    input: Tensor, kernel_size: Size, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | MaybeTwo:  # fmt: skip
    """fractional_max_pool2d with three dims.

    Example:
        >>> turnout.nn.functional.fractional_max_pool3d(turnout.ones(1, 4, 4, 4), 2, output_size=2).shape
        turnout.Size([1, 2, 2, 2])
    """
    made = fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return made if return_indices else made[0]


@shortening
def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Size, output_size: Any = None, output_ratio: Any = None, return_indices: bool = True,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """fractional_max_pool3d that always returns the indices.

    Example:
        >>> turnout.nn.functional.fractional_max_pool3d_with_indices(turnout.ones(1, 4, 4, 4), 2, output_size=2)[0].shape
        turnout.Size([1, 2, 2, 2])
    """
    return _fractional("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples)


# ---- back to the input of max_pool


def _unpooled_size(
    name: str, ndim: int, input: Tensor, kernel_size: Size, stride: Size | None, padding: Size, output_size: Any
) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
    check_images(name, ndim, input.shape, "input")
    kernel = _each(kernel_size, ndim)
    steps, pads = kernel if stride is None else _each(stride, ndim), _each(padding, ndim)
    usual = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input.shape[-ndim:], steps, kernel, pads, strict=True)]
    if output_size is None:
        return usual, steps, pads
    wanted = list(_each(output_size, ndim))[-ndim:]
    for n, u, s in zip(wanted, usual, steps, strict=True):
        if not u - s < n < u + s:
            raise ShapeError(f"{name}: output_size {wanted} must lie within one stride of {usual}")
    return wanted, steps, pads


@shortening
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Zeros, with the elements at the indices from which max_pool1d took them.

    `output_size` chooses among the lengths that pool to the input's length. Raises ShapeError if it is not one of them.

    Arguments:
        output_size: the length of the result

    Example:
        >>> turnout.nn.functional.max_unpool1d(turnout.tensor([[3.0, 5.0]]), turnout.tensor([[1, 2]]), 2)
        tensor([[0., 3., 5., 0.]])
    """
    size, _, _ = _unpooled_size("max_unpool1d", 1, input, kernel_size, stride, padding, output_size)
    made = _generated.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return made.squeeze(-1)


@shortening
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """max_unpool1d with two dims.

    Arguments:
        output_size: the lengths of the result

    Example:
        >>> turnout.nn.functional.max_unpool2d(turnout.tensor([[[5.0]]]), turnout.tensor([[[3]]]), 2)[0]
        tensor([[0., 0.],
                [0., 5.]])
    """
    size, _, _ = _unpooled_size("max_unpool2d", 2, input, kernel_size, stride, padding, output_size)
    return _generated.max_unpool2d(input, indices, size)


@shortening
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """max_unpool1d with three dims.

    Arguments:
        output_size: the lengths of the result

    Example:
        >>> turnout.nn.functional.max_unpool3d(turnout.ones(1, 1, 1, 1), turnout.tensor([[[[7]]]]), 2).shape
        turnout.Size([1, 2, 2, 2])
    """
    size, steps, pads = _unpooled_size("max_unpool3d", 3, input, kernel_size, stride, padding, output_size)
    return _generated.max_unpool3d(input, indices, size, steps, pads)


# ---- powers


def _lp_pool(name: str, ndim: int, input: Tensor, norm_type: float, kernel_size: Size, stride: Any, ceil_mode: bool) -> Tensor:
    kernel = _each(kernel_size, ndim)
    area = 1
    for k in kernel:
        area *= k
    pool: Any = _functions.avg_pool1d if ndim == 1 else getattr(_generated, f"avg_pool{ndim}d")
    mean = pool(input.pow(norm_type), kernel, [] if stride is None else stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu() * area).pow(1.0 / norm_type)


@shortening
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of the elements of each window, (sum x^p)^(1/p).

    Example:
        >>> turnout.nn.functional.lp_pool1d(turnout.tensor([[3.0, 4.0]]), 2, 2)
        tensor([[5.]])
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@shortening
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False) -> Tensor:
    """lp_pool1d with two dims.

    Example:
        >>> turnout.nn.functional.lp_pool2d(turnout.ones(1, 2, 2), 2, 2)[0]
        tensor([[2.]])
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@shortening
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False) -> Tensor:
    """lp_pool1d with three dims.

    Example:
        >>> turnout.nn.functional.lp_pool3d(turnout.ones(1, 2, 2, 2), 2, 2).shape
        turnout.Size([1, 1, 1, 1])
    """
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


__all__ = describe(
    globals(),
    input="the input, [N, C, ...] or [C, ...]",
    kernel_size="the length of the windows, one number or one for each dim",
    stride="the distance of windows; by default, their length",
    padding="how far windows may begin and end outside",
    dilation="the distance of the elements of a window",
    ceil_mode="whether a last window that is only partly inside counts",
    return_indices="whether the places of the elements are returned too",
    output_size="the number of windows, one number or one for each dim",
    output_ratio="the number of windows as a fraction of the input's length",
    indices="where the elements come from, as max pooling returned them",
    norm_type="the order p of the norm",
)
