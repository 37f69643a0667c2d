"""Compiled kernels of many elements: copies of any layout, comparisons, numbers beside tensors, cumulative sums by blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from instruction_sets import available

import turnout
from turnout_conformance.pairwise import pairwise

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import layouts, native, pointwise

RNG = np.random.default_rng(11)


def every_layout(shape: tuple[int, ...], dtype: str) -> Iterator[Any]:
    """Arrays of a shape with their dims in every order in memory: dense, every second element, reversed, expanded."""
    for order in itertools.permutations(range(len(shape))):
        lengths = [shape[d] for d in order]
        back = np.argsort(order)
        dense = RNG.integers(0, 256, (*lengths, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
        wide = RNG.integers(0, 200, [2 * n for n in lengths]).astype(dtype)
        every = dense, wide[(slice(1, None, 2),) * len(lengths)], dense[..., ::-1], np.broadcast_to(dense[..., :1], lengths)
        yield from (array.transpose(back) for array in every)


SHAPES = [(5,), (64, 64), (70, 131), (3, 20, 66), (2, 16, 3, 65), (1, 130, 1, 7)]


@pytest.mark.parametrize(
    ("shape", "dtype", "instructions"), pairwise(SHAPES, ["u1", "u2", "u4", "u8"], available()), indirect=["instructions"]
)
def test_a_copy_has_the_elements_of_its_source(shape: tuple[int, ...], dtype: str, instructions: str) -> None:
    for source in every_layout(shape, dtype):
        made = layouts.row_major(source)
        assert made.flags.c_contiguous
        assert made.dtype == source.dtype
        assert np.array_equal(made, source), (source.strides, instructions)


def test_a_copy_into_any_layout_writes_nothing_else(instructions: str) -> None:
    shape, source = (6, 34, 70), RNG.integers(0, 1 << 31, (6, 34, 70), np.int32)
    for order in itertools.permutations(range(3)):
        back = np.argsort(order)
        room = np.full([2 * shape[d] for d in order], -1, np.int32)
        expected = room.copy()
        expected[::2, ::2, 1::2].transpose(back)[...] = source
        native.run("copy", (room[::2, ::2, 1::2].transpose(back),), (source,), (4,), parts=5)
        assert np.array_equal(room, expected)


def test_a_copy_at_any_address(instructions: str) -> None:
    room = RNG.integers(0, 256, 8 * 70 * 70 + 8, np.uint8)
    for first in range(8):
        source = room[first : first + 4 * 70 * 70].view(np.uint32).reshape(70, 70).T
        assert np.array_equal(layouts.row_major(source), source)


def test_an_array_with_more_dims_than_c_takes_is_copied() -> None:
    source = np.arange(1 << 18, dtype=np.float32).reshape((2,) * 18).T
    assert np.array_equal(layouts.row_major(source), source)
    assert np.array_equal(turnout.from_numpy(source).contiguous().numpy(), source)


@pytest.mark.parametrize("dtype", ["bool", "int16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_large_clones_keep_what_they_promise(dtype: str) -> None:
    x = turnout.from_numpy(RNG.integers(0, 2, (300, 4, 70, 2))).to(getattr(turnout, dtype))
    lasts = x.permute(0, 2, 3, 1)
    for source in (x, lasts, x[:, 1:], x[:, :, ::2].transpose(0, 1)):
        for options in ({}, {"memory_format": turnout.contiguous_format}, {"memory_format": turnout.preserve_format}):
            made = source.clone(**options)
            assert turnout.equal(made, source)
            assert made.data_ptr() != source.data_ptr()
            assert made.is_contiguous() or options.get("memory_format") != turnout.contiguous_format
    assert lasts.clone().stride() == lasts.stride()
    assert lasts.contiguous().is_contiguous()
    assert turnout.equal(lasts.contiguous(), lasts)
    assert turnout.zeros(1, 70000).as_strided((1, 70000), (9, 1)).clone().stride() == (9, 1)


SIZES = [(8, 1024), (67, 63), (66, 64), (65, 65), (9, 700), (3, 5000), (1, 70000)]


@pytest.mark.parametrize(
    ("size", "dtype", "instructions"), pairwise(SIZES, [np.float32, np.float64], available()), indirect=["instructions"]
)
def test_rows_are_added_up_in_order(size: tuple[int, int], dtype: Any, instructions: str) -> None:
    x = (1 + RNG.random(size) / size[1]).astype(dtype)
    made = np.empty_like(x)
    totals: list[Any] = [np.cumsum, np.cumprod]
    for product, expected in enumerate(totals):
        for parts in (1, 3):
            native.run("cumulate", (made,), (x,), (native.code(x), size[1], 1, product), parts=parts)
            assert np.array_equal(made, expected(x, 1, np.float64).astype(dtype))


def test_cumulative_sums_may_be_written_over_their_input() -> None:
    x = RNG.standard_normal((70, 100), np.float32)
    expected = turnout.from_numpy(x.copy()).cumsum(-1)
    assert turnout.equal(turnout.from_numpy(x.copy()).cumsum_(-1), expected)
    assert turnout.equal(turnout.from_numpy(np.tile(x, (20, 1))).cumsum(-1)[:70], expected)


RNG = np.random.default_rng(5)
QUESTIONS = {"gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}
COUNT = pointwise.LARGE + 77


def numbers(dtype: str) -> Any:
    """Few values, so that many are equal; nan, infinities and both zeros among them."""
    values = np.array([0.0, -0.0, 0.1, -2.5, np.nan, np.inf, -np.inf, 3.0], dtype)
    return values[RNG.integers(0, len(values), COUNT)]


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_large_comparisons_are_those_of_numpy(name: str, dtype: str, served: Callable[..., list[str]]) -> None:
    asked, a, b = served(pointwise, "apply"), numbers(dtype), numbers(dtype)
    x, y = turnout.from_numpy(a), turnout.from_numpy(b)
    assert np.array_equal(getattr(x, name)(y).numpy(), QUESTIONS[name](a, b))
    for number in (0, 0.1, -2.5, 3):
        assert np.array_equal(getattr(x, name)(number).numpy(), QUESTIONS[name](a, np.asarray(number, dtype)))
    assert asked == [name] * 5


def test_a_comparison_without_memory_of_its_own_reads_before_it_writes() -> None:
    a = RNG.integers(0, 2, COUNT).astype(bool)
    x = turnout.from_numpy(a.copy())
    turnout.ne(x, True, out=x)
    assert np.array_equal(x.numpy(), ~a)


FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
NUMBERS = (0.1, -3, 0, -0.0, 1e12, 1 << 40)
COUNT = pointwise.LARGE + 77


def values(dtype: Any) -> Any:
    """Many elements, infinities and both zeros among them."""
    found = np.random.default_rng(5).standard_normal(COUNT).astype(dtype)
    found[:4] = 0.0, -0.0, np.inf, -np.inf
    return found


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflows and divisions by zero
def test_a_number_beside_many_elements_is_an_element_repeated(name: str, dtype: str, served: Callable[..., list[str]]) -> None:
    asked, a = served(pointwise, "apply"), values(dtype)
    x = turnout.from_numpy(a)
    for number in NUMBERS:
        expected = FUNCTIONS[name](a, np.full(COUNT, number, dtype))
        for found in (getattr(x, name)(number), getattr(x.clone(), name + "_")(number), getattr(x[:, None], name)(number)[:, 0]):
            assert np.array_equal(found.numpy(), expected, equal_nan=True)
            assert np.array_equal(np.signbit(found.numpy()) | np.isnan(expected), np.signbit(expected) | np.isnan(expected))
    assert asked == [name] * 3 * len(NUMBERS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_byte_floats_and_a_number_are_rounded_once(name: str) -> None:
    x = turnout.from_numpy(values("f")).clamp(-100, 100).to(turnout.bfloat16)
    for number in (0.5, -3.0, 1.25):  # what bfloat16 has: it is not rounded itself
        found, exact = getattr(x, name)(number), FUNCTIONS[name](x.to(turnout.float32).numpy(), np.float32(number))
        assert found.equal(turnout.from_numpy(exact).to(turnout.bfloat16))
