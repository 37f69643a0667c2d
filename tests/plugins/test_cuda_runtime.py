"""`turnout.cuda` over the stand-in for CuPy: devices, streams, events, memory, recorded work; and what it is without a GPU."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import cupy_stand_in
import pytest
from pretended_cuda import pretended

import turnout
from outcomes import refused
from turnout.errors import CallError, DeviceError, PluginError, PublicNameError, TurnoutError
from turnout_aten import cuda as without_a_package
from turnout_cuda.backend import CUDABackend

HAS_CUDA = turnout.cuda.is_available()
pytestmark = pytest.mark.skipif(HAS_CUDA, reason="there is a device of type cuda, which the stand-in would stand for")


def with_members() -> types.SimpleNamespace:
    """`turnout.cuda` as it is where the plugin works: members are looked up in an active plugin, which takes a GPU or CuPy."""
    manifest = next(found.manifest for found in turnout.plugins.catalog().found if found.name == "cuda")
    assert manifest is not None
    members = {name: getattr(import_module(path), name) for name, path in manifest.offers("cuda").all.items()}
    return types.SimpleNamespace(**{name: getattr(turnout.cuda, name) for name in WITHOUT_THE_PLUGIN}, **members)


WITHOUT_THE_PLUGIN = without_a_package.__all__
cuda: Any = with_members()


@pytest.fixture
def backend() -> Iterator[Any]:
    """Two devices of type cuda."""
    with pretended(CUDABackend) as made:
        yield made


# ---- without a device


ASKS = [
    name for name in vars(cuda)
    if name not in (*WITHOUT_THE_PLUGIN, "stream", "graph")
]  # fmt: skip


@pytest.mark.parametrize("name", ASKS)
def test_without_a_device_the_error_says_why(name: str) -> None:
    asked = getattr(cuda, name)
    needed = [p for p in inspect.signature(asked).parameters.values() if p.default is p.empty]
    with pytest.raises(TurnoutError, match=r"^device 'cuda': the plugin cuda is unavailable\n  why     "):
        asked(*[0] * len(needed))


def test_the_page_names_what_answers_without_a_device() -> None:
    page = " ".join((Path(__file__).parents[2] / "plugins/cuda/README.md").read_text("utf-8").split())
    (said,) = re.findall("Of these, (.*?) answer without this package", page)
    assert sorted(re.findall(r"`(\w+)`", said)) == sorted(WITHOUT_THE_PLUGIN)


def test_questions_before_a_choice_have_an_answer_without_a_device() -> None:
    assert (cuda.is_available(), cuda.device_count()) == (False, 0)
    cuda.manual_seed_all(3)
    cuda.manual_seed(3)
    with cuda.stream(None):
        pass


def test_the_other_names_need_the_plugin_and_say_why_they_are_not_there() -> None:
    for name in vars(cuda).keys() - set(WITHOUT_THE_PLUGIN):
        said = refused(PublicNameError, lambda name=name: getattr(turnout.cuda, name))
        assert said.startswith("the plugin cuda is unavailable\n  why     ")
        assert refused(PluginError, exec, f"from turnout.cuda import {name}") == said
    assert refused(PublicNameError, lambda: turnout.cuda.Strem) == (  # type: ignore[attr-defined]
        "module 'turnout.cuda' has no attribute 'Strem'; did you mean Stream?"
    )


def test_the_names_are_members_of_turnout_cuda_where_the_plugin_works(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("import sys, cupy_stand_in\nsys.modules['cupy'] = cupy_stand_in.Module()\n", "utf-8")
    (tmp_path / "cupyx.py").write_text("from cupy_stand_in import errstate\n", "utf-8")
    code = f"""
import sys
sys.path[:0] = {[str(tmp_path), str(Path(__file__).parent)]}
import turnout
assert {sorted(vars(cuda))} == dir(turnout.cuda) == turnout.cuda.__all__
assert "turnout_cuda" not in sys.modules
assert turnout.cuda.device_count() == 2
from turnout.cuda import CUDAGraph, Stream, graph
made, x = CUDAGraph(), turnout.ones(2, device="cuda")
with graph(made, Stream()):
    y = x + 1
made.replay()
print(y.tolist(), CUDAGraph.__module__, turnout.cuda.memory_allocated.__module__, turnout.cuda.is_available.__module__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[2.0, 2.0] turnout.cuda turnout.cuda turnout.cuda\n", done.stderr


# ---- devices


def test_the_current_device_is_where_cuda_is(backend: Any) -> None:
    assert (cuda.is_available(), cuda.device_count(), cuda.current_device()) == (True, 2, 0)
    with cuda.device("cuda:1"):
        assert str(turnout.ones(2, device="cuda").device) == "cuda:1"
        with cuda.device(0), cuda.device(None):
            assert str(turnout.ones(2, device="cuda").device) == "cuda:0"
        assert cuda.current_device() == 1
    cuda.set_device(turnout.device("cuda", 1))
    assert str(turnout.ones(2, device="cuda").device) == "cuda:1"
    cuda.set_device("cuda:0")
    with pytest.raises(KeyError), cuda.device(1):
        raise KeyError
    assert cuda.current_device() == 0


def test_other_devices_are_refused(backend: Any) -> None:
    for wrong in ("cpu", "meta:1"):
        said = refused(DeviceError, cuda.synchronize, wrong)
        assert said == f"expected a device such as 'cuda' or 'cuda:1', or its index, got {wrong!r}"
    for missing in (2, "cuda:2"):
        with pytest.raises(DeviceError, match="cuda:2 does not exist"):
            cuda.set_device(missing)


def test_a_device_is_described(backend: Any) -> None:
    assert cuda.get_device_name() == cuda.get_device_name(1) == "Pretended GPU"
    assert (cuda.get_device_capability(), cuda.get_device_capability("cuda:1")) == ((7, 5), (8, 5))
    found = cuda.get_device_properties()
    assert (found.total_memory, found.multi_processor_count, found.warp_size) == (1 << 30, 40, 32)
    assert not cuda.is_bf16_supported()
    with cuda.device(1):
        assert cuda.is_bf16_supported()


def test_synchronize_waits_for_the_device_that_is_named(backend: Any) -> None:
    cuda.synchronize()
    cuda.synchronize(1)
    assert backend.cupy.cuda.waited == [0, 1]


# ---- streams and events


def test_operators_go_to_the_stream_that_was_chosen(backend: Any) -> None:
    first, second = cuda.Stream(), cuda.Stream("cuda:1", priority=-1)
    assert cuda.current_stream() == cuda.default_stream() != first
    with cuda.stream(first):
        assert cuda.current_stream() == first
        with cuda.stream(second):
            assert (cuda.current_stream(), cuda.current_device()) == (second, 1)
        with cuda.stream(None):
            assert cuda.current_stream() == first
    assert (cuda.current_stream(), cuda.current_device()) == (cuda.default_stream(), 0)
    assert (str(second.device), second.native.priority, first.query()) == ("cuda:1", -1, True)
    assert repr(first) == f"<turnout.cuda.Stream on cuda:0 at {first.cuda_stream:#x}>"
    assert len({first, second, first}) == 2
    first.synchronize()
    assert first.native.journal == ["synchronize"]


def test_a_stream_waits_for_another(backend: Any) -> None:
    first, second = cuda.Stream(), cuda.Stream()
    second.wait_stream(first)
    ((kind, event),) = first.native.journal
    assert (kind, second.native.journal) == ("record", [("wait", event)])


def test_events_are_recorded_and_timed(backend: Any) -> None:
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True, blocking=True)
    side = cuda.Stream()
    start.record()
    assert side.record_event(end) is end
    end.synchronize()
    assert (end.query(), end.native.block, start.elapsed_time(end)) == (True, True, 1.5)
    end.wait()
    end.wait(side)
    assert side.native.journal[-1] == cuda.current_stream().native.journal[-1] == ("wait", end.native)


# ---- memory


def test_memory_is_counted_with_its_peak(backend: Any) -> None:
    cupy = backend.cupy
    assert (cuda.memory_allocated(), cuda.max_memory_allocated()) == (0, 0)
    large, small = cupy.cuda.alloc(1000), cupy.cuda.alloc(100)
    assert (small.device_id, cuda.memory_allocated()) == (0, 1536)
    del large
    assert (cuda.memory_allocated(), cuda.max_memory_allocated()) == (512, 1536)
    assert (cuda.memory_reserved(), cuda.max_memory_reserved()) == (1536, 1536)
    cuda.empty_cache()
    assert cuda.memory_stats() == {
        "allocated_bytes.all.current": 512, "allocated_bytes.all.peak": 1536,
        "reserved_bytes.all.current": 512, "reserved_bytes.all.peak": 1536,
    }  # fmt: skip
    cuda.reset_peak_memory_stats()
    assert (cuda.max_memory_allocated(), cuda.max_memory_reserved()) == (512, 512)
    assert (cuda.mem_get_info(), cuda.mem_get_info(1)) == ((1000, 1 << 30), (1001, 1 << 30))


def test_the_allocator_of_cupy_comes_back_with_the_plugin() -> None:
    with pretended(CUDABackend) as made:
        own = made.cupy.cuda.pool.malloc
        assert made.cupy.cuda.get_allocator() != own
    assert made.cupy.cuda.get_allocator() == own


def test_seeds_are_those_of_the_devices(backend: Any) -> None:
    def drawn(index: int) -> Any:
        return turnout.rand(2, device=f"cuda:{index}").tolist()

    cuda.manual_seed(3)
    first = drawn(0)
    cuda.manual_seed_all(3)
    assert drawn(0) == drawn(1) == first


# ---- recorded work


def test_a_graph_runs_again_with_what_its_tensors_hold(backend: Any) -> None:
    x, total = turnout.ones(2, 3, device="cuda"), turnout.zeros(2, 3, device="cuda")
    turnout.softmax(x, -1)
    recording = cuda.CUDAGraph()
    with cuda.graph(recording):
        y = turnout.softmax(x, -1) + 1.0
        total += y
    assert total.tolist() == [[0.0] * 3] * 2, "recording runs nothing"
    x.copy_(turnout.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]))
    for times in (1, 2):
        recording.replay()
        assert turnout.allclose(y, turnout.softmax(x, -1) + 1.0)
        assert turnout.allclose(total, y * times)


def test_a_graph_is_empty_after_an_error_and_after_reset(backend: Any) -> None:
    recording, side = cuda.CUDAGraph(), cuda.Stream()
    with pytest.raises(KeyError), cuda.graph(recording, side):
        raise KeyError
    text = "cuda graph: nothing was recorded; record work with turnout.cuda.graph first"
    assert refused(CallError, recording.replay) == text
    with cuda.graph(recording, side):
        pass
    recording.replay()
    recording.reset()
    assert refused(CallError, recording.replay) == text
    assert cuda.current_stream() == cuda.default_stream()


def test_what_cannot_be_recorded_says_so(backend: Any) -> None:
    recording = cuda.CUDAGraph()
    assert refused(CallError, recording.capture_end) == "cuda graph: it is not being recorded"
    with pytest.raises(CallError) as caught:
        recording.capture_begin()
    text = "cuda graph: the default stream cannot be recorded; use turnout.cuda.graph, or a stream of your own"
    assert str(caught.value) == text
    with cuda.graph(recording), pytest.raises(CallError) as caught:
        recording.capture_begin()
    assert str(caught.value) == "cuda graph: it is being recorded already"
    with pytest.raises(CallError) as caught, cuda.graph(recording):
        turnout.ones(2).to("cuda")
    text = "cuda graph: a value of the host cannot be copied to the device while work is recorded; make the tensor before"
    assert text in str(caught.value)
    with pytest.raises(cupy_stand_in.CUDARuntimeError), cuda.graph(recording):
        turnout.ones(2, device="cuda").tolist()


# ---- graphs of the tracer


def replayed(function: Callable[..., Any], *like: Any) -> Any:
    return turnout.trace(function, replay="cuda_graph")(*like)


def test_a_traced_graph_is_recorded_at_its_second_call(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[Any] = []
    launch = cupy_stand_in.Graph.launch
    monkeypatch.setattr(cupy_stand_in.Graph, "launch", lambda self, stream=None: launches.append(self) or launch(self))

    def f(x: Any, scale: Any) -> Any:
        return {"y": turnout.softmax(x * scale, -1), "x": x}, [x.sum(0)]

    x, scale = turnout.randn(3, 4), turnout.tensor(2.0)
    graph, plain = replayed(f, x.to("cuda"), scale.to("cuda")), turnout.trace(f)(x, scale)
    results = []
    for i in range(4):
        given = turnout.randn(3, 4), turnout.tensor(float(i))
        results.append((graph(*[t.to("cuda") for t in given]), plain(*given)))
    for found, wanted in results:
        for a, b in zip(turnout.trees.flatten(found)[0], turnout.trees.flatten(wanted)[0], strict=True):
            assert turnout.allclose(a.cpu(), b, atol=1e-6)
    assert len(launches) == 3
    assert len(set(map(id, launches))) == 1
    graph(turnout.randn(2, 4, device="cuda"), turnout.tensor(1.0, device="cuda"))
    assert len(launches) == 3, "another shape runs its operators first"
    graph.replay = ""
    graph(x.to("cuda"), scale.to("cuda"))
    assert len(launches) == 3


def test_a_training_step_writes_its_weights_once_a_call(backend: Any) -> None:
    def step(weight: Any, x: Any, target: Any) -> Any:
        loss = ((x @ weight - target) ** 2).mean()
        loss.backward()
        with turnout.no_grad():
            weight.sub_(weight.grad, alpha=0.1)
            weight.grad = None
        return loss

    def trained(device: str, calls: Callable[..., Any]) -> Any:
        turnout.manual_seed(1)
        weight, x, target = (turnout.randn(*shape).to(device) for shape in ((3, 2), (4, 3), (4, 2)))
        weight.requires_grad_()
        graph = calls(step)(weight, x, target)
        losses = [graph(weight, x, target).item() for _ in range(5)]
        assert losses == sorted(losses, reverse=True)
        other = weight.detach().clone().requires_grad_()
        return losses, weight.tolist(), graph(other, x, target).item(), other.tolist()

    found = trained("cuda", lambda f: turnout.trace(f, replay="cuda_graph"))
    wanted = trained("cpu", turnout.trace)
    for a, b in zip(found, wanted, strict=True):
        assert turnout.allclose(turnout.tensor(a), turnout.tensor(b), atol=1e-5)


def test_results_stay_when_the_graph_runs_again(backend: Any) -> None:
    graph = replayed(lambda x: x + 1.0, turnout.ones(2, device="cuda"))
    results = [graph(turnout.full((2,), float(i), device="cuda")) for i in range(4)]
    assert [r.tolist() for r in results] == [[i + 1.0] * 2 for i in range(4)]
    assert not graph(turnout.ones(2, device="cuda").requires_grad_()).requires_grad


def test_a_graph_that_asks_the_device_is_refused_when_it_is_recorded(backend: Any) -> None:
    x = turnout.ones(3, device="cuda")
    graph = replayed(lambda x: x.nonzero(), x)
    assert graph(x).tolist() == [[0], [1], [2]]
    said = "cuda graph: values decide how much a mask selects, and none is read while work is recorded"
    with pytest.raises(CallError, match=f"^replay='cuda_graph': the graph cannot be recorded: nonzero: {said}"):
        graph(x)
    assert cuda.current_stream() == cuda.default_stream()
    graph.replay = ""
    assert graph(x).tolist() == [[0], [1], [2]]


def test_inputs_that_are_no_tensors_are_refused(backend: Any) -> None:
    def draw(x: Any, g: Any) -> Any:
        return x + turnout.rand(2, generator=g, device="cuda")

    given = turnout.ones(2, device="cuda"), turnout.Generator("cuda")
    graph = replayed(draw, *given)
    assert refused(CallError, graph, *given) == "replay='cuda_graph': inputs are tensors, got Generator"


def test_a_graph_without_tensors_has_no_device(backend: Any) -> None:
    graph = replayed(lambda: turnout.ones(2, device="cuda"))
    assert refused(turnout.graphs.TraceError, graph).startswith(
        "graph graph: a graph without tensors does not replay by 'cuda_graph'; it offers none"
    )


def test_another_device_says_what_it_offers() -> None:
    graph = turnout.trace(lambda x: x + 1, replay="cuda_graph")(turnout.ones(2))
    assert refused(turnout.graphs.TraceError, lambda: graph(turnout.ones(2))) == (
        "graph graph: device 'cpu' does not replay by 'cuda_graph'; it offers none\n"
        "  to fix  graph.replay = '' runs operators one by one"
    )


# ---- page-locked memory of the host


NOTHING_PINS = (
    "pin_memory: no device is available that reads page-locked memory\n"
    "  to fix  leave pin_memory out, or install a backend that has such memory; `turnout plugins` says which are there,"
    " and why others cannot be used"
)


def test_without_a_device_nothing_is_pinned_and_asking_for_it_is_an_error() -> None:
    x = turnout.ones(3)
    assert not x.is_pinned()
    calls: list[Callable[[], Any]] = [
        x.pin_memory,
        lambda: turnout.empty(3, pin_memory=True),
        lambda: turnout.rand(3, pin_memory=True),
    ]
    for call in calls:
        with pytest.raises(DeviceError) as caught:
            call()
        assert isinstance(caught.value, RuntimeError)  # as in torch
        assert str(caught.value).startswith(NOTHING_PINS)
    said = "DataLoader: batches are not in page-locked memory: " + NOTHING_PINS.partition("\n")[0]
    with pytest.warns(UserWarning, match=f"^{said}$"):
        assert len(list(turnout.utils.data.DataLoader([x], pin_memory=True))) == 1
    assert turnout.ones(3, pin_memory=False).tolist() == [1.0] * 3
    assert turnout.empty(3, device="meta", pin_memory=True).shape == (3,)


def test_a_tensor_is_pinned_once_with_its_values_layout_and_gradient(backend: Any) -> None:
    x = turnout.arange(6.0).view(2, 3).t()
    pinned = x.pin_memory()
    assert (pinned.is_pinned(), x.is_pinned(), pinned.device) == (True, False, x.device)
    assert (pinned.tolist(), pinned.stride()) == (x.tolist(), x.stride())
    assert pinned.pin_memory() is pinned
    assert pinned[1:].is_pinned()
    for dtype in (turnout.bfloat16, turnout.bool, turnout.complex64):
        assert turnout.ones(2, dtype=dtype).pin_memory().tolist() == turnout.ones(2, dtype=dtype).tolist()
    assert not turnout.empty(0).pin_memory().is_pinned()
    w = turnout.ones(2, requires_grad=True)
    (w.pin_memory() * 3).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]
    assert refused(DeviceError, lambda: turnout.ones(2, device="cuda").pin_memory()).startswith(
        "pin_memory: only memory of cpu can be page-locked, not that of cuda:0\n"
        "  to fix  pin the tensor on cpu and copy it to cuda:0 with non_blocking=True"
    )


FACTORIES: list[Callable[[dict[str, Any]], Any]] = [
    lambda o: turnout.empty(2, 3, **o), lambda o: turnout.zeros(2, 3, **o), lambda o: turnout.ones(2, 3, **o),
    lambda o: turnout.full((2, 3), 5.0, **o), lambda o: turnout.empty_strided((2, 3), (1, 2), **o),
    lambda o: turnout.empty_like(turnout.ones(3), **o), lambda o: turnout.zeros_like(turnout.ones(3), **o),
    lambda o: turnout.ones_like(turnout.ones(3), **o), lambda o: turnout.full_like(turnout.ones(3), 2, **o),
    lambda o: turnout.ones(2).new_empty(3, **o), lambda o: turnout.ones(2).new_zeros(3, **o),
    lambda o: turnout.ones(2).new_ones(3, **o), lambda o: turnout.ones(2).new_full((3,), 2, **o),
    lambda o: turnout.arange(5, **o), lambda o: turnout.arange(1.0, 5.0, 0.5, **o), lambda o: turnout.linspace(0, 1, 5, **o),
    lambda o: turnout.logspace(0, 1, 5, **o), lambda o: turnout.eye(3, **o), lambda o: turnout.eye(3, 4, **o),
    lambda o: turnout.rand(3, **o), lambda o: turnout.randn(3, **o), lambda o: turnout.rand(100_000, **o),
    lambda o: turnout.rand(3, generator=turnout.Generator(), **o), lambda o: turnout.randint(0, 5, (100_000,), **o),
    lambda o: turnout.randint(5, (3,), **o),
    lambda o: turnout.rand_like(turnout.ones(3), **o), lambda o: turnout.randn_like(turnout.ones(3), **o),
    lambda o: turnout.randint_like(turnout.ones(3), 5, **o), lambda o: turnout.randperm(5, **o),
    lambda o: turnout.normal(0.0, 1.0, (3,), **o), lambda o: turnout.scalar_tensor(2.0, **o),
    lambda o: turnout.hann_window(5, **o), lambda o: turnout.fft.fftfreq(5, **o), lambda o: turnout.fft.rfftfreq(5, **o),
    lambda o: turnout.tril_indices(3, 3, **o),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(FACTORIES)))
def test_factories_pin_what_they_make(index: int, backend: Any) -> None:
    turnout.manual_seed(1)
    plain = FACTORIES[index]({})
    turnout.manual_seed(1)
    pinned = FACTORIES[index]({"pin_memory": True})
    assert (pinned.is_pinned(), plain.is_pinned()) == (True, False)
    assert (pinned.shape, pinned.dtype, pinned.stride()) == (plain.shape, plain.dtype, plain.stride())


def test_copies_from_pinned_memory_go_to_the_current_stream_which_keeps_it(backend: Any) -> None:
    sets = backend.cupy.cuda.stream_of_sets
    x, stream = turnout.arange(6.0).view(2, 3).pin_memory(), cuda.Stream()
    with cuda.stream(stream):
        y = x.to("cuda", non_blocking=True)
        z = turnout.zeros(2, 3, device="cuda").copy_(x[:], non_blocking=True)
        stream.native.journal.clear()
        later = x.cuda(non_blocking=True)
    assert y.tolist() == z.tolist() == later.tolist() == x.tolist()
    assert sets == [stream.native] * 3
    assert [kind for kind, _ in stream.native.journal if kind == "record"] == ["record"]
    # Memory that is still read stays, and goes when the next copy finds that it was read.
    event = backend._read[-1][0]
    event.done = False
    address = x.data_ptr()
    del x
    assert backend.cupy.cuda.is_pinned(address)
    event.done = True
    turnout.ones(2).pin_memory().to("cuda", non_blocking=True)
    assert not backend.cupy.cuda.is_pinned(address)


def test_other_copies_are_done_when_they_return(backend: Any) -> None:
    sets, x = backend.cupy.cuda.stream_of_sets, turnout.arange(6.0).view(2, 3).pin_memory()
    y = turnout.zeros(2, 3, device="cuda")
    for copied in (
        x.to("cuda"), turnout.ones(2, 3).to("cuda", non_blocking=True), x.t().to("cuda", non_blocking=True),
        x.to("cuda", turnout.float64, non_blocking=True), y.copy_(x[:1], non_blocking=True),
        y.t().copy_(x.t(), non_blocking=True),
    ):  # fmt: skip
        assert copied.device.type == "cuda"
    assert y.tolist() == x.tolist()
    assert sets == []
