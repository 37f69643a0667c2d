"""Sizes that a graph computes anew in each replay: what names them, what is computed from them, and what must hold of them.

A trace of fake tensors whose sizes are symbols has them. The name of a symbol stands for a dim of an input, for a dim of what a
call made, or for a number that a call returned.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from turnout.operators.values import is_symbol
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer import errors
from turnout_tracer.nodes import Ref

Tree = Any  # a name, a number, or (sign, left, right)
Shape = tuple[Any, ...]  # of numbers, `Formula`s, and None for what no name is known of

SYMBOL = re.compile(r"[su](0|[1-9]\d{0,9})", re.ASCII)  # the name of a symbol

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<": operator.lt, "<=": operator.le, ">": operator.gt,
}  # fmt: skip
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "/": operator.truediv,
    "max": max, "min": min,
}  # fmt: skip


class Formula:
    """A size as it is computed from names: `s0*4 + 1`."""

    __slots__ = ("tree",)

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __add__(self, other: Any) -> Formula:
        return Formula(("+", self.tree, _tree(other)))

    def __mul__(self, other: Any) -> Formula:
        return Formula(("*", self.tree, _tree(other)))

    def __floordiv__(self, other: Any) -> Formula:
        return Formula(("//", self.tree, _tree(other)))

    def __mod__(self, other: Any) -> Formula:
        return Formula(("%", self.tree, _tree(other)))

    def __rfloordiv__(self, other: Any) -> Formula:
        return Formula(("//", _tree(other), self.tree))

    def __rmod__(self, other: Any) -> Formula:
        return Formula(("%", _tree(other), self.tree))

    def names(self) -> Iterator[str]:
        """The names in it."""
        return names_in(self.tree)

    def value(self, sizes: dict[str, Any]) -> Any:
        """The number for known names."""
        return _value(self.tree, sizes)

    def __repr__(self) -> str:
        return _text(self.tree)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What must hold: `s0 == s1*2`."""

    left: Tree
    sign: str
    right: Tree

    def names(self) -> Iterator[str]:
        """The names in it."""
        yield from names_in(self.left)
        yield from names_in(self.right)

    def holds(self, sizes: dict[str, Any]) -> bool:
        """Whether it does for known names."""
        return bool(COMPARISONS[self.sign](_value(self.left, sizes), _value(self.right, sizes)))

    def __str__(self) -> str:
        return f"{_text(self.left)} {self.sign} {_text(self.right)}"


@dataclass(frozen=True, slots=True)
class Birth:
    """A name that stands for a dim of what a call made; `dim` is None where the call returned the number."""

    node: int
    value: int
    dim: int | None
    name: str


class Sizes:
    """The sizes of a graph.

    inputs       the shape of each input, None for one that is not looked at: a generator, and all if none has a symbol
    births       the names that calls bring, in order
    assumptions  what must hold
    """

    def __init__(self, inputs: Sequence[Shape | None], births: Sequence[Birth], assumptions: Sequence[Comparison]) -> None:
        self.inputs = tuple(inputs)
        self.births = tuple(births)
        self.assumptions = tuple(assumptions)
        self._born: dict[int, list[Birth]] = {}
        for birth in self.births:
            self._born.setdefault(birth.node, []).append(birth)
        self._due = self._schedule()

    def _schedule(self) -> dict[int, list[Comparison]]:
        """The call after which each assumption can be looked at, -1 for before the first."""
        when = {birth.name: birth.node for birth in self.births}
        due: dict[int, list[Comparison]] = {}
        for each in self.assumptions:
            due.setdefault(max([-1, *(when.get(name, -1) for name in each.names())]), []).append(each)
        return due

    def of_inputs(self) -> Iterator[tuple[str, int, int]]:
        """(name, input, dim) where a name stands for a dim of an input for the first time."""
        seen = set()
        for i, shape in enumerate(self.inputs):
            for dim, size in enumerate(shape or ()):
                if isinstance(size, Formula) and isinstance(size.tree, str) and size.tree not in seen:
                    seen.add(size.tree)
                    yield size.tree, i, dim

    def due(self, node: int) -> list[Comparison]:
        """The assumptions that can be looked at after a call and not before it."""
        return self._due.get(node, [])

    def born(self, node: int) -> list[Birth]:
        """The names that a call brings."""
        return self._born.get(node, [])

    def names(self) -> Iterator[str]:
        """All names, each once."""
        yield from (name for name, _, _ in self.of_inputs())
        yield from (birth.name for birth in self.births)

    # ---- in a replay

    def read(self, graph: str, inputs: Sequence[str], given: Sequence[Any]) -> dict[str, Any]:
        """The sizes of the inputs of a call, by name. Raises TraceError for inputs that the graph does not hold for."""
        sizes: dict[str, Any] = {}
        for name, value, shape in zip(inputs, given, self.inputs, strict=True):
            if shape is not None and (not isinstance(value, Tensor) or value.ndim != len(shape)):
                raise errors.TraceError(errors.other_dims(graph, name, len(shape), getattr(value, "shape", ())))
        for name, i, dim in self.of_inputs():
            sizes[name] = given[i].shape[dim]
        for name, value, shape in zip(inputs, given, self.inputs, strict=True):
            for dim, size in enumerate(shape or ()):
                expected = size.value(sizes) if isinstance(size, Formula) else size
                if expected is not None and value.shape[dim] != expected:
                    raise errors.TraceError(errors.other_size(graph, name, dim, value.shape[dim], size, expected))
        self.check(graph, inputs, -1, sizes)
        return sizes

    def check(self, graph: str, inputs: Sequence[str], node: int, sizes: dict[str, Any]) -> None:
        """Raise TraceError for the first assumption that is due and does not hold."""
        for each in self.due(node):
            if not each.holds(sizes):
                rows = [(name, sizes[name], self._origin(name, inputs)) for name in dict.fromkeys(each.names())]
                raise errors.TraceError(errors.assumption_failed(graph, str(each), rows))

    def _origin(self, name: str, inputs: Sequence[str]) -> str:
        for found, i, dim in self.of_inputs():
            if found == name:
                return f"dim {dim} of {inputs[i]}"
        birth = next(each for each in self.births if each.name == name)
        return f"a number from call {birth.node}" if birth.dim is None else f"dim {birth.dim} of a result of call {birth.node}"


class SizeRecord:
    """The sizes of a trace in the making."""

    def __init__(self, mode: Any) -> None:
        self._mode = mode
        self._inputs: list[tuple[Any, ...] | None] = []
        self._births: list[Birth] = []
        self._known: set[str] = set()

    def bind_input(self, value: Any) -> None:
        """Note the shape of an input; its symbols are known from now on."""
        shape: tuple[Any, ...] | None = tuple(value.shape) if isinstance(value, Tensor) else None
        self._inputs.append(shape)
        self._known.update(size.symbol for size in shape or () if is_symbol(size) and size.symbol)

    def bind_output(self, node: int, ref: Ref, tensor: Tensor) -> None:
        """Note the symbols that a call has made with a tensor."""
        shape: tuple[Any, ...] = tensor.shape
        for dim, size in enumerate(shape):
            if is_symbol(size):
                self._bear(Birth(node, ref.index, dim, size.symbol))

    def bind_number(self, node: int, size: Any) -> Formula | None:
        """Note the symbol that a call has returned; None for a number that is known without the call."""
        if not size.symbol or size.symbol in self._known:
            return None
        self._bear(Birth(node, -1, None, size.symbol))
        return Formula(size.symbol)

    def _bear(self, birth: Birth) -> None:
        if birth.name and birth.name not in self._known:
            self._known.add(birth.name)
            self._births.append(birth)

    def formula(self, size: Any) -> Any:
        """A size as the graph computes it. Raises TraceError for one that no replay can know."""
        unknown = [name for name in size.symbols if name not in self._known]
        if unknown:
            raise errors.TraceError(errors.unknown_size(str(size), unknown[0]))
        return size.computed({name: Formula(name) for name in size.symbols})

    def finished(self) -> Sizes:
        """The sizes of the graph. Raises TraceError where one was compared with a size that no replay can know."""
        inputs = (
            self._inputs if any(is_symbol(size) for shape in self._inputs for size in shape or ()) else [None] * len(self._inputs)
        )
        shapes = [None if shape is None else tuple([self._entry(size) for size in shape]) for shape in inputs]
        found = []
        for each in self._mode.assumptions:
            names = {symbol.name for side in (each.left, each.right) for symbol in side.symbols()}
            if names.isdisjoint(self._known):
                continue
            for name in sorted(names - self._known):
                raise errors.TraceError(errors.compared_with_unknown(str(each), name))
            values = {name: Formula(name) for name in names}
            found.append(Comparison(_tree(each.left.computed(values)), each.sign, _tree(each.right.computed(values))))
        return Sizes(shapes, self._births, list(dict.fromkeys(found)))

    def _entry(self, size: Any) -> Any:
        if not is_symbol(size):
            return size
        return self.formula(size) if self._known.issuperset(size.symbols) else None


def formulas_in(value: Any) -> Iterator[Formula]:
    """The formulas that an argument holds."""
    if isinstance(value, Formula):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from formulas_in(each)


def names_in(tree: Tree) -> Iterator[str]:
    """The names in a formula."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, tuple):
        yield from names_in(tree[1])
        yield from names_in(tree[2])


def renamed(tree: Tree, names: dict[str, str]) -> Tree:
    """A formula with other names."""
    if isinstance(tree, tuple):
        return (tree[0], renamed(tree[1], names), renamed(tree[2], names))
    return names.get(tree, tree) if isinstance(tree, str) else tree


def _tree(value: Any) -> Tree:
    return value.tree if isinstance(value, Formula) else value


def _value(tree: Tree, sizes: dict[str, Any]) -> Any:
    if isinstance(tree, tuple):
        return SIGNS[tree[0]](_value(tree[1], sizes), _value(tree[2], sizes))
    return sizes[tree] if isinstance(tree, str) else tree


def _text(tree: Tree) -> str:
    if not isinstance(tree, tuple):
        return str(tree)
    sign, left, right = tree
    if sign in ("max", "min"):
        return f"{sign}({_text(left)}, {_text(right)})"
    if sign == "+":
        if isinstance(right, int) and right < 0:
            return f"{_text(left)} - {-right}"
        if isinstance(right, tuple) and right[0] == "*" and isinstance(right[2], int) and right[2] < 0:
            product = right[1] if right[2] == -1 else ("*", right[1], -right[2])
            return f"{_text(left)} - {_factor(product)}"
        return f"{_text(left)} + {_text(right)}"
    if sign == "*":
        first = _text(left) if isinstance(left, tuple) and left[0] == "*" else _factor(left)
        return f"{first}*{_factor(right)}"
    return f"{_factor(left)} {sign} {_factor(right)}"


def _factor(tree: Tree) -> str:
    """A part of a product or quotient, in parentheses unless it is a name or a number."""
    shown = _text(tree)
    return f"({shown})" if (isinstance(tree, tuple) and tree[0] not in ("max", "min")) or shown.startswith("-") else shown
