"""What somebody who knows PyTorch types in the first hour gives the same in Turnout: the lines run in both, and print alike."""

from __future__ import annotations

import ast
import io
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import turnout

# Each block is a session of its own; `t` is the library and `F` its `nn.functional`.
SESSIONS = {
    "modules": """
t.nn.Linear(3, 2), t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.ReLU(), t.nn.Flatten())
m = t.nn.Linear(3, 2)
[name for name, _ in m.named_parameters()], m(t.ones(4, 3)).shape, m.training, m.eval().training
list(m.state_dict()), m.state_dict()["bias"].shape, sum(p.numel() for p in m.parameters())
t.optim.SGD(m.parameters(), lr=0.1), t.optim.Adam(m.parameters()).param_groups[0]["betas"]
len(t.utils.data.DataLoader(t.utils.data.TensorDataset(t.ones(5, 2)), batch_size=2))
""",
    "creation": """
t.tensor([1, 2.5])
t.tensor([[1, 2], [3, 4]], dtype=t.float32)
t.zeros(2, 3), t.ones(2), t.full((2,), 7), t.eye(2), t.arange(5), t.linspace(0, 1, 3)
t.tensor(np.ones(2)), t.from_numpy(np.ones(2)), t.as_tensor([1, 2]), t.asarray([1, 2])
t.zeros_like(t.ones(2)), t.full_like(t.ones(2), 3)
t.rand(2, 3).shape, t.randn(2).shape, t.randint(0, 5, (2,)).shape, t.randperm(4).shape, t.empty(2, 0)
t.tensor([1.0]).new_tensor([2]), t.tensor([1.0]).new_zeros(2), t.ones(2).new_full((1,), 3.0)
t.tensor([True, False]), t.tensor([]), t.tensor(1 + 2j), t.tensor([1, 2], dtype=t.int8), t.zeros(0), t.zeros(2, 0)
t.get_default_dtype(), t.finfo(t.float32).eps, t.iinfo(t.int8).max
t.float, t.double, t.long, t.int, t.half, t.bool, t.cfloat
""",
    "shapes": """
x = t.arange(6.0).reshape(2, 3)
x.shape
x.size(), x.size(0), x.size(-1), x.dim(), x.ndim, x.numel(), x.nelement(), len(x)
x.shape.numel(), x.shape[1:], x.shape + (1,), (1,) + x.shape, x.shape * 2, x.shape == (2, 3), tuple(x.shape)
f"{x.shape} {x.shape[0]}", str(x.shape), [x.shape], list(x.shape)
t.Size([1, 2]), t.Size(), t.Size([2, 3]).numel()
x.view(3, 2), x.view(-1), x.reshape(-1), x.flatten(), x.unsqueeze(0).shape, x.squeeze().shape
x.t(), x.T, x.permute(1, 0), x.transpose(0, 1).is_contiguous(), x.expand(2, 2, 3).shape, x.repeat(2, 1).shape
x.stride(), x.storage_offset(), x.element_size(), x.nbytes, x.is_contiguous(), x.t().contiguous().stride()
t.broadcast_shapes((2, 1), (3,)), t.zeros(x.shape).shape, t.ones(x.size()), x.view(x.shape)
x.new_zeros(x.shape[:1]), t.cat([x, x]).shape, t.stack([x, x]).shape, t.hstack([x, x]).shape
a, b = x.shape; a * b
""",
    "printing": """
t.tensor([3.14159, 2.0]), t.tensor([1e-8, 1.0]), t.tensor([1e10, 1]), t.tensor([float("nan"), float("inf")])
t.arange(2000), t.ones(50, 50), t.ones(2, 3, 4)
t.set_printoptions(precision=2)
t.tensor([3.14159, 2.0]), t.tensor([3.14159 + 2.0j])
t.set_printoptions(profile="short")
t.arange(2000) * 1.5, t.ones(50, 50), t.rand(3).shape
t.set_printoptions(profile="full", linewidth=40)
t.arange(30), t.arange(1200).sum()
t.set_printoptions(profile="default", sci_mode=True)
t.tensor([3.14159, 2.0])
t.set_printoptions(threshold=5, edgeitems=1)
t.arange(30), t.arange(30.0).reshape(5, 6), t.ones(3)
t.set_printoptions(threshold=5, edgeitems=0)
t.arange(30)
t.set_printoptions(profile="default")
t.tensor([3.14159, 2.0]), t.ones(2, requires_grad=True), t.ones(2, dtype=t.float64), t.empty(2, device="meta")
f"{t.tensor(3.5):.2f}", "%.2f" % t.tensor(3.5), f"{t.tensor(3)}", str(t.tensor([1]))
""",
    "types and devices": """
x = t.ones(2)
x.type(), x.int().type(), x.bool().type(), x.half().type(), x.bfloat16().type(), x.byte().type(), x.double().type()
x.type(t.float64), x.type(t.float32) is x, x.long(), x.type_as(t.ones(1, dtype=t.int8)), x.to(t.int64), x.to("cpu") is x
x.type(f"{t.__name__}.LongTensor"), t.empty(1, device="meta").type(), t.typename(x), t.typename(3)
x.is_cuda, x.is_cpu, x.is_meta, x.is_sparse, x.is_leaf, x.requires_grad, x.get_device(), x.is_floating_point()
x.data_ptr() == x.data_ptr(), x[1:].data_ptr() - x.data_ptr(), t.ones(0).data_ptr(), x.clone().data_ptr() == x.data_ptr()
x.cpu() is x, x.device.type, x.device.index, str(x.device), t.device("cuda:1").index, t.device("cuda", 1).type
t.cuda.is_available(), t.cuda.device_count(), "cuda" if t.cuda.is_available() else "cpu"
x.to(t.device("cuda" if t.cuda.is_available() else "cpu"))
t.is_tensor(x), t.is_tensor([1]), t.numel(x), isinstance(x, t.Tensor), isinstance(x.dtype, t.dtype)
t.float32.itemsize, t.float32.is_floating_point, t.complex64.is_complex, t.int8.is_signed
x.dtype == t.float32, x.dtype is t.float32, t.promote_types(t.float32, t.int64), t.result_type(x, 1.0)
""",
    "indexing": """
x = t.arange(12).reshape(3, 4)
x[0], x[:, 1], x[..., -1], x[None].shape, x[x > 5], x[[0, 1], [1, 2]], x[t.tensor([1, 0])], x[1, 2].item()
x[1:3, ::2], x[-1], x.select(0, 1), x.narrow(1, 0, 2), x.index_select(0, t.tensor([0])), t.masked_select(x, x > 5)
x[0, 0] = 9; x[1] = t.tensor([1, 1, 1, 1]); x[x > 8] = 0; x
t.gather(x, 1, t.tensor([[0], [1], [2]])), t.where(x > 2, x, 0), t.nonzero(x > 9), x.nonzero(as_tuple=True)
x.tolist(), [row.sum().item() for row in x], 3 in x, list(t.tensor([1, 2])), int(t.tensor(3)), bool(t.tensor(0))
t.flip(x, [0]), t.roll(x, 1), t.tril(t.ones(2, 2)), t.diag(t.ones(2)), t.unique(t.tensor([2, 1, 2]))
t.bincount(t.tensor([0, 1, 1])), float(t.tensor(3))
""",
    "mathematics": """
x = t.tensor([[1.0, -2.0], [3.0, 4.0]])
x + 1, x - x, x * 2, x / 2, x @ x, x**2, -x, abs(x), x // 2, x % 3, 1 - x, 2 / x, x > 0, ~(x > 0), (x > 0) & (x < 4)
x.sum(), x.mean(0), x.max(), x.max(1), x.argmax(), x.std(), x.var(dim=0), x.prod(), x.cumsum(0), x.min(1).values, x.norm()
x.sort(descending=True), x.topk(1), x.median(), x.clamp(0, 2), x.exp(), x.abs().sqrt(), x.sigmoid(), x.tanh(), x.relu()
t.matmul(x, x), t.mm(x, x), t.einsum("ij,jk->ik", x, x), t.dot(x[0], x[1]), t.outer(x[0], x[1]), t.linalg.inv(x), t.det(x)
t.allclose(x, x), t.equal(x, x), t.isclose(x, x + 1e-9), (x == x).all(), t.isnan(x).any(), x.add_(1).mul_(2), x.zero_().fill_(3)
""",
    "gradients": """
w = t.ones(3, requires_grad=True)
w.grad, w.is_leaf, w.requires_grad, w.detach().requires_grad, w.data
loss = (w * t.tensor([1.0, 2.0, 3.0])).sum(); loss.backward()
w.grad, loss.item(), loss.requires_grad
w.grad.zero_(), w.grad
t.autograd.grad((w * 2).sum(), w)
with t.no_grad(): w -= 0.1
w, t.is_grad_enabled()
w.grad = None; w.grad
t.func.grad(lambda a: (a * a).sum())(t.ones(2)), t.vmap(lambda a: a * 2)(t.ones(2, 2))
""",
    "networks": """
x, y = t.arange(6.0).reshape(2, 3), t.tensor([0, 2])
F.relu(x), F.softmax(x, dim=1), F.log_softmax(x, 1), F.silu(x), F.one_hot(y), F.dropout(x, 0.0), F.normalize(x)
F.cross_entropy(x, y), F.mse_loss(x, x), F.l1_loss(x, x + 1), F.nll_loss(x, y), F.binary_cross_entropy_with_logits(x, x)
F.linear(x, t.ones(2, 3)), F.conv2d(t.ones(1, 1, 3, 3), t.ones(1, 1, 2, 2)), F.max_pool2d(t.ones(1, 1, 4, 4), 2).shape
F.layer_norm(x, (3,)), F.embedding(y, x.reshape(3, 2)), F.pad(x, (1, 1))
F.scaled_dot_product_attention(x[None], x[None], x[None])
weight, bias = t.zeros(1, 3, requires_grad=True), t.zeros(1, requires_grad=True)
for _ in range(20):
    loss = F.mse_loss(F.linear(x, weight, bias)[:, 0], y.float())
    loss.backward()
    with t.no_grad():
        for p in (weight, bias):
            p -= 0.02 * p.grad
            p.grad.zero_()
weight, bias, loss
""",
    "saving and comparing": """
file = io.BytesIO(); t.save({"w": t.ones(2), "shape": t.ones(2, 3).shape, "n": 3}, file); file.seek(0)
t.load(file, weights_only=True)
file.seek(0); t.load(file, "cpu")["shape"]
t.testing.assert_close(t.ones(2), t.ones(2)), t.testing.assert_close([t.ones(2), 1.0], [t.ones(2), 1.0], rtol=0, atol=0)
t.manual_seed(3).initial_seed(), t.initial_seed()
state = t.get_rng_state(); a = t.rand(2); t.set_rng_state(state); t.equal(a, t.rand(2))
np.array(t.ones(2)), t.ones(2).numpy(), t.ones(2).numpy().tolist()
""",
}  # fmt: skip

# differs from torch: line -> why it prints something else.
DIFFERS = {
    "t.set_default_device('cpu')": "the device is the setting default_device",
    "t.get_default_device()": "the device is the setting default_device",
    "t.device('cpu')": "device('cpu') for device(type='cpu')",
    "t.Tensor([1, 2]), t.Tensor(2, 3).shape": "`Tensor` is not called; use `tensor` and `empty`",
    "t.FloatTensor([1, 2])": "no class for each dtype",
    "t.compile": "no compiler",
    "t.ones(2).is_quantized": "no quantised tensors",
    "t.cuda.synchronize": "functions print where they lie",
}  # fmt: skip


def output(statement: ast.stmt, scope: dict[str, Any]) -> str:
    """What a statement gives in a session: the text of its value, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), "<session>", "exec"), scope)
                return ""
            value = eval(compile(ast.Expression(statement.value), "<session>", "eval"), scope)
    except Exception as error:  # noqa: BLE001 - an error is what the statement gives
        return f"an error: {error!r}"
    return re.sub(r"\b(turnout|torch)\b", "t", repr(value))


def scope_of(library: Any) -> dict[str, Any]:
    return {"t": library, "F": library.nn.functional, "np": np, "io": io}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_in_turnout_what_it_prints_in_pytorch(name: str) -> None:
    mine, theirs = scope_of(turnout), scope_of(torch)
    try:
        for statement in ast.parse(SESSIONS[name]).body:
            found, wanted = output(statement, mine), output(statement, theirs)
            assert not wanted.startswith("an error"), f"{ast.unparse(statement)}\n{wanted}"
            assert found == wanted, ast.unparse(statement)
    finally:
        turnout.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


@pytest.mark.parametrize("line", DIFFERS)
def test_what_is_said_to_differ_does(line: str) -> None:
    (statement,) = ast.parse(line).body
    assert output(statement, scope_of(turnout)) != output(statement, scope_of(torch))


def test_the_sessions_have_more_than_300_calls_and_operators() -> None:
    nodes = [node for session in SESSIONS.values() for node in ast.walk(ast.parse(session))]
    assert sum(isinstance(node, (ast.Call, ast.BinOp, ast.Compare, ast.Subscript)) for node in nodes) > 300
