"""What transforms, gradient rules and operators of programs say about a call that they refuse, word by word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from turnout.autograd import GradientError
from turnout.autograd.functional import hessian, hvp, jacobian, vhp, vjp
from turnout.func import grad, jvp

import turnout
from outcomes import refused
from turnout.errors import DeviceError, NoKernelError, StaleOperatorError, TurnoutError
from turnout.errors.library import KernelResultError
from turnout.library import Library, register_autograd

X = turnout.tensor([1.0, 2.0])
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: grad(lambda x: x.sum(), has_aux=True)(X),
        "grad: with has_aux=True the function must return a tuple of two values: the one to differentiate, and any other",
    ),
    (
        lambda: jvp(lambda x: turnout.ones(1), (X,), (X,), strict=True),
        "jvp: with strict=True every result must depend on the primals; one does not",
    ),
    (
        lambda: hessian(lambda x: x * 2, X),
        "hessian: the function must return a tensor of one element, not in a tuple; it returned float32 [2]",
    ),
    (
        lambda: vhp(lambda x: x * 2, X, X),
        "vhp: the function must return a tensor of one element, not in a tuple; it returned float32 [2]",
    ),
    (
        lambda: jacobian(lambda x: (x * 2, turnout.ones(2)), X, strict=True),
        "jacobian: with strict=True every result must depend on the inputs, but result 1 does not",
    ),
    (
        lambda: jacobian(lambda x, y: x * 2, (X, X), strict=True),
        "jacobian: with strict=True the results must depend on every input, but one does not depend on input 1",
    ),
    (
        lambda: hvp(lambda x: x.sum(), X, X, strict=True),
        (
            "hvp: with strict=True the gradients must depend on the inputs, but that of input 0 does not: "
            "the function is linear in it"
        ),
    ),
    (
        lambda: vjp(lambda x: x.sum(), X, create_graph=True, strict=True),
        "vjp: with strict=True and create_graph=True the derivatives must depend on the inputs, but that of input 0 does not",
    ),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_transforms_refuse(call: Callable[[], Any], text: str) -> None:
    assert refused(GradientError, call) == text


@pytest.fixture
def library() -> Iterator[Library]:
    with Library("texts", "DEF") as made:
        made.define("two(Tensor a, Tensor b) -> Tensor")
        made.define("some(Tensor[] a) -> Tensor")
        made.define("number(Tensor a) -> int")
        made.impl("two", lambda a, b: a * b, "CPU")
        made.impl("some", lambda a: a[0] * 1, "CPU")
        made.impl("number", lambda a: 3, "CPU")
        yield made


def test_what_is_said_of_a_gradient_rule_that_answers_for_too_few(library: Library) -> None:
    register_autograd("texts::two", lambda ctx, g: g, lib=library)
    text = refused(KernelResultError, lambda: turnout.ops.texts.two(X.clone().requires_grad_(), X).sum().backward())
    assert text.startswith("texts::two: its gradient rule returned 1 value for 2 inputs\n  inputs  a, b\n  rule    <lambda> (")
    assert text.endswith("\n  to fix  return one for each in order, None where there is no gradient")


def test_what_is_said_of_a_gradient_rule_whose_list_is_too_long(library: Library) -> None:
    register_autograd("texts::some", lambda ctx, g: ([g, g],), lib=library)
    text = refused(KernelResultError, lambda: turnout.ops.texts.some([X.clone().requires_grad_()]).sum().backward())
    assert text.startswith("texts::some: its gradient rule returned 2 values for a, a list of 1\n  rule    <lambda> (")
    assert text.endswith("\n  to fix  return a list with one for each tensor, or None for the whole list")


@pytest.mark.filterwarnings("ignore:.*has no batching rule")
def test_what_is_said_of_operators_that_run_once_for_each_example(library: Library) -> None:
    number, two = turnout.ops.texts.number, turnout.ops.texts.two
    assert refused(TurnoutError, turnout.vmap(number), X) == (
        "texts::number: it returns a value that is not a tensor, which vmap cannot give for each example"
    )
    assert refused(TurnoutError, turnout.vmap(two), turnout.ones(0, 2), turnout.ones(0, 2)) == (
        "texts::two has no batching rule and would run once per example, but there are no examples"
    )


def test_what_is_said_of_kernels_and_definitions_that_are_not_there(library: Library) -> None:
    assert refused(NoKernelError, turnout.ops.texts.two.default.kernel, "AutocastCPU") == (
        "texts::two: no kernel for AutocastCPU; kernels are registered at CPU"
    )
    with Library("gone", "DEF") as definition, Library("gone", "IMPL") as kernels:
        definition.define("f(Tensor a) -> Tensor")
        kernels.impl("f", lambda a: a, "CPU")
        op = turnout.ops.gone.f.default
        definition.undo()
        assert refused(StaleOperatorError, op, X) == (
            "gone::f has kernels but no definition: the library that defines it is not loaded or was undone"
        )


def test_what_is_said_of_a_generator_of_another_device() -> None:
    assert refused(DeviceError, turnout.rand, 2, generator=turnout.Generator("cpu"), device="meta") == (
        'aten::rand.generator: the generator is on cpu, the result is asked for on meta\n  to fix  pass turnout.Generator("meta")'
    )
