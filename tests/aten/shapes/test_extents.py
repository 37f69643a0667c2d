"""Broadcasting, dimension numbers and layouts."""

from __future__ import annotations

import pytest
from few_kernels import made

from outcomes import refused
from turnout.errors import DimError, ShapeError
from turnout_aten.shapes import extents

pytestmark = pytest.mark.usefixtures("few")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), (2, 3)), ((), (2,), (2,)), ((0,), (1,), (0,)), ((4, 1, 3), (2, 1), (4, 2, 3))],
)
def test_shapes_broadcast_from_the_right_either_way_round(a, b, expected):
    assert extents.broadcast(a, b) == expected
    assert extents.broadcast(b, a) == expected


def test_shapes_that_do_not_broadcast_are_named_with_the_dim():
    assert refused(ShapeError, extents.broadcast, (2, 3), (2, 4)) == (
        "shapes [2, 3] and [2, 4] do not broadcast: 3 against 4 at dim 1"
    )


def test_dims_count_from_the_end_and_out_of_range_is_an_index_error():
    assert [extents.wrap_dim(d, 3) for d in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    assert extents.wrap_dim(-1, 0) == 0
    with pytest.raises(IndexError) as caught:
        extents.wrap_dim(3, 3)
    assert type(caught.value) is DimError
    assert str(caught.value) == "dim 3 is out of range for a tensor of 3 dimensions, which takes -3 to 2"


def test_a_dim_named_twice_is_refused():
    assert "dims [0, -2] name a dimension twice" in refused(ShapeError, extents.wrap_dims, (0, -2), 2)


def test_a_pointwise_result_keeps_the_layout_its_operands_agree_on():
    x = made([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (x.t() + x.t()).stride() == (1, 3)
    assert (x.t() + 1).stride() == (1, 3)


def test_the_first_operand_that_tells_decides_how_a_pointwise_result_lies():
    x = made([[1.0, 2.0], [3.0, 4.0]])
    assert (x.t() + x).stride() == (1, 2)
    assert (x + x.t()).stride() == (2, 1)
    assert (x[:, :1].expand(2, 2) + 1).stride() == (2, 1)
