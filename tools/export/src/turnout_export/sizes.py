"""Sizes of a program: their names, the formulas that Python computes with them, and what must hold of them.

A size is a number, the name of a symbol or a formula (`expressions`). A graph knows the symbols that are dims of its inputs, and
those that are born where a call makes a tensor or a number whose size nobody knows before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout_aten.files import need
from turnout_aten.plain_data import elements, only, row, shown
from turnout_aten.tensor.size import NEGATIONS
from turnout_export import expressions
from turnout_export.arguments import Scope, Unsupported, as_data, listed, unlisted
from turnout_export.expressions import Comparison, Tree, Unknown
from turnout_tracer.sizes import SYMBOL

# The names of the functions of `operator` and of torch -> what formulas have for them.
_OPERATIONS = {"add": "+", "mul": "*", "floordiv": "//", "mod": "%", "truediv": "/"}
_COMPARISONS = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_EXTREMES = {"torch.sym_max": "max", "torch.sym_min": "min"}
_RANGES = ("aten::sym_constrain_range", "aten::sym_constrain_range_for_size")


class Sizes:
    """The sizes of one graph in the making.

    inputs       the dims of each input
    births       [number of a call, what it made, dim, symbol] of each symbol that a call gives birth to
    assumptions  comparisons that hold wherever the graph does
    """

    def __init__(self, ranges: Any) -> None:
        self.ranges = row(ranges, frozenset(), "the ranges")
        self.inputs: list[list[Tree]] = []
        self.births: list[list[Any]] = []
        self.assumptions: list[Comparison] = []
        self._known: set[str] = set()
        self._fresh = 0

    def data(self) -> dict[str, Any]:
        """What the data of a graph says of sizes."""
        return {
            "inputs": [[as_data(n) for n in shape] for shape in self.inputs],
            "births": self.births,
            "assumptions": [[listed(left), sign, listed(right)] for left, sign, right in self.assumptions],
        }

    # ---- names

    def name_inputs(self, scope: Scope) -> None:
        """Take the shapes of the inputs. A dim that is a symbol has its name; what is computed from unnamed symbols gets one."""
        shapes = [[expression(n) for n in elements(scope.meta(name)["sizes"], "a shape")] for name in scope.values]
        self._known = {n for shape in shapes for n in shape if isinstance(n, str) and SYMBOL.fullmatch(n)}
        for shape in shapes:
            self.inputs.append([n if self.is_known(n) else self.new() for n in shape])
        for name, bounds in self.ranges.items():
            if name in self._known:
                found = row(bounds, frozenset(), "a range")
                low, high = found.get("min_val"), found.get("max_val")
                if type(low) is int and low > 2:  # torch takes 0 and 1, too, where it says 2: they are its own special cases
                    self.assumptions.append((name, ">=", low))
                if type(high) is int:
                    self.assumptions.append((name, "<=", high))

    def is_known(self, tree: Tree) -> bool:
        """Whether a formula is computed from names that are known."""
        return tree is not None and self._known.issuperset(_names_in(tree))

    def new(self, wanted: Any = None) -> str:
        """A name that no size has; the wanted one if it is free."""
        if isinstance(wanted, str) and SYMBOL.fullmatch(wanted) and wanted not in self._known:
            name = wanted
        else:
            waiting = str(self.ranges)  # where names of symbols stand that are not known yet
            while f"u{self._fresh}" in self._known or f"Symbol('u{self._fresh}'" in waiting:
                self._fresh += 1
            name = f"u{self._fresh}"
        self._known.add(name)
        return name

    def of_result(self, call: int, ref: int, shape: list[Any]) -> None:
        """Take the shape of a tensor that a call has made; its dims may be symbols that nothing has yet named."""
        for dim, data in enumerate(shape):
            tree = expression(data)
            if isinstance(tree, str) and tree not in self._known and SYMBOL.fullmatch(tree):
                self._known.add(tree)
                self.births.append([call, ref, dim, tree])

    def of_dim(self, scope: Scope, given: dict[str, Any], made_by: Callable[[int], int | None]) -> Tree:
        """What `sym_size` returns. `made_by` says which call has made a tensor."""
        name = row(only(row(given.get("self"), frozenset(), "an argument"))[1], frozenset({"name"}), "a tensor")["name"]
        ref, dim = scope.value(name), scope.encode(given.get("dim", {"as_int": 0}))
        shape = elements(scope.meta(name)["sizes"], "a shape")
        need(type(dim) is int and -len(shape) <= dim < len(shape), f"dim {shown(dim)} is none of {shown(name)}")
        dim %= max(1, len(shape))
        if ref < len(self.inputs):
            return self.inputs[ref][dim]
        tree = expression(shape[dim])
        if not self.is_known(tree):
            call = made_by(ref)
            need(call is not None, f"the size of {shown(name)} is not known")
            tree = self.new()
            self.births.append([call, ref, dim, tree])
        return tree

    # ---- what must hold

    def assume(self, comparison: Comparison) -> None:
        """Add what must hold. Raises Unknown for a symbol that is not known."""
        left, _sign, right = comparison
        if not (self.is_known(left) and self.is_known(right)):
            raise Unknown
        if isinstance(left, (str, tuple)) or isinstance(right, (str, tuple)):
            self.assumptions.append(comparison)

    def require(self, scope: Scope, target: str, given: dict[str, Any]) -> bool:
        """Whether a call of an operator, aten::_assert_scalar, only says what must hold of sizes. That is assumed then."""
        if target == "aten::_assert_scalar":
            comparisons = self._asserted(scope, given.get("self"))
        elif target in _RANGES:
            comparisons = self._in_range(scope, given)
        else:
            return False
        for each in comparisons:
            self.assume(each)
        return True

    def _asserted(self, scope: Scope, argument: Any) -> list[Comparison]:
        kind, value = only(row(argument, frozenset(), "an argument"))
        if kind == "as_bool" or (kind == "as_sym_bool" and isinstance(value, dict) and "as_bool" in value):
            return []
        return _truth(scope, argument)

    def _in_range(self, scope: Scope, given: dict[str, Any]) -> list[Comparison]:
        tree = tree_of(scope.encode(given.get("size")))
        found: list[Comparison] = []
        for name, sign, least in (("min", ">=", 0), ("max", "<=", None)):
            bound = scope.encode(given[name]) if name in given else least
            if bound is not None:
                found.append((tree, sign, tree_of(bound)))
        return found


# ---- what Python computes with sizes


def compute(scope: Scope, node: dict[str, Any], target: str, given: list[Any]) -> None:
    """Take the result of a function of Python that computes with sizes, or compares them. Raises Unsupported for others."""
    module, _, name = target.rpartition(".")
    of_operators = module in ("_operator", "operator")
    if of_operators and name in _COMPARISONS and len(given) == 2:
        left, right = [tree_of(scope.encode(each)) for each in given]
        _name_truth(scope, node, [(left, _COMPARISONS[name], right)])
    elif (of_operators and name in ("and_", "or_", "not_")) or target == "torch.sym_not":
        _combine(scope, node, name, given)
    elif of_operators or module in ("builtins", "math", "torch"):
        name_result(scope, node, _formula(target, name, [tree_of(scope.encode(each)) for each in given]))
    else:
        raise Unsupported("only operators, and what Python computes with sizes, can be in a graph")


def name_result(scope: Scope, node: dict[str, Any], tree: Tree) -> None:
    """Name the size that a call returns."""
    outputs = elements(node["outputs"], "the results of a call")
    need(len(outputs) == 1, "a size has several results")
    kind, value = only(row(outputs[0], frozenset(), "a result"))
    if kind == "as_int":
        return
    need(kind in ("as_sym_int", "as_sym_float"), f"a size is of kind {shown(kind)}")
    name = row(value, frozenset({"as_name"}), "a result")["as_name"]
    need(isinstance(name, str), "a size has no name")
    scope.sizes[name] = tree


def expression(data: Any) -> Tree:
    """A size that the program says; None for one that no formula says."""
    kind, value = only(row(data, frozenset(), "a size"))
    if kind == "as_int":
        need(type(value) is int, f"{shown(value)} is not a size")
        return value
    need(kind == "as_expr", f"a size is of kind {shown(kind)}")
    try:
        return expressions.size(row(value, frozenset({"expr_str"}), "a size")["expr_str"])
    except Unknown:
        return None


def tree_of(value: Any) -> Tree:
    """A number or size of a call's arguments as a formula. Raises Unsupported."""
    if isinstance(value, dict) and "size" in value:
        return unlisted(value["size"])
    if type(value) in (int, float):
        return value
    raise Unsupported("an operand that is not a size")


def _names_in(tree: Tree) -> list[str]:
    if isinstance(tree, tuple):
        return [name for side in tree[1:] for name in _names_in(side)]
    return [tree] if isinstance(tree, str) else []


def _name_truth(scope: Scope, node: dict[str, Any], comparisons: list[Comparison]) -> None:
    kind, value = only(row(next(iter(elements(node["outputs"], "the results")), {}), frozenset(), "a result"))
    need(kind == "as_sym_bool", "a comparison has no truth value")
    scope.truths[row(value, frozenset({"as_name"}), "a result")["as_name"]] = comparisons


def _combine(scope: Scope, node: dict[str, Any], name: str, given: list[Any]) -> None:
    parts = [_truth(scope, each) for each in given]
    if name == "and_":
        _name_truth(scope, node, [each for part in parts for each in part])
    elif name in ("not_", "sym_not") and len(parts) == 1 and len(parts[0]) == 1:
        left, sign, right = parts[0][0]
        _name_truth(scope, node, [(left, NEGATIONS[sign], right)])
    else:
        raise Unsupported("a condition that one of several comparisons meets; a graph holds where all of them do")


def _truth(scope: Scope, argument: Any) -> list[Comparison]:
    kind, value = only(row(argument, frozenset(), "an argument"))
    found = row(value, frozenset(), "a truth").get("as_name") if kind == "as_sym_bool" else None
    if not isinstance(found, str) or found not in scope.truths:
        raise Unsupported("a condition that is not a comparison of sizes")
    return scope.truths[found]


def _formula(target: str, name: str, sides: list[Tree]) -> Tree:
    """What a function computes with one or two sizes."""
    if len(sides) == 2:
        left, right = sides
        if name == "sub":
            return ("+", left, -right if type(right) in (int, float) else ("*", right, -1))
        if name == "pow" and type(right) is int and 1 <= right <= 64:
            made = left
            for _ in range(right - 1):
                made = ("*", made, left)
            return made
        sign = _OPERATIONS.get(name, _EXTREMES.get(target))
        if sign is not None:
            return (sign, left, right)
    if len(sides) == 1 and name in ("sym_float", "neg", "pos", "sym_int"):
        only_side = sides[0]
        if name == "neg":
            return ("*", only_side, -1)
        if name == "sym_float":
            return ("/", only_side, 1)
        if name == "pos":
            return only_side
    raise Unsupported("a function of sizes for which a graph has no formula")
