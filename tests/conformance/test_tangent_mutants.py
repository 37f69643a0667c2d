"""The tests of tangent rules themselves: rules changed in their source, each of which must differ from what gradients imply."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any

from source_mutants import SourceMutation, changes
from tangent_samples import CASES, Sample, by_pullbacks, by_rule, rule_of, same, samples, without_phases

from turnout_conformance.comparing import find


class RuleMutation(SourceMutation):
    """A change in the source of a rule, whose arguments are `names`."""

    def __init__(self, number: int, names: list[str], is_complex: bool) -> None:
        super().__init__(number)
        self.names = names
        self.is_complex = is_complex

    def changed(self, node: ast.AST) -> Iterator[ast.AST]:
        """Another sign, a missing part, another operand, another operator."""
        text = ast.unparse(node)
        if isinstance(node, ast.IfExp) and text.endswith("is not None else None") and not text.startswith("aten.zeros_like"):
            yield ast.IfExp(node.test, ast.UnaryOp(ast.USub(), node.body), node.orelse)
            yield ast.IfExp(node.test, ast.BinOp(node.body, ast.Mult(), ast.Constant(0)), node.orelse)
        if isinstance(node, ast.BinOp):
            others = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
            for old, new in others.items():
                if isinstance(node.op, old):
                    yield ast.BinOp(node.left, new(), node.right)
            yield node.left
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "conj" and self.is_complex:
            yield node.args[0]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.names:
            at = self.names.index(node.id)
            yield ast.Name(self.names[at - 1], ast.Load())


def mutants(compute: Any, is_complex: bool) -> Iterator[tuple[str, Any]]:
    """What was changed, and the rule with that change; a missing conjugate where complex numbers can show it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(compute))).body
    assert isinstance(tree, ast.FunctionDef)
    arguments = [a.arg for a in tree.args.args[2:] if any(f"{a.arg}_t" in ast.unparse(s) for s in tree.body)]
    names = arguments if len(arguments) > 1 else []

    def change(function: ast.FunctionDef, number: int) -> str:
        mutation = RuleMutation(number, names, is_complex)
        unpacking = sum(isinstance(s, ast.Assign) and ast.unparse(s.value) in ("tangents", "result") for s in function.body)
        function.body[unpacking:] = [mutation.visit(s) for s in function.body[unpacking:]]
        return mutation.done

    return changes(tree, compute.__globals__, change)


def is_noticed(op: str, compute: Any) -> bool:
    """Whether the test of the rule fails with another one."""
    for sample, given, expected in judged(op):
        sample.rule.compute = compute
        try:
            same(without_phases(sample, by_rule(sample, given)), expected)
        except Exception:  # noqa: BLE001 - a mutant may compute nonsense, and any refusal is one
            return True
    return False


@cache
def judged(op: str) -> list[tuple[Sample, list[Any], list[Any]]]:
    """What the test compares, of every case of an operator."""
    found = [sample for case in CASES if case.op == op for sample in samples(case)]
    return [(s, each, without_phases(s, by_pullbacks(s, each))) for s in found for each in s.combinations()]


SHAPE = "only its shape is read"
KIND = "only whether it is bool, or whether it has a tangent, is read"
MASKED = "differs only where a logarithm is masked because it is not finite"
# Operands whose change changes nothing.
EQUIVALENT = {
    ("pow.Tensor_Tensor", "exponent -> self"): KIND,
    ("float_power.Tensor_Tensor", "exponent -> self"): KIND,
    ("where.self", "self -> condition"): SHAPE,
    ("where.self", "other -> self"): SHAPE,
    ("xlogy.Tensor", "self -> other"): MASKED,
    ("xlogy.Tensor", "other -> self"): MASKED,
    ("special_xlog1py", "self -> other"): MASKED,
    ("special_xlog1py", "other -> self"): MASKED,
    ("binary_cross_entropy", "target -> self"): "the slope by the target does not depend on the target",
    ("binary_cross_entropy_with_logits", "target -> self"): "the slope by the target does not depend on the target",
    ("_linalg_solve_ex", "A -> B"): SHAPE,
    ("_linalg_solve_ex", "B -> A"): SHAPE,
    ("mse_loss_backward", "target -> self"): SHAPE,
}


def test_every_change_in_the_source_of_a_rule_is_noticed() -> None:
    noticed, missed = 0, set()
    for op in {case.op for case in CASES}:
        is_complex = any(t.is_complex() for sample, _, _ in judged(op) for t in sample.inputs)
        for what, compute in mutants(rule_of(find(op)).compute, is_complex):
            if is_noticed(op, compute):
                noticed += 1
            else:
                missed.add((op, what))
    assert missed == EQUIVALENT.keys()
    assert noticed > 1000
