"""Attention in three kernels: the products of queries and keys, their softmax, and the products with values.

Composed of operators, it takes a dozen. Its gradient takes five products, and one kernel between them.

The scores of two-byte floats are float32, as in the composed one, and their products are those of the two-byte floats, which GPUs
multiply faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

from turnout_cuda.floats import computed, kind

Table = dict[str, Any]


def kernels(xp: Any) -> Table:
    """The rows of this module."""

    def scaled_dot_product_attention(
        query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None, enable_gqa: bool
    ) -> Any:
        dtype, lead = kind(query, key, value), query.shape[:-2]
        if dtype is None or attn_mask is not None or dropout_p or query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
            return NotImplemented
        (length, width), (keys, depth) = query.shape[-2:], value.shape[-2:]
        if key.shape != (*lead, keys, width) or value.shape[:-2] != lead or not prod((*query.shape, keys, depth)):
            return NotImplemented
        scores = xp.empty((*lead, length, keys), computed(dtype))
        factor = 1 / sqrt(width) if scale is None else float(scale)
        xp.products.multiply(query, xp.swapaxes(key, -1, -2), scores, alpha=factor)
        weights = scores if scores.dtype == query.dtype else xp.empty(scores.shape, query.dtype)
        rows = prod(lead) * length
        args = (scores, weights, rows, keys, length, int(is_causal))
        xp.programs.over_rows("softmax_of_scores", dtype, rows, keys, args)
        return xp.products.multiply(weights, value)

    return {"scaled_dot_product_attention": scaled_dot_product_attention}


def gradients(xp: Any) -> Table:
    """The row of the operator that is attention's gradient."""
    products = xp.products

    def attention_backward(
        grad: Any, query: Any, key: Any, value: Any, is_causal: bool, scale: float, output_mask: Sequence[bool]
    ) -> Any:
        dtype, lead = kind(grad, query, key, value), query.shape[:-2]
        (length, width), (keys, depth) = query.shape[-2:], value.shape[-2:]
        fits = key.shape == (*lead, keys, width) and value.shape[:-2] == lead and grad.shape == (*lead, length, depth)
        if dtype is None or not fits or not prod((*query.shape, keys, depth)):
            return NotImplemented
        # Each is read twice: what lies otherwise than cuBLAS reads it is copied once.
        grad, query, key, value = (products.placed(each) for each in (grad, query, key, value))
        scores, slopes = (xp.empty((*lead, length, keys), computed(dtype)) for _ in range(2))
        products.multiply(query, xp.swapaxes(key, -1, -2), scores, alpha=scale)
        products.multiply(grad, xp.swapaxes(value, -1, -2), slopes)
        same = scores.dtype == query.dtype
        weights, made = (each if same else xp.empty(each.shape, query.dtype) for each in (scores, slopes))
        rows = prod(lead) * length
        args = (scores, slopes, weights, made, rows, keys, length, int(is_causal), float(scale))
        xp.programs.over_rows("softmax_of_scores_backward", dtype, rows, keys, args)
        turned, shown = xp.swapaxes(made, -1, -2), xp.swapaxes(weights, -1, -2)
        factors = zip(output_mask, ((made, key), (turned, query), (shown, grad)), strict=True)
        return tuple([products.multiply(*pair) if wanted else None for wanted, pair in factors])

    return {"attention_backward": attention_backward}
