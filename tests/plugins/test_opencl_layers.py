"""Layers on `opencl` against `cpu`, in random calls, with their gradients; and a network that is trained without the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import turnout
from random_programs import layers
from turnout import autograd
from turnout.errors import DimError
from turnout_aten.backend import host_fallback as hosting
from turnout_cli.digits import Convolutional, Momentum, train_step
from turnout_opencl.devices import ClDevice

F = turnout.nn.functional


@pytest.fixture(scope="module", autouse=True)
def needs_a_driver(need_device: Callable[[str], None]) -> None:
    need_device("opencl")


class OnOpenCL:
    """The library, with new tensors on `opencl`."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(turnout, name)
        return partial(found, device="opencl") if name == "arange" else found


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
    found = outcome(text, OnOpenCL())
    if hosting.calls():
        return f"it ran on the host: {hosting.report()}"
    for i, (got, wanted) in enumerate(zip(found, outcome(text, turnout), strict=True)):
        what = f"gradient {i - 1}" if i else "the result"
        if got is None or wanted is None:
            if got is not wanted:
                return f"{what} is {got}, expected {wanted}"
        elif got.dtype is not wanted.dtype or got.shape != wanted.shape:
            return f"{what} is {got.dtype} {list(got.shape)}, expected {wanted.dtype} {list(wanted.shape)}"
        elif not np.allclose(got.cpu().numpy(), wanted.numpy(), rtol=1e-8, atol=1e-10, equal_nan=True):
            return f"{what} is {got.tolist()}\n  expected {wanted.tolist()}"
    return ""


@pytest.mark.parametrize("kind", layers.KINDS)
def test_layers_compute_what_cpu_computes_without_it(kind: str, seeds: Callable[[int], range]) -> None:
    for seed in seeds(25):
        text = layers.call(kind, seed)
        wrong = differs(text)
        assert not wrong, (
            f"seed {seed}: {wrong}\nimport turnout as t\nF, leaf = t.nn.functional, lambda x: x.to('opencl')\nprint({text})"
        )


@pytest.mark.parametrize("shape", [(100_003,), (3, 50_001), (50_001, 3)])
def test_norms_of_long_lines_are_computed_in_two_stages(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype("f4")
    x = turnout.from_numpy(values).to("opencl")
    hosting.reset_calls()
    for order in (0, 1, 2, 3.5, float("inf"), -float("inf")):
        for dim in (None, *range(len(shape))):
            axis = tuple(range(len(shape))) if dim is None else dim
            wide = values.astype("f8")
            expected = np.linalg.norm(wide.reshape(-1) if dim is None else wide, order, axis=0 if dim is None else axis)
            assert np.allclose(turnout.linalg.vector_norm(x, order, dim).cpu().numpy(), expected, rtol=1e-4)
    assert hosting.calls() == {}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_layers_of_shorter_floats_are_near_those_of_cpu(dtype: str) -> None:
    made = turnout.randn(2, 6, 9, 9).to(getattr(turnout, dtype))
    weight = (turnout.randn(4, 6, 3, 3) * 0.2).to(getattr(turnout, dtype))
    scale = turnout.ones(6, dtype=getattr(turnout, dtype))
    for call in (
        lambda x, w, s: F.conv2d(x, w, padding=1),
        lambda x, w, s: F.conv_transpose2d(x, w.permute(1, 0, 2, 3), stride=2),
        lambda x, w, s: F.max_pool2d(x, 3),
        lambda x, w, s: F.avg_pool2d(x, 3, 2, 1),
        lambda x, w, s: F.adaptive_avg_pool2d(x, (4, 5)),
        lambda x, w, s: F.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda x, w, s: F.group_norm(x, 3, s, s),
        lambda x, w, s: F.layer_norm(x, [9]),
        lambda x, w, s: turnout.linalg.vector_norm(x, 3, (2, 3)),
        lambda x, w, s: F.pad(x, (1, 2)),
    ):
        args = (made, weight, scale)
        hosting.reset_calls()
        found, expected = call(*[a.to("opencl") for a in args]), call(*args)
        assert hosting.calls() == {}
        assert found.dtype is expected.dtype
        close = 1e-5 if dtype == "float32" else 4e-3 if dtype == "float16" else 2e-2
        assert np.allclose(found.cpu().float().numpy(), expected.float().numpy(), rtol=close, atol=close)


def test_a_convolutional_network_is_trained_without_the_host() -> None:
    generator = turnout.Generator("opencl").manual_seed(0)

    def leaf(*shape: int) -> turnout.Tensor:
        return (turnout.randn(*shape, device="opencl", generator=generator) * 0.3).requires_grad_()

    images = turnout.randn(32, 1, 8, 8, device="opencl", generator=generator)
    labels = (images[:, 0, :4].sum((1, 2)) > images[:, 0, 4:].sum((1, 2))).long()
    first, shift, second = leaf(6, 1, 3, 3), leaf(6), leaf(6 * 16, 2)
    hosting.reset_calls()

    def loss() -> turnout.Tensor:
        x = F.group_norm(F.conv2d(images, first, shift, padding=1), 2)
        x = F.max_pool2d(F.relu(x), 2)
        x = F.layer_norm(F.dropout(x, 0.0).flatten(1), [6 * 16])
        return F.cross_entropy(x @ second, labels)

    start = loss().item()
    for _ in range(30):
        for parameter in (first, shift, second):
            parameter.grad = None
        loss().backward()
        with turnout.no_grad():
            for parameter in (first, shift, second):
                parameter -= 0.2 * parameter.grad
    assert loss().item() < start / 3
    assert hosting.calls() == {}


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
    optimiser = Momentum(model.parameters, 0.05)
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
    with pytest.raises(DimError) as caught:
        loss.item()
    assert str(caught.value) == "nll_loss: target 3 is out of bounds for 3 classes"
    assert loss.item() > 0.0
    index = turnout.tensor([0, 5, 1], device="opencl")
    total = turnout.zeros(3, device="opencl").scatter_add(0, index, turnout.ones(3, device="opencl"))
    with pytest.raises(DimError) as caught:
        turnout.opencl.synchronize()
    assert str(caught.value) == "scatter_add: index 5 is out of bounds for a dimension of size 3"
    assert total.tolist() == [1.0, 1.0, 0.0]


def test_many_reports_are_read_before_there_is_no_room_for_another_one() -> None:
    x = turnout.zeros(2, 3, device="opencl")
    good, wrong = turnout.tensor([0, 1], device="opencl"), turnout.tensor([0, -7], device="opencl")

    def calls(count: int) -> None:
        for _ in range(count):
            F.nll_loss(x, good)

    calls(200)
    F.nll_loss(x, wrong)
    with pytest.raises(DimError) as caught:
        calls(64)
    assert "target -7 is out of bounds for 3 classes" in str(caught.value)
