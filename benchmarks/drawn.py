"""Rows that nobody chose: operators, shapes, dtypes and layouts drawn from a seed, each as a statement for both libraries.

A draw takes a statement of `STATEMENTS`, a size from 4,096 to 4 million elements (evenly by its logarithm), a dtype and a layout.
The same seed gives the same rows everywhere. `python benchmarks/run.py --group drawn --seed 7 --count 50`.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np
from numeric import SEED, torch_with_threads
from timing import Pair, Side

import turnout

# ruff: noqa: E501 - rows of a table
SMALLEST, LARGEST = 12, 22  # sizes, as powers of two

DTYPES = ("float32", "float32", "bfloat16", "float16")
# Layout -> (shape of the memory from that of the tensor, the view of it).
LAYOUTS: dict[str, tuple[Callable[[list[int]], list[int]], str]] = {
    "contiguous": (lambda shape: shape, ""),
    "every second column": (lambda shape: [*shape[:-1], 2 * shape[-1]], "[..., ::2]"),
    "transposed": (lambda shape: [*shape[:-2], shape[-1], shape[-2]], ".transpose(-1, -2)"),
    "dims reversed": (lambda shape: shape[::-1], ".permute(RANGE)"),
}

# x and y are tensors of one shape with 2 to 4 dims; v has the last dim of x. img is [N, C, H, W], seq [N, C, L]; vc has C.
# w has C filters of C channels and w1 as many of one channel, 3 x 3; ws has filters of length 3. {d} is a dim of x, {n} its
# length. at has indices along {d}, picks is [{n}] of them, classes is [rows of x2] of the columns of x2.
# `call -> x` is the gradient of a call with respect to x; its graph is made beforehand.
STATEMENTS = {
    "element-wise": """
        x + y; x * y; x - v; x / y; x.exp(); x.abs().log(); x.sin(); x.cos(); x.abs().sqrt(); x.abs(); x.sign(); x.floor()
        x.round(); x.pow(2); x.pow(3); x.clamp(-1.0, 1.0); x.reciprocal(); x.abs().rsqrt(); x.erf(); x.sigmoid(); x.tanh()
        m.relu(x); F.gelu(x); F.gelu(x, approximate='tanh'); F.silu(x); F.mish(x); F.softplus(x); F.elu(x); F.leaky_relu(x)
        F.hardswish(x); F.hardsigmoid(x); F.logsigmoid(x); m.where(x > 0, x, y); m.maximum(x, y); m.lerp(x, y, 0.3); x > y
        m.addcmul(x, x, y); m.addcdiv(x, x, y); x.isnan(); x.log1p(); x.expm1(); m.atan2(x, y); x.eq(y); -x; x.square()
        z = x.clone(); z.add_(y)
        z = x.clone(); z.mul_(0.5)
        m.fmod(x, y); x.frac(); x.trunc(); x.logical_not(); m.hypot(x, y); x * 2.5 + 1""",
    "reductions": """
        x.sum({d}); x.mean({d}); x.var({d}); x.std({d}); x.norm(dim={d}); x.prod({d}); (x > 0).any({d}); (x > 0).all({d})
        x.argmax({d}); x.argmin({d}); x.amax({d}); x.amin({d}); x.max({d}); x.min({d}); x.logsumexp({d}); x.sum(); x.mean()
        x.var(); x.max(); x.norm(); x.abs().sum({d}); m.count_nonzero(x, {d}); m.aminmax(x); x.argmax(); x.norm(1, dim={d})
        m.var_mean(x, {d}); x.nansum({d}); m.linalg.vector_norm(x, float('inf'), {d})""",
    "cumulative": "x.cumsum({d}); x.cumprod({d}); x.cummax({d}); x.logcumsumexp({d}); x.cumsum(-1)",
    "sorting": """
        x.sort({d}); x.topk({k}, {d}); x.argsort({d}); x.kthvalue({k}, {d}); x.median({d}); m.unique(whole); x.topk({k}, {d}, False)
        m.searchsorted(whole.sort()[0], whole); m.bincount(whole)""",
    "pooling": """
        F.max_pool2d(img, 2); F.max_pool2d(img, 3, 2, 1); F.avg_pool2d(img, 2); F.avg_pool2d(img, 3, 1, 1)
        F.adaptive_avg_pool2d(img, 1); F.adaptive_avg_pool2d(img, 3); F.adaptive_max_pool2d(img, 3); F.max_pool1d(seq, 3)
        F.avg_pool1d(seq, 4)""",
    "convolution": """
        F.conv2d(img, w, padding=1); F.conv2d(img, w, vc, 2); F.conv2d(img, w[..., :1, :1]); F.conv1d(seq, ws, padding=1)
        F.conv2d(img, w1, groups={c}); F.conv_transpose2d(img, w, stride=2)""",
    "upsampling": """
        F.interpolate(img, scale_factor=2); F.interpolate(img, scale_factor=2, mode='bilinear'); F.interpolate(seq, scale_factor=2)
        F.interpolate(img, scale_factor=1.5, mode='bicubic'); F.interpolate(seq, scale_factor=2, mode='linear')
        F.interpolate(img, scale_factor=0.5, mode='area'); F.pixel_shuffle(img.repeat(1, 4, 1, 1), 2)""",
    "losses": """
        F.mse_loss(x, y); F.l1_loss(x, y); F.smooth_l1_loss(x, y); F.huber_loss(x, y); F.cross_entropy(x2, classes)
        F.nll_loss(x2, classes); F.binary_cross_entropy_with_logits(x, y); F.kl_div(x, y, reduction='batchmean'); F.cosine_similarity(x, y, {d})
        F.soft_margin_loss(x, y); F.pairwise_distance(x, y)""",
    "normalisation": """
        F.softmax(x, {d}); F.log_softmax(x, {d}); F.softmax(x, -1); F.layer_norm(x, v.shape, v, v); F.rms_norm(x, v.shape, v)
        F.group_norm(img, 2); F.batch_norm(img, vc, vc.abs()); F.batch_norm(img, None, None, training=True)
        F.instance_norm(img); F.normalize(x, dim={d})""",
    "indexing": """
        x.gather({d}, at); x.scatter({d}, at, y); x.scatter_add({d}, at, y); x.index_select({d}, picks); x.index_add({d}, picks, y)
        x.masked_fill(y > 0, 1.0); x.masked_select(y > 0); m.take_along_dim(x, at, {d}); (x > 0).nonzero(); x[picks0]
        F.embedding(classes, x2.t()); x.index_copy({d}, picks, y); x.index_fill({d}, picks, 2.0); F.one_hot(classes); x[y > 0]
        x.clone().index_put_((picks0,), x[picks0], accumulate=True)""",
    "moving": """
        m.cat([x, y], {d}); m.stack([x, y], {d}); x.flip({d}); x.roll(3, {d}); x.contiguous(); x.clone(); F.pad(x, (1, 2))
        x.tril(); x.triu(1); x.repeat_interleave(2, {d}); x.transpose(0, -1).contiguous(); x.transpose(0, 1) + y.transpose(0, 1)
        x.unfold({d}, 2, 1).clone(); F.pad(img, (1, 1, 1, 1), 'reflect'); m.diff(x, dim={d}); x.split(1, {d})[0].clone()
        m.zeros_like(x); m.full_like(x, 2.0); m.chunk(x, 2, {d})[0] * 2""",
    "conversions": """
        x.to(m.float32); x.to(m.float16); x.to(m.bfloat16); x.to(m.float64); x.to(m.int64); x.to(m.bool); (x > 0).to(m.float32)
        at.to(m.float32); x.float(); x.half()""",
    "matrix_products": "x2 @ x2.t()[:, :64]; F.linear(x2, x2[:16]); x2 @ v2; m.bmm(seq, seq.transpose(1, 2)); F.scaled_dot_product_attention(q, q, q)",
    "random": "m.rand({size}); m.randn({size}); F.dropout(x, 0.3); m.bernoulli(x.sigmoid()); m.randint(0, 10, ({size},)); m.randperm({n})",
    "gradients": """
        F.gelu(x) -> x; F.silu(x) -> x; F.softmax(x, -1) -> x; F.layer_norm(x, v.shape, v, v) -> x; x * y -> x, y
        F.max_pool2d(img, 2) -> img; F.avg_pool2d(img, 2) -> img; F.mse_loss(x, y) -> x; x[picks0] -> x
        F.batch_norm(img, None, None, vc, vc, True) -> img; F.conv2d(img, w, padding=1) -> img, w; x.sum({d}) -> x
        F.cross_entropy(x2, classes) -> x2; F.interpolate(img, scale_factor=2, mode='bilinear') -> img; x.amax({d}) -> x
        x.cumsum({d}) -> x; F.group_norm(img, 2) -> img; x.var({d}) -> x; F.softplus(x) -> x; x.tanh() -> x
        F.log_softmax(x, {d}) -> x; m.cat([x, y], {d}) -> x; x.gather({d}, at) -> x; x / y -> x, y""",
}


class Drawn(NamedTuple):
    """One draw. `memory` says what lies in memory: a shape of random floats, or (shape, bound) of random integers."""

    name: str
    family: str
    statement: str
    before: str
    memory: dict[str, Any]


def statements(family: str) -> list[str]:
    """Those of a family; one with two steps has a line of its own."""
    lines = [line.strip() for line in STATEMENTS[family].strip().splitlines()]
    split = [[line] if line.startswith("z = ") else line.split("; ") for line in lines]
    return [statement for line in split for statement in line]


def draw(seed: int, largest: int = LARGEST) -> Drawn:
    """The row of a seed, of up to about 2 ** largest elements."""
    rng = random.Random(seed)
    family = rng.choice(list(STATEMENTS))
    statement = rng.choice(statements(family))
    size, dtype, layout = 2 ** rng.uniform(SMALLEST, largest), rng.choice(DTYPES), rng.choice(list(LAYOUTS))
    shape, channels = _shape(rng, size, rng.randint(2, 4)), rng.choice((4, 16, 32))
    d, rows = rng.randrange(len(shape)), max(2, round(size ** rng.uniform(0.4, 0.6)))
    floats, whole = _operands(size, shape, d, channels, rows, of_products=family == "matrix_products")
    k = max(1, min(5, shape[d]))
    statement = statement.format(d=d, n=shape[d], k=k, c=channels, size=round(size))
    before, memory, first = [], dict[str, Any](), list[int]()
    for name, dims in floats.items():
        if re.search(rf"\b{name}\b", statement):
            make, view = LAYOUTS[layout if name in LAID_OUT else "contiguous"]
            memory[name], first = make(dims), first or dims
            backwards = ", ".join(map(str, reversed(range(len(dims)))))
            before.append(f"{name} = {name}.to(m.{dtype}){view.replace('RANGE', backwards)}")
    for name, (dims, bound) in whole.items():
        if re.search(rf"\b{name}\b", statement):
            memory[name], first = (dims, bound), first or dims
    call, _, leaves = statement.partition(" -> ")
    if leaves:
        before += [f"{leaf} = {leaf}.detach().requires_grad_()" for leaf in leaves.split(", ")]
        before += [f"out = {call}", "g = m.ones_like(out)"]
        statement = f"m.autograd.grad(out, [{leaves}], g, retain_graph=True)"
    if statement.startswith("z = "):
        made, _, statement = statement.partition("; ")
        before.append(made)
    name = f"{'gradient of ' if leaves else ''}{call} [{dtype}, {layout}, {'x'.join(map(str, first))}]"
    return Drawn(name, family, statement, "; ".join(before), memory)


# Those that come in the layout that was drawn.
LAID_OUT = {"x", "y", "x2", "img", "seq", "q"}


def _operands(
    size: float, shape: list[int], d: int, channels: int, rows: int, *, of_products: bool
) -> tuple[dict[str, list[int]], dict[str, tuple[list[int], int]]]:
    """The shapes of floats, and the shapes and bounds of integers."""
    images = 2 if size < 1 << 20 else 1
    side = max(6, round((size / channels / images) ** 0.5))
    columns = max(64, round(size / rows))
    floats = {
        "x": shape, "y": shape, "v": shape[-1:], "x2": [rows, columns], "v2": [columns], "img": [images, channels, side, side],
        "seq": [images, channels, side * side], "vc": [channels], "w": [channels, channels, 3, 3], "w1": [channels, 1, 3, 3],
        "ws": [channels, channels, 3], "q": [2, 4, min(1024, max(8, round(size / 512))), 64],
    }  # fmt: skip
    if of_products:
        floats["seq"] = [2, 16, min(2048, max(8, round(size / 32)))]
    whole = {
        "at": (shape, shape[d]), "picks": ([shape[d]], shape[d]), "picks0": ([shape[0]], shape[0]), "classes": ([rows], columns),
        "whole": ([round(size)], max(2, rows)),
    }  # fmt: skip
    return floats, whole


def _shape(rng: random.Random, size: float, ndim: int) -> list[int]:
    """A shape of about that many elements."""
    shares = [rng.uniform(0.5, 1.5) for _ in range(ndim)]
    return [max(2, round(size ** (share / sum(shares)))) for share in shares]


def prepared(row: Drawn, m: Any) -> dict[str, Any]:
    """The names that the statement of a row uses, for a library."""
    names = {name: m.from_numpy(_array(name, facts)) for name, facts in row.memory.items()}
    names |= {"m": m, "F": m.nn.functional}
    exec(row.before, names)
    names.pop("__builtins__", None)
    return names


def pair(row: Drawn) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares both sides of a row."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        torch = torch_with_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        sides = []
        for m in (turnout, torch):
            sides.append(Side(row.statement, **prepared(row, m)))
        yield Pair(sides[0], sides[1])

    return prepare


def _array(name: str, facts: Any) -> Any:
    generator = np.random.default_rng([SEED, *name.encode()])
    if isinstance(facts, tuple):
        return generator.integers(0, facts[1], facts[0])
    return generator.standard_normal(facts, np.float32)
