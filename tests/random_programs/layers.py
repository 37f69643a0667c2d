"""Random calls of layers: convolutions, pooling, interpolation, normalisation, padding, norms, searching. One line each.

A call is drawn so that it is valid. It uses three names: `t`, the library, `F`, its `nn.functional`, and `leaf`, which takes
every tensor that the call is made of and may let it require a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from turnout_aten.nn.images import COPYING, MIXING, SMOOTH
from turnout_aten.shapes.scattering import REDUCTIONS

Shape = tuple[int, ...]


def tensor(draw: Random, shape: Shape, dtype: str = "float64") -> str:
    """A tensor with values between -2 and 2 in an order of its own, contiguous or not."""
    text = f"(t.arange({math.prod(shape)}) * {draw.choice((7, 11, 13, 17))} % {draw.choice((19, 23, 29))}).to(t.{dtype})"
    text = f"({text} * {draw.choice((0.15, 0.21))} - {draw.choice((1.9, 2.0, 1.4))})" if "float" in dtype else text
    if len(shape) > 1 and draw.random() < 0.4:
        order = list(range(len(shape)))
        draw.shuffle(order)
        back = [order.index(d) for d in range(len(shape))]
        return f"leaf({text}.reshape({[shape[d] for d in order]}).permute({back}))"
    return f"leaf({text}.reshape({list(shape)}))"


def convolution(draw: Random) -> str:
    ndim = draw.randint(1, 3)
    groups = draw.choice((1, 1, 2, 3))
    inner, outer = draw.choice((1, 2, 5)), draw.choice((1, 2, 4))
    kernel = tuple(draw.randint(1, 3) for _ in range(ndim))
    lengths = tuple(draw.randint(3, 7) for _ in range(ndim))
    stride, padding = [draw.randint(1, 3) for _ in range(ndim)], [draw.randint(0, 1) for _ in range(ndim)]
    dilation = [draw.randint(1, max(1, (n - 1) // k)) for n, k in zip(lengths, kernel, strict=True)]
    transposed = draw.random() < 0.4
    x = tensor(draw, (draw.choice((1, 2)), inner * groups, *lengths))
    weight = tensor(draw, (inner * groups, outer, *kernel) if transposed else (outer * groups, inner, *kernel))
    bias = draw.choice(("None", tensor(draw, (outer * groups,))))
    options = f"stride={stride}, padding={padding}, groups={groups}"
    if transposed:
        extra = [draw.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)]
        return f"F.conv_transpose{ndim}d({x}, {weight}, {bias}, {options}, output_padding={extra}, dilation={dilation})"
    return f"F.conv{ndim}d({x}, {weight}, {bias}, {options}, dilation={dilation})"


def pooling(draw: Random) -> str:
    ndim = draw.choice((1, 2, 2, 3))
    lengths = tuple(draw.randint(4, 8) for _ in range(ndim))
    x = tensor(draw, (*((2, 3) if draw.random() < 0.8 else (3,)), *lengths))
    if draw.random() < 0.4:
        counts = [draw.randint(1, n + 1) for n in lengths]
        kind = draw.choice(("avg", "max"))
        return f"F.adaptive_{kind}_pool{ndim}d({x}, {counts if ndim > 1 else counts[0]})"
    kernel = [draw.randint(2, 4) for _ in range(ndim)]
    padding = [draw.randint(0, k // 2) for k in kernel]
    stride = [draw.randint(1, 3) for _ in range(ndim)]
    options = f"{kernel}, stride={stride}, padding={padding}, ceil_mode={draw.random() < 0.5}"
    if draw.random() < 0.5:
        return f"F.max_pool{ndim}d({x}, {options})"
    override = f", divisor_override={draw.randint(1, 5)}" if ndim > 1 and draw.random() < 0.3 else ""
    return f"F.avg_pool{ndim}d({x}, {options}, count_include_pad={draw.random() < 0.5}{override})"


def interpolation(draw: Random) -> str:
    mode, dims = draw.choice([*((mode, 0) for mode in (*COPYING, "area")), *MIXING, *SMOOTH])
    ndim = dims or draw.randint(1, 3)
    x = tensor(draw, (2, 3, *(draw.randint(2, 6) for _ in range(ndim))))
    how = f"size={[draw.randint(1, 9) for _ in range(ndim)]}"
    if draw.random() < 0.4:
        how = f"scale_factor={draw.choice((0.5, 1.5, 2.0, 2.7))}"
    options = "" if not dims else f", align_corners={draw.random() < 0.5}"
    if (mode, dims) in SMOOTH and ((mode, dims) not in MIXING or draw.random() < 0.5):
        options = ", antialias=True"
    return f"F.interpolate({x}, {how}, mode='{mode}'{options})"


def normalisation(draw: Random) -> str:
    channels = draw.choice((2, 4, 6))
    shape = (3, channels, *(draw.randint(1, 4) for _ in range(draw.randint(0, 2))))
    x = tensor(draw, shape)
    kind = draw.choice(("layer", "group", "batch"))
    if kind == "layer":
        last = list(shape[draw.randint(1, len(shape) - 1) :])
        return f"F.layer_norm({x}, {last}, {tensor(draw, tuple(last))}, {draw.choice(('None', tensor(draw, tuple(last))))})"
    weights = f"{tensor(draw, (channels,))}, {tensor(draw, (channels,))}"
    if kind == "group":
        return f"F.group_norm({x}, {draw.choice([g for g in (1, 2, channels) if channels % g == 0])}, {weights})"
    return f"F.batch_norm({x}, None, None, {weights}, training=True)"


def padding(draw: Random) -> str:
    shape = tuple(draw.randint(3, 5) for _ in range(draw.randint(2, 4)))
    pad = [draw.randint(-1, 2) for _ in range(2 * draw.randint(1, len(shape)))]
    return f"F.pad({tensor(draw, shape)}, {pad}, value={draw.choice((0.0, -1.5, 2.0))})"


def norms(draw: Random) -> str:
    shape = tuple(draw.randint(1, 6) for _ in range(draw.randint(1, 3)))
    order = draw.choice((0, 1, 2, 3, 0.5, "float('inf')", "-float('inf')", 2.5))
    dim = draw.choice((None, draw.randrange(len(shape)), list(range(len(shape)))))
    return f"t.linalg.vector_norm({tensor(draw, shape)} + 0.013, {order}, {dim}, {draw.random() < 0.5})"


def running(draw: Random) -> str:
    shape = tuple(draw.randint(1, 6) for _ in range(draw.randint(1, 3)))
    name = draw.choice(("cummax({}, {})[0]", "cummax({}, {})[1]", "cummin({}, {})[1]", "logcumsumexp({}, {})"))
    return "t." + name.format(tensor(draw, shape), draw.randrange(len(shape)))


def searching(draw: Random) -> str:
    lines, length = draw.choice(((), (3,), (2, 2))), draw.randint(1, 9)
    values = tensor(draw, (*lines, draw.randint(1, 5)))
    right = draw.random() < 0.5
    return f"t.searchsorted({tensor(draw, (*lines, length))}.sort(-1)[0], {values}, right={right})"


def matrix_products(draw: Random) -> str:
    n, k, m = (draw.randint(1, 40) for _ in range(3))
    alpha, beta = draw.choice((1, 2, 0.5)), draw.choice((0, 1, -1.5))
    kind = draw.choice(("mm", "addmm", "baddbmm", "addmv"))
    if kind == "mm":
        return f"t.mm({tensor(draw, (n, k))}, {tensor(draw, (k, m))})"
    if kind == "addmv":
        return f"t.addmv({tensor(draw, (n,))}, {tensor(draw, (n, k))}, {tensor(draw, (k,))}, beta={beta}, alpha={alpha})"
    lead = (2,) if kind == "baddbmm" else ()
    given = f"{tensor(draw, (*lead, n, k))}, {tensor(draw, (*lead, k, m))}"
    return f"t.{kind}({tensor(draw, draw.choice(((m,), (n, 1), (n, m))))}, {given}, beta={beta}, alpha={alpha})"


def scattering(draw: Random) -> str:
    rows, columns = draw.randint(1, 4), draw.randint(1, 5)
    reduce = draw.choice(REDUCTIONS)
    index = f"(t.arange({rows * columns}) * 7 % {rows}).reshape({rows}, {columns})"
    source = tensor(draw, (rows, columns))
    return f"{tensor(draw, (rows, columns))}.scatter_reduce(0, {index}, {source}, '{reduce}', include_self={draw.random() < 0.5})"


KINDS: dict[str, Callable[[Random], str]] = {
    "convolution": convolution,
    "pooling": pooling,
    "interpolation": interpolation,
    "normalisation": normalisation,
    "padding": padding,
    "norms": norms,
    "running": running,
    "searching": searching,
    "matrix_products": matrix_products,
    "scattering": scattering,
}


def call(kind: str, seed: int) -> str:
    """The call of a seed."""
    return KINDS[kind](Random(f"layers {kind} {seed}"))
