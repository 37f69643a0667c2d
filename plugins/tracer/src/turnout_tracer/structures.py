"""What a graph takes and returns: a tree whose leaves are tensors and generators, or constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from turnout.operators.values import is_symbol
from turnout_aten import trees
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer import errors


class _Value:
    """Stands for a leaf that a graph computes with."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "VALUE"

    def __reduce__(self) -> str:
        return "VALUE"  # there is one in each process


VALUE: Any = _Value()


class Nested:
    """The structure of a tree, and its leaves: VALUE for those that a graph computes with, constants as they are."""

    __slots__ = ("_plain", "leaves", "structure")

    def __init__(self, structure: Any, leaves: Iterable[Any]) -> None:
        self.structure = structure
        self.leaves = tuple(leaves)
        self._plain = _count_plain(structure) if all(leaf is VALUE for leaf in self.leaves) else -1

    def build(self, values: Iterable[Any]) -> Any:
        """The tree with values in the places of VALUE, in order."""
        rest = iter(values)
        return trees.unflatten(self.structure, [next(rest) if leaf is VALUE else leaf for leaf in self.leaves])

    def values_of(self, call: list[Any], name: str) -> list[Any]:
        """The values of another call, `[args, kwargs]`; dicts may be in another order. Raises TraceError for other nesting."""
        args, kwargs = call
        if not kwargs and len(args) == self._plain and all([type(value) is Tensor for value in args]):  # noqa: C419 - 2 us of 4
            return list(args)
        found, structure = trees.flatten(call)
        if structure != self.structure:
            ordered = trees.spread(call, self.structure)
            if ordered is None or len(ordered) != len(found):
                expected, theirs = places_in(self.structure), places_in(structure)
                raise errors.TraceError(errors.wrong_structure(name, expected, theirs))
            found = ordered
        values = []
        for i, (leaf, value) in enumerate(zip(self.leaves, found, strict=True)):
            if leaf is VALUE and is_value(value):
                values.append(value)
            elif leaf is VALUE or is_value(value) or type(value) is not type(leaf) or value != leaf:
                expected_leaf = "a tensor" if leaf is VALUE else repr(leaf)
                shown = type(value).__name__ if leaf is VALUE or is_value(value) else repr(value)
                raise errors.TraceError(errors.wrong_leaf(name, places_in(self.structure)[i], expected_leaf, shown))
        return values


def _count_plain(call: Any) -> int:
    """How many positional arguments a call `[args, kwargs]` has if none is nested and none has a name, else -1."""
    if call is trees.LEAF or call.kind is not list or len(call.branches) != 2 or trees.LEAF in call.branches:
        return -1
    args, kwargs = call.branches
    plain = args.kind is tuple and all(branch is trees.LEAF for branch in args.branches) and not kwargs.branches
    return len(args.branches) if plain else -1


def places_in(call: Any) -> list[str]:
    """What each leaf of the structure of `[args, kwargs]` is called: "args[0]", "kwargs['scale']"."""
    args, kwargs = call.branches
    return trees.paths(args, "args") + trees.paths(kwargs, "kwargs")


def is_value(leaf: object) -> bool:
    """Whether a leaf is what a graph computes with: a tensor, or a generator of random numbers."""
    return isinstance(leaf, (Tensor, Generator))


def take_apart(tree: Any, value: Callable[[Any], None], *, symbols: bool = False) -> Nested:
    """The kind of a tree; `value(tensor)` is called for each leaf that is one, in order, with `symbols` for sizes too."""
    leaves, structure = trees.flatten(tree)
    places = [is_value(leaf) or (symbols and is_symbol(leaf)) for leaf in leaves]
    for leaf, is_place in zip(leaves, places, strict=True):
        if is_place:
            value(leaf)
    return Nested(structure, [VALUE if is_place else leaf for leaf, is_place in zip(leaves, places, strict=True)])
