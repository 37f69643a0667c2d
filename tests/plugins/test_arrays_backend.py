"""`ArrayBackend` on NumPy: memory, views, host bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from outcomes import refused
from turnout import dtypes
from turnout.devices import Device
from turnout.errors import DTypeError
from turnout_arrays import ArrayBackend


class Other(ArrayBackend):
    name = "OTHER"
    device_type = "other"


BACKEND = Other(np, ml_dtypes.bfloat16)
CPU = Device("cpu")


@pytest.mark.parametrize("dtype", ["f4", "i8", "?", "c16", ml_dtypes.bfloat16])
def test_strided_views_share_memory_whatever_the_root_looks_like(dtype: type) -> None:
    flat = np.arange(24).astype(dtype)
    grid = flat.reshape(4, 6)
    roots = {"row-major": grid, "column-major": grid.T, "with gaps": flat[:24:2].reshape(3, 4)}
    for name, root in roots.items():
        first = (root if name != "column-major" else grid).reshape(-1)[:1]
        view = BACKEND.strided(root, (2, 2), (6, 2), 2)
        assert type(view) is np.ndarray, name
        expected = np.lib.stride_tricks.as_strided(flat[2:], (2, 2), (6 * flat.itemsize, 2 * flat.itemsize))
        assert np.array_equal(view, expected), name
        assert np.shares_memory(view, flat), name
        assert first[0] == flat[0]


def test_strided_gives_an_array_for_one_element() -> None:
    view = BACKEND.strided(np.arange(3.0), (), (), 1)
    assert type(view) is np.ndarray
    assert view.shape == ()
    view[...] = 5
    assert view.item() == 5.0


def test_empty_array_has_row_major_strides() -> None:
    assert BACKEND.strides(np.empty((0, 3))) == (3, 1)
    assert BACKEND.strides(np.empty((2, 0))) == (1, 1)


def test_empty_with_strides_has_them() -> None:
    made = BACKEND.empty((2, 3), dtypes.float32, CPU, (1, 2))
    assert BACKEND.strides(made) == (1, 2)
    assert BACKEND.storage_size(made) == 6


def test_overlap_is_partial_only_when_the_elements_differ_or_are_reordered() -> None:
    flat = np.arange(16.0)
    square = flat.reshape(4, 4)
    assert not BACKEND.partly_overlap(flat, flat[:])
    assert BACKEND.partly_overlap(flat[1:], flat[:-1])
    assert BACKEND.partly_overlap(square, square.T)
    assert not BACKEND.partly_overlap(flat[::2], flat[1::2])
    assert not BACKEND.partly_overlap(flat, np.arange(16.0))


@pytest.mark.parametrize("dtype", list(dtypes.DTYPES.values()), ids=lambda d: d.name)
def test_host_bytes_come_back(dtype: dtypes.DType) -> None:
    array = np.array([[1, 0, 1], [0, 1, 1]]).astype(BACKEND.native_dtype(dtype)).T
    data = BACKEND.to_host(array)
    assert len(data) == 6 * dtype.itemsize
    again = BACKEND.from_host(data, (3, 2), dtype, CPU)
    assert np.array_equal(again, array)
    assert BACKEND.dtype_of(again) is dtype
    assert BACKEND.from_host(b"", (0, 2), dtype, CPU).shape == (0, 2)
    assert BACKEND.item(array[0, 0]) == 1


def test_adopts_only_arrays_that_a_tensor_can_be() -> None:
    array = np.arange(4.0)
    assert BACKEND.adopt(array) is array
    for other in (array[::-1], array.astype(">f8"), np.array(["a"]), [1.0], 1.0):
        assert BACKEND.adopt(other) is None


def test_fill_wraps_an_integer_around() -> None:
    array = np.zeros(2, "u1")
    BACKEND.fill(array, -1)
    assert array.tolist() == [255, 255]


def test_backend_without_bfloat16_says_so() -> None:
    said = refused(DTypeError, Other(np).empty, (1,), dtypes.bfloat16, CPU)
    assert said == "backend OTHER has no arrays of dtype bfloat16"
