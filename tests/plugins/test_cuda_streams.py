"""Streams, events and copies of page-locked memory under threads, and two devices, over the stand-in for CuPy."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from threading import Barrier
from typing import Any

import cupy_stand_in
import pytest
from cuda_launches import LAUNCHES
from pretended_cuda import pretended
from test_cuda_runtime import HAS_CUDA, cuda

import turnout
from outcomes import in_threads
from turnout.registry import REGISTRY
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import CASES, OperatorCase
from turnout_cuda.backend import CUDABackend

pytestmark = pytest.mark.skipif(HAS_CUDA, reason="there is a device of type cuda, which the stand-in would stand for")
THREADS = 4


@pytest.fixture
def backend() -> Iterator[Any]:
    with pretended(CUDABackend) as made:
        yield made


def together(run: Callable[[int], Any]) -> list[Any]:
    """What a function of a number gives in threads that begin at once."""
    barrier = Barrier(THREADS)

    def one(i: int) -> Any:
        barrier.wait()
        return run(i)

    return in_threads(*[lambda i=i: one(i) for i in range(THREADS)])


# ---- threads


def test_each_thread_has_its_own_stream_and_device(backend: Any) -> None:
    used: dict[int, set[tuple[int, int]]] = {}
    launch = cupy_stand_in.recorded

    def watched(*args: Any, **options: Any) -> Any:
        native = backend.cupy.cuda
        used.setdefault(native.stream.ptr, set()).add((native.current, native.stream.device_id))
        return launch(*args, **options)

    def run(i: int) -> Any:
        device = i % 2
        stream = cuda.Stream(device)
        with cuda.stream(stream):
            for _ in range(20):
                x = turnout.full((50,), float(i), device="cuda")
                y = turnout.softmax(x * 2.0 + x, -1) * 50.0
                assert str(y.device) == f"cuda:{device}"
                assert cuda.current_stream() == stream
        assert (cuda.current_device(), cuda.current_stream()) == (0, cuda.default_stream())
        return stream.native.ptr, device, y.to("cpu").tolist()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cupy_stand_in, "recorded", watched)
        found = together(run)
    for ptr, device, values in found:
        assert used[ptr] == {(device, device)}
        assert values == pytest.approx([1.0] * 50)
    assert cuda.current_stream() == cuda.default_stream()


def test_one_thread_records_while_others_run(backend: Any) -> None:
    barrier = Barrier(2)
    x = turnout.ones(4, device="cuda")

    def recording() -> Any:
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            y = x + 1.0
            barrier.wait()
            barrier.wait()
            z = turnout.softmax(y, -1) + turnout.rand(4, device="cuda")
        graph.replay()
        return z.tolist()

    def running() -> Any:
        barrier.wait()
        found = [(x * float(i)).tolist() for i in range(5)]  # which reads on the host, and takes memory of the pool for all
        barrier.wait()
        return found

    turnout.manual_seed(2)
    wanted = (turnout.full((4,), 0.25) + turnout.rand(4, device="cuda").cpu()).tolist()
    turnout.manual_seed(2)
    recorded, run = in_threads(recording, running)
    assert run == [[float(i)] * 4 for i in range(5)]
    assert recorded == wanted


def test_memory_is_counted_under_threads(backend: Any) -> None:
    before = cuda.memory_allocated()

    def run(i: int) -> None:
        kept = [turnout.ones(128, device="cuda") for _ in range(50)]
        assert len(kept) == 50

    together(run)
    gc.collect()
    assert cuda.memory_allocated() == before
    assert before + 50 * 512 <= cuda.max_memory_allocated() <= before + THREADS * 50 * 512 + THREADS * 512


# ---- events


def test_a_wait_is_queued_between_what_came_before_and_what_comes_after(backend: Any) -> None:
    first, second, event = cuda.Stream(), cuda.Stream(), cuda.Event()
    with cuda.stream(first):
        event.record()
    event.wait(second)
    other = second.record_event()
    first.wait_event(other)
    assert first.native.journal == [("record", event.native), ("wait", other.native)]
    assert second.native.journal == [("wait", event.native), ("record", other.native)]


def test_an_event_is_reached_when_what_was_queued_before_it_is_done(backend: Any) -> None:
    stream, x = cuda.Stream(), turnout.arange(4.0).pin_memory()
    stream.native.dawdles = True
    with cuda.stream(stream):
        y = x.to("cuda", non_blocking=True)
        event = stream.record_event()
        later = turnout.arange(4.0).pin_memory().to("cuda", non_blocking=True)
    assert (event.query(), stream.query()) == (False, False)
    event.synchronize()
    assert (event.query(), stream.query()) == (True, False)
    assert y.array.view(cupy_stand_in.np.ndarray).tolist() == x.tolist()
    stream.synchronize()
    assert (stream.query(), later.tolist()) == (True, x.tolist())


# ---- copies of page-locked memory


def test_copies_keep_their_source_until_they_are_done(backend: Any) -> None:
    """The stream copies late, and the driver would read what lies there by then: each thread drops its source at once."""

    def run(i: int) -> Any:
        stream, made = cuda.Stream(i % 2), []
        stream.native.dawdles = True
        with cuda.stream(stream):
            for k in range(10):
                x = turnout.full((64,), float(10 * i + k)).pin_memory()
                made.append(x.to(f"cuda:{i % 2}", non_blocking=True))
                del x
                if k % 4 == 3:
                    stream.synchronize()
            gc.collect()
            turnout.full((64,), -1.0).pin_memory()  # where memory that was freed would be taken again
            return [each.tolist() for each in made]

    for i, found in enumerate(together(run)):
        assert found == [[float(10 * i + k)] * 64 for k in range(10)]
    turnout.ones(1).pin_memory().to("cuda", non_blocking=True)
    assert len(backend._read) == 1, "what was read is let go with the next copy"


def test_the_stand_in_tells_where_a_source_was_dropped(backend: Any) -> None:
    stream, x = backend.cupy.cuda.Stream(non_blocking=True), turnout.ones(4).pin_memory()
    stream.dawdles = True
    backend.cupy.ndarray(4, "float32").set(x.array, stream)
    del x
    with pytest.raises(AssertionError, match="page-locked memory was freed before it was read"):
        stream.synchronize()


# ---- two devices


def on(device: str, case: OperatorCase) -> Any:
    (dtype,) = case.dtypes[:1]
    made = operator_cases.calls(case, dtype, lambda d, t: turnout.tensor(d, dtype=getattr(turnout, t), device=device))
    return list(made)


@pytest.mark.parametrize("case", [case for case in CASES if case.op in LAUNCHES], ids=str)
def test_everything_happens_on_the_device_of_the_tensors(case: OperatorCase, backend: Any) -> None:
    """The stand-in refuses arrays of another device than the current one, and memory is that of the current one."""
    op, pool = REGISTRY.find(f"aten::{case.op}"), backend.cupy.cuda.pool
    calls = on("cuda:1", case)
    before = pool.used[0], pool.total[0]
    cupy_stand_in.launched.clear()
    for args, kwargs in calls:
        for _ in range(3):  # by the shape function, by a plan, and once more
            found = op(*args, **kwargs)
            assert backend.cupy.cuda.current == 0
    tensors = [each for each in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(each, turnout.Tensor)]
    assert {str(each.device) for each in tensors} <= {"cuda:1"}
    assert {each.array.device.id for each in tensors} <= {1}
    assert {device for _, device in cupy_stand_in.launched} <= {1}
    assert (pool.used[0], pool.total[0]) == before


def test_the_device_is_put_back_after_an_error(backend: Any) -> None:
    x = turnout.ones(3, 4, device="cuda:1")
    for wrong in (lambda: x @ x, lambda: x.sum(5), lambda: x.reshape(5)):
        with pytest.raises(turnout.errors.TurnoutError):
            wrong()
        assert (cuda.current_device(), backend.cupy.cuda.here.entered) == (0, [])
    made = turnout.linspace(0, 1, 5, device="cuda:0"), turnout.linspace(0, 1, 5, device="cuda:1")
    assert made[0].tolist() == made[1].tolist()


def test_a_copy_between_devices_is_ordered_with_both_streams(backend: Any) -> None:
    first, second = cuda.Stream("cuda:0"), cuda.Stream("cuda:1")
    with cuda.stream(first):
        x = turnout.arange(6.0, device="cuda:0").reshape(2, 3).t()
    with cuda.device(0), first.native, cuda.device(1), second.native:
        y = x.to("cuda:1")
    assert (str(y.device), y.tolist()) == ("cuda:1", x.tolist())
    (_, computed), (_, read) = [each for each in first.native.journal if each[0] in ("record", "wait")]
    assert second.native.journal[:2] == [("wait", computed), ("record", read)]


def test_a_product_uses_the_handle_of_its_device(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    handles: list[int] = []
    ask = backend.cupy.cuda.get_cublas_handle
    monkeypatch.setattr(backend.cupy.cuda, "get_cublas_handle", lambda: handles.append(ask()) or handles[-1])
    for device in ("cuda:0", "cuda:1"):
        x = turnout.ones(2, 2, device=device)
        for _ in range(2):
            assert (x @ x).tolist() == [[2.0, 2.0]] * 2
    assert handles == [1, 1, 2, 2]
