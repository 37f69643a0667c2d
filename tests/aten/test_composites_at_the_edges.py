"""Composite operators where a tensor is empty, a batch, of another dtype, or holds infinities."""

from __future__ import annotations

import pytest

import turnout
from turnout import tensor

INF = float("inf")


def listed(x: turnout.Tensor) -> str:
    """What a tensor holds, so that nan equals nan."""
    return str(x.tolist())


def test_equal_compares_in_the_promoted_dtype():
    assert turnout.equal(turnout.ones(2), turnout.ones(2, dtype=turnout.float64))
    assert turnout.equal(tensor([True]), tensor([1]))
    assert turnout.equal(tensor([16777217]), tensor([16777216.0]))  # the promoted dtype, float32, holds both as one number
    assert not turnout.equal(tensor([0.1]), tensor([0.1], dtype=turnout.float64))
    assert not turnout.equal(tensor([300]), tensor([44], dtype=turnout.uint8))


def test_a_block_diagonal_matrix_of_nothing_is_an_empty_row():
    assert turnout.block_diag().shape == (1, 0)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (turnout.fft.fftfreq(0), []),
        (turnout.fft.rfftfreq(0), [float("nan")]),
        (turnout.fft.fftfreq(3, 0.0), [float("nan"), INF, -INF]),
        (turnout.fft.rfftfreq(4, 0.5), [0.0, 0.5, 1.0]),
    ],
)
def test_frequencies_of_no_samples_or_no_time_are_those_of_a_division_by_zero(made, expected):
    assert listed(made) == str(expected)


def test_the_nuclear_norm_of_a_batch_is_one_number_for_each_matrix():
    matrices = turnout.stack([turnout.eye(2), 3 * turnout.eye(2)])
    turnout.testing.assert_close(turnout.nuclear_norm(matrices), tensor([2.0, 6.0]))
    assert turnout.nuclear_norm(matrices, keepdim=True).shape == (2, 1, 1)


def test_a_histogram_over_an_infinite_range_counts_nothing():
    assert turnout.histc(tensor([1.0, INF]), 3).tolist() == [0, 0, 0]
    assert turnout.histc(tensor([1.0, INF]), 2, min=0, max=2).tolist() == [0, 1]


def test_losses_of_functions_broadcast_and_take_any_margin():
    apart = turnout.margin_ranking_loss(turnout.zeros(2), turnout.ones(2), turnout.ones(2, 1), reduction=0)
    assert apart.tolist() == [[1, 1], [1, 1]]
    assert turnout.triplet_margin_loss(turnout.ones(2), turnout.ones(2), turnout.ones(2), margin=-1.0).item() == 0
