"""Backends that are wrong in one way each, and one that is right: what the tests of the kit are made of.

A pytest plugin (`-p mutant_backends`). It registers the devices, and runs on each mutant the tests that must notice it. The right
backend, `sane`, runs them all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import turnout_arrays
from turnout import plugins, state
from turnout.registry import REGISTRY, Registrations
from turnout_aten.backend.host_fallback import host
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.tables import register_kernels

GIVES = "test_operator_gives_what_cpu_gives"
INPLACE = "test_in_place_form_writes_what_cpu_writes"
OUT = "test_out_form_fills_what_it_is_given"
UNUSUAL = "test_special_values_and_large_arrays_give_what_cpu_gives"


class Mutant(NamedTuple):
    """A backend with something wrong.

    noticed  the tests that must fail, without the device in their names
    rows     kernels in place of the right ones
    methods  methods in place of the right ones
    change   registers more
    """

    noticed: tuple[str, ...]
    rows: dict[str, Any] = {}
    methods: dict[str, Any] = {}
    change: Callable[[Registrations, Any], None] | None = None


class Right(turnout_arrays.ArrayBackend):
    """NumPy behind another device."""


# ---- kernels


def reading_memory_in_order(x: Any, out: Any) -> None:
    out[...] = np.exp(x.ravel("K").reshape(x.shape))


def clearing_its_input(x: Any, out: Any) -> None:
    np.exp(x, out)
    x[...] = 0


def clearing_its_output_first(x: Any, y: Any, out: Any) -> None:
    out[...] = 0
    out += x * y


def computing_one_block(x: Any, out: Any) -> None:
    out[...] = np.exp(x)
    out.reshape(-1)[1024:] = 0  # a copy, except in row-major order


def returning(x: Any, out: Any) -> Any:
    return np.exp(x)


def allocating(make: Callable[[Any], Any]) -> Callable[..., Any]:
    """A row that returns `make(x)`, or writes it into the output that it is given."""

    def row(x: Any, out: Any = None) -> Any:
        if out is None:
            return make(x)
        out[...] = make(x)
        return None

    return row


def returning_its_input(x: Any) -> Any:
    return x if x.dtype.kind == "f" and not np.isnan(x).any() and (x >= 0).all() else np.abs(x)


def singular_vectors(left: int, right: int) -> Callable[..., None]:
    """A row whose singular vectors have these signs; where both are the same, it is right."""

    def row(matrix: Any, full: bool, vectors: bool, driver: Any, u: Any, s: Any, vh: Any) -> None:
        found = np.linalg.svd(matrix, full)
        s[...] = found[1]
        if vectors:
            u[...], vh[...] = left * found[0], right * found[2]

    return row


RESULTS: dict[Any, Any] = {}


def reusing_its_result(x: Any) -> Any:
    made = RESULTS.setdefault((x.shape, x.dtype), np.empty_like(x))
    return np.exp(x, out=made)


SCRATCH: dict[Any, Any] = {}


def by_way_of_shared_memory(x: Any, out: Any) -> None:
    scratch = SCRATCH.setdefault(x.dtype, np.zeros(1000, x.dtype))[: x.size].reshape(x.shape)
    scratch[...] = x
    time.sleep(0.002)
    np.negative(scratch, out)


def without_0_dims(x: Any, out: Any) -> None:
    if not x.ndim:
        raise TypeError("no dims")
    np.exp(x, out)


# ---- methods


def strided_without_offset(self: Any, root: Any, shape: Any, strides: Any, offset: int) -> Any:
    return Right.strided(self, root, shape, strides, 0)


def strided_as_a_copy(self: Any, root: Any, shape: Any, strides: Any, offset: int) -> Any:
    return Right.strided(self, root, shape, strides, offset).copy()


def to_host_in_memory_order(self: Any, array: Any) -> Any:
    return np.ascontiguousarray(array.ravel("K")).tobytes()


def copy_in_memory_order(self: Any, target: Any, source: Any) -> None:
    target[...] = source.ravel("K").reshape(source.shape).astype(target.dtype)


def empty_without_strides(self: Any, shape: Any, dtype: Any, device: Any, strides: Any = None) -> Any:
    return Right.empty(self, shape, dtype, device)


def fill_from_the_root(self: Any, target: Any, value: Any) -> None:
    (target if target.base is None or target.base.shape != (2, 3) else target.base)[...] = value


def unseeded_bits(self: Any, shape: Any, seed: int, offset: int, device: Any) -> Any:
    return np.frombuffer(os.urandom(8 * int(np.prod(shape))), np.uint64).reshape(shape)


def the_same_bits(self: Any, shape: Any, seed: int, offset: int, device: Any) -> Any:
    return Right.random_bits(self, shape, seed, 0, device)


def bits_without_some(self: Any, shape: Any, seed: int, offset: int, device: Any) -> Any:
    return Right.random_bits(self, shape, seed, offset, device) & np.uint64(0x7F7F7F7F7F7F7F7F)


def item_of_the_library(self: Any, array: Any) -> Any:
    return array.reshape(())[()]


def dlpack_of_a_copy(self: Any, array: Any, options: Any) -> Any:
    return array.copy().__dlpack__(**options)


def numpy_of_a_copy(self: Any, array: Any) -> Any:
    return array.copy()


# ---- registrations


def stale_version(library: Registrations, backend: Any) -> None:
    """A kernel above the layer that counts writes, which calls the kernel below it."""
    op = REGISTRY.find("aten::exp_")

    def exp_(self: Any) -> Any:
        with state.below_adinplaceorview():
            return op(self)

    library.impl("aten::exp_", f"Autograd{backend.name}", exp_)


def detached_gradient(library: Registrations, backend: Any) -> None:
    op = REGISTRY.find("aten::exp")

    def exp(self: Any) -> Any:
        with state.exclude("Autograd"):
            return op(self)

    library.impl("aten::exp", f"Autograd{backend.name}", exp)


MUTANTS: dict[str, Mutant] = {
    "wrong_value": Mutant((f"{GIVES}[exp-row-major]", f"{OUT}[exp]", f"{INPLACE}[exp]"), {"exp.out": lambda x, out: np.multiply(np.exp(x), 1.001, out)}),
    "wrong_number": Mutant((f"{GIVES}[add.Tensor-row-major]",), {"add.out": lambda x, y, alpha, out: np.add(x, y, out)}),
    "ignored_stride": Mutant((f"{GIVES}[exp-column-major]", f"{GIVES}[exp-spread]"), {"exp.out": reading_memory_in_order}),
    "aliased_result": Mutant((f"{GIVES}[abs-row-major]",), {"abs.out": Row(allocating(returning_its_input), "always")}),
    "reused_result": Mutant((f"{GIVES}[exp-row-major]",), {"exp.out": Row(allocating(reusing_its_result), "always")}),
    "lost_dtype": Mutant((f"{GIVES}[exp-row-major]",), {"exp.out": Row(allocating(lambda x: np.exp(x.astype("f8"))), "always")}),
    "changed_input": Mutant((f"{GIVES}[exp-row-major]",), {"exp.out": clearing_its_input}),
    "wrong_shape": Mutant((f"{GIVES}[exp-row-major]",), {"exp.out": Row(allocating(lambda x: np.exp(x)[None]), "always")}),
    "other_layout": Mutant((f"{GIVES}[exp-column-major]",), {"exp.out": Row(allocating(lambda x: np.ascontiguousarray(np.exp(x))), "always")}),
    "infinite_as_finite": Mutant((f"{UNUSUAL}[exp]",), {"exp.out": lambda x, out: np.nan_to_num(np.exp(x, out), copy=False)}),
    "one_block": Mutant((f"{UNUSUAL}[exp]",), {"exp.out": computing_one_block}),
    "not_written": Mutant((f"{OUT}[exp]",), {"exp.out": returning}),
    "written_too_early": Mutant((f"{INPLACE}[mul.Tensor]",), {"mul.out": Row(clearing_its_output_first, pointwise=True)}),
    "no_0_dims": Mutant((f"{GIVES}[exp-row-major]",), {"exp.out": without_0_dims}),
    "slow_path": Mutant((f"{GIVES}[exp-row-major]",), {"exp.out": Row(lambda x, out=None: np.exp(x, out) if out is not None else 1 / 0, "always")}),
    "one_scratch": Mutant(("test_threads_get_the_results_that_one_thread_gets",), {"neg.out": by_way_of_shared_memory}),
    "stale_version": Mutant((f"{INPLACE}[exp]",), change=stale_version),
    "detached": Mutant(("test_gradients_are_those_of_cpu[exp]",), change=detached_gradient),
    "one_sign": Mutant((f"{GIVES}[_linalg_svd-row-major]", "test_gradients_are_those_of_cpu[_linalg_svd]"), {"_linalg_svd.U": singular_vectors(-1, 1)}),
    "no_offset": Mutant(("test_a_view_has_the_elements_and_the_memory_of_its_base[row]",), methods={"strided": strided_without_offset}),
    "copied_views": Mutant(("test_a_view_has_the_elements_and_the_memory_of_its_base[row]",), methods={"strided": strided_as_a_copy, "transposed": lambda self, array: None}),
    "host_order": Mutant(("test_values_of_every_dtype_survive_the_way_there_and_back",), methods={"to_host": to_host_in_memory_order, "numpy": lambda self, array: None}),
    "copy_order": Mutant(("test_copies_convert_dtypes_as_cpu_does",), methods={"copy": copy_in_memory_order}),
    "no_strides": Mutant(("test_memory_has_the_strides_that_were_asked_for",), methods={"empty": empty_without_strides}),
    "wide_fill": Mutant(("test_a_view_has_the_elements_and_the_memory_of_its_base[row]",), methods={"fill": fill_from_the_root}),
    "unseeded": Mutant(("test_random_numbers_depend_on_the_seed_and_on_what_was_drawn_before",), methods={"random_bits": unseeded_bits}),
    "repeating": Mutant(("test_random_numbers_depend_on_the_seed_and_on_what_was_drawn_before",), methods={"random_bits": the_same_bits}),
    "skewed": Mutant(("test_random_numbers_are_spread_as_their_distribution_says",), methods={"random_bits": bits_without_some}),
    "library_item": Mutant(("test_an_item_is_the_python_number_that_cpu_gives",), methods={"item": item_of_the_library}),
    "dlpack_copy": Mutant(("test_dlpack_shares_the_memory_or_refuses",), methods={"dlpack": dlpack_of_a_copy}),
    "numpy_copy": Mutant(("test_a_numpy_array_shares_the_memory_or_is_refused",), methods={"numpy": numpy_of_a_copy}),
}  # fmt: skip
# ruff: noqa: E501 - rows of a table
SANE = "sane"
SANE_ROWS = {"_linalg_svd.U": singular_vectors(-1, -1)}  # the other signs than cpu's
IDLE = "idle"  # it has no kernel at all


def names(device: str, test: str) -> str:
    """A test's name for a device: pytest puts the device first."""
    function, bracket, rest = test.partition("[")
    return f"{function}[{device}-{rest}" if bracket else f"{function}[{device}]"


def pytest_configure(config: pytest.Config) -> None:
    plugins.activate("aten")
    for device in {SANE, IDLE, *MUTANTS}.intersection(config.getoption("--turnout-backend")):
        mutant = MUTANTS.get(device, Mutant((), SANE_ROWS))
        name = device.title().replace("_", "")
        made = type(name, (Right,), {"name": name, "device_type": device, **mutant.methods})(np)
        library = Registrations(device)
        library.backend(made)
        if device != IDLE:
            register_kernels(library, made, turnout_arrays.kernels(np) | mutant.rows)
        library.fallback(name, host("cpu"))
        if mutant.change is not None:
            mutant.change(library, made)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = {names(device, test) for device, mutant in MUTANTS.items() for test in mutant.noticed}
    kept |= {names(SANE, test) for mutant in MUTANTS.values() for test in mutant.noticed}
    items[:] = [item for item in items if item.name in kept or item.callspec.params.get("turnout_device") not in (SANE, *MUTANTS)]
