"""The row of attention: all heads at once where they are small, else some queries of some heads at a time, so that the matrix of
all scores is never there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any

import numpy as np

from turnout_aten.shapes.attention import default_scale
from turnout_kernels.matrix_products import multiply
from turnout_kernels.native import code, instructions, run

# Queries at a time: their scores for 1024 keys are half a megabyte.
_QUERIES = 128
# Scores of all heads up to which they are computed at once
_FEW = 1 << 16
# Bytes of the scores of some heads, which threads share: a few megabytes stay in their caches.
_SCORES = 1 << 22


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> Any:
    if dropout_p or enable_gqa or query.ndim < 3 or query.dtype.char not in "fd" or (is_causal and attn_mask is not None):
        return NotImplemented
    lead, (length, width), dtype = query.shape[:-2], query.shape[-2:], query.dtype
    keys, depth = value.shape[-2:]
    fits = key.shape == (*lead, keys, width) and value.shape[:-2] == lead and key.dtype == value.dtype == dtype
    if not fits or not query.size or not keys or not depth or not _spreads(attn_mask, (*lead, length, keys), dtype):
        return NotImplemented
    made = np.empty((*lead, length, depth), dtype)
    q = query * dtype.type(default_scale(width) if scale is None else scale)
    mask = None if attn_mask is None else np.broadcast_to(attn_mask, (*lead, length, keys))
    for head in _heads(lead, length * keys, min(length, _QUERIES) * keys * dtype.itemsize):
        for first in range(0, length, _QUERIES):
            last = min(first + _QUERIES, length)
            seen = min(last, keys) if is_causal else keys
            some, out = q[head][..., first:last, :], made[head][..., first:last, :]
            scores = np.empty((*some.shape[:-1], seen), dtype)
            multiply(some, key[head][..., :seen, :].swapaxes(-1, -2), scores)
            if is_causal and seen > first:
                scores[..., first:] += _later(dtype.char)[: last - first, : seen - first]
            nothing = None if mask is None else _masked(scores, mask[head][..., first:last, :])
            run("softmax", (scores,), (scores,), (code(scores), seen, 0))
            if nothing is not None:
                np.copyto(scores, 0, where=nothing)
            multiply(scores, value[head][..., :seen, :], out)
    return made


def _heads(lead: tuple[int, ...], scores: int, room: int) -> Iterator[Any]:
    """Which heads are computed at once, as indices: all, or some of the last dim. A head has that many scores, and needs
    that many bytes at a time."""
    if prod(lead) * scores <= _FEW:
        yield ...
        return
    step = max(1, _SCORES // room) if instructions() == "avx512" else 1  # products of BLAS are shared one by one
    for outer in np.ndindex(lead[:-1]):
        for first in range(0, lead[-1], step):
            yield (*outer, slice(first, first + step))


def _spreads(mask: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether a mask is one that attention takes, and can be repeated to the shape of the scores."""
    if mask is None:
        return True
    if mask.dtype.char not in ("?", "f", dtype.char) or mask.ndim > len(shape):
        return False
    return all(own in (1, length) for own, length in zip(mask.shape[::-1], shape[::-1], strict=False))


def _masked(scores: Any, mask: Any) -> Any:
    """Masks the scores; the rows that allow no key, or None if there is no such row."""
    if mask.dtype.char == "?":
        np.copyto(scores, -np.inf, where=~mask)
    else:
        scores += mask
    nothing = scores.max(-1, keepdims=True) == -np.inf
    return nothing if nothing.any() else None


@cache
def _later(char: str) -> Any:
    """What is added to the scores of keys that come after the query."""
    return np.triu(np.full((_QUERIES, _QUERIES), -np.inf, char), 1)


KERNELS: dict[str, Any] = {"scaled_dot_product_attention": scaled_dot_product_attention}
