"""Calls that PyTorch takes are taken: the table of `pytorch_calls`, which the oracle compares with PyTorch itself."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused
from pytorch_calls import CALLS, shown
from turnout import ops
from turnout.errors import ArgumentError, CallError, DeviceError, DTypeError


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_what_pytorch_gives(call: str) -> None:
    assert [shown(call, turnout) for _ in range(2)] == [CALLS[call]] * 2


F = turnout.nn.functional
int8 = turnout.int8
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: turnout.frombuffer([1], dtype=int8), CallError,
     "frombuffer: argument 'buffer' must be an object with a contiguous buffer, got list"),
    (lambda: turnout.frombuffer(b"", dtype=int8), ArgumentError, "frombuffer: offset 0 is not inside a buffer of 0 bytes"),
    (lambda: turnout.frombuffer(bytearray(5), dtype=turnout.int16, offset=2), ArgumentError,
     "frombuffer: 3 bytes from offset 2 on are not whole elements of int16"),
    (lambda: turnout.frombuffer(bytearray(5), dtype=turnout.int16, count=3), ArgumentError,
     "frombuffer: 3 elements of int16 do not fit in 5 bytes from offset 0 on"),
    (lambda: turnout.frombuffer(b"ab", dtype=int8), UserWarning,
     "frombuffer: the buffer is read-only; writing into the tensor will fail"),
    (lambda: turnout.from_numpy(np.broadcast_to(np.ones(1), 2)), UserWarning,
     "from_numpy: the array is read-only; writing into the tensor will fail"),
    (lambda: turnout.from_dlpack(turnout.ones(1), device="meta", copy=False), ArgumentError,
     "from_dlpack: an array on cpu needs a copy for meta, which copy=False forbids"),
    (lambda: turnout.device("cpu", -1), DeviceError, "the index of a device is not negative, got -1 for 'cpu'"),
    (lambda: turnout.linspace(0, 1, 3, dtype=turnout.float64, out=turnout.empty(3)), CallError,
     "aten::linspace.out: dtype float64 was given, but out has dtype float32; omit dtype"),
    (lambda: F.huber_loss(turnout.ones(1, dtype=int8), turnout.ones(1)), DTypeError,
     "huber_loss: a loss of float32 cannot have the dtype of 'input', int8"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_what_cannot_be_done_is_refused(call: Any, error: type[Exception], text: str) -> None:
    assert refused(error, call) == text


def test_after_a_fork_of_the_generators_they_continue_as_if_nothing_had_been_drawn() -> None:
    turnout.manual_seed(3)
    state = turnout.get_rng_state()

    def draw(devices: Any) -> None:
        with turnout.random.fork_rng(devices):
            turnout.manual_seed(4)
            turnout.rand(2)
            raise KeyError

    for devices in (None, ["cpu"], []):
        refused(KeyError, draw, devices)
        assert (turnout.get_rng_state(), turnout.initial_seed()) == (state, 3)
    with turnout.random.fork_rng(enabled=False):
        turnout.rand(2)
    assert turnout.get_rng_state() != state


def test_running_sums_under_a_mask_keep_the_dtype_of_integers() -> None:
    x = turnout.tensor([100, 100], dtype=int8)
    for name in ("cumsum", "cumprod"):
        assert getattr(turnout.masked, name)(x, 0).dtype is int8
        assert getattr(turnout.masked, name)(x.bool(), 0).dtype is turnout.int64


f, i, wide = turnout.arange(4.0), turnout.tensor([1]), turnout.float64
WRONG_OUTPUTS = {
    "nonzero, int64, float32": lambda: turnout.nonzero(f, out=turnout.empty(0)),
    "isposinf, bool, float32": lambda: turnout.isposinf(f, out=turnout.empty(4)),
    "isnan, bool, float32": lambda: ops.aten.isnan.out(f, out=turnout.empty(4)),
    "signbit, bool, int64": lambda: turnout.signbit(f, out=turnout.empty(4, dtype=turnout.int64)),
    "frexp.Tensor_out, int32, int64": lambda: turnout.frexp(f, out=(turnout.empty(4), turnout.empty(4, dtype=turnout.int64))),
    "frexp.Tensor_out, float32, float64": lambda: turnout.frexp(f, out=(turnout.empty(4, dtype=wide), f.int())),
    "mode.values, float32, float64": lambda: turnout.mode(
        f, out=(turnout.empty(0, dtype=wide), turnout.empty(0, dtype=turnout.int64))
    ),
    "mm, float32, float64": lambda: turnout.mm(f[None], f[:, None], out=turnout.empty(1, 1, dtype=wide)),
    "take, float32, float64": lambda: turnout.take(f, i, out=turnout.empty(1, dtype=wide)),
    "bincount, int64, float32": lambda: ops.aten.bincount.out(i, out=turnout.empty(2)),
}


@pytest.mark.parametrize("case", WRONG_OUTPUTS)
def test_places_flags_and_products_are_written_into_outputs_of_their_dtype_only(case: str) -> None:
    name, have, given = case.split(", ")
    name = name if "." in name else f"{name}.out"
    assert refused(DTypeError, WRONG_OUTPUTS[case]) == (
        f"aten::{name}: the result has dtype {have}, which cannot be written into {given}"
    )


def test_the_places_of_each_dim_have_no_one_output() -> None:
    text = "nonzero: with as_tuple=True there are several results, which cannot be written into 'out'"
    assert refused(ArgumentError, lambda: turnout.nonzero(f, as_tuple=True, out=f)) == text


class Tagged(turnout.Tensor):
    """A tensor with attributes."""


def test_instances_of_a_subclass_have_attributes_and_plain_tensors_have_none() -> None:
    x = turnout.ones(2).as_subclass(Tagged)
    x.tag = "weight"
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (type(made), made.tag, made.tolist()) == (Tagged, "weight", [1.0, 1.0])
    assert isinstance(x + 1, turnout.Tensor)
    refused(CallError, turnout.save, {"x": x}, io.BytesIO())

    def name(tensor: Any) -> None:
        tensor.tag = "weight"

    assert refused(AttributeError, name, turnout.ones(2)).startswith("'Tensor' object has no attribute 'tag'")
