"""`x.data = y`: a tensor takes over another's memory."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from turnout.errors import AliasError, CallError, DTypeError


def test_data_set_to_a_tensor_shares_its_memory_and_takes_its_shape_dtype_and_strides():
    x = turnout.ones(2, 2)
    y = turnout.arange(6.0, dtype=turnout.float64).reshape(2, 3)
    x.data = y.t()
    assert (x.shape, x.stride(), x.dtype) == ((3, 2), (1, 3), turnout.float64)
    x[0, 1] = 9.0
    assert y.tolist() == [[0.0, 1.0, 2.0], [9.0, 4.0, 5.0]]
    assert x.is_alias_of(y)


def test_history_grad_and_requires_grad_stay_when_data_is_set():
    x = turnout.ones(2, requires_grad=True)
    (x * x).sum().backward()
    node = (doubled := x * 2).grad_fn
    x.data = turnout.full((2,), 3.0)
    assert (x.tolist(), x.requires_grad, x.is_leaf, x.grad.tolist()) == ([3.0, 3.0], True, True, [2.0, 2.0])
    doubled.data = turnout.zeros(2)
    assert (doubled.tolist(), doubled.grad_fn) == ([0.0, 0.0], node)
    x.grad = None
    doubled.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_augmented_assignment_to_data_writes_into_the_tensor():
    x = turnout.ones(2, requires_grad=True)
    memory = x.numpy(force=True)
    x.data -= 0.5
    assert (x.tolist(), memory.tolist(), x.requires_grad, x._version) == ([0.5, 0.5], [0.5, 0.5], True, 1)


def test_a_tensor_that_was_saved_before_its_data_was_set_is_refused_at_backward():
    x = turnout.ones(2, requires_grad=True)
    y = (x * x).sum()
    x.data = turnout.zeros(2)
    with pytest.raises(AliasError, match=r"its saved '.*', a tensor float32 \[2\], was changed in place"):
        y.backward()


def test_the_tensor_whose_memory_was_taken_over_stays_as_it_was_until_it_is_written():
    x, y = turnout.ones(2), turnout.full((2,), 3.0, requires_grad=True)
    product = (y * y).sum()
    x.data = y
    product.backward(retain_graph=True)
    assert y.grad.tolist() == [6.0, 6.0]
    x.add_(1)
    assert "was changed in place" in refused(AliasError, product.backward)


def test_views_of_the_old_memory_keep_it_and_their_gradient():
    x = turnout.ones(4, requires_grad=True)
    part = x[1:3]
    x.data = turnout.zeros(4)
    assert (part.tolist(), part._base) == ([1.0, 1.0], None)
    (part * part).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_a_view_whose_data_is_set_leaves_its_base():
    base = turnout.ones(4, requires_grad=True)
    part = base[:2]
    part.data = turnout.full((2,), 7.0)
    assert (part.tolist(), part._base, base.tolist()) == ([7.0, 7.0], None, [1.0, 1.0, 1.0, 1.0])
    part.sum().backward()
    assert base.grad.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_data_set_twice_to_one_memory_is_newer_each_time():
    x, y = turnout.ones(2), turnout.zeros(4)
    versions = [x._version]
    for part in (y[:2], y[2:], y[1:3]):
        x.data = part
        versions.append(x._version)
    assert versions == sorted(set(versions))
    x.fill_(5)
    assert y.tolist() == [0.0, 5.0, 5.0, 0.0]


def test_data_moves_a_tensor_to_another_device():
    x = turnout.ones(2, requires_grad=True)
    x.data = turnout.ones(3, device="meta")
    assert (x.device.type, x.requires_grad, (x * 2).shape) == ("meta", True, (3,))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda x: 3, CallError, "data must be a tensor, not int"),
        (lambda x: None, CallError, "data must be a tensor, not NoneType"),
        (
            lambda x: turnout.ones(2, dtype=turnout.int64),
            DTypeError,
            "data of a tensor that requires a gradient must be floating-point or complex, this one is int64",
        ),
    ],
)
def test_data_that_cannot_be_set_is_refused_and_the_tensor_stays(make, error, text):
    x = turnout.ones(2, requires_grad=True)
    with pytest.raises(error) as caught:
        x.data = make(x)
    assert str(caught.value) == text
    assert x.tolist() == [1.0, 1.0]


def test_data_is_not_exchanged_between_inference_tensors_and_others():
    x = turnout.ones(2)
    with turnout.inference_mode():
        inference = turnout.zeros(2)
        other = turnout.ones(2)
        other.data = inference
        assert other.tolist() == [0.0, 0.0]
    with pytest.raises(AliasError) as caught:
        x.data = inference
    assert str(caught.value) == (
        "data: normal tensors and inference tensors cannot take over each other's memory; clone() outside inference_mode"
    )


def test_data_is_not_set_inside_vmap():
    def program(x):
        y = turnout.ones(2)
        y.data = x
        return y

    assert refused(AliasError, lambda: turnout.vmap(program)(turnout.ones(3, 2))) == (
        "data cannot be set inside vmap; write with copy_() instead"
    )
