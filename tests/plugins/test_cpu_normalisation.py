"""The gradient of layer normalisation on the cpu, by blocks of rows, against float64 and against the composed one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import turnout
from outcomes import refused
from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites import normalisation as composed
from turnout_cpu.normalisation import BLOCK, FEW, SHORT, kernels
from turnout_cpu.pool import LARGE, Pool

RNG = np.random.default_rng(9)
F = turnout.nn.functional
SHAPES = [(600, 100), (7, 300, 33), (3, BLOCK + 5), (20, 40, 64), (LARGE // 256 + 3, 256)]
DTYPES = {"f": np.dtype("f"), "d": np.dtype("d"), "float16": np.dtype("e"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
NEAR = {"f": 2e-6, "d": 1e-13, "float16": 1e-3, "bfloat16": 8e-3}


def row(threads: int = 1) -> Any:
    return kernels(Pool(lambda: threads))["native_layer_norm_backward"].fn


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def given(shape: tuple[int, ...], dtype: Any, *, inner: int = 1) -> tuple[Any, ...]:
    """The arguments but for the mask; statistics are those of the input, in float32 for two-byte floats."""
    normalized = shape[-inner:]
    grad, x = (numbers(*shape).astype(dtype) for _ in range(2))
    weight, bias = (numbers(*normalized).astype(dtype) for _ in range(2))
    axes, wide = tuple(range(-inner, 0)), x.astype("d")
    kept = np.dtype("f") if dtype.itemsize == 2 else dtype
    mean = wide.mean(axes, keepdims=True).astype(kept)
    rstd = (1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)).astype(kept)
    return grad, x, normalized, mean, rstd, weight, bias


def exact(args: tuple[Any, ...]) -> list[Any]:
    grad, x, normalized, mean, rstd, weight, bias = (a if isinstance(a, tuple) or a is None else a.astype("d") for a in args)
    axes = tuple(range(-len(normalized), 0))
    normal, each = (x - mean) * rstd, grad if weight is None else grad * weight
    of_x = rstd * (each - each.mean(axes, keepdims=True) - normal * (each * normal).mean(axes, keepdims=True))
    lead = tuple(range(x.ndim - len(normalized)))
    return [of_x, None if weight is None else (grad * normal).sum(lead), None if bias is None else grad.sum(lead)]


def error(found: Any, wanted: Any) -> float:
    """The largest one, against the largest element."""
    return float(np.abs(found.astype("d") - wanted).max() / np.abs(wanted).max())


def usual_error(found: Any, wanted: Any) -> float:
    """The root of the mean square, against that of the elements."""
    return float(np.sqrt(np.square(found.astype("d") - wanted).mean() / np.square(wanted).mean()))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DTYPES)
def test_gradients_are_those_of_float64(name: str, shape: tuple[int, ...]) -> None:
    for inner in range(1, len(shape)):
        args = given(shape, DTYPES[name], inner=inner)
        for kept in (args, (*args[:5], None, None), (*args[:6], None)):
            for found, wanted in zip(row()(*kept, [True] * 3), exact(kept), strict=True):
                if wanted is None:
                    assert found is None
                    continue
                assert found.dtype == DTYPES[name]
                assert found.shape == wanted.shape
                assert error(found, wanted) < NEAR[name]


@pytest.mark.parametrize("name", DTYPES)
def test_the_error_is_not_larger_than_that_of_the_composed_gradient(name: str) -> None:
    args = given((4096, 256), DTYPES[name])
    tensors = [turnout.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    other = composed.native_layer_norm_backward(*tensors, [True] * 3)  # type: ignore[arg-type]
    for found, tensor, wanted in zip(row()(*args, [True] * 3), other, exact(args), strict=True):
        assert tensor is not None
        assert usual_error(found, wanted) <= 2 * usual_error(tensor.numpy(), wanted)


@pytest.mark.parametrize("name", DTYPES)
def test_the_number_of_threads_and_the_layout_change_no_bit(name: str) -> None:
    args = given((LARGE // 200 + 77, 200), DTYPES[name])
    first = row()(*args, [True] * 3)
    grad, x, *rest = args
    spread = [np.repeat(a, 2, -1)[:, ::2] for a in (grad, x)]
    turned = [np.asfortranarray(a) for a in (grad, x)]
    for threads, pair in ((2, (grad, x)), (3, (grad, x)), (1, spread), (2, turned)):
        for found, expected in zip(row(threads)(*pair, *rest, [True] * 3), first, strict=True):
            assert found.tobytes() == expected.tobytes()


def test_an_expanded_gradient_is_read_as_it_is() -> None:
    _, x, *rest = given((500, 200), DTYPES["f"])
    one = np.broadcast_to(np.float32(0.5), x.shape)
    for found, expected in zip(row()(one, x, *rest, [True] * 3), row()(one.copy(), x, *rest, [True] * 3), strict=True):
        assert np.array_equal(found, expected)


def test_only_what_the_mask_asks_for_is_computed() -> None:
    args = given((500, 200), DTYPES["f"])
    whole = row()(*args, [True] * 3)
    for mask in ([True, False, False], [False, True, False], [False, False, True], [False] * 3):
        for wanted, found, expected in zip(mask, row()(*args, mask), whole, strict=True):
            assert found is None if not wanted else np.array_equal(found, expected)


def test_other_calls_are_left_to_the_composed_gradient() -> None:
    grad, x, normalized, mean, rstd, weight, bias = given((500, 200), DTYPES["f"])
    calls = [
        (grad[:400], x, normalized, mean, rstd, weight, bias), (grad, x, (100,), mean, rstd, weight, bias),
        (grad, x, normalized, mean[:3], rstd, weight, bias), (grad, x, normalized, mean, rstd, weight[:3], bias),
        (grad, x, normalized, mean, rstd, weight, bias[:3]),
        (grad, x, normalized, mean, rstd, weight.astype("d"), bias),
        (grad[:0], x[:0], normalized, mean[:0], rstd[:0], weight, bias),
    ]  # fmt: skip
    for call in calls:
        assert row()(*call, [True] * 3) is NotImplemented
    assert row()(*given((4000, SHORT - 1), DTYPES["f"]), [True] * 3) is NotImplemented


def test_a_call_that_every_row_leaves_is_composed_and_a_recorded_gradient_too() -> None:
    args = given((FEW // 100, 200), DTYPES["f"])
    tensors: list[Any] = [turnout.from_numpy(a) if isinstance(a, np.ndarray) else list(a) for a in args]
    tensors[4] = tensors[4][:0]
    refused(ShapeError, lambda: aten.native_layer_norm_backward(*tensors, [True] * 3))
    x = turnout.from_numpy(args[1]).requires_grad_()
    made = F.layer_norm(x, (200,), turnout.from_numpy(args[5]))
    (slope,) = turnout.autograd.grad((made**3).sum(), [x], create_graph=True)
    (second,) = turnout.autograd.grad((slope**2).sum(), [x])
    assert second.shape == x.shape
    assert bool(second.abs().sum() > 0)
