"""Pooling, one window after the other."""

from __future__ import annotations

from itertools import product
from math import ceil, floor
from typing import Any

from turnout_conformance.cases.model import OperatorCase, S, T, row, some, whole


def _spots(np: Any, shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """(counts, position -> indices of its window along each dim, which may lie outside)."""
    ndim = len(shape)
    kernel, padding, dilation = (list(v) * (ndim // len(v)) for v in (kernel, padding, dilation))
    stride = list(stride) * (ndim // len(stride)) if stride else kernel
    counts = []
    for n, k, s, p, d in zip(shape, kernel, stride, padding, dilation, strict=True):
        count = (ceil if ceil_mode else floor)((n + 2 * p - d * (k - 1) - 1) / s) + 1
        counts.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)

    def window(spot: Any) -> list[list[int]]:
        each = zip(spot, stride, padding, kernel, dilation, strict=True)
        return [[a * s - p + i * d for i in range(k)] for a, s, p, k, d in each]

    return counts, window


def _inside(window: Any, shape: Any) -> list[tuple[int, ...]]:
    return [at for at in product(*window) if all(0 <= a < n for a, n in zip(at, shape, strict=True))]


def _max_pool(ndim: int) -> Any:
    def reference(
        np: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,), up: bool = False
    ) -> Any:
        shape = x.shape[-ndim:]
        counts, window = _spots(np, shape, kernel, stride, padding, dilation, up)
        return _largest(np, x, ndim, counts, lambda lead, spot: _inside(window(spot), shape))

    return reference


def _largest(np: Any, x: Any, ndim: int, counts: Any, places: Any) -> Any:
    shape = x.shape[-ndim:]
    best, index = np.zeros((*x.shape[:-ndim], *counts), x.dtype), np.zeros((*x.shape[:-ndim], *counts), np.int64)
    for lead in np.ndindex(*x.shape[:-ndim]):
        for spot in product(*map(range, counts)):
            at = max(places(lead, spot), key=lambda a: x[(*lead, *a)])
            best[(*lead, *spot)] = x[(*lead, *at)]
            index[(*lead, *spot)] = np.ravel_multi_index(at, shape)
    return best, index


def _avg_weights(np: Any, shape: Any, kernel: Any, stride: Any, padding: Any, up: bool, count_pad: bool, divisor: Any) -> Any:
    """[positions, elements]: the matrix that takes the mean of each window."""
    counts, window = _spots(np, shape, kernel, stride, padding, (1,), up)
    matrix = np.zeros((*counts, *shape))
    for spot in product(*map(range, counts)):
        own = window(spot)
        reach = zip(own, shape, list(padding) * (len(shape) // len(padding)), strict=True)
        area = np.prod([sum(-p <= a < n + p for a in line) for line, n, p in reach])
        inside = _inside(own, shape)
        for at in inside:
            matrix[(*spot, *at)] = 1 / (divisor or (area if count_pad else len(inside)))
    return matrix


def _avg_pool(ndim: int) -> Any:
    def reference(
        np: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), up: bool = False, count_pad: bool = True,
        divisor: Any = None,
    ) -> Any:  # fmt: skip
        matrix = _avg_weights(np, x.shape[-ndim:], kernel, stride, padding, up, count_pad, divisor)
        made = np.tensordot(x, matrix, (range(x.ndim - ndim, x.ndim), range(ndim, 2 * ndim)))
        return np.trunc(made) if x.dtype.kind == "i" else made.astype(x.dtype)

    return reference


def _avg_pool_backward(ndim: int) -> Any:
    def reference(
        np: Any, g: Any, x: Any, kernel: Any, stride: Any, padding: Any, up: bool, count_pad: bool, divisor: Any
    ) -> Any:
        matrix = _avg_weights(np, x.shape[-ndim:], kernel, stride, padding, up, count_pad, divisor)
        return np.tensordot(g, matrix, (range(x.ndim - ndim, x.ndim), range(ndim)))

    return reference


def _spans(n: int, count: int) -> list[list[int]]:
    return [list(range(floor(i * n / count), ceil((i + 1) * n / count))) for i in range(count)]


def _adaptive_matrix(np: Any, shape: Any, counts: Any) -> Any:
    matrix = np.zeros((*counts, *shape))
    spans = [_spans(n, m) for n, m in zip(shape, counts, strict=True)]
    for spot in product(*map(range, counts)):
        places = list(product(*[span[i] for span, i in zip(spans, spot, strict=True)]))
        for at in places:
            matrix[(*spot, *at)] = 1 / len(places)
    return matrix


def _adaptive_avg(ndim: int) -> Any:
    def reference(np: Any, x: Any, size: Any) -> Any:
        matrix = _adaptive_matrix(np, x.shape[-ndim:], size)
        return np.tensordot(x, matrix, (range(x.ndim - ndim, x.ndim), range(ndim, 2 * ndim)))

    return reference


def _adaptive_avg_backward(ndim: int) -> Any:
    def reference(np: Any, g: Any, x: Any) -> Any:
        matrix = _adaptive_matrix(np, x.shape[-ndim:], g.shape[-ndim:])
        return np.tensordot(g, matrix, (range(x.ndim - ndim, x.ndim), range(ndim)))

    return reference


def _adaptive_max(ndim: int) -> Any:
    def reference(np: Any, x: Any, size: Any) -> Any:
        spans = [_spans(n, m) for n, m in zip(x.shape[-ndim:], size, strict=True)]

        def places(lead: Any, spot: Any) -> Any:
            return list(product(*[span[i] for span, i in zip(spans, spot, strict=True)]))

        return _largest(np, x, ndim, size, places)

    return reference


def _fractional(ndim: int) -> Any:
    def reference(np: Any, x: Any, kernel: Any, size: Any, samples: Any) -> Any:
        order = (1, 0) if ndim == 2 else (0, 1, 2)

        def places(lead: Any, spot: Any) -> Any:
            lines = []
            for i, (a, n, m, k) in enumerate(zip(spot, x.shape[-ndim:], size, kernel, strict=True)):
                u = samples[(*((0,) * (2 - len(lead)) + lead), order[i])]
                step = (n - k) / (m - 1) if m > 1 else 0
                start = n - k if a == m - 1 else int((a + u) * step) - int(u * step)
                lines.append(range(start, start + k))
            return list(product(*lines))

        return _largest(np, x, ndim, size, places)

    return reference


def _at_indices(np: Any, source: Any, indices: Any, shape: Any, ndim: int, add: bool) -> Any:
    made = np.zeros((*source.shape[:-ndim], int(np.prod(shape))), source.dtype)
    for lead in np.ndindex(*source.shape[:-ndim]):
        for value, at in zip(source[lead].reshape(-1), indices[lead].reshape(-1), strict=True):
            made[(*lead, at)] = made[(*lead, at)] * add + value
    return made.reshape(*source.shape[:-ndim], *shape)


X1, X2, X3 = some(2, 2, 5), some(1, 2, 4, 3), some(1, 1, 3, 2, 3)
I2 = T([[[[0, 5], [9, 11]], [[1, 4], [6, 10]]]], "int64")
MAX2, MAX3, AVG1, AVG2, AVG3 = _max_pool(2), _max_pool(3), _avg_pool(1), _avg_pool(2), _avg_pool(3)

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("max_pool2d_with_indices", (S(X2, [2, 2], [1, 1]), S(some(2, 5, 4), [3, 2], [2, 2], [1, 1], [1, 1], True), S(X2, [2, 2], [1, 1], [0, 0], [2, 1])), MAX2),
    row("max_pool3d_with_indices", S(X3, [2, 2, 2], [1, 1, 1], [1, 0, 1]), MAX3),
    row("max_pool1d_with_indices", S(X1, [2], [2], [1]), _max_pool(1)),
    row("max_pool1d", S(X1, [3]), lambda np, *a: _max_pool(1)(np, *a)[0]),
    row("max_pool2d", S(X2, [2, 2]), lambda np, *a: MAX2(np, *a)[0]),
    row("max_pool3d", S(X3, [2, 2, 2], [1, 1, 1]), lambda np, *a: MAX3(np, *a)[0]),
    row("max_pool2d_with_indices_backward", S(some(1, 2, 2, 2), X2, [2, 2], [2, 1], [0, 0], [1, 1], False, I2), lambda np, g, x, k, s, p, d, c, i: _at_indices(np, g, i, x.shape[-2:], 2, True)),
    row("max_pool3d_with_indices_backward", S(some(1, 1, 2, 1, 2), X3, [2, 2, 2], [1, 1, 1], [0, 0, 0], [1, 1, 1], False, T([[[[[0, 8]], [[17, 8]]]]], "int64")), lambda np, g, x, k, s, p, d, c, i: _at_indices(np, g, i, x.shape[-3:], 3, True)),
    row("avg_pool2d", (S(X2, [2, 2], [1, 1]), S(X2, [2, 3], [2, 2], [1, 1], True, False), S(some(1, 1, 4, 4), [3, 3], [2, 2], [1, 1], True), S(T(whole(1, 4, 4)), [2, 2], [2, 2], [0, 0], False, True, 3)), AVG2, ("float32", "float64", "int64")),
    row("avg_pool3d", S(X3, [2, 2, 2], [1, 1, 1], [1, 0, 1]), AVG3),
    row("avg_pool1d", S(X1, [2], [2], [1], True), AVG1),
    row("avg_pool2d_backward", S(some(1, 2, 3, 2), X2, [2, 3], [2, 2], [1, 1], True, True, None), _avg_pool_backward(2)),
    row("avg_pool3d_backward", S(some(1, 1, 2, 1, 2), X3, [2, 2, 2], [1, 1, 1], [0, 0, 0], False, False, 5), _avg_pool_backward(3)),
    row("_adaptive_avg_pool2d", S(X2, [3, 2]), _adaptive_avg(2)),
    row("_adaptive_avg_pool3d", S(X3, [2, 2, 2]), _adaptive_avg(3)),
    row("_adaptive_avg_pool2d_backward", S(some(1, 2, 3, 2), X2), _adaptive_avg_backward(2)),
    row("_adaptive_avg_pool3d_backward", S(some(1, 1, 2, 1, 2), X3), _adaptive_avg_backward(3)),
    row("adaptive_avg_pool1d", S(X1, [3]), _adaptive_avg(1)),
    row("adaptive_avg_pool2d", (S(X2, [3, 2]), S(X2, [1, 1])), _adaptive_avg(2)),
    row("adaptive_avg_pool3d", S(X3, [2, 1, 3]), _adaptive_avg(3)),
    row("adaptive_max_pool1d", S(X1, [3]), _adaptive_max(1)),
    row("adaptive_max_pool2d", S(X2, [3, 2]), _adaptive_max(2)),
    row("adaptive_max_pool3d", S(X3, [2, 1, 2]), _adaptive_max(3)),
    row("fractional_max_pool2d", S(X2, [2, 1], [2, 2], some(1, 2, 2, low=0.1, high=0.9)), _fractional(2)),
    row("fractional_max_pool3d", S(some(1, 3, 4, 3), [1, 2, 1], [2, 2, 2], some(1, 1, 3, low=0.1, high=0.9)), _fractional(3)),
    row("max_unpool2d", S(some(1, 2, 2, 2), I2, [4, 3]), lambda np, x, i, size: _at_indices(np, x, i, size, 2, False)),
    row("max_unpool3d", S(some(1, 1, 1, 2), T([[[[0, 5]]]], "int64"), [1, 2, 3], [1, 1, 1], [0, 0, 0]), lambda np, x, i, size, s, p: _at_indices(np, x, i, size, 3, False)),
)
# fmt: on
