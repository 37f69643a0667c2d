"""The raw kernels that operators launch, how they are walked, and what else tests of them share.

`check` asks a device for the samples of `turnout_conformance.cases.sets.sizes`: the emulated one and, where there is one, a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import cupy_stand_in
import numpy as np
import pytest

import turnout
from outcomes import flat
from turnout_conformance.accuracy import Accuracy
from turnout_cuda import pointwise, programs

DTYPES = [*programs.DTYPES]
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}
Devices = Callable[..., Any]

# Operators -> kernels that their samples launch in every kind of elements that the kernels are compiled for. Each call launches
# something.
_ROWS = {
    "_softmax _log_softmax": "softmax_rows softmax_columns softmax_parts_of_columns",
    "_softmax_backward_data _log_softmax_backward_data": "softmax_rows_backward softmax_columns_backward",
    "cummax cummin": "running_extreme",
    "logcumsumexp": "running_log_of_sum",
    "max.dim min.dim argmax argmin": "extreme_rows extreme_columns",
    "var.correction std.correction": "spread_rows spread_columns",
    "linalg_vector_norm sum.dim_IntList": "fold_rows fold_columns fold_parts_of_rows fold_parts_of_columns fold_total",
    "mean.dim amax amin": "fold_rows fold_columns",
    "sum mean max min": "fold_rows",
    "logsumexp": "log_of_sum_rows log_of_sum_columns",
    "mse_loss": "squared_distance fold_total",
    "cumsum cumprod": "running_total_rows running_total_columns running_whole_rows running_whole_columns",
    "sort.stable topk": "sort_rows",
    "native_layer_norm rms_norm native_group_norm": "normalise",
    "native_layer_norm_backward": "normalise_backward parameters_of_columns parameters_total",
    "native_group_norm_backward": "normalise_backward parameters_of_channels",
    "_native_batch_norm_legit.no_stats _native_batch_norm_legit_functional": (
        "channel_statistics channel_total batch_normalise"
    ),
    "_native_batch_norm_legit_no_training": "batch_normalise",
    "native_batch_norm_backward": "batch_normalise_backward parameters_of_channels",
    "nll_loss_forward": "likelihood",
    "nll_loss_backward": "likelihood_backward",
    "index_select": "pick_rows",
    "index.Tensor": "join_at look_at",
    "gather": "pick_elements",
    "triu tril": "triangle",
    "cat": "place_rows",
    "index_add": "add_at add_whole_at",
    "scatter_add index_put": "add_at",
    "scatter_reduce.two": "add_at set_at reduce_at",
    "embedding_dense_backward": "add_at count_at",
    "convolution": "convolve convolve_alone",
    "convolution_backward": "convolve convolve_backward convolve_alone convolve_alone_backward convolve_alone_total",
    "max_pool2d_with_indices adaptive_max_pool2d": "largest_of_windows largest_of_large_windows",
    "max_pool1d_with_indices max_pool3d_with_indices": "largest_of_windows",
    "avg_pool2d _adaptive_avg_pool2d avg_pool3d": "mean_of_windows mean_of_large_windows",
    "avg_pool1d": "mean_of_windows",
    "adaptive_max_pool3d _adaptive_avg_pool3d": "",
    "avg_pool2d_backward _adaptive_avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool3d_backward": (
        "mean_of_windows_backward"
    ),
    **{
        f"{name}{ndim}d{back}": f"resize_nearest{back}"
        for ndim in (1, 2, 3) for name in ("upsample_nearest", "_upsample_nearest_exact") for back in ("", "_backward")
    },
    "upsample_linear1d upsample_bilinear2d upsample_trilinear3d": "resize_linear",
    "upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward": "resize_linear_backward",
    "upsample_bicubic2d": "resize_cubic",
    "upsample_bicubic2d_backward": "resize_cubic_backward",
    **{
        name: f"of_{name}"
        for name in (
            "square", "floor", "ceil", "trunc", "exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "relu",
            "sigmoid", "silu", "mish", "hardswish", "leaky_relu", "softplus", "elu", "sqrt", "rsqrt", "reciprocal", "log",
            "log1p", "log2", "log10", "clamp", "maximum", "minimum", "sigmoid_backward", "tanh_backward", "silu_backward",
            "threshold_backward",
        )
    },
    "abs": "of_absolute",
    "neg": "of_negative",
    "round": "of_rint",
    "atan": "of_arctan",
    "selu": "of_elu",
    "gelu": "of_gelu of_gelu_tanh",
    "gelu_backward": "of_gelu_backward of_gelu_tanh_backward",
    "pow.Tensor_Scalar": "of_power",
    "add.Tensor": "of_add",
    "sub.Tensor": "of_subtract",
    "mul.Tensor": "of_multiply",
    "div.Tensor": "of_true_divide",
    "add.Scalar": "of_add",
    "sub.Scalar": "of_subtract",
    "mul.Scalar div.Scalar": "",
    **{
        f"{name}.Tensor {name}.Scalar": f"of_{kernel}"
        for name, kernel in (
            ("gt", "greater"), ("ge", "greater_equal"), ("lt", "less"), ("le", "less_equal"), ("eq", "equal"),
            ("ne", "not_equal"),
        )
    },
    "where.self where.ScalarSelf where.ScalarOther": "of_where",
    "_to_copy": "from_float32 to_float32",
    "scaled_dot_product_attention": "softmax_of_scores",
}  # fmt: skip
LAUNCHES = {operator: kernels.split() for operators, kernels in _ROWS.items() for operator in operators.split()}
# Kernels that the samples cannot launch: those of generators, of gradients of composed operators, of masks, and of lists of
# tensors, which operators write.
OF_GRADIENTS = {"rms_backward", "softmax_of_scores_backward"}
ELSEWHERE = {f"random_{each}" for each in ("words", "integers", "uniform", "normal", "bernoulli", "dropout")}
OF_ROWS = {f"{kernel}_of_row" for kernel in ELSEWHERE}  # the same in recorded work
OF_MASKS = {"count_true", "starts_of_blocks", "true_places", "select_true"}
OF_LISTS = {"adam_step", "sgd_step", "adagrad_step", "each_element"}


def kinds(kernel: str) -> set[str]:
    """The kinds of elements that a kernel is compiled for."""
    if programs.programs_by_kernel()[kernel] in programs.MOVING:
        return set(programs.MOVED.values())
    if kernel.startswith(("running_whole", "look_at", "join_at", "add_whole_at")):  # integers, alike in all programs
        return {"float32"}
    return set(DTYPES) - ({"float32"} if kernel in ("from_float32", "to_float32") else set())


@contextlib.contextmanager
def recorded() -> Iterator[list[tuple[str, str]]]:
    """The launches of a block, as (kernel, kind of elements)."""
    found: list[tuple[str, str]] = []

    def recording(self: programs.Kernels, key: tuple[str, str]) -> Any:
        kernel = self.get(key) or self.__missing__(key)

        def launch(*args: Any) -> None:
            found.append(key)
            kernel(*args)

        return launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs.Kernels, "__getitem__", recording, raising=False)
        yield found


# Functions of CuPy that start nothing on a device.
_VIEWS = {"empty", "empty_like", "asarray", "ascontiguousarray", "reshape", "swapaxes", "transpose", "moveaxis", "expand_dims"}
_VIEWS |= {"broadcast_to", "squeeze", "as_strided"}


@contextlib.contextmanager
def work() -> Iterator[list[str]]:
    """What a block starts on the emulated device, by name: raw kernels, products of cuBLAS, and functions of CuPy."""
    found: list[str] = []
    run_by_stand_in = cupy_stand_in.recorded

    def watched(run: Callable[[], Any], *rest: Any, **options: Any) -> Any:
        given = dict(zip(run.__code__.co_freevars, (cell.cell_contents for cell in run.__closure__ or ()), strict=True))
        named = given.get("kernel") or given.get("found") or getattr(given.get("self"), "ufunc", None)
        name = getattr(named, "name", "") or getattr(named, "__name__", "") or run.__qualname__.split(".")[-3]
        moves = name == "ascontiguousarray" and not given["args"][0].flags.c_contiguous
        found.extend([name] * (moves or name not in _VIEWS))
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(cupy_stand_in, "recorded", run_by_stand_in)  # what a step does by others is one step
            return run_by_stand_in(run, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cupy_stand_in, "recorded", watched)
        yield found


def check(operator: str, device: str) -> None:
    """The operator's results in all sizes are near exact ones, and made by its kernels."""
    launched: set[tuple[str, str]] = set()

    def watch(called: str) -> str:
        idle = called == operator and operator in LAUNCHES and not latest
        launched.update(latest)
        latest.clear()
        return "it launched no raw kernel" if idle else ""

    with pytest.MonkeyPatch.context() as patch, recorded() as latest:
        patch.setattr(pointwise, "LIMIT", 1)
        wrong = list(Accuracy(device, watch=watch, layouts=True).problems("sizes", operator))
    assert not wrong, "\n".join(wrong)
    wanted = {(kernel, kind) for kernel in LAUNCHES.get(operator, ()) for kind in kinds(kernel)}
    assert wanted <= launched, f"not launched: {sorted(wanted - launched)}"


# ---- tensors on two devices


def numbers(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def makers(dtype: str, device: str = "pretended") -> tuple[Devices, Devices]:
    """Functions that put numbers on a device, and the same numbers on cpu, in a dtype."""

    def made(values: Any, device: str) -> Any:
        x = turnout.from_numpy(np.ascontiguousarray(values))
        return (x if values.dtype.kind == "i" else x.to(getattr(turnout, dtype))).to(device)

    return lambda values: made(values, device), lambda values: made(values, "cpu")


def agree(run: Callable[[Devices], Any], dtype: str = "float32", device: str = "pretended:0", within: str = "") -> Any:
    """A function of a maker of tensors gives on a device what it gives on cpu, within the tolerance of a dtype: its own, or
    another one. Returns what it gave on the device."""
    here, there = makers(dtype, device.partition(":")[0])
    result = run(here)
    found, wanted = flat(result), flat(run(there))
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert (got is None) == (want is None)
        if got is None:
            continue
        assert (str(got.device), got.dtype, got.shape, got.stride()) == (device, want.dtype, want.shape, want.stride())
        tolerance = TOLERANCES[within or dtype]
        scale = max(1.0, float(want.double().nan_to_num(0, 0, 0).abs().max())) if want.numel() else 1.0
        assert np.allclose(got.cpu().double().numpy(), want.double().numpy(), tolerance, tolerance * scale, equal_nan=True)
    return result
