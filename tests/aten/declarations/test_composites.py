"""Composite kernels over a backend of a dozen array kernels: factories, copies, random numbers, joining, gradients of views."""

from __future__ import annotations

import pytest
from few_kernels import lists, made

import turnout
from outcomes import refused
from turnout.errors import AliasError, ArgumentError, ShapeError, TurnoutError
from turnout.registry import find_operator

pytestmark = pytest.mark.usefixtures("few")


def call(name, *args, **kwargs):
    return find_operator(f"aten::{name}")(*args, **kwargs)


def test_factories_fill_what_empty_gives_on_the_device_asked_for():
    assert lists(turnout.zeros((2,), device="few")) == [0.0, 0.0]
    assert lists(turnout.ones((2,), dtype=turnout.int64, device="few")) == [1, 1]
    assert turnout.full((1,), 7, device="few").dtype is turnout.int64
    assert str(turnout.zeros((), device="few").device) == "few"
    assert lists(turnout.eye(2, device="few")) == [[1, 0], [0, 1]]


def test_arange_counts_with_exact_integers_or_in_the_default_dtype():
    assert lists(turnout.arange(4, device="few")) == [0, 1, 2, 3]
    assert lists(turnout.arange(5, 0, -2, device="few")) == [5, 3, 1]
    made_floats = turnout.arange(0, 1, 0.25, device="few")
    assert (lists(made_floats), made_floats.dtype) == ([0, 0.25, 0.5, 0.75], turnout.float32)
    assert "arange: step -1 leads away from end: start is 0, end is 3" in refused(
        ArgumentError, turnout.arange, 0, 3, -1, device="few"
    )


def test_new_tensors_take_device_and_dtype_from_the_argument():
    x = made([[1, 2]])
    for y in (x.new_zeros((3,)), call("empty_like", x), call("full_like", x, 2.5), x.new_ones((1,))):
        assert (y.device, y.dtype) == (x.device, turnout.int64)


def test_a_clone_keeps_a_dense_layout_and_contiguous_does_not():
    x = made([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).t()
    assert x.clone().stride() == (1, 3)
    assert x.contiguous().stride() == (2, 1)
    assert lists(x.clone()) == lists(x.contiguous()) == [[1, 4], [2, 5], [3, 6]]
    y = made([1.0])
    assert y.contiguous() is y


def test_to_returns_the_tensor_itself_where_nothing_changes():
    x = made([1.5, 2.5])
    assert x.to(turnout.float32) is x
    assert lists(x.to(turnout.int64)) == [1, 2]
    assert x.to(turnout.float32, copy=True) is not x


def test_copying_expands_and_converts_the_source():
    x = made([[0, 0], [0, 0]])
    x.copy_(made([1.9, -2.9]))
    assert lists(x) == [[1, -2], [1, -2]]
    assert refused(ShapeError, x.copy_, made([1, 2, 3])) == "copy_: 'src' of shape [3] does not expand to [2, 2]"


def test_writing_into_an_expanded_tensor_is_refused():
    assert "cannot write into an expanded tensor" in refused(AliasError, made([1.0]).expand(3).fill_, 2)


def test_a_resize_to_the_shape_that_it_has_is_no_write():
    x = made([1.0, 2.0, 3.0])
    saved = x._version
    x.resize_(3)
    call("resize_as_", x, made([0.0, 0.0, 0.0]))
    assert x._version == saved
    x.resize_(3, 1)
    assert x._version == saved + 1


def test_resize_keeps_the_elements_and_grows_the_shared_memory():
    x = made([1.0, 2.0, 3.0])
    alias = x.detach()
    x.resize_(2, 2)
    assert lists(x)[0] == [1, 2]
    assert lists(alias) == [1, 2, 3]


def test_masked_fill_keeps_the_dtype():
    x = made([1, 2, 3])
    assert lists(x.masked_fill(made([True, False, True]), 0)) == [0, 2, 0]
    x.masked_fill_(made([True, False, False]), 7)
    assert lists(x) == [7, 2, 3]


def test_one_number_is_read_and_more_are_refused():
    assert call("_local_scalar_dense", made([[2.5]])) == 2.5
    assert "expected a tensor with one element, got shape [2]" in refused(
        ArgumentError, call, "_local_scalar_dense", made([1, 2])
    )


def test_stack_and_repeat():
    x = made([1.0, 2.0])
    assert lists(turnout.stack([x, x], 1)) == [[1, 1], [2, 2]]
    assert lists(x.repeat(2, 2)) == [[1, 2, 1, 2]] * 2


def test_random_numbers_repeat_with_the_seed_and_lie_in_their_range():
    generator = turnout.Generator("few")
    draws = [lists(turnout.rand((50,), generator=generator.manual_seed(3), device="few")) for _ in range(2)]
    assert draws[0] == draws[1]
    assert all(0 <= value < 1 for value in draws[0])
    ints = lists(turnout.randint(3, 9, (60,), generator=generator, device="few"))
    assert set(ints) <= set(range(3, 9))
    assert lists(turnout.rand((50,), generator=generator, device="few")) != draws[0]


def test_dropout_in_evaluation_is_the_input_and_its_probability_is_checked():
    x = made([1.0, 2.0])
    assert turnout.dropout(x, 0.5, False) is x
    assert "dropout: p must lie between 0 and 1, got 1.5" in refused(TurnoutError, turnout.dropout, x, 1.5, True)


def test_gradients_of_views_put_the_gradient_where_the_view_was():
    assert lists(call("select_backward", made([1.0, 2.0]), [2, 2], 1, 0)) == [[1, 0], [2, 0]]
    assert lists(call("slice_backward", made([1.0, 2.0]), [5], 0, 1, 5, 2)) == [0, 1, 0, 2, 0]
    assert lists(call("diagonal_backward", made([5.0]), [2, 2], 1, 0, 1)) == [[0, 5], [0, 0]]
    assert lists(call("unfold_backward", made([[1.0, 1.0], [1.0, 1.0]]), [3], 0, 2, 1)) == [1, 2, 1]
    said = refused(ShapeError, call, "unfold_backward", made([1.0, 1.0]), [3], 0, 2, 1)
    assert said == "unfold_backward: grad_in has 1 dim, expected 2: those of the input, and the window"
