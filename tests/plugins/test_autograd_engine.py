"""The sweep: graphs of any shape, orders, layouts, what is freed and not used, and what an exception leaves behind."""

from __future__ import annotations

import weakref
from functools import reduce

import pytest

import turnout
from outcomes import refused
from turnout import autograd
from turnout.state import DISPATCH
from turnout_aten.tensor.levels import GRAD


def leaf(*values, dtype=turnout.float64):
    return turnout.tensor(list(values), dtype=dtype).requires_grad_()


# ---- graphs


ONE = turnout.ones(3, dtype=turnout.float64)
# Sweeps from x = [1, 2, 3], and the gradient that x has after them.
SWEEPS = {
    "a ladder visits each node once": (lambda x: reduce(lambda y, _: y + y, range(60), x).sum().backward(), [2.0**60] * 3),
    "several outputs and uses add up": (lambda x: autograd.backward(((x * 2).sum(), (x * 3).sum(), x.sum())), [6.0] * 3),
    "a leaf is its own": (lambda x: x.backward(ONE), [1.0] * 3),
    "none for a leaf that was switched off": (lambda x: ((x * 2).sum(), x.requires_grad_(False))[0].backward(), None),
    "twice where nothing was saved": (lambda x: [y.backward() for y in [(x + x).sum()] * 2], [4.0] * 3),
    "twice where the graph was kept": (
        lambda x: [(y := (x * x).sum()).backward(retain_graph=True), y.backward()],
        [4.0, 8.0, 12.0],
    ),
    "an input named twice has it once": (lambda x: (x * 2).sum().backward(inputs=[x, x]), [2.0] * 3),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_leaves_the_gradient_of_its_leaf(x, name):
    sweep, expected = SWEEPS[name]
    sweep(x)
    assert (None if x.grad is None else x.grad.tolist()) == expected


def test_gradients_accumulate_in_memory_of_the_leafs_own(x):
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert first.tolist() == [5.0, 5.0, 5.0]
    y, seed = leaf(1.0, 1.0, 1.0), ONE.clone()
    y.backward(seed)
    y.grad.mul_(7)
    assert seed.tolist() == [1.0, 1.0, 1.0]
    x.grad = y.grad = None
    (x + y).sum().backward()
    x.grad.mul_(2)
    assert (x.grad.tolist(), y.grad.tolist()) == ([2.0] * 3, [1.0] * 3)
    assert x.grad.stride() == (1,)


def test_gradients_have_the_layout_of_their_leaf():
    w = turnout.zeros(4, 3, dtype=turnout.float64).t().requires_grad_()
    (w * turnout.ones(3, 4, dtype=turnout.float64)).sum().backward()
    assert w.grad.stride() == w.stride() == (1, 3)


def test_a_gradient_has_the_dtype_of_its_argument():
    half, single = leaf(1.0, 2.0, dtype=turnout.float16), leaf(3.0, 4.0, dtype=turnout.float32)
    ((half * single) + half * 1).sum().backward()
    assert (half.grad.dtype, half.grad.tolist()) == (turnout.float16, [4.0, 5.0])
    assert (single.grad.dtype, single.grad.tolist()) == (turnout.float32, [1.0, 2.0])


def test_a_gradient_is_summed_over_broadcast_dims(x):
    column = turnout.ones(2, 1, dtype=turnout.float64).requires_grad_()
    scalar = turnout.tensor(2.0, dtype=turnout.float64).requires_grad_()
    (x * column * scalar).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    assert column.grad.tolist() == [[12.0], [12.0]]
    assert scalar.grad.item() == 12.0


# ---- orders


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_elements_that_tie_share_the_gradient_and_so_do_nans(name):
    nan = float("nan")
    for values, shares in (
        ([1.0, 1.0], [0.5, 0.5]),
        ([nan, nan], [0.5, 0.5]),
        ([nan, 1.0, 1.0, nan], [0.0, 0.5, 0.5, 0.0] if name == "nanmedian" else [0.5, 0.0, 0.0, 0.5]),
    ):
        tied = leaf(*values)
        getattr(tied, name)().backward()
        assert tied.grad.tolist() == shares


def test_gradients_of_gradients_of_gradients(x):
    y = (x**4).sum()
    found = []
    for _ in range(4):
        (g,) = autograd.grad(y, x, create_graph=True)
        found.append(g.tolist())
        y = g.sum()
    assert found == [[4.0, 32.0, 108.0], [12.0, 48.0, 108.0], [24.0, 48.0, 72.0], [24.0, 24.0, 24.0]]


def test_gradients_are_recorded_with_create_graph_alone(x):
    (g,) = autograd.grad((x * x).sum(), x)
    assert (g.requires_grad, g.grad_fn) == (False, None)
    (x * x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    assert autograd.grad(x.grad.sum(), x)[0].tolist() == [6.0, 12.0, 18.0]
    seen = []
    for options in ({}, {"create_graph": True}):
        y = x * 2
        y.register_hook(lambda g: seen.append(turnout.is_grad_enabled()))
        y.sum().backward(**options)
    assert seen == [False, True]


# ---- edges


def test_an_edge_stands_for_the_value_that_a_tensor_had(x):
    h = x * 2
    edge = autograd.graph.get_gradient_edge(h)
    assert (edge.node, edge.output_nr) == (h.grad_fn, 0)
    before = h.grad_fn
    h.mul_(h.detach().clone())
    assert h.grad_fn is not before
    then, now = autograd.grad(h.sum(), (edge, h), retain_graph=True)
    assert (then.tolist(), now.tolist()) == ([2.0, 4.0, 6.0], [1.0] * 3)
    kept = weakref.ref(h)
    del h, now
    assert kept() is None
    assert autograd.grad(edge, x, turnout.ones(3))[0].tolist() == [2.0] * 3


def test_a_backward_in_two_steps_by_an_edge_is_the_whole(x):
    def half():
        h = (x * x).exp()
        return autograd.graph.get_gradient_edge(h), (h * h).sum()

    edge, total = half()
    (part,) = autograd.grad(total, edge, retain_graph=True)
    autograd.backward(edge, part, retain_graph=True)
    (whole,) = autograd.grad(half()[1], x)
    assert x.grad.tolist() == whole.tolist()
    batch = turnout.stack([part, part * 2])
    (rows,) = autograd.grad(edge, x, batch, is_grads_batched=True)
    assert rows.tolist() == [whole.tolist(), (whole * 2).tolist()]


def test_edges_among_the_inputs_of_backward_limit_it_and_a_leafs_edge_is_the_leaf(x):
    h = x * 2
    w = turnout.ones(3, dtype=turnout.float64, requires_grad=True)
    edges = [autograd.graph.get_gradient_edge(h), autograd.graph.get_gradient_edge(w), w]
    (h * w).sum().backward(inputs=edges)
    assert (x.grad, h.retains_grad, w.grad.tolist()) == (None, False, [2.0, 4.0, 6.0])


def test_an_edge_made_by_hand_takes_gradients_on_trust(x):
    edge = autograd.graph.GradientEdge((y := x * 2).grad_fn, y.output_nr)
    assert autograd.grad(edge, x, turnout.ones(3, dtype=turnout.float64))[0].tolist() == [2.0] * 3


# ---- what is freed, and what is not used


def test_an_input_that_was_not_used_gets_none_or_zeros(x):
    y, total = leaf(1.0), (x * 2).sum()
    assert autograd.grad(total, (x, y), retain_graph=True, allow_unused=True)[1] is None
    assert autograd.grad(total, (x, y), materialize_grads=True)[1].tolist() == [0.0]


def test_backward_with_inputs_reaches_only_those(x):
    y = leaf(2.0, 2.0, 2.0)
    h = x * y
    (h * h).sum().backward(inputs=[x])
    assert x.grad.tolist() == [8.0, 16.0, 24.0]
    assert y.grad is None


def test_branches_that_lead_nowhere_are_not_run(x):
    ran = []
    y = leaf(1.0, 1.0, 1.0)
    h = x * 2
    h.register_hook(lambda g: ran.append("x"))
    total = (h + y * 3).sum()
    assert autograd.grad(total, y)[0].tolist() == [3.0] * 3
    assert ran == []


def test_gradients_with_respect_to_results_on_the_way_and_to_one_of_several(x):
    h = x * 2
    k = h * 3
    assert [g.tolist()[0] for g in autograd.grad(k.sum(), (k, h, x))] == [1.0, 3.0, 6.0]
    a, b, c = x.unbind(0)
    found = autograd.grad(a * b + b * b, (a, b, c), allow_unused=True)
    assert [None if g is None else g.item() for g in found] == [2.0, 5.0, None]


# ---- what users see


def test_the_graph_can_be_read(x):
    y = (x * 2).sum()
    assert y.grad_fn.name() == "SumBackward0"
    ((mul, index),) = y.grad_fn.next_functions
    assert (mul.name(), index) == ("MulBackward1", 0)
    ((leaf, index),) = mul.next_functions
    assert (leaf.name(), index, leaf.variable is x, leaf.next_functions) == ("AccumulateGrad", 0, True, ())
    assert x.exp().grad_fn.next_functions[0][0] is leaf
    assert (x * turnout.ones(3)).grad_fn.next_functions[1] == (None, 0)


def test_a_node_can_be_called_with_the_gradients_of_its_outputs(x):
    one = turnout.ones(3, dtype=turnout.float64)
    product = (x * x).grad_fn
    product.register_hook(lambda ins, outs: pytest.fail("hooks are the sweep's"))
    assert [g.tolist() for g in product(one)] == [x.tolist()] * 2
    assert x.exp().grad_fn(one).requires_grad
    assert product(None) == (None, None)
    rows = x.unbind(0)[0].grad_fn
    assert rows(None, one[0], None).tolist() == [0.0, 1.0, 0.0]
    ((leaf, _index),) = x.exp().grad_fn.next_functions
    with turnout.no_grad():
        assert (leaf(one), leaf(one), x.grad.tolist()) == ((), (), [2.0] * 3)


def test_an_exception_on_the_way_leaves_grads_and_state_as_they_were(x):
    y = x * 2

    def fail(grad):
        raise KeyError("stop")

    y.register_hook(fail)
    before = (GRAD.get(), DISPATCH.get())
    refused(KeyError, lambda: (y + x * 5).sum().backward())
    assert x.grad is None
    assert (GRAD.get(), DISPATCH.get()) == before
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_a_gradient_whose_elements_are_one_place_in_memory_is_copied_into_the_leaf():
    x = turnout.ones(3, dtype=turnout.float64, requires_grad=True)
    (x.clone().sum() ** 2).backward()
    assert x.grad.stride() == (1,)
    assert x.grad.add_(turnout.tensor([0.0, 1.0, 2.0])).tolist() == [6.0, 7.0, 8.0]


def test_zeros_for_what_was_not_used_can_be_differentiated_again(x):
    other = turnout.ones(2, dtype=turnout.float64, requires_grad=True)
    (unused,) = autograd.grad((x * x).sum(), other, create_graph=True, materialize_grads=True)
    assert unused.tolist() == [0.0, 0.0]
    assert unused.requires_grad
    (constant,) = autograd.grad((x * x).sum(), other, materialize_grads=True)
    assert not constant.requires_grad


def test_a_gradient_that_a_hook_keeps_is_not_that_of_the_leaf() -> None:
    kept = []
    x = turnout.ones(3, requires_grad=True)
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    kept[0].fill_(9.0)
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
