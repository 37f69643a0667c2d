"""Convolutions and their gradients: windows of any size, step and gap over images of one to three dims, in groups, transposed.

opencl works on images of 2,097,152 elements at once, makes gradients of weights from lines of at least a vector, and takes several
channels of results or several vectors of positions at once.
"""

from __future__ import annotations

import math
from typing import Any

from turnout_conformance.cases.model import Drawn, S, Sample, Seen
from turnout_conformance.cases.sets.rows import FLOATS, Row, row

Shape = tuple[int, ...]


def call(image: Any, weight: Any, bias: Any, options: dict[str, Any], n: int) -> Sample:
    """A convolution of `n` dims."""
    facts = [
        options.get(name, default) for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))
    ]
    stride, padding, dilation, more = ([f] * n if isinstance(f, int) else list(f) for f in facts)
    return S(image, weight, bias, stride, padding, dilation, options.get("transposed", False), more, options.get("groups", 1))


def result(image: Shape, weight: Shape, options: dict[str, Any]) -> Shape:
    """The shape of a convolution."""
    sample = call(None, None, None, options, len(image) - 2)
    _, _, _, stride, padding, dilation, transposed, more, groups = sample.args
    sizes = zip(image[2:], weight[2:], stride, padding, dilation, more, strict=True)
    if transposed:
        return (image[0], weight[1] * groups, *((n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, d, m in sizes))
    return (image[0], weight[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in sizes))


def forward(image: Shape, weight: Shape, options: dict[str, Any], bias: bool = True) -> Sample:
    channels = result(image, weight, options)[1]
    return call(Drawn(image), Drawn(weight, seed=2), Drawn((channels,), seed=3) if bias else None, options, len(image) - 2)


def backward(
    image: Shape, weight: Shape, options: dict[str, Any], mask: tuple[bool, ...] = (True, True, True), x: Any = None
) -> Sample:
    """The gradients that the mask asks for."""
    shape = result(image, weight, options)
    args = call(x or Drawn(image), Drawn(weight, seed=2), None, options, len(image) - 2).args
    return S(Drawn(shape, seed=4, step=1.0), args[0], args[1], [shape[1]] if mask[2] else None, *args[3:], list(mask))


# ruff: noqa: E501 - rows of a table
# fmt: off
SHAPES: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = (
    ((2, 8, 33, 35), (16, 8, 3, 3), {"padding": 1}),
    ((2, 8, 33, 35), (16, 8, 3, 2), {"stride": (2, 3), "padding": (0, 1)}),
    ((1, 32, 20, 20), (64, 32, 1, 1), {}),
    ((2, 18, 15, 40), (18, 1, 3, 5), {"padding": (1, 2), "groups": 18}),
    ((2, 18, 15, 17), (36, 1, 3, 3), {"stride": 2, "dilation": 2, "groups": 18}),
    ((2, 36, 9, 9), (20, 9, 3, 3), {"padding": 2, "dilation": 2, "groups": 4}),
    ((1, 3, 17, 16), (2, 3, 2, 2), {"padding": 3}),
    ((2, 9, 10, 23), (6, 9, 3, 3), {"stride": 3, "dilation": 2, "padding": (4, 3)}),
    ((2, 9, 23), (6, 9, 3), {"padding": 1}),
    ((2, 1, 9, 10, 23), (6, 1, 9, 3, 3), {"stride": (2, 1, 2), "padding": 1}),
    ((2, 9, 2, 2), (6, 9, 2, 2), {}),
)
OF_WEIGHTS: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = (
    ((3, 6, 11, 8), (6, 1, 3, 1), {"groups": 6}),                # lines of one vector
    ((3, 6, 11, 9), (6, 1, 4, 3), {"groups": 6, "padding": 1}),  # and of one with an element more
    ((3, 6, 11, 9), (6, 1, 3, 3), {"groups": 6}),                # shorter ones
    ((5, 8, 9, 33), (24, 4, 2, 5), {"groups": 2, "padding": (0, 3), "dilation": (1, 2)}),
    ((2, 9, 20, 50), (9, 3, 3, 3), {"groups": 3, "stride": (2, 3), "padding": 2}),
    ((2, 4, 21, 40), (4, 1, 7, 7), {"groups": 4, "padding": 3}),
    ((3, 6, 10, 12), (6, 3, 1, 1), {"groups": 2}),
    ((2, 6, 5, 6, 20), (4, 3, 2, 3, 3), {"groups": 2, "padding": 1, "stride": (1, 2, 2)}),
    ((3, 4, 50), (8, 2, 5), {"groups": 2, "stride": 2}),
    ((9, 5, 16, 20), (7, 5, 3, 3), {"padding": 1}),              # partial sums of some images
)
TRANSPOSED: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = tuple(
    ((2, 9, 10, 23), (9, 4, 3, 2), {"transposed": True, "groups": groups, **options})
    for groups in (1, 3, 9)
    for options in ({}, {"padding": 1}, {"padding": 3}, {"padding": 1, "dilation": 3}, {"stride": 2, "output_padding": 1})
)
MASKS = tuple(tuple(bool(bits & 1 << i) for i in range(3)) for bits in range(7))
ODD = Drawn((2, 4, 12, 13), marked=((0, math.inf), (2 * 4 * 12 * 13 - 1, math.nan)))
IMAGE, WEIGHT = Drawn((2, 9, 10, 23)), Drawn((6, 9, 3, 3), seed=2)
PRECISE = ("float32", "float64", "float16")
ROWS: list[Row] = [
    *row("convolution", *[forward(*each) for each in SHAPES], dtypes=FLOATS, in_turn=2, tolerance=1.0),
    *row("convolution", *[forward(*each) for each in TRANSPOSED], dtypes=("float64", "float32"), in_turn=True, tolerance=1.0),
    *row("convolution", call(Seen(IMAGE, lambda x: x.transpose(2, 3)[:, :, ::2]), Seen(WEIGHT, lambda x: x.transpose(2, 3)), None, {"padding": 1}, 2),
         call(Seen(IMAGE, lambda x: x.expand(3, 2, 9, 10, 23)[1]), WEIGHT, None, {}, 2), dtypes=PRECISE, tolerance=1.0),
    *row("convolution_backward", *[backward(*each) for each in (*SHAPES, *OF_WEIGHTS)], dtypes=PRECISE, in_turn=2, tolerance=1.0),
    *row("convolution_backward", *[backward(*each) for each in TRANSPOSED], dtypes=("float64", "float32"), in_turn=True, tolerance=1.0),
    *row("convolution_backward", *[backward((2, 4, 10, 12), (4, 1, 3, 3), {"groups": 4}, mask) for mask in MASKS], dtypes=("float32",), tolerance=1.0),
    *row("convolution_backward", backward(ODD.shape, (4, 1, 3, 3), {"groups": 4}, x=ODD), dtypes="float32", tolerance=1.0),
    *row("convolution_backward", backward((3, 4, 9, 20), (2, 2, 3, 3), {"padding": (0, 1), "groups": 2}, x=Seen(Drawn((3, 20, 9, 4)), lambda x: x.transpose(1, 3))), dtypes="float64", tolerance=1.0),
]
# fmt: on
