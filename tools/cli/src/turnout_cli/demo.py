"""`demo`: trains a classifier of `digits`, and lets the dispatcher explain what ran."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from turnout_cli.compiling import compile_option, compiled, compiled_facts, without_warnings
from turnout_cli.main import Problem, facts
from turnout_cli.names import device_names
from turnout_cli.output import console, note, print_json, print_lines, print_table
from turnout_cli.workers import computing

if TYPE_CHECKING:
    from turnout_cli.digits import Classifier, Digits
    from turnout_cli.workers import AtOnce

KERNELS = 12  # that are shown
PRECISIONS = {"bf16": "bfloat16", "fp16": "float16"}


@click.command
@click.option(
    "--model",
    type=click.Choice(["mlp", "cnn"]),
    default="mlp",
    show_default=True,
    help="One hidden layer, or two convolutions and a linear layer.",
)
@click.option(
    "--device",
    default=None,
    shell_complete=device_names,
    help="Where to train, such as cpu or cuda:0; by default the configured device.",
)
@click.option("--workers", type=click.IntRange(min=1), help="With --device dask: train on a cluster of this many processes.")
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over the training images; by default what the model needs.")
@click.option("--seed", default=0, show_default=True, help="The seed of the split, the initial weights and the order of batches.")
@click.option("--amp", type=click.Choice(list(PRECISIONS)), help="Mixed precision: forwards in bfloat16 or float16.")
@compile_option("Compile the training steps with this engine of turnout.compile.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw loss and confusion matrix into this file.")
@facts
def demo(
    model: str,
    device: str | None,
    workers: int | None,
    epochs: int | None,
    seed: int,
    amp: str | None,
    engine: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Train a classifier for digits; show what the dispatcher did."""
    _need("sklearn", "scikit-learn")
    if plot is not None:
        _need("matplotlib", "matplotlib")
    device = device or _default_device()
    with computing(device, workers) as place:
        if place.dashboard:
            note(f"Dask's dashboard: {place.dashboard}")
        found = train(model, device, epochs, seed, PRECISIONS.get(amp or ""), place, engine, quiet=as_json)
    found["workers"] = workers
    if plot is not None:
        from turnout_cli.plot import draw

        draw(plot, found["losses"], found["confusion"])
        found["plot"] = str(plot)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _need(module: str, distribution: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise Problem(f"this needs {distribution}\n  to fix  pip install {distribution}")


def _default_device() -> str:
    from turnout.devices import default_device

    return str(default_device())


def train(
    name: str,
    device: str,
    epochs: int | None,
    seed: int,
    amp: str | None,
    place: AtOnce,
    engine: str | None = None,
    *,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train and test the model of that name; everything that the demo prints, as data.

    epochs  None for the model's own number
    amp     the lower precision of the forwards
    place   what computes
    engine  what compiles the steps, None for eager ones
    """
    import turnout
    from turnout.dtypes import dtype_named
    from turnout_aten.backend import host_fallback as hosting
    from turnout_cli import digits

    before = hosting.calls()
    generator = turnout.Generator(device).manual_seed(seed)
    with place.step():
        data = digits.load(device, generator)
        model = digits.MODELS[name](device, generator, None if amp is None else dtype_named(amp))
        optimiser = digits.optimiser_of(model)
    epochs = epochs or model.epochs
    scaler = turnout.amp.GradScaler(device) if amp == "float16" else None
    train_step = digits.train_step if engine is None else compiled(digits.train_step, engine)
    losses: list[float] = []
    seconds: list[float] = []
    with _progress(quiet) as progress:
        task = progress.add_task("training", total=epochs, loss="")
        for _ in range(epochs):
            of_epoch = []
            with place.step():
                order = digits.order(data, generator)
                place.shard(order, digits.BATCH)
            for images, labels in digits.batches(data, order):
                start = perf_counter()
                with place.step(), without_warnings(engine):
                    loss = train_step(model, optimiser, images, labels, scaler)
                of_epoch.append(float(loss))
                seconds.append(perf_counter() - start)
            losses.append(sum(of_epoch) / len(of_epoch))
            progress.update(task, advance=1, loss=f"loss {losses[-1]:.4f}")
    confusion = _confusion(model, data)
    right = sum(confusion[i][i] for i in range(digits.CLASSES))
    batch = data.images[: digits.BATCH], data.labels[: digits.BATCH]
    with turnout.trace_dispatch():
        digits.train_step(
            model, optimiser, *batch, scaler
        )  # in a trace operators resolve anew, which is not part of the cost of a step
        with turnout.trace_dispatch() as log:
            digits.train_step(model, optimiser, *batch, scaler)
    explained, explanation = model.explain(data.images)
    return {
        "model": name,
        "device": str(data.images.device),
        "amp": amp,
        "seed": seed,
        "epochs": epochs,
        "parameters": sum(p.numel() for p in model.parameters()),
        "training_images": data.images.shape[0],
        "held_out_images": data.held_out_images.shape[0],
        "losses": losses,
        "accuracy": right / data.held_out_images.shape[0],
        "compiled": None if engine is None else {"engine": engine, **compiled_facts(train_step)},
        "steps": len(seconds),
        "milliseconds_per_step": 1000 * median(seconds),
        "seconds": sum(seconds),
        "confusion": confusion,
        "calls": [
            {"key": key, "kernel": kernel, "calls": count, "microseconds": ns / 1000}
            for (key, kernel), (count, ns) in log.totals().items()
        ],
        "hosted": [
            {"operator": op, "device": called, "host": ran, "calls": n - before.get((op, called, ran), 0)}
            for (op, called, ran), n in hosting.calls().items()
            if n > before.get((op, called, ran), 0)
        ],
        "explained": explained,
        "explanation": explanation,
    }


def _progress(quiet: bool) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    return Progress(*columns, console=console(stderr=True), disable=quiet)


def _confusion(model: Classifier, data: Digits) -> list[list[int]]:
    """Rows are the true digits, columns the predicted ones."""
    from turnout_cli import digits

    matrix = [[0] * digits.CLASSES for _ in range(digits.CLASSES)]
    truth = data.held_out_labels.tolist()
    for true, predicted in zip(truth, digits.predict(model, data.held_out_images), strict=True):
        matrix[true][predicted] += 1
    return matrix


def _of_compiled(compiled: dict[str, Any], steps: int) -> list[str]:
    """How many steps ran a graph, and why others did not."""
    head = f"compiled       {compiled['calls']} of {steps} steps by {compiled['engine']}, in {compiled['signatures']} signatures"
    return [head, *[f"  eagerly      {why}" for why in compiled["why"]]]


def _print(found: dict[str, Any]) -> None:
    first, last = found["losses"][0], found["losses"][-1]
    print_lines(
        f"accuracy       {100 * found['accuracy']:.2f} % of {found['held_out_images']} held-out digits",
        f"loss           {first:.4f} in the first epoch, {last:.4f} in the last of {found['epochs']}",
        f"time per step  {found['milliseconds_per_step']:.2f} ms (median of {found['steps']} on {found['device']})",
        *([] if found["compiled"] is None else _of_compiled(found["compiled"], found["steps"])),
        *([f"plot           {found['plot']}"] if "plot" in found else []),
        "",
    )
    calls = sorted(found["calls"], key=lambda call: -call["microseconds"])[:KERNELS]
    rows = [(c["key"], c["kernel"], c["calls"], f"{c['microseconds']:.0f}") for c in calls]
    print_lines(f"what took longest in one step, by key and kernel: {len(calls)} of {len(found['calls'])}; --json has all")
    print_table(("key", "kernel", "calls", "us, own"), rows)
    if found["hosted"]:
        print_lines("", "what had no kernel there: it ran on another device, and its results were copied back")
        print_table(
            ("operator", "on", "ran on", "calls"), [(h["operator"], h["device"], h["host"], h["calls"]) for h in found["hosted"]]
        )
    print_lines("", f"why {found['explained']} runs what it runs", *_indented(found["explanation"]))


def _indented(text: str) -> list[str]:
    return ["  " + line for line in text.splitlines()]
