"""What the dispatcher does with tensors and with the standard operators: finding, naming arguments, kernels' signatures."""

from __future__ import annotations

import handles
import pytest

import turnout
from outcomes import refused
from turnout.errors import CallError, RegistrationError
from turnout.explanation.explanation import explain, find
from turnout.library import Library
from turnout.operators.kernels import LazyFunction
from turnout.registry import REGISTRY, Registrations
from turnout.schema.kernels import check_kernel_signature
from turnout_aten.kernels.tables import register_kernels, register_over


@pytest.fixture
def x():
    """A tensor on a backend of lists."""
    with Registrations("handles") as library:
        handles.register(library)
        yield handles.tensor([1.0, 2.0])


def error_of(call, *args, **kwargs) -> str:
    return refused(TypeError, call, *args, **kwargs)


def test_functions_methods_and_operators_of_tensors_name_the_argument(x):
    assert error_of(turnout.exp, 3) == "aten::exp: argument 'self' must be Tensor, got int 3"
    assert error_of(turnout.exp) == "aten::exp: argument 'self' (Tensor) is missing"
    assert error_of(turnout.cat, x) == "aten::cat: argument 'tensors' must be a list of tensors, got Tensor float32 [2] on cells"
    assert error_of(x.reshape, "a") == "aten::reshape: argument 'shape' must be int[], got str 'a'"
    assert error_of(lambda: x + "a") == "unsupported operand type(s) for +: 'Tensor' and 'str'"
    assert error_of(turnout.ones, 2, dtype="f4") == (
        "aten::ones: argument 'dtype' must be a dtype such as turnout.float32, got str 'f4'"
    )


def test_a_tensor_is_no_generator_and_a_generator_is_no_tensor(x):
    assert refused(CallError, turnout.ops.aten.randn.generator, [2], generator=x, device="cells") == (
        "aten::randn.generator: argument 'generator' must be a turnout.Generator, got Tensor float32 [2] on cells"
    )
    text = error_of(turnout.exp, turnout.Generator("cells"))
    assert text.startswith("aten::exp: argument 'self' must be Tensor, got Generator ")


def test_every_standard_kernel_can_take_what_its_schema_passes():
    assert turnout.exp
    checked = 0
    for op in REGISTRY.operators.values():
        for stack in op.kernels.values():
            for kernel in stack:
                if type(kernel.fn) is LazyFunction:  # not the generated variants, which call it
                    function = kernel.fn.__wrapped__
                    if kernel.form == "unboxed" and hasattr(function, "__code__"):
                        check_kernel_signature(function, op.schema)
                        checked += 1
    assert checked > 500


def test_public_functions_and_methods_are_found():
    assert find(turnout.add) is turnout.ops.aten.add
    assert find(turnout.Tensor.add) is turnout.ops.aten.add
    assert find(turnout.zeros) is turnout.ops.aten.zeros


def test_no_grad_is_shown_by_explain(x):
    with turnout.no_grad():
        found = explain("aten::exp", x)
    assert found.state.notes == ["no_grad  gradients are not recorded"]
    assert "  no_grad  gradients are not recorded\n" in str(found)


def test_rows_of_a_namespace_without_operators_are_refused():
    assert refused(
        RegistrationError,
        register_kernels,
        Registrations("early"),
        turnout.device("cpu").backend,
        {"f.out": None},
        namespace="nowhere",
    ) == (
        "early: no operator of namespace 'nowhere' is defined yet\n"
        "  to fix  name the plugin that defines them in the manifest of early: requires_plugins = [...]"
    )


def test_two_packages_may_have_rows_over_one_composed_operator():
    with Library("layered", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 2.0, "CompositeImplicitAutograd")
        first, second = Registrations("first"), Registrations("second")
        x = turnout.ones(2, requires_grad=True)
        try:
            register_over(first, "CPU", {"f": lambda x: x * 3.0}, namespace="layered")
            register_over(second, "Meta", {"f": lambda x: NotImplemented}, namespace="layered")
            for left in (first, second):
                with turnout.no_grad():
                    assert turnout.ops.layered.f(x).tolist() == ([3.0, 3.0] if left is first else [2.0, 2.0])
                turnout.ops.layered.f(x).sum().backward()
                assert len(REGISTRY.find("layered::f").kernels["Autograd"]) == 1
                left.undo()
        finally:
            first.undo()
            second.undo()
        assert not REGISTRY.find("layered::f").kernels.get("Autograd")
    assert x.grad.tolist() == [4.0, 4.0]


def test_a_row_over_a_generated_variant_may_leave_the_call_to_it():
    x, out, library = turnout.ones(3), turnout.zeros(()), Registrations("over")
    register_over(library, "CPU", {"matmul.out": lambda self, other, out: NotImplemented})
    try:
        assert turnout.matmul(x, x, out=out) is out
        assert out.item() == 3.0
    finally:
        library.undo()
