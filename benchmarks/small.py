"""Rows about every kind of small call: what a call costs where its kernel has next to nothing to do.

Each row is one statement, run by both libraries on the same values and on one thread. The first 29 rows are the ones that were
compared first; the others are the kinds beside them. A row is named by its family and its place in it: `views3`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from numeric import torch_with_threads
from timing import Pair, Side

import turnout


class SmallRow(NamedTuple):
    """One statement. `m` is the library, `F` its functions of neural networks; the tensors are those of `names`."""

    name: str
    statement: str


FIRST = "first"


def names(m: Any) -> dict[str, Any]:
    """What the statements use, in one library.

    x, y   4 floats         a, w   4 x 4 floats        b   4 floats      c   2 x 3 x 4 floats     q   1 x 2 x 4 x 4 floats
    i      3 indices        k      a mask of 4         n   4 integers    d   4 float64            s   a 0-dim tensor
    f      2 x 2 x 3 x 3 weights    l    nested lists      t   4 classes     z, u   4 and 4 x 4 floats without memory
    o      4 floats that are written                   p   4 x 4 floats that require a gradient
    h, e   65,536 floats, and those that require a gradient, for the memory that a call takes at most
    """
    made: dict[str, Any] = {"m": m, "F": m.nn.functional, "ADD": m.ops.aten.add.Tensor}
    made["x"], made["y"] = m.tensor([1.0, 2.0, 3.0, 4.0]), m.tensor([4.0, 3.0, 2.0, 1.0])
    made["a"] = m.tensor([[(i * 4 + j) / 7 for j in range(4)] for i in range(4)])
    made["w"] = m.tensor([[(i - j) / 3 for j in range(4)] for i in range(4)])
    made["b"], made["o"] = m.tensor([0.1, 0.2, 0.3, 0.4]), m.tensor([0.0, 0.0, 0.0, 0.0])
    made["c"] = m.tensor([[[(h + i + j) / 5 for j in range(4)] for i in range(3)] for h in range(2)])
    made["q"] = m.tensor([[[[(h + i - j) / 5 for j in range(4)] for i in range(4)] for h in range(2)]])
    made["f"] = m.tensor([[[[(h - i + j) / 9 for j in range(3)] for i in range(3)] for h in range(2)] for _ in range(2)])
    made["i"], made["n"], made["t"] = m.tensor([0, 2, 1]), m.tensor([3, 1, 4, 1]), m.tensor([3, 1, 0, 1])
    made["k"], made["d"], made["s"] = m.tensor([True, False, True, False]), made["x"].to(m.float64), m.tensor(2.5)
    made["p"] = made["a"].clone().requires_grad_()
    made["z"], made["u"] = m.zeros(4, device="meta"), m.zeros(4, 4, device="meta")
    made["h"] = m.arange(65536.0) - 32768
    made["e"] = made["h"].clone().requires_grad_()
    made["l"] = [[1.0, 2.0], [3.0, 4.0]]
    return made


# ruff: noqa: E501 - rows of a table
# fmt: off
STATEMENTS: dict[str, tuple[str, ...]] = {
    FIRST: (
        "x + y", "x + 1.0", "m.add(x, y)", "ADD(x, y)", "x.add_(y)", "x.sum()", "a.sum(-1)", "x[0]", "a[1:, 2]", "a[i]",
        "x.reshape(2, 2)", "a.t()", "a @ w", "m.relu(a)", "F.linear(a, w, b)", "F.softmax(a, -1)",
        "F.layer_norm(a, (4,), b, b)", "m.cat([x, y])", "x.exp()", "m.zeros(4)", "a.clone()", "x.to(m.float64)",
        "x.sum().item()", "m.where(x > 0, x, y)",
        "m.relu(a @ w + b).sum(-1).mul(2.0).sub(x).exp().add(y).log().mean()",
        "p * p", "(p * 2).sum()", "(p * 2).sum().backward()", "(m.relu(p @ w + b) ** 2).mean().backward()",
    ),
    "pointwise": (
        "x * y", "x - 1", "2.0 / x", "-x", "x ** 2", "x.sigmoid()", "x.tanh()", "x.abs()", "m.sqrt(x)", "m.maximum(x, y)",
        "x.clamp(0.5, 2.0)", "x + d", "x + n", "n + n", "a + b", "m.addcmul(x, y, b)", "m.lerp(x, y, 0.5)", "x.round()",
        "k & k", "~k",
    ),
    "comparisons": ("x > 0", "x == y", "n < 3", "x.isnan()", "m.equal(x, y)", "m.allclose(x, y)"),
    "writes": ("o.copy_(x)", "o.zero_()", "o.fill_(1.0)", "o.mul_(1.0)", "o.clamp_(0.0, 1.0)", "m.add(x, y, out=o)", "m.exp(x, out=o)", "m.sum(a, 0, out=o)"),
    "views": ("a[0]", "a.view(16)", "a.view(2, -1)", "a.T", "a.transpose(0, 1)", "c.permute(2, 0, 1)", "x.unsqueeze(0)", "q.squeeze(0)", "a.flatten()", "x.expand(4, 4)", "a.select(0, 1)", "a.narrow(0, 1, 2)", "a.diagonal()", "a.chunk(2)", "a.split(2)", "a.unbind()", "x.detach()"),
    "indexing": ("a[0, 1]", "a[:, 1]", "x[1:3]", "x[::2]", "a[..., 0]", "x[None]", "x[k]", "h[h > 0]", "a[i, i]", "a[:, i]", "x[[0, 2]]", "o[0] = 1.0", "o[1:3] = 2.0", "o[i] = 1.0", "o[k] = 0.0", "o[:] = x", "a.index_select(0, i)", "x.gather(0, i)", "x.masked_fill(k, 0.0)", "m.take(a, i)"),
    "factories": ("m.ones(2, 3)", "m.empty(4)", "m.full((4,), 2.0)", "m.arange(4)", "m.eye(3)", "m.zeros_like(a)", "m.empty_like(a)", "m.tensor(1.0)", "m.tensor(l)", "x.new_zeros(4)", "m.linspace(0.0, 1.0, 4)", "m.rand(4)", "m.randn(4)"),
    "copies": ("x.contiguous()", "a.t().contiguous()", "x.float()", "x.double()", "n.float()", "x.to(m.float32)", "x.long()", "s.item()", "x.tolist()", "x.numpy()", "float(s)", "bool(s)", "int(s)", "len(x)", "x.shape", "x.dtype"),
    "joining": ("m.stack([x, y])", "m.cat([a, w], 1)", "m.hstack([x, y])", "x.repeat(2)", "x.flip(0)", "x.roll(1)"),
    "reductions": ("x.mean()", "a.mean(0)", "a.sum((0, 1))", "a.max()", "a.max(1)", "a.argmax(1)", "a.amax(0)", "k.any()", "k.all()", "a.var()", "a.std(1)", "x.norm()", "x.prod()", "a.logsumexp(1)", "x.cumsum(0)", "a.sort(1)", "x.topk(2)"),
    "networks": ("m.mm(a, w)", "m.addmm(b, a, w)", "m.dot(x, y)", "m.mv(a, x)", "m.bmm(c, c.transpose(1, 2))", "F.gelu(a)", "F.silu(a)", "F.log_softmax(a, 1)", "F.mse_loss(x, y)", "F.cross_entropy(a, t)", "F.nll_loss(a, t)", "F.embedding(i, a)", "F.dropout(x, 0.5, False)", "F.rms_norm(a, (4,))", "F.batch_norm(a, b, y, training=False)", "F.group_norm(q, 2)", "F.conv2d(q, f)", "F.max_pool2d(q, 2)", "F.scaled_dot_product_attention(q, q, q)", "F.pad(a, (1, 1))", "F.one_hot(t, 4)", "m.einsum('ij,jk->ik', a, w)", "m.outer(x, y)", "m.tril(a)"),
    "recorded": ("p + 1.0", "p[0]", "p.t()", "p.reshape(16)", "p.sum()", "p @ w", "m.relu(p)", "F.softmax(p, -1)", "F.layer_norm(p, (4,), b, b)", "m.cat([p, p])", "p.clone()", "p[i]", "p.exp()", "p.detach()", "F.linear(p, w, b)", "F.cross_entropy(p, t)"),
    "backward": ("p.sum().backward()", "(e * e).sum().backward()", "p[0].sum().backward()", "p.exp().sum().backward()", "(p @ w).sum().backward()", "F.softmax(p, -1).sum().backward()", "F.layer_norm(p, (4,), b, b).sum().backward()", "m.cat([p, p]).sum().backward()", "p[i].sum().backward()", "p.reshape(16).mean().backward()", "F.cross_entropy(p, t).backward()", "F.linear(p, w, b).sum().backward()", "m.autograd.grad((p * p).sum(), p)"),
    "states": ("with m.no_grad(): pass", "with m.no_grad(): p * p", "with m.enable_grad(): p * p", "with m.inference_mode(): p * p", "with m.autocast('cpu'): pass", "with m.autocast('cpu'): a @ w"),
    "meta": ("z + z", "u.sum(-1)", "u @ u", "u[0]", "u.reshape(16)", "m.cat([z, z])", "z.exp()", "F.softmax(u, -1)"),
}
# fmt: on

ROWS = [SmallRow(f"{family}{i}", each) for family, statements in STATEMENTS.items() for i, each in enumerate(statements, 1)]


def pair(row: SmallRow) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares both sides of a row."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        torch = torch_with_threads(1)
        yield Pair(Side(row.statement, **names(turnout)), Side(row.statement, **names(torch)))

    return prepare
