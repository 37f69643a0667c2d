"""Tensors and views from before the plugin was active, and operators of users that write or view: all are followed alike."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from turnout import autograd, library, plugins
from turnout.registry import REGISTRY


def fill_both(x, y, k):
    x.fill_(k)
    y.fill_(k)


@pytest.fixture
def group():
    """Custom operators that write and that view, with kernels below Autograd only."""
    with library.Library("followed", "DEF") as made:
        made.define("scale_(Tensor(a!) x, float k) -> Tensor(a!)")
        made.impl("scale_", lambda x, k: x.mul_(k), "CompositeExplicitAutograd")
        made.define("fill_both(Tensor(a!) x, Tensor(b!) y, float k) -> ()")
        made.impl("fill_both", fill_both, "CompositeExplicitAutograd")
        made.define("part(Tensor(a) x, int start) -> Tensor(a)")
        made.impl("part", lambda x, start: x[start:], "CompositeImplicitAutograd")
        made.define("tail(Tensor(a) x, int start) -> Tensor(a)")
        made.impl("tail", lambda x, start: x[start:], "CompositeExplicitAutograd")
        made.define("ends(Tensor(a -> *) x) -> Tensor(a)[]")
        made.impl("ends", lambda x: [x[:1], x[-1:]], "CompositeExplicitAutograd")
        yield turnout.ops.followed


def plain():
    return turnout.tensor([1.0, 2.0, 3.0], dtype=turnout.float64)


# ---- programs of two halves: what is made before there are gradients, and what is done with it


NO_WRITE = "such a view cannot be changed in place"
CHANGED = "aten::mul.Tensor: its saved 'other', a tensor float64 [3], was changed in place after it was used"
# What is done with a base, its view and x; what is computed then; its gradient at x, or the first line of the error.
PROGRAMS = [
    ("base.mul_(x)", "view.sum() + base.sum()", [1.0, 6.0, 8.0]),
    ("view.mul_(x[1:])", "(base * base).sum()", [0.0, 36.0, 96.0]),
    ("view[:1].mul_(x[:1])", "(base * view.sum()).sum()", [45.0, 0.0, 0.0]),
    ("y = (x * base).sum(); view.add_(1)", "y", CHANGED),
    ("y = (x * base).sum(); ops.scale_(view, 2.0)", "y", CHANGED),
    ("y = (x * base).sum(); base.detach().zero_()", "y", CHANGED),
    ("base.requires_grad_()", "view.mul_(2)",
     "aten::mul_.Scalar: self is a view of a leaf that requires a gradient; it cannot be changed in place"),
    ("base.mul_(x); ops.scale_(view, 2.0)", "base.sum()", "followed::scale_: no gradient is implemented"),
    ("part = ops.part(base, 1); base.mul_(x); part.mul_(2)", "base.sum() + (view * part).sum()", [1.0, 150.0, 392.0]),
    ("first, last = ops.ends(base)", "first.mul_(x[:1]).sum()",
     "aten::mul_.Tensor: self is one of several views that followed::ends returned together; " + NO_WRITE),
]  # fmt: skip


def outcome(done, result, ops, activate_first):
    plugins.deactivate("autograd", with_dependents=True)
    if activate_first:
        plugins.activate("autograd")
    base = plain()
    view = base[1:]
    view.add_(1)
    x = plain()
    assert ("Autograd" in REGISTRY.services) is activate_first
    x.requires_grad_()
    scope = {"base": base, "view": view, "x": x, "ops": ops}
    try:
        exec(done, scope)
        (found,) = autograd.grad(eval(result, scope), x)
        return found.tolist(), base.tolist(), base._version, view._base is base
    except RuntimeError as error:
        return str(error).partition("\n")[0], type(error), str(error)


@pytest.mark.parametrize(("done", "result", "expected"), PROGRAMS)
def test_it_does_not_matter_whether_the_plugin_was_active_when_the_tensors_were_made(group, done, result, expected):
    found = outcome(done, result, group, False)
    assert found == outcome(done, result, group, True)
    assert found[0] == expected


# ---- custom operators that write and view


def test_a_custom_write_counts_for_every_alias_and_a_custom_view_has_a_base(group):
    base = plain()
    view = group.tail(base, 1)
    assert view._base is base
    group.scale_(view, 2.0)
    group.fill_both(view[:1], base, 7.0)
    assert (base._version, view._version) == (3, 3)
    assert base.tolist() == [7.0] * 3
    assert [each._base is base for each in group.ends(view)] == [True, True]


def test_a_custom_write_into_what_may_not_be_written_is_refused_before_it_is_done(group):
    x = plain().requires_grad_()
    text = "followed::scale_: self is a leaf that requires a gradient; it cannot be changed in place"
    assert refused(RuntimeError, lambda: group.scale_(x, 2.0)).startswith(text)
    assert refused(RuntimeError, lambda: group.scale_(group.tail(x, 1), 2.0)).startswith(
        text.replace("a leaf", "a view of a leaf")
    )
    first, _last = group.ends(x * 1)
    assert refused(RuntimeError, lambda: group.scale_(first, 2.0)).startswith(
        "followed::scale_: self is one of several views that followed::ends returned together"
    )
    assert (x.tolist(), x._version) == ([1.0, 2.0, 3.0], 0)


def test_a_custom_view_without_a_gradient_says_so_at_backward_through_the_base_too(group):
    x = plain().requires_grad_()
    text = (
        "followed::tail: no gradient is implemented\n"
        "  to fix  turnout.library.register_autograd('followed::tail', backward), or .detach() its inputs"
    )
    assert refused(RuntimeError, group.tail(x, 1).sum().backward) == text
    y = x * 1
    view = group.tail(y, 1)
    y.mul_(2)
    assert refused(RuntimeError, view.sum().backward) == text
    assert autograd.grad(y.sum(), x)[0].tolist() == [2.0] * 3


class Scale(autograd.Function):
    """A user's gradient of an operator that writes."""

    @staticmethod
    def forward(ctx, x, k, ks):
        ctx.mark_dirty(x)
        ctx.k = k
        return turnout.ops.followed.scale_.default.redispatch(ks, x, k)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.k, None, None


@pytest.mark.parametrize("key", ["Autograd", "AutogradCPU"])
def test_a_kernel_at_an_autograd_key_gives_a_custom_write_its_gradient_on_views_too(group, key):
    def kernel(keyset, x, k):
        return Scale.apply(x, k, turnout.DispatchKeySet(keyset).remove("Autograd"))

    def program(x):
        y = x * 1
        group.scale_(y, 3.0)
        group.scale_(y[1:], 5.0)
        return y * x

    with library.Library("followed", "FRAGMENT") as gradients:
        gradients.impl("scale_", kernel, key, with_keyset=True)
        x = plain().requires_grad_()
        y = x * 1
        view = y[1:]
        group.scale_(view, 5.0)
        assert (y.grad_fn.name(), view._base is y, y._version) == ("CopySlices", True, 1)
        assert autograd.grad(y.sum() + view.sum(), x)[0].tolist() == [1.0, 10.0, 10.0]
        assert autograd.gradcheck(program, x)
        assert autograd.gradgradcheck(program, x)
        assert "is a leaf that requires a gradient" in refused(RuntimeError, lambda: group.scale_(x, 2.0))
