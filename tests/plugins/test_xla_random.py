"""Compiled by `xla`, what draws gives the numbers of eager calls: the place of each generator is an input of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from outcomes import in_threads
from turnout import compiler
from turnout.errors import ArgumentError, DimError
from turnout_aten.tensor.random import Generator, default_generator

NEEDS_DEVICE = "jax"
pytestmark = pytest.mark.usefixtures("programs_of_all_sizes")
F = turnout.nn.functional
PARTS = 6
# What draws and has to know numbers, so that no program can do it.
EAGERLY = ("poisson", "randint_like.Tensor", "randint_like.Tensor_generator")
# Arguments by name. Others are 0.25.
VALUES: dict[str, Any] = {
    "size": (3, 4), "high": 7, "low": -3, "from": 2, "to": 1 << 40, "n": 9, "num_samples": 2, "train": True, "training": True,
    "dropout": 0.5, "dropout_p": 0.5, "has_biases": False, "num_layers": 2, "bidirectional": False, "batch_first": True,
}  # fmt: skip
GATES = {"gru": 3, "lstm": 4, "rnn_relu": 1, "rnn_tanh": 1}
# These give other last digits: XLA has its own logarithms and trigonometric functions, and adds up in another order.
CLOSE = ("normal", "randn", "cauchy", "exponential", "geometric", "alpha_dropout", "scaled_dot", *GATES)


def drawing() -> dict[str, Any]:
    """All operators that draw, but for the forms with `out`."""
    packets = [getattr(turnout.ops.aten, name) for name in dir(turnout.ops.aten)]
    found = {op.qualified_name.removeprefix("aten::"): op for p in packets for op in (getattr(p, o) for o in p.overloads())}
    draw = {name: op for name, op in found.items() if "nondeterministic_seeded" in op.tags}
    return {name: op for name, op in draw.items() if not any(a.is_out for a in op.schema.arguments)}


def call_of(op: Any) -> Callable[[Any, Any], Any]:
    """The operator as a function of a tensor of six numbers between 0 and 1, and a generator or None."""

    def value(argument: Any, x: Any, generator: Any) -> Any:
        name, kind = argument.name, str(argument.type)
        if name == "generator":
            return generator
        if argument.has_default and name not in ("training", "dropout_p"):
            return argument.default_value
        if op.name in GATES and "Tensor" in kind:
            weights, state = x.reshape(-1)[:1].expand(4 * GATES[op.name], 4), x.new_zeros(2, 2, 4)
            return {"params": [weights] * 4, "hx": [state] * 2 if op.name == "lstm" else state}.get(name, x.new_ones(2, 3, 4))
        return x.clone() if kind == "Tensor" else VALUES.get(name, 0.25)

    def call(x: Any, generator: Any) -> Any:
        given = [(a, value(a, x, generator)) for a in op.schema.arguments if a.name != "device"]
        named = {a.name: v for a, v in given if a.kwarg_only}
        device = {"device": x.device} if any(a.name == "device" for a in op.schema.arguments) else {}
        return op(*[v for a, v in given if not a.kwarg_only], **named, **device)

    return call


def calls(function: Any, device: str) -> tuple[list[Any], Any]:
    """What four calls give, between which the seed is set anew, and where the generators are then."""
    turnout.manual_seed(3)
    generator = turnout.Generator(device).manual_seed(1 << 63)
    x = turnout.linspace(0.1, 0.9, 6).reshape(2, 3).to(device)
    found = []
    for i in range(4):
        if i == 2:
            turnout.manual_seed(-5)
            generator.set_state((7, (1 << 64) - 3))  # the words from the end on
        found.append(turnout.trees.map_leaves(lambda t: t.cpu(), function(x, generator)))
    return found, (turnout.random.get_rng_state(), turnout.rand(1, device=device).item(), generator.get_state())


@pytest.mark.parametrize("device", ["cpu", "jax"])
@pytest.mark.parametrize("part", range(PARTS))
def test_every_operator_that_draws_gives_the_numbers_of_eager_calls(part: int, device: str) -> None:
    names = [name for name in sorted(drawing()) if name not in EAGERLY][part::PARTS]
    ops = [call_of(drawing()[name]) for name in names]

    def function(x: Any, generator: Any) -> Any:
        return [[op(x, None), op(x, generator)] for op in ops]

    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    (found, after), (expected, expected_after) = calls(compiled, device), calls(function, device)
    assert [entry.program.calls for entry in compiled.entries.values()] == [3]
    assert after == expected_after
    for i, name in enumerate(names):
        for ours, theirs in zip(found, expected, strict=True):
            tolerance = {"rtol": 2e-5, "atol": 1e-6} if any(part in name for part in CLOSE) else {"rtol": 0.0, "atol": 0.0}
            turnout.testing.assert_close(ours[i], theirs[i], **tolerance, msg=name)


def test_what_has_to_know_numbers_to_draw_runs_eagerly() -> None:
    compiled: Any = turnout.compile(turnout.poisson, engine="xla")
    rates = turnout.tensor([0.5, 3.0, 20.0])
    with pytest.warns(compiler.CompileWarning) as caught:
        compiled(rates)
    assert str(caught[0].message) == (
        "compile: poisson runs eagerly: the engine 'xla' does not take the graph: aten::poisson draws random numbers and has "
        "to know numbers"
    )
    turnout.manual_seed(2)
    found = compiled(rates).tolist()
    turnout.manual_seed(2)
    assert found == turnout.poisson(rates).tolist()


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_steps_of_training_with_dropout_agree(device: str) -> None:
    def step(weights: list[Any], x: Any, y: Any) -> Any:
        hidden = F.dropout((x @ weights[0]).relu(), 0.5)
        loss = F.cross_entropy(F.dropout(hidden @ weights[1] + turnout.randn(16, 3, device=x.device) * 0.1, 0.1), y)
        loss.backward()
        with turnout.no_grad():
            for w in weights:
                w.sub_(w.grad, alpha=0.5)
                w.grad = None
        return loss.detach()

    def train(function: Any) -> list[float]:
        turnout.manual_seed(0)
        weights = [turnout.randn(6, 8, device=device).requires_grad_(), turnout.randn(8, 3, device=device).requires_grad_()]
        x, y = turnout.randn(16, 6, device=device), turnout.randint(0, 3, (16,), device=device)
        return [function(weights, x, y).item() for _ in range(8)]

    compiled: Any = turnout.compile(step, engine="xla", strict=True)
    found, expected = train(compiled), train(step)
    assert found == pytest.approx(expected, rel=1e-4)
    assert len({*found}) == 8
    [entry] = compiled.entries.values()
    assert (entry.program.calls, entry.program.notes) == (7, ())


def test_a_call_that_raises_leaves_the_generator_where_an_eager_one_does() -> None:
    def function(p: Any, i: Any) -> Any:
        return turnout.rand(3) + p.bernoulli() + turnout.rand(5)[i]

    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    good, bad, at = turnout.full((3,), 0.5), turnout.full((3,), 1.5), turnout.tensor([0, 1, 2])
    compiled(good, at)
    for given, error in (((bad, at), ArgumentError), ((good, at + 5), DimError)):
        seen = []
        for call in (compiled, function):
            turnout.manual_seed(6)
            with pytest.raises(error) as caught:
                call(*given)
            seen.append((str(caught.value), turnout.get_rng_state()))
            seen[-1] += (call(good, at).tolist(),)
        assert seen[0] == seen[1]
    [entry] = compiled.entries.values()
    assert entry.program.calls == 4


def test_a_default_generator_that_is_an_argument_too_gives_its_words_in_turn() -> None:
    def function(generator: Any) -> Any:
        return turnout.rand(2), turnout.rand(2, generator=generator), turnout.rand(2)

    compiled: Any = turnout.compile(function, engine="xla", strict=True)
    for given in (turnout.Generator(), default_generator("cpu"), turnout.Generator()):
        found = []
        for call in (compiled, function):
            turnout.manual_seed(4)
            given.manual_seed(4)
            found.append([[t.tolist() for t in call(given)] for _ in range(2)] + [given.get_state()])
        assert found[0] == found[1]


def test_threads_draw_each_word_once() -> None:
    compiled: Any = turnout.compile(lambda x: x + turnout.rand(4), engine="xla", strict=True)
    x = turnout.zeros(4)
    turnout.manual_seed(8)
    compiled(x)
    drawn: list[float] = []

    def draw() -> None:
        for _ in range(20):
            drawn.extend(compiled(x).tolist())

    in_threads(*[draw] * 4)
    turnout.manual_seed(8)
    turnout.rand(4)
    assert sorted(drawn) == sorted(turnout.rand(320).tolist())


def test_a_generator_that_nothing_draws_from_may_be_an_argument() -> None:
    compiled: Any = turnout.compile(lambda generator, x: x + 1, engine="xla", strict=True)
    for device in ("cpu", "jax"):
        generator = turnout.Generator(device).manual_seed(3)
        for _ in range(3):
            assert compiled(generator, turnout.ones(2, device=device)).tolist() == [2.0, 2.0]
        assert generator.get_state() == turnout.Generator(device).manual_seed(3).get_state()


def test_what_may_draw_and_does_not_takes_no_place_of_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return F.scaled_dot_product_attention(x, x, x) + F.dropout(x, 0.0)

    for device in ("cpu", "jax"):
        compiled: Any = turnout.compile(function, engine="xla", strict=True)
        x = turnout.rand(1, 2, 3, 4).to(device)
        compiled(x)
        with monkeypatch.context() as patched:
            patched.setattr(Generator, "reserve", None)
            for _ in range(3):
                turnout.testing.assert_close(compiled(x), function(x), rtol=1e-5, atol=1e-5)
