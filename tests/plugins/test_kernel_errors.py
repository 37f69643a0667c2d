"""Errors that kernels raise: each is told as one of Turnout's, with the operator and its arguments; the original is its cause."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import turnout
import turnout_arrays
from outcomes import refused
from random_programs import replaced_kernels
from turnout import plugins
from turnout.errors import (
    AliasError,
    ArgumentError,
    CallError,
    DeviceError,
    DimError,
    KernelWarning,
    OutOfMemoryError,
    TurnoutError,
)
from turnout.library import Library
from turnout.registry import Registrations, find_operator
from turnout_aten.errors.failures import retell, retell_composite
from turnout_aten.kernels.rows import SAME, Row
from turnout_aten.kernels.tables import register_kernels

ADD = find_operator("aten::add.Tensor")


def given() -> tuple[Any, ...]:
    return (turnout.ones(2), turnout.ones(2), 1)


ARGUMENTS = (
    "\n  arguments  self: Tensor float32 [2] on cpu, other: Tensor float32 [2] on cpu"
    "\n  to fix     check the values and shapes of these arguments"
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (IndexError("axis 9"), DimError),
        (TypeError("no loop"), CallError),
        (ValueError("bad value"), ArgumentError),
        (ZeroDivisionError("by zero"), ArgumentError),
        (OverflowError("too large"), ArgumentError),
        (BufferError("no buffer"), ArgumentError),
    ],
)
def test_an_error_out_of_a_kernel_names_operator_and_arguments(error: Exception, kind: type[TurnoutError]) -> None:
    with pytest.raises(kind) as caught:
        retell(ADD, error, given())
    assert str(caught.value) == f"aten::add.Tensor: {error}{ARGUMENTS}"
    assert caught.value.__cause__ is error


def test_errors_of_turnout_and_warnings_and_faults_of_kernels_pass() -> None:
    for error in (ArgumentError("x"), RuntimeWarning("x"), KeyError("x"), AssertionError("x"), NotImplementedError("x")):
        assert retell(ADD, error, given()) is None


def test_memory_that_is_full_names_size_and_device() -> None:
    for error in (MemoryError(), turnout_error()):
        with pytest.raises(OutOfMemoryError) as caught:
            retell(ADD, error, given())
        assert str(caught.value).startswith("aten::add.Tensor: cpu has no room for ")
        assert caught.value.operator == "aten::add.Tensor"
        assert isinstance(caught.value, (MemoryError, RuntimeError))
        assert retell(find_operator("aten::mul.Tensor"), caught.value, given()) is None  # it is told once


def turnout_error() -> Exception:
    try:
        turnout.empty(2**50)
    except OutOfMemoryError as error:
        return error
    raise AssertionError("there is that much memory")


def test_an_error_from_a_users_code_inside_a_composite_passes() -> None:
    def of_user() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        of_user()
    assert retell_composite(ADD, caught.value, given()) is None


def read_only() -> Any:
    array = np.arange(1.0, 4.0)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return turnout.from_numpy(array)


def item(x: Any, i: Any, value: Any) -> None:
    x[i] = value


WRITES: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("fill_.Scalar", "self", lambda x: x.fill_(5.0)),
    ("fill_.Scalar", "self", lambda x: x.zero_()),
    ("fill_.Scalar", "self", lambda x: item(x, 0, 5.0)),
    ("index_put_", "self", lambda x: item(x, x > 1, 5.0)),
    ("add_.Scalar", "self", lambda x: x.add_(1)),
    ("mul_.Tensor", "self", lambda x: x.mul_(turnout.ones(3, dtype=turnout.float64))),
    ("sqrt_", "self", lambda x: x.sqrt_()),
    ("copy_", "self", lambda x: x.copy_(turnout.ones(3))),
    ("copy_", "self", lambda x: x.uniform_()),
    ("add.out", "out", lambda x: turnout.add(turnout.ones(3), turnout.ones(3), out=x)),
    ("cumsum.out", "out", lambda x: turnout.cumsum(turnout.ones(3), 0, out=x)),
    ("sort.values_stable", "values", lambda x: turnout.sort(turnout.ones(3), out=(x, turnout.zeros(3, dtype=turnout.int64)))),
    ("scatter_.value", "self", lambda x: x.scatter_(0, turnout.tensor([0]), 1.0)),
    ("add_.Scalar", "self", lambda x: x[1:].add_(1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "argument", "write"), WRITES, ids=[f"{i} {row[0]}" for i, row in enumerate(WRITES)])
def test_every_write_into_read_only_memory_is_refused(name: str, argument: str, write: Callable[[Any], Any]) -> None:
    x = read_only()
    assert refused(AliasError, write, x) == (
        f"aten::{name}: '{argument}' cannot be written, because its memory is read-only\n  to fix  write into a copy: clone() it"
    )
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_a_large_write_into_read_only_memory_is_refused() -> None:
    array = np.zeros(10_000)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only"):
        x = turnout.from_numpy(array)
    assert "its memory is read-only" in refused(AliasError, x.add_, x)
    assert x.sum().item() == 0


def test_opencl_names_what_it_has_no_room_for(need_device: Callable[[str], None]) -> None:
    need_device("opencl")
    assert refused(OutOfMemoryError, lambda: turnout.ones(1, device="opencl").expand(2**42) + 1) == (
        "aten::add.Scalar: opencl:0 has no room for 16.0 TiB (float32 [4398046511104])\n"
        "  arguments  self: Tensor float32 [4398046511104] on opencl:0, other: int 1\n"
        "  to fix     use smaller tensors or a smaller dtype, or delete tensors that are no longer needed"
    )
    with pytest.raises(OutOfMemoryError, match=r"^opencl:0 has no room for 16"):
        turnout.empty(2**42, device="opencl")
    backend = turnout.device("opencl").backend
    import pyopencl as cl

    assert backend.error_kind(cl.LogicError("x")) is DeviceError
    assert backend.error_kind(cl.MemoryError("x")) is OutOfMemoryError
    assert backend.error_kind(ValueError("x")) is None


# ---- outputs and masks


def test_one_number_written_by_a_mask_is_converted() -> None:
    x = turnout.arange(4.0)
    x[x > 2] = turnout.tensor(7)
    x[x < 1] = turnout.tensor([True])
    assert x.tolist() == [1.0, 1.0, 2.0, 7.0]
    x[True] = turnout.tensor([1, 2, 3, 4])
    x[False] = turnout.ones(5, 5)
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TurnoutError, match="'values' must have dtype float32, got int64"):
        x[turnout.tensor([0, 1])] = turnout.tensor([1, 2])


def test_sums_and_products_are_computed_in_the_dtype_of_out() -> None:
    x = turnout.tensor([1.5, 2.5])
    assert turnout.sum(x, 0, out=turnout.zeros(1, dtype=turnout.int64)[0]).item() == 3
    assert turnout.cumsum(x > 2, 0, out=turnout.zeros(2, dtype=turnout.bool)).tolist() == [False, True]
    assert turnout.tensor([True, True]).cumsum_(0).tolist() == [True, True]


def test_an_output_may_be_an_input_that_is_resized() -> None:
    x = turnout.arange(6.0).reshape(2, 3)
    with pytest.warns(UserWarning, match="was resized"):
        turnout.sum(x, 1, out=x)
    assert x.tolist() == [3.0, 12.0]
    assert refused(TurnoutError, lambda: turnout.atan2(x, turnout.ones(3, 2), out=x)) == (
        "aten::atan2.out: an output of shape [2] that is an input too cannot hold the result of shape [3, 2]"
    )


def test_a_tensor_that_outgrows_its_memory_leaves_its_views_whole() -> None:
    x = turnout.arange(3.0)
    view = x[1:]
    x.resize_(6)
    x.fill_(9.0)
    assert view.tolist() == view[:].tolist() == [1.0, 2.0]
    assert not x.is_alias_of(view)


# ---- what other packages raise


def raising(module: str, error: Exception) -> Any:
    """A kernel of a module."""
    names = {"__name__": module, "error": error}
    exec("def kernel(*args, **kwargs): raise error", names)
    return names["kernel"]


def test_what_another_package_raises_passes_every_operator_above(seeds: Callable[..., range]) -> None:
    found = []
    for seed in seeds(30, many=1000):
        choose = Random(seed)
        shown, call, name = replaced_kernels.drawn_call(choose)
        kind = choose.choice((ArithmeticError, IndexError, MemoryError, TypeError, ValueError, BufferError, ZeroDivisionError))
        error = choose.choice((kind, type("OwnError", (kind,), {"__module__": "turnout_ledger"})))("mine")
        kernel = raising(choose.choice(("turnout_ledger.kernels", "acme_ledger")), error)
        with Library("aten", "IMPL") as library:
            key = choose.choice(("BackendSelect", "ADInplaceOrView", "AutogradCPU"))
            library.impl(name.removeprefix("aten::"), kernel, key, allow_override=True)
            try:
                call()
            except Exception as caught:  # noqa: BLE001 - it should be the one that the kernel raised
                found.append("" if caught is error else f"{seed}: {shown}, {name} at {key}: {type(caught).__name__}")
    assert {*found} == {""}


@pytest.mark.parametrize(
    "module", ["turnout", "turnout.registry.store", "turnout_aten.composites", "turnout_arrays", "turnout_speed"]
)
def test_the_packages_of_turnout_are_those_of_the_data_file(module: str) -> None:
    assert plugins.is_ours(module)
    assert not any(map(plugins.is_ours, ("turnouts", "turnout_ledger.kernels", "turnout_", "", "numpy", "acme")))


def test_a_kernel_that_refuses_what_its_row_takes_is_named_and_the_general_path_computes() -> None:
    def exp(x: Any, out: Any = None) -> Any:
        if out is None:
            raise ValueError("an output is needed")
        return np.exp(x, out=out)

    class Fussy(turnout_arrays.ArrayBackend):
        name = "Fussy"
        device_type = "fussy"

    turnout.ones(1)
    with Registrations("fussy") as library:
        backend = Fussy(np)
        library.backend(backend)
        register_kernels(library, backend, turnout_arrays.kernels(np) | {"exp.out": Row(exp, allocates=SAME)})
        with pytest.warns(KernelWarning) as told:
            assert turnout.exp(turnout.zeros(2, device="fussy")).tolist() == [1.0, 1.0]
    (warning,) = told
    assert str(warning.message) == (
        "aten::exp: the kernel for fussy raised ValueError: an output is needed\n"
        "  so      the general path computed the result, more slowly\n"
        "  to fix  mend the kernel, or let its row say what it does not take (accepts=)"
    )
    assert warning.filename == __file__
