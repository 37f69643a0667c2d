"""Normalisation over rows, groups, batches and instances. Two-byte floats are computed in float32.

`native_layer_norm` and `native_group_norm` have kernels. The three operators of batches that write nothing (without statistics,
with new ones as results, with given ones) are composed of operators and have gradients of their own, so that a backend may have
one kernel for the call and one for the gradient. The others are composed of all of these and get their gradients from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, uint8
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.conversions import converted
from turnout_aten.composites.endings import ends_in
from turnout_aten.composites.layouts import lying
from turnout_aten.dtypes import WIDE
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import numel
from turnout_aten.shapes.layouts import as_images
from turnout_aten.shapes.normalisation import RMS_EPS, check_groups, check_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


def _computed(name: str, dtype: DType) -> DType:
    """The dtype to compute in."""
    if dtype.category < FLOAT:
        raise DTypeError(texts.undefined_for(name, dtype))
    return WIDE[dtype]


def _computed_of_real(name: str, dtype: DType) -> DType:
    """The same where complex tensors are refused, too."""
    if dtype.category != FLOAT:
        raise DTypeError(texts.undefined_for(name, dtype))
    return _computed(name, dtype)


# ---- rows


@ends_in("aten::native_layer_norm", "input", "normalized_shape", "weight", "bias", "eps", item=0)
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-05, cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """Normalise the last dims, of shape `normalized_shape`, to mean 0 and variance 1; then times weight plus bias."""
    return aten.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def native_layer_norm_backward(
    grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Tensor | None,
    bias: Tensor | None, output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """The gradients of (input, weight, bias); None where the mask is False."""
    computed = _computed("native_layer_norm_backward", input.dtype)
    inner, shape = len(normalized_shape), input.shape
    length = numel(normalized_shape)
    count = numel(shape[: input.ndim - inner])
    # Sums over rows and columns are products with vectors: without an array of what is added up.
    grad, x = (aten.reshape(converted(t, computed), (count, length)) for t in (grad_out, input))
    middle, factor = (aten.reshape(converted(t, computed), (count, 1)) for t in (mean, rstd))
    scale = None if weight is None else aten.reshape(converted(weight, computed), (1, length))
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0] or (output_mask[1] and weight is not None):
        centred = aten.sub__Tensor(x, middle)
        along = aten.mul__Tensor(grad, centred)
    if output_mask[0]:
        column = aten.new_ones(x, (length, 1)) if scale is None else aten.reshape(scale, (length, 1))
        slope = aten.mul__Tensor(aten.div__Scalar(aten.mm(along, column), length), aten.mul__Tensor(factor, factor))
        level = aten.div__Scalar(aten.mm(grad, column), length)
        each = grad if scale is None else aten.mul__Tensor(grad, scale)
        moved = aten.add__Tensor(aten.mul__Tensor(centred, slope), level)
        found[0] = lying(converted(aten.reshape(aten.mul__Tensor(aten.sub__Tensor(each, moved), factor), shape), input.dtype))
    if output_mask[1] and weight is not None:
        found[1] = converted(aten.reshape(aten.mm(aten.reshape(factor, (1, count)), along), weight.shape), weight.dtype)
    if output_mask[2] and bias is not None:
        found[2] = converted(aten.reshape(aten.sum__dim_IntList(grad, (0,)), bias.shape), bias.dtype)
    return found[0], found[1], found[2]


def grad_of_scaled(each: Tensor, normal: Tensor, factor: Tensor, dims: Sequence[int]) -> Tensor:
    """The gradient of x * factor, where `factor` is 1 / root(mean(x * x) + eps) and `normal` that value."""
    along = aten.mul__Tensor(normal, aten.mean__dim(aten.mul__Tensor(each, normal), dims, True))
    return aten.mul__Tensor(aten.sub__Tensor(each, along), factor)


def rms_factor(x: Tensor, dims: Sequence[int], eps: float) -> Tensor:
    """What `rms_norm` multiplies by: 1 / root(mean(x * x) + eps), with dims of length 1."""
    return aten.rsqrt(aten.add__Scalar(aten.mean__dim(aten.mul__Tensor(x, x), dims, True), eps))


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square over the last dims; then times weight."""
    check_rows("rms_norm", input.array, normalized_shape, None if weight is None else weight.array)
    dtype = input.dtype
    x = converted(input, _computed("rms_norm", dtype))
    dims = tuple(range(-len(normalized_shape), 0))
    made: Tensor = aten.mul__Tensor(x, rms_factor(x, dims, RMS_EPS[dtype] if eps is None else eps))
    if weight is not None:
        made = aten.mul__Tensor(made, weight)
    return lying(converted(made, dtype), as_images(input.shape, input))


# ---- groups


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Normalise groups of channels to mean 0 and variance 1; then times weight plus bias, per channel."""
    shape = input.array.shape
    if len(shape) < 2:
        raise ShapeError(texts.no_channels("group_norm", input.shape))
    n, c, *places = shape
    check_groups("group_norm", c, num_groups, weight, bias)
    return aten.native_group_norm(input, weight, bias, n, c, numel(places), num_groups, eps)[0]


def native_group_norm_backward(
    grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, N: int, C: int, HxW: int, group: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """The gradients of (input, weight, bias); None where the mask is False."""
    computed = _computed("native_group_norm_backward", input.dtype)
    shape = (N, group, C // group, HxW)
    grad = aten.reshape(converted(grad_out, computed), shape)
    middle, factor = (aten.reshape(converted(t, computed), (N, group, 1, 1)) for t in (mean, rstd))
    normal = aten.mul__Tensor(aten.sub__Tensor(aten.reshape(converted(input, computed), shape), middle), factor)
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        each = grad
        if weight is not None:
            each = aten.mul__Tensor(grad, aten.reshape(converted(weight, computed), (1, group, C // group, 1)))
        level = aten.mul__Tensor(aten.mean__dim(each, (2, 3), True), factor)
        own = aten.sub__Tensor(grad_of_scaled(each, normal, factor, (2, 3)), level)
        found[0] = lying(converted(aten.reshape(own, input.shape), input.dtype), as_images(input.shape, input))
    channels = grad_out.dtype if weight is None else weight.dtype
    if output_mask[1]:
        scaled = aten.sum__dim_IntList(aten.mul__Tensor(grad, normal), (0, 3))
        found[1] = converted(aten.reshape(scaled, (C,)), channels)
    if output_mask[2]:
        found[2] = converted(aten.reshape(aten.sum__dim_IntList(grad, (0, 3)), (C,)), channels)
    return found[0], found[1], found[2]


# ---- batches


def _per_channel(x: Tensor, ndim: int) -> Tensor:
    """[C] reshaped to broadcast over [N, C, ...]."""
    return aten.reshape(x, (-1, *(1,) * (ndim - 2)))


def _check_channels(name: str, input: Tensor, **parameters: Tensor | None) -> None:
    shape = input.array.shape
    if len(shape) < 2:
        raise ShapeError(texts.no_channels(name, input.shape))
    for which, parameter in parameters.items():
        if parameter is not None and parameter.array.shape != shape[1:2]:
            raise ShapeError(
                f"{name}: '{which}' must have shape [{input.shape[1]}] for 'input' of shape {list(input.shape)}, got "
                f"{list(parameter.shape)}"
            )


def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(result, mean, reciprocal deviation) per channel over the batch. Training updates the running statistics.

    Evaluation uses the running statistics, and the second and third results are empty.
    """
    name, running = "native_batch_norm", (running_mean, running_var)
    _check_channels(name, input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    computed = _computed_of_real(name, input.dtype)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError(f"{name}: without training, running_mean and running_var must be given")
        return aten._native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps)
    if running_mean is None and running_var is None:
        return aten._native_batch_norm_legit__no_stats(input, weight, bias, True, momentum, eps)
    old = [aten.new_zeros(input, input.shape[1:2], dtype=computed) if r is None else aten.detach(r) for r in running]
    *values, mean, var = aten._native_batch_norm_legit_functional(input, weight, bias, *old, True, momentum, eps)
    for kept, value in zip(running, (mean, var), strict=True):
        if kept is not None:
            aten.copy_(aten.detach(kept), value)
    return values[0], values[1], values[2]


def _batch_norm(
    name: str, input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor | None, Tensor | None]]:  # fmt: skip
    """The three results, and the new running statistics, or None where they do not change."""
    _check_channels(name, input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    computed = _computed_of_real(name, input.dtype)
    x = converted(input, computed)
    moved: tuple[Tensor | None, Tensor | None] = (None, None)
    if training:
        mean, variance = _moments(x)
        count = max(input.numel() // max(input.shape[1], 1), 1)
        unbiased = aten.div__Scalar(aten.mul__Scalar(variance, count), count - 1)  # of a single element nan: 0 / 0
        moved = _moved(running_mean, mean, momentum), _moved(running_var, unbiased, momentum)
    else:
        if running_mean is None or running_var is None:
            raise ArgumentError(f"{name}: without training, running_mean and running_var must be given")
        mean, variance = converted(running_mean, computed), converted(running_var, computed)
    factor = aten.rsqrt(aten.add__Scalar(variance, eps))
    made = lying(converted(_affine(x, mean, factor, weight, bias), input.dtype), as_images(input.shape, input))
    if not training:
        return (made, aten.new_empty(input, (0,)), aten.new_empty(input, (0,))), moved
    kept = input.dtype if weight is None else weight.dtype
    return (made, converted(aten.detach(mean), kept), converted(aten.detach(factor), kept)), moved


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the variance (divided by n) of each channel."""
    dims = [d for d in range(x.ndim) if d != 1]
    mean = aten.mean__dim(x, dims)
    centred = aten.sub__Tensor(x, _per_channel(mean, x.ndim))
    return mean, aten.mean__dim(aten.mul__Tensor(centred, centred), dims)


def _moved(running: Tensor | None, value: Tensor, momentum: float) -> Tensor | None:
    """(1 - momentum) running + momentum value"""
    if running is None:
        return None
    kept = aten.mul__Scalar(aten.detach(running), 1 - momentum)
    return aten.add__Tensor(kept, converted(aten.detach(value), running.dtype), alpha=momentum)


def _affine(x: Tensor, mean: Tensor, factor: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """(x - mean) * factor * weight + bias, per channel, as x * scale + shift: twice over the elements instead of three times."""
    scale = factor if weight is None else aten.mul__Tensor(factor, converted(weight, x.dtype))
    shift = aten.neg(aten.mul__Tensor(mean, scale))
    if bias is not None:
        shift = aten.add__Tensor(shift, converted(bias, x.dtype))
    return aten.add__Tensor(aten.mul__Tensor(x, _per_channel(scale, x.ndim)), _per_channel(shift, x.ndim))


def native_batch_norm_no_stats(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """native_batch_norm without running statistics."""
    return _batch_norm("native_batch_norm", input, weight, bias, None, None, training, momentum, eps)[0]


def native_batch_norm_no_training(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """native_batch_norm in evaluation: the running statistics are used and unchanged."""
    return _batch_norm("native_batch_norm", input, weight, bias, running_mean, running_var, False, momentum, eps)[0]


def native_batch_norm_functional(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, training: bool,
    momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """native_batch_norm that returns the new running statistics as additional results."""
    given = (input, weight, bias, running_mean, running_var, training, momentum, eps)
    made, (mean, var) = _batch_norm("native_batch_norm", *given)
    if mean is None or var is None:
        mean, var = aten.clone(aten.detach(running_mean)), aten.clone(aten.detach(running_var))
    return (*made, mean, var)


def batch_norm_with_update_functional(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """batch_norm_with_update in the same way."""
    made, middle, factor, mean, var = aten._native_batch_norm_legit_functional(
        input, weight, bias, running_mean, running_var, True, momentum, eps
    )
    return made, middle, factor, _reserve(input), mean, var


def batch_norm_with_update(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """native_batch_norm in training, and an empty reserve."""
    made = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*made, _reserve(input))


def batch_norm_no_update(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """native_batch_norm in evaluation, and an empty reserve."""
    made = native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return (*made, _reserve(input))


def _reserve(input: Tensor) -> Tensor:
    return aten.new_empty(input, (0,), dtype=uint8)


def batch_norm_backward(
    grad_out: Tensor, input: Tensor, weight: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    save_mean: Tensor | None, save_var: Tensor | None, update: bool, eps: float, output_mask: Sequence[bool], reserve: Tensor,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """As `native_batch_norm_backward`, with what `_batch_norm_with_update` returned; the reserve is another backend's."""
    stats = (running_mean, running_var, save_mean, save_var)
    return native_batch_norm_backward(grad_out, input, weight, *stats, update, eps, output_mask)


def native_batch_norm_backward(
    grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    save_mean: Tensor | None, save_invstd: Tensor | None, train: bool, eps: float, output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """The gradients of (input, weight, bias); None where the mask is False."""
    computed = _computed("native_batch_norm_backward", input.dtype)
    centre, spread = (save_mean, save_invstd) if train else (running_mean, running_var)
    if centre is None or spread is None:
        needed = "in training, save_mean and save_invstd" if train else "without training, running_mean and running_var"
        raise ArgumentError(f"native_batch_norm_backward: {needed} must be given")
    mean, factor = converted(centre, computed), converted(spread, computed)
    if not train:
        factor = aten.rsqrt(aten.add__Scalar(factor, eps))
    n = input.ndim
    dims = [d for d in range(n) if d != 1]
    grad = converted(grad_out, computed)
    scale = factor if weight is None else aten.mul__Tensor(factor, converted(weight, computed))
    channels = input.dtype if weight is None else weight.dtype
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        found[0] = aten.mul__Tensor(grad, _per_channel(scale, n))
    if output_mask[2] or (output_mask[0] and train):
        total = aten.sum__dim_IntList(grad, dims)
        found[2] = converted(total, channels) if output_mask[2] else None
    if output_mask[1] or (output_mask[0] and train):
        centred = aten.sub__Tensor(converted(input, computed), _per_channel(mean, n))
        along = aten.mul__Tensor(aten.sum__dim_IntList(aten.mul__Tensor(grad, centred), dims), factor)
        found[1] = converted(along, channels) if output_mask[1] else None
    if output_mask[0] and train:
        # The gradients of mean and variance are one number per channel: two times over the elements.
        count = max(input.numel() // max(input.shape[1], 1), 1)
        slope = aten.mul__Tensor(aten.mul__Tensor(along, factor), aten.div__Scalar(scale, count))
        level = aten.mul__Tensor(total, aten.div__Scalar(scale, count))
        moved = aten.add__Tensor(aten.mul__Tensor(centred, _per_channel(slope, n)), _per_channel(level, n))
        found[0] = aten.sub__Tensor(found[0], moved)
    of_input = None if found[0] is None else lying(converted(found[0], input.dtype), as_images(input.shape, input))
    return of_input, found[1], found[2]


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """The first result of native_batch_norm; an empty input may have any shape."""
    if not input.numel():
        made: Tensor = aten.clone(input)
        for op, parameter in ((aten.mul__Tensor, weight), (aten.add__Tensor, bias)):
            if parameter is not None and parameter.numel():
                made = op(made, aten.select__int(parameter, 0, 0))
        return made
    # Called as an operator, which a backend may have a kernel for.
    return aten.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


# ---- instances


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """batch_norm of each channel of each image separately. Running statistics are updated with the mean over the images."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise ArgumentError("instance_norm: without use_input_stats, running_mean and running_var must be given")
    _check_channels("instance_norm", input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    n, c = input.shape[:2]

    def repeated(x: Tensor | None) -> Any:
        return None if x is None else aten.repeat(x, (n,))

    own_mean, own_var = repeated(running_mean), repeated(running_var)
    flat = aten.reshape(input, (1, n * c, *input.shape[2:]))
    made = batch_norm(flat, repeated(weight), repeated(bias), own_mean, own_var, use_input_stats, momentum, eps, cudnn_enabled)
    if use_input_stats:
        for running, own in ((running_mean, own_mean), (running_var, own_var)):
            if running is not None:
                aten.copy_(aten.detach(running), aten.mean__dim(aten.reshape(aten.detach(own), (n, c)), (0,)))
    return aten.reshape(made, input.shape)
