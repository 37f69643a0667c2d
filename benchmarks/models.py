"""How fast exported models are: a run on each backend against PyTorch's eager mode, in turns, on one thread or more.

    python benchmarks/models.py [--threads 1] [--repeats 7] [--models resnet,gpt2] [--devices cpu,opencl] [--training]
        [--compile xla] [--clock cpu] [--json FILE]

It needs PyTorch. A run is a forward without gradients; with `--training` a forward and a backward. With `--compile ENGINE`, a run
is one that the engine has compiled, and what it is compared with is Turnout's own eager run; the first call is timed apart. It
reports and never fails because something is slow.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from timing import IN_A_LOOP, THREADS, Pair, Side, compare, rest

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICES = "cpu,opencl,cuda"
BATCH = 0.01  # seconds
CLOCKS = {"wall": perf_counter, "cpu": process_time}


def arguments(given: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--models", default="")
    parser.add_argument("--devices", default=DEVICES)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--compile", metavar="ENGINE", default="")
    clocks = "time on the clock, or that of the processor, on a machine with other work"
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help=clocks)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(given)


def seconds_of(run: Callable[[], Any]) -> float:
    """The seconds of one run on the clock."""
    start = perf_counter()
    run()
    return perf_counter() - start


def ours(program: Any, inputs: Any, device: str, training: bool, engine: str = "") -> Callable[[], Any]:
    """A run of a program on a device, compiled where an engine is named; it ends when its results are on the host."""
    import turnout

    graph = turnout.export.from_torch(program, device)
    given = [turnout.tensor(x.numpy(), device=device) for x in inputs]
    parameters = [tensor for tensor in graph.state.values() if tensor.requires_grad]

    def forward(*given: Any) -> Any:
        return graph(*given)

    def forward_and_backward(*given: Any) -> None:
        sum(each.sum() for each in _tensors(graph(*given), turnout.Tensor)).backward()

    step = forward_and_backward if training else forward
    call: Callable[..., Any] = turnout.compile(step, engine=engine) if engine else step

    def run() -> Any:
        if not training:
            with turnout.no_grad():
                return [each.cpu() for each in _tensors(call(*given), turnout.Tensor)]
        call(*given)
        for each in parameters:
            if each.grad is not None:
                each.grad.cpu()
            each.grad = None
        return None

    run.compiled = call  # type: ignore[attr-defined]
    return run


def theirs(model: Any, inputs: Any, training: bool) -> Callable[[], Any]:
    """A run of the model in PyTorch."""
    import torch

    parameters = list(model.parameters())

    def run() -> Any:
        if not training:
            with torch.no_grad():
                return model(*inputs)
        sum(each.sum() for each in _tensors(model(*inputs), torch.Tensor)).backward()
        for each in parameters:
            each.grad = None
        return None

    return run


def _tensors(tree: Any, kind: type) -> list[Any]:
    if isinstance(tree, kind):
        return [tree]
    inside = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    return [each for branch in inside for each in _tensors(branch, kind)]


def main(given: list[str]) -> None:
    """Measure, and print a table."""
    options = arguments(given)
    os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    import export_models
    import torch

    import turnout
    from turnout.errors import DeviceError, PluginError

    Side.clock = CLOCKS[options.clock]
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")  # PyTorch's, while it exports
    devices = []
    for device in options.devices.split(","):
        try:
            turnout.ones(1, device=device)
            devices.append(device)
        except (DeviceError, PluginError) as error:
            print(f"without {device}: {str(error).partition(chr(10))[0]}")
    rows: list[dict[str, Any]] = []
    against = "eager" if options.compile else "torch"
    print(f"{'model':<14}{'device':<9}{'turnout ms':>12}{against + ' ms':>10}{'ratio':>8}  quartiles")
    for name in options.models.split(",") if options.models else export_models.MODELS:
        model, inputs = export_models.made(name)
        program = export_models.exported(name, core=False)
        for device in devices:
            mine = ours(program, inputs, device, options.training, options.compile)
            if options.compile:
                row = {"first": seconds_of(mine), "why": ""}
                seconds_of(mine)  # makes the guard
                row["why"] = "; ".join(each.why for each in turnout.compiler.signatures(mine.compiled))  # type: ignore[attr-defined]
                other = ours(program, inputs, device, options.training)
            else:
                row, other = {}, theirs(model, inputs, options.training)
            sides = Side("run()", run=mine), Side("run()", run=other)
            result = compare(Pair(*sides, rest, IN_A_LOOP), options.repeats, BATCH)
            row |= {"model": name, "device": device, "turnout": result.turnout, against: result.other, "ratio": result.value}
            rows.append({**row, "quartiles": [result.low, result.high]})
            note = f"; first call {row['first']:.1f} s {row['why']}" if options.compile else ""
            print(
                f"{name:<14}{device:<9}{1000 * result.turnout:>12.2f}{1000 * result.other:>10.2f}{result.value:>8.2f}"
                f"  {result.low:.2f} to {result.high:.2f}{note}",
                flush=True,
            )
    for device in devices:
        of_device = [row["ratio"] for row in rows if row["device"] == device]
        mean = math.exp(sum(map(math.log, of_device)) / len(of_device))
        print(f"{'all':<14}{device:<9}{'':>22}{mean:>8.2f}  geometric mean; worst {max(of_device):.2f}")
    if options.json is not None:
        facts = {"threads": options.threads, "training": options.training, "engine": options.compile}
        facts |= {"torch": torch.__version__, "rows": rows}
        options.json.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
