"""Padding, interpolation and sampling of images, element by element."""

from __future__ import annotations

from itertools import product
from math import floor
from typing import Any

from turnout_conformance.cases.model import OperatorCase, S, T, row, some, whole


def _pad(mode: str) -> Any:
    def reference(np: Any, x: Any, pad: Any, *rest: Any, **named: Any) -> Any:
        width = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
        cut = tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, width, strict=True))
        return np.pad(x[cut], [(max(b, 0), max(a, 0)) for b, a in width], mode, **named)

    return reference


def _constant(np: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    return _pad("constant")(np, x, pad, constant_values=value)


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _lanczos(np: Any, x: float) -> float:
    return float(np.sinc(x) * np.sinc(x / 3)) if abs(x) < 3 else 0.0


def _matrix(np: Any, mode: str, n: int, m: int, align: bool) -> Any:
    """[m, n]: the weights of the elements of a line in each element of the resized one."""
    step = ((n - 1) / (m - 1) if m > 1 else 0.0) if align else n / m
    made = np.zeros((m, n))
    smooth = {
        "linear-aa": (1, lambda x: max(1 - abs(x), 0)),
        "cubic-aa": (2, lambda x: _cubic(x, -0.5)),
        "lanczos-aa": (3, lambda x: _lanczos(np, x)),
    }
    for i in range(m):
        if mode in ("nearest", "exact"):
            made[i, min(floor((i + 0.5 * (mode == "exact")) * step + 1e-9), n - 1)] = 1
            continue
        if mode in smooth:
            half, weight = smooth[mode]
            wide = max(step, 1)
            centre = (i + 0.5) * step
            for j in range(max(int(centre - half * wide + 0.5), 0), min(int(centre + half * wide + 0.5), n)):
                made[i, j] = weight((j - centre + 0.5) / wide)
            made[i] /= made[i].sum()
            continue
        at = i * step if align else (i + 0.5) * step - 0.5
        if mode == "linear":
            at = min(max(at, 0), n - 1)
            for j in range(n):
                made[i, j] = max(1 - abs(at - j), 0)
        else:
            for j in range(floor(at) - 1, floor(at) + 3):
                made[i, min(max(j, 0), n - 1)] += _cubic(at - j, -0.75)
    return made


def _resized(mode: str, copies: bool = False) -> Any:
    def reference(np: Any, x: Any, size: Any, *rest: Any) -> Any:
        align = not copies and bool(rest[0])
        return _mixed(np, x, [_matrix(np, mode, n, m, align) for n, m in zip(x.shape[2:], size, strict=True)], 1)

    return reference


def _resized_backward(mode: str, copies: bool = False) -> Any:
    def reference(np: Any, g: Any, size: Any, own: Any, *rest: Any) -> Any:
        align = not copies and bool(rest[0])
        return _mixed(np, g, [_matrix(np, mode, n, m, align) for n, m in zip(own[2:], size, strict=True)], 0)

    return reference


def _mixed(np: Any, x: Any, matrices: Any, side: int) -> Any:
    """An image times a matrix along each dim: along the matrix's columns, 1, or its rows, 0."""
    for dim, matrix in enumerate(matrices, 2):
        x = np.moveaxis(np.tensordot(x, matrix.astype(x.dtype), (dim, side)), -1, dim)
    return x


def _by_scale(mode: str, copies: bool = False) -> Any:
    def reference(np: Any, x: Any, size: Any, *rest: Any) -> Any:
        scales = rest[-1]
        wanted = size if size is not None else [int(n * s) for n, s in zip(x.shape[2:], scales, strict=True)]
        return _resized(mode, copies)(np, x, wanted, *rest)

    return reference


def _sampled(np: Any, x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    lengths = x.shape[2:]
    made = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)

    def inside(v: float, n: int) -> float:
        if padding == 2:
            low, high = (0, n - 1) if align else (-0.5, n - 0.5)
            v = abs(v - low) % (2 * (high - low))
            v = low + min(v, 2 * (high - low) - v)
        return min(max(v, 0), n - 1) if padding else v

    for spot in np.ndindex(grid.shape[:-1]):
        at = [((g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2) for g, n in zip(grid[spot][::-1], lengths, strict=True)]
        choices: list[list[tuple[float, float]]] = []
        for v, n in zip(at, lengths, strict=True):
            if mode == 2:
                choices.append([(inside(j, n), _cubic(v - j, -0.75)) for j in range(floor(v) - 1, floor(v) + 3)])
            else:
                w = inside(v, n)
                near: list[tuple[float, float]] = (
                    [(round(w), 1.0)] if mode == 1 else [(floor(w), 1 - w + floor(w)), (floor(w) + 1, w - floor(w))]
                )
                choices.append(near)
        for corner in product(*choices):
            place = tuple(int(j) for j, _ in corner)
            if all(0 <= j < n for j, n in zip(place, lengths, strict=True)):
                weight = np.prod([w for _, w in corner])
                made[(spot[0], slice(None), *spot[1:])] += weight * x[(spot[0], slice(None), *place)]
    return made


def _affine(np: Any, theta: Any, size: Any, align: bool) -> Any:
    lengths = size[2:]
    lines = [(np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1) for n in lengths]
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(lengths)], -1)
    return np.einsum("...k,njk->n...j", points, theta).astype(theta.dtype)


def _shuffled(np: Any, x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    n = len(lead)
    split = x.reshape(*lead, c // r**2, r, r, h, w)
    return split.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // r**2, h * r, w * r)


def _unshuffled(np: Any, x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    n = len(lead)
    split = x.reshape(*lead, c, h // r, r, w // r, r)
    return split.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r**2, h // r, w // r)


X1, X2, X3 = some(1, 2, 3), some(1, 2, 3, 2), some(1, 1, 2, 2, 3)
IMAGES = {1: X1, 2: X2, 3: X3}
SIZES = {1: [5], 2: [4, 3], 3: [3, 2, 4]}
GRID2 = some(1, 2, 2, 2, low=-1.3, high=1.3, seed=5)
GRID3 = some(1, 1, 1, 2, 3, low=-1.2, high=1.2, seed=5)


def _interpolations() -> Any:
    """Each interpolation by size, its gradient, and its overload by size or scales."""
    table = [("upsample_nearest", "nearest", (1, 2, 3)), ("_upsample_nearest_exact", "exact", (1, 2, 3))]
    for stem, mode, ndims in table:
        for n in ndims:
            yield from _interpolation(f"{stem}{n}d", mode, n, ())
    for op, mode, n in (
        ("upsample_linear1d", "linear", 1), ("upsample_bilinear2d", "linear", 2), ("upsample_trilinear3d", "linear", 3),
        ("upsample_bicubic2d", "cubic", 2), ("_upsample_bilinear2d_aa", "linear-aa", 2),
        ("_upsample_bicubic2d_aa", "cubic-aa", 2), ("_upsample_lanczos2d_aa", "lanczos-aa", 2),
    ):  # fmt: skip
        yield from _interpolation(op, mode, n, (False,))


def _interpolation(op: str, mode: str, n: int, align: Any) -> Any:
    x, size, copies = IMAGES[n], SIZES[n], not align
    samples = [S(x, size, *align)]
    if align and "aa" not in mode:
        samples.append(S(x, [2] * n, True))
    yield row(op, tuple(samples), _resized(mode, copies), tolerance=1e-5)
    shape = {1: (1, 2, 3), 2: (1, 2, 3, 2), 3: (1, 1, 2, 2, 3)}[n]
    grad = some(*shape[:2], *size, seed=7)
    yield row(f"{op}_backward", S(grad, size, list(shape), *align), _resized_backward(mode, copies), tolerance=1e-5)
    yield row(f"{op}.vec", S(x, None, *align, [2.0] * n), _by_scale(mode, copies), tolerance=1e-5)


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("constant_pad_nd", (S(T(whole(2, 3)), [1, 0, -1, 2], 7), S(T(whole(3)), [-1, -1])), _constant, ("float32", "float64", "int64")),
    row("pad", (S(X1, [1, 2], "reflect"), S(X2, [1, -1]), S(X1, [1, 0], "constant", 3.0)), lambda np, x, pad, mode="constant", value=0: _pad(mode)(np, x, pad, **({"constant_values": value} if mode == "constant" else {}))),
    row("_pad_circular", S(X2, [1, 2, 0, 1]), _pad("wrap")),
    row("reflection_pad1d", S(X1, [1, 2]), _pad("reflect")),
    row("reflection_pad2d", S(X2, [1, 0, 1, 2]), _pad("reflect")),
    row("reflection_pad3d", S(X3, [1, 2, 0, 1, 1, 0]), _pad("reflect")),
    row("replication_pad1d", S(X1, [1, 2]), _pad("edge")),
    row("replication_pad2d", S(X2, [1, 0, -1, 2]), _pad("edge")),
    row("replication_pad3d", S(X3, [1, 2, 0, 1, 1, 0]), _pad("edge")),
    *_interpolations(),
    row("grid_sampler", S(X2, GRID2, 0, 0, False), _sampled, tolerance=1e-7),
    row("grid_sampler_2d", (S(X2, GRID2, 0, 1, True), S(X2, GRID2, 1, 0, False), S(X2, GRID2, 2, 2, False)), _sampled, tolerance=1e-7),
    row("grid_sampler_3d", S(X3, GRID3, 0, 2, False), _sampled, tolerance=1e-7),
    row("affine_grid_generator", (S(some(2, 2, 3), [2, 1, 2, 3], False), S(some(1, 3, 4), [1, 1, 2, 2, 2], True)), _affine, tolerance=1e-7),
    row("pixel_shuffle", (S(some(4, 1, 2), 2), S(some(1, 4, 2, 1), 2)), _shuffled),
    row("pixel_unshuffle", S(some(1, 2, 4), 2), _unshuffled),
    row("channel_shuffle", S(some(1, 4, 2), 2), lambda np, x, g: x.reshape(x.shape[0], g, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)),
)
# fmt: on
