"""Rules for operators on images and sequences: convolution, pooling, upsampling, normalisation.

They have a batch dim N of their own, in front: the examples' images are put one behind the other there, and taken apart again.
"""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, Rule, family, front, padded


def folded(ndim: int, sizes_at: int | None = None) -> Rule:
    """The rule of operators whose tensors have `ndim` dims, or one less if N is missing; the batch dim then takes the place of N.

    sizes_at  the position of a list of sizes that begins with N
    """

    @family
    def fold(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Any, Any]:
        batches = [front(v, d, size) if isinstance(v, Tensor) else v for v, d in zip(values, dims, strict=True)]
        if len(next(v for v in batches if isinstance(v, Tensor)).array.shape) <= ndim:
            return call(*batches), 0
        given = [_together(v) if isinstance(v, Tensor) else v for v in batches]
        if sizes_at is not None:
            given[sizes_at] = (size * given[sizes_at][0], *given[sizes_at][1:])
        return _apart(call(*given), size), 0

    return fold


def _together(x: Tensor) -> Tensor:
    """Reshape [B, N, ...] to [B * N, ...]."""
    shape = x.array.shape
    made: Tensor = aten.reshape(x, (shape[0] * shape[1], *shape[2:]))
    return made


def _apart(made: Any, size: int) -> Any:
    if isinstance(made, (list, tuple)):
        return [_apart(each, size) for each in made]
    shape = made.array.shape
    return aten.view(made, (size, shape[0] // size, *shape[1:]))


@family
def fractional(
    call: Any, size: int, dims: Dims, self: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor
) -> tuple[Any, Any]:
    """Random samples have shape [N, C, dims]. Images without N have N = 1 there."""
    images, samples = front(self, dims[0], size), front(random_samples, dims[3], size)
    single = len(images.array.shape) == len(kernel_size) + 2
    count = 1 if single else images.array.shape[1]
    together = _together(aten.slice__Tensor(samples, 1, 0, count, 1))
    if single:
        return call(images, kernel_size, output_size, together), 0
    return _apart(call(_together(images), kernel_size, output_size, together), size), 0


# ---- convolution


def convolution(
    size: int, dims: Dims, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> tuple[Tensor, int]:  # fmt: skip
    """If each example has its own weights, the examples become groups of channels."""
    rest = (stride, padding, dilation, transposed, output_padding)
    if dims[1] is None:
        made = _apart(aten.convolution(_together(front(x, dims[0], size)), weight, None, *rest, groups), size)
    else:
        images = front(x, dims[0], size)  # [B, N, C, ...] as [N, B * C, ...]
        images = aten.transpose__int(images, 0, 1)
        shape = images.array.shape
        images = aten.reshape(images, (shape[0], shape[1] * shape[2], *shape[3:]))
        made = aten.convolution(images, _together(front(weight, dims[1], size)), None, *rest, groups * size)
        shape = made.array.shape
        made = aten.view(made, (shape[0], size, shape[1] // size, *shape[2:]))
        made = aten.transpose__int(made, 0, 1)
    if bias is None:
        return made, 0
    space = len(made.array.shape) - 3
    return aten.add__Tensor(made, _per_channel(bias, dims[2], 3 + space, space)), 0


def _per_channel(value: Tensor, bdim: int | None, ndim: int, space: int) -> Tensor:
    """Reshape [C] or [B, C] to broadcast with tensors [B, N, C, ...] of `ndim` dims."""
    shape = value.array.shape
    x = value if bdim is None else front(value, bdim, 0)
    if bdim is None:
        return aten.view(x, (*shape, *(1,) * space))
    count = x.array.shape[1]
    return aten.view(x, (x.array.shape[0], *(1,) * (ndim - 2 - space), count, *(1,) * space))


# ---- normalisation: a weight of each example's own is multiplied outside


def layer_norm(
    size: int, dims: Dims, x: Tensor, shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[list[Any], int]:
    images = front(x, dims[0], size)
    if dims[2] is None and dims[3] is None:
        return list(aten.native_layer_norm(images, shape, weight, bias, eps)), 0
    made, *statistics = aten.native_layer_norm(images, shape, None, None, eps)
    ndim = len(images.array.shape) - 1
    if weight is not None:
        made = aten.mul__Tensor(made, padded(weight, dims[2], ndim))
    if bias is not None:
        made = aten.add__Tensor(made, padded(bias, dims[3], ndim))
    return [made, *statistics], 0


def group_norm(
    size: int, dims: Dims, x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, space: int, group: int,
    eps: float,
) -> tuple[list[Any], int]:  # fmt: skip
    images = _together(front(x, dims[0], size))
    own = dims[1] is not None or dims[2] is not None
    given = (None, None) if own else (weight, bias)
    made, *statistics = _apart(aten.native_group_norm(images, *given, size * n, c, space, group, eps), size)
    if own:
        ndim = len(made.array.shape)
        if weight is not None:
            made = aten.mul__Tensor(made, _per_channel(weight, dims[1], ndim, ndim - 3))
        if bias is not None:
            made = aten.add__Tensor(made, _per_channel(bias, dims[2], ndim, ndim - 3))
    return [made, *statistics], 0
