"""Calls with PyTorch's second names of arguments, for the suites that compare them: accepted ones and refused ones."""

from __future__ import annotations

CALLS = [
    ("torch.sum(t, axis=1)", "torch.sum(t, dim=1)"),
    ("t.sum(axis=1, keepdims=True)", "t.sum(1, True)"),
    ("t.sum(1, keepdims=True)", "t.sum(1, True)"),
    ("torch.abs(x=t)", "torch.abs(t)"),
    ("torch.abs(a=t)", "torch.abs(t)"),
    ("torch.abs(x1=t)", "torch.abs(t)"),
    ("torch.abs(input=t)", "torch.abs(t)"),
    ("torch.add(x1=t, x2=t)", "torch.add(t, t)"),
    ("torch.add(t, x2=2, alpha=3)", "torch.add(t, 2, alpha=3)"),
    ("torch.add(input=t, other=t)", "torch.add(t, t)"),
    ("torch.add(t, t, out=torch.empty(2, 2))", "torch.add(t, t)"),
    ("torch.abs(x=t, out=torch.empty(2, 2))", "torch.abs(t)"),
    ("t.add(x2=t)", "t.add(t)"),
    ("t.mul(x2=2)", "t.mul(2)"),
    ("torch.softmax(t, axis=1)", "torch.softmax(t, 1)"),
    ("torch.cat([t, t], axis=1)", "torch.cat([t, t], 1)"),
    ("t.max(axis=1).values", "t.max(1).values"),
    ("torch.max(a=t, axis=0, keepdims=True).indices", "torch.max(t, 0, True).indices"),
    ("t.argmax(axis=0, keepdims=True)", "t.argmax(0, True)"),
    ("torch.amax(t, axis=0)", "torch.amax(t, 0)"),
    ("t.amax(axis=0)", "t.amax(0)"),
    ("t.unsqueeze(axis=0)", "t.unsqueeze(0)"),
    ("torch.squeeze(t, axis=0)", "torch.squeeze(t, 0)"),
    ("torch.where(t > 1, x=t, x2=-t)", "torch.where(t > 1, t, -t)"),
    ("torch.matmul(x1=t, x2=t)", "t @ t"),
    ("t.matmul(x2=t)", "t @ t"),
    ("torch.eq(x1=t, x2=t)", "t == t"),
    ("torch.pow(x=t, exponent=2)", "t ** 2"),
    ("torch.zeros_like(x=t)", "torch.zeros_like(t)"),
    ("torch.any(t, axis=0, keepdims=True)", "torch.any(t, 0, True)"),
    ("t.chunk(2, axis=0)[1]", "t.chunk(2, 0)[1]"),
    ("t.topk(1, axis=0).values", "t.topk(1, 0).values"),
    ("torch.mean(t, axis=(0, 1))", "torch.mean(t, (0, 1))"),
    ("t.cumsum(axis=0)", "t.cumsum(0)"),
    ("torch.nn.functional.gelu(x=t)", "torch.nn.functional.gelu(t)"),
]

REFUSED = [
    ("torch.abs(self=t)", "abs: got an unexpected keyword argument 'self'"),
    ("torch.add(self=t, other=t)", "add: got an unexpected keyword argument 'self'"),
    ("torch.max(self=t)", "max: got an unexpected keyword argument 'self'"),
    ("torch.sum(t, dim=1, axis=1)", "sum: got an unexpected keyword argument 'axis'"),
    ("torch.amax(t, dim=1, axis=1)", "amax: got an unexpected keyword argument 'axis'"),
    ("t.argmax(1, axis=1)", "argmax: got an unexpected keyword argument 'axis'"),
    ("torch.abs(t, x=t)", "abs: got an unexpected keyword argument 'x'"),
    ("torch.add(t, t, x1=t)", "add: got an unexpected keyword argument 'x1'"),
    ("torch.exp(t, axis=1)", "exp: got an unexpected keyword argument 'axis'"),
    ("torch.exp(t, size=1)", "exp: got an unexpected keyword argument 'size'"),
    ("torch.abs()", "aten::abs: argument 'self' (Tensor) is missing"),
    ("torch.softmax(t)", "aten::softmax.int: argument 'dim' (int) is missing"),
    ("torch.matmul(t)", "aten::matmul: argument 'other' (Tensor) is missing"),
    ("t.unsqueeze()", "aten::unsqueeze: argument 'dim' (int) is missing"),
]


def run(call: str, module: object) -> object:
    """The result of a call written for PyTorch; `t` is a tensor [2, 2]."""
    return eval(call, {"torch": module, "t": module.tensor([[1.0, 3.0], [2.0, 0.5]])})  # type: ignore[attr-defined]
