"""Tensors on `meta`: shapes without data."""

from __future__ import annotations

import random

import pytest

import turnout
from outcomes import refused
from turnout.devices import device
from turnout.errors import AliasError, ArgumentError, NoDataError, ShapeError

BACKEND_CASES = ((2, 3), (), (0, 4))


@pytest.mark.parametrize("shape", BACKEND_CASES)
def test_factories_make_shapes(shape: tuple[int, ...]) -> None:
    for made in (turnout.zeros(shape, device="meta"), turnout.rand(shape, device="meta")):
        assert (made.shape, made.dtype, made.device) == (shape, turnout.float32, device("meta"))
        assert made.is_meta
    assert turnout.arange(5, device="meta").shape == (5,)
    assert turnout.eye(3, device="meta").shape == (3, 3)


def test_strides_of_element_wise_results_are_those_of_a_device_with_data() -> None:
    draw = random.Random(0)
    for _ in range(300):  # dims of one element may have any stride, and spread ones have 0
        whole = [draw.choice([1, 1, 2, 3]) for _ in range(draw.choice([2, 3]))]
        views = [([draw.choice([n, n, 1]) for n in whole], [draw.choice([0, 1, 2, 4, 32]) for _ in whole]) for _ in range(2)]
        found = []
        for name in ("cpu", "meta"):
            x, y = (turnout.empty(160, device=name).as_strided(*view) for view in views)
            found.append([((made := f()).shape, made.stride()) for f in (lambda x=x, y=y: x + y, x.tanh, x.relu)])
        assert found[0] == found[1], views


def test_views_share_a_storage_and_know_their_offset() -> None:
    x = turnout.ones(3, 4, device="meta")
    row = x.select(0, 1)
    assert row.is_alias_of(x)
    assert (row.shape, row.stride(), row.storage_offset()) == ((4,), (1,), 4)
    assert row.unsqueeze(1).is_alias_of(x)


def test_writing_into_overlapping_memory_is_refused() -> None:
    x = turnout.ones(5, device="meta")
    refused(AliasError, lambda: x[1:].add_(x[:-1]))
    x[::2].add_(x[1::2][:1])


def test_values_cannot_be_read() -> None:
    x = turnout.ones(2, 2, device="meta")
    for read, text in (
        (lambda: x.sum().item(), "item: a meta tensor has no value"),
        (lambda: x.nonzero(), "nonzero: the shape of its result depends on values, and a meta tensor has none"),
        (lambda: x.tolist(), "cannot copy out of a meta tensor: it has no data; use empty_like(tensor, device=...)"),
    ):
        with pytest.raises(NoDataError) as caught:
            read()
        assert str(caught.value) == text
        assert isinstance(caught.value, NotImplementedError)


def test_a_tensor_goes_to_meta_but_not_back() -> None:
    x = turnout.tensor([[1.0, 2.0]])
    moved = x.to(device="meta")
    assert (moved.shape, moved.dtype, moved.is_meta) == ((1, 2), turnout.float32, True)
    refused(NotImplementedError, moved.to, device="cpu")


def test_changes_in_place_keep_the_shape_and_count() -> None:
    x = turnout.ones(2, device="meta")
    before = x._version
    x.mul_(2).zero_()
    assert (x.shape, x._version) == ((2,), before + 2)


def test_kept_answers_are_those_of_first_calls() -> None:
    x, y = turnout.ones(3, 4, device="meta"), turnout.ones(3, 4, device="meta", dtype=turnout.float64)
    for _ in range(3):
        assert ((x + x).shape, (x + x).stride(), (x + x).dtype) == ((3, 4), (4, 1), turnout.float32)
        assert ((x.t() + x.t()).shape, (x.t() + x.t()).stride()) == ((4, 3), (1, 4))  # strides are part of what is kept
        assert (x + y).dtype is turnout.float64
        assert (x + 1).dtype is turnout.float32
        assert (x.to(turnout.int64) + 1.5).dtype is turnout.get_default_dtype()
        assert [t.shape for t in x.max(1)] == [(3,), (3,)]
        assert turnout.cat([x, x, x], 1).shape == (3, 12)
        assert (x + x).keys == x.keys
        assert "mm" in refused(ShapeError, lambda: x @ x)
        assert "at least one tensor" in refused(ArgumentError, turnout.cat, [])


def test_answers_of_meta_tensors_are_not_those_of_fake_ones() -> None:
    for _ in range(2):
        (turnout.ones(5, device="meta") + turnout.ones(5, device="meta")).exp()
    with turnout.FakeMode() as mode:
        for where in ("cpu", "meta"):
            made = (turnout.ones(5, device=where) + turnout.ones(5, device=where)).exp()
            assert (made.fake_mode, made.device.type, made.shape) == (mode, where, (5,))
    made = turnout.ones(5, device="meta") + turnout.ones(5, device="meta")
    assert made.device is device("meta")
