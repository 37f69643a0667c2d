"""What is particular to OpenCL: devices, memory, compiled programs, the host fallback. Needs a driver such as PoCL."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.errors import AliasError, ArgumentError, CallError, DeviceError, DTypeError, ShapeError
from turnout.library import Library
from turnout.operators import Operator
from turnout_aten.backend import host_fallback as hosting


@pytest.fixture(scope="module", autouse=True)
def needs_a_driver(need_device: Callable[[str], None]) -> None:
    need_device("opencl")


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    hosting.reset_calls()


def moved(values: Any) -> turnout.Tensor:
    return turnout.from_numpy(values).to("opencl")


def close(found: turnout.Tensor, expected: Any, tolerance: float = 1e-5) -> bool:
    return np.allclose(found.cpu().numpy(), expected, rtol=tolerance, atol=tolerance)


DTYPES = [
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bool", "complex64", "complex128",
]  # fmt: skip


# ---- devices


def test_nothing_imports_pyopencl_before_an_opencl_device_is_used() -> None:
    code = (
        "import sys, turnout\n"
        "turnout.ones(2); turnout.plugins.all_plugins(); turnout.device('opencl:0')\n"
        "assert not {'pyopencl', 'turnout_opencl'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tensors_have_the_index_of_their_device() -> None:
    assert str(turnout.ones(1, device="opencl").device) == "opencl:0"
    with pytest.raises(DeviceError, match=r"^opencl:99 does not exist: opencl has "):
        turnout.ones(1, device="opencl:99")


def test_two_devices_do_not_mix_but_for_0_dim_tensors_on_cpu() -> None:
    x = turnout.ones(2, device="opencl")
    assert (x + turnout.tensor(2.0)).tolist() == [3.0, 3.0]
    with pytest.raises(DeviceError) as caught:
        x + turnout.ones(2)
    assert str(caught.value).startswith("aten::add.Tensor: tensors on two devices: self on opencl:0, other on cpu")


def test_a_context_without_platforms_has_no_devices() -> None:
    with turnout.config.override({"plugin.opencl.platform": "no such platform"}):
        turnout.plugins.deactivate("opencl")
        with pytest.raises(DeviceError, match="opencl has 0 device"):
            turnout.ones(1, device="opencl")
    turnout.plugins.deactivate("opencl")
    assert turnout.ones(1, device="opencl").tolist() == [1.0]


def test_no_driver_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_opencl import plugin

    assert plugin.turnout_available() is None
    monkeypatch.setattr(plugin, "found_devices", list)
    assert plugin.turnout_available() == (
        "no OpenCL device was found; install a driver, or `pip install pocl-binary-distribution` for one on the CPU"
    )


FORKED = "opencl cannot be used in a forked process: its driver's threads stayed behind; start it with the 'spawn' method"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_says_that_it_cannot() -> None:
    code = (
        "import os, turnout\n"
        "x = turnout.ones(2, device='opencl')\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        x + x\n"
        "    except turnout.errors.DeviceError as error:\n"
        f"        os._exit(7 if str(error).partition(chr(10))[0] == {'add: ' + FORKED!r} else 1)\n"
        "    os._exit(1)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 7"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- memory


@pytest.mark.parametrize("name", DTYPES)
def test_copies_keep_every_bit_there_and_back(name: str) -> None:
    dtype = getattr(turnout, name)
    x = turnout.tensor([[0.0, 1.0, 2.5], [100.7, 3.0, 7.0]]).to(dtype)
    there = x.to("opencl")
    assert there.dtype is dtype
    assert there.cpu().tolist() == x.tolist()
    assert there.t().cpu().tolist() == x.t().tolist()
    assert there[:, ::2].cpu().tolist() == x[:, ::2].tolist()


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_conversions_are_those_of_cpu(source: str, target: str) -> None:
    x = turnout.tensor([[0.0, 1.0, 2.5], [100.7, 3.0, 7.0]]).to(getattr(turnout, source))
    wanted = x.to(getattr(turnout, target))
    assert x.to("opencl").to(getattr(turnout, target)).tolist() == wanted.tolist()
    assert x.to("opencl").t().to(getattr(turnout, target)).tolist() == wanted.t().tolist()


@pytest.mark.parametrize("name", DTYPES)
def test_fills_of_dense_and_strided_memory(name: str) -> None:
    x = turnout.zeros(3, 4, dtype=getattr(turnout, name), device="opencl")
    x[:, 1::2].fill_(1)
    x[2].zero_()
    there = turnout.zeros(3, 4, dtype=getattr(turnout, name))
    there[:2, 1::2] = 1
    assert x.tolist() == there.tolist()


def test_integers_wrap_around() -> None:
    x = turnout.full((2,), 250, dtype=turnout.uint8, device="opencl")
    assert (x + 10).tolist() == [4, 4]
    assert x.fill_(-1).tolist() == [255, 255]


def test_writes_through_views_reach_the_base_and_overlap_is_refused() -> None:
    x = turnout.arange(6.0, device="opencl")
    x.view(2, 3).t()[1:].mul_(10.0)
    assert x.tolist() == [0.0, 10.0, 20.0, 3.0, 40.0, 50.0]
    with pytest.raises(AliasError):
        turnout.add(x[:4], x[:4], out=x[2:])
    assert turnout.add(x[:2], x[:2], out=x[2:4]).tolist() == [0.0, 20.0]


def test_the_host_cannot_reach_the_memory() -> None:
    x = turnout.ones(2, device="opencl")
    with pytest.raises(CallError, match=r"use \.cpu\(\)\.numpy\(\)"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1.0, 1.0]


def test_tensors_are_saved_printed_and_copied(tmp_path: Any) -> None:
    import copy
    import pickle

    x = turnout.tensor([1.5, 2.0], device="opencl")
    assert repr(x) == "tensor([1.5000, 2.0000], device='opencl:0')"
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert str(other.device) == "opencl:0"
        assert other.tolist() == x.tolist()


def test_more_dims_than_a_kernel_has_are_an_error_unless_they_merge() -> None:
    x = turnout.ones((2,) * 10, device="opencl")
    assert (x + x).sum().item() == 2048.0
    with pytest.raises(turnout.errors.ShapeError) as caught:
        x.permute(list(reversed(range(10)))) + x
    assert str(caught.value) == (f"opencl: shape {[2] * 10} has more than 8 dimensions that cannot be merged; use contiguous()")


# ---- kernels


@pytest.mark.parametrize("shape", [(100_003,), (3, 50_001), (50_001, 3), (2, 30_000, 4), (0,), (3, 0)])
def test_long_reductions_are_computed_in_two_stages(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype("f4")
    x = moved(values)
    wide = values.astype("f8")
    for dim in (None, *range(len(shape))):
        assert close(x.sum() if dim is None else x.sum(dim), wide.sum(dim), 1e-4)
        if values.size:
            assert close(x.var() if dim is None else x.var(dim), wide.var(dim, ddof=1), 1e-4)
            assert close(x.amax(() if dim is None else dim), values.max(dim))
            assert close(x.argmin(dim), values.argmin(dim))
    if values.size:
        assert close(x[..., 1:].mean(), wide[..., 1:].mean(), 1e-4)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int64", "uint8"])
def test_matrix_products_of_any_strides(name: str) -> None:
    dtype = getattr(turnout, name)
    a, b = (turnout.randint(0, 4, (2, 9, 13)).to(dtype) for _ in range(2))
    expected = (a.to(turnout.float32) @ b.to(turnout.float32).permute(0, 2, 1)).tolist()
    found = a.to("opencl") @ b.to("opencl").permute(0, 2, 1)
    assert found.dtype is dtype
    assert np.array_equal(np.array(found.tolist()) % 256, np.array(expected) % 256)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_two_byte_floats_are_computed_in_float32_and_rounded_once(name: str) -> None:
    x = turnout.tensor([0.5, 1.0, 3.0]).to(getattr(turnout, name))
    for call in (turnout.exp, turnout.sigmoid, lambda t: t * t + t, turnout.sum, lambda t: turnout.softmax(t, 0)):
        assert call(x.to("opencl")).tolist() == call(x).tolist()
    assert hosting.calls() == {}


def test_an_index_out_of_range_is_an_error() -> None:
    x = turnout.arange(6, device="opencl")
    assert x[turnout.tensor([1, -1], device="opencl")].tolist() == [1, 5]
    for call in (lambda index: x[index], lambda index: x.index_put((index,), index)):
        with pytest.raises(IndexError) as caught:
            call(turnout.tensor([0, 9], device="opencl"))
        assert str(caught.value) == "index: index 9 is out of bounds for a dimension of size 6"
    with pytest.raises(IndexError) as caught:
        x.gather(0, turnout.tensor([-1], device="opencl"))
    assert str(caught.value) == "gather: index -1 is out of bounds for a dimension of size 6"
    with pytest.raises(IndexError) as caught:
        turnout.nn.functional.nll_loss(turnout.ones(2, 3, device="opencl"), turnout.tensor([0, 3], device="opencl")).item()
    assert str(caught.value) == "nll_loss: target 3 is out of bounds for 3 classes"


def test_an_index_without_elements_may_have_other_dims() -> None:
    x, none = moved(np.arange(5)), moved(np.zeros((2, 0), np.int64))
    assert x.gather(0, none).shape == (2, 0)
    assert x.scatter(0, none, 1).tolist() == [0, 1, 2, 3, 4]
    assert x.scatter_add(0, none, none).tolist() == [0, 1, 2, 3, 4]
    assert x.scatter_reduce(0, none, none, "prod").tolist() == [0, 1, 2, 3, 4]


def test_division_of_integers_by_zero_is_an_error() -> None:
    x = turnout.arange(3, device="opencl")
    with pytest.raises(ArgumentError) as caught:
        x // x
    assert str(caught.value) == (
        "aten::floor_divide: integer division by zero\n"
        "  arguments  self: Tensor int64 [3] on opencl:0, other: Tensor int64 [3] on opencl:0\n"
        "  to fix     check the values and shapes of these arguments"
    )


def test_repeated_indices_add_up_in_order_and_the_last_write_stands() -> None:
    x = turnout.zeros(3, device="opencl")
    index = turnout.tensor([2, 0, 2], device="opencl")
    values = turnout.tensor([1.0, 2.0, 3.0], device="opencl")
    assert x.index_put((index,), values, accumulate=True).tolist() == [2.0, 0.0, 4.0]
    assert x.index_put((index,), values).tolist() == [2.0, 0.0, 3.0]
    assert x.scatter_add(0, index, values).tolist() == [2.0, 0.0, 4.0]


def test_random_numbers_are_those_of_cpu() -> None:
    def draws(device: str) -> Any:
        generator = turnout.Generator(device).manual_seed(11)
        options = {"device": device, "generator": generator}
        return turnout.rand(1000, **options).tolist(), turnout.randint(1 << 40, (5,), **options).tolist()

    assert draws("opencl") == draws("cpu")


def test_threads_share_the_kernels() -> None:
    x = turnout.arange(100.0, device="opencl")
    wrong: list[int] = []

    def work(factor: int) -> None:
        for _ in range(50):
            if (x * factor + factor).sum().item() != 4950.0 * factor + 100 * factor:
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- sorting and selecting


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "dim"), [((1000,), 0), ((5, 333), 1), ((67, 3, 2), 0), ((4, 2, 9), 1), ((3, 1), 1)])
def test_sorting_is_stable_and_that_of_cpu(shape: tuple[int, ...], dim: int, dtype: str, descending: bool) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 9, shape).astype(dtype)
    if dtype.startswith("float"):
        data.reshape(-1)[::7] = np.nan
    here = turnout.from_numpy(data.T.copy()).to("opencl").permute(*reversed(range(len(shape))))
    there = turnout.from_numpy(data)
    found, expected = (x.sort(dim=dim, descending=descending, stable=True) for x in (here, there))
    k = min(3, shape[dim])
    if dtype != "bool":
        values, places = here.topk(k, dim, descending)  # which of equal elements it names is not said
        found = (*found, values, here.gather(dim, places))
        expected = (*expected, *(there.topk(k, dim, descending).values,) * 2)
    for got, want in zip(found, expected, strict=True):
        assert np.array_equal(got.cpu().numpy(), want.numpy(), equal_nan=dtype.startswith("float"))
    assert hosting.calls() == {}


def test_sorting_into_its_own_input_reads_before_it_writes() -> None:
    x = turnout.tensor(list(range(500, 0, -1)), device="opencl")
    turnout.ops.aten.sort.values_stable(x, stable=True, values=x, indices=turnout.empty(0, dtype=turnout.int64, device="opencl"))
    assert x.tolist() == list(range(1, 501))


@pytest.mark.parametrize("shape", [(2000,), (3, 5, 700), (0, 4), (), (1, 1, 1, 1, 2, 1, 1, 1, 1, 3)])
def test_masks_select_without_the_host(shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(1).integers(0, 3, shape) * 1.5
    here, there = turnout.from_numpy(np.asarray(data)).to("opencl"), turnout.from_numpy(np.asarray(data))
    assert here.nonzero().tolist() == there.nonzero().tolist()
    assert here[here > 2].tolist() == there[there > 2].tolist()
    here[here > 2], there[there > 2] = -1.0, -1.0
    assert here.tolist() == there.tolist()
    assert hosting.calls() == {}


# ---- what runs on the host


@pytest.fixture
def halved() -> Iterator[Operator]:
    """An operator that exists on cpu alone."""
    with Library("opencl_tests", "DEF") as lib:
        lib.define("halved(Tensor x, *, Generator? generator=None) -> (Tensor, Tensor)")
        lib.impl("halved", lambda x, *, generator=None: (x[: x.shape[0] // 2] + 1, x.sum()), "CPU")
        yield turnout.ops.opencl_tests.halved.default


def test_operators_without_a_kernel_run_on_cpu_and_are_counted(halved: Operator) -> None:
    x = turnout.tensor([3.0, 1.0, 2.0, 4.0], device="opencl")
    first, total = halved(x)
    assert (first.tolist(), total.item()) == ([4.0, 2.0], 10.0)
    assert str(first.device) == str(total.device) == "opencl:0"
    assert hosting.calls() == {("opencl_tests::halved", "opencl", "cpu"): 1}
    assert hosting.report() == "       1  opencl_tests::halved  opencl -> cpu"
    assert "runs on cpu, copied there and back" in str(turnout.explain(halved, x))
    with turnout.trace_dispatch() as log:
        halved(x)
    assert "runs on cpu, copied there and back" in str(log)


def test_dtypes_without_kernels_run_on_cpu_row_by_row() -> None:
    x = turnout.tensor([1 + 2j, 1.0], dtype=turnout.complex64, device="opencl")
    assert x.sqrt()[1].item() == 1.0
    assert hosting.calls() == {("aten::sqrt.out", "opencl", "cpu"): 1}


COMPLEX = {
    "cat": lambda x, at: turnout.cat([x, x[1:]], 0),
    "flip": lambda x, at: x.flip(0, 1),
    "where": lambda x, at: turnout.where(x.real > 0, x, x.mT),
    "tril": lambda x, at: x.tril(-1),
    "gather": lambda x, at: x.gather(1, at.expand(3, 3)),
    "index": lambda x, at: x[at, at.flip(0)],
    "index_select": lambda x, at: x.index_select(1, at),
    "index_put": lambda x, at: x.index_put((at, at), x[0]),
    "scatter": lambda x, at: x.scatter(0, at.expand(3, 3), x.mT),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_moved_without_the_host(name: str) -> None:
    x, at = turnout.randn(3, 3, dtype=turnout.complex64), turnout.tensor([2, 0, 1])
    expected, there = COMPLEX[name](x, at), (x.to("opencl"), at.to("opencl"))
    hosting.reset_calls()
    found = COMPLEX[name](*there)
    assert hosting.calls() == {}
    assert found.dtype is turnout.complex64
    assert found.tolist() == expected.tolist()


ARITHMETIC = {
    "add": lambda x, y: x + y,
    "sub with alpha": lambda x, y: turnout.sub(x, y, alpha=2 - 1j),
    "rsub": lambda x, y: turnout.rsub(x, y, alpha=3),
    "number on the left": lambda x, y: (2 - 3j) - x,
    "mul by a number": lambda x, y: x * 2.5 * 1j,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x, y: -x,
    "conj_physical": lambda x, y: x.conj_physical(),
    "reciprocal": lambda x, y: x.reciprocal(),
    "abs": lambda x, y: x.abs(),
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "broadcast": lambda x, y: x[:8, None] * y[None, ::3],
    "mm": lambda x, y: x[:12].view(3, 4) @ y[:12].view(3, 4).mT,
    "bmm": lambda x, y: turnout.bmm(x[:12].view(2, 2, 3), y[:6].view(2, 1, 3).mT),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_complex_numbers_are_computed_without_the_host_as_on_cpu_infinities_included(name: str) -> None:
    parts = [0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, -0.0] if name not in ("mm", "bmm") else [0.0, 1.0, -2.5, 3.0]
    every = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    x, y = np.repeat(every, len(every)), np.tile(every, len(every))
    expected = ARITHMETIC[name](turnout.from_numpy(x), turnout.from_numpy(y))
    x, y = moved(x), moved(y)
    hosting.reset_calls()
    found = ARITHMETIC[name](x, y)
    assert hosting.calls() == {}
    assert found.dtype is expected.dtype
    assert np.allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-5, equal_nan=True)


def test_gradients_of_complex_numbers_are_those_of_cpu() -> None:
    def gradient(device: str) -> Any:
        x = turnout.tensor([1 + 2j, -3j, 0.5], device=device, requires_grad=True)
        (x * x / (x + 1j)).abs().sum().backward()
        return x.grad.cpu()

    assert close(gradient("opencl"), gradient("cpu"))


def test_complex_numbers_that_are_added_or_of_another_dtype_are_not_moved_as_they_are() -> None:
    x, y = turnout.randn(3, dtype=turnout.complex64), turnout.ones(3)
    at = turnout.tensor([0, 0, 1])
    assert close(
        x.to("opencl").index_put((at.to("opencl"),), x.to("opencl"), accumulate=True), x.index_put((at,), x, accumulate=True)
    )
    assert close(turnout.cat([x.to("opencl"), y.to("opencl")]), turnout.cat([x, y]))
    assert close(turnout.where(y.to("opencl") > 0, x.to("opencl"), 2.0), turnout.where(y > 0, x, 2.0))


def test_the_host_fallback_can_be_switched_off(halved: Operator) -> None:
    turnout.plugins.deactivate("opencl")
    try:
        with turnout.config.override({"plugin.opencl.host_fallback": False}):
            x = turnout.tensor([3.0, 1.0], device="opencl")
            assert (x + x).tolist() == [6.0, 2.0]
            with pytest.raises(turnout.errors.NoKernelError):
                halved(x)
            with pytest.raises(DTypeError) as caught:
                turnout.ones(2, dtype=turnout.complex64, device="opencl").exp()
            assert str(caught.value) == (
                "exp.out: opencl does not compute in complex64; plugin.opencl.host_fallback = true lets it run on cpu"
            )
    finally:
        turnout.plugins.deactivate("opencl")


def test_a_model_is_trained_without_the_host() -> None:
    generator = turnout.Generator("opencl").manual_seed(0)
    options = {"device": "opencl", "generator": generator}
    x, true = turnout.randn(64, 8, **options), turnout.randn(8, 3, **options)
    labels = (x @ true).argmax(1)
    weight = turnout.zeros(8, 3, device="opencl").requires_grad_()
    for _ in range(60):
        loss = turnout.nn.functional.cross_entropy(x @ weight, labels)
        weight.grad = None
        loss.backward()
        with turnout.no_grad():
            weight -= weight.grad
    assert loss.item() < 0.2
    assert hosting.calls() == {}


def test_memory_that_begins_between_two_elements_of_the_new_dtype_is_not_viewed() -> None:
    bytes_of = turnout.ones(5, device="opencl").view(turnout.uint8)
    backend = turnout.device("opencl").backend
    with pytest.raises(ShapeError) as caught:
        backend.retyped(bytes_of.array.view((4,), (1,), 1), turnout.float32)
    assert str(caught.value) == "view: the memory of this tensor does not begin at a multiple of 4 bytes"


def test_a_device_without_float64_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    place = turnout.ones(2, device="opencl").array.place
    monkeypatch.setattr(place, "double", False)
    with pytest.raises(DTypeError) as caught:
        place.kernel("pointwise", turnout.float64, "first")
    assert str(caught.value) == f"{place.name} does not compute in float64"


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    code = "import turnout; x = turnout.ones(100, device='opencl'); assert x.exp().isfinite().all().item()"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    built = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        built.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.so")})
    if not built[0]:
        pytest.skip("the driver is not PoCL, which keeps what it compiled in files")
    assert built[1] == built[0]
