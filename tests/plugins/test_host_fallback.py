"""The host fallback: what a backend without a kernel runs on cpu, for a backend that has no kernels at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import flat, refused
from turnout.dtypes import dtype_named
from turnout.errors import NoKernelError
from turnout.registry import REGISTRY, Registrations
from turnout.state import include
from turnout_arrays import ArrayBackend
from turnout_aten.backend import host_fallback as hosting
from turnout_aten.kernels.tables import register_kernels
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import of_each_kind


class FirstDay(ArrayBackend):
    """Memory, and nothing that computes."""

    name = "FIRSTDAY"
    device_type = "firstday"
    wrapper_module = "turnout_arrays.wrapped"


@pytest.fixture(scope="module")
def backend() -> Iterator[FirstDay]:
    with Registrations("first day") as library:
        made = FirstDay(np)
        library.backend(made)
        library.fallback("FIRSTDAY", hosting.host("cpu"), label="runs on cpu")
        yield made


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    hosting.reset_calls()


def ones(*shape: int, **options: Any) -> turnout.Tensor:
    return turnout.ones(*shape, device="firstday", **options)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_backend_without_kernels_has_every_operator(case: OperatorCase, backend: FirstDay) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    for dtype in of_each_kind(case, "cpu"):
        here = operator_cases.calls(case, dtype, lambda d, t: turnout.tensor(d, dtype=dtype_named(t)).to("firstday"))
        there = operator_cases.calls(case, dtype, lambda d, t: turnout.tensor(d, dtype=dtype_named(t)))
        for (args, kwargs), (cpu_args, cpu_kwargs) in zip(here, there, strict=True):
            for got, want in zip(flat(op(*args, **kwargs)), flat(op(*cpu_args, **cpu_kwargs)), strict=True):
                if isinstance(want, turnout.Tensor):
                    assert (got.device.type, got.dtype, got.stride()) == ("firstday", want.dtype, want.stride())
                    assert operator_cases.close(np, got.cpu().numpy(), want.numpy(), case.tolerance)


def test_every_trip_is_counted_and_reported(backend: FirstDay) -> None:
    x = ones(2)
    x + x
    x + x
    x.exp()
    assert hosting.calls() == {("aten::add.Tensor", "firstday", "cpu"): 2, ("aten::exp", "firstday", "cpu"): 1}
    assert hosting.report() == "       2  aten::add.Tensor  firstday -> cpu\n       1  aten::exp  firstday -> cpu"
    hosting.reset_calls()
    assert hosting.report() == ""


def test_in_place_writes_reach_the_tensor_and_its_views(backend: FirstDay) -> None:
    x = ones(2, 3)
    row = x[1]
    version = x._version
    assert row.mul_(5.0) is row
    assert x.tolist() == [[1.0, 1.0, 1.0], [5.0, 5.0, 5.0]]
    assert x._version == version + 1


def test_an_output_is_resized_and_returned(backend: FirstDay) -> None:
    out = turnout.empty(0, device="firstday")
    assert turnout.exp(ones(2).mul(0.0), out=out) is out
    assert out.tolist() == [1.0, 1.0]


def test_gradients_are_recorded_on_the_device(backend: FirstDay) -> None:
    x = ones(3).requires_grad_()
    (x * x).sum().backward()
    assert str(x.grad.device) == "firstday"
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_generator_goes_on_where_the_host_stopped(backend: FirstDay) -> None:
    with Registrations("draws") as library:
        library.define("draws::pick(Tensor self, Generator generator) -> Tensor")
        library.impl("draws::pick", "CPU", lambda self, generator: turnout.rand(self.shape, generator=generator))
        generator = turnout.Generator("firstday").manual_seed(5)
        first, second = (turnout.ops.draws.pick(ones(2), generator) for _ in range(2))
        expected = turnout.Generator("cpu").manual_seed(5)
        assert first.tolist() == turnout.rand(2, generator=expected).tolist()
        assert second.tolist() == turnout.rand(2, generator=expected).tolist()
        assert str(first.device) == "firstday"


def test_lists_go_there_and_come_back(backend: FirstDay) -> None:
    with Registrations("pairs") as library:
        library.define("pairs::swap(Tensor[] values) -> Tensor[]")
        library.impl("pairs::swap", "CPU", lambda values: [v.clone() for v in reversed(values)])
        swapped = turnout.ops.pairs.swap([ones(1), ones(2)])
        assert [(t.shape, str(t.device)) for t in swapped] == [((2,), "firstday"), ((1,), "firstday")]


def test_a_view_operator_is_refused(backend: FirstDay) -> None:
    with Registrations("peeks") as library:
        library.define("peeks::peek(Tensor(a) self) -> Tensor(a)")
        library.impl("peeks::peek", "CPU", lambda self: self[:1])
        assert refused(NoKernelError, turnout.ops.peeks.peek, ones(2)) == (
            "peeks::peek: no kernel for FIRSTDAY\n"
            "  a view cannot be made on cpu and copied back; the backend must have a kernel for this operator"
        )
    assert hosting.calls() == {}


def test_an_operator_that_the_host_has_not_is_an_error_that_names_the_host(backend: FirstDay) -> None:
    with Registrations("nowhere") as library:
        library.define("nowhere::op(Tensor self) -> Tensor")
        assert "nowhere::op: no kernel for CPU" in refused(NoKernelError, lambda: turnout.ops.nowhere.op(ones(2)))


def test_autocast_of_the_host_takes_no_part(backend: FirstDay) -> None:
    seen = []
    with Registrations("watched") as library:
        library.impl("aten::exp", "AutocastCPU", lambda self: seen.append(self) or self)
        with include("AutocastCPU"):
            assert ones(1).mul(0.0).exp().tolist() == [1.0]
    assert seen == []


def test_an_error_on_the_host_changes_nothing(backend: FirstDay) -> None:
    x = ones(2)
    refused(turnout.errors.ShapeError, lambda: x.add_(ones(3)))
    assert x.tolist() == [1.0, 1.0]


# ---- one row of a table


def test_a_row_can_run_on_the_host() -> None:
    class OneRow(ArrayBackend):
        name = "ONEROW"
        device_type = "onerow"
        wrapper_module = "turnout_arrays.wrapped"

    with Registrations("one row") as library:
        made = OneRow(np)
        library.backend(made)
        where = turnout.device("onerow")
        register_kernels(library, made, {"add.out": hosting.on_host("add.out", made, lambda array: where)})
        x = turnout.ones(2, device="onerow")
        assert (x + x).tolist() == [2.0, 2.0]
        assert x.add_(x, alpha=3).tolist() == [4.0, 4.0]
        assert hosting.calls() == {("aten::add.out", "onerow", "cpu"): 2}
        refused(NoKernelError, x.exp)
