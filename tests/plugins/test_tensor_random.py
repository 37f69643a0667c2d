"""Generators: seeds, states, and that results depend on nothing else."""

from __future__ import annotations

import pickle

import pytest

import turnout
from turnout_aten.tensor.random import default_generator


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


# ---- distributions: moments and quantiles of many numbers, five deviations wide

N = 20_000


def moments(x: turnout.Tensor) -> tuple[float, float]:
    wide = x.double()
    return wide.mean().item(), wide.var().item()


def drawn(name: str, *args: float, dtype: turnout.DType = turnout.float32) -> turnout.Tensor:
    return getattr(turnout.empty(N, dtype=dtype), name)(*args, generator=turnout.Generator().manual_seed(7))


@pytest.mark.parametrize(
    ("name", "args", "mean", "variance"),
    [
        ("uniform_", (2.0, 5.0), 3.5, 0.75),
        ("normal_", (1.0, 2.0), 1.0, 4.0),
        ("exponential_", (2.0,), 0.5, 0.25),
        ("geometric_", (0.25,), 4.0, 12.0),
        ("bernoulli_", (0.3,), 0.3, 0.21),
        ("random_", (3, 7), 4.5, 1.25),
        ("log_normal_", (0.0, 0.25), 1.0317, 0.0687),
    ],
)
def test_draws_have_the_mean_and_variance_of_their_distribution(name, args, mean, variance) -> None:
    found_mean, found_variance = moments(drawn(name, *args))
    assert abs(found_mean - mean) < 5 * (variance / N) ** 0.5
    assert abs(found_variance - variance) < 0.1 * variance


def test_a_cauchy_number_has_no_mean_but_quartiles() -> None:
    ordered = drawn("cauchy_", 1.0, 2.0).sort()[0].tolist()
    quartiles = [ordered[N // 4], ordered[N // 2], ordered[3 * N // 4]]
    assert all(abs(found - wanted) < 0.15 for found, wanted in zip(quartiles, (-1.0, 1.0, 3.0), strict=True))


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 60.0, 900.0])
def test_poisson_numbers_have_their_rate_as_mean_and_variance(rate) -> None:
    x = turnout.poisson(turnout.full((N,), rate), generator=turnout.Generator().manual_seed(7))
    mean, variance = moments(x)
    assert abs(mean - rate) <= 5 * (rate / N) ** 0.5
    assert abs(variance - rate) <= 0.1 * rate
    assert bool((x == x.floor()).all())
    assert bool((x >= 0).all())


def test_normal_takes_tensors_for_mean_and_deviation() -> None:
    generator = turnout.Generator().manual_seed(7)
    x = turnout.normal(turnout.tensor([0.0, 10.0]).expand(N, 2), turnout.tensor([1.0, 0.0]), generator=generator)
    assert moments(x[:, 1]) == (10.0, 0.0)
    mean, variance = moments(x[:, 0])
    assert abs(mean) < 0.04
    assert abs(variance - 1) < 0.1
    assert turnout.normal(0.0, 1.0, (2, 3)).shape == (2, 3)
    assert turnout.normal(1.0, turnout.zeros(2)).tolist() == [1.0, 1.0]


def test_complex_numbers_have_both_parts() -> None:
    x = turnout.randn(N, dtype=turnout.complex64, generator=turnout.Generator().manual_seed(7))
    parts = x.view(turnout.float32).reshape(N, 2)
    assert all(abs(moments(parts[:, i])[1] - 0.5) < 0.05 for i in (0, 1))


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_draws_by_weight_and_never_a_weight_of_0(replacement) -> None:
    weights = turnout.tensor([1.0, 0.0, 3.0]).expand(N, 3)
    found = turnout.multinomial(weights, 1, replacement, generator=turnout.Generator().manual_seed(7))
    counts = [(found == i).sum().item() for i in range(3)]
    assert counts[1] == 0
    assert abs(counts[2] / N - 0.75) < 0.016


def test_without_replacement_no_index_comes_twice() -> None:
    assert sorted(turnout.multinomial(turnout.ones(5), 5).tolist()) == [0, 1, 2, 3, 4]


def test_like_functions_take_a_generator_and_keep_the_layout() -> None:
    x = turnout.empty(3, 2).t()
    first = turnout.rand_like(x, generator=turnout.Generator().manual_seed(1))
    again = turnout.rand_like(x, generator=turnout.Generator().manual_seed(1))
    assert first.tolist() == again.tolist()
    assert first.stride() == turnout.randint_like(x, 3, 9).stride() == x.stride()
    assert set(turnout.randint_like(x, 3, 5).reshape(-1).tolist()) <= {3.0, 4.0}
