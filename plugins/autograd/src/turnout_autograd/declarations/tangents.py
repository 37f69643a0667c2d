"""What an entry says about tangents: `result: ...`, or the name of an output, and the checks that it may say so.

`entries` reads them beside the gradients. A claim (`auto_linear`, `auto_element_wise`) is checked against the gradients of the
same entry; an expression is a sum, each term of which belongs to the tangents that it reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnout_aten.declarations.tables import POINTWISE

if TYPE_CHECKING:
    from turnout_aten.declarations.model import NativeFunction
    from turnout_autograd.declarations.entries import Formula

LINEAR = "auto_linear"
ELEMENT_WISE = "auto_element_wise"
TANGENT, PRIMAL = "_t", "_p"


@dataclass(frozen=True)
class Tangent:
    """The tangent of one output, or of several at once."""

    outputs: tuple[str, ...]
    expression: str
    line: int

    @property
    def is_claim(self) -> bool:
        """Whether it is derived from the gradients."""
        return self.expression in (LINEAR, ELEMENT_WISE)


@dataclass(frozen=True)
class Term:
    """One summand: its sign, its expression, and the arguments whose tangents it reads."""

    negative: bool
    tree: ast.expr
    arguments: tuple[str, ...]

    @property
    def is_zero(self) -> bool:
        """Whether it is `zeros_like(x_t)`, which stands only where nothing else does."""
        return ast.unparse(self.tree) == f"zeros_like({''.join(self.arguments)}{TANGENT})"


def terms(expression: str, arguments: Sequence[str]) -> list[Term]:
    """The summands of an expression, with those of these arguments whose tangents each of them reads."""
    found: list[Term] = []

    def split(tree: ast.expr, negative: bool) -> None:
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
            split(tree.left, negative)
            split(tree.right, negative != isinstance(tree.op, ast.Sub))
            return
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        found.append(Term(negative, tree, tuple(a for a in arguments if a + TANGENT in names)))

    split(ast.parse(expression, mode="eval").body, False)
    return found


def problems_of_claim(tangent: Tangent, function: NativeFunction, formulas: Sequence[Formula]) -> Iterator[str]:
    """Why the tangent does not follow from the gradients as the claim says."""
    missing = [a for f in formulas if f.missing is not None for a in f.arguments]
    if missing and tangent.expression == LINEAR:
        yield f"{LINEAR}: there is no gradient with respect to {', '.join(missing)}"
    differentiable = {a for f in formulas for a in f.arguments}
    trees = [ast.parse(f.expression, mode="eval") for f in formulas if f.missing is None]
    if tangent.expression == LINEAR:
        values = differentiable | set(tangent.outputs)
        for formula, tree in zip(formulas, trees, strict=False):
            read = sorted(set(_values(tree)) & values)
            if read:
                yield f"{LINEAR}: not linear, for the gradient of {', '.join(formula.arguments)} reads {', '.join(read)}"
        return
    if POINTWISE not in function.tags or len(tangent.outputs) != 1:
        yield f"{ELEMENT_WISE}: the operator is not tagged {POINTWISE}"
    for tree in trees:
        for node in ast.walk(tree):
            if _turns(node):
                yield f"{ELEMENT_WISE}: '{ast.unparse(node)}' is not linear over complex numbers; write the tangent"
            elif isinstance(node, ast.Name) and node.id in ("grads", "grad_input_mask"):
                yield f"{ELEMENT_WISE}: a gradient reads {node.id}"


def problems_of_terms(
    tangent: Tangent, formulas: Sequence[Formula], functions: frozenset[str], known: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with an expression. `functions` may be given absent tangents; `known` are the names and their kinds."""
    tree = ast.parse(tangent.expression, mode="eval")
    wanted = [a for f in formulas if f.missing is None for a in f.arguments]
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for argument in wanted:
        if argument + TANGENT not in read:
            yield f"the tangent of {', '.join(tangent.outputs)} does not read {argument}{TANGENT}"
    for name in sorted(read & set(wanted)):
        if known.get(name) != "output":
            yield f"'{name}': write {name}{PRIMAL} for the value of {name}, {name}{TANGENT} for its tangent"
    for term in terms(tangent.expression, wanted):
        text = ast.unparse(term.tree)
        if not term.arguments:
            yield f"the term '{text}' reads no tangent"
        if len(term.arguments) > 1 and not _passes(term, functions):
            yield f"the term '{text}' reads several tangents, any of which may be None: pass them to a function of `tangents`"


def _passes(term: Term, functions: frozenset[str]) -> bool:
    call = term.tree
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in functions:
        return False
    whole = {a.id for a in call.args if isinstance(a, ast.Name)}
    return all(name + TANGENT in whole for name in term.arguments)


# What a formula may ask of an argument without its values: the type of the argument, and how it is read from it.
PROPERTIES = {
    "shape": ("Tensor", "{0}.array.shape"),
    "dtype": ("Tensor", "{0}.dtype"),
    "device": ("Tensor", "{0}.device"),
    "geometry": ("Tensor", "({0}.array.shape, {0}.stride(), {0}.storage_offset())"),
    "shapes": ("Tensor[]", "[t.array.shape for t in {0}]"),
}


def _values(tree: ast.AST) -> Iterator[str]:
    """The names whose values an expression reads: not those of which it asks the shape, dtype, device or layout."""
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name) and tree.attr in PROPERTIES:
        return
    if isinstance(tree, ast.Name):
        yield tree.id
    for child in ast.iter_child_nodes(tree):
        yield from _values(child)


def _turns(node: ast.AST) -> bool:
    """`conj(grad)`, or a real or imaginary part."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("real", "imag")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("conj", "real", "imag"):
        return any(isinstance(a, ast.Name) and a.id == "grad" for a in node.args)
    return False
