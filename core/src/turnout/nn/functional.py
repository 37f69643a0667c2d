"""`turnout.nn.functional`: the operators of python_module nn, and losses that take their reduction as a word."""

from __future__ import annotations

from turnout.errors import CallError
from turnout.generated import functions as _functions
from turnout.generated import nn_functional as _generated
from turnout.generated.functions import embedding, log_softmax, pairwise_distance, pdist, relu, sigmoid, softmax, tanh
from turnout.generated.nn_functional import gelu, linear, one_hot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout.tensors import Tensor

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(name: str, reduction: str) -> int:
    if reduction not in REDUCTIONS:
        raise CallError(f"{name}: argument 'reduction' must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    return REDUCTIONS[reduction]


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits [N, C, ...] and targets: class indices [N, ...] (int64) or probabilities of input's shape.

    weight [C] scales classes; targets equal to `ignore_index` count nothing. Returns a 0-dim tensor, or one loss per target
    with reduction "none". Raises CallError for an unknown reduction.
    """
    number = _reduction("cross_entropy", reduction)
    return _generated.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of log-probabilities [N, C] and class indices [N]; see `cross_entropy`."""
    return _generated.nll_loss(input, target, weight, _reduction("nll_loss", reduction), ignore_index)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean (or sum, or none) of the squared differences of two tensors that broadcast."""
    return _generated.mse_loss(input, target, _reduction("mse_loss", reduction))


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zeros a fraction `p` of the elements at random and scales the others by 1 / (1 - p); the input where not `training`."""
    return _functions.dropout(input, p, training)


def softmin(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """softmax of the negated input."""
    return _functions.softmax(_functions.neg(input), dim, dtype)


__all__ = [
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "linear",
    "log_softmax",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "pairwise_distance",
    "pdist",
    "relu",
    "sigmoid",
    "softmax",
    "softmin",
    "tanh",
]
