"""`x[index]` and `x[index] = value` over a pure-Python backend."""

from __future__ import annotations

import pytest
from pure_backend import lists, made

from outcomes import refused
from turnout.errors import CallError, DataError, DimError, IndexKindError, ShapeError

pytestmark = pytest.mark.usefixtures("pure")


def cube():
    return made([[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]])


# fmt: off
CASES = [
    ("int", lambda: 1, [[6, 7, 8], [9, 10, 11]]),
    ("negative", lambda: (-1, -1, -1), 11),
    ("slice", lambda: (slice(None), 0, slice(1, None)), [[1, 2], [7, 8]]),
    ("ellipsis", lambda: (..., 0), [[0, 3], [6, 9]]),
    ("new dim", lambda: (0, None, 1), [[3, 4, 5]]),
    ("list", lambda: (0, [1, 0]), [[3, 4, 5], [0, 1, 2]]),
    ("tensor", lambda: made([1, 1]), [[[6, 7, 8], [9, 10, 11]]] * 2),
    ("two tensors", lambda: (made([0, 1]), made([1, 0])), [[3, 4, 5], [6, 7, 8]]),
    ("apart", lambda: (made([0, 1]), slice(None), made([2, 0])), [[2, 5], [6, 9]]),
    ("after a slice", lambda: (slice(None), 0, [0, 2]), [[0, 2], [6, 8]]),
    ("mask", lambda: (0, made([[True, False, True], [False, False, True]])), [0, 2, 5]),
    ("mask of a dim", lambda: (..., made([False, True, True])), [[[1, 2], [4, 5]], [[7, 8], [10, 11]]]),
    ("true", lambda: (0, 0, True), [[0, 1, 2]]),
    ("false", lambda: (0, 0, False), []),
    ("zero-dim tensor", lambda: made(1), [[6, 7, 8], [9, 10, 11]]),
]
# fmt: on


@pytest.mark.parametrize(("index", "expected"), [pytest.param(i, e, id=name) for name, i, e in CASES])
def test_reading_selects(index, expected):
    assert lists(cube()[index()]) == expected


@pytest.mark.parametrize("index", [pytest.param(i, id=name) for name, i, _ in CASES])
def test_writing_a_number_changes_what_reading_selects_and_nothing_else(index):
    x = cube()
    x[index()] = 50
    selected = cube()[index()].array.values()
    assert x.array.values() == [50 if v in selected else v for v in cube().array.values()]


def test_basic_indexing_is_a_view_and_advanced_indexing_a_copy():
    x = cube()
    assert x[0, 1:].is_alias_of(x)
    assert x[...].is_alias_of(x)
    assert not x[[0]].is_alias_of(x)


def test_a_value_may_have_leading_dims_of_length_one():
    x = cube()
    x[0, 0] = made([[[9.0, 8.0, 7.0]]])
    x[[1], [1]] = made([[[3.0, 2.0, 1.0]]])
    assert lists(x) == [[[9, 8, 7], [3, 4, 5]], [[6, 7, 8], [3, 2, 1]]]


# fmt: off
ERRORS = [
    (lambda x: x[2], DimError, "select: index 2 is out of range for dim 0 of length 2"),
    (lambda x: x[0, 0, 0, 0], DimError, "too many indices: 4 for a tensor of 3 dimensions"),
    (lambda x: x[..., ...], DimError, "an index can have only one ellipsis ('...')"),
    (lambda x: x["a"], IndexKindError,
     "an index consists of ints, slices, None, '...', bools, lists and integer or bool tensors; got str"),
    (lambda x: x[1.5:], CallError, "a slice takes integers, got float"),
    (lambda x: x[[[0], [1, 0]],], DataError,
     "a list used as an index must be rectangular: its inner lists must have the same length"),
    (lambda x: x[made([True, False, True])], DimError, "index: a mask of shape [3] does not fit shape [2, 2, 3] at dim 0"),
    (lambda x: x.__setitem__(0, [1, 2]), CallError, "x[index] = value: 'value' must be a number or a tensor, got list"),
    (lambda x: x.__setitem__([0], made([1.0, 2.0])), ShapeError, "index_put: 'values' of shape [2] do not expand to [1, 2, 3]"),
]
# fmt: on


@pytest.mark.parametrize(("act", "kind", "text"), ERRORS)
def test_a_wrong_index_says_what_is_wrong(act, kind, text):
    assert refused(kind, act, cube()) == text


@pytest.mark.parametrize(
    ("listed", "tupled"),
    [
        ([[0, 1], [1, 0]], ([0, 1], [1, 0])),
        ([[1, 0]], ([1, 0],)),
        ([None, [1]], (None, [1])),
        ([slice(1), 0], (slice(1), 0)),
        ([..., 0], (..., 0)),
        ([[[0, 1]], 0], ([[0, 1]], 0)),
    ],
)
def test_a_list_of_more_than_numbers_is_read_as_a_tuple_with_a_warning(listed, tupled):
    x = cube()
    with pytest.warns(UserWarning, match="is read as a tuple") as caught:
        found = x[listed]
    assert lists(found) == lists(x[tupled])
    assert str(caught[0].message) == (
        "x[[...]] with lists, slices, None or tensors in the list is read as a tuple, an index for each dim\n"
        "  to fix  write x[i, j] for a tuple, x[turnout.tensor(index)] for one index"
    )
    assert caught[0].filename == __file__


def test_a_list_of_numbers_and_a_long_list_are_one_index():
    x = cube()
    assert lists(x[[1, 0]]) == lists(x[made([1, 0])])
    assert x[[[0]] * 32].shape == (32, 1, 2, 3)
