"""Small programs on the rules of gradients, run by PyTorch and here: both answer the same, or both refuse, with the same class.

A program is a function of `autograd_rules.pieces.Given`: the library, `t`, and fresh tensors. `x` is a float64 leaf [3], `w`
another, `p` a plain tensor, `m` a leaf [2, 2], `i` whole numbers. What it returns is compared as nested lists.
"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from autograd_rules import TABLES  # noqa: E402
from autograd_rules.pieces import Given, plain  # noqa: E402

import turnout  # noqa: E402

REFUSED = "refused"


def outcome(program, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program(Given(library)))
        except Exception as error:  # noqa: BLE001 - any refusal
            kinds = [each.__name__ for each in type(error).__mro__ if each.__module__ == "builtins"]
            return REFUSED, kinds, str(error).splitlines()[0]
        finally:
            library.set_grad_enabled(True)


PROGRAMS = [pytest.param(p, id=f"{table}: {name}") for table, rows in TABLES.items() for name, p in rows.items()]


# differs from torch: what it answers there, and why not here.
DIFFERS = {
    "backward: too many seeds": "PyTorch drops those that are too many",
    "leaves: requires_grad_ the base of a view": "a view that nothing recorded does not become a leaf of its own",
    "leaves: retain_grad accumulates": "a product with a number saves no tensor, so nothing is freed",
    "modes: inference: view of a normal": "a view that nothing recorded requires no gradient",
    "modes: inference: a product of its own leaf": "refused; PyTorch drops the gradient without a word",
    "modes: inference: backward inside": ".grad is a normal tensor, so that the next backward can add to it",
    "hooks: unused output": "a hook is not called where no gradient arrives",
    "functions: output returned twice": "PyTorch gives the second one's gradient for both",
    "functions: what goes on from None": "where no gradient arrives nothing goes on, not even zeros",
    "functions: jvp not written": "backward gives it",
    "functions: vmap without a rule": "forward and backward see one example",
    "functions: vmap generated, old form": "both forms can be transformed",
    "functions: func.grad, old form": "both forms can be transformed",
    "functions: ctx is the node": "the node has slots, ctx takes any attribute",
}


# differs from torch: what is no tensor is a TypeError everywhere.
OTHER_KIND = {
    "backward: an output that is no tensor",
    "backward: grad an input that is no tensor",
    "functions: dirty a number",
    "leaves: requires_grad set to a number",
    "functions: non-differentiable a number",
}


def refused(answer):
    return isinstance(answer, tuple) and answer[0] == REFUSED


def agree(theirs, ours):
    """Whether both refused, or gave the same."""
    return refused(ours) if refused(theirs) else theirs == ours


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_answer_is_that_of_torch(program, request):
    theirs, ours = outcome(program, torch), outcome(program, turnout)
    name = request.node.callspec.id
    assert agree(theirs, ours) is not (name in DIFFERS), f"torch {theirs}\nhere  {ours}"
    if refused(theirs) and refused(ours):
        assert (theirs[1][0] in ours[1]) is not (name in OTHER_KIND), f"torch {theirs}\nhere  {ours}"


def test_what_differs_is_a_program():
    assert set(DIFFERS) | OTHER_KIND <= {param.id for param in PROGRAMS}
