"""Losses of `turnout.nn.functional`. The reduction is "none", "mean" or "sum"; any other value raises ArgumentError."""

from __future__ import annotations

from math import log, pi

from turnout.errors import ArgumentError, CallError, ShapeError
from turnout.errors import calls as texts
from turnout.operators.tracebacks import shorten, shortening
from turnout.operators.values import is_tensor
from turnout_aten.composites.value_losses import distance_loss, reduced
from turnout_aten.errors import arguments as argument_texts
from turnout_aten.functions.broadcasting import broadcast_tensors
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated
from turnout_aten.shapes.losses import MEAN, NONE, SUM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}


def _reduction(name: str, reduction: str) -> int:
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"{name}: argument 'reduction' must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    return REDUCTIONS[reduction]


# ---- classes


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits [N, C, ...] and targets: class indices [N, ...] (int64) or probabilities of input's shape.

    weight [C] scales classes; targets equal to `ignore_index` are ignored. Returns a 0-dim tensor, or one loss per target
    with reduction "none". Raises ArgumentError for an unknown reduction.

    Arguments:
        input: logits

    Example:
        >>> turnout.nn.functional.cross_entropy(turnout.tensor([[0.0, 0.0]]), turnout.tensor([1]))
        tensor(0.6931)
    """
    try:
        number = _reduction("cross_entropy", reduction)
        return _generated.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)
    except Exception as error:
        shorten(error)
        raise


@shortening
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:  # fmt: skip
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`.

    linear_weight is [C, in], or [C, d_1, ..., d_K, in] for K-dimensional targets. `options`, which sets the chunk size in
    PyTorch, has no effect.

    Arguments:
        input: the input of the linear map, [..., in]
        linear_weight: the matrix of the linear map
        target: class indices
        linear_bias: what is added to the logits
        options: without effect

    Example:
        >>> F = turnout.nn.functional
        >>> F.linear_cross_entropy(turnout.tensor([[1.0]]), turnout.tensor([[1.0], [1.0]]), turnout.tensor([0]))
        tensor(0.6931)
    """
    own = linear_weight.shape[1:-1]
    if own and input.ndim != 2:
        raise ArgumentError(
            f"linear_cross_entropy: a weight of {linear_weight.ndim} dimensions takes 'input' [N, in], got {list(input.shape)}"
        )
    if own:
        flat = linear_weight.reshape((-1, linear_weight.shape[-1]))
        bias = None if linear_bias is None else linear_bias.reshape((-1,))
        logits = _generated.linear(input, flat, bias)
        logits = logits.reshape((*logits.shape[:-1], linear_weight.shape[0], *own))
    else:
        logits = _generated.linear(input, linear_weight, linear_bias)
    if ignore_index is not None and target.is_floating_point():
        raise ArgumentError("linear_cross_entropy: ignore_index needs targets that are class indices, not probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of log-probabilities [N, C, ...] and class indices [N, ...]; see `cross_entropy`.

    Arguments:
        input: the logarithms of probabilities
        target: class indices

    Example:
        >>> turnout.nn.functional.nll_loss(turnout.tensor([[-0.5, -1.0]]), turnout.tensor([1]))
        tensor(1.)
    """
    try:
        number = REDUCTIONS.get(reduction)
        if number is None:
            number = _reduction("nll_loss", reduction)
        return _generated.nll_loss_nd(input, target, weight, number, ignore_index)
    except Exception as error:
        shorten(error)
        raise


@shortening
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over the other classes i of max(0, margin - x[t] + x[i]) ** p, for [N, C] and class indices [N]; p is 1 or 2.

    Raises ArgumentError for another p.

    Arguments:
        target: class indices
        p: the exponent, 1 or 2

    Example:
        >>> turnout.nn.functional.multi_margin_loss(turnout.tensor([[0.2, 0.8]]), turnout.tensor([1]))
        tensor(0.2000)
    """
    number = _reduction("multi_margin_loss", reduction)
    return _generated.multi_margin_loss(input, target, p, margin, weight, number)


@shortening
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The sum of max(0, 1 - x[t] + x[i]) over labels t and other classes i. A row's labels end at the first negative one.

    Arguments:
        target: the labels of each row, then -1

    Example:
        >>> turnout.nn.functional.multilabel_margin_loss(turnout.tensor([[0.2, 0.8]]), turnout.tensor([[1, -1]]))
        tensor(0.2000)
    """
    return _generated.multilabel_margin_loss(input, target, _reduction("multilabel_margin_loss", reduction))


@shortening
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """The mean over classes of the binary cross entropy of logits [N, C] and targets of the same shape.

    Arguments:
        input: logits
        target: 0 or 1 for each class

    Example:
        >>> turnout.nn.functional.multilabel_soft_margin_loss(turnout.tensor([[0.0, 0.0]]), turnout.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """
    number = _reduction("multilabel_soft_margin_loss", reduction)
    losses = _functions.binary_cross_entropy_with_logits(input, target, weight, None, 0)
    return reduced(losses.mean(-1), number)


@shortening
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Connectionist temporal classification of log-probabilities [T, N, C] or [T, C].

    Targets are [N, S], or all in one row; lengths are lists or tensors of integers. `zero_infinity` gives 0 for unreachable
    targets. The mean first divides each loss by the length of its target.

    Arguments:
        log_probs: the logarithms of the probabilities
        targets: the labels
        input_lengths: the length in time of each example
        target_lengths: the number of labels of each example
        blank: the class of blanks
        zero_infinity: whether infinite losses become 0

    Example:
        >>> turnout.nn.functional.ctc_loss(turnout.zeros(2, 1, 2), turnout.tensor([[1]]), [2], [1])
        tensor(-1.0986)
    """
    number = _reduction("ctc_loss", reduction)
    return _functions.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


# ---- differences


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or none) of the squared differences of two tensors that broadcast. `weight` is optional.

    Arguments:
        weight: a factor for each loss

    Example:
        >>> turnout.nn.functional.mse_loss(turnout.tensor([1.0, 2.0]), turnout.tensor([2.0, 4.0]))
        tensor(2.5000)
    """
    try:
        number = _reduction("mse_loss", reduction)
        input, target = _of_one_rank(input, target)
        if weight is None:
            return _generated.mse_loss(input, target, number)
        return _weighted(_generated.mse_loss(input, target, 0), weight, number)
    except Exception as error:
        shorten(error)
        raise


@shortening
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The mean (or sum, or none) of the absolute differences; see mse_loss.

    Arguments:
        weight: a factor for each loss

    Example:
        >>> turnout.nn.functional.l1_loss(turnout.tensor([1.0, 2.0]), turnout.tensor([2.0, 4.0]))
        tensor(1.5000)
    """
    number = _reduction("l1_loss", reduction)
    input, target = _of_one_rank(input, target)
    if weight is None:
        return _generated.l1_loss(input, target, number)
    return _weighted(_generated.l1_loss(input, target, 0), weight, number)


def _of_one_rank(input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """The two expanded to one shape where just one has no dims: as in PyTorch, its dtype then counts like that of the other."""
    try:
        if (not input.array.shape) is not (not target.array.shape):
            return broadcast_tensors(input, target)
    except AttributeError:  # not tensors, which the operator says
        pass
    return input, target


def _weighted(losses: Tensor, weight: Tensor, reduction: int) -> Tensor:
    """Losses times weights. The mean divides by the sum of the weights."""
    weight = weight.expand_as(losses)
    total = losses * weight
    return total.sum() / weight.sum() if reduction == MEAN else reduced(total, reduction)


@shortening
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Quadratic for differences below beta, then linear: 0.5 d^2 / beta, d - 0.5 beta.

    Arguments:
        beta: where the loss becomes linear

    Example:
        >>> turnout.nn.functional.smooth_l1_loss(turnout.tensor([0.0, 0.0]), turnout.tensor([0.5, 3.0]))
        tensor(1.3125)
    """
    input, target = _of_one_rank(input, target)
    return _generated.smooth_l1_loss(input, target, _reduction("smooth_l1_loss", reduction), beta)


@shortening
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """0.5 d^2 for differences up to delta, then delta (d - 0.5 delta).

    Arguments:
        delta: where the loss becomes linear
        weight: a factor for each loss

    Example:
        >>> turnout.nn.functional.huber_loss(turnout.tensor([0.0, 0.0]), turnout.tensor([0.5, 3.0]))
        tensor(1.3125)
    """
    number = _reduction("huber_loss", reduction)
    input, target = _of_one_rank(input, target)
    if weight is None:
        return _generated.huber_loss(input, target, number, delta)
    return _weighted(_generated.huber_loss(input, target, 0, delta), weight, number)


# ---- likelihoods


def _check_probabilities(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        shapes = f"{list(input.shape)}, got {list(target.shape)}"
        raise ArgumentError(f"{name}: 'target' must have the shape of 'input', {shapes}")


@shortening
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-(t log x + (1 - t) log(1 - x)) for probabilities x; the logarithms are limited to at least -100.

    Raises ArgumentError if input and target differ in shape.

    Arguments:
        input: probabilities
        target: the expected probabilities
        weight: a factor for each loss

    Example:
        >>> turnout.nn.functional.binary_cross_entropy(turnout.tensor([0.5]), turnout.tensor([1.0]))
        tensor(0.6931)
    """
    number = _reduction("binary_cross_entropy", reduction)
    _check_probabilities("binary_cross_entropy", input, target)
    return _generated.binary_cross_entropy(input, target, weight, number)


@shortening
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow; `pos_weight` scales the positive targets.

    Raises ArgumentError if input and target differ in shape.

    Arguments:
        input: logits
        target: the expected probabilities
        weight: a factor for each loss
        pos_weight: a factor for positive targets

    Example:
        >>> turnout.nn.functional.binary_cross_entropy_with_logits(turnout.tensor([0.0]), turnout.tensor([1.0]))
        tensor(0.6931)
    """
    number = _reduction("binary_cross_entropy_with_logits", reduction)
    _check_probabilities("binary_cross_entropy_with_logits", input, target)
    return _functions.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


@shortening
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """t (log t - x) for log-probabilities x; "batchmean" divides the sum by the length of dim 0.

    Arguments:
        input: the logarithms of probabilities
        target: probabilities, or their logarithms with `log_target`
        reduction: "none", "mean", "sum" or "batchmean"
        log_target: whether `target` holds logarithms

    Example:
        >>> turnout.nn.functional.kl_div(turnout.tensor([-0.5]), turnout.tensor([0.5]), reduction="sum")
        tensor(-0.0966)
    """
    if reduction == "batchmean":
        made = _functions.kl_div(input, target, 2, log_target=log_target)
        return made / input.shape[0] if input.ndim else made
    return _functions.kl_div(input, target, _reduction("kl_div", reduction), log_target=log_target)


@shortening
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Tensor:
    """exp(x) - t x, or x - t log(x + eps) without `log_input`; `full` adds Stirling's approximation of log(t!).

    Arguments:
        input: the means, or their logarithms with `log_input`
        log_input: whether `input` holds logarithms
        full: whether Stirling's approximation is added

    Example:
        >>> turnout.nn.functional.poisson_nll_loss(turnout.tensor([0.0]), turnout.tensor([1.0]))
        tensor(1.)
    """
    number = _reduction("poisson_nll_loss", reduction)
    return _functions.poisson_nll_loss(input, target, log_input, full, eps, number)


@shortening
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """0.5 (log var + (x - t)^2 / var), the variance not below eps; `full` adds 0.5 log(2 pi).

    The variance is a number, or a tensor of input's shape, in which the last dim may be missing or 1. Raises ArgumentError for
    another shape or a negative number.

    Arguments:
        input: the means
        var: the variances
        full: whether the constant part is added
        eps: the smallest variance

    Example:
        >>> turnout.nn.functional.gaussian_nll_loss(turnout.tensor([1.0]), turnout.tensor([2.0]), turnout.tensor([1.0]))
        tensor(0.5000)
    """
    number = _reduction("gaussian_nll_loss", reduction)
    if isinstance(var, (int, float)):
        if var < 0:
            raise ArgumentError(argument_texts.negative("gaussian_nll_loss", "var", var))
        var = _functions.full_like(input, var)
    elif not is_tensor(var):
        raise CallError(texts.wrong_type("gaussian_nll_loss", "var", "a number or a tensor", var))
    elif var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or any(v not in (1, n) for v, n in zip(var.shape, input.shape, strict=True)):
            raise ArgumentError(
                f"gaussian_nll_loss: 'var' of shape {list(var.shape)} does not fit 'input' of shape {list(input.shape)}"
            )
    if var.device.backend.has_values and bool((var < 0).any()):
        raise ArgumentError("gaussian_nll_loss: 'var' must not have negative elements")
    # eps is a constant limit; the gradient reaches the variance unchanged.
    limited = var + (var.detach().clamp(min=eps) - var.detach())
    difference = input - target
    losses = (limited.log() + difference * difference / limited) * 0.5
    return reduced(losses + 0.5 * log(2 * pi) if full else losses, number)


@shortening
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-t x)) for targets 1 and -1.

    Arguments:
        target: 1 or -1 for each value

    Example:
        >>> turnout.nn.functional.soft_margin_loss(turnout.tensor([0.0]), turnout.tensor([1.0]))
        tensor(0.6931)
    """
    return _generated.soft_margin_loss(input, target, _reduction("soft_margin_loss", reduction))


# ---- margins


@shortening
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1.

    Arguments:
        target: 1 or -1 for each value

    Example:
        >>> turnout.nn.functional.hinge_embedding_loss(turnout.tensor([0.5, 0.5]), turnout.tensor([1, -1]))
        tensor(0.5000)
    """
    return _functions.hinge_embedding_loss(input, target, margin, _reduction("hinge_embedding_loss", reduction))


@shortening
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean") -> Tensor:
    """max(0, margin - t (x1 - x2)) for targets 1 and -1.

    Arguments:
        target: 1 if the first value is to be larger, else -1

    Example:
        >>> turnout.nn.functional.margin_ranking_loss(turnout.tensor([1.0]), turnout.tensor([2.0]), turnout.tensor([1.0]))
        tensor(1.)
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(argument_texts.unequal_dims("margin_ranking_loss", input1.shape, input2.shape, target.shape))
    number = _reduction("margin_ranking_loss", reduction)
    return _functions.margin_ranking_loss(input1, input2, target, margin, number)


@shortening
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean") -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos - margin) where it is -1.

    Arguments:
        target: 1 or -1 for each pair

    Example:
        >>> F = turnout.nn.functional
        >>> F.cosine_embedding_loss(turnout.tensor([[1.0, 0.0]]), turnout.tensor([[0.0, 1.0]]), turnout.tensor([1]))
        tensor(1.)
    """
    number = _reduction("cosine_embedding_loss", reduction)
    return _functions.cosine_embedding_loss(input1, input2, target, margin, number)


@shortening
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin + |a - p| - |a - n|) in the p-norm; with `swap`, n is compared with the nearer of a and p.

    Raises ArgumentError for a margin that is not positive.

    Arguments:
        p: the order of the norm

    Example:
        >>> F = turnout.nn.functional
        >>> F.triplet_margin_loss(turnout.tensor([[0.0, 0.0]]), turnout.tensor([[0.0, 1.0]]), turnout.tensor([[0.0, 3.0]]))
        tensor(0.)
    """
    number = _reduction("triplet_margin_loss", reduction)
    if margin <= 0:
        raise ArgumentError(argument_texts.not_positive("triplet_margin_loss", "margin", margin))
    return _functions.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


@shortening
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """triplet_margin_loss with any distance, Euclidean by default. Raises ArgumentError for a margin that is not positive.

    Arguments:
        distance_function: the distance of two tensors of points

    Example:
        >>> F = turnout.nn.functional
        >>> tensor = turnout.tensor
        >>> F.triplet_margin_with_distance_loss(tensor([[0.0, 0.0]]), tensor([[0.0, 1.0]]), tensor([[0.0, 3.0]]))
        tensor(0.)
    """
    number = _reduction("triplet_margin_with_distance_loss", reduction)
    distance: Callable[[Tensor, Tensor], Tensor] = distance_function or _functions.pairwise_distance
    if margin <= 0:
        raise ArgumentError(argument_texts.not_positive("triplet_margin_with_distance_loss", "margin", margin))
    return distance_loss("triplet_margin_with_distance_loss", distance, anchor, positive, negative, margin, swap, number)


__all__ = describe(
    globals(),
    input="the predictions",
    target="the expected values",
    weight="a factor for each class",
    ignore_index="the target that gives no loss",
    reduction='"none" returns every loss, "mean" their mean, "sum" their sum',
    label_smoothing="the share of the uniform distribution that is mixed into the targets",
    margin="the margin",
    eps="what is added so that a logarithm or a difference is not that of 0",
    input1="the first values",
    input2="the second values",
    anchor="the points that are compared",
    positive="points that should be near",
    negative="points that should be far",
    swap="whether the distance of `positive` and `negative` counts if it is smaller",
)
