"""What is particular to OpenCL: devices, memory, compiled programs, the host fallback. Needs a driver such as PoCL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_words import check_words

import turnout
from outcomes import refused
from turnout.errors import ArgumentError, CallError, DeviceError, DTypeError, ShapeError
from turnout.library import Library
from turnout.operators import Operator
from turnout_aten.backend import host_fallback as hosting
from turnout_opencl import convolutions, plugin
from turnout_opencl.programs import TYPES

pytestmark = pytest.mark.usefixtures("opencl")
F = turnout.nn.functional


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    hosting.reset_calls()


def there(*values: Any) -> turnout.Tensor:
    return turnout.tensor(list(values), device="opencl")


def close(found: turnout.Tensor, expected: turnout.Tensor) -> bool:
    return np.allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


# ---- devices


def test_tensors_have_the_index_of_their_device() -> None:
    assert str(there(1).device) == "opencl:0"
    with pytest.raises(DeviceError, match=r"^opencl:99 does not exist: opencl has "):
        turnout.ones(1, device="opencl:99")


def test_a_context_without_platforms_has_no_devices() -> None:
    with turnout.config.override({"plugin.opencl.platform": "no such platform"}):
        turnout.plugins.deactivate("opencl")
        with pytest.raises(DeviceError, match=r"^opencl:0 does not exist: opencl has 0 device\(s\)$"):
            turnout.ones(1, device="opencl")
    turnout.plugins.deactivate("opencl")
    assert turnout.ones(1, device="opencl").tolist() == [1.0]


def test_no_driver_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("name", [dtype.name for dtype in TYPES])
def test_fills_of_dense_and_strided_memory(name: str) -> None:
    x = turnout.zeros(3, 4, dtype=getattr(turnout, name), device="opencl")
    x[:, 1::2].fill_(1)
    x[2].zero_()
    here = turnout.zeros(3, 4, dtype=getattr(turnout, name))
    here[:2, 1::2] = 1
    assert x.tolist() == here.tolist()


def test_the_host_cannot_reach_the_memory() -> None:
    with pytest.raises(CallError, match=r"use \.cpu\(\)\.numpy\(\)"):
        there(1.0).numpy()
    assert there(1.0, 2.0).numpy(force=True).tolist() == [1.0, 2.0]


def test_more_dims_than_a_kernel_has_are_an_error_unless_they_merge() -> None:
    x = turnout.ones((2,) * 10, device="opencl")
    assert (x + x).sum().item() == 2048.0
    assert refused(ShapeError, lambda: x.permute(list(reversed(range(10)))) + x) == (
        f"opencl: shape {[2] * 10} has more than 8 dimensions that cannot be merged; use contiguous()"
    )


def test_memory_that_begins_between_two_elements_of_the_new_dtype_is_not_viewed() -> None:
    bytes_of = turnout.ones(5, device="opencl").view(turnout.uint8)
    said = refused(
        ShapeError, lambda: turnout.device("opencl").backend.retyped(bytes_of.array.view((4,), (1,), 1), turnout.float32)
    )
    assert said == "view: the memory of this tensor does not begin at a multiple of 4 bytes"


# ---- kernels

OUT_OF_RANGE: list[tuple[Callable[[turnout.Tensor], Any], str]] = [
    (lambda x: x[there(0, 9)], "index: index 9 is out of bounds for a dimension of size 6"),
    (lambda x: x.index_put((there(0, 9),), there(0, 9)), "index: index 9 is out of bounds for a dimension of size 6"),
    (lambda x: x.gather(0, there(-1)), "gather: index -1 is out of bounds for a dimension of size 6"),
    (lambda x: F.nll_loss(x.float().view(2, 3), there(0, 3)).item(), "nll_loss: target 3 is out of bounds for 3 classes"),
]


@pytest.mark.parametrize(("call", "said"), OUT_OF_RANGE)
def test_an_index_out_of_range_is_an_error(call: Callable[[turnout.Tensor], Any], said: str) -> None:
    x = turnout.arange(6, device="opencl")
    assert x[there(1, -1)].tolist() == [1, 5]
    assert refused(IndexError, call, x) == said


def test_division_of_integers_by_zero_is_an_error() -> None:
    x = turnout.arange(3, device="opencl")
    for call in (lambda: x // x, lambda: x.fmod(0), lambda: x % 0):
        assert "integer division by zero" in refused(ArgumentError, call)
    assert refused(ArgumentError, lambda: x // x) == (
        "aten::floor_divide: integer division by zero\n"
        "  arguments  self: Tensor int64 [3] on opencl:0, other: Tensor int64 [3] on opencl:0\n"
        "  to fix     check the values and shapes of these arguments"
    )


@pytest.mark.parametrize("shape", [(2, 4, 9, 10), (2, 4, 8, 12), (3, 4, 8, 10), (2, 6, 8, 10)])
def test_gradients_of_shapes_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    given = [turnout.ones(s, device="opencl") for s in (shape, (2, 4, 10, 12), (4, 1, 3, 3))]
    with pytest.raises((RuntimeError, ValueError)):
        turnout.ops.aten.convolution_backward(*given, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 4, [False, True, False])


def test_images_that_do_not_fit_into_the_room_are_worked_on_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolutions, "_ROOM", 2 * 3 * 8 * 9)

    def both(x: turnout.Tensor, w: turnout.Tensor) -> tuple[turnout.Tensor, ...]:
        leaves = [x.requires_grad_(), w.requires_grad_()]
        made = F.conv2d(*leaves, padding=1)
        return made.detach(), *turnout.autograd.grad(made.square().sum(), leaves)

    x, w = turnout.randn(5, 3, 8, 9), turnout.randn(4, 3, 3, 3)
    for found, expected in zip(both(x.to("opencl"), w.to("opencl")), both(x, w), strict=True):
        assert turnout.allclose(found.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_random_numbers_are_those_of_cpu() -> None:
    def draws(device: str) -> Any:
        generator = turnout.Generator(device).manual_seed(11)
        options = {"device": device, "generator": generator}
        return turnout.rand(1000, **options).tolist(), turnout.randint(1 << 40, (5,), **options).tolist()

    assert draws("opencl") == draws("cpu")
    check_words("opencl")


def test_of_equal_elements_any_may_be_named_among_the_first_ones() -> None:
    x = turnout.tensor([[3, 1, 3, 3, 2], [0, 0, 7, 0, 7]])
    for dim in (0, 1):
        for largest in (False, True):
            values, places = x.to("opencl").topk(2, dim, largest)
            assert values.tolist() == x.topk(2, dim, largest).values.tolist()
            assert x.to("opencl").gather(dim, places).tolist() == values.tolist()


def test_sorting_into_its_own_input_reads_before_it_writes() -> None:
    x = there(*range(500, 0, -1))
    turnout.ops.aten.sort.values_stable(x, stable=True, values=x, indices=turnout.empty(0, dtype=turnout.int64, device="opencl"))
    assert x.tolist() == list(range(1, 501))


def test_partial_sums_are_added_up_in_double_precision() -> None:
    if not there(1.0).array.place.double:
        pytest.skip("the device has no double precision")
    x = np.full(1_000_011, 0.1, "float32")
    x[::3] = 1e-3
    assert turnout.from_numpy(x).to("opencl").sum().item() == np.float32(x.astype("float64").sum())


def test_a_device_without_float64_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    place = there(1.0).array.place
    monkeypatch.setattr(place, "double", False)
    assert refused(DTypeError, place.kernel, "pointwise", turnout.float64, "first") == f"{place.name} does not compute in float64"


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    code = "import turnout; assert turnout.ones(9, device='opencl').isnan().tolist() == [False] * 9"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    built = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        built.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.so")})
    if not built[0]:
        pytest.skip("the driver is not PoCL, which keeps what it compiled in files")
    assert built[1] == built[0]


# ---- what runs on the host


@pytest.fixture
def halved() -> Iterator[Operator]:
    """An operator that exists on cpu alone."""
    with Library("opencl_tests", "DEF") as lib:
        lib.define("halved(Tensor x, *, Generator? generator=None) -> (Tensor, Tensor)")
        lib.impl("halved", lambda x, *, generator=None: (x[: x.shape[0] // 2] + 1, x.sum()), "CPU")
        yield turnout.ops.opencl_tests.halved.default


def test_operators_without_a_kernel_run_on_cpu_and_are_counted(halved: Operator) -> None:
    x = there(3.0, 1.0, 2.0, 4.0)
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
    assert there(1 + 2j, 1.0).sqrt()[1].item() == 1.0
    assert hosting.calls() == {("aten::sqrt.out", "opencl", "cpu"): 1}


def test_gradients_of_complex_numbers_are_those_of_cpu() -> None:
    def gradient(device: str) -> Any:
        x = turnout.tensor([1 + 2j, -3j, 0.5], device=device, requires_grad=True)
        (x * x / (x + 1j)).abs().sum().backward()
        return x.grad.cpu()

    assert close(gradient("opencl"), gradient("cpu"))


def test_complex_numbers_that_are_added_or_of_another_dtype_are_not_moved_as_they_are() -> None:
    x, y, at = turnout.randn(3, dtype=turnout.complex64), turnout.ones(3), turnout.tensor([0, 0, 1])
    here = x.to("opencl")
    assert close(here.index_put((at.to("opencl"),), here, accumulate=True), x.index_put((at,), x, accumulate=True))
    assert close(turnout.cat([here, y.to("opencl")]), turnout.cat([x, y]))
    assert close(turnout.where(y.to("opencl") > 0, here, 2.0), turnout.where(y > 0, x, 2.0))


def test_the_host_fallback_is_switched_off_and_on_at_once(halved: Operator) -> None:
    x, z = there(3.0, 1.0), there(1j, 1.0)
    assert halved(x)[1].item() == 4.0
    z.exp()
    with turnout.config.override({"plugin.opencl.host_fallback": False}):
        assert (x + x).tolist() == [6.0, 2.0]
        assert refused(turnout.errors.NoKernelError, halved, x) == (
            f"{halved.qualified_name}: no kernel for OpenCL\n  to fix  plugin.opencl.host_fallback = true lets it run on cpu"
        )
        assert refused(DTypeError, z.exp) == (
            "exp.out: opencl does not compute in complex64; plugin.opencl.host_fallback = true lets it run on cpu"
        )
    assert halved(x)[1].item() == 4.0
    z.exp()
