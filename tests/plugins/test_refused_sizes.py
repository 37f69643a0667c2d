"""Sizes that do not fit the values or the other arguments are refused."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from turnout.errors import ShapeError


@pytest.mark.parametrize(("repeats", "size", "total"), [([1, 2], 5, 3), ([1, 2], 2, 3), ([0, 0], 1, 0)])
def test_an_output_size_that_is_not_the_sum_of_the_repetitions_is_refused(repeats, size, total):
    # PyTorch: "allocated size does not match required size"
    assert refused(ShapeError, lambda: turnout.repeat_interleave(turnout.tensor(repeats), output_size=size)) == (
        f"repeat_interleave: output_size is {size}, but the result has length {total}"
    )


@pytest.mark.parametrize("length", [1, 5])
def test_half_a_spectrum_of_another_length_than_the_result_needs_is_refused(length):
    spectrum = turnout.ones(2, length, dtype=turnout.complex64)
    assert refused(ShapeError, turnout.ops.aten._fft_c2r, spectrum, [1], 2, 6) == (
        f"fft: 6 elements along dim 1 are made of 4, got {length}"
    )
