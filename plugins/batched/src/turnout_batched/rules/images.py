"""Rules for operators on images and sequences: convolution, pooling, upsampling, normalisation.

They have a batch dim N of their own, in front: the examples' images are put one behind the other there, and taken apart again.
"""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.shapes.extents import numel
from turnout_aten.shapes.losses import MEAN, NONE
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, Rule, family, fits, front, logical_ndim, logical_shape, padded, refused
from turnout_batched.rules.rounding import rounded, widened


def folded(ndim: int, *, alone: bool = True, sizes_at: int | None = None) -> Rule:
    """The rule of operators whose tensors have `ndim` dims.

    alone     whether N may be missing in all of them: the batch dim then takes its place
    sizes_at  the position of a list of sizes that begins with N
    """
    taken = ({ndim}, {ndim - 1}) if alone else ({ndim},)

    @family
    def fold(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Any, Any]:
        ranks = {logical_ndim(v, d) for v, d in zip(values, dims, strict=True) if isinstance(v, Tensor)}
        if ranks not in taken or (sizes_at is not None and len(values[sizes_at]) != ndim):
            refused(call, size, dims, values)
        batches = [front(v, d, size) if isinstance(v, Tensor) else v for v, d in zip(values, dims, strict=True)]
        if ndim not in ranks:
            return call(*batches), 0
        given = [_together(v) if isinstance(v, Tensor) else v for v in batches]
        if sizes_at is not None:
            given[sizes_at] = (size * given[sizes_at][0], *given[sizes_at][1:])
        return _apart(call(*given), size, next(v for v in batches if isinstance(v, Tensor)).array.shape[1]), 0

    return fold


def _together(x: Tensor) -> Tensor:
    """Reshape [B, N, ...] to [B * N, ...]."""
    shape = x.array.shape
    return aten.reshape(x, (shape[0] * shape[1], *shape[2:]))


def _apart(made: Any, size: int, n: int) -> Any:
    """Reshape [B * N, ...] to [B, N, ...]."""
    if isinstance(made, (list, tuple)):
        return [_apart(each, size, n) for each in made]
    return aten.view(made, (size, n, *made.array.shape[1:]))


def fractional(space: int) -> Rule:
    """The rule for images of `space` dims. Random samples have shape [N, C, space]; images without N have N = 1 there."""

    @family
    def pool(
        call: Any, size: int, dims: Dims, self: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor
    ) -> tuple[Any, Any]:
        fits(f"fractional_max_pool{space}d.output", dims, (self, kernel_size, output_size, random_samples))
        images, samples = front(self, dims[0], size), front(random_samples, dims[3], size)
        single = len(images.array.shape) == space + 2
        count = 1 if single else images.array.shape[1]
        together = _together(aten.slice__Tensor(samples, 1, 0, count, 1))
        if single:
            return call(images, kernel_size, output_size, together), 0
        return _apart(call(_together(images), kernel_size, output_size, together), size, count), 0

    return pool


# ---- convolution


def convolution(
    size: int, dims: Dims, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> tuple[Tensor, int]:  # fmt: skip
    """If each example has its own weights, the examples become groups of channels."""
    rest = (stride, padding, dilation, transposed, output_padding)
    fits("convolution.out", dims, (x, weight, bias, *rest, groups))
    images = front(x, dims[0], size)
    if dims[1] is None or not size:  # no groups where there are no examples
        shared = weight if dims[1] is None else aten.new_zeros(weight, logical_shape(weight, dims[1]))
        made = _apart(aten.convolution(_together(images), shared, None, *rest, groups), size, images.array.shape[1])
    else:
        images = aten.transpose__int(images, 0, 1)  # [B, N, C, ...] as [N, B * C, ...]
        shape = images.array.shape
        images = aten.reshape(images, (shape[0], shape[1] * shape[2], *shape[3:]))
        made = aten.convolution(images, _together(front(weight, dims[1], size)), None, *rest, groups * size)
        shape = made.array.shape
        made = aten.view(made, (shape[0], size, shape[1] // size, *shape[2:]))
        made = aten.transpose__int(made, 0, 1)
    if bias is None:
        return made, 0
    return aten.add__Tensor(made, _per_channel(bias, dims[2], len(made.array.shape) - 3)), 0


def _per_channel(value: Tensor, bdim: int | None, space: int) -> Tensor:
    """Reshape [C] or [B, C] to broadcast with tensors [B, N, C, ...] of `space` further dims."""
    if bdim is None:
        return aten.view(value, (*value.array.shape, *(1,) * space))
    x = front(value, bdim, 0)
    size, count = x.array.shape
    return aten.view(x, (size, 1, count, *(1,) * space))


# ---- normalisation: a weight of each example's own is multiplied outside


def layer_norm(
    size: int, dims: Dims, x: Tensor, shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[list[Any], int]:
    specs = fits("native_layer_norm.out", dims, (x, shape, weight, bias, eps))
    images = front(x, dims[0], size)
    if dims[2] is None and dims[3] is None:
        return list(aten.native_layer_norm(images, shape, weight, bias, eps)), 0
    made, *statistics = aten.native_layer_norm(widened(images), shape, None, None, eps)
    ndim = len(images.array.shape) - 1
    if weight is not None:
        made = aten.mul__Tensor(made, padded(weight, dims[2], ndim))
    if bias is not None:
        made = aten.add__Tensor(made, padded(bias, dims[3], ndim))
    return rounded([made, *statistics], specs), 0


def group_norm(
    size: int, dims: Dims, x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, space: int, group: int,
    eps: float,
) -> tuple[list[Any], int]:  # fmt: skip
    """An example may have any shape of n * c * space elements."""
    specs = fits("native_group_norm.out", dims, (x, weight, bias, n, c, space, group, eps))
    images = front(x, dims[0], size)
    own = dims[1] is not None or dims[2] is not None
    given = (None, None) if own else (weight, bias)
    rows = aten.reshape(widened(images) if own else images, (size * n, c, space))
    made, *statistics = aten.native_group_norm(rows, *given, size * n, c, space, group, eps)
    if own:
        made = aten.view(made, (size, n, c, space))
        if weight is not None:
            made = aten.mul__Tensor(made, _per_channel(weight, dims[1], 1))
        if bias is not None:
            made = aten.add__Tensor(made, _per_channel(bias, dims[2], 1))
    return rounded([aten.view(made, images.array.shape), *_apart(statistics, size, n)], specs), 0


# ---- sequences


@family
def ctc_loss(
    call: Any, size: int, dims: Dims, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor,
    blank: int, reduction: int, zero_infinity: bool,
) -> tuple[Tensor, int]:  # fmt: skip
    """With lengths in tensors. N is dim 1 of the log-probabilities, and 1 where they have no such dim."""
    values = (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
    shape = logical_shape(log_probs, dims[0])
    n = shape[1] if len(shape) == 3 else 1
    counts = [logical_shape(v, d) for v, d in zip(values[2:4], dims[2:4], strict=True)]
    fit = len(shape) in (2, 3) and logical_ndim(targets, dims[1]) in (1, 2) and all(len(c) < 2 and numel(c) == n for c in counts)
    if not fit:
        refused(call, size, dims, values)
    logs, labels = front(log_probs, dims[0], size), front(targets, dims[1], size)
    logs = aten.reshape(aten.transpose__int(logs, 0, 1), (shape[0], size * n, shape[-1]))
    inputs, lengths = [aten.reshape(front(v, d, size), (size * n,)) for v, d in zip(values[2:4], dims[2:4], strict=True)]
    if len(labels.array.shape) == 3:
        labels = _together(labels)
    else:  # the targets of an example follow each other
        sums = aten.sum__dim_IntList(aten.view(lengths, (size, n)), (1,)).tolist()
        rows = [aten.slice__Tensor(aten.select__int(labels, 0, i), 0, 0, count, 1) for i, count in enumerate(sums)]
        labels = aten.cat(rows, 0) if rows else aten.reshape(labels, (0,))
    losses = aten.view(call(logs, labels, inputs, lengths, blank, NONE, zero_infinity), (size, n))
    if reduction == MEAN:
        losses = aten.div__Tensor(losses, aten.clamp(aten.view(lengths, (size, n)), 1))
        return aten.mean__dim(losses, (1,)), 0
    if reduction == NONE:
        return losses if len(shape) == 3 else aten.squeeze__dim(losses, 1), 0
    return aten.sum__dim_IntList(losses, (1,)), 0
