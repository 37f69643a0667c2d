"""Random programs of nested checkpoints, in PyTorch and here: the same values, gradients, and no more runs of any function."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.utils.checkpoint as theirs

import turnout
from random_programs import checkpoints


def outcome(library: Any, checkpoint: Any, program: Any, **options: Any) -> tuple[list[Any], list[int]]:
    """The results of a program, and how often each checkpointed function ran, in the order of their first runs."""
    runs: dict[Any, int] = {}

    def counted(function: Any, *args: Any) -> Any:
        place = repr([cell.cell_contents for cell in function.__closure__ if isinstance(cell.cell_contents, list)])

        def call(*args: Any) -> Any:
            runs[place] = runs.get(place, 0) + 1
            return function(*args)

        return checkpoint(call, *args, use_reentrant=False, **options)

    return checkpoints.run(library, program, counted), list(runs.values())


@pytest.mark.parametrize("early", [True, False])
def test_values_and_gradients_are_those_of_pytorch_and_no_function_runs_more_often(seeds: Any, early: bool) -> None:
    for seed in seeds(150):
        program = checkpoints.draw(seed, draws=False)
        ours, our_runs = outcome(turnout, turnout.utils.checkpoint.checkpoint, program, early_stop=early)
        their, their_runs = outcome(torch, theirs.checkpoint, program, early_stop=early)
        repro = f"seed {seed}: {program!r}"
        assert all(map(near, ours, their)), repro
        # Never more often: a formula may save less here than there, so that a function is left earlier or not needed again.
        assert len(our_runs) == len(their_runs), repro
        assert all(mine <= other for mine, other in zip(our_runs, their_runs, strict=True)), repro


def near(mine: list[Any], other: list[Any]) -> bool:
    return bool(
        torch.allclose(torch.tensor(mine, dtype=torch.float64), torch.tensor(other, dtype=torch.float64), rtol=1e-7, atol=1e-10)
    )


@pytest.mark.parametrize("segments", [1, 2, 3, 4, 6])
def test_sequential_segments_are_those_of_pytorch(segments: int) -> None:
    def runs(library: Any, sequential: Any) -> list[int]:
        counts = [0] * 6

        def step(i: int) -> Any:
            def call(x: Any) -> Any:
                counts[i] += 1
                return x.sin()

            return call

        x = library.tensor([0.5], requires_grad=True)
        sequential([step(i) for i in range(6)], segments, x, use_reentrant=False).sum().backward()
        return counts

    assert runs(turnout, turnout.utils.checkpoint.checkpoint_sequential) == runs(torch, theirs.checkpoint_sequential)


class Mine:
    """Layers with tensors in attributes; in PyTorch the same names are those of a module."""

    def __init__(self, t: Any) -> None:
        self.weight = t.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        self.bias = t.tensor([0.5, -0.5], requires_grad=True)
        self.mean = t.tensor([0.0, 0.0])

    def __call__(self, x: Any) -> Any:
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()
        return x @ self.weight.T + self.bias + self.mean


class Theirs(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        like = Mine(torch)
        self.weight, self.bias = torch.nn.Parameter(like.weight.detach()), torch.nn.Parameter(like.bias.detach())
        self.register_buffer("mean", like.mean)

    forward = Mine.__call__


def test_functional_call_gives_what_pytorch_gives_and_keeps_what_was_assigned() -> None:
    def outcomes(t: Any, module: Any) -> list[Any]:
        given = {"weight": t.tensor([[0.5, 0.25], [1.0, 2.0]], requires_grad=True), "mean": t.tensor([1.0, 1.0])}
        y = t.func.functional_call(module, given, (t.tensor([[1.0, 2.0]]),))
        (g,) = t.autograd.grad(y.sum(), given["weight"])
        return [y.tolist(), g.tolist(), given["mean"].tolist(), module.mean.tolist(), module.weight.tolist()]

    assert near_all(outcomes(turnout, Mine(turnout)), outcomes(torch, Theirs()))


def near_all(mine: list[Any], other: list[Any]) -> bool:
    return all(near(a, b) for a, b in zip(mine, other, strict=True))


def test_stacked_modules_under_vmap_give_what_pytorch_gives() -> None:
    def outcomes(t: Any, modules: list[Any]) -> list[Any]:
        parameters, buffers = t.func.stack_module_state(modules)
        assert all(each.requires_grad and each.is_leaf for each in parameters.values())
        x = t.tensor([[1.0, 2.0], [3.0, 4.0]])
        call = t.vmap(lambda p, b: t.func.functional_call(modules[0], (p, b), (x,)), in_dims=(0, 0))
        y = call(parameters, buffers)
        gradients = t.autograd.grad(y.square().sum(), tuple(parameters.values()))
        return [list(parameters), list(buffers)], [y.tolist(), *[g.tolist() for g in gradients]]

    (names, mine), (their_names, other) = outcomes(turnout, [Mine(turnout), Mine(turnout)]), outcomes(torch, [Theirs(), Theirs()])
    assert names == their_names
    assert near_all(mine, other)
