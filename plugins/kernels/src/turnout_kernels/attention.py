"""The row of attention: some queries at a time, so that the matrix of all scores is never there."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from turnout_kernels.native import code, plain, run

# Queries at a time: their scores for 1024 keys are half a megabyte.
_QUERIES = 128


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> Any:
    if attn_mask is not None or dropout_p or enable_gqa or query.ndim < 3 or not plain(query, key, value):
        return NotImplemented
    lead, (length, width) = query.shape[:-2], query.shape[-2:]
    keys, depth = value.shape[-2:]
    fits = key.shape == (*lead, keys, width) and value.shape[:-2] == lead and query.size and keys and depth
    if not fits:
        return NotImplemented
    factor = query.dtype.type(1 / sqrt(width) if scale is None else scale)
    made = np.empty((*lead, length, depth), query.dtype)
    q, k, v = (a.reshape(-1, *a.shape[-2:]) for a in (query * factor, key, value))
    later = np.triu(np.full((_QUERIES, _QUERIES), -np.inf, query.dtype), 1) if is_causal else None
    for head, out in enumerate(made.reshape(-1, length, depth)):
        for first in range(0, length, _QUERIES):
            last = min(first + _QUERIES, length)
            seen = min(last, keys) if is_causal else keys
            scores = np.matmul(q[head, first:last], k[head, :seen].T)
            if later is not None and seen > first:
                scores[:, first:] += later[: last - first, : seen - first]
            run("softmax", (scores,), (scores,), (code(scores), seen, 0))
            np.matmul(scores, v[head, :seen], out[first:last])
    return made


KERNELS_BY_OPERATOR: dict[str, Any] = {"scaled_dot_product_attention": scaled_dot_product_attention}
