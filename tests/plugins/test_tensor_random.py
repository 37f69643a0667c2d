"""Generators: seeds, states, and that results depend on nothing else."""

from __future__ import annotations

import pickle

import pytest

import turnout
from turnout.errors import CallError
from turnout.random import default_generator


def test_the_same_seed_gives_the_same_numbers() -> None:
    turnout.manual_seed(5)
    first = turnout.rand(4).tolist()
    assert turnout.rand(4).tolist() != first
    turnout.manual_seed(5)
    assert turnout.rand(4).tolist() == first
    assert turnout.rand(4, generator=turnout.Generator().manual_seed(5)).tolist() == first


def test_a_state_can_be_gone_back_to() -> None:
    generator = turnout.Generator().manual_seed(1)
    state = generator.get_state()
    first = turnout.rand(3, generator=generator).tolist()
    generator.set_state(state)
    assert turnout.rand(3, generator=generator).tolist() == first
    assert generator.initial_seed() == 1


def test_generators_do_not_disturb_each_other() -> None:
    turnout.manual_seed(3)
    expected = turnout.rand(2).tolist()
    turnout.manual_seed(3)
    turnout.rand(5, generator=turnout.Generator())
    assert turnout.rand(2).tolist() == expected


def test_reserving_gives_no_word_twice() -> None:
    generator = turnout.Generator().manual_seed(0)
    assert [generator.reserve(3), generator.reserve(1)] == [(0, 0), (0, 3)]


def test_a_generator_is_pickled_with_its_state() -> None:
    generator = turnout.Generator().manual_seed(9)
    generator.reserve(4)
    assert pickle.loads(pickle.dumps(generator)).get_state() == (9, 4)
    assert generator.clone_state().get_state() == (9, 4)


def test_the_default_generator_belongs_to_its_device() -> None:
    assert default_generator("cpu") is default_generator("cpu:0")
    assert default_generator("meta") is not default_generator("cpu")


def test_wrong_seeds_and_states_are_refused() -> None:
    with pytest.raises(CallError) as caught:
        turnout.manual_seed(1.5)
    assert str(caught.value) == "manual_seed: argument 'seed' must be an int, got float"
    with pytest.raises(CallError) as caught:
        turnout.Generator().set_state((1,))
    assert str(caught.value) == "set_state: expected what get_state() returns, two ints of 64 bits, got (1,)"


def test_uniform_numbers_are_uniform() -> None:
    turnout.manual_seed(0)
    x = turnout.rand(20_000)
    assert 0 <= x.min().item() < x.max().item() < 1
    assert abs(x.mean().item() - 0.5) < 0.01
    assert abs(x.var().item() - 1 / 12) < 0.005
