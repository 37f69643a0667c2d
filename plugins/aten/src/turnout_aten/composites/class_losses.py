"""Losses over classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT
from turnout.errors import ArgumentError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.endings import ZERO, Ending, ends_in
from turnout_aten.composites.reshaping import write_out
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import numel
from turnout_aten.shapes.losses import MEAN, NONE, check_reduction

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


@ends_in("aten::nll_loss_forward", "self", "target", "weight", "reduction", "ignore_index", item=0)
def nll_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100
) -> Tensor:
    """The negative of the target class's log-probability."""
    return aten.nll_loss_forward(self, target, weight, reduction, ignore_index)[0]


def nll_loss_out(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100,
    *, out: Tensor,
) -> Tensor:  # fmt: skip
    """nll_loss into `out`."""
    return write_out("aten::nll_loss.out", out, nll_loss(self, target, weight, reduction, ignore_index))


@ends_in("aten::nll_loss", "self", "target", "weight", "reduction", "ignore_index", self=2, target=1)
def nll_loss_nd(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100
) -> Tensor:
    """nll_loss of [C], [N, C] or [N, C, ...]; the targets have no class dim."""
    check_reduction("nll_loss", reduction)
    shape = self.array.shape
    if not shape:
        raise ShapeError("nll_loss: 'self' must have a dimension of classes, got a 0-dim tensor")
    if len(shape) > 2 and target.shape != self.shape[:1] + self.shape[2:]:
        raise ShapeError(
            f"nll_loss: 'target' must have shape {list(self.shape[:1] + self.shape[2:])} for 'self' of shape {list(self.shape)}, "
            f"got {list(target.shape)}"
        )
    return _over_batch(self, target, weight, reduction, ignore_index)


def nll_loss2d(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100
) -> Tensor:
    """nll_loss of images [N, C, H, W]."""
    if self.ndim != 4 or target.ndim != 3:
        raise ShapeError(
            f"nll_loss2d: 'self' [N, C, H, W] and 'target' [N, H, W] are expected, got shapes {list(self.shape)} and "
            f"{list(target.shape)}"
        )
    return nll_loss_nd(self, target, weight, reduction, ignore_index)


_LOGS = Ending("aten::log_softmax.int", ("self", 1))


@ends_in("aten::nll_loss", _LOGS, "target", "weight", "reduction", "ignore_index", self=2, target=1, label_smoothing=ZERO)
def cross_entropy_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """nll_loss of log_softmax over the classes, dim 1 (dim 0 without a batch).

    `target` holds class indices, or a probability for each class (in self's shape and a floating-point dtype).
    """
    check_reduction("cross_entropy_loss", reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"cross_entropy_loss: label_smoothing must lie between 0.0 and 1.0, got {label_smoothing}")
    shape, given = self.array.shape, target.array.shape
    if not shape:
        raise ShapeError("cross_entropy_loss: 'self' must have a dimension of classes, got a 0-dim tensor")
    classes = 0 if len(shape) == 1 else 1
    logs = aten.log_softmax__int(self, classes)
    of_probabilities = target.dtype.category >= FLOAT
    if of_probabilities and given == shape:
        return _of_probabilities(logs, target, weight, reduction, label_smoothing, classes)
    if of_probabilities or given != shape[:classes] + shape[classes + 1 :]:
        raise ShapeError(
            f"cross_entropy_loss: 'target' of shape {list(given)} and dtype {target.dtype.name} does not fit 'self' of "
            f"shape {list(shape)}"
        )
    if label_smoothing:
        return _smoothed(logs, target, weight, reduction, ignore_index, label_smoothing, classes)
    return _over_batch(logs, target, weight, reduction, ignore_index)


def _over_batch(logs: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Tensor:
    """nll_loss with all dims except the classes as one batch dim."""
    if len(logs.array.shape) <= 2:
        return aten.nll_loss(logs, target, weight, reduction, ignore_index)
    rows = aten.reshape(aten.movedim__int(logs, 1, -1), (target.numel(), logs.shape[1]))
    made = aten.nll_loss(rows, aten.reshape(target, (-1,)), weight, reduction, ignore_index)
    return made if reduction != NONE else aten.reshape(made, target.shape)


def _per_class(weight: Tensor, logs: Tensor, classes: int) -> Tensor:
    count = logs.shape[classes]
    if weight.shape != (count,):
        raise ShapeError(texts.not_per_class("cross_entropy_loss", count, weight.shape))
    shape = [1] * logs.ndim
    shape[classes] = count
    return aten.view(weight, shape)


def _of_probabilities(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float, classes: int
) -> Tensor:
    if label_smoothing:
        spread = label_smoothing / logs.shape[classes]
        target = aten.add__Scalar(aten.mul__Scalar(target, 1 - label_smoothing), spread)
    terms = aten.mul__Tensor(logs, target)
    if weight is not None:
        terms = aten.mul__Tensor(terms, _per_class(weight, logs, classes))
    if reduction == NONE:
        return aten.neg(aten.sum__dim_IntList(terms, (classes,)))
    made = aten.neg(aten.sum(terms))  # at once: the sums of rows may cancel, and two-byte floats would round each of them
    shape = logs.shape
    return aten.div__Scalar(made, numel(shape[:classes] + shape[classes + 1 :])) if reduction == MEAN else made


def _smoothed(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float, classes: int
) -> Tensor:
    """(1 - s) * nll_loss + s / classes * the sum over all classes, where the target is not ignored."""
    plain = _over_batch(logs, target, weight, reduction, ignore_index)
    weighted = logs if weight is None else aten.mul__Tensor(logs, _per_class(weight, logs, classes))
    ignored = aten.eq__Scalar(target, ignore_index)
    others: Tensor = aten.neg(aten.sum__dim_IntList(weighted, (classes,)))
    others = aten.masked_fill__Scalar(others, ignored, 0.0)
    if reduction == MEAN:
        counted = aten.logical_not(ignored)
        if weight is None:
            count = aten.sum(counted)
        else:
            safe = aten.reshape(aten.masked_fill__Scalar(target, ignored, 0), (-1,))
            picked = aten.reshape(aten.index_select(weight, 0, safe), target.shape)
            count = aten.sum(aten.masked_fill__Scalar(picked, ignored, 0.0))
        others = aten.div__Tensor(aten.sum(others), count)
    elif reduction != NONE:
        others = aten.sum(others)
    spread = label_smoothing / logs.shape[classes]
    return aten.add__Tensor(aten.mul__Scalar(plain, 1 - label_smoothing), aten.mul__Scalar(others, spread))
