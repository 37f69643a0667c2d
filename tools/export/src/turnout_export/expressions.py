"""Sizes and guards that are written as text, read into the formulas of the tracer. The text is parsed and looked at, never run.

Sizes are written as SymPy shows them: `Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))`. Guards are
written in Python: `(L['x'].size()[0] % 2) == 0`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import Any

from turnout_aten.files import Damaged
from turnout_aten.plain_data import shown
from turnout_aten.tensor.size import NEGATIONS

Tree = Any  # a name, a number, or (sign, left, right), as in `turnout_tracer.sizes`
Comparison = tuple[Tree, str, Tree]

LONGEST = 4000  # characters of a text; a long one takes Python's parser to its limits

SIGNS: dict[type, str] = {ast.Add: "+", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/"}
COMPARISONS: dict[type, str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=",
}  # fmt: skip
_FUNCTIONS = {
    "Add": "+", "Mul": "*", "FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%", "Max": "max", "Min": "min",
    "max": "max", "min": "min", "IntTrueDiv": "/", "FloatTrueDiv": "/",
}  # fmt: skip
_RELATIONS = {
    "Equality": "==", "Eq": "==", "Unequality": "!=", "Ne": "!=", "GreaterThan": ">=", "Ge": ">=", "StrictGreaterThan": ">",
    "Gt": ">", "LessThan": "<=", "Le": "<=", "StrictLessThan": "<", "Lt": "<",
}  # fmt: skip
_HIGHEST = 64  # power that is written as a product


class Unknown(Exception):
    """A text that says something which a formula cannot."""


def size(text: Any) -> Tree:
    """The formula of a size. Raises Unknown, and Damaged for what is no expression."""
    return _tree(_parsed(text), _no_name)


def guard(text: Any, name_of: Callable[[str, int], Tree]) -> Comparison:
    """What a guard says of the inputs. `name_of("L['x']", 0)` is the formula of a dim of an input."""
    node = _parsed(text)
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    if negated:
        node = node.operand  # type: ignore[attr-defined]
    sign, left, right = _relation(node)
    if negated:
        sign = NEGATIONS[sign]
    return _tree(left, name_of), sign, _tree(right, name_of)


def _relation(node: ast.AST) -> tuple[str, ast.AST, ast.AST]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sign = COMPARISONS.get(type(node.ops[0]))
        if sign is not None:
            return sign, node.left, node.comparators[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        sign = _RELATIONS.get(node.func.id)
        if sign is not None:
            return sign, node.args[0], node.args[1]
    raise Unknown


def _parsed(text: Any) -> ast.AST:
    if not isinstance(text, str) or len(text) > LONGEST:
        raise Damaged(f"{shown(text)} is not an expression of at most {LONGEST} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Damaged(f"{shown(text)} is not an expression") from None


def _tree(node: ast.AST, name_of: Callable[[str, int], Tree]) -> Tree:
    try:
        return _built(node, name_of)
    except RecursionError:
        raise Damaged("an expression is nested too deep") from None


def _built(node: ast.AST, name_of: Callable[[str, int], Tree]) -> Tree:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _built(node.operand, name_of)
        return -inner if type(inner) is int else ("*", inner, -1)
    if isinstance(node, ast.BinOp):
        left, right = _built(node.left, name_of), _built(node.right, name_of)
        if isinstance(node.op, ast.Sub):
            return ("+", left, -right if type(right) is int else ("*", right, -1))
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        sign = SIGNS.get(type(node.op))
        if sign is not None:
            return (sign, left, right)
    if isinstance(node, ast.Subscript):
        return _dim(node, name_of)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _called(node.func.id, node.args, name_of)
    raise Unknown


def _called(name: str, given: list[ast.expr], name_of: Callable[[str, int], Tree]) -> Tree:
    if name == "Symbol" and given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
        return given[0].value
    if name == "Integer" and len(given) == 1:
        return _built(given[0], name_of)
    arguments = [_built(each, name_of) for each in given]
    if name in ("Pow", "PowByNatural") and len(arguments) == 2:
        return _power(*arguments)
    sign = _FUNCTIONS.get(name)
    many = sign in ("+", "*", "max", "min")
    if sign is None or not (len(arguments) == 2 or (many and len(arguments) > 2)):
        raise Unknown
    if sign in ("+", "*"):  # SymPy puts numbers first
        arguments.sort(key=lambda each: type(each) is int)
    return reduce(lambda left, right: (sign, left, right), arguments)


def _power(base: Tree, exponent: Tree) -> Tree:
    if type(exponent) is not int or not 1 <= exponent <= _HIGHEST:
        raise Unknown
    return reduce(lambda left, right: ("*", left, right), [base] * exponent)


def _dim(node: ast.Subscript, name_of: Callable[[str, int], Tree]) -> Tree:
    """`L['x'].size()[0]`, or `.shape[0]`."""
    owner: Any = node.value
    if isinstance(owner, ast.Call) and not owner.args and not owner.keywords:
        owner = owner.func
    index = node.slice
    if not isinstance(owner, ast.Attribute) or owner.attr not in ("size", "shape"):
        raise Unknown
    if not (isinstance(index, ast.Constant) and type(index.value) is int):
        raise Unknown
    return name_of(ast.unparse(owner.value), index.value)


def _no_name(text: str, dim: int) -> Tree:
    raise Unknown
