"""gradcheck itself: it runs every formula, and notices every way to break one.

A mutant is one formula changed, by its value or in its source. A change that no sample could show (a factor of 1.01 on a gradient
of zero) is not counted: whether it shows is measured beside the right formula, at the inputs of the call.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import pytest
from formulas import OWN_CALLS, Formula, Recorded, formulas, gradients_of_ones, reached, refusals
from source_mutants import SourceMutation, changes

import turnout
from turnout import autograd
from turnout_conformance.cases.differentiable import leaf, leaves

WHOLE = "takes whole numbers only, which have no gradient"
DRAWN = "the mean and the deviation of what is drawn count as constants, as in PyTorch, though the values follow them"
# Formulas that no check of differences can run.
UNREACHED = {
    "aten::bitwise_not_[0]": WHOLE, "aten::bitwise_and_.Tensor[0]": WHOLE, "aten::bitwise_and_.Scalar[0]": WHOLE,
    "aten::bitwise_or_.Tensor[0]": WHOLE, "aten::bitwise_or_.Scalar[0]": WHOLE, "aten::bitwise_xor_.Tensor[0]": WHOLE,
    "aten::bitwise_xor_.Scalar[0]": WHOLE, "aten::bitwise_left_shift_.Tensor[0]": WHOLE,
    "aten::bitwise_left_shift_.Tensor_Scalar[0]": WHOLE, "aten::bitwise_right_shift_.Tensor[0]": WHOLE,
    "aten::bitwise_right_shift_.Tensor_Scalar[0]": WHOLE, "aten::gcd_[0]": WHOLE, "aten::lcm_[0]": WHOLE,
    "aten::normal.Tensor_float[0]": DRAWN, "aten::normal.float_Tensor[0]": DRAWN, "aten::normal.Tensor_Tensor[0]": DRAWN,
    "aten::normal.Tensor_Tensor[1]": DRAWN,
}  # fmt: skip
# Formulas without a gradient that no call can ask: what stands there is never a floating tensor.
NEVER_ASKED = {"aten::native_dropout_backward[1]": "the mask is bool"}


def names(found: Any) -> set[str]:
    return {str(each) for each in found}


# ---- every formula is checked


def test_a_gradcheck_of_the_suite_runs_every_formula() -> None:
    assert len(reached()) > 400
    missing = names(f for f in formulas() if not f.refused) - names(reached())
    assert missing == set(UNREACHED)


def test_every_formula_that_refuses_says_so_with_the_operator_and_the_argument() -> None:
    found = refusals()
    assert names(f for f in formulas() if f.refused) - names(found) == set(NEVER_ASKED)
    for formula, text in found.items():
        assert text.startswith(f"{formula.node.op_name}: no gradient with respect to '"), text
        assert text.endswith(
            f"  to fix  turnout.library.register_autograd({formula.node.op_name!r}, backward), or .detach() its inputs"
        )


@pytest.mark.parametrize("number", range(len(OWN_CALLS)))
def test_calls_of_their_own_agree_with_differences(number: int) -> None:
    function, data = OWN_CALLS[number]
    assert autograd.gradcheck(function, [leaf(each, "float64") for each in data])


# ---- mutants of values

Gradient = Callable[[Any, Any], Any]
Change = Callable[[Any, Any, Any, Any], Any]  # of node, output gradients, edges and the right gradient


def amount(seed: Any) -> Any:
    """The sum of the output gradients."""
    return sum(each.sum() for each in (seed if isinstance(seed, list) else [seed]) if each is not None)


def half_of_one(found: Any, seed: Any) -> Any:
    mask = turnout.ones_like(found).reshape(-1)
    if mask.numel():
        mask[-1] = 0.5
    return found * mask.reshape(found.shape)


# Wrong in the first order, and how many formulas must show it at least; "shifted" shows everywhere.
FIRST: dict[str, tuple[int, Gradient]] = {
    "one percent more": (330, lambda found, seed: found * 1.01),
    "another sign": (330, lambda found, seed: -found),
    "zero": (330, lambda found, seed: found * 0),
    "shifted": (400, lambda found, seed: found + (amount(seed) * 0.01).real.to(found.dtype)),
    "conjugated": (10, lambda found, seed: found.conj() if found.is_complex() else found),
    "one element": (330, half_of_one),
    "only where it is zero": (
        300, lambda found, seed: found + turnout.where(found == 0, 0.01, 0.0).to(found.dtype) * amount(seed).abs()
    ),
    "transposed": (
        20, lambda found, seed: found.transpose(0, 1) if found.ndim > 1 and found.shape[0] == found.shape[1] else found
    ),
    "reversed": (150, lambda found, seed: found.flip(0) if found.ndim else found),
}  # fmt: skip


def grown(found: Any, seed: Any) -> Any:
    """Right, and with a derivative by the output gradient that is too large."""
    total = amount(seed).abs()
    return found * (1 + 0.1 * (total - total.detach()))


# Right in the first order, wrong in the second.
SECOND: dict[str, tuple[int, Gradient]] = {
    "without a history": (300, lambda found, seed: found.detach()),
    "too large in the second order": (300, grown),
}


class Mutant:
    """While entered, one formula is another; `changed` when that made a difference to what it gave."""

    def __init__(self, formula: Formula, change: Change) -> None:
        self.formula = formula
        self.change = change
        self.changed = False

    def __enter__(self) -> Mutant:
        node = self.formula.node
        self.right = inspect.getattr_static(node, "backward")

        def backward(recorded: Any, grad: Any, edges: Any) -> Any:
            found = self.right(recorded, grad, edges)
            at = self.formula.edge
            if edges[at] is None or (found if node.unary else found[at]) is None:
                return found
            theirs = found if node.unary else found[at]
            ours = self.change(recorded, grad, edges, theirs)
            self.changed = self.changed or ours is not theirs
            return ours if node.unary else (*found[:at], ours, *found[at + 1 :])

        node.backward = backward
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.formula.node.backward = self.right


def gradients(call: Recorded, order: int) -> list[float]:
    """The gradients of every result's every element; of the second order, those of their sum with growing weights."""
    found: list[float] = []
    given = call.given
    for end in leaves(call.function(*given)):
        for position in range(end.numel()):
            seed = turnout.zeros_like(end).reshape(-1)
            seed[position] = 1.0
            seed = seed.reshape(end.shape).requires_grad_()
            wanted = given
            grads = autograd.grad(end, given, seed, create_graph=order == 2, retain_graph=True, allow_unused=True)
            if order == 2:
                total, wanted = weighted(grads), [*given, seed]
                grads = autograd.grad(total, wanted, allow_unused=True) if total.requires_grad else [None] * len(wanted)
            for each, to in zip(grads, wanted, strict=True):
                each = turnout.zeros_like(to) if each is None else each
                found += turnout.view_as_real(each.detach() + 0j).reshape(-1).tolist()
    return found


@cache
def right_gradients(call: Recorded, order: int) -> list[float]:
    """Those of the right formulas, which every mutant is held beside."""
    return gradients(call, order)


def weighted(grads: Any) -> turnout.Tensor:
    total = turnout.zeros((), dtype=turnout.float64)
    for grad in grads:
        if grad is not None:
            total = total + (grad.reshape(-1) * turnout.arange(1.0, grad.numel() + 1)).sum().real
    return total


def is_noticed(formula: Formula, change: Change, order: int = 1, calls: Iterable[Recorded] | None = None) -> bool | None:
    """Whether gradcheck (or gradgradcheck) refuses the mutant at the first call where it shows; None where none shows it."""
    check = autograd.gradcheck if order == 1 else autograd.gradgradcheck
    for call in reached()[formula] if calls is None else calls:
        with Mutant(formula, change) as mutant:
            try:
                gradients_of_ones(call.function, call.given)
                if not mutant.changed:
                    continue
                if not check(call.function, call.given, raise_exception=False):
                    return True
                wrong = gradients(call, order)
            except Exception:  # noqa: BLE001 - a mutant may compute nonsense, and any refusal is one
                return True
        right = right_gradients(call, order)
        if any(abs(a - b) > 3e-5 + 3e-3 * abs(a) for a, b in zip(right, wrong, strict=True)):
            return False
    return None


def check_kind(kind: Gradient, at_least: int, order: int) -> None:
    """Of every formula the mutant of a kind is noticed, or does not show; of so many it must show."""
    verdicts = {f: is_noticed(f, lambda node, grad, edges, found: kind(found, grad), order) for f in reached()}
    assert names(f for f, noticed in verdicts.items() if noticed is False) == set()
    assert sum(noticed is not None for noticed in verdicts.values()) >= at_least


@pytest.mark.parametrize("kind", FIRST)
def test_every_formula_with_a_wrong_value_fails_gradcheck(kind: str) -> None:
    at_least, change = FIRST[kind]
    check_kind(change, at_least, 1)


@pytest.mark.parametrize("kind", SECOND)
def test_every_formula_that_is_right_only_in_the_first_order_fails_gradgradcheck(kind: str) -> None:
    at_least, change = SECOND[kind]
    check_kind(change, at_least, 2)


# ---- mutants of sources


class FormulaMutation(SourceMutation):
    """A change in the expression of a formula."""

    def changed(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, (ast.Add, ast.Sub)):
                yield node.left
                yield node.right
                yield ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
            if isinstance(node.op, (ast.Mult, ast.Div)):
                yield node.left
                yield ast.BinOp(node.left, ast.Div() if isinstance(node.op, ast.Mult) else ast.Mult(), node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield node.operand
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            yield ast.Constant(node.value + 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "conj":
            yield node.args[0]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OTHERS:
            yield ast.Call(ast.Attribute(node.func.value, _OTHERS[node.func.attr], ast.Load()), node.args, node.keywords)


_OTHERS = {"sin": "cos", "sinh": "cosh", "log": "exp"}
_OTHERS |= {other: name for name, other in _OTHERS.items()} | {"sqrt": "square", "tanh": "sinh"}


def source_mutants(formula: Formula) -> Iterator[tuple[str, Any]]:
    """What was changed in the formula, and `backward` with that change."""

    def change(function: ast.FunctionDef, number: int) -> str:
        for statement in formula.branch(function):
            is_formula = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).startswith("grad_")
            if is_formula and not ast.unparse(statement.value).startswith("fit("):
                mutation = FormulaMutation(number)
                statement.value = mutation.visit(statement.value)
                return mutation.done
        return ""

    return changes(formula.source(), vars(inspect.getmodule(formula.node)), change)


def in_source(formula: Formula, backward: Any) -> Change:
    """A mutant's `backward` as a change of its formula's value."""

    def change(node: Any, grad: Any, edges: Any, found: Any) -> Any:
        made = backward(node, grad, edges)
        return made if formula.node.unary else made[formula.edge]

    return change


def test_every_change_in_the_source_of_a_formula_fails_gradcheck() -> None:
    noticed, missed = set(), []
    for formula in reached():
        for what, backward in source_mutants(formula):
            verdict = is_noticed(formula, in_source(formula, backward))
            if verdict:
                noticed.add((str(formula), what))
            elif verdict is False:
                missed.append((str(formula), what))
    assert missed == []
    assert len(noticed) > 300
    assert len({name for name, _ in noticed}) > 100
