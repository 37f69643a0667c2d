"""Attention: softmax(q k^T scale + mask) v."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, bool_, float32
from turnout.errors import ShapeError
from turnout_aten import operators as aten

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """query [..., L, E], key [..., S, E], value [..., S, D] -> [..., L, D].

    A bool mask is true where attention is allowed; any other mask is added. `is_causal` allows only keys that are not later than
    the query. With `enable_gqa`, several heads (dim -3) of the query share a head of key and value. A row without allowed keys
    gives zeros.
    """
    _check(query, key, value, attn_mask, is_causal)
    computed = float32 if query.dtype.itemsize == 2 else query.dtype
    q, k, v = (t if t.dtype is computed else aten.to__dtype(t, computed) for t in (query, key, value))
    if enable_gqa:
        k, v = _shared(k, q.shape[-3]), _shared(v, q.shape[-3])
    # Each factor gets the square root of the scale, so that the product of large values overflows later.
    factor = 1 / sqrt(query.shape[-1]) if scale is None and query.shape[-1] else 1.0 if scale is None else scale
    sign, root = (-1.0 if factor < 0 else 1.0), sqrt(abs(factor))
    scores = aten.matmul(aten.mul__Scalar(q, sign * root), aten.transpose__int(aten.mul__Scalar(k, root), -2, -1))
    allowed = _causal(scores) if is_causal else attn_mask
    if allowed is not None:
        if allowed.dtype is bool_:
            scores = aten.masked_fill__Scalar(scores, aten.logical_not(allowed), float("-inf"))
        else:
            scores = aten.add__Tensor(scores, aten.to__dtype(allowed, computed))
    weights = aten._softmax(scores, -1, False) if scores.shape[-1] else scores
    if allowed is not None and scores.shape[-1]:
        nothing = aten.all__dim(aten.eq__Scalar(scores, float("-inf")), -1, True)
        weights = aten.masked_fill__Scalar(weights, nothing, 0)
    if dropout_p:
        weights = aten.dropout(weights, dropout_p, True)
    made: Tensor = aten.matmul(weights, v)
    return made if made.dtype is query.dtype else aten.to__dtype(made, query.dtype)


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim < 2:
            raise ShapeError(
                f"scaled_dot_product_attention: '{name}' must have at least 2 dimensions, got shape {list(tensor.shape)}"
            )
        if tensor.dtype is not query.dtype or tensor.dtype.category < FLOAT:
            raise ShapeError(
                f"scaled_dot_product_attention: query, key and value must have one floating-point dtype, got {query.dtype.name}, "
                f"{key.dtype.name} and {value.dtype.name}"
            )
    if attn_mask is not None:
        if is_causal:
            raise ShapeError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
        if attn_mask.dtype is not bool_ and attn_mask.dtype is not query.dtype and attn_mask.dtype is not float32:
            raise ShapeError(
                f"scaled_dot_product_attention: 'attn_mask' must be bool or {query.dtype.name}, got {attn_mask.dtype.name}"
            )


def _causal(scores: Tensor) -> Tensor:
    """True where the key is not later than the query."""
    made: Tensor = aten.tril(aten.new_ones(scores, scores.shape[-2:], dtype=bool_))
    return made


def _shared(x: Tensor, heads: int) -> Tensor:
    """Each head, repeated for the query heads that share it."""
    own = x.shape[-3]
    if own == heads:
        return x
    if not own or heads % own:
        raise ShapeError(f"scaled_dot_product_attention: {heads} heads of the query cannot share {own} of key and value evenly")
    *lead, _, length, width = x.shape
    spread = aten.expand(aten.unsqueeze(x, -3), (*lead, own, heads // own, length, width))
    made: Tensor = aten.reshape(spread, (*lead, heads, length, width))
    return made
