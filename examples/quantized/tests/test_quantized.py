"""Quantized tensors: values, views and copies, what is refused, and other keys beside theirs."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import turnout
from turnout.errors import ArgumentError, NoKernelError
from turnout.keys import KEYS
from turnout_aten.plugin_api import with_key
from turnout_quantized.kernels import MOVES, NO_MOVES
from turnout_quantized.public import QuantizedTensor, dequantize, quantize

VALUES = [[1.0, -2.0], [3.0, 0.5]]


@pytest.fixture
def x():
    return turnout.tensor(VALUES)


@pytest.fixture
def q(x):
    """Exact codes: every value is a multiple of the scale."""
    return quantize(x, 0.25, 3)


def keys(tensor):
    return [key for key in KEYS.names(tensor.keys) if key.startswith("Quantized")]


# ---- values


def test_the_codes_are_the_values_over_the_scale_from_the_zero_point_on(q):
    assert q.codes.tolist() == [[7, -5], [15, 5]]
    assert (q.codes.dtype, type(q.codes), keys(q.codes)) == (turnout.int8, turnout.Tensor, [])
    assert dequantize(q).tolist() == VALUES
    assert keys(q) == ["QuantizedCPU"]


def test_values_outside_of_the_range_become_its_ends():
    assert quantize(turnout.tensor([1000.0, -1000.0]), 1.0).codes.tolist() == [127, -128]


@pytest.mark.parametrize("values", [[-1.0, 2.0], [5.0, 7.0], [-3.0, -2.0], [0.0, 0.0], []])
def test_a_scale_that_is_chosen_has_all_values_and_an_exact_zero(values):
    q = quantize(turnout.tensor(values))
    assert -128 <= q.zero_point <= 127
    assert quantize(turnout.zeros(1), q.scale, q.zero_point).tolist() == [0.0]
    np.testing.assert_allclose(np.array(q.tolist()), values, atol=q.scale / 2 + 1e-6)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: quantize(turnout.tensor([1])), "quantize: expected floating-point values, got int64"),
        (lambda: quantize(turnout.ones(1), 0.0), "quantize: the scale is a positive number, got 0.0"),
        (lambda: quantize(turnout.ones(1), float("nan")), "quantize: the scale is a positive number, got nan"),
        (lambda: quantize(turnout.ones(1), 1.0, 300), "quantize: the zero point is a code from -128 to 127, got 300"),
        (lambda: quantize(turnout.tensor([float("inf")])), "quantize: no scale fits values from 0.0 to inf"),
    ],
)
def test_what_cannot_be_quantized_is_refused(make, text):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert str(caught.value) == text


def test_it_prints_its_values(q):
    assert repr(q) == ("quantized([[ 1.0000, -2.0000],\n           [ 3.0000,  0.5000]], scale=0.25, zero_point=3)")
    assert repr(q[0, 0]) == "quantized(1., scale=0.25, zero_point=3)"


def test_what_reads_the_memory_without_an_operator_gives_the_values(q):
    assert q.tolist() == VALUES
    assert (q[0, 1].item(), float(q[0, 1])) == (-2.0, -2.0)
    assert np.asarray(q).tolist() == VALUES
    assert q.numpy(force=True).tolist() == VALUES
    for read, name in ((q.numpy, "numpy"), (q.__dlpack__, "__dlpack__")):
        with pytest.raises(ArgumentError, match=f"^{name}: a quantized tensor cannot share its values; call dequantize"):
            read()


# ---- rules


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b, lambda a, b: turnout.add(a, b, alpha=2), lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a @ b,
        lambda a, b: turnout.nn.functional.linear(a, b), lambda a, b: turnout.nn.functional.relu(a),
        lambda a, b: turnout.mm(a.t(), b[:, :1]),
    ],
)  # fmt: skip
def test_a_rule_gives_the_result_of_the_values_as_a_quantized_tensor(q, x, call):
    other = turnout.tensor([[0.5, 1.0], [-0.25, 2.0]])
    made, expected = call(q, quantize(other, 0.25)), call(x, other)
    assert isinstance(made, QuantizedTensor)
    assert keys(made) == ["QuantizedCPU"]
    np.testing.assert_allclose(np.array(made.tolist()), np.array(expected.tolist()), atol=made.scale / 2 + 1e-6)


def test_a_linear_layer_with_a_plain_bias_is_quantized(q, x):
    bias = turnout.tensor([1.0, -1.0])
    made = turnout.nn.functional.linear(q, q, bias)
    expected = turnout.nn.functional.linear(x, x, bias)
    np.testing.assert_allclose(np.array(made.tolist()), np.array(expected.tolist()), atol=made.scale / 2 + 1e-6)


def test_a_sum_of_many_products_does_not_overflow_the_codes():
    ones = quantize(turnout.ones(1, 1000), 1 / 127)
    [[found]] = (ones @ ones.t()).tolist()
    assert found == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("call", [lambda a, b: a + b, lambda a, b: b * a, lambda a, b: a @ b])
def test_beside_a_plain_tensor_the_result_is_plain(q, x, call):
    made = call(q, x)
    assert type(made) is turnout.Tensor
    assert made.tolist() == call(x, x).tolist()


# ---- views and copies


@pytest.mark.parametrize(
    "make",
    [
        lambda q: q.t(), lambda q: q[0], lambda q: q[:, 1:], lambda q: q.view(4), lambda q: q.reshape(4, 1),
        lambda q: q.flatten(), lambda q: q.unsqueeze(0), lambda q: q[None].squeeze(0),
        lambda q: q.transpose(0, 1), lambda q: q.permute(1, 0),
        lambda q: q[0].expand(3, 2), lambda q: q.diagonal(), lambda q: q.unfold(0, 1, 1), lambda q: q.detach(),
        lambda q: q.split(1)[1], lambda q: q.unbind()[1], lambda q: q.chunk(2)[0], lambda q: q.as_strided((2,), (2,), 1),
    ],
)  # fmt: skip
def test_a_view_keeps_scale_and_zero_point_and_shares_the_codes(q, x, make):
    view = make(q)
    assert isinstance(view, QuantizedTensor)
    assert (view.scale, view.zero_point) == (0.25, 3)
    assert view.tolist() == make(x).tolist()
    assert view.is_alias_of(q)
    q.codes.add_(1)
    assert view.tolist() == make(x + 0.25).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda q: q.clone(), copy.deepcopy, copy.copy, lambda q: pickle.loads(pickle.dumps(q)), lambda q: q.t().contiguous().t(),
        lambda q: q.flip(0).flip(0), lambda q: q[[0, 1]], lambda q: q.index_select(0, turnout.tensor([0, 1])),
        lambda q: q.roll(2, 0), lambda q: q.to("cpu", copy=True), lambda q: q.repeat(1, 1),
    ],
)  # fmt: skip
def test_a_copy_keeps_them_too(q, make):
    made = make(q)
    assert isinstance(made, QuantizedTensor)
    assert (made.scale, made.zero_point, made.tolist(), keys(made)) == (0.25, 3, VALUES, ["QuantizedCPU"])


def test_every_view_operator_keeps_them_or_is_refused():
    """No view operator of the standard ones gives the codes as a plain tensor."""
    views = [op for packet in dir(turnout.ops.aten) for op in getattr(turnout.ops.aten, packet) if op.schema.is_view]
    assert len(views) > 60
    for op in views:
        entry = op.table().get("QuantizedCPU")
        composite = "CompositeImplicitAutograd" in op.kernels
        assert composite or entry.reason == "backend fallback", op.qualified_name
    assert {f"aten::{name}" for name in MOVES}.isdisjoint(NO_MOVES)


def test_tensors_with_one_scale_are_joined(q, x):
    for join in (turnout.cat, turnout.stack):
        made = join([q, q])
        assert (made.scale, made.zero_point, made.tolist()) == (0.25, 3, join([x, x]).tolist())
    for other in (quantize(x, 0.5, 3), x):
        with pytest.raises(ArgumentError, match=r"^aten::cat: the tensors are not all quantized with one scale and zero point"):
            turnout.cat([q, other])


# ---- what is refused


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        (lambda q, x: q.exp(), "aten::exp"), (lambda q, x: q.sum(), "aten::sum"), (lambda q, x: q + 1, "aten::add.Scalar"),
        (lambda q, x: q.add_(q), "aten::add_.Tensor"), (lambda q, x: q.zero_(), "aten::zero_"),
        (lambda q, x: q.copy_(x), "aten::copy_"), (lambda q, x: x.copy_(q), "aten::copy_"),
        (lambda q, x: turnout.add(q, q, out=x), "aten::add.out"), (lambda q, x: turnout.where(q > q, q, q), "aten::gt.Tensor"),
        (lambda q, x: turnout.zeros_like(q), "aten::zeros_like"), (lambda q, x: q == q, "aten::eq.Tensor"),
        (lambda q, x: q.softmax(0), "aten::_softmax"), (lambda q, x: q.view(turnout.uint8), "aten::view.dtype"),
        (lambda q, x: q.to(turnout.float64), "aten::_to_copy to float64"),
    ],
)  # fmt: skip
def test_an_operator_without_a_rule_says_what_to_do_and_changes_nothing(q, x, call, operator):
    with pytest.raises(NoKernelError) as caught:
        call(q, x)
    assert str(caught.value) == (
        f"{operator}: no kernel for quantized tensors\n  to fix  call it with x.dequantize(), and quantize the result"
    )
    assert (q.tolist(), x.tolist()) == (VALUES, VALUES)


def test_a_tensor_with_the_key_and_no_scale_is_refused():
    bare = with_key(turnout.zeros(2, dtype=turnout.int8), "Quantized")
    with pytest.raises(ArgumentError) as caught:
        bare.exp()
    assert str(caught.value) == (
        "aten::exp: a tensor has the key Quantized, but no scale\n  to fix  make it with turnout.quantized.quantize"
    )


def test_a_plain_tensor_cannot_be_dequantized(x):
    with pytest.raises(NoKernelError, match=r"^quantized::dequantize: no kernel for CPU"):
        dequantize(x)


def test_plain_tensors_compute_as_ever_where_the_state_includes_the_key(x):
    with turnout.state.include("Quantized"):
        assert (x + x).tolist() == [[2.0, -4.0], [6.0, 1.0]]


# ---- other keys


def test_a_plain_weight_beside_it_gets_its_gradient(q):
    w = turnout.ones(1, 2, requires_grad=True)
    (w @ q).sum().backward()
    assert w.grad.tolist() == [[-1.0, 3.5]]


def test_vmap_of_a_rule_gives_the_rule_of_all_examples(q):
    made = turnout.vmap(lambda row: turnout.nn.functional.relu(row))(q)
    assert made.tolist() == [[1.0, 0.0], [3.0, 0.5]]


def test_a_trace_has_the_operators_and_replays(x):
    def step(x):
        return dequantize(quantize(x, 0.25).relu())

    graph = turnout.trace(step)(x)
    assert [line.partition(" = turnout.ops.")[2].partition("(")[0] for line in str(graph).splitlines()[1:-1]] == [
        "quantized.quantize.default",
        "aten.relu.default",
        "quantized.dequantize.default",
    ]
    assert graph(x).tolist() == [[1.0, 0.0], [3.0, 0.5]]


def test_it_is_on_other_devices(q):
    device = pytest.importorskip("turnout_opencl.devices", reason="pyopencl is not installed")
    if not device.found_devices():
        pytest.skip("there is no OpenCL device")
    there = q.to("opencl")
    assert keys(there) == ["QuantizedOpenCL"]
    made = there @ there
    assert (made.device.type, keys(made)) == ("opencl", ["QuantizedOpenCL"])
    assert made.tolist() == (q @ q).tolist()
    assert there.to("cpu").tolist() == VALUES


def test_deactivation_takes_everything_back(q):
    turnout.plugins.deactivate("quantized")
    with pytest.raises(NoKernelError, match=r"^aten::relu: no kernel for QuantizedCPU"):
        q.relu()
    assert quantize(turnout.tensor(VALUES), 0.25, 3).relu().tolist() == [[1.0, 0.0], [3.0, 0.5]]
    assert q.relu().tolist() == [[1.0, 0.0], [3.0, 0.5]]
