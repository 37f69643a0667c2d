"""Rows about kernels on large tensors: what a user's program spends its time in when its tensors are large.

Each row is one statement, run by both libraries on the same values and with as many threads as OMP_NUM_THREADS says. `x` and `y` have 4 million elements, `mat` is
4096 x 1024, `img` is 16 x 64 x 56 x 56. A backward row times the sweep alone; its graph is made beforehand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np
from numeric import SEED, torch_with_threads
from timing import Pair, Side, rest

import turnout


class KernelRow(NamedTuple):
    """One statement. `m` is the library, `F` its functions of neural networks.

    before  statements that prepare what it uses: a graph for a backward row
    """

    name: str
    statement: str
    before: str = ""


# Arrays by name: a shape of random floats, or (shape, bound) of random integers below a bound.
ARRAYS: dict[str, Any] = {
    "x": (4_000_000,),
    "y": (4_000_000,),
    "pos": (4_000_000,),
    "mat": (4096, 1024),
    "row": (1024,),
    "img": (16, 64, 56, 56),
    "ch": (64,),
    "w33": (64, 64, 3, 3),
    "w11": (64, 64, 1, 1),
    "wdw": (64, 1, 3, 3),
    "seq": (16, 64, 4096),
    "w5": (64, 64, 5),
    "wt": (64, 32, 2, 2),
    "q": (4, 8, 256, 64),
    "table": (30000, 256),
    "tokens": ((64, 128), 30000),
    "sq": (1024, 1024),
    "ba": (64, 128, 256),
    "bb": (64, 256, 128),
    "picks": ((4096,), 4096),
    "grid": ((4096, 1024), 1024),
    "target": ((4096,), 1024),
    "wl": (1024, 1024),
    "big": (4096, 4096),
}


def backward(name: str, call: str, leaves: str) -> KernelRow:
    """A row of gradients alone."""
    made = "; ".join(f"{leaf} = {leaf}.clone().requires_grad_()" for leaf in leaves.split(", "))
    before = f"{made}; out = {call}; g = m.ones_like(out) * 0.5"
    return KernelRow(name, f"m.autograd.grad(out, [{leaves}], g, retain_graph=True)", before)


# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS = [
    KernelRow("add",             "x + y"),
    KernelRow("mul",             "x * y"),
    KernelRow("add scalar",      "x + 1.5"),
    KernelRow("add bcast row",   "mat + row"),
    KernelRow("add_ in place",   "z.add_(y)", "z = x.clone()"),
    KernelRow("exp",             "x.exp()"),
    KernelRow("log",             "pos.log()"),
    KernelRow("tanh",            "x.tanh()"),
    KernelRow("sigmoid",         "x.sigmoid()"),
    KernelRow("sin",             "x.sin()"),
    KernelRow("sqrt",            "pos.sqrt()"),
    KernelRow("pow 3",           "x.pow(3)"),
    KernelRow("rsqrt",           "pos.rsqrt()"),
    KernelRow("erf",             "x.erf()"),
    KernelRow("gelu",            "F.gelu(x)"),
    KernelRow("gelu tanh",       "F.gelu(x, approximate='tanh')"),
    KernelRow("silu",            "F.silu(x)"),
    KernelRow("relu",            "m.relu(x)"),
    KernelRow("hardswish",       "F.hardswish(x)"),
    KernelRow("softmax",         "F.softmax(mat, -1)"),
    KernelRow("log_softmax",     "F.log_softmax(mat, -1)"),
    KernelRow("softmax dim 0",   "F.softmax(mat, 0)"),
    KernelRow("layer_norm",      "F.layer_norm(mat, (1024,), row, row)"),
    KernelRow("rms_norm",        "F.rms_norm(mat, (1024,), row)"),
    KernelRow("batch_norm eval", "F.batch_norm(img, ch, vc, ch, ch)", "vc = ch.abs() + 0.5"),
    KernelRow("batch_norm train", "F.batch_norm(img, mc, vc, ch, ch, True)", "mc = ch.clone(); vc = ch.abs() + 0.5"),
    KernelRow("group_norm",      "F.group_norm(img, 8, ch, ch)"),
    KernelRow("conv2d 3x3",      "F.conv2d(img, w33, padding=1)"),
    KernelRow("conv2d 3x3 s2",   "F.conv2d(img, w33, stride=2, padding=1)"),
    KernelRow("conv2d 1x1",      "F.conv2d(img, w11)"),
    KernelRow("conv2d depthwise", "F.conv2d(img, wdw, padding=1, groups=64)"),
    KernelRow("conv1d k5",       "F.conv1d(seq[:4, :, :2048], w5, padding=2)"),
    KernelRow("conv_transpose2d", "F.conv_transpose2d(img, wt, stride=2)"),
    KernelRow("max_pool2d",      "F.max_pool2d(img, 2)"),
    KernelRow("max_pool2d 3s2",  "F.max_pool2d(img, 3, 2, 1)"),
    KernelRow("avg_pool2d",      "F.avg_pool2d(img, 2)"),
    KernelRow("adaptive_avg 1",  "F.adaptive_avg_pool2d(img, 1)"),
    KernelRow("upsample bilinear", "F.interpolate(small, scale_factor=2, mode='bilinear')", "small = img[:4]"),
    KernelRow("upsample nearest", "F.interpolate(small, scale_factor=2)", "small = img[:8]"),
    KernelRow("sum all",         "x.sum()"),
    KernelRow("sum last",        "mat.sum(-1)"),
    KernelRow("sum first",       "mat.sum(0)"),
    KernelRow("mean",            "mat.mean(-1)"),
    KernelRow("var",             "mat.var(-1)"),
    KernelRow("amax",            "mat.amax(-1)"),
    KernelRow("max dim",         "mat.max(-1)"),
    KernelRow("argmax",          "mat.argmax(-1)"),
    KernelRow("norm",            "x.norm()"),
    KernelRow("logsumexp",       "mat.logsumexp(-1)"),
    KernelRow("cumsum",          "mat.cumsum(-1)"),
    KernelRow("cumsum 0",        "mat.cumsum(0)"),
    KernelRow("sort",            "z.sort(-1)", "z = mat[:1000, :1000]"),
    KernelRow("topk 5",          "mat.topk(5)"),
    KernelRow("topk 50",         "mat.topk(50)"),
    KernelRow("unique",          "m.unique(picks)"),
    KernelRow("nonzero",         "c.nonzero()", "c = mat > 0"),
    KernelRow("index_select",    "mat.index_select(0, picks)"),
    KernelRow("index tensor",    "mat[picks]"),
    KernelRow("masked_select",   "mat.masked_select(c)", "c = mat > 0"),
    KernelRow("gather",          "mat.gather(1, grid)"),
    KernelRow("scatter_add",     "m.scatter_add(mat, 1, grid, mat)"),
    KernelRow("index_add",       "m.index_add(mat, 0, picks, mat)"),
    KernelRow("embedding",       "F.embedding(tokens, table)"),
    KernelRow("where",           "m.where(c, x, y)", "c = x > 0"),
    KernelRow("masked_fill",     "x.masked_fill(c, 0.0)", "c = x > 0"),
    KernelRow("clamp",           "x.clamp(-1.0, 1.0)"),
    KernelRow("compare",         "x > y"),
    KernelRow("triu",            "mat.triu()"),
    KernelRow("cross_entropy",   "F.cross_entropy(mat, target)"),
    KernelRow("mse_loss",        "F.mse_loss(x, y)"),
    KernelRow("matmul 1024",     "sq @ wl"),
    KernelRow("linear",          "F.linear(sq, wl, row)"),
    KernelRow("bmm",             "ba @ bb"),
    KernelRow("attention",       "F.scaled_dot_product_attention(q, q, q)"),
    KernelRow("attention causal", "F.scaled_dot_product_attention(q, q, q, is_causal=True)"),
    KernelRow("einsum",          "m.einsum('bij,bjk->bik', ba, bb)"),
    KernelRow("dropout",         "F.dropout(x, 0.5)"),
    KernelRow("randn",           "m.randn(len(x), device=device)"),
    KernelRow("rand",            "m.rand(len(x), device=device)"),
    KernelRow("cat 0",           "m.cat([mat, mat], 0)"),
    KernelRow("cat 1",           "m.cat([mat, mat], 1)"),
    KernelRow("clone",           "x.clone()"),
    KernelRow("t contiguous",    "mat.t().contiguous()"),
    KernelRow("permute nhwc",    "img.permute(0, 2, 3, 1).contiguous()"),
    KernelRow("to f64",          "x.to(m.float64)"),
    KernelRow("to f16",          "x.to(m.float16)"),
    KernelRow("bf16 add",        "bx + by", "bx = x.to(m.bfloat16); by = y.to(m.bfloat16)"),
    KernelRow("f16 mm",          "h @ h", "h = sq[:256, :256].to(m.float16)"),
    KernelRow("flip",            "mat.flip(-1)"),
    KernelRow("roll",            "mat.roll(7, 0)"),
    KernelRow("x+y strided",     "mat[:, ::2] + mat[:, 1::2]"),
    KernelRow("chain 5 ops",     "((x * y + x).exp() - y).relu()"),
    backward("softmax bw",       "F.softmax(mat, -1)", "mat"),
    backward("log_softmax bw",   "F.log_softmax(mat, -1)", "mat"),
    backward("gelu bw",          "F.gelu(x)", "x"),
    backward("silu bw",          "F.silu(x)", "x"),
    backward("layer_norm bw",    "F.layer_norm(mat, (1024,), row, row)", "mat, row"),
    backward("rms_norm bw",      "F.rms_norm(mat, (1024,), row)", "mat, row"),
    backward("batch_norm bw",    "F.batch_norm(img, None, None, ch, ch, True)", "img, ch"),
    backward("conv2d bw",        "F.conv2d(img, w33, padding=1)", "img, w33"),
    backward("conv2d depthw bw", "F.conv2d(img, wdw, padding=1, groups=64)", "img, wdw"),
    backward("max_pool2d bw",    "F.max_pool2d(img, 2)", "img"),
    backward("embedding bw",     "F.embedding(tokens, table)", "table"),
    backward("cross_entropy bw", "F.cross_entropy(mat, target)", "mat"),
    KernelRow("attention fwd+bw", "m.autograd.grad(F.scaled_dot_product_attention(q, q, q).sum(), [q])", "q = q.clone().requires_grad_()"),
    backward("index bw",         "mat[picks]", "mat"),
    backward("linear bw",        "F.linear(sq, wl, row)", "sq, wl, row"),
]
# fmt: on


def pair(row: KernelRow) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares both sides of a row."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
        torch = torch_with_threads(threads)
        sides = []
        # Both sides read the same memory: where it lies, and how much of it the caches keep, would else be the luck of each.
        arrays = {n: array(n) for n in ARRAYS if uses(row, n)}
        for m in (turnout, torch):
            names = {n: m.from_numpy(values) for n, values in arrays.items()}
            names |= {"m": m, "F": m.nn.functional, "device": m.device("cpu")}
            exec(row.before, names)
            names.pop("__builtins__", None)
            sides.append(Side(row.statement, **names))
        yield Pair(sides[0], sides[1], rest if threads > 1 else None)

    return prepare


def uses(row: Any, name: str) -> bool:
    """Whether the statements of a row have a name."""
    return re.search(rf"\b{name}\b", f"{row.before}; {row.statement}") is not None


def array(name: str, times: int = 1) -> Any:
    """An array of the table, so many times as long."""
    shape, *bound = ARRAYS[name] if isinstance(ARRAYS[name][0], tuple) else (ARRAYS[name],)
    shape = (shape[0] * times, *shape[1:])
    generator = np.random.default_rng([SEED, *name.encode()])
    if bound:
        return generator.integers(0, bound[0], shape)
    made = generator.standard_normal(shape, np.float32)
    return np.abs(made) + np.float32(0.01) if name == "pos" else made
