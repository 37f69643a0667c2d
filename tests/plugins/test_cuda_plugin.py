"""The CUDA plugin without a GPU: unavailable with the reason, and its backend over a stand-in for CuPy."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cupy_stand_in
import numpy as np
import pytest
from pretended_cuda import pretended

import turnout
import turnout_arrays
from outcomes import flat, refused
from turnout.dtypes import dtype_named
from turnout.registry import REGISTRY
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.tensor import interop
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import of_each_kind
from turnout_cuda import plugin
from turnout_cuda.module import WITHOUT


@pytest.fixture(scope="module")
def backend() -> Iterator[TensorBackend]:
    with pretended() as made:
        yield made


# ---- availability


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_the_error_names_the_extra() -> None:
    with pytest.raises(turnout.errors.PluginError) as caught:
        turnout.ones(2, device="cuda")
    manifest = Path(plugin.__file__).with_name("plugin.toml")
    assert str(caught.value) == (
        "device 'cuda': the plugin cuda is unavailable\n"
        "  why     the module cupy is not installed\n"
        f"  from    turnout-cuda 0.1.0 ({manifest})\n"
        "  to fix  `pip install cupy-cuda12x`, or `pip install cupy-cuda13x` for CUDA 13"
    )


def test_no_device_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in.Module(0))
    assert plugin.turnout_available() == "the CUDA driver reports no device"
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in.Module(-1))
    assert plugin.turnout_available() == (
        "the CUDA driver reports no device: cudaErrorNoDevice: no CUDA-capable device is detected"
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in.Module(1))
    monkeypatch.setitem(sys.modules, "cupyx", cupy_stand_in)  # which activation needs too
    assert plugin.turnout_available() is None
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert str(plugin.turnout_available()).startswith("CuPy cannot be imported: ")


# ---- over the stand-in


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_shared_kernels_need_no_more_than_cupy_has(case: OperatorCase, backend: TensorBackend) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    for dtype in of_each_kind(case, "cpu"):
        here = operator_cases.calls(case, dtype, lambda d, t: turnout.tensor(d, dtype=dtype_named(t), device="pretended"))
        there = operator_cases.calls(case, dtype, lambda d, t: turnout.tensor(d, dtype=dtype_named(t)))
        for (args, kwargs), (cpu_args, cpu_kwargs) in zip(here, there, strict=True):
            for got, want in zip(flat(op(*args, **kwargs)), flat(op(*cpu_args, **cpu_kwargs)), strict=True):
                if isinstance(want, turnout.Tensor):
                    assert got.device.type == "pretended"
                    assert type(got.array) is cupy_stand_in.ndarray
                    assert operator_cases.close(np, got.cpu().numpy(), want.numpy(), case.tolerance)


@pytest.mark.parametrize("name", ["exp", "neg", "isnan", "add", "gt", "mul"])
def test_results_have_the_layout_that_they_have_on_cpu(name: str, backend: TensorBackend) -> None:
    def strides(device: str) -> list[Any]:
        x = turnout.ones(2, 3, 4, device=device)
        given = [x, x.permute(2, 0, 1), x.t() if x.ndim == 2 else x.transpose(0, 2), x.expand(5, 2, 3, 4), x[:, ::2]]
        call = getattr(turnout, name)
        two = name in ("add", "gt", "mul")
        made = [call(v, v) if two else call(v) for v in given]
        made += [call(v, 2) for v in given] if two else []
        return [t.stride() for t in (*made, turnout.nonzero(x), turnout.nonzero(x.transpose(0, 2)))]

    assert strides("pretended") == strides("cpu")


def test_the_least_of_all_is_written_into_an_output(backend: TensorBackend) -> None:
    x = turnout.tensor([[3.0, 1.0], [2.0, 5.0]], device="pretended")
    out = turnout.empty(2, 2, device="pretended")[0]
    assert turnout.amin(x, 1, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    assert [t.item() for t in turnout.aminmax(x)] == [1.0, 5.0]


def asked_of_the_array_module(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """The names that a module takes from its parameter `xp`, `linalg.solve` for those of a submodule, and where."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = {id(node.value): node for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "xp":
            outer = inner.get(id(node))
            if outer is None or outer.attr != "LinAlgError":
                yield (f"{node.attr}.{outer.attr}" if node.attr in ("linalg", "fft") and outer else node.attr), node


SHARED = sorted(Path(turnout_arrays.__file__).parent.glob("**/*.py"))


@pytest.mark.parametrize("path", [path for path in SHARED if path.name != "backend.py"], ids=lambda path: path.stem)
def test_the_shared_kernels_name_nothing_that_cupy_has_not(path: Path, backend: Any) -> None:
    known = cupy_stand_in.NAMES.keys() | set(dir(backend.xp))
    missing = [f"{path.name}:{node.lineno}: xp.{name}" for name, node in asked_of_the_array_module(path) if name not in known]
    assert missing == [], "CuPy has no such name: a row for it belongs to the cpu plugin, or CuPyModule gives it one"


def test_the_stand_in_is_as_strict_as_cupy(backend: Any) -> None:
    cupy = backend.cupy
    x = cupy.arange(3)
    for wrong in (lambda: cupy.vecdot, lambda: cupy.linalg.multi_dot, lambda: cupy.errstate):
        refused(AttributeError, wrong)
    for wrong in (lambda: cupy.sort(x, stable=True), lambda: cupy.add(x, np.ones(3))):
        refused(TypeError, wrong)
    assert x[cupy.asarray([5])].tolist() == [2], "an index out of range wraps around"


def test_an_index_out_of_range_is_the_error_that_it_is_on_cpu(backend: TensorBackend) -> None:
    def errors(device: str) -> list[Any]:
        x, index = turnout.ones(3, 4, device=device), turnout.tensor([[0, 4]], device=device)
        low = turnout.tensor([[-5, 0]], device=device)
        found = []
        for bad in (index, low):
            for call in (
                lambda i: x[:, i], lambda i: x[i], lambda i: x.index_put((None, i), turnout.ones((), device=device)),
                lambda i: x.gather(1, i), lambda i: x.index_select(1, i[0]), lambda i: x.scatter(1, i, 1.0),
                lambda i: x.index_add(1, i[0], x[:, :2]), lambda i: x.scatter_add(1, i, x),
                lambda i: x.index_put((None, i), turnout.ones((), device=device), accumulate=True),
            ):  # fmt: skip
                with pytest.raises(IndexError) as caught:
                    call(bad).tolist()
                found.append(type(caught.value).__mro__)
        assert x.tolist() == [[1.0] * 4] * 3
        return found

    assert errors("pretended") == errors("cpu")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int64", "float64"])
def test_repeated_indices_add_up_in_every_dtype(dtype: str, backend: TensorBackend) -> None:
    x = turnout.zeros(3, dtype=dtype_named(dtype), device="pretended")
    index = turnout.tensor([0, 2, 2], device="pretended")
    one = turnout.ones(3, dtype=dtype_named(dtype), device="pretended")
    expected = [True, False, True] if dtype == "bool" else [1, 0, 2]
    assert x.index_put((index,), one, accumulate=True).tolist() == expected


@pytest.mark.parametrize("length", [0, 1, 2, 5, 16, 33])
@pytest.mark.parametrize("name", ["maximum", "minimum", "logaddexp"])
def test_what_cupy_does_not_accumulate_is_accumulated(name: str, length: int, backend: Any) -> None:
    values = np.random.default_rng(length).standard_normal((3, length, 2))
    values[1, length // 2 :, 0] = np.nan
    for axis in (1, -2):
        found = getattr(backend.xp, name).accumulate(backend.cupy.asarray(values), axis)
        with np.errstate(all="ignore"):
            expected = getattr(np, name).accumulate(values, axis)
        assert np.allclose(found.view(np.ndarray), expected, equal_nan=True)


def test_only_rows_that_are_there_are_left_out() -> None:
    assert set(WITHOUT) <= turnout_arrays.kernels(np).keys()


def test_a_solver_that_fails_is_an_error(backend: Any) -> None:
    bad = backend.cupy.asarray(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert np.isnan(backend.cupy.linalg.cholesky(bad).view(np.ndarray)).all(), "CuPy does not look by itself"
    refused(backend.xp.linalg.LinAlgError, backend.xp.linalg.cholesky, bad)


def test_tensors_are_made_on_the_device_that_is_named(backend: TensorBackend) -> None:
    x = turnout.ones(2, device="pretended:1")
    assert str(x.device) == "pretended:1"
    assert x.array.device.id == 1
    assert (x + x).array.device.id == 1, "operators run under the guard of their tensors' device"
    refused(turnout.errors.DeviceError, lambda: x + turnout.ones(2, device="pretended:0"))
    with pytest.raises(turnout.errors.DeviceError, match="pretended:2 does not exist"):
        turnout.ones(2, device="pretended:2")


def test_the_host_fallback_is_switched_off_and_on_at_once(backend: TensorBackend) -> None:
    x = turnout.ones(2, device="pretended")
    for _ in range(2):
        assert turnout.testing.assert_close(turnout.digamma(x).cpu(), turnout.digamma(x.cpu())) is None
        with turnout.config.override({"plugin.cuda.host_fallback": False}):
            assert refused(turnout.errors.NoKernelError, turnout.digamma, x) == (
                "aten::digamma: no kernel for PRETENDED\n  to fix  plugin.cuda.host_fallback = true lets it run on cpu"
            )
            whole, index = turnout.ones(2, device="pretended", dtype=turnout.int64), turnout.tensor([0, 1], device="pretended")
            assert refused(turnout.errors.DTypeError, whole.scatter_reduce, 0, index, whole, "sum") == (
                "scatter_reduce.two_out: pretended does not compute in int64; plugin.cuda.host_fallback = true lets it run on cpu"
            )


def test_the_host_cannot_reach_the_memory(backend: TensorBackend) -> None:
    with pytest.raises(turnout.errors.CallError, match=r"numpy: the tensor is on pretended:0; use \.cpu\(\)"):
        turnout.ones(2, device="pretended").numpy()


def test_dlpack_goes_both_ways_with_the_stream(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(interop.DLPACK_DEVICES, 2, "pretended")
    x = turnout.arange(6.0, device="pretended:1").reshape(2, 3).t()
    assert x.__dlpack_device__() == (2, 1)
    array = backend.cupy.from_dlpack(x)
    assert backend.cupy.cuda.given == [(7, (1, 0))], "the consumer says on which stream it reads"
    with array.device:
        array += 1.0
    again = turnout.from_dlpack(array)
    assert (again.device, again.stride(), again.array.device.id) == (x.device, (1, 3), 1)
    again.mul_(2.0)
    assert x.tolist() == [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]


def test_other_libraries_reach_the_memory_through_the_cuda_array_interface(backend: Any) -> None:
    x = turnout.ones(2, 3, device="pretended")
    found = x.__cuda_array_interface__
    assert (found["shape"], found["data"][0], found["typestr"]) == ((2, 3), x.array.data.ptr, "<f4")
    assert not hasattr(turnout.ones(2), "__cuda_array_interface__")
    said = refused(AttributeError, lambda: turnout.ones(2).__cuda_array_interface__)
    assert said == "a tensor on cpu has no __cuda_array_interface__"
    said = refused(turnout.errors.CallError, lambda: x.requires_grad_().__cuda_array_interface__)
    assert said == "__cuda_array_interface__: the tensor requires a gradient; use .detach()"
