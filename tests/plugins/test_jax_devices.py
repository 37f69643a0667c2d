"""Several devices of JAX: tensors stay where they are, and arrays that are spread over devices stay so, eager and compiled."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NEEDS_DEVICE = "jax"
HEAD = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import turnout

F = turnout.nn.functional

def both(function):
    compiled = turnout.compile(function, engine="xla", strict=True)
    def twice(*args):
        compiled(*args)
        return compiled(*args)
    return {"eager": function, "compiled": twice}

def value(t):
    return t.contiguous().array.value()
"""

ONE_OF_MANY = """
from turnout_conformance.cases import CASES
from turnout_conformance.making import arguments, row_major, samples_of_kinds
from turnout_conformance.replays import call_of

place = turnout.device("jax:3")
native = place.backend.devices[3]
checked = 0
for case in CASES[7::50]:
    sample, dtype = next(samples_of_kinds(case, "jax"))
    made = call_of(case)(*arguments(sample, dtype, row_major("jax:3")))
    for t in turnout.trees.flatten(made)[0]:
        if isinstance(t, turnout.Tensor) and t.numel():
            assert (t.device, value(t).devices()) == (place, {native}), (case.op, t.device, value(t).devices())
            checked += 1
assert checked > 10

functions = {
    "draws": lambda x: turnout.rand(3, device="jax:3"),
    "draws like": lambda x: turnout.rand(3, device=x.device) + x,
    "dropout": lambda x: F.dropout(x, 0.5),
    "data": lambda x: x * turnout.tensor([1.0, 2.0, 3.0], device="jax:3"),
    "no input": lambda x: turnout.zeros(3, device="jax:3") + 1,
    "writes": lambda x: (x.mul_(2), x + 1)[1],
    "callback": lambda x: turnout.special.erfcx(x),
}
for name, function in functions.items():
    found = []
    for call in (function, turnout.compile(function, engine="xla", strict=True)):
        turnout.manual_seed(1)
        made = [call(turnout.ones(3, device="jax:3")) for _ in range(2)]
        assert [(t.device, value(t).devices()) for t in made] == [(place, {native})] * 2, name
        found.append([t.cpu() for t in made])
    turnout.testing.assert_close(found[0], found[1], msg=name)
"""

SPREAD = """
mesh = Mesh(np.array(jax.devices()), ("d",))
rows, everywhere = NamedSharding(mesh, PartitionSpec("d")), NamedSharding(mesh, PartitionSpec())
columns = NamedSharding(mesh, PartitionSpec(None, "d"))
data = jnp.linspace(-2, 2, 64).reshape(16, 4)
x = turnout.as_tensor(jax.device_put(data, rows))
assert str(x.device) == "jax:0"
functions = {
    "add": lambda x: x + 1,
    "new": lambda x: x + turnout.ones(4, device=x.device),
    "zeros_like": lambda x: turnout.zeros_like(x) + x,
    "gelu": F.gelu,
    "softmax": lambda x: x.softmax(1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "matmul": lambda x: x @ turnout.ones(4, 5, device=x.device),
    "convolution": lambda x: turnout.conv1d(x.unsqueeze(1), turnout.ones(1, 1, 2, device=x.device)),
    "sum": lambda x: x.sum(1),
    "cast": lambda x: x.double(),
    "view": lambda x: x[:, 1:3] * 2,
    "write": lambda x: (lambda y: (y[:, 0].mul_(2), y)[1])(x.clone()),
    "cat": lambda x: turnout.cat([x, x], 1),
    "random": lambda x: x + turnout.rand(16, 4, device=x.device),
    "dropout": lambda x: F.dropout(x, 0.5),
    "transposed": lambda x: x.t() * 2,
}
for name, function in functions.items():
    for way, call in both(function).items():
        turnout.manual_seed(2)
        made = call(x)
        turnout.manual_seed(2)
        if way == "compiled":
            function(turnout.as_tensor(data))  # which compiling runs
        expected = function(turnout.as_tensor(data))
        wanted = columns if name == "transposed" else rows
        assert value(made).sharding.is_equivalent_to(wanted, made.ndim), (name, way, value(made).sharding)
        turnout.testing.assert_close(made.cpu(), expected.cpu(), msg=name)

def step(w, x):
    loss = (F.gelu(x @ w) ** 2).mean()
    loss.backward()
    with turnout.no_grad():
        w.sub_(w.grad, alpha=0.5)
    w.grad = None
    return loss.detach()

ways = {"plain": (step, data, jnp.eye(4)), "eager": (step, rows, everywhere)}
ways["compiled"] = (turnout.compile(step, engine="xla", strict=True), rows, everywhere)
losses = {}
for way, (call, batch, weights) in ways.items():
    x = turnout.as_tensor(data if way == "plain" else jax.device_put(data, batch))
    w = turnout.as_tensor(jnp.eye(4) if way == "plain" else jax.device_put(jnp.eye(4), weights)).requires_grad_()
    losses[way] = [call(w, x).item() for _ in range(4)]
    assert way == "plain" or value(w.detach()).sharding.is_equivalent_to(everywhere, 2), (way, value(w.detach()).sharding)
assert np.allclose(losses["eager"], losses["plain"], rtol=1e-5), losses
assert np.allclose(losses["compiled"], losses["plain"], rtol=1e-5), losses
assert losses["plain"][3] < losses["plain"][0]
"""


@pytest.mark.parametrize("text", [ONE_OF_MANY, SPREAD], ids=["one_of_many", "spread"])
def test_tensors_stay_on_their_devices(text: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", HEAD + text], capture_output=True, text=True,
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
