"""Large arrays on `opencl`, which run programs of their own, against `cpu`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from turnout import autograd
from turnout_aten.backend import host_fallback as hosting

F = turnout.nn.functional
N = 70_001  # above the size from which a function gets a program of its own, and no multiple of anything


@pytest.fixture(scope="module", autouse=True)
def needs_a_driver(need_device: Callable[[str], None]) -> None:
    need_device("opencl")


def values(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    made = np.random.default_rng(seed).standard_normal(shape) * 3
    return made.astype(dtype) if dtype.startswith("float") else (made * 20).astype(dtype)


def agree(call: Callable[..., Any], *arrays: Any, tolerance: float = 1e-5) -> None:
    """One call on both devices, which must agree, without the host."""
    there = [turnout.from_numpy(a).to("opencl") for a in arrays]
    hosting.reset_calls()
    found = call(*there)
    assert not hosting.calls(), hosting.report()
    wanted = call(*[turnout.from_numpy(a) for a in arrays])
    for got, right in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
        assert got.dtype is right.dtype
        assert got.shape == right.shape
        np.testing.assert_allclose(got.cpu().numpy(), right.numpy(), rtol=tolerance, atol=tolerance)


FUNCTIONS = [
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "sigmoid",
    "neg",
    "abs",
    "floor",
    "ceil",
    "trunc",
    "round",
    "relu",
    "sign",
    "isnan",
    "logical_not",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cosh",
    "sinh",
    "tan",
    "exp2",
    "log2",
    "log10",
    "erfc",
    "reciprocal",
    "square",
    "frac",
    "sinc",
    "signbit",
    "isinf",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_large_array_is_that_of_a_small_one(name: str) -> None:
    x = turnout.from_numpy(values(N))
    x[:8] = turnout.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, 3e38, 20000.0])
    there = x.to("opencl")
    large, small = getattr(there, name)().cpu().numpy(), getattr(there[:1000], name)().cpu().numpy()
    np.testing.assert_allclose(large[:1000], small, rtol=1e-5, atol=2e-7)
    np.testing.assert_array_equal(np.signbit(large[3:5]), np.signbit(small[3:5]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "int8", "uint8"])
def test_arithmetic_of_every_dtype(dtype: str) -> None:
    x, y = values(N, dtype=dtype), values(N, dtype=dtype, seed=1)
    agree(lambda a, b: a + b, x, y)
    agree(lambda a, b: a * b - 2, x, y)
    agree(lambda a, b: turnout.maximum(a, b).clamp(0, 20), x, y)
    agree(lambda a, b: (a < b, a == 0, (a != 0) & (b > 1)), x, y)
    agree(lambda a, b: turnout.where(a < b, a, b), x, y)
    agree(lambda a, b: turnout.where(a < b, a, 3), x, y)
    for other in (turnout.float32, turnout.float16, turnout.int32, turnout.bool, turnout.bfloat16):
        agree(lambda a, o=other: a.to(o).to(turnout.float32), np.abs(x))


def test_functions_with_vectors_of_several_operands() -> None:
    x, y = values(N), values(N, seed=1)
    agree(lambda a, b: (turnout.atan2(a, b), turnout.hypot(a, b), a.abs() ** b, a.abs() ** 1.5), x, y)
    agree(lambda a: (F.gelu(a), F.gelu(a, approximate="tanh"), F.silu(a), F.glu(a[1:]), F.mish(a), F.softplus(a), F.elu(a)), x)
    agree(lambda a: autograd.grad(F.gelu(a.requires_grad_()).sum() + F.silu(a).sum(), [a])[0], x)


def test_operands_that_repeat_and_operands_with_gaps() -> None:
    x = values(300, 301)
    agree(lambda a: (a + a[0], a * a[:, :1], a[:, :1] + a[:1], (a[:1] * 2).expand(300, 301) + 1), x)
    agree(lambda a: (a.t() + a.t(), a[:, ::2] + a[:, 1::2][:, :150].sum(-1, keepdim=True), a[::2] + 1), x)
    agree(lambda a: (a.reshape(30, 10, 301)[:, 1:, 3:].exp(), a.unsqueeze(1).expand(300, 2, 301) * 2), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "bool"])
def test_lines_with_gaps_and_results_in_another_order(dtype: str) -> None:
    x = values(300, 700, dtype="float32").astype(dtype)
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    agree(lambda a: (a[:, ::2].clone(), a.t().contiguous(), a.flip(1), a[::2, 5::2].to(turnout.float32)), x)
    agree(lambda a: (a[:, ::2] > a[:, 1::2], turnout.where(a.t() > 0, a.t(), a.t()[:1])), x)
    if dtype != "bool":
        agree(lambda a: (a.t() + a.t(), a[:, ::2] * a[:, 1::2], a.t()[::2] - a[0, 0]), x, tolerance=tolerance)
    if dtype.startswith("float"):
        agree(lambda a: (a[:, ::2].exp(), a.t()[:, ::2].sin(), a[:, ::3].tanh(), a.t().cos()), x, tolerance=tolerance)
        agree(lambda a: a.reshape(-1)[: 30_000 * 7].view(30_000, 7).t().exp(), x, tolerance=tolerance)
        agree(lambda a: turnout.atan2(a.reshape(-1, 10)[:, :8], a.reshape(-1, 10)[:, 2:]), x, tolerance=tolerance)


def test_a_large_array_is_written_in_place() -> None:
    def steps(a: Any) -> Any:
        a = a.clone()
        a.add_(1).mul_(a).exp_()
        a[10:].copy_(a[:-10].clone())
        return a

    agree(steps, values(N) / 10)


SHAPES = [(N,), (300, 301), (3, 200, 301), (200, 301, 3), (2, 70_000), (70_000, 2), (65, 1100), (5000, 33)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "prod", "var", "std", "norm"])
def test_reductions_along_every_dim(shape: tuple[int, ...], name: str) -> None:
    x = values(*shape, dtype="float64") / 3
    if name == "prod":
        x = 1 + x / 1000
    for dim in (*range(len(shape)), None):
        if dim is None:
            agree(lambda a: getattr(a, name)(), x, tolerance=1e-9)
        else:
            agree(lambda a, d=dim: getattr(a, name)(dim=d), x, tolerance=1e-9)
    if len(shape) > 1 and name not in ("prod", "norm"):
        agree(lambda a: getattr(a, name)(dim=(0, 1)), x, tolerance=1e-9)
        agree(lambda a: getattr(a.t() if a.ndim == 2 else a[:, 1:, 1:], name)(dim=1), x, tolerance=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "float16"])
def test_reductions_of_every_dtype(dtype: str) -> None:
    x = values(300, 301, dtype="int8").astype(dtype)
    agree(lambda a: (a.sum(0), a.sum(1), a.sum(), a.any(0), a.all(1), a.amax(0), a.amin(1)), x, tolerance=1e-3)


@pytest.mark.parametrize("shape", [(N,), (300, 301), (1000, 257)])
def test_norms_of_every_order_and_dim(shape: tuple[int, ...]) -> None:
    x = values(*shape)
    for dim in (None, *range(len(shape))):
        for order in (0, 1, 2, 3.5, float("inf"), -float("inf")):
            agree(lambda a, o=order, d=dim: turnout.linalg.vector_norm(a, o, dim=d), x, tolerance=1e-4)


def test_a_nan_is_found_wherever_it_stands() -> None:
    for place in (0, 5, 2047, 2048, 65_537, N - 1):
        x = values(N)
        x[place] = np.nan
        agree(lambda a: (a.amax(), a.amin(), a.argmax(), a.argmin(), a.sum()), x)
        agree(lambda a: tuple(turnout.linalg.vector_norm(a, order) for order in (float("inf"), -float("inf"))), x)
        rows = np.tile(x[:7000], (10, 1))
        agree(lambda a: (a.amax(0), a.amin(1), a.argmax(1), a.argmin(1)), rows)


@pytest.mark.parametrize("dtype", [turnout.float16, turnout.bfloat16])
def test_partial_sums_of_two_byte_floats_do_not_overflow(dtype: turnout.DType) -> None:
    x = turnout.full((N,), 100.0, dtype=dtype, device="opencl")
    assert x.mean().item() == 100.0
    assert (x[: N - 1].view(700, 100) * 5).mean(0).tolist() == [500.0] * 100
    x[: N // 2].neg_()
    assert abs(x.sum().item()) == 100.0


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_the_first_of_equal_extremes_counts_and_nan_is_one(name: str) -> None:
    x = np.round(values(N))
    agree(lambda a: getattr(a, name)(), x)
    x[[60_000, 65_000]] = np.nan
    agree(lambda a: getattr(a, name)(), x)
    rows = np.round(values(70, 1500))
    rows[3, [200, 1200]] = np.nan
    agree(lambda a: tuple(getattr(a, name)(1)) if name in ("max", "min") else getattr(a, name)(1), rows)
    agree(lambda a: tuple(getattr(a, name)(0)) if name in ("max", "min") else getattr(a, name)(0), rows)
    agree(lambda a: (a.amax(0), a.amin(1), a.amax()), rows)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8"])
def test_products_of_matrices_of_odd_sizes(dtype: str) -> None:
    tolerance = 2e-2 if dtype == "float16" else 1e-4
    a, b = values(53, 65, dtype=dtype) // 10, values(65, 39, dtype=dtype, seed=1) // 10
    agree(lambda x, y: (x @ y, y.t() @ x.t(), x.t()[:, :50] @ x[:50]), a, b, tolerance=tolerance)
    c, d = values(3, 41, 50, dtype=dtype) // 10, values(3, 50, 23, dtype=dtype, seed=1) // 10
    agree(lambda x, y: (x @ y, x @ y[0], x[0].expand(3, 41, 50) @ y), c, d, tolerance=tolerance)
    agree(lambda x, y: turnout.baddbmm(x[:, :, :23], x, y, beta=2, alpha=3), c, d, tolerance=tolerance * 10)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_products_with_few_rows_or_columns(dtype: str) -> None:
    tolerance = 2e-2 if dtype == "float16" else 1e-4
    for length in (3, 16, 203):
        a, b = values(5, length, dtype=dtype) // 5, values(37, length, dtype=dtype, seed=1) // 5
        agree(lambda x, y: (x @ y.t(), y @ x.t(), y @ x[0], x[:1] @ y.t(), x[:2] @ y.t().contiguous()), a, b, tolerance=tolerance)
        agree(lambda x, y: turnout.addmm(y[:, 0], x, y.t(), alpha=2, beta=3), a, b, tolerance=tolerance * 10)
        agree(lambda x, y: turnout.addmv(y[:, 0], y, x[1]), a, b, tolerance=tolerance * 10)


CONVOLUTIONS = [
    ((2, 8, 33, 35), (16, 8, 3, 3), {"padding": 1}),
    ((2, 8, 33, 35), (16, 8, 3, 2), {"stride": (2, 3), "padding": (0, 1)}),
    ((1, 32, 20, 20), (64, 32, 1, 1), {}),
    ((2, 18, 15, 40), (18, 1, 3, 5), {"padding": (1, 2), "groups": 18}),
    ((2, 18, 15, 17), (36, 1, 3, 3), {"stride": 2, "dilation": 2, "groups": 18}),
    ((2, 36, 9, 9), (20, 9, 3, 3), {"padding": 2, "dilation": 2, "groups": 4}),
    ((1, 3, 17, 16), (2, 3, 2, 2), {"padding": 3}),
]


@pytest.mark.parametrize(("image", "weight", "options"), CONVOLUTIONS)
def test_convolutions_and_their_gradients(image: Any, weight: Any, options: Any) -> None:
    def both(x: Any, w: Any, b: Any) -> Any:
        leaves = [each.requires_grad_() for each in (x, w, b)]
        out = F.conv2d(*leaves, **options)
        return (out.detach(), *autograd.grad(out.square().sum(), leaves))

    arrays = [values(*image, dtype="float64"), values(*weight, dtype="float64", seed=1), values(weight[0], dtype="float64")]
    agree(both, *arrays, tolerance=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_windows_slide_over_images_of_any_strides_in_one_to_three_dims(dtype: str) -> None:
    tolerance = {"float16": 5e-2, "float32": 1e-4, "float64": 1e-9}[dtype]
    x, w = values(2, 9, 10, 23, dtype=dtype) / 3, values(6, 9, 3, 3, dtype=dtype, seed=1) / 3
    agree(lambda a, b: F.conv2d(a, b, stride=3, dilation=2, padding=(4, 3)), x, w, tolerance=tolerance)
    agree(lambda a, b: F.conv2d(a.transpose(2, 3)[:, :, ::2], b.transpose(2, 3), padding=1), x, w, tolerance=tolerance)
    agree(lambda a, b: F.conv2d(a.expand(3, 2, 9, 10, 23)[1], b), x, w, tolerance=tolerance)
    agree(lambda a, b: F.conv1d(a[:, :, 0], b[:, :, 0], padding=1), x, w, tolerance=tolerance)
    agree(lambda a, b: F.conv3d(a[:, None], b[:, None], stride=(2, 1, 2), padding=1), x, w, tolerance=tolerance)
    agree(lambda a, b: F.conv2d(a[..., :2, :2], b[..., :2, :2]), x, w, tolerance=tolerance)


@pytest.mark.parametrize("groups", [1, 3, 9])
def test_a_transposed_convolution_is_a_plain_one_with_turned_weights(groups: int) -> None:
    x, w = values(2, 9, 10, 23, dtype="float64"), values(9, 4, 3, 2, dtype="float64", seed=1)
    bias = values(4 * groups, dtype="float64", seed=2)
    for padding, dilation in ((0, 1), (1, 1), (3, 1), (1, 3)):
        options = {"padding": padding, "dilation": dilation, "groups": groups}
        agree(lambda a, b, c, o=options: F.conv_transpose2d(a, b, c, **o), x, w, bias, tolerance=1e-9)
    agree(lambda a, b, c: F.conv_transpose2d(a, b, c, stride=2, output_padding=1, groups=groups), x, w, bias, tolerance=1e-9)


def gradients(options: dict[str, Any], call: Callable[..., Any] = F.conv2d) -> Callable[..., Any]:
    """The gradients of a convolution from one of its result, whose elements differ."""

    def both(x: Any, w: Any) -> Any:
        leaves = [each.requires_grad_() for each in (x, w)]
        out = call(*leaves, **options)
        of_out = (turnout.arange(out.numel(), device=out.device) * 7 % 11 - 5).reshape(out.shape)
        return autograd.grad((out * of_out.to(out.dtype)).sum(), leaves)

    return both


OF_WEIGHTS = [
    ((3, 6, 11, 8), (6, 1, 3, 1), {"groups": 6}),  # lines of one vector
    ((3, 6, 11, 9), (6, 1, 4, 3), {"groups": 6, "padding": 1}),  # and of one with an element more
    ((3, 6, 11, 9), (6, 1, 3, 3), {"groups": 6}),  # shorter ones
    ((5, 8, 9, 33), (24, 4, 2, 5), {"groups": 2, "padding": (0, 3), "dilation": (1, 2)}),
    ((2, 9, 20, 50), (9, 3, 3, 3), {"groups": 3, "stride": (2, 3), "padding": 2}),
    ((40, 5, 64, 80), (7, 5, 3, 3), {"padding": 1}),  # images in several blocks
    ((2, 4, 21, 40), (4, 1, 7, 7), {"groups": 4, "padding": 3}),
    ((3, 6, 10, 12), (6, 3, 1, 1), {"groups": 2}),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize(("image", "weight", "options"), OF_WEIGHTS)
def test_gradients_of_weights_are_sums_over_lines_of_any_length(image: Any, weight: Any, options: Any, dtype: str) -> None:
    x, w = values(*image, dtype=dtype) / 3, values(*weight, dtype=dtype, seed=1) / 3
    tolerance = {"float16": 5e-2, "float32": 1e-3, "float64": 1e-8}[dtype]
    agree(gradients(options), x, w, tolerance=tolerance)


def test_gradients_of_weights_in_one_and_three_dims_of_transposed_convolutions_and_of_views() -> None:
    x, w = values(2, 6, 5, 6, 20, dtype="float64"), values(4, 3, 2, 3, 3, dtype="float64", seed=1)
    agree(gradients({"groups": 2, "padding": 1, "stride": (1, 2, 2)}, F.conv3d), x, w, tolerance=1e-8)
    line, taps = values(3, 4, 50, dtype="float64"), values(8, 2, 5, dtype="float64", seed=1)
    agree(gradients({"groups": 2, "stride": 2}, F.conv1d), line, taps, tolerance=1e-8)
    for options in ({}, {"stride": 2, "output_padding": 1}, {"padding": 1, "dilation": 2}):
        weight = values(4, 2, 3, 3, dtype="float64", seed=1)
        image = values(3, 4, 9, 10, dtype="float64")
        agree(gradients({"groups": 2, **options}, F.conv_transpose2d), image, weight, tolerance=1e-8)
    image = values(3, 20, 9, 4, dtype="float64")

    def of_views(x: Any, w: Any) -> Any:
        out = F.conv2d(x.transpose(1, 3), w.requires_grad_(), padding=(0, 1), groups=2)
        return autograd.grad(out.sum(), [w])  # the gradient of a sum repeats one element

    agree(of_views, image, values(2, 2, 3, 3, dtype="float64", seed=1), tolerance=1e-8)


def test_what_a_window_element_does_not_meet_does_not_reach_its_gradient() -> None:
    x = values(2, 4, 12, 13, dtype="float32")
    x[0, 0, 0, 0] = np.inf
    x[1, 3, 11, 12] = np.nan
    agree(gradients({"groups": 4}), x, values(4, 1, 3, 3, seed=1), tolerance=1e-3)


def test_gradients_of_gradients_of_grouped_convolutions() -> None:
    def second(x: Any, w: Any) -> Any:
        leaves = [each.requires_grad_() for each in (x, w)]
        first = autograd.grad(F.conv2d(*leaves, groups=3).square().sum(), leaves, create_graph=True)
        return autograd.grad(sum(each.square().sum() for each in first), leaves)

    agree(second, values(2, 3, 10, 11, dtype="float64") / 5, values(6, 1, 3, 3, dtype="float64", seed=1) / 5, tolerance=1e-8)


@pytest.mark.parametrize("mask", [[True, False, True], [False, True, False], [False, False, True], [False, False, False]])
def test_gradients_that_are_not_asked_for_are_not_there(mask: list[bool]) -> None:
    x, w, g = values(2, 4, 10, 12), values(4, 1, 3, 3, seed=1), values(2, 4, 8, 10, seed=2)
    found = [turnout.from_numpy(a).to("opencl") for a in (g, x, w)]
    options = (None, [1, 1], [0, 0], [1, 1], False, [0, 0], 4, mask)
    made = turnout.ops.aten.convolution_backward(*found, *options)
    wanted = turnout.ops.aten.convolution_backward(*[each.cpu() for each in found], *options)
    assert [each is not None for each in made] == mask
    for got, right in zip(made, wanted, strict=True):
        assert got is None or np.allclose(got.cpu().numpy(), right.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 4, 9, 10), (2, 4, 8, 12), (3, 4, 8, 10), (2, 6, 8, 10)])
def test_gradients_of_shapes_that_do_not_fit_are_left_to_the_composed_kernel(shape: tuple[int, ...]) -> None:
    arrays = values(*shape, seed=2), values(2, 4, 10, 12), values(4, 1, 3, 3, seed=1)
    given = [turnout.from_numpy(a).to("opencl") for a in arrays]
    with pytest.raises((RuntimeError, ValueError)):
        turnout.ops.aten.convolution_backward(*given, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 4, [False, True, False])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int8", "uint8", "float16"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_the_first_extreme_is_found_in_pieces_and_their_quarters_of_lines_that_begin_anywhere(name: str, dtype: str) -> None:
    x = np.zeros(5_000_011, dtype)
    pieces = ((65_536 - 3, 65_536), (12_288 + 5, 3_000_005), (4_999_999, 5_000_010), (1, 2))
    quarters = ((20_480, 20_481), (20_481, 81_919), (61_450, 81_920), (143_000, 163_841))  # on two cores, of four-byte elements
    for first, second in (*pieces, *quarters):
        y = x.copy()
        y[[first, second]] = 1 if "max" in name else -1 if dtype != "uint8" else 0
        agree(lambda a: tuple(getattr(a[1:], name)(0)) if name in ("max", "min") else getattr(a[1:], name)(), y)
    lines = (values(70, 40_001, dtype="float32") / 9).round().astype(dtype)
    agree(lambda a: getattr(a[:, 1:], name)(1) if "arg" in name else tuple(getattr(a[:, 1:], name)(1)), lines)


@pytest.fixture(params=[True, False], ids=["joined by the last piece", "joined by a second kernel"])
def joins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether work-groups may count on what others have written, as on a CPU, or not, as on other devices."""
    place = turnout.empty(1, device="opencl").array.place
    if request.param and not place.joins:
        pytest.skip("work-groups of this device need not see what others write")
    monkeypatch.setattr(place, "joins", request.param)
    return bool(request.param)


# Lengths of whole pieces, of pieces and one element, of no whole vectors, and with vectors that are apart in a piece.
@pytest.mark.parametrize("count", [1 << 16, (1 << 18) + 1, 600_007, 5_000_011])
def test_a_nan_is_an_extreme_in_every_piece_vector_and_rest(count: int, joins: bool) -> None:
    x = values(count)
    there = turnout.from_numpy(x).to("opencl")
    for at in (0, 5, 8, 37, 4095, 4096, 65_535, count // 2, count - 4097, count - 40, count - 9, count - 1):
        there[at] = float("nan")
        assert there.argmax().item() == there.argmin().item() == at
        assert np.isnan(there.amax().item())
        assert np.isnan(there.amin().item())
        assert np.isnan(there.sum().item())
        there[at] = float(x[at])
    assert there.amax().item() == x.max()
    assert there.argmin().item() == x.argmin()


@pytest.mark.parametrize("count", [N, 5_000_011])
@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan"), 0.0])
def test_the_first_of_elements_that_are_all_equal_is_the_extreme(value: float, count: int, joins: bool) -> None:
    x = turnout.full((count,), value, device="opencl")
    assert x.argmax().item() == x.argmin().item() == 0
    for found in (x.amax(), x.amin(), x.max(0).values, x.min(0).values):
        np.testing.assert_equal(found.item(), value)
    x[count - 1] = 1.0
    at = {float("inf"): (0, count - 1), -float("inf"): (count - 1, 0), 0.0: (count - 1, 0)}.get(value, (0, 0))
    assert (x.argmax().item(), x.argmin().item()) == at


@pytest.mark.parametrize("lines", [1, 3, 64, 65])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16", "int64", "uint8"])
def test_lines_in_pieces_are_joined_again_and_again(lines: int, dtype: str, joins: bool) -> None:
    x = values(lines, 20_003, dtype="float32").astype(dtype)
    for _ in range(3):
        agree(lambda a: (a[:, 1:].amax(1), a.amin(1), a.argmax(1), a[:, 2:].argmin(1), a.any(1), a[:, 3:].all()), x)
        if dtype.startswith("float"):
            agree(lambda a: (a.mean(1), a.std(1), a.norm(3), a.norm(float("inf"))), x, tolerance=1e-2 if "16" in dtype else 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_lines_that_are_not_cut_are_as_long_as_vectors_apart_need(dtype: str) -> None:
    for count in (65_536, 65_573, 270_003):
        x = (values(66, count, dtype="float32") * 9).astype(dtype)
        x[3, [count - 1, count // 3]] = x.max()
        agree(lambda a: (a.amax(1), a.amin(1), a.argmax(1), a.argmin(1), a.max(1).values), x)


def test_partial_sums_are_added_up_in_double_precision() -> None:
    if not turnout.empty(1, device="opencl").array.place.double:
        pytest.skip("the device has no double precision")
    x = np.full(5_000_011, 0.1, "float32")
    x[::3] = 1e-3
    assert turnout.from_numpy(x).to("opencl").sum().item() == np.float32(x.astype("float64").sum())


def test_zeros_of_both_signs_are_equal_extremes_and_the_first_one_is_the_value() -> None:
    for signs in ((0.0, -0.0), (-0.0, 0.0)):
        x = turnout.full((N,), signs[1])
        x[:40_000] = signs[0]
        for name in ("max", "min"):
            found = getattr(x.to("opencl"), name)(0)
            assert found.indices.item() == 0
            assert np.signbit(found.values.item()) == np.signbit(signs[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "float16", "bool"])
@pytest.mark.parametrize("shape", [(3000, 31), (3001, 33), (700, 1024), (300, 2049), (65, 1100)])
def test_sums_and_extremes_across_lines_of_any_length_that_begin_anywhere(shape: tuple[int, int], dtype: str) -> None:
    x = (values(shape[0], shape[1] + 3, dtype="float32") / 9).round().astype(dtype)
    agree(lambda a: (a[:, 1:-2].sum(0), a[:, 1:-2].amax(0), a[:, 2:-1].amin(0), a[1:, 3:].any(0)), x)
    if dtype.startswith("float"):
        agree(lambda a: (a[:, 1:-2].var(0), a[:, 1:-2].mean(0)), x, tolerance=1e-5 if dtype != "float16" else 1e-2)
