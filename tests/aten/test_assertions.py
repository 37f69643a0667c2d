"""What exported programs assert, and the second names of bitwise operators."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from turnout import tensor
from turnout.errors import ArgumentError

aten = turnout.ops.aten


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: aten._assert_async(tensor(0)), "_assert_async: the value that an exported program asserts is zero or false"),
        (lambda: aten._assert_async.msg(tensor([0.0]), "no rows"), "_assert_async: no rows"),
        (lambda: aten._assert_async(turnout.ones(2)), "_assert_async: expected a tensor with one element, got shape [2]"),
        (lambda: aten._functional_assert_async.msg(tensor(False), "no", turnout.ones(1)), "_assert_async: no"),
        (lambda: aten._assert_scalar(0, "no"), "_assert_scalar: no"),
        (lambda: aten._functional_assert_scalar(0.0, "no", turnout.ones(1)), "_assert_scalar: no"),
        (
            lambda: turnout.sym_constrain_range(5, min=6),
            "sym_constrain_range: expected a number from 6 to 9223372036854775807, got 5",
        ),
        (
            lambda: turnout.sym_constrain_range(5, min=6, max=2),
            "sym_constrain_range: expected min to be at most max, got min=6 and max=2",
        ),
        (
            lambda: turnout.sym_constrain_range_for_size(-1, max=3),
            "sym_constrain_range_for_size: expected a number from 0 to 3, got -1",
        ),
        (
            lambda: aten._functional_sym_constrain_range(7, 2, 6, turnout.ones(1)),
            "sym_constrain_range: expected a number from 2 to 6, got 7",
        ),
        (
            lambda: aten._functional_sym_constrain_range_for_size(7, None, 6, turnout.ones(1)),
            "sym_constrain_range_for_size: expected a number from 0 to 6, got 7",
        ),
        (lambda: turnout.vmap(lambda x: aten._assert_async.msg(x, "no rows"))(tensor([1, 0])), "_assert_async: no rows"),
        (
            lambda: turnout.vmap(lambda x: aten._assert_async(x))(turnout.ones(2, 3)),
            "_assert_async: expected a tensor with one element, got shape [3]",
        ),
    ],
)
def test_an_assertion_that_does_not_hold_says_so(call, text):
    assert refused(ArgumentError, call) == text


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"size": [2, 4]}, "shape [2, 4], got [2, 3]"),
        ({"stride": [1, 2]}, "strides [1, 2], got [3, 1]"),
        ({"dtype": turnout.float64}, "dtype float64, got float32"),
        ({"device": "meta"}, "device type meta, got cpu"),
        ({"layout": "sparse_coo"}, "layout sparse_coo, got strided"),
    ],
)
def test_facts_about_a_tensor_are_asserted(facts, text):
    assert refused(ArgumentError, aten._assert_tensor_metadata, turnout.ones(2, 3), **facts) == (
        f"_assert_tensor_metadata: expected a tensor of {text}"
    )


def test_what_holds_passes_and_what_is_not_known_is_taken_to_hold():
    aten._assert_async(tensor([3]))
    aten._assert_async(turnout.ones(1, device="meta"))
    aten._assert_scalar(1, "no")
    aten._assert_tensor_metadata(turnout.ones(2, 3), [2, 3], [3, 1], turnout.float32, device="cpu:0", layout="strided")
    assert aten._functional_assert_async.msg(tensor(1), "no", turnout.ones(2)).tolist() == [1, 1]
    turnout.sym_constrain_range(5, min=2, max=8)


@pytest.mark.parametrize("name", ["and", "or", "xor", "lshift", "rshift"])
@pytest.mark.parametrize("other", [3, tensor([1, 2, 0])], ids=["number", "tensor"])
def test_operators_by_pythons_names_are_those_of_the_tensor(name, other):
    x = tensor([5, 6, 12])
    overload = "Tensor" if isinstance(other, turnout.Tensor) else "Scalar"
    expected = getattr(x, f"__{name}__")(other).tolist()
    packet = getattr(turnout.ops.aten, f"__{name}__")
    assert getattr(packet, overload)(x, other).tolist() == expected
    written = x.clone()
    getattr(getattr(turnout.ops.aten, f"__i{name}__"), overload)(written, other)
    assert written.tolist() == expected


def test_attention_with_its_logarithms_ignores_rows_without_keys():
    q, k, v = (turnout.randn(1, 2, 3, 4, dtype=turnout.float64) for _ in range(3))
    mask = turnout.zeros(3, 3, dtype=turnout.float64)
    mask[1] = -float("inf")
    out, total = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)
    assert out[0, 0, 1].tolist() == [0, 0, 0, 0]
    assert total[0, 0, 1].item() == 0
    turnout.testing.assert_close(out, turnout.nn.functional.scaled_dot_product_attention(q, k, v, mask))


def test_the_backward_of_attention_gives_the_gradients_of_autograd():
    inputs = [turnout.randn(1, 2, n, 4, dtype=turnout.float64, requires_grad=True) for n in (3, 5, 5)]
    out, total = aten._scaled_dot_product_flash_attention_for_cpu(*inputs, scale=0.3)
    grad = turnout.randn(1, 2, 3, 4, dtype=turnout.float64)
    expected = turnout.autograd.grad(out, inputs, grad)
    plain = [each.detach() for each in (grad, *inputs, out, total)]
    found = aten._scaled_dot_product_flash_attention_for_cpu_backward(*plain, 0.0, False, scale=0.3)
    for each, other in zip(found, expected, strict=True):
        turnout.testing.assert_close(each, other)
    assert aten._functional_sym_constrain_range(5, 2, 8, turnout.ones(2)).tolist() == [1, 1]
    assert aten._functional_sym_constrain_range_for_size(0, None, None, turnout.ones(2)).tolist() == [1, 1]


def test_an_assertion_inside_vmap_holds_for_every_example():
    def checked(x):
        aten._assert_async.msg(x > 0, "not positive")
        aten._assert_tensor_metadata(x, [], [], turnout.float32)
        token = aten._functional_assert_async.msg(x, "zero", x)
        return aten._functional_sym_constrain_range(3, 1, 5, token)

    assert turnout.vmap(checked)(tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert turnout.vmap(turnout.vmap(checked))(tensor([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]
