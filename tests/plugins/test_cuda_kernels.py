"""Raw CUDA kernels without a GPU: their text runs on the CPU, over lines, windows and lists of indices of all sizes.

What else is particular to their calls is below: errors, aliases, devices, and calls that they leave to the shared kernels. Those
of lists of tensors are in `test_cuda_lists`, and gradients that have kernels of their own in `test_cuda_gradients`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy_stand_in
import emulated_cuda
import numpy as np
import pytest
from cuda_launches import (
    ELSEWHERE,
    LAUNCHES,
    OF_GRADIENTS,
    OF_LISTS,
    OF_MASKS,
    OF_ROWS,
    TOLERANCES,
    Devices,
    agree,
    check,
    flat,
    numbers,
    recorded,
    work,
)  # fmt: skip
from known_words import check_words
from pretended_cuda import pretended

import turnout
from turnout import nn, ops
from turnout_conformance.cases import SETS
from turnout_cuda import devices, direct_convolutions, images, indexing, pointwise, pooling, programs, reductions, streams
from turnout_cuda.backend import CUDABackend
from turnout_cuda.indexing import spread
from turnout_cuda.table import kernels

F = nn.functional
aten = ops.aten
NVCC = shutil.which("nvcc")


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


# ---- compiled for GPUs


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize("kind", [*programs.DTYPES, *programs.MOVED.values()])
def test_nvcc_compiles_every_kernel_for_all_kinds_of_elements(kind: str, arch: str) -> None:
    assert NVCC is not None
    compiled = programs.PROGRAMS if kind in programs.DTYPES else programs.MOVING
    text = "\n".join(dict.fromkeys(part for name in compiled for part in programs.parts(name)))
    flags = ["-Werror=all-warnings", f"-arch={arch}", "-cubin", *programs.options(kind)]
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
    assert {name.encode() for name, program in programs.programs_by_kernel().items() if program in compiled} <= found


def test_every_file_of_kernels_is_a_program() -> None:
    folder = Path(programs.__file__).with_name("kernels")
    assert sorted({path.stem for path in folder.glob("*.cu")} | programs.ELEMENTWISE.keys()) == sorted(programs.PROGRAMS)


# ---- values


@pytest.fixture
def few_parts(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long lines are cut into fewer parts, but into many of few elements. A thread has several channels of a convolution."""
    monkeypatch.setattr(reductions, "_PARTS", 200)
    monkeypatch.setattr(reductions, "_LEAST", 1)
    monkeypatch.setattr(direct_convolutions, "_BLOCKS", 1)


@pytest.mark.parametrize("operator", SETS["sizes"])
def test_results_are_near_exact_ones_in_all_sizes(operator: str, few_parts: None) -> None:
    check(operator, "pretended")


# Operators whose kernels number elements with 32 bits, where these are enough; each of the kernels is launched by one of them.
NUMBERED = (
    "index_select", "gather", "triu", "max_pool2d_with_indices", "adaptive_max_pool3d", "_adaptive_avg_pool2d", "avg_pool3d",
    "avg_pool2d_backward", "upsample_nearest3d", "upsample_nearest2d_backward", "upsample_trilinear3d",
    "upsample_bilinear2d_backward", "upsample_bicubic2d", "upsample_bicubic2d_backward",
)  # fmt: skip


@pytest.mark.parametrize("operator", NUMBERED)
def test_positions_of_64_bits_give_the_same(operator: str, few_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (indexing, images, pooling):
        monkeypatch.setattr(module, "NARROW", 0)
    check(operator, "pretended")


def test_every_kernel_is_launched_by_some_operator_and_every_operator_is_asked() -> None:
    launched = {kernel for kernels in LAUNCHES.values() for kernel in kernels}
    assert launched | ELSEWHERE | OF_GRADIENTS | OF_LISTS | OF_MASKS | OF_ROWS == programs.programs_by_kernel().keys()
    assert LAUNCHES.keys() <= SETS["sizes"].keys()


def test_sums_of_many_numbers_keep_their_digits(few_parts: None) -> None:
    x = turnout.full((1, 200_000), 0.1, device="pretended")
    wanted = 0.1 * np.sqrt(200_000)
    assert abs(float(x.norm()) / wanted - 1) < 1e-6
    for found in (turnout.linalg.vector_norm(x.reshape(-1, 2), 1, 0), x.reshape(-1, 2).sum(0), x.reshape(2, -1).sum(1)):
        assert abs(float(found[0]) / 1e4 - 1) < 1e-6
    assert float(x.reshape(-1, 20_000).std(1).max()) < 1e-7
    assert abs(float(x.reshape(-1, 20_000).cumsum(1)[0, -1]) / 2000 - 1) < 1e-6


@pytest.mark.parametrize(
    "op",
    [
        lambda x, at: x[at], lambda x, at: x.index_select(1, at), lambda x, at: x.gather(1, at.reshape(1, 4)),
        lambda x, at: x.triu(), lambda x, at: x.max(1)[0], lambda x, at: x.var(0), lambda x, at: x.std(1), lambda x, at: x.norm(),
        lambda x, at: turnout.linalg.vector_norm(x, float("inf"), 1), lambda x, at: x.cumsum(1), lambda x, at: x.cumprod(0),
        lambda x, at: x.sort(1)[0], lambda x, at: x.topk(2, 0)[0], lambda x, at: F.embedding(at, x),
        lambda x, at: F.log_softmax(F.rms_norm(F.layer_norm(x, (6,), x[0]), (6,), x[1]), -1),
        lambda x, at: F.max_pool2d(x.reshape(1, 5, 6), 3, 2, 1), lambda x, at: F.adaptive_max_pool2d(x.reshape(1, 5, 6), (3, 4)),
    ],
)  # fmt: skip
def test_gradients_flow_through_raw_kernels(op: Callable[[Any, Any], Any], backend: Any) -> None:
    def run(t: Devices) -> Any:
        x = t(numbers((5, 6), 1)).requires_grad_()
        y = op(x, t(np.array([3, 0, 4, 3])))
        (y * t(numbers(tuple(y.shape), 2))).sum().backward()
        return x.grad

    cupy_stand_in.launched.clear()
    agree(run, "float64")
    assert cupy_stand_in.launched


# ---- launches


def test_kernels_run_on_the_device_of_their_tensors(backend: Any) -> None:
    cupy_stand_in.launched.clear()
    x = turnout.ones(3, 4, device="pretended:1")
    assert str(turnout.softmax(x, 1).device) == "pretended:1"
    assert cupy_stand_in.launched == [("softmax_rows", 1)]


def test_rows_are_moved_in_the_largest_pieces_that_fit(backend: Any) -> None:
    at = turnout.tensor([1, 0], device="pretended")
    with recorded() as launched:
        for width in (8, 4, 6, 3):
            turnout.ones(2, width, device="pretended")[at]
            turnout.ones(2, width, device="pretended", dtype=turnout.int8)[at]
    pieces = ["complex128", "uint64", "complex128", "uint32", "uint64", "uint16", "uint32", "uint8"]
    assert launched == [("pick_rows", piece) for piece in pieces]


def test_rows_are_spread_over_blocks() -> None:
    assert spread(5, 1) == ((1, 1), (1, 256))
    assert spread(1000, 3) == ((16, 1), (4, 64))
    assert spread(32_768, 1024) == ((32_768, 1), (256, 1))
    assert spread(1, 10**8) == ((1, 4096), (256, 1))
    assert spread(10**7, 1024) == ((65_535, 1), (256, 1))


def test_outputs_may_be_the_inputs(backend: Any) -> None:
    def run(t: Devices) -> Any:
        at = np.random.default_rng(6).integers(0, 6, (6, 6))
        made = [t(numbers((6, 6), seed)) for seed in range(5)]
        images = [t(numbers((2, 3, 6, 8), 1)) for _ in range(4)]
        made[0].triu_()
        made[1].t().tril_(1)
        made[2].cumsum_(0)
        made[3].cumsum_(1)
        turnout.gather(made[4], 1, t(at), out=made[4])
        aten.max_pool2d_with_indices.out(images[0], (3, 3), 1, 1, out=images[0], indices=t(np.zeros((2, 3, 6, 8), "i8")))
        aten.avg_pool2d.out(images[1], (3, 3), 1, 1, out=images[1])
        aten.avg_pool2d_backward.grad_input(images[2], images[2], (3, 3), 1, 1, False, True, None, grad_input=images[2])
        aten.upsample_bilinear2d.out(images[3], (6, 8), False, 2.0, 0.5, out=images[3])
        return made, images

    agree(run, "float64")


def reduced(x: Any, at: Any, own: bool) -> Any:
    return x.scatter_reduce(0, at.reshape(2, 1), turnout.ones(2, 1, device=x.device), "prod", include_self=own)


def ones(x: Any) -> Any:
    return turnout.ones(2, 3, device=x.device)


# (operator, kernels, which indices may be negative, call)
INDEXED: list[tuple[str, str, str, Callable[[Any, Any], Any]]] = [
    ("index_select", "pick_rows", "none", lambda x, at: x.index_select(0, at)),
    ("index", "pick_rows", "all", lambda x, at: x[at]),
    ("index", "pick_rows", "all", lambda x, at: x[:, at]),
    ("index", "pick_rows", "all", lambda x, at: turnout.take(x[0], at)),
    ("index", "join_at pick_rows", "all", lambda x, at: x[at, at]),
    ("index", "join_at pick_rows", "all", lambda x, at: x.reshape(1, 3, 3)[:, at, at.clamp(-9, 9).to(turnout.int32)]),
    ("index", "look_at", "all", lambda x, at: x.reshape(3, 1, 3)[at, :, at]),
    ("index", "look_at", "all", lambda x, at: x[at.reshape(2, 1), at]),
    ("index", "look_at", "all", lambda x, at: x.reshape(3, 1, 3).expand(3, 4, 3)[:, :, at]),
    ("index_select", "pick_rows", "none", lambda x, at: F.embedding(at, x)),
    ("gather", "pick_elements", "none", lambda x, at: x.gather(0, at.reshape(2, 1))),
    ("gather", "look_at", "none", lambda x, at: x.t().gather(0, at.reshape(2, 1))),
    ("gather", "pick_elements", "all", lambda x, at: x.take_along_dim(at.reshape(1, 2), 1)),
    ("index_add", "add_at", "none", lambda x, at: x.index_add(0, at, ones(x))),
    ("index_add", "add_whole_at", "none", lambda x, at: x.long().index_add(0, at, ones(x).long(), alpha=-3)),
    ("index_put", "add_at", "all", lambda x, at: x.index_put((at,), ones(x), True)),
    ("index_put", "join_at add_at", "all", lambda x, at: x.index_put((at, at), ones(x)[:, 0], True)),
    ("scatter_reduce", "reduce_at", "none", lambda x, at: reduced(x, at, True)),
    ("scatter_reduce", "set_at reduce_at", "none", lambda x, at: reduced(x, at, False)),
    ("embedding_dense_backward", "add_at", "none", lambda x, at: aten.embedding_dense_backward(ones(x), at, 3, -1, False)),
    ("index_add", "add_at", "none", lambda x, at: x.index_add_(0, at, ones(x))),
    ("index_put", "add_at", "all", lambda x, at: x.index_put_((at,), ones(x), True)),
    ("scatter_add", "add_at", "none", lambda x, at: x.scatter_add_(0, at.reshape(2, 1), ones(x))),
]


@pytest.mark.parametrize("given", [[0, 3], [-4, 1], [2, -1], [1, 2**40]])
@pytest.mark.parametrize(("operator", "kernels", "negative", "op"), INDEXED)
def test_a_wrong_index_is_the_error_of_cpu(
    operator: str, kernels: str, negative: str, op: Any, given: list[int], backend: Any
) -> None:
    cpu, cuda = (turnout.arange(9.0, device=place).reshape(3, 3) for place in ("cpu", "pretended"))
    at = turnout.tensor(given)
    there = at.to("pretended")
    cupy_stand_in.launched.clear()
    before = backend.cupy.cuda.waits
    if negative == "all" and given == [2, -1]:
        made = op(cuda, there)
        assert backend.cupy.cuda.waits == before
        assert made.tolist() == op(cpu, at).tolist()
    else:
        with pytest.raises(IndexError) as wanted:
            op(cpu, at)
        with pytest.raises(IndexError) as found:  # noqa: PT012 - the read before the next wait must not raise
            made = op(cuda, there)
            assert backend.cupy.cuda.waits == before
            made.tolist()
        said = str(found.value).splitlines()
        assert said[0].partition(": ") == (operator, ": ", str(wanted.value).splitlines()[0].partition(": ")[2])
        assert said[1].startswith(f"  called at  {__file__}:")
        assert said[2:] == ["  found on   device 0, after the call had returned"]
    assert {name for name, _ in cupy_stand_in.launched} == set(kernels.split())


@pytest.mark.parametrize(("module", "named"), [("turnout_mine", True), ("turnouts.a", True), ("turnout_cuda.a", False)])
def test_the_line_of_a_program_is_named_whatever_the_program_is_called(module: str, named: bool, backend: Any) -> None:
    names: dict[str, Any] = {"__name__": module}
    exec(compile("def read(x, at): return x.index_select(0, at)", "program.py", "exec"), names)
    made = names["read"](turnout.ones(2, device="pretended"), turnout.tensor([5], device="pretended"))
    with pytest.raises(IndexError, match=f"\n  called at  {'program.py:1 in read' if named else re.escape(__file__)}"):
        made.tolist()


WAITS: list[Callable[[Any], Any]] = [
    lambda t: t.sum().item(), lambda t: bool(t.any()), lambda t: t.cpu(), lambda t: repr(t), lambda t: turnout.equal(t, t),
    lambda t: t.device.backend.synchronize(t.device),
]  # fmt: skip


@pytest.mark.parametrize("wait", WAITS)
def test_the_first_wrong_index_is_raised_once_where_the_host_waits(wait: Callable[[Any], Any], backend: Any) -> None:
    for place in ("pretended:1", "pretended"):
        x = turnout.ones(3, device=place)
        for wrong in (5, 4):
            x[turnout.tensor([0, wrong], device=place)]
        other = turnout.ones(3, device="pretended")
        with pytest.raises(IndexError, match=f"^index: index 5 is .*\n.*\n  found on   device {int(place[-1] == '1')}, "):
            wait(other)
        wait(x)


@pytest.mark.skipif(turnout.cuda.is_available(), reason="there is a device of type cuda, which the stand-in would stand for")
@pytest.mark.parametrize("made", [lambda: devices, streams.Stream, streams.Event])
def test_waits_for_streams_and_events_raise_it_too(made: Callable[[], Any]) -> None:
    with pretended(CUDABackend):
        turnout.ones(3, device="cuda")[turnout.tensor([3], device="cuda")]
        waiting = made()
        with pytest.raises(IndexError, match=r"^index: index 3 is"):
            waiting.synchronize()
        waiting.synchronize()


def test_a_recorded_read_is_looked_at_where_it_is_launched(backend: Any) -> None:
    x = turnout.arange(12.0, device="pretended").reshape(3, 4)
    at, out = turnout.tensor([2, 7], device="pretended"), turnout.zeros(2, 4, device="pretended")
    cuda = backend.cupy.cuda
    pool = cuda.MemoryPool()
    with cuda.Stream(non_blocking=True) as stream, cuda.using_allocator(pool.malloc):
        stream.begin_capture()
        turnout.index_select(x, 0, at, out=out)
        graph = stream.end_capture()
    for _ in range(2):
        graph.launch()
        with pytest.raises(IndexError, match=r"^index_select: index 7 is out of bounds for a dimension of size 3"):
            x.tolist()
    assert out.tolist() == [[8.0, 9.0, 10.0, 11.0], [0.0] * 4]


def test_rows_of_raw_kernels_are_unique(backend: Any) -> None:
    assert kernels(backend)


# ---- calls that launch nothing

NOTHING: list[Callable[[Any, Any], Any]] = [
    lambda x, at: turnout.softmax(x, 1), lambda x, at: turnout.cummax(x, 1), lambda x, at: F.layer_norm(x, (4,)),
    lambda x, at: turnout.index_add(x, 0, at, x), lambda x, at: x.index_select(0, at), lambda x, at: x[at],
    lambda x, at: x.gather(1, at.reshape(0, 1)), lambda x, at: x.triu(), lambda x, at: x.max(1), lambda x, at: x.argmax(1),
    lambda x, at: x.var(1), lambda x, at: x.var(0), lambda x, at: x.norm(), lambda x, at: x.cumsum(1), lambda x, at: x.cumprod(0),
    lambda x, at: x.sort(1), lambda x, at: x.topk(2, 1), lambda x, at: F.max_pool2d(x.reshape(0, 2, 4, 6), 2),
    lambda x, at: F.avg_pool2d(x.reshape(0, 2, 4, 6), 2), lambda x, at: F.interpolate(x.reshape(0, 2, 4, 6), scale_factor=2),
]  # fmt: skip
WITHOUT_DIMS: list[Callable[[Any, Any], Any]] = [
    lambda x, at: x.index_select(0, at), lambda x, at: x.max(0), lambda x, at: x.argmin(0), lambda x, at: x.var(0, correction=0),
    lambda x, at: x.norm(), lambda x, at: x.cumsum(0),
]  # fmt: skip
SHARED: list[Callable[[Any, Any], Any]] = [
    lambda x, at: x.var([0, 2]), lambda x, at: x.sum([0, 2]), lambda x, at: x[:1].expand(3, 4, 5).amax(0),
    lambda x, at: turnout.linalg.vector_norm(x, 3, 1),
    lambda x, at: x.reshape(-1)[:1].expand(40_000).max(0), lambda x, at: x.reshape(-1)[:1].expand(40_000).cumsum(0),
    lambda x, at: at.argmax(0), lambda x, at: x.reshape(-1)[:1].expand(2049).sort(stable=True), lambda x, at: at.sort(),
    lambda x, at: turnout.cummax(at, 0),
    lambda x, at: aten.upsample_bilinear2d(at.to(turnout.uint8).reshape(1, 1, 1, 3), (3, 9), False),
    lambda x, at: aten.max_pool2d_with_indices(at.reshape(1, 1, 3), (1, 2)),
    lambda x, at: F.avg_pool2d(at.reshape(1, 1, 3), (1, 2)),
]  # fmt: skip
OF_CUPY: list[Callable[[Any, Any], Any]] = [
    lambda x, at: x.transpose(1, 2) + x.transpose(1, 2), lambda x, at: x[:, ::2] * 2.0, lambda x, at: at + 1,
    lambda x, at: x[:0] + 1.0, lambda x, at: x + x[:, :1].expand(3, 4, 5), lambda x, at: x.transpose(1, 2) > 0,
    lambda x, at: turnout.where(at.reshape(3, 1, 1) > 0, x, x.transpose(1, 2).contiguous().transpose(1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "x", "at", "least"),
    [
        pytest.param(NOTHING, np.zeros((0, 4)), np.zeros((0,), "i8"), 1 << 14, id="tensors without elements"),
        pytest.param(WITHOUT_DIMS, np.asarray(2.5), np.asarray(0), 1 << 14, id="tensors without dims"),
        pytest.param(SHARED, numbers((3, 4, 5), 1), np.array([2, 0, 1]), 1 << 14, id="what has no kernel"),
        pytest.param(OF_CUPY, numbers((3, 4, 5), 1), np.array([2, 0, 1]), 1, id="element by element"),
        pytest.param([lambda x, at: (x + 1.0).exp()], np.ones((2, 2)), np.array(0), 1 << 14, id="few elements"),
    ],
)
def test_other_calls_launch_nothing(
    calls: Any, x: Any, at: Any, least: int, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointwise, "LIMIT", least)
    for call in calls:
        cupy_stand_in.launched.clear()
        agree(lambda t, call=call: call(t(x).reshape(x.shape), t(at).reshape(at.shape)))
        assert cupy_stand_in.launched == []


# ---- masks


def masks(dtype: str) -> Iterator[Any]:
    draw = np.random.default_rng(4)
    for shape in ((1,), (70,), (41, 307), (2, 3, 4), (3, 2, 5, 7), (150_011,)) if dtype == "float32" else ((4_100,),):
        for share in (0.0, 0.03, 0.6, 1.0):
            yield draw.random(shape) < share


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64", "complex128"])
def test_masks_select_in_three_launches(dtype: str, backend: Any) -> None:
    for mask in masks(dtype):
        x, c = turnout.arange(mask.size).view(mask.shape).to(getattr(turnout, dtype)), turnout.from_numpy(mask)
        here, at = x.to("pretended"), c.to("pretended")
        with recorded() as launched:
            picked, found = here.masked_select(at), at.nonzero()
        assert {name for name, _ in launched} == (OF_MASKS if mask.any() else {"count_true", "starts_of_blocks"})
        assert len(launched) == (6 if mask.any() else 4)
        assert (picked.dtype, picked.tolist()) == (x.dtype, x.masked_select(c).tolist())
        assert found.tolist() == c.nonzero().tolist()
        assert found.t().is_contiguous()
        assert here[at].tolist() == picked.tolist()


@pytest.mark.parametrize(
    ("length", "dtype"), [(1, "float32"), (33, "float16"), (300, "bfloat16"), (300, "float64"), (1024, "float32")]
)
def test_the_first_elements_in_order_are_those_of_a_stable_sort(length: int, dtype: str, backend: Any) -> None:
    draw = np.random.default_rng(length).integers(-9, 9, (2, length)).astype("float64")
    draw[0, ::7], draw[1, ::5] = np.nan, -0.0
    x = turnout.from_numpy(draw).to(getattr(turnout, dtype))
    for largest in (True, False):
        wanted = turnout.sort(x, dim=1, descending=largest, stable=True)
        for count in {1, 3, 31, 64, 65, length} & {*range(1, length + 1)}:
            values, places = x.to("pretended").topk(count, 1, largest)
            assert places.tolist() == wanted.indices[:, :count].tolist()
            assert str(values.tolist()) == str(wanted.values[:, :count].tolist())


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64", "float16", "bfloat16", "bool"])
def test_unique_values_are_those_of_cpu(dtype: str, backend: Any) -> None:
    values = [3.0, 1.0, 0.0, 1.0, 2.0, 3.0, 0.0, *([float("nan"), -0.0, float("inf"), float("nan")] if "float" in dtype else [])]
    for shape in ((-1,), (1, -1)):
        for given in (values, values[:1], [1.0] * 5000):
            x = turnout.tensor(given).to(getattr(turnout, dtype)).view(shape)
            with recorded() as launched:
                found = turnout.unique(x.to("pretended"))
            assert str(found.tolist()) == str(turnout.unique(x).tolist())
            assert (found.dtype, "select_true" in [name for name, _ in launched]) == (
                x.dtype,
                "16" not in dtype and dtype != "bool",
            )


def test_masks_of_other_layouts_select_what_they_do_on_cpu(backend: Any) -> None:
    def run(t: Devices) -> Any:
        x = t(numbers((6, 5), 1))
        narrow, five = x[:, :1] > 0, t(numbers((2, 2, 2, 2, 2), 3))
        return [
            x.masked_select(narrow), x.t().masked_select(x.t() > 0), x.masked_select((x > 0).t().contiguous().t()),
            x[1:, 2:].nonzero(), (x > 9).nonzero(), five.nonzero(), (five > 0).nonzero(), x.sum().nonzero(),
            x[x > 0], x[:0].nonzero(),
            x.view(-1)[1:].masked_select(x.view(-1)[1:] < 0), (x.view(-1) > 0)[3:].nonzero(), (x * 0).nonzero(),
        ]  # fmt: skip

    agree(run)


# ---- random numbers


def draw(device: str) -> tuple[list[Any], list[Any]]:
    """Numbers of each distribution and what dropout keeps; and normal numbers."""
    turnout.manual_seed(5)
    made, normal = [turnout.rand(0, device=device), turnout.randperm(9, device=device)], []
    for low, high in ((0, 1), (0, 2), (-7, 1000), (5, 6), (0, 1 << 32), (-(1 << 31), 1 << 31), (-(1 << 63), 1 << 63)):
        made += [turnout.randint(low, min(high, (1 << 63) - 1), (4, 13), device=device)]
    made += [turnout.randint(0, 200, (9,), device=device, dtype=turnout.uint8), turnout.ones(7, device=device).random_(0, 5)]
    for dtype in (turnout.float16, turnout.bfloat16, turnout.float32, turnout.float64):
        made += [turnout.rand(5_000, device=device, dtype=dtype)]
        normal += [turnout.randn(37, 3, device=device, dtype=dtype)]
        for x in (turnout.ones(1_001, device=device, dtype=dtype), turnout.ones(20, device=device, dtype=dtype)[1:18]):
            made += [x.uniform_(-0.7, 2.9).clone(), x.uniform_().clone(), *[x.bernoulli_(p).clone() for p in (0.0, 0.3, 1.0)]]
            normal += [x.normal_().clone(), x.normal_(3.0, 0.3).clone()]
        normal += [turnout.ones(5, 3, device=device, dtype=dtype).t().normal_()]
        x = turnout.ones(300, device=device, dtype=dtype, requires_grad=True)
        kept, mask = turnout.native_dropout(x, 0.4, True)
        kept.sum().backward()
        made += [kept.detach(), mask, x.grad]
    made += [F.dropout(turnout.ones(300, device=device), 0.4), F.dropout(turnout.ones(2, 3, device=device).t(), 0.9)]
    return made, normal


def check_random_numbers(device: str) -> None:
    with recorded() as launched:
        found = draw(device)
    assert {name for name, _ in launched} >= ELSEWHERE
    wanted = draw("cpu")
    for got, want in zip(flat(found), flat(wanted), strict=True):
        assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
    assert [each.tolist() for each in found[0]] == [each.tolist() for each in wanted[0]]
    for got, want in zip(found[1], wanted[1], strict=True):
        tolerance = TOLERANCES[want.dtype.name]
        assert turnout.allclose(got.cpu().double(), want.double(), rtol=tolerance, atol=tolerance)


def test_random_numbers_are_written_by_one_kernel(backend: Any) -> None:
    x = turnout.ones(33, device="pretended")
    for call in (lambda: x.normal_(1.0, 2.0), lambda: x.uniform_(1.0, 2.0), lambda: x.bernoulli_(0.3)):
        with recorded() as launched:
            assert call() is x
        assert len(launched) == 1
    for make in (
        lambda: turnout.randint(3, (5,), device="pretended"),
        lambda: turnout.randn(5, device="pretended", dtype=turnout.bfloat16),
    ):
        with work() as found:
            make()
        assert len(found) == 1


WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x.normal_(0.0, -1.0), "normal_: std must not be negative, got -1.0"),
    (lambda x: x.uniform_(2.0, 1.0), "uniform_: 'from' must not be greater than 'to', got 2.0 and 1.0"),
    (lambda x: x.bernoulli_(1.5), "bernoulli: p must lie between 0 and 1, got 1.5"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_wrong_distributions_are_the_errors_that_they_are_on_cpu(call: Any, text: str, backend: Any) -> None:
    for device in ("pretended", "cpu"):
        with pytest.raises(turnout.errors.ArgumentError, match=re.escape(text)):
            call(turnout.ones(3, device=device))


def test_random_numbers_are_those_of_cpu(backend: Any) -> None:
    check_random_numbers("pretended")
    check_words("pretended")


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
