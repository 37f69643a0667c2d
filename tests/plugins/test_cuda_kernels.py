"""Raw CUDA kernels without a GPU: nvcc compiles each for each dtype, and their values come from the same text run on the CPU."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import cupy_stand_in
import emulated_cuda
import numpy as np
import pytest
from pretended_cuda import pretended

import turnout
from turnout import nn, ops
from turnout.library import Library
from turnout_cuda import programs
from turnout_cuda.table import raw_kernels

F = nn.functional
aten = ops.aten
NVCC = shutil.which("nvcc")
DTYPES = ["float16", "bfloat16", "float32", "float64"]
# Programs whose kernels are launched by the cases of files of their own.
ELSEWHERE = ("activations", "arithmetic", "functions", "random", "picking", "reduce", "resize", "scan", "sort", "windows")
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


# ---- compiled for GPUs


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nvcc_compiles_every_kernel(dtype: str, arch: str) -> None:
    assert NVCC is not None
    folder = Path(programs.__file__).with_name("kernels")
    names = ["types.cuh", *sorted({*programs.HEADERS.values()}), *[f"{name}.cu" for name in programs.PROGRAMS]]
    text = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    flags = ["-Werror=all-warnings", f"-arch={arch}", "-cubin", *programs.options(dtype)]
    version = subprocess.run([NVCC, "--version"], check=True, capture_output=True).stdout
    key = hashlib.sha256("\0".join([*flags, text]).encode() + version).hexdigest()[:24]
    made = emulated_cuda.FOLDER / f"{key}.cubin"
    if not made.exists():
        emulated_cuda.FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=emulated_cuda.FOLDER) as folder:
            source, built = Path(folder, "kernels.cu"), Path(folder, "kernels.cubin")
            source.write_text(text, encoding="utf-8")
            done = subprocess.run([NVCC, *flags, "-o", str(built), str(source)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            built.replace(made)
    found = set(re.findall(rb"\.text\.(\w+)", made.read_bytes()))
    assert {name.encode() for name in programs.programs_by_kernel()} <= found


def test_every_file_of_kernels_is_a_program() -> None:
    folder = Path(programs.__file__).with_name("kernels")
    assert sorted(path.stem for path in folder.glob("*.cu")) == sorted(programs.PROGRAMS)


# ---- values


def numbers(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


Devices = Callable[..., Any]
Case = tuple[str, set[str], Callable[[Devices], Any]]


def rows(*shape: int, dim: int = -1) -> Iterator[Case]:
    """Softmax and running values along a dim, and their gradients."""
    where = f"{list(shape)} along {dim}"
    for name in ("_softmax", "_log_softmax"):
        op, back = getattr(aten, name), getattr(aten, f"{name}_backward_data")
        yield f"{name} {where}", {"softmax_"}, lambda t, op=op: op(t(numbers(shape, 1)), dim, False)

        def gradient(t: Devices, op: Any = op, back: Any = back) -> Any:
            y = op(t(numbers(shape, 1)), dim, False)
            return back(t(numbers(shape, 2)), y, dim, y.dtype)

        yield f"{name}_backward {where}", {"_backward"}, gradient
    for name in ("cummax", "cummin"):
        op, coarse = getattr(turnout, name), np.round(numbers(shape, 3))  # few different values, so that many are equal
        yield f"{name} {where}", {"running_extreme"}, lambda t, op=op, coarse=coarse: tuple(op(t(coarse), dim))
    yield f"logcumsumexp {where}", {"running_log"}, lambda t: turnout.logcumsumexp(t(numbers(shape, 4)), dim)


def layers(*shape: int, inner: int = 1, weight: bool = True) -> Iterator[Case]:
    """Normalisation of the last dims, and its gradient."""
    last, where = shape[-inner:], f"{list(shape)} over {inner}{'' if weight else ' without parameters'}"

    def parameters(t: Devices) -> tuple[Any, Any]:
        return (t(numbers(last, 2)), t(numbers(last, 3))) if weight else (None, None)

    yield f"layer_norm {where}", {"normalise"}, lambda t: aten.native_layer_norm(t(numbers(shape, 1)), last, *parameters(t), 1e-5)
    yield f"rms_norm {where}", {"normalise"}, lambda t: turnout.rms_norm(t(numbers(shape, 1)), last, parameters(t)[0], 1e-5)

    def gradient(t: Devices) -> Any:
        x = t(numbers(shape, 1))
        scale, shift = parameters(t)
        _, mean, rstd = aten.native_layer_norm(x, last, scale, shift, 1e-5)
        return aten.native_layer_norm_backward(t(numbers(shape, 4)), x, last, mean, rstd, scale, shift, [True] * 3)

    yield f"layer_norm_backward {where}", {"normalise_backward"} | ({"of_columns"} if weight else set()), gradient


def channels(*shape: int, groups: int) -> Iterator[Case]:
    """Normalisation of groups of channels and of batches, and their gradients."""
    n, c = shape[:2]
    area = int(np.prod(shape[2:]))

    def given(t: Devices) -> tuple[Any, Any, Any]:
        return t(numbers(shape, 1)), t(numbers((c,), 2)), t(numbers((c,), 3))

    def of_groups(t: Devices) -> Any:
        return aten.native_group_norm(*given(t), n, c, area, groups, 1e-5)

    def of_groups_backward(t: Devices) -> Any:
        x, weight, _ = given(t)
        _, mean, rstd = of_groups(t)
        args = (t(numbers(shape, 4)), x, mean, rstd, weight, n, c, area, groups, [True] * 3)
        return aten.native_group_norm_backward(*args)

    def running(t: Devices) -> tuple[Any, Any]:
        return t(numbers((c,), 5)), t(numbers((c,), 6) ** 2 + 0.5)

    def of_batches(t: Devices, training: bool) -> Any:
        moved = running(t)
        return *aten.native_batch_norm(*given(t), *moved, training, 0.1, 1e-5), *moved

    def of_batches_backward(t: Devices, training: bool) -> Any:
        x, weight, bias = given(t)
        kept = aten.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)[1:]
        args = (t(numbers(shape, 4)), x, weight, *running(t), *kept, training, 1e-5, [True] * 3)
        return aten.native_batch_norm_backward(*args)

    name = f"{list(shape)} in {groups}"
    yield f"group_norm {name}", {"normalise"}, of_groups
    yield f"group_norm_backward {name}", {"normalise_backward", "of_channels"}, of_groups_backward
    for training in (True, False):
        told = f"{list(shape)} {'in training' if training else 'after it'}"
        launched = {"batch_normalise"} | ({"channel_statistics"} if training else set())
        yield f"batch_norm {told}", launched, lambda t, training=training: of_batches(t, training)
        both = {"batch_normalise_backward", "of_channels"}
        yield f"batch_norm_backward {told}", both, lambda t, training=training: of_batches_backward(t, training)


def indices(*shape: int, dim: int, count: int) -> Iterator[Case]:
    """Sums and extremes at indices along a dim."""
    random = np.random.default_rng(7)
    places = random.integers(0, shape[dim], count)
    of_source = (*shape[:dim], count, *shape[dim + 1 :])
    each = random.integers(0, shape[dim], of_source)
    where = f"{list(shape)} along {dim} at {count}"

    def added(t: Devices) -> Any:
        return turnout.index_add(t(numbers(shape, 1)), dim, t(places), t(numbers(of_source, 2)), alpha=0.5)

    yield f"index_add {where}", {"add_at"}, added
    yield (
        f"scatter_add {where}",
        {"add_at"},
        lambda t: turnout.scatter_add(t(numbers(shape, 1)), dim, t(each), t(numbers(of_source, 2))),
    )
    for reduce in ("sum", "mean", "prod", "amax", "amin"):
        for own in (True, False):

            def reduced(t: Devices, reduce: str = reduce, own: bool = own) -> Any:
                given = t(numbers(shape, 1)), dim, t(each), t(numbers(of_source, 2))
                return turnout.scatter_reduce(*given, reduce, include_self=own)

            kernel = "reduce_at" if reduce in ("prod", "amax", "amin") else "add_at"
            yield f"scatter_reduce {reduce} {where}{'' if own else ' alone'}", {kernel}, reduced
    if dim == 0:

        def put(t: Devices) -> Any:
            return turnout.index_put(t(numbers(shape, 1)), (t(places),), t(numbers(of_source, 2)), accumulate=True)

        yield f"index_put {where}", {"add_at"}, put


def embeddings() -> Iterator[Case]:
    """Gradients of tables of embeddings."""
    places = np.random.default_rng(8).integers(0, 5, (4, 9))
    for padding in (-1, 2):
        for by_frequency in (False, True):

            def gradient(t: Devices, padding: int = padding, by_frequency: bool = by_frequency) -> Any:
                return aten.embedding_dense_backward(t(numbers((4, 9, 7), 1)), t(places), 6, padding, by_frequency)

            yield f"embedding_backward {padding} {by_frequency}", {"add_at"}, gradient


def attention() -> Iterator[Case]:
    """Attention with and without later keys."""
    for shape, keys, depth in (((2, 3, 5, 4), 7, 3), ((6, 4), 6, 4), ((2, 40, 8), 40, 8), ((1, 3, 16), 1_100, 5)):
        for causal in (False, True):

            def attended(t: Devices, shape: Any = shape, keys: int = keys, depth: int = depth, causal: bool = causal) -> Any:
                q, k, v = (
                    t(numbers(s, i)) for i, s in enumerate((shape, (*shape[:-2], keys, shape[-1]), (*shape[:-2], keys, depth)))
                )
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=0.4)

            yield f"attention {list(shape)} {keys}{' causal' if causal else ''}", {"softmax_of_scores"}, attended


CASES: list[Case] = [
    *rows(1), *rows(3, 5), *rows(2, 33), *rows(5, 37, dim=0), *rows(2, 7, 3, dim=1), *rows(2, 1100), *rows(300, 2, dim=0),
    *rows(3, 64), *rows(2, 1024), *rows(1, 4096),
    *layers(1, 1), *layers(6, 33), *layers(3, 2, 5, inner=2), *layers(70, 3, weight=False), *layers(2, 1300), *layers(100, 65),
    *layers(3, 64), *layers(2, 1024),
    *channels(2, 6, 5, groups=3), *channels(1, 4, 3, 11, groups=1), *channels(7, 2, groups=2), *channels(3, 2, 150, groups=1),
    *indices(5, 3, dim=0, count=9), *indices(2, 5, 3, dim=1, count=7), *indices(4, dim=0, count=300),
    *indices(2, 3, dim=1, count=2), *embeddings(), *attention(),
]  # fmt: skip


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def makers(dtype: str, device: str = "pretended") -> tuple[Devices, Devices]:
    """Functions that put numbers on a device, and the same numbers on cpu, in a dtype."""

    def made(values: Any, device: str) -> Any:
        x = turnout.from_numpy(np.ascontiguousarray(values))
        return (x if values.dtype.kind == "i" else x.to(getattr(turnout, dtype))).to(device)

    return lambda values: made(values, device), lambda values: made(values, "cpu")


def agree(here: Any, there: Any, dtype: str, device: str = "pretended:0") -> None:
    found, wanted = flat(here), flat(there)
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert (got is None) == (want is None)
        if got is None:
            continue
        assert (str(got.device), got.dtype, got.shape, got.stride()) == (device, want.dtype, want.shape, want.stride())
        tolerance = TOLERANCES[dtype]
        scale = max(1.0, float(want.double().nan_to_num(0, 0, 0).abs().max())) if want.numel() else 1.0
        assert np.allclose(got.cpu().double().numpy(), want.double().numpy(), tolerance, tolerance * scale, equal_nan=True)


def check(case: Case, dtype: str) -> None:
    """A case gives what cpu gives, by kernels with these words in their names."""
    _, kernels, run = case
    cupy_stand_in.launched.clear()
    here, there = makers(dtype)
    found = run(here)
    names = {name for name, _ in cupy_stand_in.launched}
    assert all(any(kernel in name for name in names) for kernel in kernels), names
    agree(found, run(there), dtype)


def launched_by(cases: Iterable[Case]) -> set[str]:
    """The names of all kernels that the cases launch."""
    cupy_stand_in.launched.clear()
    here, _ = makers("float32")
    for _, _, run in cases:
        run(here)
    return {name for name, _ in cupy_stand_in.launched}


def kernels_of(*files: str) -> set[str]:
    """The names of the kernels in some programs."""
    return {name for name, program in programs.programs_by_kernel().items() if program in files}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_raw_kernel_gives_what_cpu_gives(case: Case, dtype: str, backend: Any) -> None:
    check(case, dtype)


def test_every_kernel_is_launched_by_some_case(backend: Any) -> None:
    steps = {"adam_step", "sgd_step", "adagrad_step", "each_element"}
    here_only = programs.programs_by_kernel().keys() - kernels_of(*ELSEWHERE)
    assert launched_by(CASES) & here_only == here_only - steps


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("length", [1, 3, 40, 1200])
def test_rows_with_infinities_and_nan_are_those_of_cpu(length: int, value: float, backend: Any) -> None:
    here, there = makers("float32")
    x = numbers((4, length), 1)
    x[0], x[1, 0], x[2, -1], x[3, length // 2 :] = value, value, value, -np.inf
    for op in (
        lambda x: turnout.softmax(x, -1), lambda x: turnout.log_softmax(x, -1), lambda x: turnout.softmax(x.t().contiguous(), 0),
        lambda x: turnout.cummax(x, 1), lambda x: turnout.cummin(x, 1), lambda x: turnout.logcumsumexp(x, 1),
    ):  # fmt: skip
        agree(tuple(flat(op(here(x)))), tuple(flat(op(there(x)))), "float32")


@pytest.mark.parametrize(
    "op", [lambda x: turnout.softmax(x, 1), lambda x: turnout.cummax(x, 0)[0], lambda x: F.layer_norm(x, x.shape[1:])]
)
def test_arrays_in_any_layout_are_served(op: Callable[[Any], Any], backend: Any) -> None:
    here, there = makers("float64")
    x = numbers((6, 8, 5), 1)
    for view in (lambda t: t.transpose(0, 2), lambda t: t[::2, 1:], lambda t: t[:, :, :1].expand(6, 8, 4), lambda t: t[:0]):
        agree(op(view(here(x))), op(view(there(x))), "float64")


def test_outputs_of_any_layout_are_written(backend: Any) -> None:
    here, there = makers("float32")
    for t in (here, there):
        out = t(np.zeros((5, 4))).t()
        turnout.softmax(t(numbers((4, 5), 1)), 1, out=out)
        if t is here:
            found = out
    agree(found, out, "float32")


def test_an_index_out_of_range_is_found_by_the_kernel(backend: Any) -> None:
    here, _ = makers("float32")
    x, source = here(np.zeros((3, 2))), here(np.ones((2, 2)))
    cupy_stand_in.launched.clear()
    with pytest.raises(IndexError) as caught:
        x.index_add_(0, here(np.array([0, 3])), source)
    assert "index 3 is out of bounds for a dimension of size 3" in str(caught.value)
    assert ("add_at", 0) in cupy_stand_in.launched
    assert x.tolist() == [[0.0, 0.0]] * 3


def test_kernels_run_on_the_device_of_their_tensors(backend: Any) -> None:
    cupy_stand_in.launched.clear()
    x = turnout.ones(3, 4, device="pretended:1")
    assert str(turnout.softmax(x, 1).device) == "pretended:1"
    assert cupy_stand_in.launched == [("softmax_rows", 1)]


def test_gradients_flow_through_raw_kernels(backend: Any) -> None:
    def step(t: Devices) -> Any:
        x, weight = t(numbers((4, 6), 1)).requires_grad_(), t(numbers((6,), 2)).requires_grad_()
        y = F.rms_norm(F.layer_norm(x, (6,), weight), (6,), weight)
        (F.log_softmax(y, -1) * t(numbers((4, 6), 3))).sum().backward()
        return x.grad, weight.grad

    here, there = makers("float64")
    agree(step(here), step(there), "float64")


def test_tensors_without_elements_launch_nothing(backend: Any) -> None:
    here, there = makers("float32")
    cupy_stand_in.launched.clear()
    for op in (
        lambda x: turnout.softmax(x, 1), lambda x: turnout.cummax(x, 1), lambda x: F.layer_norm(x, (4,)),
        lambda x: turnout.index_add(x, 0, turnout.zeros(0, dtype=turnout.int64, device=x.device), x),
    ):  # fmt: skip
        agree(tuple(flat(op(here(np.zeros((0, 4)))))), tuple(flat(op(there(np.zeros((0, 4)))))), "float32")
    assert cupy_stand_in.launched == []


def test_other_dtypes_go_to_the_shared_kernels(backend: Any) -> None:
    cupy_stand_in.launched.clear()
    x = turnout.arange(6, device="pretended").reshape(2, 3)
    assert turnout.cummax(x, 1)[0].tolist() == x.tolist()
    assert turnout.index_add(x, 0, turnout.tensor([1, 1], device="pretended"), x).tolist() == [[0, 1, 2], [6, 9, 12]]
    assert cupy_stand_in.launched == []


# ---- the emulation itself


BROKEN = """
typedef long long whole;
extern "C" __global__ void without_wait(float* out) {
    __shared__ float values[64];
    values[threadIdx.x] = threadIdx.x;
    WAIT
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void half_waits(float* out) {
    if (threadIdx.x < 10) __syncthreads();
}
extern "C" __global__ void nothing(const float* x, whole n, double f) {}
"""


def emulated(name: str, wait: str = "__syncthreads();") -> Any:
    if emulated_cuda.COMPILER is None:
        pytest.skip("g++ is not installed: raw kernels cannot run on the CPU")
    return emulated_cuda.program(BROKEN.replace("WAIT", wait), ("-DDTYPE=32",))[name]


def test_a_missing_wait_gives_wrong_values(backend: Any) -> None:
    wanted = [63.0 - i for i in range(64)] * 2
    for wait, right in (("__syncthreads();", True), ("", False)):
        out = backend.cupy.asarray(np.full(128, -1, "f4"))
        emulated("without_wait", wait)((2,), (64,), (out,))
        assert (out.tolist() == wanted) is right


def test_a_wait_that_not_all_threads_reach_is_an_error(backend: Any) -> None:
    with pytest.raises(emulated_cuda.LaunchError, match=r"^half_waits: threads wait for others that do not come$"):
        emulated("half_waits")((1,), (32,), (backend.cupy.asarray(np.zeros(1, "f4")),))


def test_wrong_launches_are_errors(backend: Any) -> None:
    kernel, x = emulated("nothing"), backend.cupy.asarray(np.zeros((4, 4), "f4"))
    kernel((1,), (32,), (x, 1, 1.0))
    for args, text in (
        ((x, 1), "nothing takes 3 arguments, got 2"),
        ((x.astype("f8"), 1, 1.0), r"argument 0 is const float\*, got an array of float64"),
        ((x.T[:2], 1, 1.0), r"argument 0 is const float\*, got an array of float32 that is not contiguous"),
        ((x, 1.0, 1.0), "argument 1 is whole, got 1.0"), ((x, True, 1.0), "argument 1 is whole, got True"),
        ((x, 1, 1), "argument 2 is double, got 1"),
    ):  # fmt: skip
        with pytest.raises(emulated_cuda.LaunchError, match=text):
            kernel((1,), (32,), args)
    with pytest.raises(emulated_cuda.LaunchError, match="whole warps"):
        kernel((1,), (20,), (x, 1, 1.0))
    with pytest.raises(emulated_cuda.LaunchError, match="a grid of"):
        kernel((0,), (32,), (x, 1, 1.0))


def test_rows_of_raw_kernels_are_unique(backend: Any) -> None:
    assert raw_kernels(backend.xp, programs.Programs(backend.cupy))


# ---- steps of optimisers

SHAPES = [(3,), (70, 65), (), (1, 5, 2)]  # the second one takes two blocks


def parameters(t: Devices, seed: int, positive: bool = False) -> list[Any]:
    given = [np.asarray(numbers(shape, seed + i)) for i, shape in enumerate(SHAPES)]
    return [t(np.abs(x) if positive else x) for x in given]


def tensor_of(t: Devices, value: float) -> Any:
    return t(np.zeros(())).float().fill_(value)


def adam_lists(t: Devices) -> list[Any]:
    steps = [tensor_of(t, float(i + 1)) for i in range(len(SHAPES))]
    return [parameters(t, 1), parameters(t, 2), parameters(t, 3), *[parameters(t, s, True) for s in (4, 5)], steps]


NUMBERS = {"weight_decay": 0.05, "maximize": False}
ADAM = {**NUMBERS, "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6, "amsgrad": False}
SGD = {**NUMBERS, "lr": 0.1, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "is_first_step": False}
ADAGRAD = {**NUMBERS, "lr": 0.1, "lr_decay": 0.01, "eps": 1e-6}

STEPS: list[tuple[str, str, dict[str, Any]]] = [
    *[
        (op, "adam_step", {**ADAM, **change})
        for op in ("_fused_adam_", "_fused_adamw_")
        for change in ({}, {"amsgrad": True}, {"maximize": True, "weight_decay": 0.0}, {"beta1": 0.0})
    ],
    *[
        ("_fused_sgd_", "sgd_step", {**SGD, **change})
        for change in ({}, {"nesterov": True, "maximize": True}, {"is_first_step": True}, {"momentum": 0.0, "weight_decay": 0.0})
    ],
    *[("_fused_adagrad_", "adagrad_step", {**ADAGRAD, "maximize": maximize}) for maximize in (False, True)],
]


def step(op: str, t: Devices, options: dict[str, Any], **more: Any) -> Any:
    """All tensors after a step."""
    lists = adam_lists(t)
    if op == "_fused_sgd_":
        lists = lists[:3] if options["momentum"] else [*lists[:2], []]
    elif op == "_fused_adagrad_":
        lists = [*lists[:2], lists[3], lists[5]]
    elif not options["amsgrad"]:
        lists[4] = []
    getattr(aten, op)(*lists, **options, **more)
    return [tuple(each) for each in lists]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", STEPS, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_step_is_that_of_cpu(case: tuple[str, str, dict[str, Any]], dtype: str, backend: Any) -> None:
    op, kernel, options = case
    here, there = makers(dtype)
    cupy_stand_in.launched.clear()
    found = step(op, here, options)
    assert cupy_stand_in.launched == [(kernel, 0)], "one kernel for all tensors"
    # The composed step computes with counts of steps in float32, the kernel in float64.
    agree(found, step(op, there, options), "float32" if dtype == "float64" else dtype)


@pytest.mark.parametrize("found_inf", [None, 0.0, 1.0])
@pytest.mark.parametrize("case", [STEPS[0], STEPS[8], STEPS[12]], ids=lambda case: case[0])
def test_rate_scale_and_found_inf_may_lie_on_the_device(
    case: tuple[str, str, dict[str, Any]], found_inf: float | None, backend: Any
) -> None:
    op, kernel, options = case

    def run(t: Devices) -> Any:
        more = {"grad_scale": tensor_of(t, 4.0), "found_inf": None if found_inf is None else tensor_of(t, found_inf)}
        return step(op, t, {**options, "lr": tensor_of(t, 0.25)}, **more)

    here, there = makers("float32")
    cupy_stand_in.launched.clear()
    found = run(here)
    assert cupy_stand_in.launched == [(kernel, 0)]
    agree(found, run(there), "float32")
    if found_inf:
        agree(found[0], tuple(parameters(there, 1)), "float32")


def test_a_step_of_other_tensors_is_composed(backend: Any) -> None:
    here, there = makers("float32")

    def run(t: Devices) -> Any:
        lists = [[t(numbers((4, 3), i)).t()] for i in range(3)]
        aten._fused_sgd_(*lists, **SGD)
        return tuple(each[0] for each in lists)

    cupy_stand_in.launched.clear()
    agree(run(here), run(there), "float32")
    assert cupy_stand_in.launched == []


def test_lists_of_different_lengths_are_the_error_that_they_are_on_cpu(backend: Any) -> None:
    for t in makers("float32"):
        with pytest.raises(turnout.errors.ArgumentError) as caught:
            aten._fused_sgd_([t(np.ones(2))] * 2, [t(np.ones(2))], [t(np.ones(2))] * 2, **SGD)
        assert "_fused_sgd_: 'grads' has 1 tensors, expected one for each of the 2 parameters" in str(caught.value)


def test_the_addresses_of_a_training_are_sent_once(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here, _ = makers("float32")
    sent: list[Any] = []
    asarray = backend.cupy.asarray
    lists = [parameters(here, i) for i in range(3)]
    monkeypatch.setattr(backend.cupy, "asarray", lambda value, *args: sent.append(value) or asarray(value, *args))
    for _ in range(3):
        aten._fused_sgd_(*lists, **SGD)
    assert len(sent) == 2, "the table, and the blocks"


# ---- element-wise functions of lists


def lists(t: Devices, count: int) -> list[list[Any]]:
    return [parameters(t, 10 * i, positive=i > 0) for i in range(count)]


EACH: list[tuple[str, int, tuple[Any, ...], dict[str, Any]]] = [
    *[(stem, 2, (), {"alpha": alpha}) for stem in ("add", "sub") for alpha in (1, -0.5)],
    *[(stem, 2, (), {}) for stem in ("mul", "div")],
    *[(stem, 3, (number,), {}) for stem in ("addcmul", "addcdiv") for number in (0.5, [1, 2.0, -3, 0.25])],
    *[(stem, 1, (number,), {}) for stem in ("add", "sub", "mul", "div") for number in (3, [1.5, 2, -3, 4])],
    *[(stem, 1, (), {}) for stem in ("sqrt", "neg", "abs", "reciprocal")],
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", EACH, ids=lambda case: f"{case[0]} {case[1]} {case[2:]}")
def test_a_function_of_lists_is_one_kernel_and_gives_what_cpu_gives(case: Any, dtype: str, backend: Any) -> None:
    stem, count, numbers, options = case
    here, there = makers(dtype)

    def run(t: Devices, suffix: str) -> Any:
        first, *others = lists(t, count)
        if stem in ("sqrt", "reciprocal"):
            first = [x.abs() + 0.5 for x in first]
        cupy_stand_in.launched.clear()
        made = getattr(aten, f"_foreach_{stem}{suffix}")(first, *others, *numbers, **options)
        assert (made is None) == bool(suffix)
        return tuple(first if suffix else made)

    for suffix in ("", "_"):
        found = run(here, suffix)
        assert cupy_stand_in.launched == [("each_element", 0)]
        agree(found, run(there, suffix), dtype)


def test_lists_that_a_loop_reads_after_it_wrote_them_go_one_by_one(backend: Any) -> None:
    def twice(t: Devices) -> Any:
        x, y = lists(t, 2)
        aten._foreach_mul_([x[0], x[1], x[0]], [y[0], y[1], y[0]])
        return tuple(x)

    def shifted(t: Devices) -> Any:
        whole = t(numbers((60,), 1))
        aten._foreach_add_([whole[:20], whole[10:30]], [whole[30:50], whole[40:]])
        return whole

    def read_later(t: Devices) -> Any:
        x, _ = lists(t, 2)
        aten._foreach_add_([x[0], x[3].view(10)], [x[3].view(10)[:3], x[1].view(-1)[:10]])
        aten._foreach_add_([x[1], x[0]], [x[1], x[1].view(-1)[:3]])
        return tuple(x)

    def stepped(t: Devices) -> Any:
        given = lists(t, 3)
        for each in given:
            each.append(each[0])
        aten._fused_sgd_(*given, **SGD)
        return tuple(tuple(each) for each in given)

    def shared_state(t: Devices) -> Any:
        given = adam_lists(t)
        given[4] = []
        given[3] = given[2]
        aten._fused_adam_(*given, **ADAM)
        return tuple(tuple(each) for each in given)

    def read_before(t: Devices) -> Any:
        x, grads, held = ([each[0].clone(), each[0]] for each in lists(t, 3))
        grads[0] = held[1] = grads[1]
        aten._fused_sgd_(x, grads, held, **SGD)
        return tuple(map(tuple, (x, grads, held)))

    here, there = makers("float32")
    for run in (twice, shifted, read_later, stepped, shared_state, read_before):
        cupy_stand_in.launched.clear()
        found = run(here)
        assert {name for name, _ in cupy_stand_in.launched} <= set(), run.__name__
        agree(found, run(there), "float32")


def test_what_is_only_read_may_occur_twice(backend: Any) -> None:
    here, there = makers("float32")

    def run(t: Devices) -> Any:
        x, y = lists(t, 2)
        aten._foreach_mul_([x[0], x[3].view(10)[:3]], [y[0], y[0]])
        aten._foreach_addcmul_([x[1]], [x[1]], [y[1]], 0.5)
        grads = [y[0]] * 2
        aten._fused_sgd_([x[0], x[3].view(10)[:3]], grads, [], **{**SGD, "momentum": 0.0})
        return tuple(x)

    cupy_stand_in.launched.clear()
    found = run(here)
    assert [name for name, _ in cupy_stand_in.launched] == ["each_element", "each_element", "sgd_step"]
    agree(found, run(there), "float32")


def test_lists_that_the_kernel_does_not_serve_go_one_by_one(backend: Any) -> None:
    (here, there), (half, _) = makers("float32"), makers("float16")
    calls: list[Callable[[Devices], Any]] = [
        lambda t: aten._foreach_add([t(numbers((4, 3), 1)).t()], [t(numbers((3, 4), 2))]),
        lambda t: aten._foreach_mul([t(numbers((4, 3), 1))], [t(numbers((3,), 2))]),
        lambda t: aten._foreach_add([t(np.arange(4))], 1),
        lambda t: aten._foreach_mul([t(np.ones(0)), t(np.ones((2, 0)))], 2.0),
        lambda t: aten._foreach_mul([t(numbers((3,), 1))], True),
    ]
    for call in calls:
        cupy_stand_in.launched.clear()
        found = call(here)
        assert cupy_stand_in.launched == []
        agree(tuple(found), tuple(call(there)), "float32")
    mixed = aten._foreach_add([here(np.ones(2)), half(np.ones(2))], [half(np.ones(2)), half(np.ones(2))])
    assert [(each.dtype.name, each.tolist()) for each in mixed] == [("float32", [2.0, 2.0]), ("float16", [2.0, 2.0])]
    apart = aten._foreach_mul([turnout.ones(2, device="pretended:0"), turnout.ones(2, device="pretended:1")], 2.0)
    assert [(str(each.device), each.tolist()) for each in apart] == [("pretended:0", [2.0] * 2), ("pretended:1", [2.0] * 2)]
    assert cupy_stand_in.launched == []
    cpu = aten._foreach_mul([here(np.ones(2)), turnout.ones(2)], 2.0)
    assert [each.tolist() for each in cpu] == [[2.0] * 2] * 2
    with pytest.raises(turnout.errors.ArgumentError, match="expected lists of one length"):
        aten._foreach_add([here(np.ones(2))], [here(np.ones(2))] * 2)


def test_gradients_of_lists_are_those_of_their_elements(backend: Any) -> None:
    x, y = turnout.ones(3, device="pretended").requires_grad_(), turnout.full((3,), 2.0, device="pretended")
    made = aten._foreach_mul([x, y], [y, x])
    (made[0] + made[1]).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4.0] * 3


def test_a_kernel_for_one_tensor_that_somebody_replaces_is_called_for_lists(backend: Any) -> None:
    x = [turnout.ones(3, device="pretended"), turnout.ones(2, device="pretended")]
    with Library("aten", "IMPL") as lib:
        lib.impl("mul_.Tensor", lambda self, other: self.fill_(7.0), "PRETENDED", allow_override=True)
        aten._foreach_mul_(x, x)
    assert [each.tolist() for each in x] == [[7.0] * 3, [7.0] * 2]
    aten._foreach_mul_(x, x)
    assert [each.tolist() for each in x] == [[49.0] * 3, [49.0] * 2]
