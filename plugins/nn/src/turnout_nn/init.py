"""Initial values of parameters: `turnout.nn.init`.

Each function writes into its tensor and returns it, outside of autograd. A weight [out, in, ...] has fan_in = in times the
elements of the remaining dimensions, and fan_out = out times the same. Random values come from `generator`, or from the default
generator of the tensor's device.
"""

from __future__ import annotations

import math

import turnout
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout import Generator, Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
__dir__ = __all__.copy

# The gain of a function that has no parameter.
GAINS = {
    **dict.fromkeys(["linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"], 1.0),
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which the standard deviation of weights in front of a nonlinearity is multiplied.

    Arguments:
        nonlinearity: the name of a function in `turnout.nn.functional`
        param: the negative slope of "leaky_relu", by default 0.01

    Raises:
        ArgumentError: there is no gain for this function, or `param` is not a number.

    Example:
        >>> turnout.nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity in GAINS:
        return GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        known = ", ".join([*GAINS, "leaky_relu"])
        raise ArgumentError(f"calculate_gain: nonlinearity must be one of {known}, got {nonlinearity!r}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ArgumentError(f"calculate_gain: the negative slope must be a number, got {slope!r}")
    return math.sqrt(2 / (1 + slope**2))


def fans(tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight [out, in, ...]. Raises ShapeError for fewer than two dimensions."""
    if tensor.ndim < 2:
        raise ShapeError(f"nn.init: fan_in and fan_out need a tensor of at least 2 dimensions, got shape {list(tensor.shape)}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a tensor from the uniform distribution over [a, b).

    Example:
        >>> w = turnout.nn.init.uniform_(turnout.empty(3, 5), 2.0, 3.0)
        >>> (w >= 2).all() & (w <= 3).all()
        tensor(True)
    """
    with turnout.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a tensor from the normal distribution.

    Arguments:
        mean: the mean
        std: the standard deviation

    Example:
        >>> turnout.nn.init.normal_(turnout.empty(2, 3), std=0.0)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """
    with turnout.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor from the normal distribution, truncated to [a, b].

    Arguments:
        mean: the mean before truncation
        std: the standard deviation before truncation

    Example:
        >>> w = turnout.nn.init.trunc_normal_(turnout.empty(100))
        >>> (w.abs() <= 2).all()
        tensor(True)
    """
    # The inverse of the distribution function, at uniform numbers between its values at the bounds.
    low, high = (math.erf((x - mean) / (std * math.sqrt(2))) for x in (a, b))
    with turnout.no_grad():
        tensor.uniform_(low, high, generator=generator)
        return tensor.erfinv_().mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with one value.

    Arguments:
        val: the value

    Example:
        >>> turnout.nn.init.constant_(turnout.empty(3), 0.5)
        tensor([0.5000, 0.5000, 0.5000])
    """
    with turnout.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones.

    Example:
        >>> turnout.nn.init.ones_(turnout.empty(3))
        tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros.

    Example:
        >>> turnout.nn.init.zeros_(turnout.empty(3))
        tensor([0., 0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on its diagonal and zeros elsewhere.

    Arguments:
        tensor: a tensor of 2 dimensions

    Raises:
        ShapeError: the tensor is not a matrix.

    Example:
        >>> turnout.nn.init.eye_(turnout.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    _of_rank("eye_", tensor, 2, 2)
    with turnout.no_grad():
        return tensor.copy_(turnout.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it passes its input on, as far as there are channels.

    Arguments:
        tensor: a weight [out, in, ...] of 3 to 5 dimensions
        groups: the number of groups of output channels, each of which passes the inputs on

    Raises:
        ShapeError: the tensor is not such a weight.
        ArgumentError: `groups` does not divide the number of output channels.

    Example:
        >>> turnout.nn.init.dirac_(turnout.empty(2, 2, 3))
        tensor([[[0., 1., 0.],
                 [0., 0., 0.]],
        <BLANKLINE>
                [[0., 0., 0.],
                 [0., 1., 0.]]])
    """
    _of_rank("dirac_", tensor, 3, 5)
    out, window = tensor.shape[0], tensor.shape[2:]
    if groups < 1 or out % groups:
        raise ArgumentError(f"dirac_: groups must divide the {out} output channels, got {groups}")
    with turnout.no_grad():
        tensor.zero_()
        centre = tensor[(slice(None), slice(None), *(n // 2 for n in window))]
        for group in centre.chunk(groups):
            group.diagonal().fill_(1)
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight from the uniform distribution over [-a, a), a = gain sqrt(6 / (fan_in + fan_out)), Glorot and Bengio (2010).

    Arguments:
        tensor: a weight of at least 2 dimensions

    Raises:
        ShapeError: the tensor has fewer than 2 dimensions.

    Example:
        >>> turnout.nn.init.xavier_uniform_(turnout.empty(3, 3)).abs().max() <= 1
        tensor(True)
    """
    a = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight from the normal distribution with std gain sqrt(2 / (fan_in + fan_out)), Glorot and Bengio (2010).

    Arguments:
        tensor: a weight of at least 2 dimensions

    Raises:
        ShapeError: the tensor has fewer than 2 dimensions.

    Example:
        >>> turnout.nn.init.xavier_normal_(turnout.empty(3, 3)).shape
        turnout.Size([3, 3])
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Fill a weight from the uniform distribution over [-b, b), b = gain sqrt(3 / fan), He et al. (2015).

    A tensor without elements is left as it is, with a warning.

    Arguments:
        tensor: a weight of at least 2 dimensions
        a: the negative slope of "leaky_relu"

    Raises:
        ShapeError: the tensor has fewer than 2 dimensions.
        ArgumentError: the mode or the nonlinearity is unknown.

    Example:
        >>> turnout.nn.init.kaiming_uniform_(turnout.empty(3, 6), nonlinearity="relu").abs().max() <= 1
        tensor(True)
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else uniform_(tensor, -math.sqrt(3) * std, math.sqrt(3) * std, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Fill a weight from the normal distribution with std gain / sqrt(fan), He et al. (2015).

    A tensor without elements is left as it is, with a warning.

    Arguments:
        tensor: a weight of at least 2 dimensions
        a: the negative slope of "leaky_relu"

    Raises:
        ShapeError: the tensor has fewer than 2 dimensions.
        ArgumentError: the mode or the nonlinearity is unknown.

    Example:
        >>> turnout.nn.init.kaiming_normal_(turnout.empty(3, 6), mode="fan_out").shape
        turnout.Size([3, 6])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill a tensor with a random orthogonal matrix, Saxe et al. (2013); later dimensions are flattened into columns.

    The rows are orthogonal if there are no more of them than columns, else the columns are.

    Arguments:
        tensor: a tensor of at least 2 dimensions
        gain: the factor of the matrix

    Raises:
        ShapeError: the tensor has fewer than 2 dimensions.

    Example:
        >>> w = turnout.nn.init.orthogonal_(turnout.empty(2, 3))
        >>> turnout.allclose(w @ w.T, turnout.eye(2), atol=1e-6)
        True
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: the tensor must have at least 2 dimensions, got shape {list(tensor.shape)}")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with turnout.no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(generator=generator)
        q, r = turnout.linalg.qr(drawn if rows >= columns else drawn.T)
        q = q * r.diagonal().sign()  # without the signs of r, the distribution would not be uniform (Mezzadri 2007)
        return tensor.copy_((q if rows >= columns else q.T).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix from the normal distribution, then set a share of each column to zero, Martens (2010).

    Arguments:
        tensor: a tensor of 2 dimensions
        sparsity: the share of each column that is zero, rounded up to a whole number of elements
        std: the standard deviation of the other elements

    Raises:
        ShapeError: the tensor is not a matrix.

    Example:
        >>> w = turnout.nn.init.sparse_(turnout.empty(10, 2), 0.3)
        >>> (w == 0).sum(0)
        tensor([3, 3])
    """
    _of_rank("sparse_", tensor, 2, 2)
    with turnout.no_grad():
        tensor.normal_(0, std, generator=generator)
        places = turnout.empty_like(tensor, dtype=turnout.float32).uniform_(generator=generator).argsort(0)
        return tensor.masked_fill_(places < math.ceil(sparsity * tensor.shape[0]), 0)


def _of_rank(name: str, tensor: Tensor, low: int, high: int) -> None:
    if not low <= tensor.ndim <= high:
        ranks = str(low) if low == high else f"{low} to {high}"
        raise ShapeError(f"{name}: the tensor must have {ranks} dimensions, got shape {list(tensor.shape)}")


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation gain / sqrt(fan), or None for a tensor without elements."""
    if 0 in tensor.shape:
        errors.warn("nn.init: a tensor without elements has nothing to initialise")
        return None
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"nn.init: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


describe(
    globals(),
    nonlinearity="the function that follows; see `calculate_gain`",
    tensor="the tensor",
    a="the lower bound",
    b="the upper bound",
    generator="where the random numbers come from",
    gain="the factor for the nonlinearity; see `calculate_gain`",
    mode='"fan_in" keeps the variance in the forward pass, "fan_out" in the backward pass',
)
