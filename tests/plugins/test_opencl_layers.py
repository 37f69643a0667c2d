"""Layers on `opencl` against `cpu`, in random calls, with their gradients; and a network that is trained without the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from outcomes import refused
from random_programs import layers
from random_programs.on_device import Library
from random_programs.running import difference
from turnout import autograd
from turnout.errors import DimError
from turnout_aten.backend import host_fallback as hosting
from turnout_cli.digits import Convolutional, optimiser_of, train_step
from turnout_opencl.devices import ClDevice

pytestmark = pytest.mark.usefixtures("opencl")
F = turnout.nn.functional


def outcome(text: str, library: Any) -> list[Any]:
    """The result of a call, and the gradients of the sum of its squares with respect to the tensors that it is made of."""
    leaves: list[turnout.Tensor] = []

    def leaf(x: turnout.Tensor) -> turnout.Tensor:
        leaves.append(x.requires_grad_())
        return x

    result = eval(text, {"t": library, "F": F, "leaf": leaf})
    if not result.requires_grad:
        return [result]
    return [result.detach(), *autograd.grad(result.square().sum(), leaves, allow_unused=True)]


def differs(text: str) -> str:
    """How a call differs between the devices; "" where it does not."""
    hosting.reset_calls()
    found = outcome(text, Library("opencl"))
    if hosting.calls():
        return f"it ran on the host: {hosting.report()}"
    for i, (got, wanted) in enumerate(zip(found, outcome(text, turnout), strict=True)):
        what = f"gradient {i - 1}" if i else "the result"
        if got is None or wanted is None:
            wrong = "" if got is wanted else f"{what} is {got}, expected {wanted}"
        else:
            wrong = difference(what, got, wanted, close=1e-8)
        if wrong:
            return wrong
    return ""


@pytest.mark.parametrize("kind", layers.KINDS)
def test_layers_compute_what_cpu_computes_without_it(kind: str, seeds: Callable[[int], range]) -> None:
    for seed in seeds(25):
        text = layers.call(kind, seed)
        wrong = differs(text)
        assert not wrong, (
            f"seed {seed}: {wrong}\nimport turnout as t\nF, leaf = t.nn.functional, lambda x: x.to('opencl')\nprint({text})"
        )


def test_attention_runs_without_the_host() -> None:
    q, k, v = (turnout.randn(2, 4, 7, 8, device="opencl").requires_grad_() for _ in range(3))
    hosting.reset_calls()
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    found.sum().backward()
    assert hosting.calls() == {}
    expected = F.scaled_dot_product_attention(q.detach().cpu(), k.detach().cpu(), v.detach().cpu(), is_causal=True)
    assert turnout.allclose(found.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_a_step_of_the_demo_moves_nothing_between_host_and_device_but_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = turnout.Generator("opencl").manual_seed(0)
    model = Convolutional("opencl", generator)
    optimiser = optimiser_of(model)
    images = turnout.rand(64, 64, device="opencl", generator=generator)
    labels = (images[:, 0] * 10).long()
    train_step(model, optimiser, images, labels).item()
    moved: list[str] = []

    def counted(name: str) -> Any:
        move = getattr(ClDevice, name)

        def counting(self: ClDevice, *args: Any) -> Any:
            moved.append(name)
            return move(self, *args)

        return counting

    for name in ("read", "write", "copy_in", "copy_out"):
        monkeypatch.setattr(ClDevice, name, counted(name))
    hosting.reset_calls()
    losses = [train_step(model, optimiser, images, labels) for _ in range(3)]
    assert moved == []
    assert hosting.calls() == {}
    assert losses[2].item() < losses[0].item()
    assert moved == ["read", "read"]


def test_what_a_step_finds_wrong_is_raised_when_its_results_are_read() -> None:
    x = turnout.zeros(2, 3, device="opencl").requires_grad_()
    loss = F.cross_entropy(x, turnout.tensor([0, 3], device="opencl"))
    loss.backward()
    assert refused(DimError, loss.item) == "nll_loss: target 3 is out of bounds for 3 classes"
    assert loss.item() > 0.0
    index = turnout.tensor([0, 5, 1], device="opencl")
    total = turnout.zeros(3, device="opencl").scatter_add(0, index, turnout.ones(3, device="opencl"))
    assert refused(DimError, turnout.opencl.synchronize) == "scatter_add: index 5 is out of bounds for a dimension of size 3"
    assert total.tolist() == [1.0, 1.0, 0.0]


def test_many_reports_are_read_before_there_is_no_room_for_another_one() -> None:
    x = turnout.zeros(2, 3, device="opencl")
    good, wrong = turnout.tensor([0, 1], device="opencl"), turnout.tensor([0, -7], device="opencl")

    def calls(count: int) -> None:
        for _ in range(count):
            F.nll_loss(x, good)

    calls(200)
    F.nll_loss(x, wrong)
    assert "target -7 is out of bounds for 3 classes" in refused(DimError, calls, 64)
