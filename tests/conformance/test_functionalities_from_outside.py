"""Functionalities that someone outside writes with the page alone: what they compute for themselves, and what they count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

import turnout
from outside_functionalities import FlopCounter, NanGuard
from turnout.explanation.tracing import Call, Log
from turnout.registry import REGISTRY, Registrations
from turnout.state import include, only_backends
from turnout_conformance import batches
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import arguments, leaf, row_major, samples

# The operators that have both a kernel of their own and one that is composed of others: which of them runs depends on the call.
TWOFOLD = (
    "convolution_backward", "embedding_dense_backward", "gru.input", "hardswish_backward", "hardtanh_backward", "huber_loss",
    "l1_loss", "leaky_relu_backward", "linalg_matmul", "lstm.input", "masked_select", "native_batch_norm_backward",
    "native_group_norm_backward", "native_layer_norm_backward", "rms_norm", "scaled_dot_product_attention", "smooth_l1_loss",
)  # fmt: skip


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


# ---- counts


class Watchers:
    """The two counters, and a functionality that passes on everything, whose calls a trace shows."""

    def __init__(self, library: Registrations, log: Log) -> None:
        self.log = log
        self.guard = NanGuard(library)
        self.counter = FlopCounter(library, after="Nanguard")
        library.functionality("Reference", after="Flops")
        bit = REGISTRY.keys.bit("Reference")
        library.fallback("Reference", lambda op, ks, args: op.redispatch(ks & ~bit, *args))

    def check(self, call: Callable[[], Any], what: object, sets: Iterable[tuple[str, ...]]) -> None:
        """What each set of functionalities that is on counts is what a trace of the call shows."""
        self.log.calls.clear()
        with include("Reference"):
            outcome(call)
        expected = Counter(calls_in(self.log.calls))
        for names in sets:
            self.guard.checked.clear()
            self.counter.calls.clear()
            with include(list(names)):
                outcome(call)
            for name, found in (("Nanguard", self.guard.checked), ("Flops", self.counter.calls)):
                assert found == (expected if name in names else {}), (what, names, name)


def outcome(call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001 - a call that is refused has counted what it came to
        return


def calls_in(calls: Iterable[Call]) -> Iterator[str]:
    """The calls of a trace, each once: kernels written in others are gone into, other kernels are calls."""
    for call in calls:
        below = call.calls[0] if call.key == "Reference" and call.calls else None
        if below is None:
            yield from calls_in(call.calls)
        elif below.reason == "math kernel" or (below.kernel == "composed of operators" and below.calls[0].op != call.op):
            yield from calls_in(below.calls)
        elif not below.error:
            yield call.op


@pytest.fixture(scope="module")
def watchers() -> Iterator[Watchers]:
    turnout.ones(1) + 1
    with Registrations("outside", package="outside_functionalities") as library, turnout.trace_dispatch() as log:
        yield Watchers(library, log)


SETS = (("Nanguard",), ("Flops",), ("Nanguard", "Flops"))
WAYS = ((row_major, turnout.enable_grad), (leaf, turnout.enable_grad), (leaf, turnout.no_grad))


def check_counts(watchers: Watchers, case: OperatorCase, most: int | None = None) -> None:
    """The first sample in all ways, with each counter alone and both. Another sample can only lead to other calls: with both,
    recorded; in all ways where the call decides which kernel runs."""
    op = REGISTRY.find(f"aten::{case.op}")
    for number, (sample, dtype) in enumerate(list(samples(case, "cpu", case.dtypes[:1]))[:most]):
        sets = SETS[2:] if number else SETS
        for make, mode in WAYS[1:2] if number and case.op not in TWOFOLD else WAYS:

            def call(sample=sample, dtype=dtype, make=make, mode=mode):
                args, kwargs = arguments(sample, dtype, make("cpu"))
                with mode():
                    made = op(*args, **kwargs)
                [each.sum().backward() for each in ([made] if isinstance(made, turnout.Tensor) else made) if each.requires_grad]

            watchers.check(call, (case.op, sample, make, mode), sets)
        one = batches.Call(case, sample, dtype)
        mix = (0,) * len(one.tensors)
        if batches.is_mapped(one):
            watchers.check(
                lambda one=one, mix=mix: turnout.vmap(one, mix, randomness="same")(*one.batches(mix)), (case.op, sample), sets
            )


@pytest.mark.parametrize("op", sorted({case.op for case in CASES}))
def test_counters_count_each_call_of_an_operator_once(watchers, op):
    for case in CASES:
        if case.op == op:
            check_counts(watchers, case)


def test_all_operators_with_two_kinds_of_kernels_have_cases_and_a_sample_is_counted_once(watchers):
    assert set(TWOFOLD) <= {case.op for case in CASES}
    both = {name for name in TWOFOLD if len(REGISTRY.find(f"aten::{name}").kernels) > 1}
    assert both in (set(TWOFOLD), set())  # none without turnout-kernels
    for case in CASES:
        if case.op == "scaled_dot_product_attention":
            check_counts(watchers, case, 1)


def test_the_guard_names_what_made_a_nan_and_the_counter_what_it_cost(watchers):
    x = turnout.ones(1, 2, 4, 8)
    watchers.guard.found.clear()
    watchers.counter.flops.clear()
    for tracked in (False, True):
        q = x.clone().requires_grad_(tracked)
        with include(["Nanguard", "Flops"]):
            turnout.nn.functional.scaled_dot_product_attention(q, q, q)
            (q * 0).log().mul(0)
    assert watchers.counter.flops == {"aten::scaled_dot_product_attention": 1024, "aten::bmm": 1024}
    assert [name for name, _ in watchers.guard.found] == ["aten::mul.Scalar"] * 2


def forward(x):
    y = x * 2
    y = y.sqrt()
    return (y * y.relu()).sum()


def test_the_users_line_is_named_in_forward_backward_and_replay(watchers):
    def lines(call: Callable[[], Any]) -> list[tuple[str, str]]:
        watchers.guard.found.clear()
        with include(["Nanguard", "Flops"]):
            call()
        return list(watchers.guard.found)

    def at(line: int) -> str:
        return f"{__file__}:{forward.__code__.co_firstlineno + line} in forward"

    def traced() -> Any:
        return turnout.trace(forward)(turnout.ones(2))

    minus, zero = turnout.tensor([-1.0, 1.0]), turnout.tensor([0.0, 1.0], requires_grad=True)
    eager = [("aten::sqrt", at(2)), *[(f"aten::{name}", at(3)) for name in ("relu", "mul.Tensor", "sum")]]
    assert lines(lambda: forward(minus)) == eager
    assert lines(lambda: forward(zero).backward()) == [("aten::div.Tensor", at(2)), ("aten::mul.Scalar", at(1))]
    assert lines(lambda: turnout.func.grad(forward)(zero.detach())) == [("aten::div.Tensor", at(2)), ("aten::mul.Scalar", at(1))]
    graphs: list[Any] = []
    lines(lambda: graphs.append(traced()))
    assert lines(lambda: graphs[0](minus)) == eager
    zero.grad = None
    unasked, loss = traced(), forward(zero)  # made while the guard was off
    assert {line for _, line in lines(lambda: unasked(minus))} == {"None"}
    assert lines(loss.backward) == [("aten::div.Tensor", "None"), ("aten::mul.Scalar", "None")]
