"""Where a tensor is: its device, its address, `cuda()`, and the name of its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused

HAS_CUDA = turnout.cuda.is_available()


def test_a_tensor_says_on_which_device_type_it_is() -> None:
    cpu, meta = turnout.ones(2), turnout.empty(2, device="meta")
    assert (cpu.is_cpu, cpu.is_cuda, cpu.is_meta, cpu.is_sparse, cpu.get_device()) == (True, False, False, False, -1)
    assert (meta.is_cpu, meta.is_cuda, meta.is_meta) == (False, False, True)


def test_the_address_is_that_of_the_first_element() -> None:
    array = np.arange(6.0).reshape(2, 3)
    x = turnout.from_numpy(array)
    assert x.data_ptr() == array.ctypes.data
    assert x[1, 1].data_ptr() == array[1:, 1:].ctypes.data
    assert x.detach().data_ptr() == x.data_ptr() != x.clone().data_ptr()


def test_a_tensor_without_elements_or_data_has_the_address_0() -> None:
    assert turnout.ones(0).data_ptr() == turnout.ones(2, 0).data_ptr() == turnout.empty(2, device="meta").data_ptr() == 0


def test_a_backend_without_addresses_says_so() -> None:
    from turnout_aten.backend.tensor_backend import TensorBackend

    class Elsewhere(TensorBackend):
        device_type = "elsewhere"

    assert refused(turnout.errors.NoDataError, lambda: Elsewhere().data_ptr(None)) == (
        "data_ptr: the backend of device 'elsewhere' does not have addresses"
    )


def test_an_address_inside_vmap_is_an_error() -> None:
    with pytest.raises(turnout.errors.TurnoutError, match=r"^data_ptr\(\): a tensor inside vmap does not have an array"):
        turnout.vmap(lambda row: turnout.tensor(row.data_ptr()))(turnout.ones(2, 3))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "FloatTensor"), ("float64", "DoubleTensor"), ("float16", "HalfTensor"), ("bfloat16", "BFloat16Tensor"),
        ("bool", "BoolTensor"), ("uint8", "ByteTensor"), ("int8", "CharTensor"), ("int16", "ShortTensor"),
        ("int32", "IntTensor"), ("int64", "LongTensor"), ("uint16", "UInt16Tensor"), ("uint32", "UInt32Tensor"),
        ("uint64", "UInt64Tensor"), ("complex64", "ComplexFloatTensor"), ("complex128", "ComplexDoubleTensor"),
    ],
)  # fmt: skip
def test_every_dtype_has_the_type_name_of_pytorch(dtype: str, name: str) -> None:
    made = turnout.zeros(2, dtype=getattr(turnout, dtype))
    assert made.type() == turnout.typename(made) == f"turnout.{name}"
    assert turnout.empty(2, dtype=made.dtype, device="meta").type() == f"turnout.meta.{name}"
    assert turnout.ones(2).type(f"turnout.{name}").dtype is made.dtype


def test_type_converts_to_a_dtype_or_to_a_named_type_and_its_device() -> None:
    x = turnout.ones(2)
    assert x.type(turnout.float32) is x is x.type("turnout.FloatTensor")
    assert x.type(turnout.int64).dtype is turnout.int64
    moved = x.type("turnout.meta.HalfTensor")
    assert (moved.device.type, moved.dtype) == ("meta", turnout.float16)


@pytest.mark.parametrize("name", ["FloatTensor", "turnout.Float", "turnout.a-b.FloatTensor", "float32", 3, float])
def test_other_names_of_types_are_refused(name: Any) -> None:
    assert refused(turnout.errors.ArgumentError, lambda: turnout.ones(2).type(name)) == (
        f"type: expected a dtype or a name such as 'turnout.FloatTensor', got {name!r}"
    )


@pytest.mark.parametrize("device", ["cpu", "meta:0", -1, True, 2.5])
def test_cuda_refuses_other_devices(device: Any) -> None:
    said = refused(turnout.errors.DeviceError, lambda: turnout.ones(2).cuda(device))
    text = f"cuda: expected a device of type 'cuda' or its index, got {device!r}; use to(device) for others"
    assert said == text


@pytest.mark.skipif(HAS_CUDA, reason="there is a device of type cuda")
@pytest.mark.parametrize("call", [lambda x: x.cuda(), lambda x: x.cuda(0), lambda x: x.cuda("cuda:0"), lambda x: x.to("cuda")])
def test_without_a_device_cuda_is_an_error_that_says_what_to_install(call: Callable[[Any], Any]) -> None:
    assert turnout.cuda.device_count() == 0
    assert "device 'cuda'" in refused(turnout.errors.TurnoutError, lambda: call(turnout.ones(2)))


def test_questions_about_any_object() -> None:
    x = turnout.ones(2, 3)
    assert (turnout.is_tensor(x), turnout.is_tensor([1.0]), turnout.is_tensor(None)) == (True, False, False)
    assert turnout.numel(x) == 6
    names = [turnout.typename(each) for each in (3, [], turnout.float32, turnout.Size, turnout)]
    assert names == ["int", "list", "turnout.dtypes.DType", "turnout.Size", "module"]


def test_the_state_of_random_numbers_can_be_taken_and_put_back() -> None:
    turnout.manual_seed(5)
    state = turnout.get_rng_state()
    first = turnout.rand(3)
    turnout.set_rng_state(state)
    assert turnout.equal(turnout.rand(3), first)
    assert turnout.initial_seed() == 5


def test_a_misspelt_name_of_networks_is_told_with_the_nearest_one() -> None:
    with pytest.raises(AttributeError) as raised:
        turnout.nn.functionl  # type: ignore[attr-defined]
    assert str(raised.value) == "module 'turnout.nn' has no attribute 'functionl'; did you mean functional?"
