"""Nested tuples, lists and dicts of tensors: flattened, and put together again. `turnout.func` takes and returns them.

A leaf is any object whose class is neither built in as a node nor registered with `register`. Named tuples, deques, ordered dicts
and defaultdicts keep their class. A *prefix* of a tree may have a leaf where the tree has a branch.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from turnout.config.effects import effect
from turnout.errors import ArgumentError

__all__ = ["LEAF", "Structure", "flatten", "map_leaves", "paths", "register", "spread", "unflatten"]
__dir__ = __all__.copy

LEAF = None  # the structure of a leaf
_DICTS = (dict, OrderedDict, defaultdict)
# Kind of node -> (the function that flattens it, the function that makes it).
_REGISTERED: dict[type, tuple[Callable[[Any], tuple[Iterable[Any], Any]], Callable[[list[Any], Any], Any]]] = {}


def register(
    kind: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[[list[Any], Any], Any]
) -> Callable[[], None]:
    """Treat instances of exactly this class as nodes from now on; returns the undo.

    Raises ArgumentError for a class that already is a kind of node.

    Arguments:
        kind: the class
        flatten: takes a value, and returns its branches and the rest of its state, which is compared by ==
        unflatten: takes branches and the rest of the state, and returns a value

    Example:
        >>> undo = turnout.trees.register(set, lambda value: (sorted(value), None), lambda branches, state: set(branches))
        >>> turnout.trees.flatten({3, 1})[0]
        [1, 3]
        >>> undo()
    """
    effect("trees.register()")
    if kind in _REGISTERED or kind in (*_DICTS, tuple, list) or _is_named(kind):
        raise ArgumentError(f"trees.register: {kind.__qualname__} already is a kind of node")
    _REGISTERED[kind] = flatten, unflatten

    def undo() -> None:
        _REGISTERED.pop(kind, None)

    return undo


class Structure:
    """The structure of a tree: the kind of node, its branches, and the rest of the node's state; LEAF for a leaf."""

    __slots__ = ("branches", "held", "keys", "kind")
    __unwrapped__ = ("*",)  # only `flatten` makes them

    def __init__(self, kind: type, keys: tuple[Any, ...], branches: tuple[Any, ...], held: Any = None) -> None:
        self.kind = kind
        self.keys = keys
        self.branches = branches
        self.held = held

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        return (self.kind, self.keys, self.held, self.branches) == (other.kind, other.keys, other.held, other.branches)

    __hash__ = None  # type: ignore[assignment]


def _is_named(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _node(value: Any) -> tuple[Sequence[Any], Sequence[Any], Any] | None:
    """The keys, branches and remaining state of a node; None for a leaf. Dicts are read in the order of their keys."""
    kind = type(value)
    if kind in _DICTS:
        return tuple(value), tuple(value.values()), value.default_factory if kind is defaultdict else None
    if kind is list or (issubclass(kind, tuple) and (kind is tuple or _is_named(kind))):
        return range(len(value)), value, None
    if kind in _REGISTERED:
        given, held = _REGISTERED[kind][0](value)
        branches = tuple(given)
        return range(len(branches)), branches, held
    return None


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves in order, and the structure that `unflatten` needs to rebuild the tree.

    Arguments:
        tree: a leaf, or nested lists, tuples, dicts and other nodes

    Example:
        >>> leaves, structure = turnout.trees.flatten({"w": 1, "b": [2, 3]})
        >>> leaves
        [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Any:
    kind = type(tree)
    if kind is tuple or kind is list:
        return Structure(kind, tuple(range(len(tree))), tuple([_flatten(branch, leaves) for branch in tree]))
    node = _node(tree) if issubclass(kind, tuple) or kind in _DICTS or kind in _REGISTERED else None
    if node is None:
        leaves.append(tree)
        return LEAF
    return Structure(kind, tuple(node[0]), tuple([_flatten(branch, leaves) for branch in node[1]]), node[2])


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    """A tree with this structure and these leaves.

    Arguments:
        structure: what `flatten` returned
        leaves: as many leaves as the structure has

    Example:
        >>> leaves, structure = turnout.trees.flatten({"w": 1, "b": [2, 3]})
        >>> turnout.trees.unflatten(structure, ["x", "y", "z"])
        {'w': 'x', 'b': ['y', 'z']}
    """
    return _build(structure, iter(leaves))


def _build(structure: Any, rest: Iterator[Any]) -> Any:
    if structure is LEAF:
        return next(rest)
    parts = [next(rest) if branch is LEAF else _build(branch, rest) for branch in structure.branches]
    if structure.kind is tuple:
        return tuple(parts)
    if structure.kind in _DICTS:
        items = zip(structure.keys, parts, strict=True)
        return defaultdict(structure.held, items) if structure.kind is defaultdict else structure.kind(items)
    if _is_named(structure.kind):
        return structure.kind._make(parts)
    if structure.kind in _REGISTERED:
        return _REGISTERED[structure.kind][1](parts, structure.held)
    return structure.kind(parts)


def map_leaves(function: Callable[..., Any], tree: Any, *trees: Any) -> Any:
    """The tree with `function(leaf)` in place of each leaf; with other trees, `function(leaf, leaf of the second tree, ...)`.

    Raises ArgumentError where another tree does not have the structure of the first one.

    Arguments:
        function: takes a leaf of each tree
        tree: the tree
        trees: other trees of the same structure

    Example:
        >>> turnout.trees.map_leaves(lambda leaf: leaf + 1, {"w": 1, "b": [2, 3]})
        {'w': 2, 'b': [3, 4]}
        >>> turnout.trees.map_leaves(lambda a, b: a + b, [1, 2], [10, 20])
        [11, 22]
    """
    leaves, structure = flatten(tree)
    rows = [leaves]
    for i, other in enumerate(trees):
        found, also = flatten(other)
        if also != structure:
            raise ArgumentError(f"trees.map_leaves: tree {i + 1} does not have the structure of tree 0")
        rows.append(found)
    return unflatten(structure, [function(*each) for each in zip(*rows, strict=True)])


def spread(prefix: Any, structure: Any) -> list[Any] | None:
    """The leaves of a prefix, each repeated for the leaves of its branch; None if it is not a prefix of the structure.

    Arguments:
        prefix: a tree that ends where the structure ends, or before
        structure: what `flatten` returned

    Example:
        >>> leaves, structure = turnout.trees.flatten([1, [2, 3]])
        >>> turnout.trees.spread(["a", "b"], structure)
        ['a', 'b', 'b']
    """
    node = _node(prefix)
    if node is None:
        return [prefix] * _count(structure)
    if structure is LEAF:
        return None
    keys, branches, _ = node
    found: list[Any] = []
    if structure.kind in _DICTS:
        if type(prefix) not in _DICTS or set(keys) != set(structure.keys):
            return None
        branches = tuple([prefix[key] for key in structure.keys])
    elif type(prefix) in _DICTS or len(keys) != len(structure.keys):
        return None
    for branch, part in zip(branches, structure.branches, strict=True):
        below = spread(branch, part)
        if below is None:
            return None
        found += below
    return found


def _count(structure: Any) -> int:
    return 1 if structure is LEAF else sum([1 if branch is LEAF else _count(branch) for branch in structure.branches])


def paths(structure: Any, place: str = "") -> list[str]:
    """The name of each leaf: "[0]['w']".

    Arguments:
        structure: what `flatten` returned
        place: what all names start with

    Example:
        >>> leaves, structure = turnout.trees.flatten({"w": 1, "b": [2, 3]})
        >>> turnout.trees.paths(structure, "args")
        ["args['w']", "args['b'][0]", "args['b'][1]"]
    """
    if structure is LEAF:
        return [place]
    names = []
    for key, branch in zip(structure.keys, structure.branches, strict=True):
        names += paths(branch, f"{place}[{key!r}]")
    return names


register(deque, lambda value: (value, value.maxlen), deque)
