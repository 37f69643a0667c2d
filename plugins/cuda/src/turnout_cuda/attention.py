"""Attention in three kernels: the products of queries and keys, their softmax, and the products with values.

Composed of operators, it takes a dozen. The scores of two-byte floats are float32, as in the composed one, and their products are
those of the two-byte floats, which GPUs multiply faster.
"""

from __future__ import annotations

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
