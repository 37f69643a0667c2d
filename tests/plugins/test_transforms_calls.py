"""The functional transforms with all kinds of arguments: which calls are refused, and in which words.

What the others give is compared with PyTorch in `tests/oracle/test_transforms_calls_torch.py`.
"""

# ruff: noqa: E501 - rows of tables

from __future__ import annotations

import numpy as np
import pytest

import turnout
from outcomes import refused
from transform_calls import CALLS, OLD_CALLS, Library
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, LEVELS

NESTED = "must be a tensor, or nested tuples, lists and dicts of tensors; got"
AUX = "with has_aux=True the function must return a tuple of two values: the one to differentiate, and any other"
NUMBERS = "must be floating-point or complex to be differentiated; got int64"
TWO_WAYS = (
    "is complex (complex128 [2]), so its derivative is not unique\n"
    "  to fix  differentiate a function between real tensors, with view_as_complex and view_as_real inside it"
)
STRICT = "with strict=True"
ONE = "the function must return one tensor without dimensions; it returned"
SUM = "\n  to fix  return a sum, or use jacrev"
ELEMENT = "the function must return a tensor of one element, not in a tuple; it returned float64"

# fmt: off
TEXTS = {
    "argnums too large": "grad: argnums is 2, but there are 2 positional arguments",
    "argnums too small": "grad: argnums is -3, but there are 2 positional arguments",
    "argnums twice": "grad: argnums names an argument twice: (0, 0)",
    "argnums twice, from both ends": "jacrev: argnums names an argument twice: (0, -2)",
    "argnums none": "grad: argnums must be an int or a tuple of at least one int, got ()",
    "argnums no number": "jacfwd: argnums must be an int or a tuple of at least one int, got 1.0",
    "argnums a name": "hessian: argnums must be an int or a tuple of at least one int, got 'a'",
    "keyword arguments alone": "grad: argnums is 0, but there are 0 positional arguments",
    "no arguments": "grad: argnums is 0, but there are 0 positional arguments",
    "a number": f"grad: an argument {NESTED} float",
    "a number beside a tensor": f"grad: an argument {NESTED} int",
    "None beside a tensor": f"vjp: an argument {NESTED} NoneType",
    "integers for grad": f"grad: an argument {NUMBERS} [2]",
    "integers for vjp": f"vjp: an argument {NUMBERS} [2]",
    "integers for jvp": f"jvp: an argument {NUMBERS} [2]",
    "integers for jvp, beside floats": f"jvp: an argument {NUMBERS} [2]",
    "integers for jacrev": f"jacrev: an argument {NUMBERS} [2]",
    "integers for jacfwd": f"jacfwd: an argument {NUMBERS} [2]",
    "complex numbers for jacrev": f"jacrev: an argument {TWO_WAYS}",
    "complex numbers for hessian": f"hessian: an argument {TWO_WAYS}",
    "complex results for jacrev": f"jacrev: a result {TWO_WAYS}",
    "complex results for jacfwd": f"jacfwd: a result {TWO_WAYS}",
    "grad of a number": f"grad: a result {NESTED} float",
    "grad of one element": f"grad: {ONE} float64 [1]{SUM}",
    "grad of a tuple": f"grad: {ONE} 1 tensors in a tuple, list or dict{SUM}",
    "grad of a complex number": "grad: the function must return a floating-point number; it returned complex128 []",
    "grad of a whole number": "grad: the function must return a floating-point number; it returned int64 []",
    "aux that is missing": f"grad: {AUX}",
    "aux in a list": f"grad: {AUX}",
    "aux twice": f"vjp: {AUX}",
    "aux missing for jvp": f"jvp: {AUX}",
    "aux missing for jacfwd": f"jacfwd: {AUX}",
    "pullback of a dict in another order": "vjp: the cotangents do not have the structure of the result",
    "pullback of a named tuple, of a tuple": "vjp: the cotangents do not have the structure of the result",
    "pullback of a list, of a tuple": "vjp: the cotangents do not have the structure of the result",
    "pullback of nothing": "vjp: the function returned no tensor",
    "pullback of None": f"vjp: a result {NESTED} NoneType",
    "pullback of a number": f"vjp: a result {NESTED} float",
    "pullback of integers": f"vjp: a result {NUMBERS} []",
    "pullback of two with one": "vjp: the cotangents do not have the structure of the result",
    "pullback with a wrong shape": "vjp: cotangent 0 has shape [1]; it belongs to a tensor float64 [2]",
    "pullback with complex numbers": "vjp: cotangent 0 is complex128; it belongs to a real tensor, float64 [2]",
    "pullback with None": f"vjp: a cotangent {NESTED} NoneType",
    "pullback with numbers": f"vjp: a cotangent {NESTED} float",
    "tangents in another order": "jvp: the tangents do not have the structure of the arguments",
    "tangents of a constant, strictly": f"jvp: {STRICT} every result must depend on the primals; one does not",
    "tangents of nothing returned": "jvp: the function returned no tensor",
    "tangents that do not fit, before the function runs": "jvp: the tangents do not have the structure of the arguments",
    "tangents that are no tuple": "jvp: primals and tangents must be tuples",
    "tangents that are missing": "jvp: primals and tangents must be tuples",
    "tangents of nothing": "jvp: primals contain no tensor",
    "tangents that are too many": "jvp: the tangents do not have the structure of the arguments",
    "tangents of a wrong shape": "jvp: tangent 0 has shape [1]; it belongs to a tensor float64 [2]",
    "tangents of a number": f"jvp: a result {NESTED} float",
    "linearized with a wrong shape": "linearize: tangent 0 has shape [1]; it belongs to a tensor float64 [2]",
    "linearized with too many": "linearize: the tangents do not have the structure of the arguments",
    "rows two at a time, whose backward reads values": "item(): inside vmap a tensor stands for all examples and has no value of its own, so Python cannot read or branch on it\n  to fix  use turnout.where for a choice, or do this outside of vmap",
    "rows none at a time, not called": "jacrev: chunk_size must be an integer above 0, or None, got 0",
    "rows none at a time": "jacrev: chunk_size must be an integer above 0, or None, got 0",
    "rows a negative number at a time": "jacrev: chunk_size must be an integer above 0, or None, got -1",
    "Jacobian of integers": f"jacrev: a result {NUMBERS} []",
    "Jacobian of nothing returned": "jacrev: the function returned no tensor",
    "Jacobian of nothing returned, by columns": "jacfwd: the function returned no tensor",
    "Jacobian of None": f"jacrev: a result {NESTED} NoneType",
    "Jacobian of a number": f"jacfwd: a result {NESTED} float",
    "randomness of an unknown kind": "vmap: randomness must be 'error', 'same' or 'different', got 'some'",
}
OLD_TEXTS = {
    "jacobian by a list": "jacobian: inputs must be a tensor or a tuple of tensors, got list",
    "jacobian of a list": "jacobian: the results of the function must be a tensor or a tuple of tensors, got list",
    "jacobian by a number": "jacobian: inputs must be a tensor or a tuple of tensors, got float",
    "jacobian by integers": f"jacobian: an argument {NUMBERS} [2]",
    "jacobian of complex numbers": f"jacobian: a result {TWO_WAYS}",
    "jacobian of a constant, strictly": f"jacobian: {STRICT} every result must depend on the inputs, but result 0 does not",
    "jacobian of a part, strictly": f"jacobian: {STRICT} the results must depend on every input, but one does not depend on input 1",
    "jacobian of a linear function, strictly": f"jacobian: {STRICT} and create_graph=True the derivatives must depend on the inputs, but that of input 0 does not",
    "jacobian strictly and at once": "jacobian: strict=True and vectorize=True do not go together",
    "jacobian by columns, one by one": "jacobian: strategy='forward-mode' and vectorize=False do not go together",
    "jacobian by columns, recorded": "jacobian: strategy='forward-mode' and create_graph=True do not go together",
    "hessian by complex numbers": f"hessian: a result {TWO_WAYS}",
    "hessian of several elements": f"hessian: {ELEMENT} [2]",
    "hessian of a tuple": f"hessian: {ELEMENT} []",
    "hessian of a linear function, strictly": f"hessian: {STRICT} the gradients must depend on the inputs, but that of input 0 does not: the function is linear in it",
    "hessian of separate parts, strictly": f"hessian: {STRICT} the results must depend on every input, but one does not depend on input 1",
    "hessian by an unknown strategy": "hessian: the strategy must be 'reverse-mode' or 'forward-mode', got 'x'",
    "vjp without v": "vjp: 'v' can be omitted only where the function returns one tensor of one element",
    "vjp with v of a wrong shape": "vjp: tensor 0 of 'v' has shape [1]; it belongs to a tensor float64 [2]",
    "vjp with complex v": "vjp: tensor 0 of 'v' is complex128; it belongs to a real tensor, float64 [2]",
    "vjp with two v": "vjp: 'v' has 2 tensors; expected 1",
    "vjp with a list": "vjp: v must be a tensor or a tuple of tensors, got list",
    "vjp of a part, strictly": f"vjp: {STRICT} the results must depend on every input, but one does not depend on input 1",
    "jvp of a constant, strictly": f"jvp: {STRICT} every result must depend on the inputs, but result 0 does not",
    "jvp of a part, strictly": f"jvp: {STRICT} the results must depend on every input, but one does not depend on input 1",
    "jvp of a linear function, strictly": f"jvp: {STRICT} and create_graph=True the derivatives must depend on the inputs, but that of input 0 does not",
    "jvp without v": "jvp: 'v' can be omitted only where it takes one tensor of one element",
    "vhp of a linear function, strictly": f"vhp: {STRICT} the gradients must depend on the inputs, but that of input 1 does not: the function is linear in it",
    "hvp of several elements": f"hvp: {ELEMENT} [2]",
    "vhp without v": "vhp: 'v' can be omitted only where it takes one tensor of one element",
}
# fmt: on


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_a_transform_gives_finite_numbers_or_says_why_not(name: str) -> None:
    check(CALLS[name], TEXTS.get(name))


@pytest.mark.parametrize("name", OLD_CALLS)
def test_a_call_of_autograd_functional_gives_finite_numbers_or_says_why_not(name: str) -> None:
    check(OLD_CALLS[name], OLD_TEXTS.get(name))


def check(call, text):
    if text is None:
        for value in trees.flatten(call(Library(turnout)))[0]:
            assert not isinstance(value, turnout.Tensor) or np.isfinite(value.detach().numpy()).all()
    else:
        assert refused(turnout.errors.TurnoutError, lambda: call(Library(turnout))) == text
    assert LEVELS.get() == ()
    assert (*GRAD.get(),) == (1, 1)


def test_the_tables_of_texts_name_calls() -> None:
    assert TEXTS.keys() <= CALLS.keys()
    assert OLD_TEXTS.keys() <= OLD_CALLS.keys()


# ---- what autograd.functional gives, in numbers

X, Y = turnout.tensor([1.0, 2.0], dtype=turnout.float64), turnout.tensor([3.0, 4.0], dtype=turnout.float64)


def cubes(a):
    return (a**3).sum()


def test_jacobians_and_hessians_of_a_cube():
    functional = turnout.autograd.functional
    for options in ({}, {"vectorize": True}, {"strict": True}, {"create_graph": True}):
        assert functional.jacobian(lambda a: a**3, X, **options).tolist() == [[3.0, 0.0], [0.0, 12.0]]
        assert functional.hessian(cubes, X, **options).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    forward = functional.jacobian(lambda a: a**3, X, vectorize=True, strategy="forward-mode")
    assert forward.tolist() == [[3.0, 0.0], [0.0, 12.0]]


def test_products_with_jacobians_and_hessians_of_a_cube():
    functional = turnout.autograd.functional
    found = functional.vjp(lambda a: a**3, X, Y), functional.jvp(lambda a: a**3, X, Y)
    assert [[t.tolist() for t in each] for each in found] == [[[1.0, 8.0], [9.0, 48.0]]] * 2
    found = functional.vhp(cubes, X, Y), functional.hvp(cubes, X, Y)
    assert [[t.tolist() for t in each] for each in found] == [[9.0, [18.0, 48.0]]] * 2


def test_only_with_create_graph_do_results_belong_to_a_graph():
    functional = turnout.autograd.functional
    x, w = X.clone().requires_grad_(), Y.clone().requires_grad_()
    plain = functional.vjp(lambda a: (a * a * w).sum(), x)
    assert [t.requires_grad for t in plain] == [False, False]
    value, gradient = functional.vjp(lambda a: (a * a * w).sum(), x, create_graph=True)
    assert value.requires_grad
    found = turnout.autograd.grad(gradient.sum(), (x, w))
    assert [t.tolist() for t in found] == [[6.0, 8.0], [2.0, 4.0]]


# differs from torch: there they are refused inside of a transform.
@pytest.mark.parametrize(
    ("name", "arguments"), [("jacobian", ()), ("hessian", ()), ("vjp", ()), ("jvp", (Y,)), ("vhp", (Y,)), ("hvp", (Y,))]
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_transform_around_differentiates_them_with_and_without_a_graph(name, arguments, create_graph):
    functional = turnout.autograd.functional

    def total(a):
        made = getattr(functional, name)(lambda b: (b**4).sum(), a, *arguments, create_graph=create_graph)
        return (made[1] if isinstance(made, tuple) else made).sum()

    # Of b**4: the gradient 4 b**3, the derivative along Y, the Hessian, and its product with Y.
    powers = {"jacobian": (4, 3), "vjp": (4, 3), "jvp": (4, 3), "hessian": (12, 2), "vhp": (12, 2), "hvp": (12, 2)}
    factor, power = powers[name]
    expected = factor * power * X ** (power - 1) * (Y if arguments else 1)
    found = turnout.func.grad(total)(X)
    assert found.tolist() == expected.tolist()
    assert not found.requires_grad
    rows = turnout.func.vmap(turnout.func.grad(total))(turnout.stack([X, X]))
    assert rows.tolist() == [expected.tolist()] * 2


def test_a_function_that_raises_leaves_the_gradient_mode_as_it_was():
    def fails(a):
        raise KeyError("function")

    for call in (turnout.autograd.functional.jacobian, turnout.autograd.functional.hessian, turnout.autograd.functional.hvp):
        arguments = (fails, X, Y) if call is turnout.autograd.functional.hvp else (fails, X)
        refused(KeyError, call, *arguments)
        assert (*GRAD.get(),) == (1, 1)
