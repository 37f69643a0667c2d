"""The device `dask`: nothing is computed before it is needed, chunks stay chunks, and programs give what they give on `cpu`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import turnout
from autograd_programs import Program as Smooth
from outcomes import printed, refused
from random_programs import chains, indexing, writes
from random_programs.on_device import gradient_difference, judge
from random_programs.running import check
from turnout import host_fallback
from turnout.errors import ArgumentError
from turnout_conformance.cases import activations, arranging, losses, normalisation, pointwise, reductions, views
from turnout_conformance.comparing import find, outcome
from turnout_conformance.making import arguments, row_major, samples


@pytest.fixture(autouse=True)
def small_chunks(need_device: Callable[[str], None]) -> Iterator[None]:
    """Chunks of three floats, and one thread: tests of small tensors have many chunks."""
    need_device("dask")
    import dask

    with dask.config.set(scheduler="sync"), turnout.config.override({"plugin.dask.chunk_size": "12B"}):
        host_fallback.reset_calls()
        turnout.dask.reset_calls_on_whole_arrays()
        yield


@contextmanager
def counted() -> Iterator[list[Any]]:
    """The tasks that run in a block."""
    from dask.callbacks import Callback

    ran: list[Any] = []
    with Callback(pretask=lambda key, *_: ran.append(key)):
        yield ran


def matrix() -> turnout.Tensor:
    return turnout.arange(12.0, device="dask").reshape(3, 4)


# ---- programs


@pytest.mark.parametrize("kind", [chains, indexing, writes], ids=["chains", "indexing", "writes"])
def test_programs_give_what_cpu_gives(kind: Any, seeds: Callable[[int], range]) -> None:
    check({seed: kind.Program(seed).lines for seed in seeds(12)}, judge("dask", strides=kind is writes))


def test_gradients_of_programs_are_those_of_cpu(seeds: Callable[[int], range]) -> None:
    for seed in seeds(6):
        found = gradient_difference(seed, "dask")
        assert not found, f"seed {seed}: {found}\n{Smooth(seed, smooth=True)}\n\n--seed {seed} --programs 1 runs it again"


# ---- when it is computed


def test_nothing_is_computed_until_a_program_needs_numbers() -> None:
    with counted() as tasks:
        w = turnout.ones(4, 2, device="dask", requires_grad=True)
        x = matrix()
        x[:, 1:] *= 2
        loss = ((x @ w).softmax(1) - x[:, :2].t().reshape(3, 2)).pow(2).mean()
        loss.backward()
        text = repr(w.grad)
        assert len(tasks) == 0
    assert text == "tensor(..., shape=[4, 2], chunks=4 of 1x2, device='dask')"
    for numbers in (loss.item, w.grad.tolist, lambda: bool(loss > 0), lambda: w.grad.cpu()):
        with counted() as tasks:
            numbers()
        assert len(tasks) > 0
    assert host_fallback.report() == ""
    assert turnout.dask.calls_on_whole_arrays() == {}


def test_printing_computes_where_it_is_asked_to() -> None:
    with turnout.config.override({"plugin.dask.print_values": True}):
        assert repr(turnout.tensor([1.0, 2.0], device="dask")) == "tensor([1., 2.], device='dask')"


def test_what_is_persisted_is_not_computed_again() -> None:
    x = matrix().exp()
    version = x.version()
    turnout.dask.persist(x)
    with counted() as tasks:
        x.tolist()
    assert len(tasks) <= 2 * 12
    assert x.version() == version


def test_compute_makes_tensors_on_cpu_together() -> None:
    x = matrix().exp()
    with counted() as tasks:
        alone = turnout.dask.compute(x.sum())
    single = len(tasks)
    with counted() as tasks:
        total, mean = turnout.dask.compute(x.sum(), x.mean())
    assert (total.device.type, total.item()) == ("cpu", alone.item())
    assert mean.item() == pytest.approx(alone.item() / 12)
    assert len(tasks) < 2 * single


def test_a_loop_that_lets_its_graph_grow_is_warned_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_dask import backend
    from turnout_dask.errors import GraphWarning

    monkeypatch.setattr(backend, "_MANY_STEPS", 20)
    monkeypatch.setattr(turnout.device("dask").backend, "_warned", False)
    x = turnout.ones(2, device="dask")
    for _ in range(15):
        x = x + 1
        turnout.dask.persist(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphWarning)
        for _ in range(40):
            x = x + 1
    (warning,) = caught
    assert str(warning.message) == (
        "dask: a tensor is made by a graph of more than 20 steps, and everything made of it repeats them; in a loop, "
        "put each turn into `with turnout.dask.step():`, or call turnout.dask.persist(...) with the tensors that go on"
    )


def test_a_step_computes_what_its_block_made_or_wrote_once_and_together() -> None:
    x, w = matrix(), turnout.zeros(4, 1, device="dask", requires_grad=True)
    for _ in range(3):
        with counted() as tasks, turnout.dask.step():
            loss = ((x @ w - 1) ** 2).mean()
            loss.backward()
            with turnout.no_grad():
                w -= 0.01 * w.grad
            assert len(tasks) == 0
        for tensor in (w, w.grad, loss):
            assert len(turnout.dask.array_of(tensor).dask.layers) == 1
        w.grad = None
    with counted() as tasks:
        w.tolist()
    assert len(tasks) <= 2 * 4
    y, v = turnout.arange(12.0).reshape(3, 4), turnout.zeros(4, 1, requires_grad=True)
    for _ in range(3):
        (grad,) = turnout.autograd.grad(((y @ v - 1) ** 2).mean(), [v])
        with turnout.no_grad():
            v -= 0.01 * grad
    assert w.flatten().tolist() == pytest.approx(v.flatten().tolist())


def test_a_step_leaves_what_was_there_before_and_what_is_gone_alone() -> None:
    before = matrix().exp()
    steps = len(turnout.dask.array_of(before).dask.layers)
    with turnout.dask.step():
        inside = before * 2
        gone = before * 3
        del gone
        part = before[0]
    assert len(turnout.dask.array_of(inside).dask.layers) == 1
    assert len(turnout.dask.array_of(before).dask.layers) == steps
    assert part.tolist() == before.tolist()[0]


def test_a_step_that_raises_computes_nothing_and_ends() -> None:
    with counted() as tasks:
        with suppress(ZeroDivisionError), turnout.dask.step():
            x = matrix().exp()
            raise ZeroDivisionError
        y = matrix() + 1
    assert len(tasks) == 0
    assert len(turnout.dask.array_of(x).dask.layers) > 1
    assert len(turnout.dask.array_of(y).dask.layers) > 1


def test_steps_may_be_nested_and_belong_to_their_thread() -> None:
    made = []
    with turnout.dask.step():
        thread = Thread(target=lambda: made.append(matrix().exp()))
        thread.start()
        thread.join()
        with turnout.dask.step():
            inner = matrix().exp()
        assert len(turnout.dask.array_of(inner).dask.layers) == 1
        inner += 1
    assert len(turnout.dask.array_of(inner).dask.layers) == 1
    assert len(turnout.dask.array_of(made[0]).dask.layers) > 1


# ---- data from elsewhere


def test_arrays_of_zarr_are_read_in_their_chunks_and_when_they_are_needed(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    store = zarr.open_group(tmp_path / "data.zarr", mode="w").create_array("a/b", shape=(4, 6), chunks=(2, 3), dtype="f4")
    x = turnout.dask.from_zarr(tmp_path / "data.zarr", "a/b")
    assert turnout.dask.chunks(x) == ((2, 2), (3, 3))
    assert turnout.dask.chunks(turnout.dask.from_zarr(store, chunks=(4, 3))) == ((4,), (3, 3))
    store[:] = np.arange(24, dtype="f4").reshape(4, 6)
    assert (x + 1).sum().item() == 24 * 25 / 2
    assert turnout.dask.from_zarr(store)[1].tolist() == list(range(6, 12))


def test_zarr_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout_dask.dask.find_spec", lambda name: None)
    said = refused(turnout.errors.PluginError, turnout.dask.from_zarr, "data.zarr")
    assert said == "dask: from_zarr needs zarr\n  to fix  pip install zarr"


def test_delayed_values_are_chunks() -> None:
    import dask

    read: list[int] = []

    def load(number: int) -> Any:
        read.append(number)
        return np.full((2, 3), number, "f4")

    x = turnout.cat([turnout.dask.from_delayed(dask.delayed(load)(number), (2, 3)) for number in range(3)])
    assert turnout.dask.chunks(x) == ((2, 2, 2), (3,))
    assert read == []
    assert x.sum(1).tolist() == [0, 0, 3, 3, 6, 6]
    assert sorted(read) == [0, 1, 2]
    whole = turnout.dask.from_delayed(dask.delayed(lambda: np.arange(3))(), (3,), turnout.int64)
    assert (whole.dtype, whole.tolist()) == (turnout.int64, [0, 1, 2])


def test_a_delayed_value_that_is_something_else_is_refused_when_it_is_computed() -> None:
    import dask

    from turnout_dask.errors import DaskError

    for shape, dtype, expected in (((2, 2), turnout.float32, "float32 [2, 2]"), ((2, 3), turnout.int64, "int64 [2, 3]")):
        x = turnout.dask.from_delayed(dask.delayed(lambda: np.ones((2, 3), "f4"))(), shape, dtype)
        assert refused(DaskError, (x + 1).tolist) == f"from_delayed: the value is float32 [2, 3], expected {expected}"


# ---- chunks


def test_views_and_writes_keep_chunks() -> None:
    import dask.array as da

    x = turnout.dask.from_array(da.zeros((6, 8), chunks=(2, 4), dtype="f4"))
    assert turnout.dask.chunks(x) == ((2, 2, 2), (4, 4))
    assert turnout.dask.chunks(x.t()) == ((4, 4), (2, 2, 2))
    assert turnout.dask.chunks(x[2:4]) == ((2,), (4, 4))
    assert turnout.dask.chunks((x + 1).exp()) == ((2, 2, 2), (4, 4))
    x[:, 4:].add_(1)
    assert turnout.dask.chunks(x) == ((2, 2, 2), (4, 4))
    assert x.sum(0).tolist() == [0.0] * 4 + [6.0] * 4


def test_a_tensor_is_cut_into_other_chunks_in_place() -> None:
    x = matrix()
    y = turnout.dask.rechunk(x, (1, 4))
    assert y is x
    assert turnout.dask.chunks(x) == ((1, 1, 1), (4,))
    assert x.tolist() == turnout.arange(12.0).reshape(3, 4).tolist()


def test_random_numbers_do_not_depend_on_chunks() -> None:
    drawn = []
    for device, size in (("cpu", "12B"), ("dask", "12B"), ("dask", "40B"), ("dask", "1MiB")):
        with turnout.config.override({"plugin.dask.chunk_size": size}):
            turnout.manual_seed(3)
            drawn.append([turnout.rand(5, 7, device=device).tolist(), turnout.randint(0, 100, (9,), device=device).tolist()])
    assert all(each == drawn[0] for each in drawn)


# ---- what does not go chunk by chunk


def test_operators_on_whole_arrays_are_counted() -> None:
    x = matrix()
    x.nonzero()
    x[[2, 0], [1, 1]].tolist()
    assert turnout.dask.calls_on_whole_arrays() == {"aten::index.Tensor_out": 1}
    assert host_fallback.calls() == {("aten::nonzero", "dask", "cpu"): 1}


def test_more_than_fits_in_one_place_is_refused() -> None:
    x = matrix()
    with turnout.config.override({"plugin.dask.host_limit": "50B"}):
        assert (x + 1).sum().item() == 78.0
        for function, operator, size in (
            (lambda: x.nonzero(), "aten::nonzero", 48),
            (lambda: x[[2, 0], [1, 1]], "aten::index.Tensor_out", 88),
        ):
            with turnout.config.override({"plugin.dask.host_limit": "40B"}):
                said = refused(turnout.errors.TurnoutError, function)
            assert said == (
                f"{operator}: it needs all of its tensors in one place on dask, and they have {size} bytes together; "
                "plugin.dask.host_limit allows 40\n"
                "  to fix  use an operator that works chunk by chunk, or raise plugin.dask.host_limit"
            )


@pytest.mark.parametrize("said", ["many", "-1GiB", "-5", "nan", "1e400GiB", "99999999999999999999GiB"])
def test_a_size_that_is_none_is_refused(said: str) -> None:
    x = turnout.ones(2, device="dask")
    for option, call in (("chunk_size", partial(turnout.ones, 2, device="dask")), ("host_limit", x.nonzero)):
        with turnout.config.override({f"plugin.dask.{option}": said}):
            text = refused(ArgumentError, call)
        assert text == f"plugin.dask.{option} must be a size such as '64MiB', got {said!r}\n  set by  turnout.config.override"


def test_a_kernel_that_raises_is_named() -> None:
    import dask.array as da

    from turnout_dask.errors import DaskError

    x = turnout.dask.from_array(da.ones((3, 3), dtype="f4"))
    bad = turnout.dask.from_array(turnout.dask.array_of(x).map_blocks(lambda block: block[:, :2], dtype="f4"))
    for operator, function in {"mm.out": lambda: bad @ x, "hypot.out": lambda: bad.hypot(x)}.items():
        said = refused(DaskError, lambda function=function: function().tolist())
        assert said.startswith("dask: the computation failed: ValueError: ")
        assert f"in a task of {operator} on dask, on blocks of shape " in said


# Families of operators whose cases run chunk by chunk, and the operators of them that do not.
FAMILIES = (pointwise, activations, reductions, views, arranging, normalisation, losses)
ELSEWHERE = {
    "arranging": {"repeat_interleave.Tensor": {"aten::index_add.out"}, "repeat_interleave.self_Tensor": {"aten::index_add.out"}}
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])
def test_operators_of_a_family_run_chunk_by_chunk(family: Any) -> None:
    found: dict[str, set[str]] = {}
    for case in family.CASES:
        for sample, dtype in list(samples(case, "dask"))[:3]:
            host_fallback.reset_calls()
            turnout.dask.reset_calls_on_whole_arrays()
            args, kwargs = arguments(sample, dtype, row_major("dask"))
            outcome(find(case.op), *args, **kwargs)
            names = {name for name, _, _ in host_fallback.calls()} | set(turnout.dask.calls_on_whole_arrays())
            if names:
                found.setdefault(case.op, set()).update(names)
    family_name = family.__name__.rpartition(".")[2]
    assert found == ELSEWHERE.get(family_name, {})


def test_arrays_and_tensors_that_dask_does_not_have_are_refused() -> None:
    words = np.array(["a"])
    for call, text in (
        (lambda: turnout.dask.from_array(words), "from_array: no tensor can have dtype <U1 and shape (1,)"),
        (lambda: turnout.dask.array_of(turnout.ones(2)), "expected a tensor on dask, got one on cpu"),
    ):
        assert refused(ArgumentError, call) == text


IN_A_CHILD = """
import os, signal, dask, turnout
from concurrent.futures import ThreadPoolExecutor

def total():
    return (turnout.ones(100, device="dask") * 2).sum().item()

BEFORE
assert total() == 200.0
child = os.fork()
if not child:
    signal.alarm(60)
    try:
        print(total(), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert total() == 200.0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("setting", ["", "num_workers=2", "pool=ThreadPoolExecutor(2)", "scheduler=ThreadPoolExecutor(2)"])
def test_threads_compute_in_a_child_of_a_process_that_has_computed(setting: str) -> None:
    before = f"dask.config.set({setting})" if setting else ""
    assert printed(IN_A_CHILD.replace("BEFORE", before), options=()) == "200.0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("default", [True, False])
def test_a_client_does_not_compute_in_a_child_of_its_process(default: bool) -> None:
    pytest.importorskip("distributed")
    before = (
        "from distributed import Client, LocalCluster\n"
        "cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=None, silence_logs=50)\n"
    )
    before += (
        "client = Client(cluster)" if default else "turnout.config.set({'plugin.dask.scheduler': cluster.scheduler_address})"
    )
    assert printed(IN_A_CHILD.replace("BEFORE", before), options=()) == (
        "SchedulerError: dask: the client of the scheduler works only in the process that this one was forked from\n"
        "  to fix  start processes without a fork: multiprocessing.get_context('spawn')"
    )
