"""Custom operators with the CPU, Meta and Autograd plugins: what the layers make of them together."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import turnout
from turnout import Tensor, library
from turnout.errors import PluginError
from turnout.errors.library import KernelResultError
from turnout.library import custom


@pytest.fixture(autouse=True)
def _custom_operators_end():
    yield
    for op in list(custom.CUSTOM.values()):
        op.undo()


def numpy_cube(x: Tensor) -> Tensor:
    return turnout.from_numpy(x.numpy() ** 3)


def save_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def cube_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * 3 * x * x


def cube():
    op = library.custom_op("layers::cube", numpy_cube, mutates_args=())
    op.register_autograd(cube_backward, setup_context=save_inputs)
    op.register_fake(lambda x: x.new_empty(x.shape))
    return op


def test_a_custom_operator_computes_differentiates_twice_and_has_a_shape():
    op = cube()
    x = turnout.tensor([1.0, 2.0], requires_grad=True)
    (first,) = turnout.autograd.grad(op(x).sum(), x, create_graph=True)
    (second,) = turnout.autograd.grad(first.sum(), x)
    assert (op(x).tolist(), first.tolist(), second.tolist()) == ([1, 8], [3, 12], [6, 12])
    made = op(turnout.empty(2, 3, device="meta"))
    assert (made.shape, made.device.type) == ((2, 3), "meta")
    assert turnout.autograd.gradcheck(op, (turnout.tensor([0.5, 1.5], dtype=turnout.float64, requires_grad=True),))


def test_a_kernel_under_autograd_may_ask_for_the_numpy_array():
    op = library.custom_op("layers::plain", numpy_cube, mutates_args=())
    x = turnout.tensor([2.0], requires_grad=True)
    y = op(x)
    assert y.requires_grad
    assert y.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="layers::plain: no gradient is implemented"):
        y.sum().backward()
    with turnout.no_grad():
        assert not op(x).requires_grad


def test_a_kernel_on_arrays_takes_part_in_gradients():
    op = library.custom_op("layers::sin", np.sin, mutates_args=(), schema="(Tensor x) -> Tensor", device_types="cpu", arrays=True)
    op.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0].cos(), setup_context=save_inputs)
    x = turnout.tensor([0.0, 1.0], requires_grad=True)
    op(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([1.0, np.cos(1.0)])
    assert op(turnout.tensor(0.5)).shape == ()


def test_a_write_makes_what_was_saved_an_error():
    @library.custom_op("layers::fill", mutates_args={"x"})
    def fill(x: Tensor, value: float) -> None:
        x.fill_(value)

    op = cube()
    x = turnout.tensor([1.0], requires_grad=True)
    hidden = x * 2
    y = op(hidden)
    with turnout.no_grad():
        fill(hidden, 5.0)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.sum().backward()


def test_integer_results_have_no_gradient_and_take_none_away():
    op = library.custom_op(
        "layers::sorted", lambda x: (x * 2, turnout.ones(x.shape, dtype=turnout.int64)), mutates_args=(),
        schema="(Tensor x) -> (Tensor, Tensor)",
    )  # fmt: skip
    op.register_autograd(lambda ctx, grad, unused: grad * 2)
    x = turnout.tensor([1.0], requires_grad=True)
    values, indices = op(x)
    assert values.requires_grad
    assert not indices.requires_grad
    values.sum().backward()
    assert x.grad.tolist() == [2.0]


PROGRAM = """
import sys
import turnout
from turnout import library

library.define("late::f", "(Tensor x) -> Tensor")
library.impl("late::f", "cpu", lambda x: x + 1)
library.register_autograd("late::f", lambda ctx, grad: grad * 7)
op = library.custom_op("late::g", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
op.register_autograd(lambda ctx, grad: grad * 5)
op.register_fake(lambda x: x)
assert not {"numpy", "turnout_cpu", "turnout_meta", "turnout_autograd"} & set(sys.modules), "something was activated"
x = turnout.ones(2)
assert turnout.ops.late.f(x).tolist() == op(x).tolist() == [2.0, 2.0]
assert "turnout_autograd" not in sys.modules
x.requires_grad_()
(turnout.ops.late.f(x) + op(x)).sum().backward()
assert x.grad.tolist() == [12.0, 12.0]
"""


def test_registering_activates_nothing_and_works_before_any_plugin_is_active():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


EACH = "return one for each in order, None where there is no gradient"
LIST = "return a list with one for each tensor, or None for the whole list"
# What an operator takes, what its gradient rule answers -> what is said about it.
ANSWERS = [
    ("Tensor x, Tensor y", lambda grad: grad, f"1 value for 2 inputs\n  inputs  x, y\n{{}}{EACH}"),
    ("Tensor[] xs", lambda grad: [1], f"1 values for xs, a list of 2\n{{}}{LIST}"),
    ("Tensor[] xs", lambda grad: 3, f"int for xs, a list of 2\n{{}}{LIST}"),
]


@pytest.mark.parametrize(("inputs", "answer", "said"), ANSWERS)
def test_a_rule_that_answers_with_something_else_than_its_inputs_is_an_error(inputs, answer, said):
    def rule(ctx, grad):
        return answer(grad)

    op = library.custom_op("layers::f", lambda *xs: turnout.ones(2), mutates_args=(), schema=f"({inputs}) -> Tensor")
    op.register_autograd(rule)
    x = turnout.ones(2).requires_grad_()
    with pytest.raises(KernelResultError) as caught:
        (op([x, x]) if "[]" in inputs else op(x, x)).sum().backward()
    where = f"  rule    rule ({__file__}:{rule.__code__.co_firstlineno})\n  to fix  "
    assert str(caught.value) == f"layers::f: its gradient rule returned {said.format(where)}"


def test_a_graph_that_was_recorded_before_an_operator_was_defined_again_keeps_its_rule():
    def define(factor):
        op = library.custom_op("layers::scaled", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
        op.register_autograd(lambda ctx, grad: grad * factor)
        return op

    x = turnout.ones(2, requires_grad=True)
    before = define(3)(x).sum()
    after = define(5)(x).sum()
    before.backward()
    assert x.grad.tolist() == [3.0, 3.0]
    after.backward()
    assert x.grad.tolist() == [8.0, 8.0]


@pytest.mark.parametrize(("out_dims", "shown"), [((0, 0), "(0, 0)"), (2, "2"), (-3, "-3"), ("a", "'a'")])
def test_out_dims_of_a_batching_rule_that_do_not_fit_are_an_error(out_dims, shown):
    op = cube()
    op.register_vmap(lambda info, in_dims, x: (op(x), out_dims))
    with pytest.raises(RuntimeError) as caught:
        turnout.vmap(op)(turnout.ones(2, 3))
    assert str(caught.value) == f"layers::cube: the out_dims of its vmap rule do not fit the result; they are {shown}"


# ---- `triton_op` and `wrap_triton`, without Triton and with a module that stands for it


def twice(x: Tensor) -> Tensor:
    return x.exp() * 2


@pytest.mark.parametrize(
    ("api", "call"),
    [("triton_op", lambda: library.triton_op("tri::f", mutates_args=())), ("wrap_triton", lambda: library.wrap_triton(twice))],
)
def test_without_triton_the_error_says_what_is_missing(monkeypatch, api, call):
    monkeypatch.setattr("turnout_aten.triton.find_spec", lambda name: None)
    with pytest.raises(PluginError) as caught:
        call()
    assert (
        str(caught.value) == f"{api}: Triton is not installed\n  to fix  `pip install triton`, or write the kernel for custom_op"
    )


def test_a_trace_shows_the_parts_of_a_triton_operator(monkeypatch):
    monkeypatch.setattr("turnout_aten.triton.find_spec", lambda name: object())
    op = library.triton_op("tri::twice", mutates_args=())(twice)
    try:
        x = turnout.tensor([0.0, 1.0])
        assert op(x).tolist() == twice(x).tolist()
        graph = turnout.trace(op)(x)
        assert [node.op.qualified_name for node in graph.nodes] == ["aten::exp", "aten::mul.Scalar"]
        assert graph(x).tolist() == twice(x).tolist()
        plain = library.custom_op("tri::plain", mutates_args=())(twice)
        assert [node.op.qualified_name for node in turnout.trace(plain)(x).nodes] == ["tri::plain"]
        plain.undo()
    finally:
        op.undo()
    assert library.wrap_triton(twice) is twice
