"""Parametrizations that are often wanted: `turnout.nn.utils.parametrizations`."""

from __future__ import annotations

from typing import TypeVar

from turnout.nn import functional

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import check_count
from turnout_nn import errors
from turnout_nn.module import Module
from turnout_nn.utils.parametrize import register_parametrization
from turnout_nn.utils.power_method import channels_of, matrix_of, norm_except, power_steps, spread

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
__dir__ = __all__.copy

T = TypeVar("T", bound=Module)
MAPS = ("matrix_exp", "cayley", "householder")


def weight_norm(module: T, name: str = "weight", dim: int | None = 0) -> T:
    """Compute a weight from its length and its direction, Salimans and Kingma (2016). Returns the module.

    `parametrizations.<name>.original0` is the length of each part, `original1` the direction.

    Arguments:
        module: the module
        name: the name of the weight
        dim: the dimension along which each part has a length; None for one length

    Example:
        >>> layer = turnout.nn.utils.parametrizations.weight_norm(turnout.nn.Linear(3, 2))
        >>> layer.parametrizations.weight.original0.shape
        turnout.Size([2, 1])
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def spectral_norm(module: T, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> T:
    """Divide a weight by its largest singular value, Miyato et al. (2018). Returns the module.

    Each access in training mode improves the estimate of the value by power iterations.

    Arguments:
        module: the module
        name: the name of the weight
        n_power_iterations: how many iterations each access makes
        eps: the smallest norm that is divided by
        dim: the dimension of the output channels; by default 0, and 1 for transposed convolutions

    Raises:
        ArgumentError: the number of iterations is not above 0.

    Example:
        >>> layer = turnout.nn.utils.parametrizations.spectral_norm(turnout.nn.Linear(3, 2), n_power_iterations=20)
        >>> abs(turnout.linalg.matrix_norm(layer.weight, 2).item() - 1) < 1e-3
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(errors.no_such_tensor("spectral_norm", module, name))
    dim = channels_of(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        check_count("spectral_norm", "n_power_iterations", n_power_iterations)
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            with turnout.no_grad():
                matrix = matrix_of(weight, self.dim)
                u, v = (
                    functional.normalize(matrix.new_empty(n).normal_(), dim=0, eps=eps)
                    for n in (matrix.shape[0], matrix.shape[1])
                )
                u, v = power_steps(matrix, u, v, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return functional.normalize(weight, dim=0, eps=self.eps)
        matrix = matrix_of(weight, self.dim)
        if self.training:
            with turnout.no_grad():
                u, v = power_steps(matrix, self._u, self._v, self.n_power_iterations, self.eps)
                self._u.copy_(u)
                self._v.copy_(v)
        # Copies, because the next access writes into the buffers.
        return weight / spread(matrix, self._u.clone(), self._v.clone())

    def right_inverse(self, value: Tensor) -> Tensor:
        return value

    _u: Tensor
    _v: Tensor


def orthogonal(module: T, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> T:
    """Keep a weight orthogonal: Q^T Q = I, or Q Q^T = I if it has more columns than rows. Returns the module.

    Arguments:
        module: the module
        name: the name of the weight, of at least 2 dimensions
        orthogonal_map: how a matrix is made orthogonal: "matrix_exp", "cayley" (1846) or "householder" (1958). By default,
            "matrix_exp" for square and complex matrices and "householder" for others
        use_trivialization: whether the weight is relative to a base that an assignment sets, Lezcano Casado (2019)

    Raises:
        ArgumentError: there is no such weight or map.
        ShapeError: the weight has fewer than 2 dimensions.

    Example:
        >>> layer = turnout.nn.utils.parametrizations.orthogonal(turnout.nn.Linear(3, 2))
        >>> turnout.allclose(layer.weight @ layer.weight.T, turnout.eye(2), atol=1e-5)
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(errors.no_such_tensor("orthogonal", module, name))
    if weight.ndim < 2:
        raise ShapeError(f"orthogonal: the weight must have at least 2 dimensions, got shape {list(weight.shape)}")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ArgumentError(f"orthogonal: orthogonal_map must be one of {', '.join(MAPS)}, got {orthogonal_map!r}")
    if orthogonal_map == "householder" and weight.is_complex():
        raise ArgumentError("orthogonal: orthogonal_map 'householder' takes no complex weights")
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


class _Orthogonal(Module):
    """A matrix [..., n, k] from one of the same shape. Matrices with more columns than rows are transposed for the while."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.trivialized = use_trivialization
        if use_trivialization:
            self.register_buffer("base", weight.new_zeros(self._tall(weight).shape[:-1] + (max(weight.shape[-2:]),)))

    @staticmethod
    def _tall(x: Tensor) -> Tensor:
        return x.mT if x.shape[-2] < x.shape[-1] else x

    def forward(self, X: Tensor) -> Tensor:
        x = self._tall(X)
        q = self._reflected(x) if self.orthogonal_map == "householder" else self._rotated(x)
        if self.trivialized:
            assert self.base is not None
            q = self.base @ q
        return q.mT if X.shape[-2] < X.shape[-1] else q

    def _rotated(self, x: Tensor) -> Tensor:
        """The first columns of the exponential, or of the Cayley transform, of a skew-symmetric matrix."""
        n, k = x.shape[-2:]
        lower = functional.pad(x.tril(), (0, n - k)) if n > k else x.tril()
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            return turnout.matrix_exp(skew)[..., :k]
        eye = turnout.eye(n, dtype=x.dtype, device=x.device)
        return turnout.linalg.solve(eye - skew / 2, eye + skew / 2)[..., :k]

    @staticmethod
    def _reflected(x: Tensor) -> Tensor:
        """A product of Householder reflections with the vectors below the diagonal, whose signs are on the diagonal."""
        below = x.tril(-1)
        q = turnout.linalg.householder_product(below, 2 / (1 + (below * below).sum(-2)))
        return q * x.detach().diagonal(0, -2, -1).sign().unsqueeze(-2)  # the signs are not trained

    def right_inverse(self, Q: Tensor) -> Tensor:
        q = self._tall(Q)
        if self.trivialized:
            n, k = q.shape[-2:]
            more = turnout.cat([q, q.new_empty((*q.shape[:-1], n - k)).normal_()], -1) if n > k else q
            self.base = _nearest(more)
            start = turnout.zeros_like(Q)
            start.diagonal(0, -2, -1).fill_(-1)  # with reflections, the diagonal is that of the signs
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError("without a trivialisation, only 'householder' has an inverse")
        a, tau = turnout.geqrf(q)
        signs = a.diagonal(0, -2, -1)
        signs.copy_(turnout.where(tau == 0, -signs.sign(), signs.sign()))
        return a.mT if Q.shape[-2] < Q.shape[-1] else a


def _nearest(q: Tensor) -> Tensor:
    """The orthogonal factor of a square matrix, with the signs that leave an orthogonal matrix as it is."""
    factor, r = turnout.linalg.qr(q)
    return factor * r.diagonal(0, -2, -1).sgn().unsqueeze(-2)
