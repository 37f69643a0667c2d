"""Streams and events of OpenCL: order, threads, what is undone, and memory that two streams use.

A gate holds a stream back until the test opens it, so what must not happen before has every chance to happen.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import turnout
from outcomes import refused
from turnout.errors import CallError, DeviceError
from turnout.library import Library

pytestmark = pytest.mark.usefixtures("opencl")
MEGA = 1 << 20


class Gate:
    """A stream that goes no further until `open` is called, or a test that waits for it by mistake has waited for a minute."""

    def __init__(self) -> None:
        import pyopencl as cl

        self.stream = turnout.opencl.Stream()
        with turnout.opencl.stream(self.stream):
            place = turnout.empty(1, device="opencl").array.place
            if place.device.name.startswith("basic"):
                pytest.skip("PoCL's device basic has no threads: a command that waits holds the thread that queues the next one")
            self._event: Any = cl.UserEvent(place.context)
            cl.enqueue_barrier(place.queue, wait_for=[self._event])
        self._done = cl.command_execution_status.COMPLETE
        self._late = threading.Timer(60, self._event.set_status, [self._done])
        self._late.start()
        self.is_open = False

    def open(self) -> None:
        self._late.cancel()
        self.is_open = True
        if self._event is not None:
            self._event.set_status(self._done)
            self._event = None


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()
    turnout.opencl.synchronize()


def ones(*shape: int) -> turnout.Tensor:
    return turnout.ones(*shape, device="opencl")


# ---- where work goes


def test_a_block_lets_work_go_to_its_stream_and_is_undone_however_it_ends() -> None:
    first, second = turnout.opencl.Stream(), turnout.opencl.Stream("opencl:0")
    default = turnout.opencl.default_stream()
    assert turnout.opencl.current_stream() is default is turnout.opencl.current_stream("opencl:0")
    with turnout.opencl.stream(first):
        assert turnout.opencl.current_stream() is first
        with pytest.raises(ZeroDivisionError), turnout.opencl.stream(second):
            1 // (turnout.opencl.current_stream() is not second)
        assert turnout.opencl.current_stream() is first
        with turnout.opencl.stream(None):
            assert turnout.opencl.current_stream() is first
        with turnout.opencl.stream(default):
            assert turnout.opencl.current_stream() is default
        with pytest.raises(IndexError):
            ones(2)[turnout.tensor([5], device="opencl")]
        assert (ones(3) + 1).tolist() == [2.0, 2.0, 2.0]
    assert turnout.opencl.current_stream() is default
    block = turnout.opencl.stream(first)
    with block, block:
        assert turnout.opencl.current_stream() is first
    assert turnout.opencl.current_stream() is default


def test_streams_say_what_they_are() -> None:
    s = turnout.opencl.Stream()
    assert s.device == turnout.device("opencl:0") == turnout.opencl.default_stream().device
    assert repr(s).endswith(" of opencl:0>")
    assert repr(turnout.opencl.default_stream()) == "<the default stream of opencl:0>"


def test_the_queue_of_a_stream_that_is_gone_serves_the_next_one() -> None:
    names = set()
    for _ in range(5):
        s = turnout.opencl.Stream()
        names.add(repr(s))
        del s
        gc.collect()
    assert len(names) == 1
    kept = [turnout.opencl.Stream() for _ in range(3)]
    assert len(set(map(repr, kept))) == 3


def test_a_stream_that_is_held_back_holds_nothing_else_back(gate: Gate) -> None:
    x = ones(1000)
    with turnout.opencl.stream(gate.stream):
        y = x.mul(2.0).sum()
    assert not gate.stream.query()
    assert turnout.opencl.default_stream().query() in (True, False)
    assert x.add(1.0).sum().item() == 2000.0
    done = turnout.opencl.Event()
    assert done.query()
    done.synchronize()
    gate.stream.record_event(done)
    assert not done.query()
    gate.open()
    gate.stream.synchronize()
    assert gate.stream.query()
    assert done.query()
    with turnout.opencl.stream(gate.stream):
        assert y.item() == 2000.0


@pytest.mark.parametrize("ordered_by", ["wait_stream", "wait_event", "event.wait"])
def test_work_that_waits_for_a_stream_comes_after_it(gate: Gate, ordered_by: str) -> None:
    x = turnout.zeros(MEGA, device="opencl")
    turnout.opencl.default_stream().synchronize()
    with turnout.opencl.stream(gate.stream):
        x.fill_(3.0)
    here = turnout.opencl.current_stream()
    if ordered_by == "wait_stream":
        here.wait_stream(gate.stream)
    elif ordered_by == "wait_event":
        here.wait_event(gate.stream.record_event())
    else:
        event = turnout.opencl.Event()
        event.record(gate.stream)
        event.wait()
    y = x * 2.0
    assert not here.query()
    gate.open()
    assert y.sum().item() == 6.0 * MEGA


def test_a_stream_says_at_once_whether_all_is_done(gate: Gate) -> None:
    s = turnout.opencl.Stream()
    assert s.query(), "nothing was queued"
    assert not gate.stream.query(), "what the program queued by itself counts"
    with turnout.opencl.stream(s):
        x = turnout.full((MEGA,), 2.0, device="opencl")
        assert x.sum().item() == 2.0 * MEGA
    assert s.query()
    s.wait_stream(gate.stream)
    assert not s.query()
    gate.open()
    s.synchronize()
    gate.stream.synchronize()
    assert (s.query(), gate.stream.query()) == (True, True)
    x = ones(MEGA).exp().sum()
    here = turnout.opencl.default_stream()
    here.synchronize()
    assert here.query()


def test_nothing_waits_for_an_event_that_was_not_recorded(gate: Gate) -> None:
    turnout.opencl.current_stream().wait_event(turnout.opencl.Event())
    turnout.opencl.Event().wait(gate.stream)
    assert ones(2).sum().item() == 2.0


def test_waiting_for_the_device_waits_for_all_streams() -> None:
    gate = Gate()
    with turnout.opencl.stream(gate.stream):
        y = ones(MEGA).exp()
    threading.Timer(0.05, gate.open).start()
    turnout.opencl.synchronize()
    assert gate.is_open
    assert gate.stream.query()
    assert y.sum().item() > 2 * MEGA


def test_threads_have_streams_of_their_own() -> None:
    wrong: list[Any] = []
    streams = [turnout.opencl.Stream() for _ in range(4)]

    def work(factor: int, s: turnout.opencl.Stream) -> None:
        if turnout.opencl.current_stream() is not turnout.opencl.default_stream():
            wrong.append("inherited")
        with turnout.opencl.stream(s):
            x = turnout.arange(100.0, device="opencl")
            for _ in range(30):
                if (x * factor + factor).sum().item() != 4950.0 * factor + 100 * factor:
                    wrong.append(factor)
            if turnout.opencl.current_stream() is not s:
                wrong.append("another stream")

    with turnout.opencl.stream(turnout.opencl.Stream()):
        threads = [threading.Thread(target=work, args=(factor, s)) for factor, s in enumerate(streams, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_gradients_random_numbers_and_copies_are_the_same_in_a_stream() -> None:
    def computed() -> list[Any]:
        generator = turnout.Generator("opencl").manual_seed(5)
        x = turnout.rand(40, 30, device="opencl", generator=generator).requires_grad_()
        loss = turnout.nn.functional.cross_entropy(x @ x.t(), turnout.arange(40, device="opencl"))
        loss.backward()
        assert x.grad is not None
        inverse = turnout.linalg.inv(x.detach()[:30])  # on the host
        return [x.tolist(), loss.item(), x.grad.cpu().tolist(), inverse.tolist(), x[x > 0.5].tolist()]

    expected = computed()
    with turnout.opencl.stream(turnout.opencl.Stream()):
        assert computed() == expected


# ---- what kernels find wrong


def wrong_target() -> turnout.Tensor:
    return turnout.nn.functional.nll_loss(ones(2, 3), turnout.tensor([0, 3], device="opencl"))


def test_an_error_of_a_stream_is_raised_when_the_stream_is_waited_for(gate: Gate) -> None:
    waits: list[Callable[[turnout.opencl.Event], None]] = [
        lambda event: gate.stream.synchronize(),
        lambda event: event.synchronize(),
        lambda event: turnout.opencl.synchronize(),
    ]
    gate.open()
    for wait in waits:
        with turnout.opencl.stream(gate.stream):
            wrong_target()
        assert refused(IndexError, wait, gate.stream.record_event()) == "nll_loss: target 3 is out of bounds for 3 classes"
        turnout.opencl.synchronize()


def test_a_read_in_another_stream_raises_it_once_the_work_is_done_and_not_before(gate: Gate) -> None:
    target = turnout.tensor([0, 3], device="opencl")
    x = ones(2, 3)
    with turnout.opencl.stream(gate.stream):
        loss = turnout.nn.functional.nll_loss(x, target)
    assert x.sum().item() == 6.0
    turnout.opencl.current_stream().wait_stream(gate.stream)
    gate.open()
    with pytest.raises(IndexError, match=r"^nll_loss: target 3 is out of bounds for 3 classes$"):
        loss.item()
    assert x.sum().item() == 6.0


# ---- memory


def test_memory_that_a_stream_still_reads_is_not_used_again_by_another_one(gate: Gate) -> None:
    x = turnout.full((MEGA,), 2.0, device="opencl")
    turnout.opencl.default_stream().synchronize()
    with turnout.opencl.stream(gate.stream):
        y = x * 3.0
        view = x[5:] * 1.0
    del x
    others = [turnout.full((MEGA,), 7.0, device="opencl") for _ in range(8)]
    turnout.opencl.default_stream().synchronize()
    gate.open()
    gate.stream.synchronize()
    assert y.sum().item() == 6.0 * MEGA
    assert view.sum().item() == 2.0 * (MEGA - 5)
    assert others[0][0].item() == 7.0


def test_memory_of_a_stream_that_the_default_one_still_reads_is_not_used_again_there(gate: Gate) -> None:
    s = turnout.opencl.Stream()
    with turnout.opencl.stream(s):
        x = turnout.full((MEGA,), 2.0, device="opencl")
        written = turnout.full((MEGA,), 5.0, device="opencl")
    s.synchronize()
    turnout.opencl.current_stream().wait_stream(gate.stream)
    y = x * 3.0
    written.fill_(1.0)
    del x, written
    with turnout.opencl.stream(s):
        others = [turnout.full((MEGA,), 7.0, device="opencl") for _ in range(4)]
    s.synchronize()
    gate.open()
    assert y.sum().item() == 6.0 * MEGA
    assert [each.sum().item() for each in others] == [7.0 * MEGA] * 4


def test_memory_goes_back_when_the_other_stream_is_done(gate: Gate) -> None:
    turnout.opencl.default_stream().synchronize()
    gc.collect()
    before = turnout.opencl.memory_stats()["allocated_bytes.all.current"]
    x = turnout.ones(MEGA, device="opencl")
    with turnout.opencl.stream(gate.stream):
        y = x.sum()
    del x
    assert turnout.opencl.memory_stats()["allocated_bytes.all.current"] >= before + 4 * MEGA
    gate.open()
    gate.stream.synchronize()
    del y
    assert turnout.opencl.memory_stats()["allocated_bytes.all.current"] == before


def test_a_stream_uses_its_own_memory_again_at_once(gate: Gate) -> None:
    with turnout.opencl.stream(gate.stream):
        x = turnout.ones(MEGA, device="opencl")
        held = turnout.opencl.memory_stats()["reserved_bytes.all.current"]
        for _ in range(20):
            x = x + 1.0
    assert turnout.opencl.memory_stats()["reserved_bytes.all.current"] <= held + 4 * MEGA * 2
    gate.open()
    gate.stream.synchronize()
    assert x[7].item() == 21.0


def test_too_little_memory_in_a_stream_is_the_error_it_is_elsewhere() -> None:
    with turnout.opencl.stream(turnout.opencl.Stream()):
        x = ones(4)
        y = x * 2.0
        with pytest.raises(turnout.errors.OutOfMemoryError, match=r"^opencl:0 has no room for 4\.0 TiB"):
            turnout.empty(1 << 40, device="opencl")
        assert y.tolist() == [2.0] * 4


def test_kernels_compiled_elsewhere_go_to_the_stream_and_keep_their_memory(gate: Gate) -> None:
    import numpy as np
    import pyopencl as cl

    source = """
    __kernel void scaled(__global float *o, __global const float *x, float by) {
      const size_t i = get_global_id(0);
      o[i] = x[i] * by;
    }
    """

    def scaled(x: turnout.Tensor, by: float) -> turnout.Tensor:
        made = turnout.empty_like(x)
        place = made.array.place
        kernel = cl.Kernel(cl.Program(place.context, source).build(), "scaled")
        place.start_kernel(kernel, (made.array.buffer, x.array.buffer, np.float32(by)), x.shape)
        return made

    with Library("opencl_streams", "DEF") as lib:
        lib.define("scaled(Tensor x, float by) -> Tensor")
        lib.impl("scaled", scaled, "OpenCL")
        x = turnout.full((MEGA,), 2.0, device="opencl")
        turnout.opencl.default_stream().synchronize()
        with turnout.opencl.stream(gate.stream):
            y = turnout.ops.opencl_streams.scaled(x, 4.0)
        del x
        other = turnout.zeros(MEGA, device="opencl")
        turnout.opencl.default_stream().synchronize()
        gate.open()
        gate.stream.synchronize()
        assert y.sum().item() == 8.0 * MEGA
        assert other.sum().item() == 0.0


# ---- times


def test_the_time_between_two_events_is_that_of_the_work_between_them() -> None:
    start, middle, end = (turnout.opencl.Event(enable_timing=True) for _ in range(3))
    for s in (turnout.opencl.default_stream(), turnout.opencl.Stream()):
        with turnout.opencl.stream(s):
            start.record()
            x = ones(MEGA).exp()
            middle.record()
            x.sin().sum().item()
            s.record_event(end)
        end.synchronize()
        whole = start.elapsed_time(end)
        assert whole > 0
        assert start.elapsed_time(middle) + middle.elapsed_time(end) == pytest.approx(whole)
        assert end.elapsed_time(start) == pytest.approx(-whole)


def test_waiting_for_a_stream_or_the_device_waits_for_events_with_times() -> None:
    s, x = turnout.opencl.Stream(), turnout.ones(1000, device="opencl")
    for wait in (s.synchronize, turnout.opencl.synchronize) * 100:
        event = turnout.opencl.Event(enable_timing=True)
        with turnout.opencl.stream(s):
            x.exp()
        event.record(s)
        wait()
        assert event.query()


def test_a_time_that_is_not_there_is_an_error(gate: Gate) -> None:
    start, end = turnout.opencl.Event(enable_timing=True), turnout.opencl.Event(enable_timing=True)
    assert refused(CallError, lambda: start.elapsed_time(turnout.opencl.Event())) == "elapsed_time: the event was not recorded"
    start.record()
    start.synchronize()
    said = refused(CallError, lambda: start.elapsed_time(turnout.opencl.Event()))
    assert said == "elapsed_time: end_event takes no time; make it with Event(enable_timing=True)"
    end.record(gate.stream)
    assert refused(CallError, start.elapsed_time, end) == "elapsed_time: end_event is not done yet; call its synchronize() first"
    gate.open()
    end.synchronize()
    assert start.elapsed_time(end) > 0


# ---- refusals


def test_what_is_no_stream_is_refused() -> None:
    for name, call in (
        ("stream", lambda: turnout.opencl.stream("cpu")),
        ("record", lambda: turnout.opencl.Event().record("cpu")),
        ("wait", lambda: turnout.opencl.Event().wait("cpu")),
    ):
        assert refused(CallError, call) == f"{name}: expected a turnout.opencl.Stream, got str"
    assert refused(DeviceError, turnout.opencl.Stream, "cpu") == "expected a device such as 'opencl' or 'opencl:1', got 'cpu'"


def test_a_stream_ends_with_the_plugin_that_made_it() -> None:
    s = turnout.opencl.Stream()
    name = repr(s)
    turnout.plugins.deactivate("opencl")
    with pytest.raises(DeviceError) as raised, turnout.opencl.stream(s):
        pass
    assert str(raised.value) == f"stream: {name} was made before the plugin opencl was deactivated; make a new one"
    assert turnout.opencl.current_stream() is turnout.opencl.default_stream()
    assert ones(2).tolist() == [1.0, 1.0]


def test_streams_join_the_pieces_of_their_own_reductions():
    streams = [turnout.opencl.Stream() for _ in range(3)]
    x = turnout.arange(300_000, device="opencl").float()
    turnout.opencl.synchronize()
    found = []
    for _ in range(20):
        for at, stream in enumerate(streams):
            with turnout.opencl.stream(stream):
                y = x + at
                found.append((at, y.amax(), y.argmax(), y.amin()))
        found.append((0, x.amax(), x.argmax(), x.amin()))
    turnout.opencl.synchronize()
    for at, largest, place, smallest in found:
        assert (largest.item(), place.item(), smallest.item()) == (299_999.0 + at, 299_999, at)
