"""The tangent of scattering with a reduction."""

from __future__ import annotations

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.scattering import part_of, scatter_reduce_grad


def scatter_reduce_tangent(
    self_t: Tensor | None, src_t: Tensor | None, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str,
    include_self: bool, result: Tensor,
) -> Tensor:  # fmt: skip
    """The reduction of the tangents where it is linear. Otherwise each element counts by its gradient, and has one target."""
    # differs from torch: `scatter_reduce` with "prod" has a derivative along tangents. In PyTorch it is 0.
    if reduce in ("sum", "mean"):
        self_t = aten.zeros_like(self) if self_t is None else self_t
        src_t = aten.zeros_like(src) if src_t is None else src_t
        return aten.scatter_reduce__two(self_t, dim, index, src_t, reduce, include_self=include_self)
    of_self, of_src = scatter_reduce_grad(aten.ones_like(result), self, dim, index, src, reduce, include_self, result)
    made = result.new_zeros(result.shape) if self_t is None else conj(of_self) * self_t
    if src_t is None:
        return made
    weighted = conj(of_src) * src_t
    if index.ndim:  # of src, only as much is read as index is long
        weighted = part_of(weighted, index.shape)
    return made.scatter_add(dim, index, weighted)
