"""Each plugin is disabled in a program that has used it, and enabled again: what gave a result before gives it afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import turnout as t
from turnout import nn
from turnout.errors import TurnoutError

def graded(f):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    f(x).backward()
    return x.grad.tolist()

def cast():
    with t.autocast("cpu"):
        return str((t.ones(2, 2) @ t.ones(2, 2)).dtype)

def fake():
    with t.FakeMode():
        return (t.ones(2) + 1).shape

def trained():
    model = nn.Linear(2, 1)
    optimiser = t.optim.SGD(model.parameters(), lr=0.1)
    model(t.ones(2)).sum().backward()
    optimiser.step()
    return sorted(model.state_dict())

made = nn.Linear(2, 2)
CALLS = {
    "x.sum()": lambda: t.ones(2).sum().item(),
    "x.sum(dims)": lambda: t.ones(2, 2).sum((0, 1)).item(),
    "sum(x)": lambda: t.sum(t.ones(2), 0).item(),
    "x.mean(dim=)": lambda: t.ones(2).mean(dim=0, keepdim=True).tolist(),
    "x + 1": lambda: (t.ones(2) + 1).tolist(),
    "1 - x": lambda: (1 - t.ones(2)).tolist(),
    "x.add_": lambda: t.ones(2).add_(1).tolist(),
    "out=": lambda: t.add(t.ones(2), 1, out=t.empty(2)).tolist(),
    "x[...]": lambda: t.arange(4)[t.tensor([0, 1])].tolist(),
    "x[...] = ": lambda: t.zeros(3).__setitem__(0, 5.0),
    "@": lambda: (t.ones(2, 2) @ t.ones(2, 2)).tolist(),
    "cat": lambda: t.cat([t.ones(1), t.zeros(1)]).tolist(),
    "max": lambda: t.tensor([1, 3, 2]).max(0).indices.item(),
    "split": lambda: [x.tolist() for x in t.arange(4).split(2)],
    "view": lambda: t.arange(4).view(2, 2).tolist(),
    "to": lambda: t.ones(2).to(t.int64).tolist(),
    "repr": lambda: repr(t.ones(2)),
    "where": lambda: t.where(t.tensor([True, False]), 1.0, 0.0).tolist(),
    "einsum": lambda: t.einsum("ij,j", t.ones(2, 2), t.ones(2)).tolist(),
    "rand": lambda: (t.manual_seed(0), t.rand(2).tolist())[1],
    "softmax": lambda: nn.functional.softmax(t.zeros(2), 0).tolist(),
    "linalg": lambda: t.linalg.norm(t.ones(4)).item(),
    "fft": lambda: t.fft.fft(t.ones(2)).tolist(),
    "special": lambda: t.special.erf(t.zeros(1)).tolist(),
    "ops": lambda: t.ops.aten.sum(t.ones(2)).item(),
    "ops.Tensor": lambda: t.ops.aten.add.Tensor(t.ones(2), t.ones(2)).tolist(),
    "conv1d": lambda: nn.functional.conv1d(t.ones(1, 1, 3), t.ones(1, 1, 2)).tolist(),
    "numpy": lambda: t.ones(2).numpy().tolist(),
    "dlpack": lambda: t.from_dlpack(t.ones(2)).tolist(),
    "backward": lambda: graded(lambda x: (x * 2).sum()),
    "grad": lambda: t.func.grad(lambda x: x.sin().sum())(t.zeros(2)).tolist(),
    "jvp": lambda: t.func.jvp(t.sin, (t.zeros(2),), (t.ones(2),))[1].tolist(),
    "hessian": lambda: t.func.hessian(lambda x: (x**3).sum())(t.ones(2)).tolist(),
    "vmap": lambda: t.vmap(t.func.grad(lambda x: x**2))(t.ones(3)).tolist(),
    "checkpoint": lambda: graded(lambda x: t.utils.checkpoint.checkpoint(lambda y: y.sin().sum(), x)),
    "autocast": cast,
    "compile": lambda: t.compile(lambda x: x + 1, engine="eager")(t.ones(2)).tolist(),
    "functionalize": lambda: t.func.functionalize(lambda x: x.clone().add_(1))(t.ones(2)).tolist(),
    "meta": lambda: (t.ones(2, device="meta") + 1).shape,
    "fake": fake,
    "a module": lambda: made(t.ones(2)).shape,
    "optim": trained,
    "masked": lambda: t.masked.sum(t.ones(2), mask=t.tensor([True, False])).item(),
    "signal": lambda: t.signal.windows.hann(4).tolist(),
    "array_api": lambda: t.array_api.sum(t.ones(2)).item(),
}

def ended(call):
    try:
        return "result", call()
    except TurnoutError as error:
        return type(error).__name__, str(error)

before = {name: ended(call) for name, call in CALLS.items()}
wrong = {name: end for name, end in before.items() if end[0] != "result"}
assert not wrong, wrong
for plugin in sys.argv[1:]:
    t.config.set({"plugins.disable": [plugin]})
    during = {name: ended(call) for name, call in CALLS.items()}  # a result, or an error of Turnout
    assert any(end[0] != "result" for end in during.values()), plugin
    t.config.unset("plugins.disable")
    after = {name: ended(call) for name, call in CALLS.items()}
    wrong = {name: end for name, end in after.items() if end != before[name]}
    assert not wrong, (plugin, wrong)
"""


@pytest.mark.parametrize(
    "plugins",
    [
        ["aten"],
        ["autograd"],
        ["cpu", "meta", "batched", "autocast"],
        ["tracer", "functionalize", "nn", "masked", "signal", "array_api"],
    ],
    ids="-".join,
)
def test_what_worked_before_a_plugin_was_disabled_works_when_it_is_enabled_again(plugins: list[str]) -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM, *plugins], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
