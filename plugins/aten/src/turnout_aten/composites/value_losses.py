"""Losses between values: differences, likelihoods and margins, computed elementwise and then reduced."""

from __future__ import annotations

from functools import partial
from math import pi
from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.conversions import converted
from turnout_aten.dtypes import WIDE, can_cast
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast
from turnout_aten.shapes.losses import MEAN, NONE, check_reduction
from turnout_aten.shapes.promotion import result_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor


def reduced(losses: Tensor, reduction: int) -> Tensor:
    """The values, their mean or their sum, by `reduction`."""
    if reduction == NONE:
        return losses
    return aten.mean(losses) if reduction == MEAN else aten.sum(losses)


def _positive_part(x: Tensor) -> Tensor:
    """max(0, x), with gradient 1 at 0."""
    return aten.clamp(x, 0)


# ---- differences


def l1_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """|x - y|"""
    check_reduction("l1_loss", reduction)
    return reduced(aten.abs(aten.sub__Tensor(self, target)), reduction)


def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    """Quadratic for differences up to beta, then linear."""
    check_reduction("smooth_l1_loss", reduction)
    if beta < 0:
        raise ArgumentError(texts.negative("smooth_l1_loss", "beta", beta))
    if beta == 0:
        return l1_loss(self, target, reduction)
    losses = aten.div__Scalar(_bent(_widened(self), _widened(target), beta), beta)
    return reduced(_narrowed(losses, self, target), reduction)


def huber_loss(self: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    """smooth_l1_loss times delta, in the dtype of self."""
    check_reduction("huber_loss", reduction)
    if delta <= 0:
        raise ArgumentError(texts.not_positive("huber_loss", "delta", delta))
    losses = _narrowed(_bent(_widened(self), _widened(target), delta), self, target)
    if losses.dtype is not self.dtype:
        if not can_cast(losses.dtype, self.dtype):
            raise DTypeError(f"huber_loss: a loss of {losses.dtype.name} cannot have the dtype of 'input', {self.dtype.name}")
        losses = aten.to__dtype(losses, self.dtype)
    return reduced(losses, reduction)


def _widened(x: Tensor) -> Tensor:
    """Two-byte floats in float32, so that what takes several steps is rounded once.

    # differs from torch: `smooth_l1_loss` of float16 and `huber_loss` of bfloat16 are as exact as those of the other dtype;
    PyTorch rounds each step of these two.
    """
    return converted(x, WIDE[x.dtype]) if x.dtype.category == FLOAT else x


def _narrowed(losses: Tensor, self: Tensor, target: Tensor) -> Tensor:
    """The losses in the dtype that they have without `_widened`."""
    dtype = result_type(self, target)
    return converted(losses, dtype) if dtype.category == FLOAT else losses


def _bent(self: Tensor, target: Tensor, limit: float) -> Tensor:
    """d^2 / 2 for differences up to the limit, then limit (|d| - limit / 2). Large differences are never squared, and d keeps its
    sign: |d| would have no second derivative at 0."""
    d = aten.sub__Tensor(self, target)
    near = aten.clamp(d, -limit, limit)
    return aten.mul__Tensor(near, aten.sub__Tensor(d, near, alpha=0.5))


# ---- likelihoods


def binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)); the logarithms are limited to at least -100.

    # differs from torch: `binary_cross_entropy` of a probability outside [0, 1] is nan, not an error: a check would read values.
    """
    check_reduction("binary_cross_entropy", reduction)
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.undefined_for("binary_cross_entropy", self.dtype))
    for name, other in (("target", target), ("weight", weight)):
        if other is not None and other.dtype is not self.dtype:
            raise DTypeError(texts.wrong_dtype("binary_cross_entropy", name, self.dtype, other.dtype))
    if self.shape != target.shape:
        raise ShapeError(
            f"binary_cross_entropy: 'target' must have the shape of 'self', {list(self.shape)}, got {list(target.shape)}"
        )
    yes = aten.mul__Tensor(aten.clamp(aten.log(self), -100), target)
    no = aten.mul__Tensor(aten.clamp(aten.log1p(aten.neg(self)), -100), aten.rsub__Scalar(target, 1))
    losses = aten.neg(aten.add__Tensor(yes, no))
    return reduced(losses if weight is None else aten.mul__Tensor(losses, weight), reduction)


def binary_cross_entropy_with_logits(
    self: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """binary_cross_entropy of sigmoid(x), without overflow; `pos_weight` scales the positive targets."""
    check_reduction("binary_cross_entropy_with_logits", reduction)
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.undefined_for("binary_cross_entropy_with_logits", self.dtype))
    # -log(sigmoid(x))
    against = aten.add__Tensor(aten.log1p(aten.exp(aten.neg(aten.abs(self)))), aten.relu(aten.neg(self)))
    if pos_weight is not None:
        times = aten.add__Scalar(aten.mul__Tensor(aten.sub__Scalar(pos_weight, 1), target), 1)
        against = aten.mul__Tensor(against, times)
    losses = aten.add__Tensor(aten.mul__Tensor(aten.rsub__Scalar(target, 1), self), against)
    return reduced(losses if weight is None else aten.mul__Tensor(losses, weight), reduction)


def kl_div(self: Tensor, target: Tensor, reduction: int = MEAN, *, log_target: bool = False) -> Tensor:
    """t (log t - x) for log-probabilities x; 0 where t is 0."""
    check_reduction("kl_div", reduction)
    if log_target:
        losses = aten.mul__Tensor(aten.exp(target), aten.sub__Tensor(target, self))
    else:
        logs = aten.log(aten.masked_fill__Scalar(target, aten.eq__Scalar(target, 0), 1))
        losses = aten.sub__Tensor(aten.mul__Tensor(target, logs), aten.mul__Tensor(target, self))
    return reduced(losses, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """exp(x) - t x, or x - t log(x + eps); `full` adds Stirling's approximation of log(t!)."""
    if log_input:
        losses = aten.sub__Tensor(aten.exp(input), aten.mul__Tensor(target, input))
    else:
        losses = aten.sub__Tensor(input, aten.mul__Tensor(target, aten.log(aten.add__Scalar(input, eps))))
    if full:
        small = aten.le__Scalar(target, 1)
        safe = aten.masked_fill__Scalar(target, small, 1)
        half = aten.mul__Scalar(aten.log(aten.mul__Scalar(safe, 2 * pi)), 0.5)
        stirling = aten.add__Tensor(aten.sub__Tensor(aten.mul__Tensor(safe, aten.log(safe)), safe), half)
        losses = aten.add__Tensor(losses, aten.masked_fill__Scalar(stirling, small, 0))
    return reduced(losses, reduction)


def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """log(1 + exp(-t x))"""
    check_reduction("soft_margin_loss", reduction)
    return reduced(aten.log1p(aten.exp(aten.neg(aten.mul__Tensor(target, self)))), reduction)


# ---- margins


def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    """x where t is 1, max(0, margin - x) where it is -1."""
    inside = _positive_part(aten.rsub__Scalar(self, margin))
    negative = aten.where__ScalarOther(aten.ne__Scalar(target, 1), inside, 0)
    positive = aten.where__ScalarOther(aten.ne__Scalar(target, -1), self, 0)
    return reduced(aten.add__Tensor(negative, positive), reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    """max(0, margin - t (x1 - x2))"""
    lost = aten.neg(aten.mul__Tensor(target, aten.sub__Tensor(input1, input2)))
    return reduced(_positive_part(aten.add__Scalar(lost, margin)), reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    """1 - cos where t is 1, max(0, cos - margin) where it is -1."""
    ndim = target.ndim
    if ndim not in (0, 1) or input1.ndim != ndim + 1 or input2.ndim != ndim + 1:
        raise ShapeError(
            "cosine_embedding_loss: 'target' must have shape [] or [N], and the inputs one dimension more; got shapes "
            f"{list(target.shape)}, {list(input1.shape)} and {list(input2.shape)}"
        )

    def product(a: Tensor, b: Tensor) -> Any:
        return aten.sum__dim_IntList(aten.mul__Tensor(a, b), (ndim,))

    squares = (aten.add__Scalar(product(x, x), 1e-12) for x in (input1, input2))
    cosine = aten.div__Tensor(product(input1, input2), aten.sqrt(aten.mul__Tensor(*squares)))
    positive = aten.where__ScalarOther(aten.eq__Scalar(target, 1), aten.rsub__Scalar(cosine, 1), 0)
    away = _positive_part(aten.sub__Scalar(cosine, margin))
    negative = aten.where__ScalarOther(aten.eq__Scalar(target, -1), away, 0)
    return reduced(aten.add__Tensor(positive, negative), reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-06,
    swap: bool = False, reduction: int = MEAN,
) -> Tensor:  # fmt: skip
    """max(0, margin + |a - p| - |a - n|); with `swap`, n is compared with the nearer of a and p. Balntas et al. (2016)."""
    distance = partial(aten.pairwise_distance, p=p, eps=eps)
    return distance_loss("triplet_margin_loss", distance, anchor, positive, negative, margin, swap, reduction)


def distance_loss(
    name: str, distance: Callable[[Tensor, Tensor], Tensor], anchor: Tensor, positive: Tensor, negative: Tensor, margin: float,
    swap: bool, reduction: int,
) -> Tensor:  # fmt: skip
    """`triplet_margin_loss` with any distance."""
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(texts.unequal_dims(name, anchor.shape, positive.shape, negative.shape))
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten.minimum(far, distance(positive, negative))
    return reduced(_positive_part(aten.add__Scalar(aten.sub__Tensor(near, far), margin)), reduction)


def multi_margin_loss(
    self: Tensor, target: Tensor, p: Any = 1, margin: Any = 1, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """The mean over the other classes i of max(0, margin - x[t] + x[i]) ** p."""
    check_reduction("multi_margin_loss", reduction)
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    shape, wanted = self.shape, target.shape
    classes = shape[-1] if shape else 1
    rows = shape[0] if len(shape) == 2 else 1
    if len(shape) > 2 or not classes or len(wanted) > 1 or target.numel() != rows:
        raise ShapeError(texts.target_does_not_fit("multi_margin_loss", wanted, shape))
    if weight is not None and weight.numel() != classes:
        raise ArgumentError(texts.wrong_shape("multi_margin_loss", "weight", (classes,), weight.shape))
    if target.dtype is not int64:
        raise DTypeError(f"multi_margin_loss: 'target' must be int64, got {target.dtype.name}")
    x, t = aten.reshape(self, (rows, classes)), aten.reshape(target, (rows, 1))
    lost = aten.relu(aten.add__Scalar(aten.sub__Tensor(x, aten.gather(x, 1, t)), margin))
    if p == 2:
        lost = aten.mul__Tensor(lost, lost)
    if weight is not None:
        lost = aten.mul__Tensor(lost, aten.index_select(aten.reshape(weight, (classes, 1)), 0, aten.reshape(t, (-1,))))
    lost = aten.scatter__value(lost, 1, t, 0)
    losses = aten.div__Scalar(aten.sum__dim_IntList(lost, (1,)), classes)
    if reduction == NONE:
        return aten.reshape(losses, wanted if len(shape) == 2 else ())
    return reduced(losses, reduction)


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """The sum over labels t and classes i that are not labels of max(0, 1 - x[t] + x[i]), divided by the number of classes.

    The labels of a row end at the first negative number.
    """
    check_reduction("multilabel_margin_loss", reduction)
    shape = self.shape
    if target.shape != shape or len(shape) > 2 or (shape and not shape[-1]):
        raise ShapeError(
            f"multilabel_margin_loss: 'self' [N, C] or [C] and 'target' must have one shape, got {list(shape)} and "
            f"{list(target.shape)}"
        )
    if target.dtype is not int64:
        raise DTypeError(f"multilabel_margin_loss: 'target' must be int64, got {target.dtype.name}")
    classes = shape[-1] if shape else 1
    x, t = (aten.reshape(self, (-1 if self.numel() else 0, classes)), aten.reshape(target, (-1 if self.numel() else 0, classes)))
    given = aten.eq__Scalar(aten.cumsum(aten.to__dtype(aten.lt__Scalar(t, 0), int64), 1), 0)
    safe = aten.clamp(t, 0)
    labels = aten.scatter_add(aten.new_zeros(t, t.shape), 1, safe, aten.to__dtype(given, int64))
    lost = aten.rsub__Scalar(aten.sub__Tensor(aten.unsqueeze(aten.gather(x, 1, safe), 2), aten.unsqueeze(x, 1)), 1)
    counts = aten.logical_and(aten.unsqueeze(given, 2), aten.unsqueeze(aten.eq__Scalar(labels, 0), 1))
    lost = aten.masked_fill__Scalar(aten.relu(lost), aten.logical_not(counts), 0)
    losses = aten.div__Scalar(aten.sum__dim_IntList(lost, (1, 2)), classes)
    if reduction == NONE:
        return aten.reshape(losses, shape[:-1])
    return reduced(losses, reduction)


# ---- distances


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The inner product along a dim, with both tensors divided by their norms, or by eps if that is larger."""
    dtype = result_type(x1, x2)
    if dtype.category < FLOAT:
        raise DTypeError(f"cosine_similarity: floating-point tensors are expected, got {x1.dtype.name} and {x2.dtype.name}")
    shape = broadcast(x1.shape, x2.shape)
    parts = []
    for x in (x1, x2):
        whole = aten.expand(aten.to__dtype(x, dtype), shape)
        norm = aten.linalg_vector_norm(whole, 2, (dim,), True)
        # If eps is larger, it is a constant: no gradient flows through the norm.
        parts.append(aten.div__Tensor(whole, aten.clamp(norm, eps)))
    return aten.sum__dim_IntList(aten.mul__Tensor(*parts), (dim,))
