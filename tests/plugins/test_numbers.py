"""Mixing numbers and tensors: NumPy's wherever a number may stand, those that do not fit, and long sums in narrow dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused
from random_programs import numbers
from turnout import Tensor
from turnout import array_api as xp
from turnout.errors import CallError, DTypeError, RangeError

SCALARS = [np.float32(2), np.float64(2), np.float16(2), np.int8(2), np.int64(2), np.uint8(2), np.bool_(True), np.longdouble(2)]


@pytest.mark.parametrize("number", SCALARS, ids=lambda n: type(n).__name__)
def test_a_numpy_scalar_on_either_side_gives_a_tensor_of_the_dtype_of_a_python_number(number: Any) -> None:
    python = float(number) if isinstance(number, np.longdouble) else number.item()
    for dtype in (turnout.float32, turnout.float16, turnout.int8):
        x = turnout.ones(3, dtype=dtype)
        for found, expected in ((x + number, x + python), (number * x, python * x), (x <= number, x <= python)):
            assert isinstance(found, Tensor)
            assert found.dtype is expected.dtype
            assert found.tolist() == expected.tolist()


def test_gradients_are_recorded_through_an_operator_with_a_numpy_scalar() -> None:
    w = turnout.ones(2, requires_grad=True)
    (np.float64(3) * w * np.float32(2)).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [6.0, 6.0]


def test_an_operator_in_place_with_a_numpy_scalar_or_an_array_writes_into_the_tensor() -> None:
    x = y = turnout.ones(2)
    y += np.float32(3)
    y *= np.array([1.0, 2.0])
    assert x is y
    assert x.tolist() == [4.0, 8.0]


def test_a_tensor_and_an_array_give_a_tensor_and_an_array_and_a_tensor_an_error() -> None:
    w = turnout.ones(2, requires_grad=True)
    made = w * np.array([2, 3])
    assert (made.dtype, made.tolist(), made.requires_grad) == (turnout.float32, [2.0, 3.0], True)
    assert refused(CallError, lambda: np.array([2.0, 3.0]) * w) == (
        "an operator with ndarray on the left and Tensor on the right: either library could compute it\n"
        "  to fix  make the array a tensor with turnout.from_numpy(array), or the tensor an array with tensor.numpy()"
    )


TOO_WIDE = [
    lambda x, n: x + n, lambda x, n: n * x, lambda x, n: x & n, lambda x, n: x == n, lambda x, n: x.fill_(n),
    lambda x, n: turnout.full((2,), n), lambda x, n: turnout.where(x == 1, n, 0), lambda x, n: x.add(x, alpha=n),
    lambda x, n: x.masked_fill(x == 1, n), lambda x, n: turnout.arange(0, n, 2**62), lambda x, n: turnout.scalar_tensor(n),
]  # fmt: skip


@pytest.mark.parametrize("call", TOO_WIDE)
@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**5000], ids=["above", "below", "long"])
def test_an_int_of_more_than_64_bits_is_an_error_everywhere(call: Any, number: int) -> None:
    assert issubclass(RangeError, OverflowError)
    said = refused(RangeError, call, turnout.ones(2, dtype=turnout.int64), number)
    assert "must be a float or an int in -2**63 to 2**64 - 1, got int " in said


NOT_INT64 = [
    ("x.sum(N)", "aten::sum.dim_IntList: argument 'dim'"),
    ("x.sum([0, N])", "aten::sum.dim_IntList: argument 'dim'"),
    ("x.softmax(N)", "aten::softmax.int: argument 'dim'"),
    ("x.tensor_split(N)", "aten::tensor_split.sections: argument 'sections'"),
    ("x.roll(N, 0)", "aten::roll: argument 'shifts'"),
    ("x.view(N, 1)", "aten::view: argument 'size'"),
    ("turnout.zeros(N)", "aten::zeros: argument 'size'"),
    ("x[::abs(N)]", "aten::slice.Tensor: argument 'step'"),
]


@pytest.mark.parametrize(("call", "where"), NOT_INT64)
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1], ids=["above", "below"])
def test_an_int_that_int64_does_not_hold_is_refused_where_an_operator_takes_an_int(call: str, where: str, number: int) -> None:
    said = refused(RangeError, eval, call, {"x": turnout.ones(2, 3), "turnout": turnout, "N": number})
    got = abs(number) if "abs" in call else number
    assert said.split("\n")[0] == f"{where} must be an int in -2**63 to 2**63 - 1, got int {got}"


def test_as_many_decimals_as_no_float_has_leave_no_number() -> None:
    for decimals in (400, -400):
        assert turnout.tensor([1.5, 0.0]).round(decimals=decimals).isnan().all()


REFUSED = [
    ("turnout.full((1,), 300, dtype=turnout.uint8)", "full: argument 'fill_value' is 300", "uint8 (0 to 255)"),
    ("turnout.full((1,), 1e300)", "full: argument 'fill_value' is 1e+300",
     "float32 (-3.4028234663852886e+38 to 3.4028234663852886e+38)"),
    ("turnout.tensor([300], dtype=turnout.uint8)", "tensor: argument 'data' is 300", "uint8 (0 to 255)"),
    ("turnout.tensor([float('nan')], dtype=turnout.int8)", "tensor: argument 'data' is nan", "int8 (-128 to 127)"),
    ("turnout.tensor([10**5000], dtype=turnout.int8)", "tensor: argument 'data' is an int of 16610 bits", "int8 (-128 to 127)"),
    ("b.fill_(-256)", "fill_: argument 'value' is -256", "uint8 (0 to 255)"),
    ("b.__setitem__(0, 300)", "fill_: argument 'value' is 300", "uint8 (0 to 255)"),
    ("b.masked_fill(b == 1, 300)", "masked_fill: argument 'value' is 300", "uint8 (0 to 255)"),
    ("b.index_fill(0, i, 300)", "index_fill: argument 'value' is 300", "uint8 (0 to 255)"),
    ("b.scatter(0, i, 300)", "scatter: argument 'value' is 300", "uint8 (0 to 255)"),
    ("turnout.where(b == 1, b, 300)", "where: argument 'other' is 300", "uint8 (0 to 255)"),
    ("b.add(b, alpha=300)", "add: argument 'alpha' is 300", "uint8 (0 to 255)"),
    ("b.sub_(b, alpha=300)", "sub: argument 'alpha' is 300", "uint8 (0 to 255)"),
    ("b.pow(256)", "pow: argument 'exponent' is 256", "uint8 (0 to 255)"),
    ("b.clamp(min=300)", "clamp: argument 'min' is 300", "uint8 (0 to 255)"),
    ("b.clamp_max(-1)", "clamp: argument 'max' is -1", "uint8 (0 to 255)"),
    ("F.pad(b, (1, 1), value=300)", "constant_pad_nd: argument 'value' is 300.0", "uint8 (0 to 255)"),
    ("F.hardtanh(b, 0, 300)", "hardtanh: argument 'max_val' is 300", "uint8 (0 to 255)"),
    ("F.threshold(b, 300, 0)", "threshold: argument 'threshold' is 300", "uint8 (0 to 255)"),
    ("turnout.linspace(0, 300, 4, dtype=turnout.uint8)", "linspace: argument 'end' is 300", "uint8 (0 to 255)"),
    ("turnout.arange(2**63)", "arange: argument 'end' is 9223372036854775808",
     "int64 (-9223372036854775808 to 9223372036854775807)"),
    ("turnout.randint(0, 300, (1,), dtype=turnout.uint8)", "randint: argument 'high - 1' is 299", "uint8 (0 to 255)"),
    ("turnout.randint_like(b, -1, 3)", "randint_like: argument 'low' is -1", "uint8 (0 to 255)"),
    ("b.random_(0, 257)", "random_: argument 'to - 1' is 256", "uint8 (0 to 255)"),
    ("turnout.randperm(300, dtype=turnout.uint8)", "randperm: argument 'n - 1' is 299", "uint8 (0 to 255)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says", "room"), REFUSED, ids=[row[0] for row in REFUSED])
@pytest.mark.parametrize("device", ["cpu", "meta", "opencl"])
def test_a_number_that_its_dtype_cannot_hold_is_an_error(text: str, says: str, room: str, device: str, need_device: Any) -> None:
    need_device(device)
    b = turnout.ones(3, dtype=turnout.uint8, device=device)
    i = turnout.zeros(1, dtype=turnout.int64, device=device)
    said = refused(RangeError, eval, text, {"turnout": turnout, "b": b, "i": i, "F": turnout.nn.functional})
    assert said == f"{says}, which does not fit in {room}; choose another number or a wider dtype"


def test_a_bound_that_changes_nothing_is_no_error_and_a_negative_int_wraps_around_in_unsigned_dtypes() -> None:
    b = turnout.tensor([0, 100, 255], dtype=turnout.uint8)
    assert b.clamp(min=-1, max=300).tolist() == b.clamp_max(300).tolist() == b.clamp_min(-1).tolist() == [0, 100, 255]
    assert turnout.full((1,), -1, dtype=turnout.uint8).tolist() == turnout.tensor([-1], dtype=turnout.uint8).tolist() == [255]


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_integers_are_drawn_from_any_range_and_evenly(device: str, need_device: Any) -> None:
    need_device(device)
    turnout.manual_seed(0)
    for low, high, dtype in (
        (-(2**62), 2**62, turnout.int64), (-(2**63), 0, turnout.int64), (-5, 2**63 - 1, turnout.int64),
        (-(2**63), 2**63 - 1, turnout.int64), (0, 3 * 2**61, turnout.int64), (0, 2**63 - 1, turnout.uint64),
        (0, 2**24 + 2, turnout.float32), (-(2**63), 2**63 - 1, turnout.float64),
    ):  # fmt: skip
        drawn = turnout.randint(low, high, (2000,), dtype=dtype, device=device).tolist()
        assert all(low <= n < high for n in drawn)
        quarters = [sum(4 * (n - low) // (high - low) == k for n in drawn) for k in range(4)]
        assert all(300 < n < 700 for n in quarters), (low, high, quarters)
    drawn = turnout.empty(2000, dtype=turnout.int64).random_(-(2**63), None).tolist()
    assert min(drawn) < 0 < max(drawn)
    assert sorted(set(turnout.empty(99, dtype=turnout.bool).random_().tolist())) == [False, True]


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_long_sums_keep_their_precision_along_every_dim(device: str, need_device: Any) -> None:
    need_device(device)
    n = 400_000
    rows = turnout.full((n, 2), 0.1, device=device)
    for x, dim in ((rows, 0), (rows.T, 1), (turnout.full((2, n), 0.1, device=device), 1)):
        assert x.sum(dim).tolist() == pytest.approx([n / 10] * 2, rel=1e-6)
        assert x.mean(dim).tolist() == pytest.approx([0.1] * 2, rel=1e-6)
        assert x.norm(dim=dim).tolist() == pytest.approx([0.1 * n**0.5] * 2, rel=5e-6)
        assert x.cumsum(dim).select(dim, -1).tolist() == pytest.approx([n / 10] * 2, rel=1e-6)
        growing = turnout.full_like(x, 1.0000001).cumprod(dim).select(dim, -1)
        assert growing.tolist() == pytest.approx([float(np.float32(1.0000001)) ** n] * 2, rel=1e-6)
        assert x.logcumsumexp(dim).select(dim, -1).tolist() == pytest.approx([0.1 + np.log(n)] * 2, rel=1e-6)


def test_two_byte_floats_add_up_in_float32_where_an_index_repeats() -> None:
    index, ones = turnout.zeros(5000, dtype=turnout.int64), turnout.ones(5000, dtype=turnout.float16)
    zero = turnout.zeros(1, dtype=turnout.float16)
    assert zero.scatter_add(0, index, ones).tolist() == [5000.0]
    assert zero.index_add(0, index, ones).tolist() == [5000.0]
    assert zero.index_put((index,), ones, accumulate=True).tolist() == [5000.0]


def test_a_float_power_of_integers_is_a_float_and_a_float_quotient_keeps_its_digits() -> None:
    x = turnout.tensor([3], dtype=turnout.int8)
    assert (x**2.0).dtype is turnout.float32
    assert (x**2).dtype is turnout.int8
    assert (0.3 // turnout.tensor([0.1], dtype=turnout.float64)).tolist() == [2.0]


def test_bools_have_powers_and_bounds_and_empty_complex_tensors_a_softmax() -> None:
    b = turnout.tensor([True, False])
    assert (b**True).tolist() == [True, False]
    assert (b**False).tolist() == [True, True]
    assert b.clamp(min=turnout.tensor(True)).tolist() == [True, True]
    empty = turnout.empty(0, 3, dtype=turnout.complex64)
    assert turnout.softmax(empty, 1).shape == turnout.cummax(empty, 1).values.shape == (0, 3)
    assert turnout.true_divide(turnout.ones(1), 2.0, out=turnout.empty(1)).tolist() == [0.5]
    assert turnout.mul(2, turnout.ones(1)).tolist() == turnout.sub(3, turnout.ones(1)).tolist() == [2.0]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: turnout.argmax(turnout.ones(3), out=turnout.empty((), dtype=turnout.int16)),
         "aten::argmax.out: the result has dtype int64, which cannot be written into int16"),
        (lambda: turnout.all(turnout.ones(3), out=turnout.empty((), dtype=turnout.int64)),
         "aten::all.all_out: the result has dtype bool, which cannot be written into int64"),
    ],
)  # fmt: skip
def test_indices_and_truths_are_written_into_their_own_dtype_only(call: Any, says: str) -> None:
    assert refused(DTypeError, call) == says


def test_the_array_api_repeats_by_any_integer_dtype_returns_tuples_and_takes_numpy_scalars() -> None:
    x = turnout.arange(3)
    for dtype in (turnout.int8, turnout.int16, turnout.uint8, turnout.uint16, turnout.uint32, turnout.uint64):
        assert xp.repeat(x, turnout.tensor([1, 0, 2], dtype=dtype)).tolist() == [0, 2, 2]
    assert type(xp.meshgrid(x, x)) is tuple
    assert type(xp.broadcast_arrays(x, x)) is tuple
    assert xp.add(x, np.int8(2)).dtype is turnout.int64
    assert xp.result_type(x, np.float32(2)) is xp.result_type(x, 2.0)


# ---- where a schema says Tensor

A = turnout.ops.aten
IN_PLACE_OF_TENSORS = {
    "on the right": (lambda x: A.add.Tensor(x, 1e-6), "float32", [1.0, 2.0]),
    "on the left": (lambda x: A.sub.Tensor(5, x), "float32", [4.0, 3.0]),
    "of a higher kind": (lambda x: A.mul.Tensor(x.to(turnout.int32), 1.5), "float32", [1.5, 3.0]),
    "beside 0 dims": (lambda x: A.mul.Tensor(x[0].to(turnout.float16), 1.5), "float16", 1.5),
    "left of bytes": (lambda x: A.add.Tensor(300, x.to(turnout.uint8)), "uint8", [45, 46]),
    "left of bytes in a quotient": (lambda x: A.div.Tensor(300, x.to(turnout.uint8)), "float32", [300.0, 150.0]),
    "left, too large": (lambda x: A.sub.Tensor(1e300, x), "float32", [float("inf")] * 2),
    "with a mode": (lambda x: A.div.Tensor_mode(7, x, rounding_mode="floor"), "float32", [7.0, 3.0]),
    "on both sides": (lambda x: A.add.Tensor(1, 2), "int64", 3),
    "in place": (lambda x: A.mul_.Tensor(x.clone(), 3), "float32", [3.0, 6.0]),
    "with out": (lambda x: A.sub.out(1.5, x, out=turnout.empty(2)), "float32", [0.5, -0.5]),
    "copied": (lambda x: A.copy_.default(x.to(turnout.int64), 2.0**53), "int64", [2**53] * 2),
}


@pytest.mark.parametrize("device", ["cpu", "opencl", "meta"])
@pytest.mark.parametrize("where", IN_PLACE_OF_TENSORS)
def test_a_number_stands_where_a_schema_says_tensor_and_gives_way(where: str, device: str, need_device: Any) -> None:
    need_device(device)
    call, dtype, expected = IN_PLACE_OF_TENSORS[where]
    if device == "meta" and where == "with out":
        pytest.skip("the tensor that is written is on the cpu")
    found = call(turnout.tensor([1.0, 2.0], device=device if where != "with out" else "cpu"))
    assert found.dtype.name == dtype
    if found.device.type != "meta":
        assert np.allclose(found.tolist(), expected)


def test_a_number_in_the_place_of_a_tensor_has_gradients_tangents_and_batches_beside_it() -> None:
    x = turnout.tensor([1.0, 2.0], requires_grad=True)
    A.div.Tensor(6, A.add.Tensor(x, 1)).sum().backward()
    assert x.grad.tolist() == pytest.approx([-1.5, -6 / 9])
    value, tangent = turnout.func.jvp(lambda x: A.sub.Tensor(1.0, A.mul.Tensor(x, 2)), (x.detach(),), (turnout.ones(2),))
    assert (value.tolist(), tangent.tolist()) == ([-1.0, -3.0], [-2.0, -2.0])
    assert turnout.vmap(lambda x: A.sub.Tensor(1.0, A.mul.Tensor(x, 2)))(x.detach()).tolist() == [-1.0, -3.0]
    with turnout.autocast("cpu"):
        assert A.add.Tensor(turnout.ones(2, dtype=turnout.bfloat16), 1.5).dtype is turnout.bfloat16


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: A.exp.default(1.0), "aten::exp: argument 'self' must be Tensor, got float 1.0"),
        (lambda x: A.maximum.default(x, 1.0), "aten::maximum: argument 'other' must be Tensor, got float 1.0"),
        (lambda x: A.add_.Tensor(1.0, x), "aten::add_.Tensor: argument 'self' must be Tensor, got float 1.0"),
        (lambda x: A.add.Tensor(x, "1"), "aten::add.Tensor: argument 'other' must be Tensor, got str '1'"),
    ],
)
def test_only_arithmetic_and_copies_take_a_number_for_a_tensor_and_none_is_written(call: Any, says: str) -> None:
    assert refused(CallError, call, turnout.ones(2)) == says


# ---- drawn from a seed


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_a_number_is_rounded_to_two_byte_floats_where_pytorch_rounds_it(
    device: str, need_device: Any, seeds: Callable[..., range]
) -> None:
    need_device(device)
    for seed in seeds(80 if device == "cpu" else 20, many=4000):
        call = numbers.rounding(seed, count=40_000 if seed % 40 == 0 else None)
        wanted = call.run(turnout, device, wide=True).tolist()
        for layout in call.layouts():
            found = call.run(turnout, device, layout=layout).tolist()
            if not numbers.same(found, wanted):
                pytest.fail(f"seed {seed}, {layout}\n{call}\ngives    {str(found)[:99]}\nexpected {str(wanted)[:99]}")


def test_a_numpy_scalar_does_what_the_python_number_does(seeds: Callable[[int], range]) -> None:
    for seed in seeds(1500):
        program = numbers.program(seed)
        found, expected = numbers.run(program, turnout), numbers.run(program, turnout, "python")
        if not numbers.alike(found, expected):
            pytest.fail(f"seed {seed}\n{program.lines()}\ngives    {found}\nexpected {expected}")


def test_every_operator_takes_its_numbers_in_any_form(seeds: Callable[[int], range]) -> None:
    def both(call: numbers.Call) -> tuple[Any, Any]:
        return numbers.run_call(call, turnout, plain=False), numbers.run_call(call, turnout, plain=True)

    for seed in seeds(1500):
        call = numbers.call(seed)
        if not numbers.alike(*both(call)):
            call = numbers.shrunk(call, lambda call: not numbers.alike(*both(call)))
            found, expected = both(call)
            pytest.fail(f"seed {seed}\n{call}\ngives    {found}\nexpected {expected}")
