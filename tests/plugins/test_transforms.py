"""The programs of nested transforms against plain loops: `vmap` is a loop and a stack there, gradients are imperative."""

# ruff: noqa: E501 - rows of tables

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused
from transform_errors import ERRORS
from transform_functionalities import WITH_OTHERS
from transform_libraries import Loops, Transforms
from transform_programs import PROGRAMS
from transform_tangents import TANGENTS
from turnout import autograd, func, state
from turnout.errors import TurnoutError
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, LEVELS


def numbers(value: Any) -> list[Any]:
    return [t.detach().numpy().copy() for t in trees.flatten(value)[0]]


def clean() -> bool:
    """Whether no transform left its state behind."""
    return LEVELS.get() == () and (*GRAD.get(),) == (1, 1) and (*state.DISPATCH.get(),) == DEFAULT


DEFAULT = (*state.DISPATCH.get(),)
# Here a gradient of an unbatched tensor inside no_grad is not a constant of the loop, or the loop cannot be imperative.
NO_LOOP = {
    "30 no_grad outside", "31 enable_grad inside a transform inside no_grad", "33 a gradient inside no_grad inside a gradient",
    "no_grad inside a tangent",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:transforms.*has no batching rule")  # a custom operator that has none on purpose
@pytest.mark.parametrize("name", [name for name in PROGRAMS | WITH_OTHERS | TANGENTS if name not in NO_LOOP])
def test_transforms_give_what_loops_give(name: str) -> None:
    program = (PROGRAMS | WITH_OTHERS | TANGENTS)[name]
    found = numbers(program(Transforms()))
    assert clean()
    expected = numbers(program(Loops()))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, strict=True)


# ---- programs that have no loop to compare with


def as_lists(value: Any) -> Any:
    return trees.map_leaves(lambda t: t.tolist(), value)


def test_no_grad_outside_a_transform_records_nothing_outside() -> None:
    g = PROGRAMS["30 no_grad outside"](Transforms())
    assert g.tolist() == [1.0, -4.0, 12.0]
    assert not g.requires_grad


def test_enable_grad_inside_a_transform_cannot_revive_what_is_outside() -> None:
    # constant * y with constant = x * x and y recorded: 2 x * x * x.
    assert PROGRAMS["31 enable_grad inside a transform inside no_grad"](Transforms()).tolist() == [2.0, 16.0, 54.0]


def test_what_a_pullback_made_inside_no_grad_gives_does_not_depend_on_its_primals() -> None:
    # In PyTorch it does, with a gradient that misses what was computed inside no_grad: here 4 x instead of 6 x.
    x, v = Transforms.tensor([1.0, 2.0]).requires_grad_(), Transforms.tensor(2.0).requires_grad_()
    with turnout.no_grad():
        y, pull = func.vjp(lambda a: (a * a * a).sum(), x)
    (g,) = pull(v)
    assert not y.requires_grad
    assert g.tolist() == [6.0, 24.0]
    assert autograd.grad(g.sum(), v)[0].tolist() == 15.0
    refused(autograd.GradientError, lambda: autograd.grad(pull(v)[0].sum(), x))


def test_a_transform_inside_no_grad_says_that_it_records() -> None:
    modes: list[bool] = []

    def function(x: turnout.Tensor) -> turnout.Tensor:
        modes.append(turnout.is_grad_enabled())
        with turnout.set_grad_enabled(turnout.is_grad_enabled()):
            y = x * x
        with turnout.no_grad():
            modes.append(turnout.is_grad_enabled())
        return y.sum()

    with turnout.no_grad():
        assert func.grad(function)(Transforms.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
        modes.append(turnout.is_grad_enabled())
    assert modes == [True, False, False]


@pytest.mark.parametrize("tracked", [False, True])
def test_inside_a_transform_its_arguments_are_leaves_and_what_is_made_of_them_is_not(tracked: bool) -> None:
    outer = Transforms.tensor([1.0, 2.0]).requires_grad_(tracked)
    seen: list[Any] = []

    def function(x: turnout.Tensor) -> turnout.Tensor:
        y = x.sin()
        for tensor in (x, y):
            name = None if tensor.grad_fn is None else tensor.grad_fn.name()
            seen.append((tensor.requires_grad, tensor.is_leaf, name, repr(tensor)))
        assert refused(turnout.errors.AliasError, copy.deepcopy, x) == (
            "deepcopy: only leaves can be copied with their gradient state; use .detach() first"
        )
        kept.append(y)
        return y.sum()

    kept: list[turnout.Tensor] = []
    func.grad(function)(outer)
    dtype = "dtype=turnout.float64"
    assert seen == [
        (True, True, None, f"tensor([1., 2.], {dtype}, requires_grad=True)"),
        (True, False, "SinBackward0", f"tensor([0.8415, 0.9093], {dtype}, grad_fn=<SinBackward0>)"),
    ]
    assert kept[0].requires_grad is tracked
    assert kept[0].is_leaf is not tracked
    assert (kept[0].grad_fn is None) is not tracked
    seen.clear()
    func.vmap(func.grad(lambda x: (seen.append((x.is_leaf, (x * 2).is_leaf)), x.sum())[1]))(turnout.stack([outer, outer]))
    func.grad(lambda x: func.grad(lambda a: (seen.append((a.is_leaf, (a * 2).is_leaf)), a.sum())[1])(x).sum())(outer)
    assert seen == [(True, False)] * 2


def test_a_gradient_taken_inside_no_grad_is_a_constant() -> None:
    assert PROGRAMS["33 a gradient inside no_grad inside a gradient"](Transforms()).tolist() == [3.0, 12.0, 27.0]


def test_gradients_are_tracked_as_what_they_come_from_is() -> None:
    x = Transforms.tensor([1.0, 2.0])
    assert not func.grad(lambda a: a.sin().sum())(x).requires_grad
    assert func.grad(lambda a: a.sin().sum())(x.requires_grad_()).requires_grad


def test_a_tensor_that_leaks_out_of_a_transform_is_not_tracked() -> None:
    kept: list[turnout.Tensor] = []
    func.grad(lambda x: (kept.append(x * 2), x.sum())[1])(Transforms.tensor([1.0, 2.0]))
    assert not kept[0].requires_grad
    assert not (kept[0] * 2).requires_grad


def test_the_function_runs_once_for_a_forward_jacobian() -> None:
    calls: list[int] = []

    def function(x: turnout.Tensor) -> turnout.Tensor:
        calls.append(1)
        return x.sin() * x.sum()

    func.jacfwd(function)(Transforms.tensor([1.0, 2.0, 3.0]))
    assert calls == [1]


SHARED = (
    "{0}: 'self' is not batched by this vmap, but the values to be written are: each example has a value of its own\n"
    "  to fix  write into a tensor made from a batched one, such as turnout.zeros_like(x) or x.new_zeros(...)"
)
INPUT = (
    "aten::mul_.Scalar: self is an input of a gradient transform, or a view of one; it cannot be changed in place\n"
    "  to fix  write into a clone()"
)
SAVED = (
    "aten::mul.Tensor: its saved 'other', a tensor float64 {0}, was changed in place after it was used\n"
    "  saved at version  0\n  now at version    1\n  to fix  write into a clone(), or change it after backward()"
)
NO_VALUE = (
    "{0}: inside vmap a tensor stands for all examples and has no value of its own, so Python cannot read or branch on it\n"
    "  to fix  use turnout.where for a choice, or do this outside of vmap"
)
ESCAPED = (
    "a tensor that was batched by vmap (level N) is used outside of it: after the mapped function returned, or in another "
    "thread\n  to fix  return it from the mapped function"
)
TEXTS = {
    "42 examples written into a shared tensor": SHARED.format("aten::copy_"),
    "42 inner examples written into an outer one": SHARED.format("aten::mul_.Tensor"),
    "43 an input of a gradient written into": INPUT,
    "43 a view of an input written into": INPUT,
    "43 a leaf written into by its examples": (
        "aten::mul_.Scalar: self is a view of a leaf that requires a gradient; it cannot be changed in place\n"
        "  to fix  write under turnout.no_grad(), or into a clone()"
    ),
    "44 a saved tensor written into, gradient": SAVED.format("[3]"),
    "44 a saved tensor written into, gradients of examples": SAVED.format("[2, 3]"),
    "44 a saved tensor written into, gradient of vmap": SAVED.format("[2, 3]"),
    "45 a captured tensor written before the pullback": SAVED.format("[3]"),
    "46 an expanded input written into": (
        "aten::mul_.Scalar: cannot write into an expanded tensor: several of its elements are one memory location; "
        "clone() it first"
    ),
    "47 a captured tensor written into, tracked": (
        "aten::copy_: self is older than the gradient transform whose values would be written into it\n"
        "  to fix  write into a tensor made inside the transformed function, and return it"
    ),
    "53 a Python number of an example": NO_VALUE.format("item()"),
    "53 a Python condition on an example": NO_VALUE.format("bool()"),
    "53 batches of different sizes": "vmap: the mapped dims have different lengths: argument [0] has 2, argument [1] has 3",
    "53 the gradient of something that is not one number": (
        "grad: the function must return one tensor without dimensions; it returned float64 [3]\n"
        "  to fix  return a sum, or use jacrev"
    ),
    "53 no out_dims for a batched result": "vmap: out_dims says None for the result, but its values differ between examples",
    "53 requires_grad_ of an example": (
        "requires_grad_() is not possible on a tensor inside vmap\n"
        "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
    ),
    "54 an example used after its vmap": ESCAPED,
    "54 an example used in the next vmap": ESCAPED,
    "54 an example used in another thread": ESCAPED,
    "55 random numbers that nobody asked for": (
        "aten::rand: inside vmap it must be known whether all examples share the random numbers\n"
        "  to fix  vmap(..., randomness='same') or randomness='different'"
    ),
    "55 random numbers that differ, for a shared tensor": (
        "aten::uniform_: self is not batched, so it cannot take different random numbers for each example\n"
        "  to fix  write into a batched tensor, or use randomness='same'"
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_right_is_a_clear_error(name: str) -> None:
    assert re.sub(r"level \d+", "level N", refused(TurnoutError, lambda: ERRORS[name](Transforms()))) == TEXTS[name]
    assert clean()


def test_a_pullback_is_refused_where_its_vmap_is_over() -> None:
    kept: list[Any] = []

    def function(x: turnout.Tensor) -> turnout.Tensor:
        y, pull = func.vjp(lambda a: a * 2, x)
        kept.append(pull)
        return y

    func.vmap(function)(Transforms.tensor([[1.0], [2.0]]))
    assert refused(autograd.GradientError, lambda: kept[0](Transforms.tensor([1.0]))) == (
        "vjp: the function that it returned was made inside a vmap and is called outside it\n"
        "  to fix  call it inside the mapped function"
    )


SUMMED = (
    "grad: inside vmap, outputs and inputs must be batched by the same vmaps: the gradient with respect to a tensor that all "
    "examples share would be summed over them\n"
    "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
)
BACKWARD = (
    "backward: it cannot run on tensors inside vmap, because all examples would share one .grad\n"
    "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"
)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, w: autograd.grad((x * w).sum(), w), SUMMED),
        (lambda x, w: autograd.grad((w * w).sum(), x), SUMMED),
        (lambda x, w: autograd.grad(w.sum() * 2, (w, x)), SUMMED),
        (lambda x, w: func.vmap(lambda y: autograd.grad((x * y).sum(), x)[0])(turnout.stack([w, w])), SUMMED),
        (lambda x, w: autograd.backward((x * w).sum()), BACKWARD),
        (lambda x, w: autograd.backward(w.sum(), inputs=x), BACKWARD),
        (lambda x, w: autograd.grad(x * w, x), "backward: the gradient can be omitted only for a tensor of one element; this one is float64 [2]"),
        (lambda x, w: x.register_post_accumulate_grad_hook(print), "register_post_accumulate_grad_hook: the tensor is not a leaf, and only leaves accumulate; use register_hook"),
        (lambda x, w: autograd.grad(x * w, x, (w, w)), "2 gradients were given for 1 outputs"),
    ],
)  # fmt: skip
def test_imperative_gradients_that_are_not_those_of_examples_are_refused(call: Any, text: str) -> None:
    w = Transforms.tensor([1.0, 2.0]).requires_grad_()
    m = Transforms.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
    assert refused(TurnoutError, lambda: func.vmap(lambda x: call(x, w))(m)).startswith(text)
    assert clean()


LEAF = (
    "requires_grad_: a running functional transform tracks this tensor, so it cannot become a leaf\n"
    "  to fix  use turnout.func.grad or vjp for gradients with respect to it, or .detach() it first"
)
NO_LEAF = (
    "backward: only a functional transform that is running tracks the tensor, so no leaf has a .grad to add to\n"
    "  to fix  use turnout.func.grad or vjp inside of the transformed function"
)
RETAINED = (
    "retain_grad: a functional transform that is running tracks this tensor, and its gradients are not stored in a .grad\n"
    "  to fix  read the gradient with register_hook, or differentiate with respect to the tensor"
)
TRANSFORMS = {
    "grad": lambda function, x: func.grad(function)(x),
    "vjp": func.vjp,
    "jacrev": lambda function, x: func.jacrev(function)(x),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x.requires_grad_(), LEAF),
        (lambda x: setattr(x, "requires_grad", True), LEAF),
        (lambda x: (x * 2).requires_grad_(), LEAF),
        (lambda x: setattr(x * 2, "requires_grad", True), "requires_grad can be set on leaves only; this tensor has a history, which decides"),
        (lambda x: (x * 2).retain_grad(), RETAINED),
        (lambda x: x.sum().backward(), NO_LEAF),
        (lambda x: x.sum().backward(inputs=[x]), NO_LEAF),
    ],
)  # fmt: skip
def test_what_is_for_leaves_is_refused_inside_of_gradients(transform: str, call: Any, text: str) -> None:
    assert (
        refused(TurnoutError, lambda: TRANSFORMS[transform](lambda x: (call(x), (x * x).sum())[1], Transforms.tensor([1.0, 2.0])))
        == text
    )
    assert clean()


def test_leaves_of_their_own_inside_of_gradients() -> None:
    def function(x: turnout.Tensor) -> turnout.Tensor:
        w = x.detach().requires_grad_()
        (w * w * 3).sum().backward()
        return (w.grad * x).sum()

    assert func.grad(function)(Transforms.tensor([1.0, 2.0])).tolist() == [6.0, 12.0]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2])
def test_what_leaked_out_of_a_transform_can_become_a_leaf(make: Any) -> None:
    kept: list[turnout.Tensor] = []
    func.grad(lambda x: (kept.append(make(x)), x.sum())[1])(Transforms.tensor([1.0, 2.0]))
    leaf = kept[0]
    leaf.requires_grad = True
    assert leaf.is_leaf
    (leaf * 3).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [3.0, 3.0]


class Point:
    """Coordinates, and a name that transforms hand on."""

    def __init__(self, at: Any, name: str) -> None:
        self.at, self.name = at, name


def test_classes_that_are_registered_as_nodes_are_arguments_and_results() -> None:
    undo = turnout.trees.register(Point, lambda p: ([p.at], p.name), lambda parts, name: Point(parts[0], name))
    try:
        m = Transforms.tensor([[1.0, 2.0], [3.0, 4.0]])
        found = func.vmap(func.grad(lambda p: (p.at**2).sum()))(Point(m, "here"))
        assert (found.at.tolist(), found.name) == ([[2.0, 4.0], [6.0, 8.0]], "here")
        made, pull = func.vjp(lambda p: Point(p.at * 3, p.name + "!"), Point(m, "here"))
        assert made.name == "here!"
        (found,) = pull(Point(m, "here!"))
        assert (found.at.tolist(), found.name) == ([[3.0, 6.0], [9.0, 12.0]], "here")
        assert refused(autograd.GradientError, lambda: pull(Point(m, "there"))) == (
            "vjp: the cotangents do not have the structure of the result"
        )
    finally:
        undo()


# ---- autocast


@pytest.mark.parametrize("around", [True, False])
def test_autocast_inside_and_outside_of_vmap_and_grad_gives_the_dtypes_of_the_loop(around: bool) -> None:
    w, m = turnout.rand(3, 3), turnout.rand(2, 3)
    dtypes: list[Any] = []

    def layer(x: turnout.Tensor) -> turnout.Tensor:
        y = w @ x
        dtypes.append(y.dtype)
        return y.to(turnout.float32).sum()

    def inside(x: turnout.Tensor) -> turnout.Tensor:
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            return layer(x)

    if around:
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            found, expected = func.vmap(func.grad(layer))(m), func.grad(layer)(m[0])
    else:
        found, expected = func.vmap(func.grad(inside))(m), func.grad(inside)(m[0])
    assert dtypes == [turnout.bfloat16, turnout.bfloat16]
    assert found.dtype is expected.dtype is turnout.float32
    np.testing.assert_array_equal(found[0].numpy(), expected.numpy())


def test_autocast_switched_off_inside_is_off() -> None:
    w, m = turnout.rand(3, 3), turnout.rand(2, 3)

    def off(x: turnout.Tensor) -> turnout.Tensor:
        with turnout.autocast("cpu", enabled=False):
            return w @ x

    with turnout.autocast("cpu", dtype=turnout.bfloat16):
        assert func.vmap(off)(m).dtype is turnout.float32
        assert func.vmap(lambda x: w @ x)(m).dtype is turnout.bfloat16
        assert func.vmap(lambda x: x @ x)(m).dtype is turnout.bfloat16


# ---- tensors that a vmap does not batch


def of_captured(c: turnout.Tensor) -> dict[str, tuple[Any, Any]]:
    """Functions of an example that differentiate by a captured tensor, and what they give for the rows of `M`."""
    rows = Transforms.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    def written(x: turnout.Tensor) -> turnout.Tensor:
        def function(y: turnout.Tensor) -> turnout.Tensor:
            return (turnout.ones(3, dtype=turnout.float64).mul_(y) ** 2 * x.sum()).sum()

        return func.grad(function)(c)

    return {
        "read": (lambda x: func.grad(lambda y: (y * y).sum())(c).sum().item() * x, 2 * c.sum() * rows),
        "written": (written, 2 * c * rows.sum(1, keepdim=True)),
        "met": (lambda x: func.grad(lambda y: (y * y * x).sum())(c), 2 * c * rows),
        "met late": (lambda x: func.grad(lambda y: ((y * y).sin() * x).sum())(c), 2 * c * (c * c).cos() * rows),
        "met by a view": (lambda x: func.grad(lambda y: (y[0] * y[1:] * x[1:]).sum())(c)[1:], c[0] * rows[:, 1:]),
        "in a product": (lambda x: func.grad(lambda y: (y @ x).sin())(c), (rows @ c).cos()[:, None] * rows),
        "in a list": (lambda x: func.grad(lambda y: (turnout.stack([y, x]) ** 2).prod(0).sum())(c), 2 * c * rows**2),
        "twice": (
            lambda x: func.grad(lambda y: (func.grad(lambda z: (z**3 * x).sum())(y) * y).sum())(c), 9 * c**2 * rows,
        ),
        "along a tangent": (lambda x: func.jvp(lambda y: y * y * x, (c,), (c,))[1], 2 * c * c * rows),
        "by rows": (lambda x: func.jacrev(lambda y: y * y * x)(c).sum(0), 2 * c * rows),
        "by columns": (lambda x: func.jacfwd(lambda y: y * y * x)(c).sum(0), 2 * c * rows),
    }  # fmt: skip


@pytest.mark.parametrize("name", of_captured(Transforms.zeros(3)))
def test_examples_have_gradients_of_their_own_by_what_they_share(name: str) -> None:
    c = Transforms.tensor([0.5, -1.0, 2.0])
    function, expected = of_captured(c)[name]
    rows = Transforms.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_allclose(func.vmap(function)(rows).numpy(), expected.numpy(), rtol=1e-12)
    assert clean()


def test_a_gradient_that_no_example_changes_is_not_batched() -> None:
    c = Transforms.tensor([1.0, 2.0, 3.0])
    found = func.vmap(lambda x: func.grad(lambda y: (y * y).sum())(c), out_dims=None)(turnout.ones(3, 2))
    assert found.tolist() == [2.0, 4.0, 6.0]


def test_levels_outside_of_a_vmap_sum_over_its_examples() -> None:
    rows = Transforms.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    c = Transforms.tensor([0.5, -1.0, 2.0])

    def total(w: turnout.Tensor) -> turnout.Tensor:
        return func.vmap(lambda x: func.grad(lambda y: (y * y * w * x).sum())(w).sum())(rows).sum()

    np.testing.assert_allclose(func.grad(total)(c).numpy(), (4 * c * rows.sum(0)).numpy(), rtol=1e-12)
    leaf = c.clone().requires_grad_()
    total(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), (4 * c * rows.sum(0)).numpy(), rtol=1e-12)
    leaf = c.clone().requires_grad_()
    turnout.trace(total)(c)(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), (4 * c * rows.sum(0)).numpy(), rtol=1e-12)


@pytest.mark.parametrize("part", [lambda y: y, lambda y: y[1:], lambda y: y.unsqueeze(0).t()])
@pytest.mark.parametrize(
    "given",
    [
        lambda f, y: func.vjp(f, y)[0],
        lambda f, y: func.jvp(f, (y,), (y * 0 + 1,))[0],
        lambda f, y: func.linearize(f, y)[0],
        lambda f, y: func.vjp(lambda y: (y.sum(), f(y)), y, has_aux=True)[2],
    ],
)
def test_what_a_transform_returns_as_it_was_given_follows_later_writes(part: Any, given: Any) -> None:
    def function(x: turnout.Tensor, made: Any) -> turnout.Tensor:
        y = x * 1
        result = made(part, y)
        y.sin_()
        return (result * result).sum()

    x = turnout.tensor([0.25, 1.0, -0.5], dtype=turnout.float64)
    expected = func.grad(lambda x: function(x, lambda f, y: f(y)))(x)
    assert func.grad(lambda x: function(x, given))(x).tolist() == expected.tolist()
    assert func.jvp(lambda x: function(x, given), (x,), (x,))[1].item() == pytest.approx((expected @ x).item())
