"""Layers without parameters of their own: dropout, embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import bool_
from turnout.errors import ShapeError, TurnoutError
from turnout.generated import operators as aten

if TYPE_CHECKING:
    from turnout.tensors import Tensor


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of weight [n, d] that the indices name. Row `padding_idx` gets no gradient."""
    if weight.ndim != 2:
        raise ShapeError(f"embedding: 'weight' must have 2 dimensions, got shape {list(weight.shape)}")
    if scale_grad_by_freq or sparse:
        raise TurnoutError("embedding: scale_grad_by_freq and sparse gradients are not supported; leave both False")
    flat = aten.reshape(indices, (-1,))
    rows: Tensor = aten.index_select(weight, 0, flat)
    if padding_idx >= 0:
        padding = aten.unsqueeze(aten.eq__Scalar(flat, padding_idx), 1)
        rows = aten.where__self(padding, aten.detach(rows), rows)
    rows = aten.reshape(rows, (*indices.shape, weight.shape[1]))
    return rows


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise TurnoutError(f"dropout: p must lie between 0 and 1, got {p}")


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """In training, each element 0 with probability p and the others divided by 1 - p; else the input."""
    _check_probability(p)
    if not train or p == 0 or not input.numel():
        return input
    made: Tensor = aten.native_dropout(input, p, train)[0]
    return made


def dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """The same in place."""
    _check_probability(p)
    if train and p != 0 and self.numel():
        noise = aten.bernoulli__p(aten.empty_like(self), 1 - p)
        aten.mul___Tensor(self, noise if p == 1 else aten.div__Scalar(noise, 1 - p))
    return self


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(output, mask): the mask is true where an element was kept."""
    if train is False or not input.numel():
        return aten.clone(input), aten.ones_like(input, dtype=bool_)
    _check_probability(p)
    mask = aten.to__dtype(aten.bernoulli__p(aten.empty_like(input), 1 - p), bool_)
    return native_dropout_backward(input, mask, 0.0 if p == 1 else 1 / (1 - p)), mask


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """grad_output * mask * scale."""
    made: Tensor = aten.mul__Scalar(aten.mul__Tensor(grad_output, mask), scale)
    return made
