"""View operators over a pure-Python backend: what they select, that they share memory, and their errors' full texts."""

from __future__ import annotations

import pytest
from pure_backend import lists, made

from outcomes import refused
from turnout.errors import DimError, ShapeError
from turnout.registry import find_operator
from turnout_aten.views import geometry as views

pytestmark = pytest.mark.usefixtures("pure")


def call(name, *args):
    return find_operator(f"aten::{name}")(*args)


def matrix():
    return made([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


# fmt: off
CASES = [
    ("view", ([3, -1],), [[0, 1], [2, 3], [4, 5]]),
    ("reshape", ([6],), [0, 1, 2, 3, 4, 5]),
    ("transpose.int", (0, -1), [[0, 3], [1, 4], [2, 5]]),
    ("t", (), [[0, 3], [1, 4], [2, 5]]),
    ("permute", ([1, 0],), [[0, 3], [1, 4], [2, 5]]),
    ("unsqueeze", (1,), [[[0, 1, 2]], [[3, 4, 5]]]),
    ("select.int", (1, -1), [2, 5]),
    ("slice.Tensor", (1, 0, None, 2), [[0, 2], [3, 5]]),
    ("slice.Tensor", (1, 5, None), [[], []]),
    ("narrow", (1, 1, 2), [[1, 2], [4, 5]]),
    ("diagonal", (1,), [1, 5]),
    ("unfold", (1, 2, 1), [[[0, 1], [1, 2]], [[3, 4], [4, 5]]]),
    ("as_strided", ([2, 2], [1, 2], 1), [[1, 3], [2, 4]]),
    ("alias", (), [[0, 1, 2], [3, 4, 5]]),
    ("detach", (), [[0, 1, 2], [3, 4, 5]]),
    ("flatten.using_ints", (), [0, 1, 2, 3, 4, 5]),
    ("movedim.int", (0, 1), [[0, 3], [1, 4], [2, 5]]),
    ("expand", ([2, -1, 3],), [[[0, 1, 2], [3, 4, 5]]] * 2),
]
# fmt: on


@pytest.mark.parametrize(("name", "args", "expected"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_view_has_these_elements_and_shares_its_memory(name, args, expected):
    x = matrix()
    made_view = call(name, x, *args)
    assert lists(made_view) == expected
    assert made_view.is_alias_of(x)


def test_writing_through_a_view_of_a_view_changes_the_root():
    x = matrix()
    call("fill_.Scalar", call("select.int", call("t", x), 0, 1), 9)
    assert lists(x) == [[0, 9, 2], [3, 9, 5]]


def test_several_views_come_as_a_list():
    x = matrix()
    assert [lists(v) for v in call("unbind.int", x, 1)] == [[0, 3], [1, 4], [2, 5]]
    assert [lists(v) for v in call("split.Tensor", x, 2, 1)] == [[[0, 1], [3, 4]], [[2], [5]]]
    assert [v.shape for v in call("chunk", x, 2)] == [(1, 3), (1, 3)]
    assert [v.shape for v in call("split_with_sizes", x, [0, 3], 1)] == [(2, 0), (2, 3)]


def test_reshape_copies_only_where_strides_allow_no_view():
    x = matrix()
    assert call("reshape", x, [6]).is_alias_of(x)
    turned = call("reshape", call("t", x), [6])
    assert lists(turned) == [0, 3, 1, 4, 2, 5]
    assert not turned.is_alias_of(x)


def test_strides_of_a_view_merge_and_split_blocks():
    assert views.viewed_strides((2, 3), (3, 1), (6,)) == (1,)
    assert views.viewed_strides((3, 2), (1, 3), (6,)) is None
    assert views.viewed_strides((3, 2), (1, 3), (3, 1, 2)) is not None
    assert views.viewed_strides((4, 6), (12, 2), (2, 2, 3, 2)) == (24, 12, 4, 2)


# fmt: off
ERRORS = [
    ("view", ([4, 2],), ShapeError, "view: shape [4, 2] does not hold 6 elements"),
    ("view", ([-1, -1],), ShapeError, "view: shape [-1, -1]: only one length can be -1"),
    ("view", ([-2, 3],), ShapeError, "view: shape [-2, 3]: -2 is not a length"),
    ("expand", ([2, 4],), ShapeError, "expand: shape [2, 3] does not expand to [2, 4]: 3 against 4 at dim 1"),
    ("permute", ([0],), ShapeError, "permute: [0] must name each of the 2 dimensions of shape [2, 3]"),
    ("transpose.int", (0, 2), DimError, "transpose: dim 2 is out of range for a tensor of 2 dimensions, which takes -2 to 1"),
    ("select.int", (1, 3), DimError, "select: index 3 is out of range for dim 1 of length 3"),
    ("slice.Tensor", (0, None, None, -1), ShapeError, "slice: step must be positive, got -1"),
    ("narrow", (1, 2, 2), ShapeError, "narrow: start 2 and length 2 reach outside dim 1 of length 3"),
    ("unfold", (1, 4, 1), ShapeError, "unfold: size must be 0 to 3, the length of dim 1, got 4"),
    ("as_strided", ([3], [3], 0), ShapeError,
     "as_strided: size [3], stride [3] and offset 0 reach element 6 of a storage with 6"),
    ("split_with_sizes", ([1, 1], 1), ShapeError,
     "split_with_sizes: sizes [1, 1] must add up to 3, the length of dim 1, and not be negative"),
]
# fmt: on


@pytest.mark.parametrize(("name", "args", "kind", "text"), ERRORS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_view_that_cannot_be_says_why(name, args, kind, text):
    assert refused(kind, call, name, matrix(), *args) == text


def test_a_view_that_needs_a_copy_points_to_reshape():
    assert refused(ShapeError, call, "view", call("t", matrix()), [6]) == (
        "view: shape [6] needs a copy of shape [3, 2] with strides [1, 3]; use reshape"
    )
