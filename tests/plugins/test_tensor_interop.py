"""Tensors and NumPy, DLPack, Python numbers."""

from __future__ import annotations

import array
import warnings

import numpy as np
import pytest

import turnout
from outcomes import refused
from turnout.errors import CallError, DataError, DTypeError
from turnout_arrays.dlpack import dlpack_type


def test_from_numpy_and_numpy_share_memory() -> None:
    source = np.arange(3.0)
    x = turnout.from_numpy(source)
    x.add_(1)
    assert source.tolist() == [1.0, 2.0, 3.0]
    assert np.shares_memory(x.numpy(), source)
    assert np.shares_memory(np.asarray(x), source)


def test_from_numpy_keeps_strides() -> None:
    x = turnout.from_numpy(np.arange(6.0).reshape(2, 3).T)
    assert (x.shape, x.stride()) == ((3, 2), (1, 3))
    assert x.select(0, 1).tolist() == [1.0, 4.0]
    assert turnout.from_numpy(np.arange(8.0)[::2]).unsqueeze(0).tolist() == [[0.0, 2.0, 4.0, 6.0]]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ([1.0], CallError, "from_numpy: argument 'array' must be a NumPy array, got list"),
        (np.array(["a"]), DTypeError, "from_numpy: no tensor has dtype <U1"),
        (np.arange(2, dtype=">i4"), DataError, "from_numpy: no tensor has dtype >i4, which has the other byte order"),
        (
            np.arange(2.0)[::-1],
            DataError,
            "from_numpy: strides (-8,) are negative or not multiples of the element size; copy the array first",
        ),
    ],
)
def test_from_numpy_refuses_what_no_tensor_can_be(value: object, kind: type[Exception], text: str) -> None:
    assert refused(kind, turnout.from_numpy, value) == text


def test_from_numpy_warns_of_a_read_only_array() -> None:
    frozen = np.arange(2.0)
    frozen.flags.writeable = False
    with pytest.warns(UserWarning, match="the array is read-only"):
        turnout.from_numpy(frozen)


def test_asarray_converts_and_copies_as_numpy_asks() -> None:
    x = turnout.tensor([1.0, 2.0])
    assert np.asarray(x, dtype="i4").tolist() == [1, 2]
    assert not np.shares_memory(np.array(x, copy=True), x.numpy())
    assert refused(ValueError, np.array, x, dtype="i4", copy=False) == (
        "a tensor of dtype float32 cannot be an array of int32 without a copy"
    )


def test_force_gives_an_array_of_a_tensor_that_requires_a_gradient() -> None:
    assert turnout.tensor([1.0]).requires_grad_().numpy(force=True).tolist() == [1.0]


def test_dlpack_goes_both_ways_without_a_copy() -> None:
    source = np.arange(4.0)
    x = turnout.from_dlpack(source)
    assert np.shares_memory(x.numpy(), source)
    assert np.shares_memory(np.from_dlpack(turnout.tensor([1.0]).detach()), source) is False
    y = turnout.tensor([1, 2])
    assert np.shares_memory(np.from_dlpack(y), y.numpy())
    assert y.__dlpack_device__() == (1, 0)
    assert type(y.__dlpack__(max_version=(1, 0))).__name__ == "PyCapsule"
    assert turnout.from_dlpack(turnout.tensor([5])).tolist() == [5]


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_dlpack_exchanges_bfloat16_without_a_copy(version: tuple[int, int] | None) -> None:
    x = turnout.arange(6).to(turnout.bfloat16).reshape(2, 3).t()

    class Exporter:
        def __dlpack__(self, **options: object) -> object:
            return x.__dlpack__(**({} if version is None else {"max_version": version}))

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()

    y = turnout.from_dlpack(Exporter())
    assert (y.dtype, y.shape, y.stride()) == (turnout.bfloat16, (3, 2), (1, 3))
    x[0, 0] = 9
    assert y.tolist() == [[9.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    capsule = x.__dlpack__(**({} if version is None else {"max_version": version}))
    assert (dlpack_type(capsule).code, dlpack_type(capsule).bits, dlpack_type(capsule).lanes) == (4, 16, 1)


@pytest.mark.parametrize("name", sorted(turnout.dtypes.DTYPES))
def test_numbers_come_back_in_every_dtype(name: str) -> None:
    dtype = turnout.dtypes.dtype_named(name)
    values = [True, False] if name == "bool" else [1, 3]
    x = turnout.tensor([values, values], dtype=dtype)
    assert x.dtype is dtype
    assert x.tolist() == [values, values]
    assert x.select(0, 0).select(0, 1).item() == values[1]


def test_tolist_keeps_empty_dims() -> None:
    assert turnout.zeros(2, 0).tolist() == [[], []]
    assert turnout.zeros(0, 2).tolist() == []
    assert turnout.zeros(2, 0, 3).tolist() == [[], []]
    assert turnout.tensor(4).tolist() == 4


# ---- tensor(data)


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()),
        (1.0, "float32", ()),
        (True, "bool", ()),
        (1j, "complex64", ()),
        ([1, 2.5], "float32", (2,)),
        ([True, 2], "int64", (2,)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        (((1, 2), (3, 4)), "int64", (2, 2)),
        (np.ones((2, 1), "f8"), "float64", (2, 1)),
        (np.float64(1.5), "float64", ()),
        (np.ones(2, ">i2"), "int16", (2,)),
        (np.arange(6).reshape(2, 3)[:, ::-1], "int64", (2, 3)),
        (array.array("f", [1, 2]), "float32", (2,)),
        (range(3), "int64", (3,)),
        ([np.float64(1), 2.0], "float64", (2,)),
    ],
)
def test_tensor_takes_dtype_and_shape_from_the_data(data: object, dtype: str, shape: tuple[int, ...]) -> None:
    made = turnout.tensor(data)
    assert (made.dtype.name, made.shape) == (dtype, shape)
    assert made.tolist() == np.asarray(data).tolist()


def test_tensor_copies() -> None:
    source = np.zeros(2)
    turnout.tensor(source).add_(1)
    assert source.tolist() == [0.0, 0.0]
    x = turnout.tensor([1.0])
    turnout.tensor(x).add_(1)
    assert x.tolist() == [1.0]


def test_tensor_converts() -> None:
    assert turnout.tensor([1.9, -1.9], dtype=turnout.int64).tolist() == [1, -1]
    assert turnout.tensor([1e6], dtype=turnout.float16).tolist() == [float("inf")]
    assert turnout.tensor([1.00390625, 3.3], dtype=turnout.bfloat16).tolist() == [1.0, 3.296875]
    assert turnout.tensor([0, 2], dtype=turnout.bool).tolist() == [False, True]
    assert turnout.tensor(np.array([1.5]), dtype=turnout.int32).tolist() == [1]


@pytest.mark.parametrize(
    ("data", "dtype", "text"),
    [
        ([[1, 2], [3]], None, "tensor: expected a sequence of length 2 at dim 1, got length 1"),
        ([[1], 2], None, "tensor: expected a sequence of length 1 at dim 1, got 2"),
        ([1, [2]], None, "tensor: expected numbers in nested sequences of one shape, got a sequence at depth 1 as a number"),
        ("text", None, "tensor: expected numbers in nested sequences of one shape, got str as a number"),
        ([None], None, "tensor: expected numbers in nested sequences of one shape, got NoneType as a number"),
        ([1j], turnout.float32, "1j is complex and cannot be converted to float32"),
    ],
)
def test_tensor_refuses_what_is_no_data(data: object, dtype: turnout.DType | None, text: str) -> None:
    assert refused(TypeError, turnout.tensor, data, dtype=dtype) == text


def test_as_tensor_shares_memory_where_it_can() -> None:
    source = np.zeros(2)
    turnout.as_tensor(source).add_(1)
    assert source.tolist() == [1.0, 1.0]
    x = turnout.tensor([1.0])
    assert turnout.as_tensor(x) is x
    assert turnout.as_tensor(x, dtype=turnout.int64).dtype is turnout.int64
    assert turnout.as_tensor([1, 2]).tolist() == [1, 2]
    assert turnout.as_tensor(source, device="meta").is_meta


def test_nothing_here_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turnout.tensor(np.arange(3)).tolist()


NO_NUMBERS = {
    np.datetime64("2020-01-01"): "no tensor has dtype datetime64[D]",
    np.timedelta64(3, "s"): "no tensor has dtype timedelta64[s]",
    np.bytes_(b"abc"): "no tensor has dtype |S3",
    b"ab": "tensor: expected numbers in nested sequences of one shape, got bytes as a number",
}


@pytest.mark.parametrize("make", [turnout.tensor, turnout.as_tensor])
def test_bytes_of_what_is_not_a_number_are_not_taken_for_numbers(make) -> None:
    assert {data: refused((DTypeError, CallError), make, data) for data in NO_NUMBERS} == NO_NUMBERS
