"""The device `dask` on clusters of real processes: workers and schedulers that die, and settings that name none that lives."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused

# On a busy machine Dask says that its folders are made slowly.
pytestmark = pytest.mark.filterwarnings("ignore:Creating scratch directories")
BOUND = 120.0  # seconds in which every failure has to be said, on a busy machine


@pytest.fixture(autouse=True, scope="module")
def needed(need_device: Callable[[str], None]) -> None:
    """The device, and what makes clusters."""
    need_device("dask")
    pytest.importorskip("distributed")


def cluster(workers: int, **options: Any) -> Any:
    """Worker processes on the loopback address."""
    from distributed import LocalCluster

    place: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50, "threads_per_worker": 1}
    return LocalCluster(n_workers=workers, **place, **options)


@pytest.fixture(scope="module")
def workers(needed: None) -> Iterator[Any]:
    """Two of them. One that was killed is started again."""
    with cluster(2) as made:
        yield made


@pytest.fixture
def client(workers: Any) -> Iterator[Any]:
    """Their client, as Dask's default."""
    from distributed import Client

    with Client(workers) as made:
        made.wait_for_workers(2, timeout=BOUND)
        yield made


@contextmanager
def scheduler_process(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and the process of a scheduler with a worker, which are processes of their own."""
    file = folder / "scheduler.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen([*command, "--scheduler-file", str(file)], **quiet)
    worker = None
    try:
        end = time.monotonic() + BOUND
        while not file.exists() or not file.read_text():
            assert time.monotonic() < end, "the scheduler did not start"
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", address, *options], **quiet)
        yield address, scheduler
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.kill()
                process.wait()


def slow(count: int, seconds: float) -> turnout.Tensor:
    """The numbers from 0, each in a chunk that takes some time."""

    def later(block: Any) -> Any:  # inside, so that it is sent to processes that cannot import this file
        time.sleep(seconds)
        return block

    return mapped(later, turnout.dask.rechunk(turnout.arange(float(count), device="dask"), 1))


def mapped(function: Callable[[Any], Any], x: turnout.Tensor) -> turnout.Tensor:
    """What a function gives for each chunk, on a worker alone: without `meta`, Dask asks it here for what it gives."""
    made = turnout.dask.array_of(x).map_blocks(function, dtype="float32", meta=np.empty((0,) * x.ndim, "f4"))
    return turnout.dask.from_array(made)


# ---- workers


def test_a_worker_that_is_killed_during_a_reduction_changes_nothing(client: Any) -> None:
    total = (slow(40, 0.05) * 2).sum()
    (first, *_) = client.run(os.getpid).values()
    Timer(0.6, os.kill, (first, signal.SIGKILL)).start()
    began = time.monotonic()
    assert total.item() == 2 * sum(range(40))
    assert time.monotonic() - began < BOUND
    assert first not in client.run(os.getpid).values()


def descent(device: str, before: Callable[[int], None] = lambda step: None) -> float:
    """The loss after some steps of a regression."""
    turnout.manual_seed(0)
    x = turnout.randn(600, 20, device=device)
    y = x @ turnout.ones(20, 1, device=device)
    w = turnout.zeros(20, 1, device=device, requires_grad=True)
    loss = w.sum()
    for step in range(5):
        loss = ((x @ w - y) ** 2).mean()
        (grad,) = turnout.autograd.grad(loss, [w])
        with turnout.no_grad():
            w.sub_(grad, alpha=0.1)
        if device == "dask":
            before(step)
            turnout.dask.persist(w)
    return float(loss)


def test_a_worker_that_is_killed_during_training_changes_nothing(client: Any) -> None:
    pids = list(client.run(os.getpid).values())

    def kill(step: int) -> None:
        if step == 2:
            Timer(0.05, os.kill, (pids[0], signal.SIGKILL)).start()

    with turnout.config.override({"plugin.dask.chunk_size": "12kB"}):
        found = descent("dask", kill)
    assert found == pytest.approx(descent("cpu"), rel=1e-5)


def growing(block: Any) -> Any:
    """A chunk, after its worker has taken more and more memory."""
    taken = []
    for _ in range(300):
        taken.append(bytearray(os.urandom(1 << 16)) * 128)  # 8 MiB
        time.sleep(0.02)
    return block


def test_a_worker_that_runs_out_of_memory_is_one_sentence() -> None:
    import dask
    from distributed import Client

    from turnout_dask.errors import DaskError, WorkerError

    few = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with few, cluster(1, memory_limit="500MB") as made, Client(made):
        x = mapped(growing, turnout.ones(3, device="dask"))
        began = time.monotonic()
        said = refused(WorkerError, x.sum().item)
        assert time.monotonic() - began < BOUND
    assert issubclass(WorkerError, DaskError)
    assert re.fullmatch(
        r"dask: a worker died in a task of [\w-]+, as workers do that run out of memory; make the chunks smaller "
        r"\(plugin\.dask\.chunk_size, turnout\.dask\.rechunk\) or give the workers more memory",
        said,
    )


@pytest.mark.usefixtures("client")
def test_a_kernel_that_raises_on_a_worker_is_named_with_the_traceback_of_the_worker() -> None:
    import dask.array as da

    from turnout_dask.errors import DaskError

    x = turnout.dask.from_array(da.ones((3, 3), dtype="f4"))
    bad = mapped(lambda block: block[:, :2], x)
    with pytest.raises(DaskError) as caught:
        (bad @ x).tolist()
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("dask: the computation failed: ValueError: matmul: ")
    assert lines[1:] == ["  in a task of mm.out on dask, on blocks of shape [3, 2] and [3, 3]"]
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert "_multiplied" in "".join(traceback.format_exception(cause))  # what ran on the worker


# ---- schedulers


def test_a_scheduler_that_is_lost_is_one_sentence_and_another_may_take_its_place(tmp_path: Path) -> None:
    from turnout_dask.errors import SchedulerError

    with scheduler_process(tmp_path) as (address, scheduler), turnout.config.override({"plugin.dask.scheduler": address}):
        assert turnout.arange(4.0, device="dask").sum().item() == 6.0
        client = turnout.dask.client()
        assert client.scheduler.address == address
        assert turnout.dask.client() is client
        Timer(1, scheduler.kill).start()
        began = time.monotonic()
        said = refused(SchedulerError, slow(40, 0.5).sum().item)
        assert time.monotonic() - began < BOUND
        assert said == (
            f"dask: the connection to the scheduler at {address} was lost, and with it what was persisted there; connect to a "
            "scheduler and make the tensors again from their sources"
        )
        with turnout.config.override({"plugin.dask.timeout": 0.5}):
            said = refused(SchedulerError, lambda: turnout.arange(4.0, device="dask").sum().item())
        assert said == (
            f"dask: no scheduler answered at {address} (turnout.config.override) within 0.5 s; start one with `dask scheduler`, "
            "or correct plugin.dask.scheduler"
        )
    assert turnout.arange(4.0, device="dask").sum().item() == 6.0  # in this process again


@pytest.mark.parametrize("address", ["somewhere", "carrier-pigeon://127.0.0.1:8786", "tcp://127.0.0.1"])
def test_a_setting_that_is_no_address_is_refused(address: str) -> None:
    with turnout.config.override({"plugin.dask.scheduler": address}):
        said = refused(turnout.errors.ArgumentError, lambda: turnout.ones(2, device="dask").tolist())
    assert said == (
        f"dask: {address!r} (turnout.config.override) is not the address of a scheduler, such as 'tcp://127.0.0.1:8786'"
    )


def test_the_doctor_shows_the_address_and_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "turnout/config.toml"
    file.parent.mkdir()
    file.write_text('[plugin.dask]\nscheduler = "tcp://127.0.0.1:8786"\n')
    command = [sys.executable, "-m", "turnout_cli", "doctor"]
    given = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    shown = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False).stdout
    assert "plugin.dask.scheduler = 'tcp://127.0.0.1:8786' (" in shown
    assert "config.toml:2)" in shown


def test_a_client_is_what_computes(workers: Any) -> None:
    import dask
    from distributed import Client

    with dask.config.set(scheduler="sync"):
        assert turnout.dask.client() is None
    with Client(workers) as client:
        assert turnout.dask.client() is client
        with dask.config.set(scheduler="threads"):
            assert turnout.dask.client() is None
    assert turnout.dask.client() is None
