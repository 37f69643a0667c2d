"""Random programs of views, writes and functions against finite differences; `PROGRAMS=2000` in the environment runs that many.

A program is a function of its leaves once the steps that are refused are left out. Which those are is found in a run that is
tracked, for what nobody tracks may be written everywhere.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

import turnout
from autograd_programs import Program
from autograd_programs.as_function import function_of
from turnout import Tensor, autograd
from turnout_autograd.recording import inplace_writes, views

COUNT = int(os.environ.get("PROGRAMS", "120"))
AT_ONCE = 20


def disagreement(seed: int) -> str:
    """What is wrong with the gradients of a seed's program; empty when nothing is."""
    function, start = function_of(Program(seed, smooth=True))
    try:
        autograd.gradcheck(function, start)
        if seed % 3 == 0:
            autograd.gradgradcheck(function, start)
    except (RuntimeError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("start", range(0, COUNT, AT_ONCE))
def test_gradients_of_programs_are_those_of_finite_differences(start: int) -> None:
    found = {seed: disagreement(seed) for seed in range(start, min(start + AT_ONCE, COUNT))}
    wrong = {seed: text for seed, text in found.items() if text}
    assert not wrong, "\n\n".join(f"seed {seed}: {text}\n{Program(seed, smooth=True)}" for seed, text in wrong.items())


def wrong_seeds() -> list[int]:
    return [seed for seed in range(30) if disagreement(seed)]


def test_a_write_into_a_view_that_leaves_the_old_gradient_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets_to_zero(self: inplace_writes.CopySlices, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        part = views.replay(grad, self.chain)
        inner = self.inner
        given = inner.backward(part.clone(), (inner.edges[0], *edges[1:]))
        return (grad, *((given,) if inner.unary else given)[1:])

    monkeypatch.setattr(inplace_writes.CopySlices, "backward", forgets_to_zero)
    assert len(wrong_seeds()) > 2


def test_views_that_do_not_follow_their_base_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unrecorded(mask: int, base: Tensor, chain: Any) -> Tensor:
        with turnout.no_grad():
            return views.replay(base, chain)

    monkeypatch.setattr(views, "replayed", unrecorded)
    assert len(wrong_seeds()) > 2


def test_gradients_that_go_to_another_part_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = inplace_writes.CopySlices.backward

    def from_the_other_end(self: inplace_writes.CopySlices, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        return right(self, grad.flip(0) if grad.ndim else grad, edges)

    monkeypatch.setattr(inplace_writes.CopySlices, "backward", from_the_other_end)
    assert len(wrong_seeds()) > 2
