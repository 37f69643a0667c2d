"""Attention: softmax(q k^T scale + mask) v."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, bool_, float32
from turnout.errors import ArgumentError, DimError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.conversions import converted
from turnout_aten.composites.layouts import lying
from turnout_aten.dtypes import WIDE
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.attention import default_scale
from turnout_aten.shapes.layouts import as_operands, ordered

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
    if enable_gqa:
        ranks = query.ndim, key.ndim, value.ndim
        if min(ranks) < 3:
            raise DimError(f"scaled_dot_product_attention: enable_gqa needs tensors of at least 3 dimensions, got {list(ranks)}")
        key, value = _shared(key, query.shape[-3]), _shared(value, query.shape[-3])
    weights, v = attention_weights(query, key, value, is_causal, attn_mask, scale)
    if dropout_p:
        weights = aten.dropout(weights, dropout_p, True)
    return converted(aten.matmul(weights, v), query.dtype)


def attention_weights(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: float | None
) -> tuple[Tensor, Tensor]:
    """The weights [..., L, S], and the value, in the dtype of the computation."""
    scores, v = _scores(query, key, value, is_causal, attn_mask, scale)
    weights = aten._softmax(scores, -1, False) if scores.shape[-1] else scores
    if (is_causal or attn_mask is not None) and scores.shape[-1]:
        nothing = aten.all__dim(aten.eq__Scalar(scores, float("-inf")), -1, True)
        weights = aten.masked_fill__Scalar(weights, nothing, 0)
    return weights, v


# How results of flash attention lie: all heads of a place beside each other.
_BY_PLACES = (0, 2, 1, 3)


def flash_attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention of [B, H, L, E], and the logarithms of the sums of its exponentials [B, H, L]; a row without keys gives zeros."""
    _check_flash(query, key, value, dropout_p, attn_mask)
    scores, v = _scores(query, key, value, is_causal, attn_mask, scale)
    found = aten.logsumexp(scores, (-1,)) if scores.shape[-1] else aten.new_zeros(scores, scores.shape[:-1])
    total = aten.masked_fill__Scalar(found, aten.eq__Scalar(found, float("-inf")), 0)
    weights = aten.exp(aten.sub__Tensor(scores, aten.unsqueeze(total, -1)))
    made = converted(aten.matmul(weights, v), query.dtype)
    return lying(made, as_operands(made.shape, query)), lying(total, ordered(total.shape, _BY_PLACES[:3]))


def flash_attention_backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float,
    is_causal: bool, *, attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `flash_attention` for query, key and value, from its results."""
    _check_flash(query, key, value, dropout_p, attn_mask)
    scores, v = _scores(query, key, value, is_causal, attn_mask, scale)
    grad, result, q, k = (aten.to__dtype(each, scores.dtype) for each in (grad_out, out, query, key))
    weights = aten.exp(aten.sub__Tensor(scores, aten.unsqueeze(logsumexp, -1)))
    of_weights = aten.matmul(grad, aten.transpose__int(v, -2, -1))
    own = aten.sum__dim_IntList(aten.mul__Tensor(grad, result), (-1,), True)
    of_scores = aten.mul__Scalar(aten.mul__Tensor(weights, aten.sub__Tensor(of_weights, own)), _factor(query, scale))
    gradients = (
        aten.matmul(of_scores, k), aten.matmul(aten.transpose__int(of_scores, -2, -1), q),
        aten.matmul(aten.transpose__int(weights, -2, -1), grad),
    )  # fmt: skip
    laid = (lying(aten.to__dtype(each, query.dtype), ordered(each.shape, _BY_PLACES)) for each in gradients)
    of_query, of_key, of_value = laid
    return of_query, of_key, of_value


def _scores(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: float | None
) -> tuple[Tensor, Tensor]:
    """The scaled and masked products of query and key, and the value, in the dtype of the computation."""
    computed = WIDE[query.dtype]
    q, k, v = converted(query, computed), converted(key, computed), converted(value, computed)
    factor = _factor(query, scale)
    sign, root = (-1.0 if factor < 0 else 1.0), sqrt(abs(factor))
    # Each factor gets the square root of the scale, so that the product of large values overflows later.
    scores = aten.matmul(aten.mul__Scalar(q, sign * root), aten.transpose__int(aten.mul__Scalar(k, root), -2, -1))
    if is_causal:
        scores = aten.masked_fill__Scalar(scores, aten.logical_not(_causal(scores)), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype is bool_:
            scores = aten.masked_fill__Scalar(scores, aten.logical_not(attn_mask), float("-inf"))
        else:
            scores = aten.add__Tensor(scores, aten.to__dtype(attn_mask, computed))
    return scores, v


def _factor(query: Tensor, scale: float | None) -> float:
    return default_scale(query.shape[-1]) if scale is None else scale


def _check_flash(query: Tensor, key: Tensor, value: Tensor, dropout_p: float, attn_mask: Tensor | None) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim != 4:
            raise ShapeError(
                f"_scaled_dot_product_flash_attention_for_cpu: '{name}' must have 4 dimensions, got shape {list(tensor.shape)}"
            )
    if dropout_p:
        raise ArgumentError(f"_scaled_dot_product_flash_attention_for_cpu: expected dropout_p=0, got {dropout_p}")
    _check(query, key, value, attn_mask, False)


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim < 2:
            raise ShapeError(texts.few_dims("scaled_dot_product_attention", name, 2, tensor.shape))
        if tensor.dtype is not query.dtype or tensor.dtype.category < FLOAT:
            raise DTypeError(
                f"scaled_dot_product_attention: query, key and value must have one floating-point dtype, got {query.dtype.name}, "
                f"{key.dtype.name} and {value.dtype.name}"
            )
    if attn_mask is not None:
        if is_causal:
            raise ArgumentError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
        if attn_mask.dtype is not bool_ and attn_mask.dtype is not query.dtype and attn_mask.dtype is not float32:
            raise DTypeError(
                f"scaled_dot_product_attention: 'attn_mask' must be bool or {query.dtype.name}, got {attn_mask.dtype.name}"
            )


def _causal(scores: Tensor) -> Tensor:
    """True where the key is not later than the query."""
    return aten.tril(aten.new_ones(scores, scores.shape[-2:], dtype=bool_))


def _shared(x: Tensor, heads: int) -> Tensor:
    """Each head, repeated for the query heads that share it."""
    own = x.shape[-3]
    if own == heads:
        return x
    if not own or heads % own:
        raise ShapeError(f"scaled_dot_product_attention: {heads} heads of the query cannot share {own} of key and value evenly")
    *lead, _, length, width = x.shape
    spread = aten.expand(aten.unsqueeze(x, -3), (*lead, own, heads // own, length, width))
    return aten.reshape(spread, (*lead, heads, length, width))
