"""The memory of OpenCL devices: what is counted, what is kept and reused, and what a failing call gives back."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused
from turnout.errors import DeviceError, OutOfMemoryError

pytestmark = pytest.mark.usefixtures("opencl")
MEGA = 1 << 20


def used() -> int:
    gc.collect()
    return turnout.opencl.memory_stats()["allocated_bytes.all.current"]


def test_arrays_are_counted_while_they_live() -> None:
    before = used()
    x = turnout.ones(MEGA, device="opencl")
    view = x[10:]
    assert used() - before == 4 * MEGA
    del x
    assert used() - before == 4 * MEGA
    del view
    assert used() == before


def test_a_buffer_is_used_again_by_the_next_array_of_its_size() -> None:
    turnout.opencl.empty_cache()
    x = turnout.ones(MEGA, device="opencl")
    held = turnout.opencl.memory_stats()["reserved_bytes.all.current"]
    y = x.exp()
    del x
    for _ in range(20):
        y = y.sin()
    assert turnout.opencl.memory_stats()["reserved_bytes.all.current"] <= 2 * held
    assert turnout.allclose(y.cpu(), turnout.full((MEGA,), y[0].item()))
    del y
    assert turnout.opencl.memory_stats()["inactive.all.current"] >= 2
    turnout.opencl.empty_cache()
    assert turnout.opencl.memory_stats()["inactive.all.current"] == 0
    assert turnout.opencl.memory_stats()["reserved_bytes.all.current"] < held


def marked_for_huge_pages() -> int:
    """The bytes of this process for which Linux was asked for huge pages."""
    total = size = 0
    for name, *rest in map(str.split, Path("/proc/self/smaps").read_text().splitlines()):
        if name == "Size:":
            size = int(rest[0]) * 1024
        elif name == "VmFlags:" and "hg" in rest:
            total += size
    return total


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="the system has no such advice")
def test_large_buffers_of_a_processor_have_huge_pages_and_what_they_held_is_still_there() -> None:
    turnout.opencl.empty_cache()
    place = turnout.empty(1, device="opencl").array.place
    if not place.joins:
        pytest.skip("the device is no processor")
    small, before = turnout.ones(MEGA // 8, device="opencl"), marked_for_huge_pages()
    x = turnout.arange(13 * MEGA, device="opencl")
    after = marked_for_huge_pages()
    assert after - before >= 8 * 13 * MEGA - (1 << 13)
    assert x[::4097].tolist() == [*range(0, 13 * MEGA, 4097)]  # some in each page
    del x
    y = turnout.ones(13 * MEGA, dtype=turnout.int64, device="opencl")  # in the memory that x had
    assert set((y[::4097] + small[0].long()).tolist()) == {2}
    assert marked_for_huge_pages() >= after


def test_peaks_are_those_since_they_were_reset() -> None:
    turnout.opencl.reset_peak_memory_stats()
    before = used()
    x = turnout.ones(MEGA, device="opencl")
    del x
    stats = turnout.opencl.memory_stats()
    assert stats["allocated_bytes.all.peak"] == before + 4 * MEGA
    assert stats["reserved_bytes.all.peak"] >= stats["allocated_bytes.all.peak"]
    turnout.opencl.reset_peak_memory_stats()
    assert turnout.opencl.memory_stats()["allocated_bytes.all.peak"] == used() == before


def finished(call: Callable[..., turnout.Tensor], *args: turnout.Tensor) -> None:
    """A call, and what its kernels reported."""
    call(*args)
    turnout.opencl.synchronize()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, index: x[index],
        lambda x, index: x.index_put((index,), x[:2]),
        lambda x, index: x.gather(0, index),
        lambda x, index: x.scatter_add(0, index, x[:2]),
        lambda x, index: turnout.nn.functional.nll_loss(x.view(1, 4), index[1:]),
        lambda x, index: index // (index - index),
        lambda x, index: turnout.nn.functional.embedding(index, x.view(2, 2)),
    ],
)
def test_a_failing_call_gives_its_buffers_back(call: Callable[..., turnout.Tensor]) -> None:
    x, index = turnout.ones(4, device="opencl"), turnout.tensor([0, 9], device="opencl")
    before = used()
    for _ in range(3):
        with pytest.raises((IndexError, ArithmeticError, turnout.errors.TurnoutError)):
            finished(call, x, index)
        assert used() == before


@pytest.mark.parametrize("fails", ["build", "start"])
def test_a_kernel_that_the_driver_refuses_gives_its_buffers_back(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    def refuse(*args: object, **options: object) -> None:
        raise cl.RuntimeError("refused by the driver")

    x = turnout.rand(1000, device="opencl")
    before = used()
    where: Any = type(x.array.place) if fails == "build" else cl
    monkeypatch.setattr(where, "kernel" if fails == "build" else "enqueue_nd_range_kernel", refuse)
    for _ in range(3):
        assert refused(DeviceError, lambda: x.sin() + 1.0) == (
            "aten::sin: refused by the driver\n"
            "  arguments  self: Tensor float32 [1000] on opencl:0\n"
            "  to fix     check the values and shapes of these arguments"
        )
        assert used() == before
    monkeypatch.undo()
    assert (x.sin() - x.cpu().sin().to("opencl")).abs().amax().item() < 1e-6


def test_too_little_memory_that_shows_when_a_kernel_starts_is_the_error_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    def refuse(*args: object, **options: object) -> None:
        raise cl.MemoryError("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")

    x = turnout.rand(1000, device="opencl")
    before = used()
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", refuse)
    assert refused(OutOfMemoryError, x.sin) == (
        "aten::sin: opencl:0 has no room for the result\n"
        "  arguments  self: Tensor float32 [1000] on opencl:0\n"
        "  to fix     use smaller tensors or a smaller dtype, or delete tensors that are no longer needed"
    )
    assert used() == before


def test_no_room_names_the_size_and_the_device() -> None:
    before = turnout.opencl.memory_stats()["num_ooms"]
    assert refused(OutOfMemoryError, lambda: turnout.empty(1 << 40, device="opencl")) == (
        "opencl:0 has no room for 4.0 TiB (float32 [1099511627776])\n"
        "  to fix     use smaller tensors or a smaller dtype, or delete tensors that are no longer needed"
    )
    x = turnout.ones(3, device="opencl")
    assert refused(OutOfMemoryError, lambda: x.expand(1 << 38, 3).contiguous()) == (
        "aten::clone: opencl:0 has no room for 3.0 TiB (float32 [274877906944, 3])\n"
        "  arguments  self: Tensor float32 [274877906944, 3] on opencl:0, memory_format: str 'contiguous_format'\n"
        "  to fix     use smaller tensors or a smaller dtype, or delete tensors that are no longer needed"
    )
    assert turnout.opencl.memory_stats()["num_ooms"] == before + 2
    assert (x + x).tolist() == [2.0, 2.0, 2.0]


def test_room_is_made_of_what_is_kept_before_a_call_is_refused() -> None:
    turnout.opencl.empty_cache()
    kept = [turnout.empty(MEGA, device="opencl") for _ in range(4)]
    del kept
    assert turnout.opencl.memory_stats()["inactive.all.current"] >= 4
    with pytest.raises(OutOfMemoryError):
        turnout.empty(1 << 40, device="opencl")
    assert turnout.opencl.memory_stats()["inactive.all.current"] == 0


def test_devices_have_names_and_are_waited_for() -> None:
    assert turnout.opencl.device_count() >= 1
    name = turnout.opencl.get_device_name("opencl:0")
    assert name
    assert name == turnout.opencl.get_device_name(turnout.device("opencl"))
    turnout.opencl.synchronize("opencl:0")
    assert (
        refused(DeviceError, turnout.opencl.synchronize, "cpu") == "expected a device such as 'opencl' or 'opencl:1', got 'cpu'"
    )
    with pytest.raises(DeviceError, match=r"^opencl:99 does not exist: opencl has "):
        turnout.opencl.memory_stats("opencl:99")


# ---- DLPack


def test_dlpack_names_the_device_and_exports_a_copy_where_the_host_is_asked_for() -> None:
    x = turnout.arange(6.0, device="opencl")
    assert x.__dlpack_device__() == (4, 0)
    assert type(x.__dlpack__(dl_device=(1, 0))).__name__ == "PyCapsule"
    for exported in (x, x.view(2, 3).t()):
        for options in ({}, {"copy": True}):
            there = np.from_dlpack(exported, device="cpu", **options)
            assert there.tolist() == exported.tolist()
            x.add_(1.0)
            assert (there + 1).tolist() == exported.tolist()
    none = np.from_dlpack(turnout.empty(0, 2, device="opencl", dtype=turnout.int8), device="cpu")
    assert (none.shape, none.dtype) == ((0, 2), np.int8)


def test_dlpack_refuses_what_needs_a_copy_or_loses_a_gradient() -> None:
    x = turnout.arange(3.0, device="opencl")
    said = refused(BufferError, np.from_dlpack, x)
    assert said == "OpenCL memory cannot be exported through DLPack; ask for a copy on the host: dl_device=(1, 0)"
    with pytest.raises(BufferError) as raised:
        np.from_dlpack(x, device="cpu", copy=False)
    assert str(raised.value) == "a tensor on opencl:0 needs a copy to reach the host, which copy=False forbids"
    for take in (turnout.from_dlpack, lambda tensor: np.from_dlpack(tensor, device="cpu")):
        said = refused(BufferError, take, turnout.ones(2, device="opencl", requires_grad=True))
        assert said == "a tensor that requires a gradient cannot be exported through DLPack; detach() it first"


def test_a_tensor_comes_back_through_dlpack_with_its_memory() -> None:
    x = turnout.arange(6.0, device="opencl").view(2, 3)
    y = turnout.from_dlpack(x.t())
    assert (y.device, y.tolist()) == (x.device, x.t().tolist())
    y.fill_(7.0)
    assert x.tolist() == [[7.0] * 3] * 2

    class Exporter:
        def __dlpack__(self, **options: object) -> object:
            raise AssertionError

        def __dlpack_device__(self) -> tuple[int, int]:
            return 4, 0

    said = refused(BufferError, lambda: turnout.from_dlpack(Exporter()))
    assert said == "opencl takes the memory of Turnout's tensors alone, not that of Exporter"
