"""Bad input to gradients: the class and the whole text of every error, and that nothing was accumulated or changed.

That PyTorch refuses under the same conditions is checked in tests/oracle.
"""

# ruff: noqa: E501 - rows of a table

from __future__ import annotations

from types import SimpleNamespace

import pytest

import turnout
from outcomes import refused
from own_functions import Square, function
from turnout import autograd, library
from turnout.errors import AliasError, ArgumentError, CallError, DeviceError, DTypeError, ShapeError
from turnout.errors.library import KernelResultError
from turnout.state import DISPATCH
from turnout_aten.tensor.levels import GRAD

GradientError = autograd.GradientError


@pytest.fixture
def g():
    """Tensors of every kind: x and w are leaves, h is a result, p needs no gradient, i holds whole numbers, z is complex."""
    made = SimpleNamespace()
    made.x = turnout.tensor([1.0, 2.0, 3.0], dtype=turnout.float64).requires_grad_()
    made.w = turnout.tensor([0.5, -1.0, 2.0], dtype=turnout.float64).requires_grad_()
    made.h = made.x * 2
    made.p = turnout.tensor([4.0, 5.0, 6.0], dtype=turnout.float64)
    made.i = turnout.tensor([1, 2, 3])
    made.z = made.x * 1j
    made.ones = lambda *shape, **kwargs: turnout.ones(*shape, **{"dtype": turnout.float64, **kwargs})
    return made


def twice(y):
    y.backward()
    y.backward()


def changed(g, write):
    y = (g.h * g.h).sum()
    write(g.h)
    y.backward()


UNTRACKED = (
    "backward: the tensor does not require a gradient and was not computed from one that does\n"
    "  to fix  requires_grad=True on an input; nothing is recorded under turnout.no_grad()"
)
FREED = (
    "{}: an earlier backward pass freed the values saved for it\n"
    "  to fix  pass retain_graph=True to the earlier backward() or grad(), or compute the result again"
)
NOT_ONE = (
    "backward: the gradient can be omitted only for a tensor of one element; this one is float64 [3]\n"
    "  to fix  reduce it with sum() or mean(), or pass the gradient"
)
CHANGED = (
    "aten::mul.Tensor: its saved 'other', a tensor float64 [3], was changed in place after it was used\n"
    "  saved at version  0\n  now at version    1\n"
    "  to fix  write into a clone(), or change it after backward()"
)
LEAF = (
    "{}: self is a leaf that requires a gradient; it cannot be changed in place\n"
    "  to fix  write under turnout.no_grad(), or into a clone()"
)

INSIDE = "a gradient edge belongs to a tensor outside of vmap, which all examples share; pass the tensor itself"
NODE = "aten::mul.Tensor: its node takes a gradient for each of its 1 outputs, a tensor or None; got "
HOOK = "a hook returned {} for a gradient float64 [3] on cpu; a hook must keep the dtype, the shape and the device"
UNHOOKED = "a hook can be registered only on a tensor that requires a gradient"

# fmt: off
REFUSED = [
    # backward twice
    ("twice", lambda g: twice((g.x * g.w).sum()), GradientError, FREED.format("aten::mul.Tensor")),
    ("twice through a result", lambda g: twice(g.x.exp().sum()), GradientError, FREED.format("aten::exp")),
    ("twice through a Function", lambda g: twice(Square.apply(g.x).sum()), GradientError, FREED.format("Square")),
    ("twice through a write into a view", lambda g: (g.h[1:].add_(g.x[0]), g.h.sum().backward(), g.h.sum().backward()), GradientError, FREED.format("aten::add.Tensor")),
    ("grad, then backward", lambda g: (y := (g.x * g.w).sum(), autograd.grad(y, g.x), y.backward()), GradientError, FREED.format("aten::mul.Tensor")),
    # what has no gradient
    ("untracked", lambda g: g.p.sum().backward(), GradientError, UNTRACKED),
    ("detached", lambda g: g.h.sum().detach().backward(), GradientError, UNTRACKED),
    ("whole numbers", lambda g: g.i.sum().backward(), GradientError, UNTRACKED),
    ("one of two untracked", lambda g: autograd.backward((g.h.sum(), g.p.sum())), GradientError, UNTRACKED),
    ("not a scalar", lambda g: g.h.backward(), GradientError, NOT_ONE),
    ("None for several elements", lambda g: autograd.backward([g.h], [None]), GradientError, NOT_ONE),
    ("complex", lambda g: g.z.sum().backward(), GradientError, "backward: the gradient can be omitted only for a real tensor; this one is complex128 []\n  to fix  pass the gradient"),
    ("not a tensor", lambda g: autograd.backward([g.h.sum(), 3.0]), CallError, "backward: output 1 must be a tensor, not float"),
    ("a number", lambda g: autograd.backward(3.0), CallError, "backward: output 0 must be a tensor, not float"),
    # gradients that were given
    ("a wrong shape", lambda g: g.h.backward(g.ones(2)), ShapeError, "gradient 0 has shape [2], output 0, made by aten::mul.Scalar, has shape [3]"),
    ("a shape that would broadcast", lambda g: autograd.grad([g.x, g.h], g.x, [g.ones(3), g.ones(1, 3)]), ShapeError, "gradient 1 has shape [1, 3], output 1, made by aten::mul.Scalar, has shape [3]"),
    ("a wrong shape for a leaf", lambda g: g.x.backward(g.ones(2)), ShapeError, "gradient 0 has shape [2], output 0 has shape [3]"),
    ("a wrong shape for one of several", lambda g: g.x.max(0)[0].backward(g.ones(2)), ShapeError, "gradient 0 has shape [2], output 0, made by aten::max.dim, has shape []"),
    ("complex for real", lambda g: g.h.backward(g.ones(3) * 1j), GradientError, "gradient 0 is complex128, output 0, made by aten::mul.Scalar, is float64: both must be complex, or neither"),
    ("real for complex", lambda g: g.z.backward(g.ones(3)), GradientError, "gradient 0 is float64, output 0, made by aten::mul.Scalar, is complex128: both must be complex, or neither"),
    ("another device", lambda g: g.h.backward(g.ones(3, device="meta")), DeviceError, "gradient 0 is on meta, output 0, made by aten::mul.Scalar, is on cpu"),
    ("a number as gradient", lambda g: g.h.sum().backward(1.0), CallError, "gradient 0 must be a tensor or None, not float"),
    ("a list as gradient", lambda g: g.h.sum().backward([1.0]), CallError, "gradient 0 must be a tensor or None, not float"),
    ("several numbers as gradient", lambda g: g.h.backward([1.0, 1.0, 1.0]), CallError, "gradient 0 must be a tensor or None, not float"),
    ("too few gradients", lambda g: autograd.backward([g.h.sum(), g.w.sum()], [g.ones(())]), GradientError, "1 gradients were given for 2 outputs"),
    ("too many gradients", lambda g: g.h.sum().backward([g.ones(()), g.ones(())]), GradientError, "2 gradients were given for 1 outputs"),
    # inputs
    ("no inputs", lambda g: autograd.grad(g.h.sum(), []), GradientError, "grad: inputs is empty; omit it to reach every leaf"),
    ("inputs empty", lambda g: g.h.sum().backward(inputs=[]), GradientError, "backward: inputs is empty; omit it to reach every leaf"),
    ("an input that is no tensor", lambda g: autograd.grad(g.h.sum(), [g.x, 3.0]), CallError, "grad: input 1 must be a tensor, not float"),
    ("an untracked input", lambda g: autograd.grad(g.h.sum(), [g.x, g.p]), GradientError, "grad: input 1 does not require a gradient"),
    ("an untracked input of backward", lambda g: g.h.sum().backward(inputs=g.p), GradientError, "backward: input 0 does not require a gradient"),
    ("an unused input", lambda g: autograd.grad(g.h.sum(), [g.x, g.w]), GradientError, "grad: input 1 was not used to compute the outputs\n  to fix  allow_unused=True gives None for it, materialize_grads=True gives zeros"),
    ("zeros that are refused", lambda g: autograd.grad(g.h.sum(), g.w, allow_unused=False, materialize_grads=True), ArgumentError, "grad: materialize_grads=True gives zeros for unused inputs, which allow_unused=False refuses; omit one of them"),
    ("a constant formula", lambda g: (g.x // 2).sum().backward(), GradientError, "aten::floor_divide.Scalar: no gradient with respect to 'self' is implemented: it is constant almost everywhere\n  to fix  turnout.library.register_autograd('aten::floor_divide.Scalar', backward), or .detach() its inputs"),
    # what was saved and changed
    ("a saved input", lambda g: changed(g, lambda h: h.add_(1)), AliasError, CHANGED),
    ("through a view", lambda g: changed(g, lambda h: h[:1].add_(1)), AliasError, CHANGED),
    ("other elements of the memory", lambda g: (y := g.h[0] * g.h[0], g.h[2].mul_(5), y.backward()), AliasError, CHANGED.replace("[3]", "[]")),
    ("through detach", lambda g: changed(g, lambda h: h.detach().add_(1)), AliasError, CHANGED),
    ("under no_grad", lambda g: changed(g, turnout.no_grad()(lambda h: h.add_(1))), AliasError, CHANGED),
    ("a saved result", lambda g: (y := g.x.exp(), y.add_(1), y.sum().backward()), AliasError, CHANGED.replace("mul.Tensor", "exp").replace("'other'", "'result'")),
    ("a saved index", lambda g: (k := g.i - 1, y := g.x[k].sum(), k.zero_(), y.backward()), AliasError, CHANGED.replace("mul", "index").replace("'other', a tensor float64", "'indices[0]', a tensor int64")),
    ("of a Function", lambda g: (y := Square.apply(g.h), g.h.add_(1), y.sum().backward()), AliasError, CHANGED.replace("aten::mul.Tensor", "Square").replace("'other'", "'saved_tensors[0]'")),
    ("of a custom operator", lambda g: (y := turnout.ops.refusing.saves(g.h), g.h.add_(1), y.sum().backward()), AliasError, CHANGED.replace("aten::mul.Tensor", "refusing::saves").replace("'other'", "'saved_tensors[0]'")),
    # leaves
    ("a leaf", lambda g: g.x.add_(1), AliasError, LEAF.format("aten::add_.Scalar")),
    ("a view of a leaf", lambda g: g.x[:1].add_(1), AliasError, LEAF.format("aten::add_.Scalar").replace("a leaf", "a view of a leaf")),
    ("a view of what became a leaf", lambda g: (v := g.h[1:], g.h.detach_(), v.add_(1)), AliasError, LEAF.format("aten::add_.Scalar").replace("a leaf", "a view of a leaf")),
    ("one of several views", lambda g: g.h.split(2)[0].mul_(2), AliasError, "aten::mul_.Scalar: self is one of several views that aten::split.Tensor returned together; such a view cannot be changed in place\n  to fix  take one view at a time (select, slice), or write into a clone()"),
    ("one of several views whose base was written", lambda g: (v := g.p.unbind(0)[0], g.p.mul_(g.x), v * 1), AliasError, "a view that aten::unbind.int returned together with others was used after aten::mul.Tensor wrote into its base; its gradient cannot follow that write\n  to fix  write before the view is made, or clone() the view"),
    ("an output of tracked tensors", lambda g: turnout.add(g.x, g.p, out=g.ones(3)), GradientError, "aten::add.out: 'self' requires a gradient, and operators with out= do not record gradients\n  to fix  call it without out=, or under turnout.no_grad()"),
    ("a tracked tensor resized", lambda g: g.h.resize_((5,)), AliasError, "aten::resize_: a tensor that requires a gradient cannot be resized; use reshape(), or detach() it first"),
    ("whole numbers that should", lambda g: g.i.requires_grad_(), DTypeError, "only floating-point and complex tensors can require gradients, this one is int64"),
    ("a factory of whole numbers", lambda g: turnout.ones(3, dtype=turnout.int64, requires_grad=True), DTypeError, "only floating-point and complex tensors can require gradients, this one is int64"),
    ("a result that should not", lambda g: g.h.requires_grad_(False), AliasError, "requires_grad can be switched off on leaves only; use .detach() for a tensor without history"),
    ("a view detached in place", lambda g: g.h[:1].detach_(), AliasError, "detach_: a view cannot be detached in place because its base would keep the history; use detach()"),
    # .grad
    ("grad of a wrong shape", lambda g: setattr(g.x, "grad", g.ones(2)), ShapeError, "grad must have the tensor's shape, [3]; got [2]"),
    ("grad of a wrong dtype", lambda g: setattr(g.x, "grad", turnout.ones(3)), DTypeError, "grad must have the tensor's dtype, float64; got float32"),
    ("grad on another device", lambda g: setattr(g.x, "grad", g.ones(3, device="meta")), DeviceError, "grad must be on the tensor's device, cpu; got one on meta"),
    ("grad itself", lambda g: setattr(g.x, "grad", g.x), ArgumentError, "a tensor cannot be its own grad"),
    ("grad a number", lambda g: setattr(g.x, "grad", 3.0), CallError, "grad must be a tensor or None, not float"),
    # what a Function says and returns
    ("a number as requires_grad", lambda g: g.w.detach().requires_grad_(1), CallError, "requires_grad must be True or False, not int"),
    ("a number set as requires_grad", lambda g: setattr(g.w.detach(), "requires_grad", 1), CallError, "requires_grad must be True or False, not int"),
    ("an instance called", lambda g: type("Made", (autograd.Function,), {})()(g.x), GradientError, "Made: an instance was called; forward and backward are static methods, and Made.apply(...) calls them"),
    ("saves a number", lambda g: run(lambda ctx, x: ctx.save_for_backward(x, 3), g), CallError, "save_for_backward: argument 1 must be a tensor, got int"),
    ("marks a number", lambda g: run(lambda ctx, x: ctx.mark_non_differentiable(3), g), CallError, "mark_non_differentiable: argument 0 must be a tensor, got int"),
    ("marks a number dirty", lambda g: run(lambda ctx, x: ctx.mark_dirty(3), g), CallError, "mark_dirty: argument 0 must be a tensor, got int"),
    ("a flag that is none", lambda g: run(lambda ctx, x: ctx.set_materialize_grads(3), g), CallError, "set_materialize_grads: takes True or False, got int"),
    ("dirty and not returned", lambda g: run(lambda ctx, x: ctx.mark_dirty(x), g), GradientError, "Made: mark_dirty names a tensor that forward did not return"),
    ("complex gradient", lambda g: back(lambda ctx, d: d * 1j, g), DTypeError, "Made.backward returned a complex128 gradient for input 0, which is float64"),
    ("too few", lambda g: scaled(lambda ctx, d: d, g), GradientError, "Made.backward returned 1 gradients for 2 inputs of forward"),
    ("a gradient of a number", lambda g: scaled(lambda ctx, d: (d, d), g), GradientError, "Made.backward returned a gradient for input 1, which is not a tensor"),
    ("too many", lambda g: back(lambda ctx, d: (d, d), g), GradientError, "Made.backward returned 2 gradients for 1 inputs of forward"),
    ("none at all", lambda g: back(lambda ctx, d: (), g), GradientError, "Made.backward returned 0 gradients for 1 inputs of forward"),
    ("a wrong shape returned", lambda g: back(lambda ctx, d: d[:2], g), ShapeError, "Made.backward returned a gradient of shape [2] for input 0 of shape [3]"),
    ("a number returned", lambda g: back(lambda ctx, d: 3.0, g), GradientError, "Made.backward returned float for input 0; a tensor or None was expected"),
    ("no backward", lambda g: function(lambda ctx, x: x * 2).apply(g.x).sum().backward(), NotImplementedError, "a Function must define backward as a static method, or not be differentiated"),
    ("no forward", lambda g: type("Made", (autograd.Function,), {}).apply(g.x), NotImplementedError, "a Function must define forward as a static method"),
    ("both names", lambda g: function(lambda ctx, x: x * 2, lambda ctx, d: d, vjp=lambda ctx, d: d).apply(g.x).sum().backward(), GradientError, "Made: defines both backward and vjp, which are two names for one method; define one of them"),
    ("dirty view and more", lambda g: function(lambda ctx, x: (ctx.mark_dirty(x), (x.mul_(2), x * 3))[1], lambda ctx, d, e: d).apply(g.h[:2]), GradientError, "Made: mark_dirty names a view, but forward returned other outputs too; write into its base, or clone() it"),
    # what the rule of a custom operator returns
    ("rule: too few", lambda g: rule(lambda ctx, d: d, g), KernelResultError, "refusing::both: its gradient rule returned 1 value for 2 inputs"),
    ("rule: too many", lambda g: rule(lambda ctx, d: (d, [d, d], d), g), KernelResultError, "refusing::both: its gradient rule returned 3 values for 2 inputs"),
    ("rule: a short list", lambda g: rule(lambda ctx, d: (d, [d]), g), KernelResultError, "refusing::both: its gradient rule returned 1 values for ys, a list of 2"),
    ("rule: a wrong shape", lambda g: rule(lambda ctx, d: (d, [d, d[:2]]), g), ShapeError, "refusing::both.backward returned a gradient of shape [2] for 'ys[1]' of shape [3]"),
    ("rule: a number", lambda g: rule(lambda ctx, d: (3.0, None), g), GradientError, "refusing::both.backward returned float for 'x'; a tensor or None was expected"),
    # edges
    ("an edge without its tensor", lambda g: autograd.grad(autograd.graph.GradientEdge(g.h.grad_fn, 0), g.x), GradientError, "output 0 is a GradientEdge that does not know its tensor, so its gradient cannot be omitted\n  to fix  pass the gradient, or make the edge with get_gradient_edge(tensor)"),
    ("a wrong shape for an edge", lambda g: autograd.grad(edge(g.h), g.x, g.ones(2)), ShapeError, "gradient 0 has shape [2], output 0, made by aten::mul.Scalar, has shape [3]"),
    ("zeros like an edge", lambda g: autograd.grad(g.h.sum(), edge(g.h), materialize_grads=True), ArgumentError, "grad: materialize_grads=True makes zeros like a tensor, but input 0 is a GradientEdge; pass the tensor"),
    ("an edge of an untracked tensor", lambda g: edge(g.p), GradientError, "get_gradient_edge: the tensor does not require a gradient"),
    ("an edge inside vmap", lambda g: turnout.vmap(lambda r: edge(g.x * r) and r)(g.ones(2, 3)), GradientError, INSIDE),
    ("a gradient by an edge inside vmap", lambda g: turnout.vmap(lambda r: autograd.grad((g.x * r).sum(), edge(g.h))[0])(g.ones(2, 3)), GradientError, INSIDE),
    # nodes that are called
    ("a node with two gradients for one", lambda g: (g.x * g.x).grad_fn(g.p, g.p), TypeError, NODE + "Tensor, Tensor"),
    ("a node with no gradient", lambda g: (g.x * g.x).grad_fn(), TypeError, NODE + "nothing"),
    ("a node with a number", lambda g: (g.x * g.x).grad_fn(1.0), TypeError, NODE + "float"),
    # what hooks return
    ("a hook returns a number", lambda g: hooked(g, lambda d: 3), TypeError, "a hook must return a tensor or None, not int"),
    ("a hook returns another shape", lambda g: hooked(g, lambda d: d[:2]), GradientError, HOOK.format("float64 [2] on cpu")),
    ("a hook returns another dtype", lambda g: hooked(g, lambda d: d.to(turnout.float32)), GradientError, HOOK.format("float32 [3] on cpu")),
    ("a hook returns what is elsewhere", lambda g: hooked(g, lambda d: d.to("meta")), GradientError, HOOK.format("float64 [3] on meta")),
    ("a hook before a node returns a tensor", lambda g: before(g, lambda ins: ins[0]), TypeError, "aten::mul.Tensor: a hook of its node must return a tuple or None, not Tensor"),
    ("a hook before a node returns too many", lambda g: before(g, lambda ins: (*ins, *ins)), GradientError, "aten::mul.Tensor: a hook of its node returned 2 gradients for 1"),
    ("a hook before a node returns a number", lambda g: before(g, lambda ins: (1.0,)), TypeError, "a hook must return a tensor or None, not float"),
    ("a hook after a node returns too few", lambda g: after(g, lambda ins, outs: ins[:1]), GradientError, "aten::mul.Tensor: a hook of its node returned 1 gradients for 2"),
    ("a hook after a node returns what is not wanted", lambda g: (g.w.requires_grad_(False), after(g, lambda ins, outs: (ins[0], ins[0]))), GradientError, "a hook returned a tensor for a gradient that is None"),
    ("a hook inside vmap returns a number", lambda g: turnout.vmap(turnout.func.grad(lambda r: (y := r * 2, y.register_hook(lambda d: 3.0), y.sum())[2]))(g.ones(2, 3)), CallError, "a hook must return a tensor or None, not float"),
    # where hooks are registered
    ("a hook on an untracked tensor", lambda g: g.p.register_hook(print), GradientError, UNHOOKED),
    ("a hook after an untracked accumulation", lambda g: g.p.register_post_accumulate_grad_hook(print), GradientError, UNHOOKED),
    ("a hook after the accumulation of a result", lambda g: g.h.register_post_accumulate_grad_hook(print), GradientError, "register_post_accumulate_grad_hook: the tensor is not a leaf, and only leaves accumulate; use register_hook"),
    ("an untracked gradient that is retained", lambda g: g.p.retain_grad(), GradientError, "retain_grad: the tensor does not require a gradient"),
    ("a hook on an example", lambda g: turnout.vmap(lambda row: row.register_hook(print))(g.ones(2, 3)), GradientError, UNHOOKED),
    ("a hook on an untracked tensor among several", lambda g: autograd.graph.register_multi_grad_hook([g.x, g.p], print), GradientError, UNHOOKED),
    ("a hook on a number among several", lambda g: autograd.graph.register_multi_grad_hook([g.x, 1.0], print), TypeError, "register_multi_grad_hook: tensor 1 must be a tensor, not float"),
    ("a hook on several in another mode", lambda g: autograd.graph.register_multi_grad_hook([g.x], print, mode="some"), ArgumentError, "register_multi_grad_hook: mode must be 'all' or 'any', got 'some'"),
    # formulas of the declarations
    ("formula: a short list", lambda g: formula("joining", "cat_grad", lambda *_: [g.ones(3)], lambda: turnout.cat([g.x, g.w])), GradientError, "aten::cat: its formula for 'tensors' returned 1 gradients, 2 were expected"),
    ("formula: no list", lambda g: formula("joining", "cat_grad", lambda *_: g.ones(3), lambda: turnout.cat([g.x, g.w])), GradientError, "aten::cat: its formula for 'tensors' returned Tensor, 2 were expected"),
    ("formula: too many", lambda g: formula("scattering", "scatter_reduce_grad", lambda *_: (g.ones(3),) * 3, lambda: turnout.scatter_reduce(g.x, 0, g.i - 1, g.w, "sum")), GradientError, "aten::scatter_reduce.two: its formula for 'self, src' returned 3 gradients, 2 were expected"),
]
# fmt: on


def run(say, g):
    return function(lambda ctx, x: (say(ctx, x), x * 2)[1], lambda ctx, d: d).apply(g.h)


def back(backward, g):
    function(lambda ctx, x: x * 2, backward).apply(g.x).sum().backward()


def scaled(backward, g):
    function(lambda ctx, x, k: x * k, backward).apply(g.x, 1.0).sum().backward()


def hooked(g, hook):
    g.h.register_hook(hook)
    g.h.sum().backward()


def before(g, hook):
    y = g.x * g.w
    y.grad_fn.register_prehook(hook)
    y.sum().backward()


def after(g, hook):
    y = g.x * g.w
    y.grad_fn.register_hook(hook)
    y.sum().backward()


def edge(tensor):
    return autograd.graph.get_gradient_edge(tensor)


def rule(backward, g):
    with library.Library("refusing", "FRAGMENT") as group:
        library.register_autograd("refusing::both", backward, lib=group)
        turnout.ops.refusing.both(g.x, [g.h, g.w]).sum().backward()


def formula(family, name, wrong, call):
    """Backward of a call with one of the functions of formulas replaced in the generated module of a family."""
    from importlib import import_module

    module = import_module(f"turnout_autograd.generated.{family}")
    with pytest.MonkeyPatch.context() as patch:
        result = call().sum()
        patch.setattr(module, name, wrong)
        result.backward()


@pytest.fixture(autouse=True)
def operators():
    with library.Library("refusing", "DEF") as group:
        group.define("saves(Tensor x) -> Tensor")
        group.impl("saves", lambda x: x * x, "CompositeExplicitAutograd")
        library.register_autograd(
            "refusing::saves",
            lambda ctx, grad: grad * ctx.saved_tensors[0],
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
            lib=group,
        )
        group.define("both(Tensor x, Tensor[] ys) -> Tensor")
        group.impl("both", lambda x, ys: x * 1, "CompositeExplicitAutograd")
        yield


@pytest.mark.parametrize(("name", "program", "kind", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_bad_input_is_refused_with_this_text(g, name, program, kind, text):
    before = GRAD.get(), DISPATCH.get()
    found = refused(kind, program, g)
    assert (found.partition("\n")[0] if kind is KernelResultError else found) == text
    assert (GRAD.get(), DISPATCH.get()) == before
    accumulated = name.startswith(("twice", "grad, then"))
    assert accumulated or (g.x.grad, g.w.grad) == (None, None)
    assert (g.x.tolist(), g.w.tolist()) == ([1.0, 2.0, 3.0], [0.5, -1.0, 2.0])
    assert (g.x._version, g.w._version) == (0, 0)


def test_a_second_backward_may_go_where_nothing_was_saved_or_it_was_retained(g):
    for result in (g.x + g.w, g.x.sum(), g.x * 3):
        twice(result.sum())
    y = (g.x * g.w).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    autograd.grad(y, g.x)


def test_gradients_of_another_float_dtype_are_converted(g):
    g.h.backward(turnout.ones(3))
    (g.x * 2).backward(g.i)
    assert g.x.grad.tolist() == [4.0, 6.0, 8.0]
    assert g.x.grad.dtype is turnout.float64


def test_a_value_inside_vmap_is_not_tracked_by_hand():
    assert refused(turnout.errors.TurnoutError, lambda: turnout.vmap(lambda x: x.set_gmask(1))(turnout.ones(2))) == (
        "tracking gradients is not possible on a tensor inside vmap\n"
        "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
    )


def test_a_module_of_autograd_that_does_not_exist_is_an_attribute_error():
    assert refused(AttributeError, lambda: turnout.autograd.nothing) == "module 'turnout.autograd' has no attribute 'nothing'"
