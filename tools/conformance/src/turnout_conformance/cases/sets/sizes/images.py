"""Windows of images, and images in another size, with their gradients."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import turnout
from turnout_conformance.cases.model import Drawn, S, Seen
from turnout_conformance.cases.sets.convolutions import backward, forward
from turnout_conformance.cases.sets.rows import Row
from turnout_conformance.cases.sets.sizes.shapes import Shape, rows

# ruff: noqa: E501 - rows of a table
# ---- windows


def counts(shape: Shape, kernel: Shape, stride: Shape, padding: Shape, ceil: bool) -> Shape:
    """The shape of what pooling gives."""
    found = []
    for n, k, s, p in zip(shape[-len(kernel) :], kernel, stride, padding, strict=True):
        count = (n + 2 * p - k + (s - 1) * ceil) // s + 1
        found.append(count - ((count - 1) * s >= n + p))
    return (*shape[: -len(kernel)], *found)


# (image, window, step, padding, whether a window may end outside), of two dims and of three
POOLS: dict[int, list[tuple[Shape, Shape, Shape, Shape, bool]]] = {
    2: [
        ((2, 3, 9, 8), (2, 2), (2, 2), (0, 0), False), ((2, 3, 9, 8), (3, 2), (2, 1), (1, 0), True),
        ((3, 7, 10), (3, 3), (2, 2), (1, 1), False), ((3, 5, 4), (3, 3), (4, 4), (1, 1), True),
        ((2, 20, 21), (9, 8), (3, 3), (2, 2), False), ((1, 3, 40, 36), (40, 36), (40, 36), (0, 0), False),
    ],
    3: [
        ((2, 3, 5, 6, 7), (2, 3, 2), (2, 3, 2), (0, 0, 0), False), ((2, 5, 7, 6), (3, 2, 3), (1, 2, 3), (1, 1, 1), True),
        ((1, 6, 7, 8), (5, 5, 5), (2, 2, 2), (2, 2, 2), False),
    ],
}  # fmt: skip
DILATED: dict[int, list[Any]] = {
    2: [((2, 11, 12), [3, 2], [2, 2], [1, 1], [2, 4])],
    3: [((2, 6, 7, 8), [2, 2, 3], [1, 1, 1], [1, 0, 1], [2, 3, 2])],
}
MEANS = [(True, None), (False, None), (True, 3), (False, -7)]  # whether padding counts, and another divisor
EVEN: dict[int, list[Any]] = {
    2: [((2, 3, 7, 10), [3, 4]), ((3, 5, 4), [7, 4]), ((2, 3, 20, 18), [2, 1]), ((1, 1, 40, 45), [1, 1])],
    3: [((2, 5, 6, 7), [2, 3, 9]), ((1, 2, 8, 9, 10), [1, 1, 1])],
}


# fmt: off
def pools(ndim: int) -> list[Row]:
    """Largest elements and means of windows, windows that cover the image evenly, and the gradients of means."""
    given: list[Any] = [(shape, *map(list, sizes), ceil) for shape, *sizes, ceil in POOLS[ndim]]
    backward: list[Any] = [(Drawn(counts(*each), seed=2), (shape, *sizes)) for each, (shape, *sizes) in zip(POOLS[ndim], given, strict=True)]
    return [
        *rows(f"max_pool{ndim}d_with_indices", *[S(Drawn(shape, step=1.0), k, s, p, 1, ceil) for shape, k, s, p, ceil in given]),
        *rows(f"max_pool{ndim}d_with_indices", *[S(Drawn(shape, step=1.0), *sizes) for shape, *sizes in DILATED[ndim]], in_turn=0),
        *rows(f"avg_pool{ndim}d", *[S(Drawn(shape), *sizes, *mean) for mean in MEANS for shape, *sizes in given]),
        *rows(f"avg_pool{ndim}d_backward", *[S(grad, Drawn(shape), *sizes, *mean) for mean in MEANS for grad, (shape, *sizes) in backward]),
        *rows(f"adaptive_max_pool{ndim}d", *[S(Drawn(shape, step=1.0), size) for shape, size in EVEN[ndim]]),
        *rows(f"_adaptive_avg_pool{ndim}d", *[S(Drawn(shape), size) for shape, size in EVEN[ndim]]),
        *rows(f"_adaptive_avg_pool{ndim}d_backward", *[S(Drawn((*shape[:-ndim], *size), seed=2), Drawn(shape)) for shape, size in EVEN[ndim]]),
    ]
# fmt: on


# Channels of 72 elements: all -inf, all nan, one inf; nan inside, nan and -inf, lines of -inf.
ODD = Drawn((2, 3, 9, 8), step=1.0, marked=(
    *((i, -inf) for i in range(72)), *((72 + i, nan) for i in range(72)), (180, inf),
    *((216 + 8 * y + x, nan) for y in (2, 3, 4) for x in range(1, 7)), *((288 + i, nan if i % 5 else -inf) for i in range(72)),
    *((360 + 8 * y + x, -inf) for y in (0, 3, 6) for x in range(8)),
))  # fmt: skip


def channels_last(x: Any) -> Any:
    """Images whose channels are neighbours in memory."""
    return Seen(x, lambda t: t.to(memory_format=turnout.channels_last))


# ---- convolutions

# (image, weight, options): as many products as a block has weights of, and more; sums that a warp makes, and a block
CONVOLVED: list[tuple[Shape, Shape, dict[str, Any]]] = [
    ((2, 3, 9), (4, 3, 3), {"padding": 1}), ((1, 40, 30), (11, 40, 5), {"stride": 2, "dilation": 2}),
    ((2, 6, 7, 9), (10, 3, 3, 2), {"groups": 2, "stride": (2, 1), "padding": (1, 2), "dilation": (1, 3)}),
    ((3, 4, 24, 20), (4, 1, 3, 3), {"groups": 4, "padding": 1}), ((1, 2, 600, 2), (9, 2, 2, 1), {}),
    ((2, 5, 9, 8), (5, 1, 5, 3), {"groups": 5, "stride": (1, 2), "padding": (2, 1)}),
    ((1, 3, 4, 5, 6), (3, 1, 2, 3, 3), {"groups": 3, "dilation": (1, 2, 1)}),
    ((2, 4, 6, 7), (4, 1, 2, 3), {"transposed": True, "groups": 4, "stride": (2, 3), "padding": 1}),
    ((2, 3, 4, 5, 4), (5, 3, 2, 3, 1), {"padding": (1, 0, 1)}), ((1, 1, 1), (1, 1, 1), {}),
    ((2, 4, 9), (4, 5, 3), {"transposed": True, "stride": 2, "output_padding": 1}),
    ((1, 6, 5, 6), (6, 2, 3, 2), {"transposed": True, "groups": 3, "stride": (2, 3), "padding": 1}),
    ((2, 2, 3, 2, 3), (2, 9, 2, 2, 3), {"transposed": True, "stride": 2, "dilation": (1, 2, 1)}),
]  # fmt: skip


# ---- images in another size

# (image, size, scale of each dim)
RESIZED: dict[int, list[tuple[Shape, list[int], Any]]] = {
    1: [((2, 3, 7), [14], None), ((2, 3, 9), [4], None), ((1, 2, 5), [1], None), ((1, 2, 1), [6], None)],
    2: [
        ((2, 3, 5, 6), [10, 12], None), ((1, 2, 7, 9), [5, 20], None), ((1, 2, 1, 6), [5, 1], None),
        ((2, 2, 6, 5), [13, 7], (2.2, 1.5)), ((1, 1, 30, 40), [9, 6], None), ((1, 1, 4, 5), [33, 60], None),
        ((1, 2, 6, 5), [6, 5], None), ((1, 3, 5, 4), [7, 9], (0.2, 7.0)),
    ],
    3: [((2, 2, 3, 4, 5), [6, 7, 4], None), ((1, 2, 4, 3, 2), [3, 3, 9], (0.9, 1.1, 4.6))],
}  # fmt: skip
SPOTS = Drawn((2, 3, 6, 7), marked=((17, nan), (168, inf), (125, -inf)))


def resized(name: str, ndim: int, aligns: tuple[Any, ...]) -> list[Row]:
    """Images in another size, and the gradients. Where sources are rounded, cpu's own dtype decides which they are."""
    ways = [(shape, size, *align, *(scale or [None] * ndim)) for align in aligns for shape, size, scale in RESIZED[ndim]]
    facts: dict[str, Any] = {"tolerance": 5.0, "wide": "nearest" not in name}
    return [
        *rows(name, *[S(Drawn(shape), size, *how) for shape, size, *how in ways], **facts),
        *rows(
            f"{name}_backward", *[S(Drawn((*shape[:2], *size)), size, list(shape), *how) for shape, size, *how in ways], **facts
        ),
    ]


# fmt: off
ROWS: list[Row] = [
    *pools(2), *pools(3),
    *rows("convolution", *[forward(*each, bias) for bias in (True, False) for each in CONVOLVED]),
    *rows("convolution_backward", *[backward(*each) for each in CONVOLVED], *[backward(*CONVOLVED[0], mask) for mask in ((True, False, True), (False, True, False))]),
    *rows("max_pool2d_with_indices", S(ODD, [3, 3]), S(ODD, [3, 3], 2, 1), S(ODD, [3, 3], 1, 2, 3), S(ODD, [9, 8]), S(channels_last(ODD), [3, 2], [], [1, 0])),
    *rows("adaptive_max_pool2d", S(ODD, [4, 3]), S(ODD, [1, 1])),
    *rows("avg_pool2d", S(channels_last(ODD), [3, 2], [], [1, 0]), S(Seen(ODD, lambda t: t.transpose(2, 3)[:, 1:, ::2]), [2, 2])),
    *rows("max_pool1d_with_indices", S(Drawn((2, 3, 30), step=1.0), [4], [3]), in_turn=0),
    *rows("avg_pool1d", S(Drawn((2, 3, 30)), [4], [3], [2]), in_turn=0),
    *[each for n in (1, 2, 3) for name in (f"upsample_nearest{n}d", f"_upsample_nearest_exact{n}d") for each in resized(name, n, ((),))],
    *[each for name, n in (("linear1d", 1), ("bilinear2d", 2), ("trilinear3d", 3), ("bicubic2d", 2)) for each in resized(f"upsample_{name}", n, ((False,), (True,)))],
    *rows("upsample_nearest2d _upsample_nearest_exact2d", *[S(x, [12, 9], 2.0, 1.3) for x in (SPOTS, channels_last(SPOTS))], wide=False),
    *rows("upsample_bilinear2d upsample_bicubic2d", *[S(x, [12, 9], False, 2.0, 1.3) for x in (SPOTS, channels_last(SPOTS), Seen(SPOTS, lambda t: t.transpose(2, 3)[1:]))], tolerance=5.0),
    *rows("upsample_linear1d", *[S(Drawn((1, 2, 5)), [6], False, scale) for scale in (1e-9, 1e30)], in_turn=0),  # all from one edge
]
# fmt: on
