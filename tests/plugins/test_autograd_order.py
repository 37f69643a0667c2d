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


def write_into_the_base(ops, made):
    base, view, x = made
    base.mul_(x)
    return view.sum() + base.sum()


def write_into_the_view(ops, made):
    base, view, x = made
    view.mul_(x[1:])
    return (base * base).sum()


def write_into_a_view_of_the_view(ops, made):
    base, view, x = made
    view[:1].mul_(x[:1])
    return (base * view.sum()).sum()


def save_then_write(ops, made):
    base, view, x = made
    y = (x * base).sum()
    view.add_(1)
    return y


def save_then_write_by_a_custom_operator(ops, made):
    base, view, x = made
    y = (x * base).sum()
    ops.scale_(view, 2.0)
    return y


def write_a_leaf_through_its_view(ops, made):
    base, view, _ = made
    base.requires_grad_()
    return view.mul_(2)


def write_by_a_custom_operator(ops, made):
    base, view, x = made
    base.mul_(x)
    ops.scale_(view, 2.0)
    return base.sum()


def view_by_a_custom_operator(ops, made):
    base, view, x = made
    part = ops.part(base, 1)
    base.mul_(x)
    part.mul_(2)
    return base.sum() + (view * part).sum()


def one_of_several_views(ops, made):
    base, _, x = made
    first, _last = ops.ends(base)
    return first.mul_(x[:1]).sum()


def detach_and_write(ops, made):
    base, _, x = made
    y = (x * base).sum()
    base.detach().zero_()
    return y


# fmt: off
PROGRAMS = [
    write_into_the_base, write_into_the_view, write_into_a_view_of_the_view, save_then_write,
    save_then_write_by_a_custom_operator, write_a_leaf_through_its_view, write_by_a_custom_operator,
    view_by_a_custom_operator, one_of_several_views, detach_and_write,
]
# fmt: on


def outcome(program, ops, activate_first):
    plugins.deactivate("autograd", with_dependents=True)
    if activate_first:
        plugins.activate("autograd")
    base = plain()
    view = base[1:]
    view.add_(1)
    x = plain()
    assert ("Autograd" in REGISTRY.services) is activate_first
    x.requires_grad_()
    try:
        result = program(ops, (base, view, x))
        (found,) = autograd.grad(result, x)
        return found.tolist(), base.tolist(), base._version, view._base is base
    except RuntimeError as error:
        return type(error), str(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_it_does_not_matter_whether_the_plugin_was_active_when_the_tensors_were_made(group, program):
    assert outcome(program, group, False) == outcome(program, group, True)


def test_what_those_programs_give(group):
    found = {program.__name__: outcome(program, group, False) for program in PROGRAMS}
    grads = {name: value[0] for name, value in found.items() if isinstance(value[0], list)}
    assert grads == {
        "write_into_the_base": [1.0, 6.0, 8.0],
        "write_into_the_view": [0.0, 36.0, 96.0],
        "write_into_a_view_of_the_view": [45.0, 0.0, 0.0],
        "view_by_a_custom_operator": [1.0, 150.0, 392.0],
    }
    errors = {name: value[1].partition("\n")[0] for name, value in found.items() if name not in grads}
    changed = "aten::mul.Tensor: its saved 'other', a tensor float64 [3], was changed in place after it was used"
    assert errors == {
        "save_then_write": changed,
        "save_then_write_by_a_custom_operator": changed,
        "detach_and_write": changed,
        "write_a_leaf_through_its_view": (
            "aten::mul_.Scalar: self is a view of a leaf that requires a gradient; it cannot be changed in place"
        ),
        "write_by_a_custom_operator": "followed::scale_: no gradient is implemented",
        "one_of_several_views": (
            "aten::mul_.Tensor: self is one of several views that followed::ends returned together; "
            "such a view cannot be changed in place"
        ),
    }


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
