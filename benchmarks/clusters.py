"""Tensors on `dask` beside the same programs in dask.array: time, graphs, bytes between workers.

    python benchmarks/clusters.py [overhead] [building] [scaling] [graphs] [--megabytes 40] [--repeats 5]
    python benchmarks/clusters.py graphs --chunks 1000 --workers 100

Each row is measured in one run, the two sides in turns, and the ratio is that of the medians. Memory is measured by
examples/dask_programs: `turnout-larger-than-memory --gigabytes 8 --memory 1400MB`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import dask
import dask.array as da
from distributed import Client, LocalCluster

import turnout

CHUNKS = 50


def in_turns(sides: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The median of each side's seconds; the first turn is not counted."""
    seconds: list[list[float]] = [[] for _ in sides]
    for turn in range(repeats + 1):
        for side, taken in zip(sides, seconds, strict=True):
            start = time.perf_counter()
            side()
            if turn:
                taken.append(time.perf_counter() - start)
    return [median(taken) for taken in seconds]


def row(what: str, ours: float, raw: float, unit: str) -> None:
    """A line of the table."""
    print(f"{what:58}  {ours:12,.4g} {unit:5}  {raw:12,.4g} {unit:5}  {ours / raw if raw else float('nan'):6.2f}", flush=True)


def chain(x: Any, sqrt: Callable[[Any], Any]) -> Any:
    """A program of six element-wise operators and two reductions, which both sides can run."""
    y = (x * 2 - 1) * x + 0.5
    return (sqrt(y * y + 1)).sum() / y.max()


def ones(elements: int, chunks: int) -> da.Array:
    """An array in chunks, of numbers that are not all the same."""
    return (da.arange(elements * chunks, chunks=elements, dtype="float32") % 1000) / 1000


def both(array: da.Array) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The program over the same chunks, for tensors and for arrays. Nothing is computed."""
    x = turnout.dask.from_array(array)
    return lambda: chain(x, turnout.sqrt), lambda: chain(array, da.sqrt)


def overhead(options: argparse.Namespace) -> None:
    """The whole program, from building to the number."""
    elements = int(options.megabytes * 1e6 / 4)
    ours, raw = both(ones(elements, CHUNKS).astype("float32"))
    seconds = in_turns([lambda: ours().item(), lambda: float(raw().compute())], options.repeats)
    row(f"{CHUNKS} chunks of {elements / 1e6:g} million float32, threads", *seconds, "s")


def building(options: argparse.Namespace) -> None:
    """A graph of 1,000 operators on 4 chunks."""
    array = da.ones((4, 8), chunks=(1, 8), dtype="float32")
    x = turnout.dask.from_array(array)

    def grow(y: Any) -> None:
        for _ in range(500):
            y = y * 2 + 1

    row("1,000 operators on 4 chunks, building", *in_turns([lambda: grow(x), lambda: grow(array)], options.repeats), "s")


def scaling(options: argparse.Namespace) -> None:
    """The program on 1 and 2 processes."""
    elements = int(options.megabytes * 1e6 / 4)
    for workers in (1, 2):
        place: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(host="127.0.0.1", silence_logs=50, **place) as cluster, Client(cluster):
            ours, raw = both(ones(elements, CHUNKS).astype("float32"))
            seconds = in_turns([lambda ours=ours: ours().item(), lambda raw=raw: float(raw().compute())], options.repeats)
            row(f"the same on {workers} process{'es' if workers > 1 else ''}", *seconds, "s")


def graphs(options: argparse.Namespace) -> None:
    """Tasks and bytes between workers, which are threads of this process."""
    chunks, workers = options.chunks, options.workers
    array = ones(10_000, chunks).astype("float32")
    matrix = da.ones((100 * chunks, 20), chunks=(100, 20), dtype="float32")
    x, w = turnout.dask.from_array(matrix), turnout.ones(20, 1, device="dask")
    numbers = da.ones((20, 1), dtype="float32")
    programs = {"chain": both(array), "gradient of x @ w": (lambda: x.t() @ (x @ w), lambda: matrix.T @ (matrix @ numbers))}
    place: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(processes=False, silence_logs=50, **place) as cluster, Client(cluster) as client:
        for name, sides in programs.items():
            tasks, sent = [], []
            for side in sides:
                made = side()
                value = turnout.dask.array_of(made) if isinstance(made, turnout.Tensor) else made
                tasks.append(float(len(dict(dask.optimize(value)[0].__dask_graph__()))))
                before = moved(client)
                value.compute()
                sent.append(float(moved(client) - before))
            row(f"{name}: tasks for {chunks:,} chunks", *tasks, "")
            row(f"{name}: bytes between {workers} workers", *sent, "B")


def moved(client: Client) -> int:
    """The bytes that workers have received from others, as their logs count them."""
    counts: dict[str, int] = client.run(received)
    return sum(counts.values())


def received(dask_worker: Any) -> int:
    """The bytes that a worker has received."""
    return sum(each["total"] for each in dask_worker.transfer_incoming_log)


PARTS = {"overhead": overhead, "building": building, "scaling": scaling, "graphs": graphs}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what is measured; all by default")
    parser.add_argument("--megabytes", type=float, default=40, help=f"the size of each of {CHUNKS} chunks")
    parser.add_argument("--repeats", type=int, default=5, help="how often each side runs")
    parser.add_argument("--chunks", type=int, default=1000, help="how many chunks `graphs` has")
    parser.add_argument("--workers", type=int, default=100, help="how many workers `graphs` has")
    options = parser.parse_args(argv)
    print(f"{'what':58}  {'turnout':>18}  {'dask.array':>18}  {'ratio':>6}")
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()
