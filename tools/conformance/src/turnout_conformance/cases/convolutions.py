"""Convolutions and the columns of their windows, against the definition: a sum over all pairs that a kernel element brings together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from turnout_conformance.cases.model import OperatorCase, S, T, row, some, whole


def _pairs(image: Any, kernel: Any, result: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Iterator[Any]:
    """(index in the result, in the image, in the weights) of every product that a convolution adds up."""
    n, _, *lengths = image
    filters, depth, *sizes = kernel
    spots = list(product(*map(range, result)))
    for offset in product(*map(range, sizes)):
        for spot in spots:
            at = tuple(p * s - q + k * d for p, s, q, k, d in zip(spot, stride, padding, offset, dilation, strict=True))
            if not all(0 <= a < m for a, m in zip(at, lengths, strict=True)):
                continue
            for b, f, c in product(range(n), range(filters), range(depth)):
                group = f // (filters // groups)
                yield (b, f, *spot), (b, group * depth + c, *at), (f, c, *offset)


def _each(value: Any, ndim: int) -> list[int]:
    return list(value) * (ndim // len(value)) if isinstance(value, (list, tuple)) else [value] * ndim


def _convolution(
    np: Any, x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, extra: Any, groups: int
) -> Any:
    ndim = x.ndim - 2
    stride, padding, dilation, extra = (_each(v, ndim) for v in (stride, padding, dilation, extra))
    sizes = list(zip(x.shape[2:], w.shape[2:], stride, padding, dilation, extra, strict=True))
    if transposed:
        out = [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in sizes]
        made = np.zeros((x.shape[0], w.shape[1] * groups, *out), x.dtype)
        for small, large, weight in _pairs(made.shape, w.shape, x.shape[2:], stride, padding, dilation, groups):
            made[large] += x[small] * w[weight]
    else:
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in sizes]
        made = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
        for small, large, weight in _pairs(x.shape, w.shape, out, stride, padding, dilation, groups):
            made[small] += x[large] * w[weight]
    return made if b is None else made + b.reshape(-1, *(1,) * ndim)


def _plain(np: Any, x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    single = x.ndim == w.ndim - 1
    ndim = w.ndim - 2
    x = x[None] if single else x
    if isinstance(padding, str):
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(_each(dilation, ndim), w.shape[2:], strict=True)]
        x = np.pad(x, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in total]])
        padding = 0
    made = _convolution(np, x, w, b, stride, padding, dilation, False, 0, groups)
    return made[0] if single else made


def _transposed(
    np: Any, x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, extra: Any = 0, groups: int = 1, dilation: Any = 1
) -> Any:
    return _convolution(np, x, w, b, stride, padding, dilation, True, extra, groups)


def _backward(
    np: Any, g: Any, x: Any, w: Any, sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any,
    groups: int, mask: Any,
) -> Any:  # fmt: skip
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    image, spots = (g.shape, x.shape[2:]) if transposed else (x.shape, g.shape[2:])
    for small, large, weight in _pairs(image, w.shape, spots, stride, padding, dilation, groups):
        if transposed:
            dx[small] += g[large] * w[weight]
            dw[weight] += g[large] * x[small]
        else:
            dx[large] += g[small] * w[weight]
            dw[weight] += g[small] * x[large]
    return dx, dw, g.sum((0, *range(2, g.ndim)))


def _im2col(np: Any, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    n, c = x.shape[:2]
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    rows = [(x.shape[i + 2] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    made = np.empty((n, c, *kernel, *rows), x.dtype)
    for i, j, p, q in product(*map(range, (*kernel, *rows))):
        made[:, :, i, j, p, q] = x[:, :, p * stride[0] + i * dilation[0], q * stride[1] + j * dilation[1]]
    return made.reshape(n, c * kernel[0] * kernel[1], rows[0] * rows[1])


def _col2im(np: Any, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """The transposed matrix of im2col, applied to the columns."""
    n, rows = x.shape[:2]
    c = rows // (kernel[0] * kernel[1])
    units = np.eye(size[0] * size[1], dtype=x.dtype).reshape(-1, 1, *size)
    matrix = _im2col(np, units, kernel, dilation, padding, stride).reshape(size[0] * size[1], -1)
    return (x.reshape(n * c, -1) @ matrix.T).reshape(n, c, *size)


X1, W1 = some(1, 2, 5), some(2, 2, 2, seed=3)
X2, W2 = some(2, 2, 4, 3), some(2, 1, 2, 2, seed=3)
X3, W3 = some(1, 1, 2, 3, 2), some(2, 1, 1, 2, 2, seed=3)
B = some(2, seed=5)
NUMBERS = ("float32", "float64", "int64")

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("convolution", (
        S(X2, W2, B, [1, 2], [1, 0], [2, 1], False, [0, 0], 2),
        S(X2, W2, None, [2, 1], [0, 1], [1, 2], True, [1, 0], 2),
        S(X1, W1, B, [2], [1], [1], False, [0], 1),
    ), _convolution, tolerance=1e-8),
    row("convolution_backward", (
        S(some(2, 2, 4, 2, seed=7), X2, W2, [2], [1, 2], [1, 1], [2, 1], False, [0, 0], 2, [True, True, True]),
        S(some(1, 2, 6, seed=7), X1, W1, [2], [1], [0], [1], True, [0], 1, [True, True, True]),
    ), _backward, tolerance=1e-8),
    row("conv1d", (S(X1, W1, B, [2], [1]), S(some(2, 4), W1)), _plain, tolerance=1e-8),
    row("conv2d", S(T(whole(1, 2, 4, 3)), T(whole(2, 2, 3, 2, seed=3)), T(whole(2)), [1, 2], [1, 0]), _plain, NUMBERS, tolerance=1e-8),
    row("conv3d", S(X3, W3, B, [1, 1, 1], [0, 1, 0]), _plain, tolerance=1e-8),
    row("conv1d.padding", S(X1, W1, None, [1], "same"), _plain, tolerance=1e-8),
    row("conv2d.padding", (S(X2, some(1, 2, 2, 3, seed=3), None, [1, 1], "same"), S(X2, W2, None, [2, 2], "valid", [1, 1], 2)), _plain, tolerance=1e-8),
    row("conv3d.padding", S(X3, W3, None, [1, 1, 1], "same"), _plain, tolerance=1e-8),
    row("conv_transpose1d", S(X1, W1, B, [2], [1], [1]), _transposed, tolerance=1e-8),
    row("conv_transpose2d.input", S(X2, W2, B, [2, 2], [1, 1], [1, 0], 2), lambda np, x, w, b, *rest: _transposed(np, x, w, b, *rest), tolerance=1e-8),
    row("conv_transpose3d.input", S(X3, some(1, 2, 1, 2, 2, seed=3), B), _transposed, tolerance=1e-8),
    row("im2col", (S(some(1, 2, 4, 3), [2, 2], [1, 1], [1, 0], [2, 1]), S(some(1, 1, 4, 5), [2, 2], [2, 3], [0, 0], [1, 1])), _im2col),
    row("col2im", S(some(1, 8, 6), [4, 3], [2, 2], [1, 1], [1, 0], [2, 1]), _col2im),
)
# fmt: on
