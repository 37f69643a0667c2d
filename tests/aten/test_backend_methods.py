"""What happens where a backend lacks a method, and the names that a backend may have."""

from __future__ import annotations

from inspect import signature
from types import FunctionType

import numpy as np
import pytest
from few_kernels import KERNELS, FewKernels

import turnout
from outcomes import refused
from turnout.errors import TurnoutError, UniverseError
from turnout.registry import Registrations
from turnout_aten.backend.functional_backend import FunctionalBackend
from turnout_aten.backend.optional import OneStep
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.errors.backends import MissingMethodError
from turnout_aten.kernels.tables import register_kernels


class Young(FewKernels):
    """It has only what every backend needs."""

    name = "Young"
    device_type = "young"

    random_bits, fill, item = TensorBackend.random_bits, TensorBackend.fill, TensorBackend.item
    retyped, as_array = TensorBackend.retyped, TensorBackend.as_array


@pytest.fixture
def young():
    turnout.ones(1)
    with Registrations("young") as library:
        backend = Young(np)
        library.backend(backend)
        register_kernels(library, backend, KERNELS)
        yield "young"


def test_the_bits_are_those_of_the_host(young):
    backend, cpu = turnout.device(young).backend, turnout.device("cpu").backend
    found = backend.random_bits((2, 3), 7, 1, turnout.device(young))
    expected = cpu.random_bits((2, 3), 7, 1, turnout.device("cpu"))
    assert backend.dtype_of(found) is turnout.uint64
    assert bytes(backend.to_host(found)) == bytes(cpu.to_host(expected))


@pytest.mark.parametrize(("value", "dtype"), [(2.5, turnout.float32), (3, turnout.int64), (True, turnout.bool)])
def test_elements_are_filled_and_read_through_the_host(young, value, dtype):
    made = turnout.full((2,), value, dtype=dtype, device=young)
    assert made.tolist() == [value, value]
    assert made[0].item() == value
    made[1:].fill_(1)
    assert made.tolist() == [value, 1]


@pytest.mark.parametrize(
    ("method", "purpose", "parameters"),
    [
        (
            "retyped",
            "All of `root`'s memory as a contiguous array of 1 dim and another dtype, without the remainder at the end.",
            "self, root, dtype",
        ),
        ("as_array", "A kernel's result that is not an array (a scalar of the array library), as an array.", "self, value"),
    ],
)
def test_a_method_that_is_missing_is_an_error_that_says_what_to_write(young, method, purpose, parameters):
    with pytest.raises(MissingMethodError) as caught:
        getattr(turnout.device(young).backend, method)(*[None] * parameters.count(","))
    assert str(caught.value) == (
        f"Young.{method}: the backend of device 'young' does not define it\n  it is   {purpose}\n"
        f"  to fix  define `def {method}({parameters})`"
    )
    assert isinstance(caught.value, TurnoutError)
    assert isinstance(caught.value, NotImplementedError)


def test_every_method_that_a_backend_must_have_says_so():
    class Bare(TensorBackend):
        name, device_type = "Bare", "bare"

    needed = {"empty": 3, "strided": 4, "strides": 1, "dtype_of": 1, "copy": 2, "to_host": 1, "from_host": 4}
    for method, count in needed.items():
        with pytest.raises(MissingMethodError, match=f"Bare.{method}: the backend of device 'bare' does not define it"):
            getattr(Bare(), method)(*[None] * count)


def test_every_method_on_values_that_a_functional_backend_must_have_says_so():
    class Bare(FunctionalBackend):
        name, device_type = "Bare", "bare"

    needed = {"full": 4, "dtype_of_value": 1, "converted": 2, "reshaped": 2, "permuted": 2, "sliced": 2, "assigned": 3}
    needed |= {"repeated": 2, "gathered": 4, "scattered": 5, "reinterpreted": 2, "value_to_host": 1, "value_from_host": 4}
    for method, count in needed.items():
        said = refused(MissingMethodError, getattr(Bare(), method), *[None] * count)
        assert said.startswith(f"Bare.{method}: the backend of device 'bare' does not define it\n  it is   ")
        assert f"\n  to fix  define `def {method}(self, " in said


def test_the_interface_is_small_and_what_only_some_backends_define_has_defaults():
    def methods(part):
        return {name for name, value in vars(part).items() if isinstance(value, FunctionType) and not name.startswith("_")}

    assert len(methods(TensorBackend)) <= 16
    for part in TensorBackend.__bases__:
        assert part.__module__ == "turnout_aten.backend.optional"
        assert not methods(part) & methods(TensorBackend)
    one_step = {name: len(signature(getattr(OneStep, name)).parameters) - 1 for name in methods(OneStep) - {"native_dtype"}}
    assert [name for name, count in one_step.items() if getattr(OneStep(), name)(*[None] * count)] == []


@pytest.mark.parametrize(
    ("name", "device", "problem"),
    [
        ("", "fine", "B.name: expected a name such as 'CUDA', got ''"),
        ("lower case", "fine", "B.name: expected a name such as 'CUDA', got 'lower case'"),
        ("Autograd CPU", "fine", "B.name: expected a name such as 'CUDA', got 'Autograd CPU'"),
        ("Fine", "", "B.device_type: expected a name such as 'cuda', got ''"),
        ("Fine", "b 3", "B.device_type: expected a name such as 'cuda', got 'b 3'"),
        ("Fine", "Fine", "B.device_type: expected a name such as 'cuda', got 'Fine'"),
        ("Fine", "b:1", "B.device_type: expected a name such as 'cuda', got 'b:1'"),
    ],
)
def test_names_are_those_that_a_manifest_accepts(name, device, problem):
    made = type("B", (TensorBackend,), {"name": name, "device_type": device})()
    with Registrations("names") as library, pytest.raises(UniverseError) as caught:
        library.backend(made)
    assert str(caught.value) == problem
