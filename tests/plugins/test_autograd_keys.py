"""Kernels of one backend's autograd key beside the common ones: which runs, in any order, and what undoing gives back.

Their gradient is 100 times the right one, so that it shows which kernel recorded a call.
"""

from __future__ import annotations

from itertools import permutations

import pytest

import turnout
from outcomes import refused
from turnout import autograd, library, plugins
from turnout.registry import REGISTRY


def leaf(device="cpu"):
    return turnout.tensor([1.0, 2.0, 3.0], dtype=turnout.float64, device=device).requires_grad_()


def scaled(name, ran):
    """A kernel for an Autograd key: goes on below it, with a gradient of its own that can be differentiated again."""
    op = REGISTRY.get(name)

    class Scaled(autograd.Function):
        @staticmethod
        def forward(ctx, x, ks):
            ctx.save_for_backward(x)
            return op.redispatch(ks.remove("Autograd"), x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 100 * x * x, None

    def kernel(keyset, x):
        ran.append(name)
        return Scaled.apply(x, turnout.DispatchKeySet(keyset))

    return kernel


@pytest.fixture
def twice():
    """A custom operator on cpu and meta, and its qualified name; nobody wrote its gradient."""
    with library.Library("keyed", "DEF") as group:
        group.define("twice(Tensor x) -> Tensor")
        group.impl("twice", lambda x: x * 2, "CPU")
        group.impl("twice", turnout.empty_like, "Meta")
        yield "keyed::twice"


def gradient(name, device="cpu"):
    x = leaf(device)
    y = REGISTRY.find(name)(x)
    (found,) = autograd.grad(y.sum(), x)
    return found.tolist() if device == "cpu" else found.shape


# ---- which one runs


@pytest.mark.parametrize("order", list(permutations(("plugin", "common", "cpu"))), ids="-".join)
def test_a_kernel_of_one_backend_goes_before_the_common_one_in_any_order(twice, order):
    ran = []
    groups = []

    def common():
        library.register_autograd(twice, lambda ctx, grad: grad * 2, setup_context=None, lib=groups[-1])

    def cpu():
        groups[-1].impl("twice", scaled(twice, ran), "AutogradCPU", with_keyset=True)

    plugins.deactivate("autograd", with_dependents=True)
    for step in order:
        groups.append(library.Library("keyed", "FRAGMENT"))
        {"plugin": lambda: plugins.activate("autograd"), "common": common, "cpu": cpu}[step]()
    assert gradient(twice) == [100.0, 400.0, 900.0]
    assert ran == [twice]
    assert gradient(twice, "meta") == (3,)
    assert ran == [twice]
    table = REGISTRY.find(twice).table()
    assert [(table[key].reason, table[key].key) for key in ("AutogradCPU", "AutogradMeta")] == [
        ("kernel", "AutogradCPU"),
        ("autograd kernel", "Autograd"),
    ]
    groups[order.index("cpu")].undo()
    assert gradient(twice) == [2.0, 2.0, 2.0]
    groups[order.index("common")].undo()
    assert refused(autograd.GradientError, gradient, twice) == (
        "keyed::twice: no gradient is implemented\n"
        "  to fix  turnout.library.register_autograd('keyed::twice', backward), or .detach() its inputs"
    )


@pytest.mark.parametrize("active", [False, True], ids=["before the plugin", "after it"])
def test_it_goes_before_the_formula_of_a_standard_operator_and_leaves_other_backends_theirs(active):
    ran = []
    plugins.deactivate("autograd", with_dependents=True)
    if active:
        plugins.activate("autograd")
    with library.Library("aten", "IMPL") as group:
        group.impl("sin", scaled("aten::sin", ran), "AutogradCPU", with_keyset=True)
        assert gradient("aten::sin") == [100.0, 400.0, 900.0]
        assert turnout.sin(leaf("meta")).grad_fn.name() == "SinBackward0"
        assert ran == ["aten::sin"]
        assert turnout.sin(leaf().detach()).tolist() == pytest.approx([0.8414709848, 0.9092974268, 0.1411200081])
        assert ran == ["aten::sin"] * 2  # a user's kernel runs for tensors that need no gradient too
    assert turnout.sin(leaf()).grad_fn.name() == "SinBackward0"


def test_a_common_kernel_goes_before_the_formula_on_every_backend():
    ran = []
    with library.Library("aten", "IMPL") as group:
        group.impl("sin", scaled("aten::sin", ran), "Autograd", with_keyset=True)
        assert gradient("aten::sin") == [100.0, 400.0, 900.0]
        assert gradient("aten::sin", "meta") == (3,)
        assert ran == ["aten::sin"] * 2
        with library.Library("aten", "IMPL") as second:
            second.impl("sin", lambda x: turnout.cos(x), "AutogradMeta")
            assert turnout.sin(leaf("meta")).grad_fn.name() == "CosBackward0"
            assert ran == ["aten::sin"] * 2
    assert gradient("aten::sin")[0] == pytest.approx(0.5403023058)


def test_a_composite_that_gets_a_kernel_of_one_backend_decomposes_on_the_others():
    ran = []
    name = "aten::outer"
    assert "CompositeImplicitAutograd" in REGISTRY.find(name).kernels

    def kernel(x, y):
        ran.append(name)
        return (x * 2).reshape(3, 1) * y

    with library.Library("aten", "IMPL") as group:
        group.impl("outer", kernel, "AutogradCPU")
        x = leaf()
        turnout.outer(x, turnout.ones(2, dtype=turnout.float64)).sum().backward()
        assert x.grad.tolist() == [4.0] * 3
        assert turnout.outer(leaf("meta"), turnout.ones(2, dtype=turnout.float64, device="meta")).grad_fn is not None
        assert ran == [name]


# ---- what it may do


def test_gradients_of_its_gradients_go_through_what_it_wrote_in_operators(twice):
    with library.Library("keyed", "FRAGMENT") as group:
        group.impl("twice", scaled(twice, []), "AutogradCPU", with_keyset=True)
        x = leaf()
        op = REGISTRY.find(twice)
        (first,) = autograd.grad(op(x).sum(), x, create_graph=True)
        (second,) = autograd.grad((first * op(x)).sum(), x)
        assert first.tolist() == [100.0, 400.0, 900.0]
        # d(100 x**2 * op(x)) = 200 x * 2 x + 100 x**2 * 100 x**2
        assert second.tolist() == [400 * v**2 + 10_000 * v**4 for v in (1.0, 2.0, 3.0)]


def test_operators_that_it_calls_are_recorded_by_their_own_kernels(twice):
    def kernel(x):
        return turnout.exp(x) * turnout.sin(x)

    with library.Library("keyed", "FRAGMENT") as group:
        group.impl("twice", kernel, "AutogradCPU")
        assert autograd.gradcheck(REGISTRY.find(twice), leaf())
        assert autograd.gradgradcheck(REGISTRY.find(twice), leaf())


def test_two_of_them_nest(twice):
    ran = []
    with library.Library("keyed", "FRAGMENT") as group, library.Library("aten", "IMPL") as standard:
        standard.impl("sin", scaled("aten::sin", ran), "AutogradCPU", with_keyset=True)
        group.impl("twice", lambda x: turnout.sin(x) * 3, "AutogradCPU")
        assert gradient(twice) == [300.0, 1200.0, 2700.0]
        assert ran == ["aten::sin"]


def test_it_sees_writes_and_views_recorded_below_it():
    def kernel(keyset, x, value):
        return REGISTRY.find("aten::mul_.Scalar").redispatch(turnout.DispatchKeySet(keyset).remove("Autograd"), x, value)

    with library.Library("aten", "IMPL") as group:
        group.impl("mul_.Scalar", kernel, "AutogradCPU", with_keyset=True)
        y = leaf() * 1
        view = y[1:]
        node = y.grad_fn
        view.mul_(3)
        assert (y._version, view._version) == (1, 1)
        assert y.grad_fn is node  # the kernel recorded nothing
        assert y.tolist() == [1.0, 6.0, 9.0]


# ---- seeing it


def test_explain_and_the_table_name_it(twice):
    x = leaf()
    with library.Library("keyed", "FRAGMENT") as group:
        group.impl("twice", scaled(twice, []), "AutogradCPU", with_keyset=True)
        steps = turnout.explain(REGISTRY.find(twice), x).path
        assert [step.key for step in steps] == ["AutogradCPU", "CPU"]
        text = str(turnout.explain(REGISTRY.find(twice), x))
        assert "-> AutogradCPU  kernel [kernel] (keyed, " in text
        assert "next, if it redispatches: ADInplaceOrView, BackendSelect, CPU" in text
        assert "test_autograd_keys.py" in text
    assert "gradient of keyed::twice is not implemented" in str(turnout.explain(REGISTRY.find(twice), x))


def test_two_libraries_at_one_key_are_a_conflict_that_override_settles(twice):
    ran = []
    with library.Library("keyed", "FRAGMENT") as first, library.Library("keyed", "FRAGMENT") as second:
        first.impl("twice", scaled(twice, ran), "AutogradCPU", with_keyset=True)
        refused(turnout.errors.ConflictError, second.impl, "twice", lambda x: x, "AutogradCPU")
        second.impl("twice", lambda x: turnout.exp(x), "AutogradCPU", allow_override=True)
        assert gradient(twice)[0] == pytest.approx(2.718281828)
        second.undo()
        assert gradient(twice) == [100.0, 400.0, 900.0]


def test_tensors_of_two_backends_go_by_the_rank_of_the_backends(twice):
    """A cpu number beside a meta tensor: the key of the higher backend decides."""
    ran = []

    def kernel(name):
        def seen(keyset, x, y):
            ran.append(name)
            ks = turnout.DispatchKeySet(keyset).remove("Autograd")
            return REGISTRY.find("aten::mul.Tensor").redispatch(ks, x, y)

        return seen

    with library.Library("aten", "IMPL") as group:
        group.impl("mul.Tensor", kernel("cpu"), "AutogradCPU", with_keyset=True)
        group.impl("mul.Tensor", kernel("meta"), "AutogradMeta", with_keyset=True)
        number = turnout.tensor(2.0, dtype=turnout.float64)
        leaf() * number
        leaf("meta") * number
        number * leaf("meta")
    assert ran == ["cpu", "meta", "meta"]
