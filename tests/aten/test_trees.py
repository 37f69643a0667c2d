"""Nested values: what is a node, how it is put together again, and what a prefix is."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from outcomes import refused
from turnout.errors import ArgumentError
from turnout_aten import trees

Pair = namedtuple("Pair", "a b")


class Layer:
    """Two branches and a name."""

    def __init__(self, weight, bias, name):
        self.weight, self.bias, self.name = weight, bias, name

    def __eq__(self, other):
        return vars(self) == vars(other)


@pytest.fixture
def registered():
    undo = trees.register(Layer, lambda v: ((v.weight, v.bias), v.name), lambda parts, name: Layer(*parts, name))
    yield undo
    undo()


NESTED = [
    (1, [2, (3,)]),
    {"b": 1, "a": [2]},
    OrderedDict(b=1, a=2),
    defaultdict(list, {"b": 1, "a": 2}),
    defaultdict(None, {"b": 1}),
    deque([1, [2]], maxlen=4),
    Pair(1, (2, 3)),
    [],
]


@pytest.mark.parametrize("value", NESTED, ids=repr)
def test_what_is_flattened_is_put_together_as_it_was(value):
    leaves, structure = trees.flatten(value)
    made = trees.unflatten(structure, leaves)
    assert made == value
    assert type(made) is type(value)
    assert getattr(made, "maxlen", None) == getattr(value, "maxlen", None)
    assert getattr(made, "default_factory", None) == getattr(value, "default_factory", None)
    assert trees.flatten(made)[1] == structure
    assert leaves == sorted(leaves) or isinstance(value, dict)


def test_kinds_keys_and_what_else_is_held_make_structures_differ():
    structures = [trees.flatten(value)[1] for value in (*NESTED, defaultdict(int, {"b": 1, "a": 2}), deque([1, [2]]), 7)]
    for i, one in enumerate(structures):
        assert [one == other for other in structures] == [i == j for j in range(len(structures))]


def test_a_class_of_ones_own_is_a_leaf_until_it_is_registered_and_again_after_the_undo(registered):
    layer = Layer(1, [2, 3], "first")
    leaves, structure = trees.flatten({"layer": layer})
    assert leaves == [1, 2, 3]
    assert trees.unflatten(structure, [4, 5, 6]) == {"layer": Layer(4, [5, 6], "first")}
    assert trees.paths(structure) == ["['layer'][0]", "['layer'][1][0]", "['layer'][1][1]"]
    assert structure != trees.flatten({"layer": Layer(1, [2, 3], "second")})[1]
    for prefix in (0, {"layer": 0}, {"layer": Layer(0, 0, "any")}, {"layer": (0, [0, 0])}):
        assert trees.spread(prefix, structure) == [0, 0, 0]
    assert trees.spread({"layer": (0,)}, structure) is None
    registered()
    registered()
    assert trees.flatten(layer)[0] == [layer]


def test_subclasses_are_not_registered_with_their_base(registered):
    value = type("Wide", (Layer,), {})(1, 2, "wide")
    assert trees.flatten(value)[1] is trees.LEAF


@pytest.mark.parametrize("kind", [Layer, dict, OrderedDict, tuple, list, deque, Pair])
def test_a_kind_of_node_cannot_be_registered_again(registered, kind):
    assert refused(ArgumentError, trees.register, kind, lambda value: ((), None), lambda parts, held: held) == (
        f"trees.register: {kind.__qualname__} already is a kind of node"
    )
    assert len(trees.flatten(Layer(1, 2, ""))[0]) == 2
