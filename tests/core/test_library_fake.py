"""Fake kernels and `get_ctx`."""

from __future__ import annotations

from itertools import permutations

import pytest
from plain_objects import Box, Ghost, backends, box, values  # noqa: F401

from outcomes import refused
from turnout import library
from turnout.errors import KernelSignatureError, NoKernelError, RegistrationError
from turnout.errors.library import LibraryError
from turnout.library import Library, custom, custom_op, get_ctx
from turnout.registry import REGISTRY
from turnout.registry import Registrations as Raw


@pytest.fixture(autouse=True)
def _ghost(backends, monkeypatch):  # noqa: F811
    monkeypatch.delitem(REGISTRY.services, "Fake", raising=False)  # a plugin's, where one is active
    with Raw("ghosts") as library:
        library.backend(Ghost(), dataless=True)
        yield
        for op in list(custom.CUSTOM.values()):
            op.undo()


def copied(x: Box) -> Box:
    return box(*values(x))


def on_ghost(op):
    """What an operator's kernel for objects without data returns for some tensor."""
    return op.kernel("Ghost")(box(1))


def test_without_a_fake_kernel_a_meta_tensor_is_an_error_that_names_the_remedy():
    f = custom_op("t::f", copied, mutates_args=())
    assert refused(NoKernelError, on_ghost, f.operator) == (
        "t::f: no fake kernel\n  asked for by  a tensor without data\n"
        "  to fix        turnout.library.register_fake('t::f', function): "
        "the arguments in, empty results of the right shape out"
    )


def test_an_operator_that_returns_nothing_needs_no_fake_kernel():
    f = custom_op("t::f", lambda x: None, mutates_args=["x"], schema="(Tensor(a!) x) -> ()")
    assert on_ghost(f.operator) is None


def test_a_fake_kernel_serves_backends_without_data_and_fake_tensors_and_the_newest_counts():
    f = custom_op("t::f", copied, mutates_args=())
    assert f.register_fake(lambda x: "old") is not None

    @library.register_fake("t::f")
    def fake(x):
        return "new"

    assert fake(None) == on_ghost(f.operator) == f.operator.kernel("Fake")(box(1)) == "new"
    assert sorted(f.operator.kernels) == ["CompositeExplicitAutograd", "Fake", "Ghost"]
    assert values(f(box(1))) == [1]


def test_an_operator_of_a_library_gets_a_fake_kernel():
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x, *, int n) -> Tensor")
        library.register_fake("t::f", lambda x, *, n: n, lib=lib)
        assert REGISTRY.find("t::f").kernel("Ghost")(box(1), n=4) == 4


def test_get_ctx_is_for_running_fake_kernels():
    text = "get_ctx: only a kernel that register_fake registered can call it, while the kernel runs"
    assert refused(RegistrationError, get_ctx) == text
    f = custom_op("t::f", lambda x: get_ctx(), mutates_args=(), schema="(Tensor x) -> Tensor")
    assert "get_ctx: only" in refused(RegistrationError, f, box(1))

    def failing(x):
        assert get_ctx().key == "Ghost"
        raise ZeroDivisionError

    f.register_fake(failing)
    refused(ZeroDivisionError, on_ghost, f.operator)
    refused(RegistrationError, get_ctx)


def test_tensors_without_data_have_no_sizes_that_depend_on_data():
    f = custom_op("t::f", copied, mutates_args=())
    f.register_fake(lambda x: get_ctx().new_dynamic_size())
    assert refused(NoKernelError, on_ghost, f.operator) == (
        "t::f: its fake kernel asks for a size that depends on data, and ghost tensors have only known sizes\n"
        "  to fix  call it on tensors with data, or on fake tensors"
    )


def test_a_size_that_depends_on_data_comes_from_the_service_of_fake():
    class Service:
        @staticmethod
        def new_dynamic_size(op, low, high):
            return (op.name, low, high)

        @staticmethod
        def in_mode(op, call, *, checks_result):
            assert checks_result
            return call

    f = custom_op("t::f", copied, mutates_args=())
    f.register_fake(lambda x: get_ctx().new_dynamic_size(min=1, max=9))
    with Raw("fake tensors") as raw:
        raw.service("Fake", Service)
        assert f.operator.kernel("Fake")(box(1)) == ("f", 1, 9)


@pytest.mark.parametrize("bounds", [{"min": -1}, {"min": 2, "max": 1}, {"max": 1.5}, {"min": True}])
def test_bounds_that_no_size_has_are_refused(bounds):
    f = custom_op("t::f", copied, mutates_args=())
    f.register_fake(lambda x: get_ctx().new_dynamic_size(**bounds))
    with pytest.raises(LibraryError) as caught:
        on_ghost(f.operator)
    low, high = bounds.get("min", 0), bounds.get("max")
    assert str(caught.value) == (
        f"new_dynamic_size: min and max must be ints with 0 <= min <= max, got min={low!r}, max={high!r}"
    )


@pytest.mark.parametrize("register", [
    lambda f, fn: library.register_fake("t::f", fn),
    lambda f, fn: library.register_kernel("t::f", "shelf", fn),
    lambda f, fn: library.register_kernel("t::f", "default", fn),
    lambda f, fn: f.register_fake(fn),
    lambda f, fn: f.register_kernel("shelf", fn),
    lambda f, fn: Library("t", "IMPL").impl("f", fn, "Shelf"),
    lambda f, fn: library.impl("t::f", "shelf", fn),
    lambda f, fn: custom_op("t::g", fn, mutates_args=(), schema="(Tensor x, int n, int m) -> Tensor"),
])  # fmt: skip
def test_the_names_of_the_schema_in_another_order_are_refused_by_all_that_register_a_kernel(register):
    f = custom_op("t::f", lambda x, n, m: x, mutates_args=(), device_types="shelf", schema="(Tensor x, int n, int m) -> Tensor")
    for names in list(permutations("xnm"))[1:]:
        said = refused(KernelSignatureError, register, f, eval(f"lambda {', '.join(names)}: x"))
        assert f"it takes {', '.join(names)} by position, and is given x, n, m\n" in said
