"""Losses as modules, each the function of `turnout.nn.functional` with its options as attributes.

# differs from torch: losses do not take `size_average` and `reduce`, which `reduction` replaced. What followed them is given by
keyword, so that a call that was meant for PyTorch is an error rather than another loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, fields
from functools import cache
from math import prod
from typing import Any, ClassVar

from turnout.nn import functional

from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.descriptions import described
from turnout_nn.layers import Layer, layer
from turnout_nn.module import Module
from turnout_nn.modules.distances import PairwiseDistance
from turnout_nn.modules.linear import Linear
from turnout_nn.parameters import Buffer


@layer
class _Loss(Layer):
    """A function of tensors with its options as fields. Those that are tensors, factors of classes or of losses, are buffers."""

    shows = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("weight", "pos_weight"):
            if vars(self).get(name) is not None:
                setattr(self, name, Buffer(vars(self)[name]))

    def _of(self, *args: Any) -> Tensor:
        cls: Any = type(self)
        return cls.__function__(*args, **{name: getattr(self, name) for name in _options(cls)})


@cache
def _options(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


@layer
class _Reduced(_Loss):
    """A loss whose `reduction` is given by keyword."""

    _: KW_ONLY
    reduction: str = "mean"


class _OfTarget(_Reduced):
    """A loss of an input and a target."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(input, target)


@layer
class L1Loss(_OfTarget):
    """|input - target|.

    Example:
        >>> turnout.nn.L1Loss()(turnout.tensor([1.0, 3.0]), turnout.tensor([0.0, 0.0]))
        tensor(2.)
    """

    __function__ = functional.l1_loss


@layer
class MSELoss(_OfTarget):
    """(input - target)^2.

    Example:
        >>> turnout.nn.MSELoss()(turnout.tensor([1.0, 3.0]), turnout.tensor([0.0, 0.0]))
        tensor(5.)
    """

    __function__ = functional.mse_loss


@layer
class SmoothL1Loss(_OfTarget):
    """The square of the difference over 2 beta below beta, |input - target| - beta / 2 above.

    Example:
        >>> turnout.nn.SmoothL1Loss()(turnout.tensor([0.5, 3.0]), turnout.tensor([0.0, 0.0]))
        tensor(1.3125)
    """

    _: KW_ONLY
    beta: float = 1.0
    __function__ = functional.smooth_l1_loss


@layer
class HuberLoss(_Loss):
    """Half the square of the difference below delta, delta (|input - target| - delta / 2) above.

    Example:
        >>> turnout.nn.HuberLoss()(turnout.tensor([0.5, 3.0]), turnout.tensor([0.0, 0.0]))
        tensor(1.3125)
    """

    reduction: str = "mean"
    delta: float = 1.0
    __function__ = functional.huber_loss

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(input, target)


@layer
class NLLLoss(_OfTarget):
    """The negative of the log-probability [N, C, ...] that `input` has for each target class.

    Example:
        >>> turnout.nn.NLLLoss()(turnout.tensor([[-1.0, -2.0]]), turnout.tensor([1]))
        tensor(2.)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100
    __function__ = functional.nll_loss


@layer
class CrossEntropyLoss(_OfTarget):
    """The cross entropy of logits [N, C, ...] and targets, which are classes or probabilities.

    Example:
        >>> turnout.nn.CrossEntropyLoss()(turnout.tensor([[0.0, 0.0]]), turnout.tensor([1]))
        tensor(0.6931)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100
    label_smoothing: float = 0.0
    __function__ = functional.cross_entropy


@layer
class BCELoss(_OfTarget):
    """The cross entropy of probabilities and targets in [0, 1].

    Example:
        >>> turnout.nn.BCELoss()(turnout.tensor([0.5]), turnout.tensor([1.0]))
        tensor(0.6931)
    """

    weight: Tensor | None = None
    __function__ = functional.binary_cross_entropy


@layer
class BCEWithLogitsLoss(_OfTarget):
    """The cross entropy of sigmoid(input) and targets in [0, 1], computed without overflow.

    Example:
        >>> turnout.nn.BCEWithLogitsLoss()(turnout.tensor([0.0]), turnout.tensor([1.0]))
        tensor(0.6931)
    """

    weight: Tensor | None = None
    _: KW_ONLY
    pos_weight: Tensor | None = None
    __function__ = functional.binary_cross_entropy_with_logits


@layer
class KLDivLoss(_OfTarget):
    """The divergence target (log(target) - input), where `input` is a log-probability. "batchmean" divides the sum by the
    batch size.

    Example:
        >>> turnout.nn.KLDivLoss(reduction="sum")(turnout.tensor([0.5]).log(), turnout.tensor([1.0]))
        tensor(0.6931)
    """

    _: KW_ONLY
    log_target: bool = False
    __function__ = functional.kl_div


@layer
class PoissonNLLLoss(_Reduced):
    """The negative log-likelihood of counts under Poisson distributions.

    Example:
        >>> turnout.nn.PoissonNLLLoss()(turnout.tensor([0.0]), turnout.tensor([2.0]))
        tensor(1.)
    """

    log_input: bool = True
    full: bool = False
    _: KW_ONLY
    eps: float = 1e-8
    __function__ = functional.poisson_nll_loss

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(log_input, target)


@layer
class GaussianNLLLoss(_Reduced):
    """The negative log-likelihood of targets under normal distributions.

    Example:
        >>> turnout.nn.GaussianNLLLoss()(turnout.tensor([1.0]), turnout.tensor([3.0]), turnout.tensor([1.0]))
        tensor(2.)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    __function__ = functional.gaussian_nll_loss

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(input, target, var)


@layer
class HingeEmbeddingLoss(_OfTarget):
    """`input` where the target is 1, max(0, margin - input) where it is -1.

    Example:
        >>> turnout.nn.HingeEmbeddingLoss()(turnout.tensor([0.5, 0.5]), turnout.tensor([1.0, -1.0]))
        tensor(0.5000)
    """

    margin: float = 1.0
    __function__ = functional.hinge_embedding_loss


@layer
class MarginRankingLoss(_Reduced):
    """max(0, -target (input1 - input2) + margin); the target is 1 where input1 should be larger, else -1.

    Example:
        >>> turnout.nn.MarginRankingLoss()(turnout.tensor([1.0]), turnout.tensor([3.0]), turnout.tensor([1.0]))
        tensor(2.)
    """

    margin: float = 0.0
    __function__ = functional.margin_ranking_loss

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(input1, input2, target)


@layer
class CosineEmbeddingLoss(_Reduced):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1, for the cosine of two vectors.

    Example:
        >>> turnout.nn.CosineEmbeddingLoss()(turnout.ones(1, 2), turnout.ones(1, 2), turnout.tensor([-1.0]))
        tensor(1.)
    """

    margin: float = 0.0
    __function__ = functional.cosine_embedding_loss

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(input1, input2, target)


@layer
class SoftMarginLoss(_OfTarget):
    """log(1 + exp(-target input)); targets are 1 or -1.

    Example:
        >>> turnout.nn.SoftMarginLoss()(turnout.tensor([0.0]), turnout.tensor([1.0]))
        tensor(0.6931)
    """

    __function__ = functional.soft_margin_loss


@layer
class MultiMarginLoss(_OfTarget):
    """The mean over classes of max(0, margin - input[target] + input[class])^p.

    Example:
        >>> turnout.nn.MultiMarginLoss()(turnout.tensor([[0.0, 1.0]]), turnout.tensor([0]))
        tensor(1.)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    __function__ = functional.multi_margin_loss


@layer
class MultiLabelMarginLoss(_OfTarget):
    """The margins between the classes that are targets and those that are not; targets end at -1.

    Example:
        >>> turnout.nn.MultiLabelMarginLoss()(turnout.tensor([[0.0, 1.0]]), turnout.tensor([[0, -1]]))
        tensor(1.)
    """

    __function__ = functional.multilabel_margin_loss


@layer
class MultiLabelSoftMarginLoss(_OfTarget):
    """The mean over classes of the cross entropy of sigmoid(input) and targets 0 or 1.

    Example:
        >>> turnout.nn.MultiLabelSoftMarginLoss()(turnout.tensor([[0.0, 0.0]]), turnout.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """

    weight: Tensor | None = None
    __function__ = functional.multilabel_soft_margin_loss


@layer
class TripletMarginLoss(_Reduced):
    """max(0, |anchor - positive| - |anchor - negative| + margin), with p-norms.

    Example:
        >>> turnout.nn.TripletMarginLoss()(turnout.zeros(1, 2), turnout.zeros(1, 2), turnout.zeros(1, 2))
        tensor(1.)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    __function__ = functional.triplet_margin_loss

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(anchor, positive, negative)


class TripletMarginWithDistanceLoss(Module):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with a distance of the caller.

    Arguments:
        distance_function: the distance d; by default, that of Euclid

    Example:
        >>> turnout.nn.TripletMarginWithDistanceLoss()(turnout.zeros(1, 2), turnout.zeros(1, 2), turnout.zeros(1, 2))
        tensor(1.)
    """

    __function__: ClassVar[Any] = functional.triplet_margin_with_distance_loss

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = reduction
        self.distance_function: Any = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The losses, or their mean or sum."""
        return type(self).__function__(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


@layer
class CTCLoss(_Loss):
    """Connectionist temporal classification, Graves et al. (2006), of log-probabilities [T, N, C].

    Example:
        >>> turnout.nn.CTCLoss()(turnout.zeros(1, 1, 2), turnout.tensor([[1]]), (1,), (1,))
        tensor(0.)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False
    __function__ = functional.ctc_loss

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """The losses, or their mean or sum."""
        return self._of(log_probs, targets, input_lengths, target_lengths)


class LinearCrossEntropyLoss(Module):
    """`CrossEntropyLoss` of the logits that a linear map of the input gives.

    Arguments:
        num_classes: the number of classes C
        out_features: the sizes (d_1, ..., d_K) of targets [N, d_1, ..., d_K]
        bias: whether the linear map has a bias
        options: without effect; in PyTorch they set the size of chunks

    Raises:
        ShapeError: `weight` does not have one factor for each class.
        ArgumentError: `label_smoothing` is not in [0, 1].

    Example:
        >>> loss = turnout.nn.LinearCrossEntropyLoss(3, 2)
        >>> loss(turnout.zeros(4, 3), turnout.tensor([0, 1, 1, 0])).detach()
        tensor(0.6931)
    """

    weight: Tensor | None
    __function__: ClassVar[Any] = functional.linear_cross_entropy

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: Any = None,
        dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None,
        label_smoothing: float = 0.0, options: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if weight is not None and list(weight.shape) != [num_classes]:
            raise ShapeError(f"LinearCrossEntropyLoss: weight must have shape {[num_classes]}, got {list(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(errors.no_probability("LinearCrossEntropyLoss", "label_smoothing", label_smoothing))
        self.reduction = reduction
        self.num_classes = num_classes
        self.out_features = out_features
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, num_classes * prod(out_features), bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The losses.

        Arguments:
            input: [N, in_features] or [in_features]
            target: classes [N, d_1, ..., d_K], or probabilities [N, C, d_1, ..., d_K]
        """
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return type(self).__function__(
            input, self.linear.weight.reshape((*shape, self.linear.in_features)), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The sizes and the options."""
        sizes = f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}"
        rest = f"reduction={self.reduction}, {described(self, 'ignore_index=', 'label_smoothing=', 'options=')}"
        return f"{sizes}, bias={self.linear.bias is not None}, {rest}"


describe(globals(), in_features="the length of an input", device="where the parameters are", dtype="their dtype")
