"""`turnout-serving`: serves an exported model, or measures how long its answers take, eager and compiled."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from http.client import HTTPConnection
from random import Random
from statistics import median
from threading import Thread
from time import perf_counter

from rich.console import Console
from rich.progress import Progress

from turnout_serving.service import Service, server


def batch(shape: Sequence[int], random: Random) -> list[object]:
    """Random numbers in nested lists."""
    if len(shape) == 1:
        return [random.gauss() for _ in range(shape[0])]
    return [batch(shape[1:], random) for _ in range(shape[0])]


def measured(service: Service, shape: Sequence[int], count: int, progress: Progress) -> list[float]:
    """The seconds of each of `count` requests, over HTTP, the first one included."""
    serving = server(service)
    thread = Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    connection = HTTPConnection("127.0.0.1", serving.server_port)
    task, random, seconds = progress.add_task("compiled" if service.is_compiled else "eager", total=count), Random(0), []
    try:
        for _ in range(count):
            body = json.dumps({"inputs": [batch(shape, random)]})
            start = perf_counter()
            connection.request("POST", "/", body)
            response = connection.getresponse()
            text = response.read()
            seconds.append(perf_counter() - start)
            if response.status != 200:
                raise SystemExit(text.decode())
            progress.update(task, advance=1)
    finally:
        connection.close()
        serving.shutdown()
        serving.server_close()
        thread.join()
    return seconds


def draw(times: dict[str, list[float]], file: str) -> None:
    """How long each request took, as a chart."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, seconds in times.items():
        axes.plot([1000 * each for each in seconds], label=name)
    axes.set(xlabel="request", ylabel="milliseconds", yscale="log")
    axes.legend()
    figure.savefig(file)


def arguments() -> ArgumentParser:
    """What the command takes."""
    parser = ArgumentParser(prog="turnout-serving", description="Serve an exported model, compiled.")
    parser.add_argument("model", help="a file of torch.export.save")
    parser.add_argument("--engine", default="xla", help="what compiles the model (default: xla)")
    parser.add_argument("--port", type=int, default=8000, help="where to listen (default: 8000)")
    parser.add_argument("--requests", type=int, metavar="COUNT", help="measure so many requests, eager and compiled, and end")
    parser.add_argument("--shape", default="1,16", help="the shape of the input of these requests (default: 1,16)")
    parser.add_argument("--chart", metavar="FILE", help="draw the times of the requests into a file")
    return parser


def main(args: Sequence[str] | None = None) -> None:
    """The command."""
    given, console = arguments().parse_args(args), Console()
    if given.requests is None:
        serving = server(Service(given.model, given.engine), given.port)
        console.print(f"listening on http://127.0.0.1:{serving.server_port}")
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            serving.server_close()
        return
    shape = [int(each) for each in given.shape.split(",")]
    services = {"eager": Service(given.model), f"compiled by {given.engine}": Service(given.model, given.engine)}
    with Progress(console=Console(stderr=True)) as progress:
        times = {name: measured(each, shape, given.requests, progress) for name, each in services.items()}
    for name, seconds in times.items():
        console.print(f"{name}: {1000 * seconds[0]:.1f} ms for the first request, {1000 * median(seconds):.2f} ms for most")
    if given.chart:
        draw(times, given.chart)
