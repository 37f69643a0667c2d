"""`run`: runs an exported program on arrays that NumPy saved, compares its results, and says what took how long."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from turnout_cli.compiling import compile_option, compiled, compiled_facts, without_warnings
from turnout_cli.main import Problem, facts
from turnout_cli.names import device_names
from turnout_cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from turnout import Tensor

CLOSE = 1e-4  # of the largest number that is expected
BARS = 40  # characters of the longest bar of the chart
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command
@click.argument("model", type=_FILE)
@click.option("--input", "inputs", type=_FILE, multiple=True, help="A NumPy file (.npy); give one for each input, in order.")
@click.option("--device", default="cpu", show_default=True, shell_complete=device_names, help="Where to run.")
@click.option("--output", "outputs", type=_FILE, multiple=True, help="Write into this NumPy file; give one for each result.")
@click.option("--compare", "expected", type=_FILE, multiple=True, help="Compare with this NumPy file; give one for each result.")
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=CLOSE, show_default=True,
    help="The largest difference allowed, relative to the largest number expected.",
)  # fmt: skip
@click.option("--profile", is_flag=True, help="Print how long each operator takes, on the device too if it can measure.")
@compile_option("Run the model with this engine of turnout.compile. The results are those of the second run, which is compiled.")
@facts
def run(
    model: Path, inputs: tuple[Path, ...], device: str, outputs: tuple[Path, ...], expected: tuple[Path, ...], tolerance: float,
    profile: bool, engine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Run an exported model on arrays; compare results.

    MODEL is a file that torch.export.save wrote, or a saved graph.
    """
    import turnout

    if profile and engine is not None:
        raise click.UsageError("--profile is about operators that run one by one: leave it or --compile out")
    graph = _loaded(model, device)
    given = [turnout.tensor(_array(path), device=device) for path in inputs]
    if len(given) != len(graph.inputs):
        raise Problem(f"{model} takes {len(graph.inputs)} inputs ({', '.join(graph.inputs)}), and {len(given)} are given")
    args, kwargs = graph.signature.build(given)
    function = graph if engine is None else compiled(graph, engine)

    def call() -> Any:
        with turnout.no_grad():
            return function(*args, **kwargs)

    before = {name: tensor.detach().clone() for name, tensor in graph.state.items()}
    result, seconds = _timed(call, engine)
    of_compiled: dict[str, Any] | None = None
    if engine is not None:
        _put_back(graph, before)
        result, later = _timed(call, engine)
        of_compiled = {"engine": engine, "milliseconds": 1000 * later, **compiled_facts(function)}
    results = _tensors(result)
    for path, result in zip(outputs, results, strict=False):
        _write(path, result)
    rows = [_compared(i, result, path, tolerance) for i, (result, path) in enumerate(_pairs(results, expected))]
    found = {
        "model": str(model), "device": str(turnout.device(device)), "milliseconds": 1000 * seconds, "results": rows,
        "compiled": of_compiled,
        "operators": _profiled(call, graph, before, device) if profile else [],
    }  # fmt: skip
    print_json(found) if as_json else _print(found)
    if any(row["same"] is False for row in rows):
        raise click.exceptions.Exit(1)


def _timed(call: Callable[[], Any], engine: str | None) -> tuple[Any, float]:
    """What a call returns, and its seconds."""
    start = perf_counter()
    with without_warnings(engine):
        return call(), perf_counter() - start


def _put_back(graph: Any, before: dict[str, Tensor]) -> None:
    """Let the state of the graph be what it was."""
    import turnout

    with turnout.no_grad():
        for name, tensor in before.items():
            graph.state[name].copy_(tensor)


def _loaded(path: Path, device: str) -> Any:
    """The graph of an exported program, or a saved graph: that is an archive whose document lies at its top."""
    import turnout

    try:
        with zipfile.ZipFile(path) as archive:
            is_graph = "graph.json" in archive.namelist()
    except zipfile.BadZipFile:
        is_graph = path.suffix != ".pt2"  # reading it says what is wrong
    return turnout.graphs.load(path, device) if is_graph else turnout.export.load(path, device)


def _array(path: Path) -> Any:
    from numpy.lib import format as npy

    try:
        with path.open("rb") as file:
            return npy.read_array(file, allow_pickle=False)
    except ValueError as error:
        raise Problem(f"{path} is not an array that NumPy saved: {error}") from None


def _write(path: Path, result: Tensor) -> None:
    import numpy as np

    from turnout_aten.files import replacing

    with replacing(path) as file:
        np.save(file, result.detach().cpu().numpy())


def _tensors(result: Any) -> list[Tensor]:
    from turnout import Tensor
    from turnout_aten import trees

    return [leaf for leaf in trees.flatten(result)[0] if isinstance(leaf, Tensor)]


def _pairs(results: list[Tensor], expected: tuple[Path, ...]) -> list[tuple[Tensor, Path | None]]:
    if len(expected) > len(results):
        raise Problem(f"the model returns {len(results)} tensors, and {len(expected)} are to be compared")
    return [(result, expected[i] if i < len(expected) else None) for i, result in enumerate(results)]


def _compared(number: int, result: Tensor, path: Path | None, tolerance: float) -> dict[str, Any]:
    """A result, and how far it is from what is expected; None where nothing is."""
    found: dict[str, Any] = {"result": number, "dtype": result.dtype.name, "shape": list(result.shape)}
    if path is None:
        return {**found, "apart": None, "same": None}
    wanted, array = _array(path), result.detach().cpu().numpy()
    if wanted.shape != array.shape:
        return {**found, "apart": f"expected shape {list(wanted.shape)}", "same": False}
    apart = _apart(wanted, array)
    return {**found, "apart": apart, "same": bool(apart <= tolerance)}


def _apart(wanted: Any, found: Any) -> float:
    """The largest difference as a part of the largest number that is expected; infinite where one has a NaN and one has not."""
    import numpy as np

    wanted, found = (each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in (wanted, found))
    same = (wanted == found) | (np.isnan(wanted) & np.isnan(found))
    if same.all():
        return 0.0
    largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        difference = np.abs(wanted - found)[~same]
    worst = float(difference.max()) if np.isfinite(difference).all() else float("inf")
    return worst / largest if largest else worst


def _profiled(call: Callable[[], Any], graph: Any, before: dict[str, Tensor], device: str) -> list[dict[str, Any]]:
    """How long the calls of each operator of the graph take, the longest first. The state is put back.

    Where the device takes times, they decide: on the host, a call is over when its kernels are queued.
    """
    import turnout
    from turnout_aten.tensor.devices import device as device_named

    _put_back(graph, before)
    with turnout.trace_dispatch():
        call()  # in a trace operators resolve anew, which is not part of the cost
        _put_back(graph, before)
        times = device_named(device).backend.profile()
        with turnout.trace_dispatch() as log, times or nullcontext() as taken:
            call()
        _put_back(graph, before)
    calls = log.calls if taken is None else taken.log.calls
    found: dict[str, list[tuple[int, int]]] = {}
    for each in calls:
        found.setdefault(each.op, []).append((each.ns, 0 if taken is None else taken.device_ns(each)))
    sums = {op: [sum(column) for column in zip(*rows, strict=True)] for op, rows in found.items()}
    decides = 0 if taken is None else 1
    total = sum(each[decides] for each in sums.values()) or 1
    return [
        {"operator": op, "calls": len(found[op]), "milliseconds": host / 1e6, "share": (host, there)[decides] / total,
         "device_milliseconds": None if taken is None else there / 1e6}
        for op, (host, there) in sorted(sums.items(), key=lambda row: -row[1][decides])
    ]  # fmt: skip


def _print(found: dict[str, Any]) -> None:
    words = {None: "", True: "same", False: "different"}
    rows = [
        (row["result"], row["dtype"], str(row["shape"]), _shown(row["apart"]), words[row["same"]]) for row in found["results"]
    ]
    print_table(("result", "dtype", "shape", "apart", ""), rows)
    if found["operators"]:
        longest = found["operators"][0]["share"] or 1
        times = [name for name in ("milliseconds", "device_milliseconds") if found["operators"][0][name] is not None]
        lines = [
            (row["operator"], row["calls"], *(f"{row[name]:.3f}" for name in times), f"{100 * row['share']:.1f} %",
             "#" * round(BARS * row["share"] / longest))
            for row in found["operators"]
        ]  # fmt: skip
        print_lines("")
        print_table(("operator", "calls", *("ms", "device ms")[: len(times)], "share", ""), lines)
    print_lines("", f"time  {found['milliseconds']:.2f} ms for the first run on {found['device']}")
    if found["compiled"] is not None:
        done = found["compiled"]
        by = f"by {done['engine']}" if done["calls"] else f"which ran eagerly: {'; '.join(done['why'])}"
        print_lines(f"      {done['milliseconds']:.2f} ms for the second run, {by}")


def _shown(apart: Any) -> str:
    return "" if apart is None else apart if isinstance(apart, str) else f"{apart:.1e}"
