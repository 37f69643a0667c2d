"""Recorded training steps over the stand-in for CuPy: ten replays are ten steps, bit by bit. What else is recorded or refused."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import cupy_stand_in
import numpy as np
import pytest
from cuda_launches import DTYPES, OF_ROWS, recorded
from pretended_cuda import pretended
from test_cuda_runtime import HAS_CUDA, cuda, replayed

import turnout
from outcomes import refused
from turnout import nn, ops
from turnout.errors import CallError
from turnout_aten.tensor.random import default_generator
from turnout_cuda.backend import CUDABackend
from turnout_cuda.recordings import CURRENT, Recording

pytestmark = pytest.mark.skipif(HAS_CUDA, reason="there is a device of type cuda, which the stand-in would stand for")
F = nn.functional
aten = ops.aten
SHAPES = ((8, 5), (8,), (3, 8))  # of parameters
INPUTS = ((4, 5), (4, 3))


@pytest.fixture
def backend() -> Iterator[Any]:
    with pretended(CUDABackend) as made:
        yield made


# ---- training steps: forward, backward, and an update in place


def loss_of(parameters: Any, x: Any, target: Any) -> Any:
    """A loss with dropout and noise, which draws uniform and normal numbers."""
    w1, b1, w2 = parameters
    hidden = F.dropout(F.relu(F.layer_norm(F.linear(x, w1, b1), (8,))), 0.5, True)
    noisy = F.linear(hidden, w2) + 0.1 * turnout.randn(4, 3, device=x.device)
    return ((turnout.softmax(noisy, -1) - target) ** 2).mean()


def by_backward(*given: Any) -> Any:
    parameters, held, data = given[:3], given[3:6], given[6:]
    loss = loss_of(parameters, *data)
    loss.backward()
    with turnout.no_grad():
        for weight, momentum in zip(parameters, held, strict=True):
            momentum.mul_(0.9).add_(weight.grad)
            weight.sub_(momentum, alpha=0.1)
            weight.grad = None
    return loss


def by_func_grad(*given: Any) -> Any:
    parameters, held, data = given[:3], given[3:6], given[6:]
    slopes, loss = turnout.func.grad_and_value(loss_of)(parameters, *data)
    with turnout.no_grad():
        for weight, momentum, slope in zip(parameters, held, slopes, strict=True):
            momentum.mul_(0.9).add_(slope)
            weight.sub_(momentum, alpha=0.1)
    return loss


def by_lists(*given: Any) -> Any:
    """The update of all parameters is one kernel, which reads a table of their addresses."""
    parameters, held, data = given[:3], given[3:6], given[6:]
    slopes = turnout.autograd.grad(loss_of(parameters, *data), parameters)
    with turnout.no_grad():
        aten._foreach_mul_(list(held), 0.9)
        aten._foreach_add_(list(held), list(slopes))
        aten._fused_sgd_(
            list(parameters), list(slopes), list(held), weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.0, nesterov=False,
            maximize=False, is_first_step=False,
        )  # fmt: skip
    return parameters[0].sum()


STEPS = (by_backward, by_func_grad, by_lists)


def given_to(step: Any) -> list[Any]:
    """Parameters, what is held for each, and data, on the device; the generators begin anew."""
    turnout.manual_seed(1)
    made = [turnout.randn(*shape).to("cuda") for shape in (*SHAPES, *SHAPES, *INPUTS)]
    for each in made[:3] if step is not by_func_grad else ():
        each.requires_grad_()
    turnout.manual_seed(5)
    return made


def ten(step: Any, call: Callable[..., Any]) -> Any:
    """What ten calls give, what they leave, and where the generator is then."""
    given = given_to(step)
    places = [each.data_ptr() for each in given]
    results = [call(*given).detach() for _ in range(10)]
    assert [each.data_ptr() for each in given] == places
    arrays = [each.detach().cpu().numpy().tobytes() for each in (*results, *given)]
    return arrays, default_generator("cuda").get_state()


@pytest.mark.parametrize("step", STEPS)
def test_ten_replayed_steps_are_ten_steps(step: Any, backend: Any) -> None:
    eager = ten(step, step)
    graph = replayed_of(step)
    cupy_stand_in.launched.clear()
    first = ten(step, graph)
    assert first == eager
    assert len({*eager[0][:10]}) == 10, "each step draws other numbers"
    before = len(cupy_stand_in.launched)
    assert before
    given = given_to(step)
    graph(*given), graph(*given)
    again = len(cupy_stand_in.launched)
    graph(*given)
    assert len(cupy_stand_in.launched) == again, "a launch of a graph starts no kernel by itself"


def replayed_of(step: Any) -> Any:
    return turnout.trace(step, replay="cuda_graph")(*given_to(step))


def test_a_recorded_step_outlives_what_was_kept_for_other_calls(backend: Any) -> None:
    """Tables of addresses are dropped after so many; a graph keeps its own."""
    given = given_to(by_lists)
    graph = replayed_of(by_lists)
    graph(*given), graph(*given)
    for i in range(80):
        aten._foreach_add_([turnout.ones(i + 1, device="cuda")], 1.0)
    gc.collect()
    kept = [each.detach().clone() for each in given]
    by_lists(*[each.requires_grad_() if i < 3 else each for i, each in enumerate(kept)])  # with other numbers
    graph(*given)
    assert all(bool(turnout.isfinite(each).all()) for each in given)


def test_threads_replay_one_after_the_other(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both would meet between the copies of values and the launch."""
    given = [turnout.full((2,), float(i), device="cuda") for i in range(2)]
    graph = replayed(lambda x: x + 1.0, given[0])
    graph(given[0]), graph(given[0])
    meeting, replay = Barrier(2), cuda.CUDAGraph.replay

    def wait(self: Any) -> None:
        with suppress(BrokenBarrierError):
            meeting.wait(0.1)
        replay(self)

    monkeypatch.setattr(cuda.CUDAGraph, "replay", wait)
    with ThreadPoolExecutor(2) as pool:
        assert [each.tolist() for each in pool.map(graph, given)] == [[1.0, 1.0], [2.0, 2.0]]


# ---- random numbers


def test_recorded_draws_are_those_that_come_next(backend: Any) -> None:
    def draw() -> Any:
        made = [turnout.empty(3, device="cuda").bernoulli_(0.5), turnout.randint(-2, 9, (3,), device="cuda")]
        for dtype in [getattr(turnout, name) for name in DTYPES]:
            made += [turnout.rand(3, device="cuda", dtype=dtype), turnout.randn(3, device="cuda", dtype=dtype)]
            made += turnout.native_dropout(turnout.ones(9, device="cuda", dtype=dtype), 0.5, True)
        return made

    turnout.manual_seed(3)
    wanted = [[each.tolist() for each in draw()] for _ in range(3)]
    turnout.manual_seed(3)
    recording = cuda.CUDAGraph()
    with cuda.graph(recording), recorded() as launched:
        made = draw()
    assert {name for name, _ in launched} >= OF_ROWS - {"random_words_of_row"}
    found = []
    for _ in range(3):
        recording.replay()
        found.append([each.tolist() for each in made])
    assert found == wanted
    turnout.manual_seed(3)
    recording.replay()
    assert [each.tolist() for each in made] == wanted[0]


def test_other_generators_are_refused_in_recorded_work(backend: Any) -> None:
    own, x = turnout.Generator("cuda"), turnout.ones(2, device="cuda")
    text = "cuda graph: only the default generator of its device draws numbers in recorded work"
    for mine in (own, turnout.Generator("cuda").manual_seed(7)):
        with pytest.raises(CallError, match=text), cuda.graph(cuda.CUDAGraph()):
            turnout.rand(2, generator=mine, device="cuda")
    assert CURRENT.recording is None
    graph = replayed(lambda x: x + turnout.rand(2).to("cuda"), x)
    assert refused(CallError, graph, x) == (
        "replay='cuda_graph': the graph draws random numbers on cpu, and each launch would repeat them; "
        "graph.replay = '' runs operators one by one"
    )


def test_a_launch_on_another_stream_waits_before_it_draws_anew(backend: Any) -> None:
    recording, side = cuda.CUDAGraph(), cuda.Stream()
    with cuda.graph(recording):
        turnout.rand(2, device="cuda")
    recording.replay()
    assert recording._recording is not None
    event = recording._recording._launched
    with cuda.stream(side):
        recording.replay()
    assert side.native.journal[0] == ("wait", event)


def test_other_recordings_draw_no_numbers(backend: Any) -> None:
    native = backend.cupy.cuda
    pool = native.MemoryPool()
    with native.Stream(non_blocking=True) as stream, native.using_allocator(pool.malloc):
        stream.begin_capture()
        said = refused(CallError, lambda: turnout.rand(2, device="cuda"))
        stream.end_capture()
    assert said == "rand: cuda graph: random numbers are drawn in work that turnout.cuda.graph records, and in no other recording"


def test_a_graph_draws_so_many_times_and_no_more(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout_cuda.recordings._DRAWS", 2)
    state = default_generator("cuda").get_state()
    text = "rand: cuda graph: recorded work draws numbers at most 2 times"
    with pytest.raises(CallError, match=text), cuda.graph(cuda.CUDAGraph()):
        [turnout.rand(2, device="cuda") for _ in range(3)]
    assert default_generator("cuda").get_state() == state


def test_a_stream_that_is_recorded_already_is_the_drivers_error_and_leaves_nothing(backend: Any) -> None:
    native, x = backend.cupy.cuda, turnout.ones(2, device="cuda")
    with native.Stream(non_blocking=True) as stream, native.using_allocator(native.MemoryPool().malloc):
        stream.begin_capture()
        before = native.get_allocator()
        with pytest.raises(cupy_stand_in.CUDARuntimeError, match="cudaErrorIllegalState"):
            cuda.CUDAGraph().capture_begin()
        assert (CURRENT.recording, native.get_allocator()) == (None, before)
        stream.end_capture()
    with cuda.graph(cuda.CUDAGraph()):
        x + 1.0


# ---- memory


def test_a_graph_has_memory_of_its_own_as_long_as_it_lives(backend: Any) -> None:
    x, recording = turnout.ones(300, device="cuda"), cuda.CUDAGraph()
    before = cuda.memory_allocated()
    with cuda.graph(recording):
        y = (x + 1.0) * 2.0
    assert cuda.memory_allocated() == before, "its memory is that of another pool"
    made = recording._recording
    assert isinstance(made, Recording)
    assert made.pool.total_bytes() == 3072
    recording.replay()
    assert y.tolist() == [4.0] * 300
    native = recording._graph
    recording.reset()
    del made
    gc.collect()
    del y
    with pytest.raises(cupy_stand_in.CUDARuntimeError, match="the pool that the work was recorded with is gone"):
        native.launch()


# ---- the stand-in records as strictly as CUDA


def elsewhere(x: Any) -> None:
    with cuda.stream(cuda.Stream()):
        x + 1.0


REFUSED: list[Callable[[Any], Any]] = [
    lambda x: x.tolist(), lambda x: x[0].item(), lambda x: bool(x[0]), lambda x: float(x[0]), lambda x: x.cpu(), elsewhere,
    lambda x: cuda.current_stream().synchronize(), lambda x: x.nonzero(),
]  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_what_waits_or_leaves_the_stream_cannot_be_recorded(call: Any, backend: Any) -> None:
    x, recording = turnout.ones(2, device="cuda"), cuda.CUDAGraph()
    call(x)
    with pytest.raises((cupy_stand_in.CUDARuntimeError, CallError)), cuda.graph(recording):
        call(x)
    assert refused(CallError, recording.replay).startswith("cuda graph: nothing was recorded")
    call(x)
    with cuda.graph(recording):
        y = x + 1.0
    recording.replay()
    assert y.tolist() == [2.0, 2.0]


def test_memory_of_the_pool_for_all_cannot_be_taken_while_work_is_recorded(backend: Any) -> None:
    native = backend.cupy.cuda
    with native.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        with pytest.raises(AssertionError, match="memory of the pool for all"):
            backend.cupy.ndarray(3)
        with native.using_allocator(native.MemoryPool().malloc):
            made = backend.cupy.ndarray(3)
        stream.end_capture()
    assert made.shape == (3,)


def test_a_replay_reads_what_its_tables_say(backend: Any) -> None:
    recording = Recording(backend.cupy, backend.peaks.allocator, turnout.device("cuda:0"))
    made = recording.constant(np.arange(3))
    assert made.tolist() == [0, 1, 2]
