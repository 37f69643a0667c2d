"""Functionalities that someone outside writes with the page alone: what they compute for themselves, and what they count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout.registry import REGISTRY, Registrations
from turnout.state import include, only_backends


class Noting(turnout.DispatchMode):
    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def dispatch(self, op, ks, args):
        self.seen.append(op.qualified_name)
        return op.redispatch(ks, *args)


class Own(turnout.Tensor):
    calls = 0

    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):
        cls.calls += 1
        return op.redispatch(ks, *args)


WORLDS: dict[str, Callable[[Callable[..., Any], turnout.Tensor], Any]] = {
    "plain": lambda ask, x: ask(x),
    "tracked": lambda ask, x: ask(x.clone().requires_grad_()),
    "vmap": lambda ask, x: turnout.vmap(ask)(x),
    "grad": lambda ask, x: turnout.func.grad(lambda y: (ask(y) * y.nan_to_num()).sum())(x) * 0 + x.isnan(),
    "jvp": lambda ask, x: turnout.func.jvp(lambda y: (y, ask(y)), (x,), (x,), has_aux=True)[2],
    "functionalised": lambda ask, x: turnout.func.functionalize(lambda y: ask(y.clone().mul_(2)))(x),
    "functionalised inside vmap": lambda ask, x: turnout.vmap(turnout.func.functionalize(lambda y: ask(y.clone().mul_(2))))(x),
    "autocast": lambda ask, x: turnout.autocast("cpu")(ask)(x),
    "inference": lambda ask, x: turnout.inference_mode()(ask)(x),
    "subclass": lambda ask, x: ask(turnout.as_subclass(x, Own)),
}


@pytest.mark.parametrize("world", WORLDS)
def test_what_a_functionality_computes_for_itself_is_right_and_seen_by_nothing_else(world):
    seen: list[str] = []
    x = turnout.tensor([[1.0, float("nan")], [float("nan"), 2.0]])

    def ask(y):
        before = len(seen)
        with only_backends():
            found = turnout.isnan(y)
            assert turnout.zeros(2).tolist() == [0.0, 0.0]
        assert len(seen) == before
        return found

    with Registrations("seeing") as library:
        places = {"Lowest": {"after": "BackendSelect"}, "Middle": {"after": "Autograd"}, "Highest": {"after": "BatchedMode"}}
        for name, place in places.items():
            library.functionality(name, **place)
            bit = REGISTRY.keys.bit(name)

            def note(op, ks, args, bit=bit):
                seen.append(op.qualified_name)
                return op.redispatch(ks & ~bit, *args)

            library.fallback(name, note)
        with include(list(places)), Noting(seen):
            assert (x + 1).shape == (2, 2)
            assert set(seen) == {"aten::add.Scalar"}
            assert len(seen) == 4  # all of them are on
            found = WORLDS[world](ask, x)
        assert found.bool().tolist() == [[False, True], [True, False]]
    assert Own.calls == (world == "subclass")
    Own.calls = 0


def test_only_backends_keeps_what_holds_values_of_third_parties_and_makes_no_data_of_fakes():
    kept: list[str] = []
    with Registrations("seeing") as library:
        library.functionality("Coded", after="Python", holds_values=True)
        bit = REGISTRY.keys.bit("Coded")
        library.fallback("Coded", lambda op, ks, args: kept.append(op.name) or op.redispatch(ks & ~bit, *args))
        with include("Coded"), only_backends():
            turnout.isnan(turnout.ones(2))
    assert kept == ["ones", "isnan"]
    with turnout.FakeMode():
        x = turnout.ones(2, 3)
        with only_backends():
            assert "FakeTensor" in str(x.isnan())
