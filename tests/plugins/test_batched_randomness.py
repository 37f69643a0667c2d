"""Random operators inside vmap: refused, shared by all examples, or drawn for each."""

from __future__ import annotations

from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from turnout.func import grad, vmap

import turnout
from outcomes import refused
from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.declarations.tables import GENERATED, SEEDED, standard

REFUSED = (
    "aten::{0}: inside vmap it must be known whether all examples share the random numbers\n"
    "  to fix  vmap(..., randomness='same') or randomness='different'"
)
DRAWS = {
    "rand": lambda x: turnout.rand(4),
    "randn": lambda x: turnout.randn(4),
    "randint": lambda x: turnout.randint(1 << 40, (4,)),
    "randperm": lambda x: turnout.randperm(50),
    "rand_like": lambda x: turnout.rand_like(x),
    "uniform_": lambda x: x.clone().uniform_(),
    "normal_": lambda x: x.clone().normal_(),
    "bernoulli": lambda x: turnout.bernoulli(turnout.full_like(x, 0.5)),
    "dropout": lambda x: turnout.nn.functional.dropout(turnout.ones_like(x), 0.5),
    "multinomial": lambda x: turnout.multinomial(turnout.ones_like(x), 20),
    "poisson": lambda x: turnout.poisson(turnout.full_like(x, 9)),
    "normal": lambda x: turnout.normal(x, turnout.ones_like(x)),
}


def batch() -> turnout.Tensor:
    return turnout.zeros(3, 40)


@pytest.mark.parametrize("name", DRAWS)
def test_random_operators_are_refused_unless_it_is_said_how(name: str) -> None:
    assert refused(RuntimeError, lambda: vmap(DRAWS[name])(batch())) == REFUSED.format(
        {"dropout": "native_dropout", "normal": "normal.Tensor_Tensor"}.get(name, name)
    )


def test_what_could_draw_but_does_not_is_not_refused() -> None:
    shared = turnout.ones(40)
    made = vmap(lambda x: turnout.nn.functional.dropout(shared + x, 0.5, training=False))(batch())
    assert made.tolist() == turnout.ones(3, 40).tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_same_draws_once(name: str) -> None:
    made = vmap(DRAWS[name], randomness="same")(batch())
    assert made[0].tolist() == made[1].tolist() == made[2].tolist()


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4])
def test_chunks_draw_what_all_examples_at_once_draw(chunk_size: int) -> None:
    def shifted(x: turnout.Tensor) -> turnout.Tensor:
        return x + turnout.rand(2) * turnout.randn(2)

    turnout.manual_seed(3)
    at_once = vmap(shifted, randomness="same")(turnout.zeros(5, 2))
    turnout.manual_seed(3)
    assert vmap(shifted, randomness="same", chunk_size=chunk_size)(turnout.zeros(5, 2)).tolist() == at_once.tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_different_draws_for_each(name: str) -> None:
    made = vmap(DRAWS[name], randomness="different")(batch())
    rows = made.tolist()
    assert rows[0] != rows[1] != rows[2] != rows[0]


def test_levels_have_modes_of_their_own() -> None:
    def draw(outer: str, inner: str) -> Any:
        one = vmap(lambda x: turnout.rand(4), randomness=inner)
        return vmap(one, randomness=outer)(turnout.zeros(2, 3, 4)).tolist()

    a = draw("same", "different")
    assert a[0] == a[1]
    assert a[0][0] != a[0][1]
    b = draw("different", "same")
    assert b[0] != b[1]
    assert b[0][0] == b[0][1]
    c = draw("different", "different")
    assert len({tuple(row) for rows in c for row in rows}) == 6
    refused(RuntimeError, draw, "error", "same")


def test_an_unbatched_tensor_cannot_take_different_numbers() -> None:
    shared = turnout.zeros(4)
    assert refused(RuntimeError, lambda: vmap(lambda x: shared.uniform_(), randomness="different")(batch())) == (
        "aten::uniform_: self is not batched, so it cannot take different random numbers for each example\n"
        "  to fix  write into a batched tensor, or use randomness='same'"
    )
    assert shared.tolist() == [0.0] * 4


def test_gradients_of_examples_see_their_own_numbers() -> None:
    rows = vmap(grad(lambda x: (x * turnout.rand(40)).sum()), randomness="different")(batch()).tolist()
    assert rows[0] != rows[1] != rows[2]
    rows = vmap(grad(lambda x: (x * turnout.rand(40)).sum()), randomness="same")(batch()).tolist()
    assert rows[0] == rows[1] == rows[2]


def test_an_unbatched_tensor_is_dropped_differently_for_each() -> None:
    shared = turnout.ones(40)
    made = vmap(lambda x: turnout.nn.functional.dropout(shared, 0.5) + x, randomness="different")(batch()).tolist()
    assert made[0] != made[1]
    assert {v for row in made for v in row} == {0.0, 2.0}


def test_generators_are_advanced_as_outside() -> None:
    seeded = turnout.Generator().manual_seed(3)
    made = vmap(lambda x: turnout.rand(4, generator=seeded), randomness="different")(batch())
    assert made.tolist() == turnout.rand(3, 4, generator=turnout.Generator().manual_seed(3)).tolist()


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_draws_by_each_row_of_each_example(randomness: str, replacement: bool) -> None:
    weights = turnout.zeros(2, 3, 8)  # two that are not 0 in each row, at places that say which row it is
    for i in range(6):
        weights.view(6, 8)[i, i : i + 2] = 1.0
    drawn = vmap(lambda w: turnout.multinomial(w, 2, replacement), 1, randomness=randomness)(weights)
    first = turnout.tensor([[0, 3], [1, 4], [2, 5]]).unsqueeze(2)
    assert drawn.shape == (3, 2, 2)
    assert ((drawn == first) | (drawn == first + 1)).all()
    for wrong in (turnout.ones(3), turnout.ones(3, 2, 2, 2)):  # examples of 0 and of 3 dims
        text = refused(ShapeError, vmap(lambda w: turnout.multinomial(w, 1), randomness="different"), wrong)
        assert text == f"multinomial: probabilities must have 1 or 2 dimensions, got shape {list(wrong.shape[1:])}"


# ---- which operators draw


def in_code(code: CodeType) -> set[str]:
    return {*code.co_names}.union(*[in_code(each) for each in code.co_consts if isinstance(each, CodeType)])


def named(function: Any, met: dict[Any, set[str]]) -> set[str]:
    """What the code of a function names, and that of the functions of Turnout that it calls."""
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, FunctionType) or function in met:
        return set()
    names = met[function] = in_code(function.__code__)
    around = function.__globals__
    modules = [vars(held) for held in map(around.get, names) if isinstance(held, ModuleType) and held is not aten]
    called = [room.get(name) for room in (around, *modules) for name in names]
    called += [cell.cell_contents for cell in function.__closure__ or ()]
    ours = [each for each in called if str(getattr(each, "__module__", "")).startswith(("turnout", __name__))]
    return names.union(*[named(each, met) for each in ours])


def drawing(kernels: dict[str, list[Any]]) -> set[str]:
    """Those of some operators of which a kernel reserves random words, by itself or by calls of others of them."""
    names = {name: set().union(*[named(each, {}) for each in functions]) for name, functions in kernels.items()}
    operators = {each: standard().find(each) for each in set().union(*names.values())}
    found, more = set(), {"reserve"}
    while more:
        asked = more | {each for each, op in operators.items() if op is not None and op.qualified_name in found | more}
        more = {name for name, called in names.items() if called & asked} - found
        found |= more
    return found


def noisy(x: turnout.Tensor) -> turnout.Tensor:
    return aten.add__Tensor(x, shifted(x))


def shifted(x: turnout.Tensor) -> turnout.Tensor:
    return aten.rand_like(x)


def test_the_operators_whose_kernels_draw_are_those_with_the_tag() -> None:
    turnout.zeros(1).add(1)
    packets = [getattr(turnout.ops.aten, name) for name in dir(turnout.ops.aten)]
    operators = {op.qualified_name: op for packet in packets for op in (getattr(packet, each) for each in packet.overloads())}
    kernels = {name: [each.fn for held in op.kernels.values() for each in held] for name, op in operators.items()}
    found = drawing(kernels | {"noisy": [noisy], "plain": [in_code]})
    assert found == {"noisy"} | {name for name, op in operators.items() if SEEDED in op.tags and GENERATED not in op.tags}
    assert "aten::native_dropout" in found  # by calls alone
