"""The shared kernel library as plain functions on arrays: what NumPy's own functions would get wrong."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from known_words import WORDS

import turnout
import turnout_arrays
from outcomes import refused
from turnout.dtypes import FLOAT, DType
from turnout.library import Library
from turnout.registry import Registrations
from turnout_arrays.numbers import TWO_BYTES, computed_dtype
from turnout_arrays.random import random_bits
from turnout_aten.dtypes import WIDE
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.tables import register_kernels, register_over, structured_operators
from turnout_cpu import decompositions, special

KERNELS = {name: row.fn if isinstance(row, Row) else row for name, row in turnout_arrays.kernels(np).items()}


def test_library_imports_no_array_module() -> None:
    for path in Path(turnout_arrays.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"numpy", "cupy", "ml_dtypes", "scipy"} & {n.partition(".")[0] for n in names}, path.name


def test_every_structured_operator_has_a_row() -> None:
    cpu_only = decompositions.kernels().keys() | special.kernels().keys()
    assert not cpu_only & KERNELS.keys()
    assert {name.removeprefix("aten::") for name in structured_operators()} <= KERNELS.keys() | cpu_only


@pytest.mark.parametrize("dtype", [each for each in WIDE if each.category >= FLOAT], ids=str)
def test_steps_are_computed_in_the_dtype_that_compositions_take(dtype: DType) -> None:
    native = turnout.device("cpu").backend.native_dtype
    assert computed_dtype(np, native(dtype)) == native(WIDE[dtype])
    assert (native(dtype).char in TWO_BYTES) == (WIDE[dtype] is not dtype)


A, B, BYTES = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2]), np.array([1, 2], "u1")
NAN, EYE = np.nan, np.eye(2)
# What is special -> (row, its arguments, outputs that it writes, the last of its results)
GIVES: dict[str, tuple[str, tuple[Any, ...], tuple[Any, ...], Any]] = {
    "an integer below an output's range wraps around": ("add.out", (BYTES, -1, 1), (np.empty(2, "u1"),), [0, 1]),
    "an integer above it wraps around": ("add.out", (BYTES, 300, 1), (np.empty(2, "u1"),), [45, 46]),
    "the number of its values adds nothing": ("add.out", (BYTES, 256, 1), (np.empty(2, "u1"),), [1, 2]),
    "integers are divided towards 0": ("div.out_mode", (A, B, "trunc"), (np.empty(4, "i8"),), [3, -3, -3, 3]),
    "integers are divided downwards": ("div.out_mode", (A, B, "floor"), (np.empty(4, "i8"),), [3, -4, -4, 3]),
    "a remainder has the sign of the divisor": ("remainder.Tensor_out", (A, B), (), [1, 1, -1, -1]),
    "negative powers of integers round to zero": (
        "pow.Tensor_Tensor_out", (np.array([2, 1, -1, -1]), np.array([-1, -5, -2, -3])), (np.empty(4, "i8"),), [0, 1, 1, -1],
    ),
    "the sign of nan is zero": ("sign.out", (np.array([NAN, -2.0, 3.0]),), (), [0.0, -1.0, 1.0]),
    "a descending sort keeps equal elements in order and puts nan first": (
        "sort.values_stable", (np.array([1.0, NAN, 2.0, 1.0, 2.0]), True, 0, True), (np.empty(5), np.empty(5, "i8")),
        [1, 2, 4, 0, 3],
    ),
    "elements are added up where an index repeats": (
        "scatter_add.out", (np.zeros((1, 3)), 1, np.array([[0, 0, 2]]), np.array([[1.0, 2.0, 4.0]])), (np.empty((1, 3)),),
        [[3.0, 0.0, 4.0]],
    ),
    "a beta of zero leaves nan out": ("addmm.out", (EYE * NAN, EYE, EYE, 0, 1), (), EYE.tolist()),
}  # fmt: skip
REFUSES: dict[str, tuple[str, tuple[Any, ...], type[Exception], str]] = {
    "an integer that does not fit, without an output": (
        "mul.out", (BYTES, 300), OverflowError, "Python integer 300 out of bounds for uint8",
    ),
    "a quotient by zero": ("floor_divide.out", (A, 0 * A), ZeroDivisionError, "integer division by zero"),
    "a remainder by zero": ("remainder.Tensor_out", (A, 0 * A), ZeroDivisionError, "integer division by zero"),
    "an order of complex numbers": ("lt.Tensor_out", (1j * A, 1j * A), TypeError, "complex numbers have no order"),
    "the larger complex number": ("maximum.out", (1j * A, 1j * A), TypeError, "complex numbers have no order"),
    "a negative index": (
        "gather.out", (np.zeros((2, 3)), 1, np.array([[-1]]), False, np.empty((1, 1))), IndexError,
        "gather: index -1 is out of bounds for a dimension of size 3",
    ),
    "a target that is no class": (
        "nll_loss_forward.output", (np.zeros((2, 3)), np.array([0, 7]), None, 1, -100, np.empty(()), np.empty(())), IndexError,
        "nll_loss: target 7 is out of bounds for 3 classes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GIVES)
def test_a_row_gives_what_numpys_function_would_get_wrong(what: str) -> None:
    name, given, outs, expected = GIVES[what]
    made = KERNELS[name](*given, *outs)
    assert (outs[-1] if outs else made).tolist() == expected


@pytest.mark.parametrize("what", REFUSES)
def test_a_row_refuses(what: str) -> None:
    name, given, error, text = REFUSES[what]
    assert refused(error, KERNELS[name], *given) == text


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_two_byte_floats_are_summed_in_float32(dtype: type) -> None:
    ones = np.ones(5000, dtype)
    assert KERNELS["sum.out"](ones, None).dtype == dtype
    assert float(KERNELS["sum.out"](ones, None)) == float(dtype(5000))
    assert float(KERNELS["mean.out"](ones.astype("f4"), None, False, None, np.empty((), dtype))) == 1.0
    product = KERNELS["mm.out"](np.ones((2, 5000), dtype), np.ones((5000, 2), dtype))
    assert product.dtype == dtype
    assert float(product[0, 0]) == float(dtype(5000))


def test_random_words_are_a_function_of_seed_and_place() -> None:
    words = random_bits(np, (4, 5), 7, 0)
    assert words.dtype == np.uint64
    assert np.array_equal(words, random_bits(np, (4, 5), 7, 0))
    assert np.array_equal(words.reshape(-1)[6:], random_bits(np, (14,), 7, 6))
    assert not np.any(words == random_bits(np, (4, 5), 8, 0))


def test_random_words_are_the_known_ones() -> None:
    for (seed, offset), words in WORDS.items():
        assert random_bits(np, (len(words),), seed, offset).tolist() == list(words)


def test_random_words_have_no_bias_in_any_bit() -> None:
    words = random_bits(np, (20_000,), 0, 0)
    for bit in range(64):
        share = float(np.mean((words >> np.uint64(bit)) & np.uint64(1)))
        assert abs(share - 0.5) < 0.015, bit


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_threshold_backward_keeps_every_value_above_the_threshold_and_drops_any_below(dtype: type) -> None:
    grad = np.array([np.nan, np.inf, -0.0, 2.0, np.nan, np.inf, 3.0, 4.0], dtype)
    at = np.array([1.0, 1.0, 1.0, 1.0, -1.0, 0.0, -np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        found = KERNELS["threshold_backward.grad_input"](grad, at, 0)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(float), [np.nan, np.inf, 0.0, 2.0, 0.0, 0.0, 0.0, 4.0])
    assert np.signbit(found.astype(float)).tolist()[2:7] == [True, False, False, False, False]


def test_a_product_with_many_rows_of_weights_is_the_same_in_both_orders() -> None:
    rng = np.random.default_rng(1)
    x, weight, bias = rng.standard_normal((8, 600)), rng.standard_normal((400, 600)), rng.standard_normal(400)
    found = KERNELS["addmm.out"](bias, x, weight.T, 1, 1)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, np.matmul(x, weight.T) + bias, rtol=1e-12)
    out = np.empty((8, 400))
    assert KERNELS["addmm.out"](bias, x, weight.T, 1, 1, out) is out
    np.testing.assert_array_equal(out, found)


@pytest.mark.parametrize(("name", "lead"), [("addmm", ()), ("baddbmm", (2,))])
def test_products_that_ignore_self_take_any_self_that_expands(name: str, lead: tuple[int, ...]) -> None:
    first, second = turnout.ones(*lead, 4, 5), turnout.ones(*lead, 5, 3)
    for shape in ((3,), (4, 1), (1, 3), (), (4, 3)):
        found = getattr(turnout, name)(turnout.full(shape, NAN), first, second, beta=0)
        assert found.tolist() == turnout.full((*lead, 4, 3), 5.0).tolist()


def test_adaptive_pooling_of_no_images_gives_none() -> None:
    values, places = turnout.nn.functional.adaptive_max_pool2d(turnout.zeros(0, 2, 4, 3), (3, 2), return_indices=True)
    assert values.shape == places.shape == (0, 2, 3, 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_of_softmax_need_no_second_attempt_with_two_byte_floats(name: str, dtype: str):
    x = turnout.randn(60, 170).to(getattr(turnout, dtype)).t().requires_grad_()
    made = getattr(turnout.nn.functional, name)(x, 0)
    (found,) = turnout.autograd.grad(made, [x], turnout.ones_like(made))
    assert found.dtype is x.dtype


def test_rows_of_the_backends_own_package_come_after_those_of_others() -> None:
    class Layers(turnout_arrays.ArrayBackend):
        name = "LAYERS"
        device_type = "layers"

    own, other = Registrations("own"), Registrations("other")
    with Library("layered", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x * 2.0, "CompositeExplicitAutograd")

        def first_numbers() -> list[float]:
            return [turnout.ops.layered.f(turnout.ones(n, device="layers")).tolist()[0] for n in (1, 2, 3)]

        try:
            own.backend(backend := Layers(np))
            rows = {"f": lambda x: NotImplemented if x.size < 2 else x * 3.0}
            register_over(own, backend.name, rows, namespace="layered", yields=False)
            register_kernels(own, backend, turnout_arrays.kernels(np))
            assert first_numbers() == [2.0, 3.0, 3.0]
            register_over(other, "LAYERS", {"f": lambda x: NotImplemented if x.size < 3 else x * 4.0}, namespace="layered")
            assert first_numbers() == [2.0, 3.0, 4.0]
            other.undo()
            assert first_numbers() == [2.0, 3.0, 3.0]
        finally:
            other.undo()
            own.undo()
