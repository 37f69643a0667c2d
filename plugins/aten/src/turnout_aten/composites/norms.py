"""Norms and distances in terms of `linalg_vector_norm`, whose gradient is 0 where the norm is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, DType
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.composites.reshaping import write_out
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast, wrap_dim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

    Dims = Sequence[int] | None


def norm_dim_dtype(self: Tensor, p: Any, dim: Dims, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The p-norm over some dims, computed in `dtype`; p is 2 by default."""
    return aten.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


def norm_dim(self: Tensor, p: Any, dim: Dims, keepdim: bool = False) -> Tensor:
    """norm over some dims, in the tensor's dtype."""
    return norm_dim_dtype(self, p, dim, keepdim)


def norm(self: Tensor, p: Any = 2) -> Tensor:
    """The p-norm of all elements."""
    return norm_dim_dtype(self, p, None)


def norm_dtype(self: Tensor, p: Any, *, dtype: DType) -> Tensor:
    """norm of all elements, computed in another dtype."""
    return norm_dim_dtype(self, p, None, dtype=dtype)


def norm_out(self: Tensor, p: Any, dim: Dims, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """norm into `out`."""
    return write_out("aten::norm.out", out, norm_dim_dtype(self, p, dim, keepdim))


def norm_dtype_out(self: Tensor, p: Any, dim: Dims, keepdim: bool, *, dtype: DType, out: Tensor) -> Tensor:
    """norm with a dtype into `out`."""
    return write_out("aten::norm.dtype_out", out, norm_dim_dtype(self, p, dim, keepdim, dtype=dtype))


def frobenius_norm(self: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    """The 2-norm over one or two dims."""
    if len(dim) > 2:
        raise ShapeError(f"frobenius_norm: takes at most 2 dims, got {list(dim)}")
    return norm_dim_dtype(self, 2, dim, keepdim)


def frobenius_norm_out(self: Tensor, dim: Sequence[int], keepdim: bool = False, *, out: Tensor) -> Tensor:
    """frobenius_norm into `out`."""
    return write_out("aten::frobenius_norm.out", out, frobenius_norm(self, dim, keepdim))


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v with norms g: of the parts at each index of `dim`, or of all of v for -1."""
    ndim = len(v.array.shape)
    kept = None if dim == -1 else wrap_dim(dim, ndim)
    others = [d for d in range(ndim) if d != kept]
    norms = aten.linalg_vector_norm(v, 2, others, kept is not None) if others else aten.abs(v)
    return aten.contiguous(v) * (g / norms)  # in row-major order, as PyTorch's


def dist(self: Tensor, other: Tensor, p: Any = 2) -> Tensor:
    """The p-norm of the difference."""
    return norm(aten.sub__Tensor(self, other), p)


def renorm(self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """Each slice along `dim`, scaled down to the p-norm `maxnorm` if its norm is larger."""
    if isinstance(p, complex) or p <= 0:
        raise ArgumentError(f"renorm: p must be a positive real number, got {p}")
    if isinstance(maxnorm, complex) or maxnorm < 0:
        raise ArgumentError(f"renorm: maxnorm must be a real number of at least 0, got {maxnorm}")
    if self.ndim < 2:
        raise ShapeError(texts.few_dims("renorm", "self", 2, self.shape))
    kept = wrap_dim(dim, self.ndim)
    norms = aten.linalg_vector_norm(self, p, [d for d in range(self.ndim) if d != kept], True)
    factors = aten.mul__Scalar(aten.reciprocal(aten.add__Scalar(norms, 1e-7)), maxnorm)
    factors = aten.where__ScalarOther(aten.gt__Scalar(norms, maxnorm), factors, 1.0)
    return lying(aten.mul__Tensor(self, aten.to__dtype(factors, self.dtype)))


def renorm_(self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """renorm in place."""
    # The product gets a copy, because it saves its input for the gradient and self is written below.
    return aten.copy_(self, renorm(aten.clone(self), p, dim, maxnorm))


def cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: int | None = None) -> Tensor:
    """The p-distance of every row of x1 [..., P, M] to every row of x2 [..., R, M]: [..., P, R].

    # differs from torch: `compute_mode` of `cdist` is checked and has no effect: distances always come from differences.
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            "cdist: needs tensors of at least 2 dimensions with equal last ones, got shapes "
            f"{list(x1.shape)} and {list(x2.shape)}"
        )
    _distance_order("cdist", x1, p)
    if compute_mode not in (None, 0, 1, 2):
        raise ArgumentError(f"cdist: compute_mode must be 0, 1 or 2, got {compute_mode}")
    if not x1.shape[-1]:
        batch = broadcast(x1.shape[:-2], x2.shape[:-2])
        return aten.new_zeros(x1, (*batch, x1.shape[-2], x2.shape[-2]))
    differences = aten.sub__Tensor(aten.unsqueeze(x1, -2), aten.unsqueeze(x2, -3))
    return aten.linalg_vector_norm(differences, p, [-1])


def pdist(self: Tensor, p: float = 2) -> Tensor:
    """The p-distances of the rows of [N, M], each pair once: (0, 1), (0, 2), ..., (N - 2, N - 1)."""
    if self.ndim != 2:
        raise ShapeError(f"pdist: 'self' must have 2 dimensions, got shape {list(self.shape)}")
    _distance_order("pdist", self, p)
    rows, length = self.shape
    if rows < 2:
        return aten.sum__dim_IntList(aten.slice__Tensor(self, 0, 0, 0), (1,))  # empty, but a function of self
    if not length:
        return aten.new_zeros(self, (rows * (rows - 1) // 2,))
    parts = []
    for i in range(rows - 1):
        differences = aten.sub__Tensor(aten.slice__Tensor(self, 0, i, i + 1), aten.slice__Tensor(self, 0, i + 1))
        parts.append(aten.linalg_vector_norm(differences, p, [-1]))
    return aten.cat(parts)


def _distance_order(name: str, x: Tensor, p: float) -> None:
    if p < 0:
        raise ArgumentError(texts.negative(name, "p", p))
    if x.dtype.category != FLOAT:
        raise DTypeError(f"{name}: needs floating-point tensors, got {x.dtype.name}")


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dim."""
    return aten.linalg_vector_norm(aten.add__Scalar(aten.sub__Tensor(x1, x2), eps), p, [-1], keepdim)
