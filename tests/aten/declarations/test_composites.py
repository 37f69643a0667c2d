"""Composite kernels over a backend of a dozen array kernels: what shortcuts and operator cases do not reach."""

from __future__ import annotations

import pytest
from few_kernels import lists, made

import turnout

pytestmark = pytest.mark.usefixtures("few")


def test_to_returns_the_tensor_itself_where_nothing_changes():
    x = made([1.5, 2.5])
    assert x.to(turnout.float32) is x
    assert lists(x.to(turnout.int64)) == [1, 2]
    assert x.to(turnout.float32, copy=True) is not x


def test_the_gradient_of_a_diagonal_lies_where_the_diagonal_was():
    assert lists(turnout.ops.aten.diagonal_backward(made([5.0]), [2, 2], 1, 0, 1)) == [[0, 5], [0, 0]]


def test_a_resize_to_the_shape_that_it_has_is_no_write():
    x = made([1.0, 2.0, 3.0])
    saved = x._version
    x.resize_(3)
    x.resize_as_(made([0.0, 0.0, 0.0]))
    assert x._version == saved
    turned = made([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).t()
    assert turned.resize_(3, 2).stride() == turned.resize_as_(made([[0.0] * 2] * 3)).stride() == (1, 3)
    assert turned.resize_(3, 2).tolist() == [[1, 4], [2, 5], [3, 6]]
    x.resize_(3, 1)
    assert x._version == saved + 1


def test_resize_keeps_the_elements_and_grows_the_shared_memory():
    x = made([1.0, 2.0, 3.0])
    alias = x.detach()
    x.resize_(2, 2)
    assert lists(x)[0] == [1, 2]
    assert lists(alias) == [1, 2, 3]
