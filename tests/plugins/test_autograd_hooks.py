"""Hooks on tensors, leaves and nodes: when they run, in which order, what they may return, and what is left when one raises."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from own_functions import function
from turnout import autograd, func
from turnout.state import DISPATCH
from turnout_aten.tensor.levels import GRAD


@pytest.fixture
def w():
    return turnout.tensor([0.5, -1.0, 2.0], dtype=turnout.float64).requires_grad_()


# ---- on tensors


def test_they_see_the_whole_gradient_and_may_replace_it(x):
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    (y + y).sum().backward()
    assert seen == [[2.0] * 3]
    assert x.grad.tolist() == [42.0] * 3
    handle.remove()
    handle.remove()


def test_on_leaves_they_run_once_with_the_sum_before_it_is_accumulated(x):
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t is x))
    (x + x * 2).sum().backward()
    assert seen == [[3.0] * 3, [6.0] * 3, True]
    assert autograd.grad((x * 1).sum(), x)[0].tolist() == [2.0] * 3
    assert len(seen) == 4  # no accumulation, so nothing after it
    (x * 1).sum().backward(inputs=[x])
    assert seen[4:] == [[1.0] * 3, [8.0] * 3, True]


def test_a_post_accumulate_hook_may_take_the_gradient_away(x):
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    (x * 2).sum().backward()
    assert x.grad is None


def test_a_hook_may_remove_itself_and_others_and_add_some_for_the_next_time(x):
    ran = []
    y = x * 2
    handles = {}

    def first(grad):
        ran.append("first")
        handles["first"].remove()
        handles["last"].remove()
        y.register_hook(lambda g: ran.append("new"))

    handles["first"] = y.register_hook(first)
    handles["last"] = y.register_hook(lambda g: ran.append("last"))
    total = y.sum()
    total.backward(retain_graph=True)
    assert ran == ["first", "last"]  # those that there were when it began
    total.backward()
    assert ran == ["first", "last", "new"]


def test_the_handle_is_a_context_manager(x):
    with x.register_hook(lambda g: g * 100):
        x.sum().backward()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [101.0] * 3


def test_one_of_several_results_has_hooks_of_its_own_and_unused_ones_do_not_run(x):
    seen = []
    a, b, c = x.unbind(0)
    b.register_hook(lambda g: seen.append(("b", g.item())))
    c.register_hook(lambda g: seen.append(("c", g.item())))
    (a + b * 2).backward()
    assert seen == [("b", 2.0)]


def test_they_follow_neither_writes_nor_lose_them(x):
    """A hook belongs to the value that the tensor had, as in PyTorch; retain_grad to the tensor."""
    seen = []
    y = x * 1
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1.0] * 3, [3.0] * 3]
    assert y.grad.tolist() == [1.0] * 3


def test_recording_is_on_inside_where_the_graph_of_the_gradient_is_made(x):
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append((turnout.is_grad_enabled(), g.requires_grad)))
    total = (y * y).sum()
    total.backward(retain_graph=True)
    total.backward(create_graph=True)
    assert seen == [(False, False), (True, True)]


# ---- on several tensors


def test_a_hook_on_several_tensors_runs_once_when_the_last_of_their_gradients_is_there(x, w):
    seen = []
    y, z, unused = x * 2, w * x, w.exp()
    x.register_hook(lambda g: seen.append("x"))
    handle = autograd.graph.register_multi_grad_hook(
        [y, z, unused], lambda gs: seen.append([None if g is None else g.tolist() for g in gs])
    )
    total = (y + z * 3).sum()
    total.backward(retain_graph=True)
    assert seen == [[[1.0] * 3, [3.0] * 3, None], "x"]
    seen.clear()
    y.sum().backward(retain_graph=True)
    autograd.grad(z.sum(), w, retain_graph=True)
    w.sum().backward()
    assert seen == [[[1.0] * 3, None, None], "x", [None, [1.0] * 3, None]]
    handle.remove()
    seen.clear()
    total.backward()
    assert seen == ["x"]


def test_a_hook_on_several_tensors_runs_at_the_end_where_a_gradient_is_none(x, w):
    Nothing = function(lambda ctx, x: x * 1, lambda ctx, grad: None)
    seen = []
    y = x * 2
    with autograd.graph.register_multi_grad_hook([y, w], lambda gs: seen.append([g is None for g in gs])):
        (Nothing.apply(y) + w).sum().backward()
    assert seen == [[True, False]]
    (x * w).sum().backward()
    assert seen == [[True, False]]


def test_a_hook_on_several_tensors_may_want_the_first_gradient_alone(x):
    seen = []
    y = x * 2
    z = y * 3
    autograd.graph.register_multi_grad_hook([y, z], lambda g: seen.append(g.tolist()), mode="any")
    z.sum().backward(retain_graph=True)
    z.sum().backward(inputs=[x])
    assert seen == [[1.0] * 3] * 2


# ---- retained gradients


def test_retained_gradients_are_those_after_the_hooks_on_the_tensor_and_before_those_of_the_node(x):
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert (y.retains_grad, x.retains_grad) == (True, False)
    y.register_hook(lambda g: g * 3)
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 7,))
    y.sum().backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([3.0] * 3, [42.0] * 3)


def test_asking_for_a_gradient_that_nobody_keeps_is_warned_of(x):
    y = x * 2
    with pytest.warns(UserWarning, match="^grad: ") as caught:
        assert y.grad is None
    assert str(caught[0].message) == (
        "grad: only leaves get a gradient, and this tensor has a history; call retain_grad() on it before backward()"
    )
    assert caught[0].filename == __file__
    assert (x.grad, y.detach().grad) == (None, None)
    y.sum().backward(inputs=[y])
    assert y.grad.tolist() == [1.0] * 3
    z = x * 2
    z.retain_grad()
    assert z.grad is None


def test_backward_into_a_tensor_with_a_history_retains_its_gradient_once(x):
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    total = (y * 3).sum()
    total.backward(inputs=[x, y], retain_graph=True)
    assert (y.grad.tolist(), x.grad.tolist()) == ([30.0] * 3, [60.0] * 3)
    z = x * 2
    total = z.sum()
    total.backward(inputs=z, retain_graph=True)
    assert z.retains_grad
    total.backward()
    assert z.grad.tolist() == [2.0] * 3


def test_the_gradient_of_a_tensor_that_is_gone_is_not_kept(x):
    y = x * 2
    total = (y * y).sum()
    y.retain_grad()
    del y
    total.backward()
    assert x.grad.tolist() == [8.0, 16.0, 24.0]


# ---- on nodes


def test_prehooks_replace_what_goes_in_and_posthooks_what_comes_out(x, w):
    seen = []
    y = x * w
    y.grad_fn.register_prehook(lambda grads: seen.append([g.tolist() for g in grads]))
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda ins, outs: seen.append([g.tolist() for g in (*ins, *outs)]))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 5, None))
    y.sum().backward()
    assert seen == [[[1.0] * 3], [[1.0, -2.0, 4.0], [2.0, 4.0, 6.0], [2.0] * 3]]
    assert (x.grad.tolist(), w.grad) == ([5.0, -10.0, 20.0], None)


def test_where_a_prehook_takes_every_gradient_away_nothing_goes_on(x):
    ran = []
    h = x * 2
    h.register_hook(lambda g: ran.append("h"))
    y = h * 3
    y.grad_fn.register_prehook(lambda grads: (None,))
    (y + x).sum().backward()
    assert (ran, x.grad.tolist()) == ([], [1.0] * 3)


def test_what_is_asked_for_is_taken_before_the_hooks_where_the_sweep_goes_on_and_after_those_of_the_tensor_at_its_end(x):
    h = x * 2
    h.register_hook(lambda g: g * 3)
    h.grad_fn.register_prehook(lambda grads: (grads[0] * 7,))
    total = h.sum()
    assert autograd.grad(total, h, retain_graph=True)[0].tolist() == [3.0] * 3
    assert [g.tolist() for g in autograd.grad(total, (h, x))] == [[1.0] * 3, [42.0] * 3]


def test_the_node_that_accumulates_has_hooks_after_those_on_the_leaf_and_around_the_accumulation(x, w):
    ran = []
    x.register_post_accumulate_grad_hook(lambda t: ran.append(("leaf after", t.grad.tolist())))
    (x * 1).grad_fn.next_functions[0][0].register_prehook(lambda gs: ran.append(("before", gs[0].tolist())) or (gs[0] * 10,))
    handle = (x * 1).grad_fn.next_functions[0][0].register_hook(lambda i, o: ran.append(("after", i, o[0].tolist())))
    x.register_hook(lambda g: ran.append("leaf") or g * 2)  # the nodes are gone, and their hooks are the leaf's
    expected = ["leaf", ("before", [2.0] * 3), ("leaf after", [20.0] * 3), ("after", (), [20.0] * 3)]
    x.sum().backward()
    assert ran == expected
    ran.clear()
    x.grad = None
    (x.sum() + w.sum()).backward(inputs=[x])
    assert ran == expected
    ran.clear()
    assert autograd.grad(x.sum(), x)[0].tolist() == [2.0] * 3
    assert ran == ["leaf"]
    ran.clear()
    w.sum().backward()
    assert ran == []
    handle.remove()
    x.sum().backward()
    assert "after" not in [each[0] for each in ran]


def test_where_a_prehook_of_the_accumulation_takes_the_gradient_away_nothing_is_accumulated(x, w):
    ((node, _index),) = (x * 1).grad_fn.next_functions
    x.register_post_accumulate_grad_hook(lambda t: pytest.fail("nothing was accumulated"))
    node.register_prehook(lambda grads: (None,))
    (x + w).sum().backward()
    assert (x.grad, w.grad.tolist()) == (None, [1.0] * 3)
    node.register_prehook(lambda grads: grads * 2)
    assert refused(RuntimeError, (x + w).sum().backward) == "AccumulateGrad: a hook of its node returned 2 gradients for 1"
    assert w.grad.tolist() == [1.0] * 3


def test_nodes_have_a_dict_for_the_user(x):
    y = x * 2
    y.grad_fn.metadata["made"] = "here"
    assert y.grad_fn.metadata == {"made": "here"}


# ---- what may not be returned, and what is left when one raises


def test_a_hook_after_the_accumulation_returns_nothing(x):
    x.register_post_accumulate_grad_hook(lambda t: t)
    assert refused(RuntimeError, (x * 1).sum().backward) == (
        "a hook after the accumulation of .grad must return None, not Tensor"
    )


@pytest.mark.parametrize("where", ["tensor", "prehook", "posthook", "leaf"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_one_that_raises_leaves_every_gradient_and_the_mode_as_they_were(x, w, where, create_graph):
    def fail(*_):
        raise KeyError("stop")

    y = x * w
    register = {
        "tensor": y.register_hook,
        "prehook": y.grad_fn.register_prehook,
        "posthook": y.grad_fn.register_hook,
        "leaf": w.register_hook,
    }[where]
    handle = register(fail)
    h = w * 4
    h.retain_grad()
    total = (y + h).sum()
    before = (GRAD.get(), DISPATCH.get())
    refused(KeyError, total.backward, retain_graph=True, create_graph=create_graph)
    assert (x.grad, w.grad) == (None, None)
    assert (GRAD.get(), DISPATCH.get()) == before
    handle.remove()
    total.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([0.5, -1.0, 2.0], [5.0, 6.0, 7.0])


# ---- inside of transforms


def doubled(x):
    """The square of a sine, whose gradient a hook doubles: 2 sin(2 x), and its own gradient is 4 cos(2 x)."""
    y = x.sin()
    y.register_hook(lambda grad: grad * 2)
    return (y * y).sum()


def on_the_argument(x):
    x.register_hook(lambda grad: grad * 2)
    return (x.sin() ** 2).sum()


def after_a_node(x):
    y = x.sin()
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2,))
    return (y * y).sum()


def before_a_node(x):
    y = x.sin()
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 2,))
    return (y * y).sum()


@pytest.mark.parametrize("function", [doubled, on_the_argument, after_a_node, before_a_node])
def test_inside_a_gradient_they_run_for_that_gradient_alone(function, x):
    first = func.grad(function)
    plain = x.detach()
    second = (4 * (2 * plain).cos()).tolist()
    assert first(plain).tolist() == pytest.approx((2 * (2 * plain).sin()).tolist())
    assert autograd.grad(first(x).sum(), x)[0].tolist() == pytest.approx(second)
    for outer in (
        func.grad(lambda a: first(a).sum()),
        lambda a: func.jvp(first, (a,), (turnout.ones_like(a),))[1],
        lambda a: func.jacrev(first)(a).sum(0),
        lambda a: func.jacfwd(first)(a).sum(0),
    ):
        assert outer(plain).tolist() == pytest.approx(second)


def test_hooks_on_what_only_an_outer_gradient_tracks_run_for_that(x):
    w = x.detach().requires_grad_()
    seen = []

    def outer(a):
        b = a * 3

        def inner(c):
            d = w * 2
            b.register_hook(lambda grad: seen.append("outer"))
            b.grad_fn.register_hook(lambda *grads: seen.append("node of outer"))
            d.register_hook(lambda grad: seen.append("imperative"))
            d.grad_fn.register_hook(lambda *grads: seen.append("node of imperative"))
            return (c * b * d).sum()

        return func.grad(inner)(a).sum()

    found = func.grad(outer)(x.detach())
    assert seen == ["outer", "node of outer"]
    seen.clear()
    found.sum().backward()
    assert seen == ["imperative", "node of imperative"]
    assert w.grad.tolist() == [6.0, 6.0, 6.0]


def test_imperative_gradients_inside_of_a_transform_run_them_as_its_own_gradient_does(x):
    def function(a):
        b = a * 1
        b.register_hook(lambda grad: grad * 2)
        return autograd.grad((b**3).sum(), a)[0].sum()

    # Both gradients go through b, as in a second backward: the first is 2 * 3 a**2, the second twice what that gives.
    assert func.grad(function)(x.detach()).tolist() == (24 * x.detach()).tolist()


def test_inside_vmap_they_see_the_gradient_of_an_example(x):
    seen = []

    def function(row):
        y = row * row

        def hook(grad):
            seen.append((tuple(grad.shape), grad.requires_grad))
            return grad * row[0]

        y.register_hook(hook)
        return (y * 3).sum()

    m = turnout.stack([x.detach(), x.detach() + 1, x.detach() * 2, x.detach()])
    expected = (m * 6 * m[:, :1]).tolist()
    assert func.vmap(func.grad(function))(m).tolist() == expected
    assert func.vmap(func.grad(function), 1)(m.t()).tolist() == expected
    assert func.vmap(func.vmap(func.grad(function), 1))(turnout.stack([m.t(), m.t()])).tolist() == [expected] * 2
    leaf = m.clone().requires_grad_()
    func.vmap(function)(leaf).sum().backward()
    assert leaf.grad.tolist() == expected
    assert func.grad(lambda a: func.vmap(function)(a).sum())(m).tolist() == expected
    assert seen == [((3,), False)] * 3 + [((3,), False)] * 2


def test_inside_vmap_a_hook_that_returns_nothing_changes_nothing(x):
    def function(row):
        y = row * 2
        y.register_hook(lambda grad: None)
        return y.sum()

    assert func.vmap(func.grad(function))(turnout.stack([x.detach(), x.detach()])).tolist() == [[2.0] * 3] * 2
