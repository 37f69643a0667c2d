"""Attention in three kernels: the products of queries and keys, their softmax, and the products with values.

Composed of operators, it takes a dozen. Its gradient takes five products, and one kernel between them.

The scores of two-byte floats are float32, as in the composed one, and their products are those of the two-byte floats, which GPUs
multiply faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from turnout_aten.shapes.attention import default_scale
from turnout_cuda.floats import BOOLS, MISSING, OWN, WIDE, Arrays, computed, kind
from turnout_cuda.programs import name_of

Table = dict[str, Any]


class _Attention:
    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.arrays = Arrays(xp)

    def sight(self, mask: Any, scores: Any, weights: Any, is_causal: bool) -> tuple[Any, ...] | None:
        """What kernels are told of a mask: it in the dtype of the scores, in that of the weights, or as bools; which of the three
        it is; how many heads there are, and its steps along dims. None for a mask that has no kernel."""
        given = [scores, weights, self.xp.empty(0, "bool")]
        if mask is None:
            return *given, MISSING, 1, 0, 0, 0, 0
        name, wide, own, ndim = name_of(mask), name_of(scores), name_of(weights), max(scores.ndim, 3)
        whole, shape = ((1,) * (ndim - each.ndim) + each.shape for each in (scores, mask))
        outer, (heads, queries, keys), repeats = shape[:-3], shape[-3:], prod(shape[:-3]) == 1
        fits = len(shape) == ndim and all(n in (1, most) for n, most in zip(shape, whole, strict=True))
        if is_causal or not fits or name not in ("bool", "float32", own) or not (repeats or outer == whole[:-3]):
            return None
        which = BOOLS if name == "bool" else OWN if name == own != wide else WIDE
        given[which - WIDE] = self.arrays.packed(mask, (wide, own, "bool")[which - WIDE])
        steps = (heads * queries * keys * (not repeats), queries * keys * (heads > 1), keys * (queries > 1), int(keys > 1))
        return *given, which, whole[-3], *steps

    def forward(
        self, query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None,
        enable_gqa: bool,
    ) -> Any:  # fmt: skip
        dtype, lead, xp = kind(query, key, value), query.shape[:-2], self.xp
        if dtype is None or dropout_p or query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
            return NotImplemented
        (length, width), (keys, depth) = query.shape[-2:], value.shape[-2:]
        if key.shape != (*lead, keys, width) or value.shape[:-2] != lead or not prod((*query.shape, keys, depth)):
            return NotImplemented
        scores = xp.empty((*lead, length, keys), computed(dtype))
        weights = scores if scores.dtype == query.dtype else xp.empty(scores.shape, query.dtype)
        sight = self.sight(attn_mask, scores, weights, is_causal)
        if sight is None:
            return NotImplemented
        factor = default_scale(width) if scale is None else float(scale)
        xp.products.multiply(query, xp.swapaxes(key, -1, -2), scores, alpha=factor)
        rows = prod(lead) * length
        args = (scores, weights, *sight, rows, keys, length, int(is_causal))
        xp.programs.over_rows("softmax_of_scores", dtype, rows, keys, args)
        return xp.products.multiply(weights, value)

    def backward(
        self, grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float,
        output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        dtype, lead, xp, products = kind(grad, query, key, value), query.shape[:-2], self.xp, self.xp.products
        (length, width), (keys, depth) = query.shape[-2:], value.shape[-2:]
        fits = key.shape == (*lead, keys, width) and value.shape[:-2] == lead and grad.shape == (*lead, length, depth)
        if dtype is None or not fits or not prod((*query.shape, keys, depth)):
            return NotImplemented
        scores, slopes = (xp.empty((*lead, length, keys), computed(dtype)) for _ in range(2))
        same = scores.dtype == query.dtype
        weights, made = (each if same else xp.empty(each.shape, query.dtype) for each in (scores, slopes))
        sight = self.sight(attn_mask, scores, weights, is_causal)
        if sight is None:
            return NotImplemented
        # Each is read twice: what lies otherwise than cuBLAS reads it is copied once.
        grad, query, key, value = (products.placed(each) for each in (grad, query, key, value))
        products.multiply(query, xp.swapaxes(key, -1, -2), scores, alpha=scale)
        products.multiply(grad, xp.swapaxes(value, -1, -2), slopes)
        rows = prod(lead) * length
        args = (scores, slopes, weights, made, *sight, rows, keys, length, int(is_causal), float(scale))
        xp.programs.over_rows("softmax_of_scores_backward", dtype, rows, keys, args)
        turned, shown = xp.swapaxes(made, -1, -2), xp.swapaxes(weights, -1, -2)
        factors = zip(output_mask, ((made, key), (turned, query), (shown, grad)), strict=True)
        return tuple([products.multiply(*pair) if wanted else None for wanted, pair in factors])


def kernels(xp: Any) -> Table:
    """The rows of this module."""
    return {"scaled_dot_product_attention": _Attention(xp).forward}


def gradients(xp: Any) -> Table:
    """The row of the operator that is attention's gradient."""
    return {"attention_backward": _Attention(xp).backward}
