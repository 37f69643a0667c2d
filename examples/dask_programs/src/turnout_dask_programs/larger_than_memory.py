"""Statistics, principal components and a logistic regression over an array that no process could hold.

    turnout-larger-than-memory                       # 0.5 GB, each process may have 400 MB
    turnout-larger-than-memory --gigabytes 8 --memory 1400MB --steps 5

The array lies in files, one for each chunk, as measurements of many days do. It is read once for the statistics, once for the
components, and once for each step of the regression. The files are made first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dask.delayed import delayed
from distributed import Client

import turnout
from turnout import Tensor
from turnout_dask_programs.clusters import bar, peaks, workers

FEATURES = 50
COMPONENTS = 3
RATE = 2.0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--gigabytes", type=float, default=0.5, help="the size of the array")
    made.add_argument("--chunk", type=float, default=20, help="the size of a chunk in megabytes")
    made.add_argument("--workers", type=int, default=2, help="how many processes compute")
    made.add_argument("--memory", default="400MB", help="how much memory each of them may have")
    made.add_argument("--steps", type=int, default=10, help="steps of the logistic regression")
    made.add_argument("--folder", type=Path, help="where the files are made; a temporary folder by default")
    made.add_argument("--json", action="store_true", help="print what was found as JSON")
    return made


# ---- the data


def model() -> tuple[Any, Any]:
    """How the features hang together, and the weights by which they decide."""
    random = np.random.default_rng(0)
    return random.standard_normal((COMPONENTS, FEATURES), "f4"), random.standard_normal(FEATURES).astype("f4") / 4


def write(path: Path, rows: int, number: int) -> None:
    """A file of rows: the features, and in a last column which of two classes it is."""
    random = np.random.default_rng(number + 1)
    directions, weights = model()
    hidden = random.standard_normal((rows, COMPONENTS), "f4") * np.array([3, 2, 1], "f4")
    features = hidden @ directions + random.standard_normal((rows, FEATURES), "f4") + 1
    labels = (features @ weights + random.standard_normal(rows, "f4") > 0).astype("f4")
    np.save(path, np.concatenate([features, labels[:, None]], 1))


def read(path: Path) -> Any:
    """The rows of a file."""
    return np.load(path)


def files(client: Client, folder: Path, gigabytes: float, chunk: float) -> tuple[list[Path], int]:
    """The files, made by the workers, and how many rows each of them has."""
    rows = int(chunk * 1e6 / 4 / (FEATURES + 1))
    paths = [folder / f"{number}.npy" for number in range(max(1, round(gigabytes * 1000 / chunk)))]
    with bar() as shown:
        task = shown.add_task("making files", total=len(paths))
        for made in client.map(write, paths, [rows] * len(paths), range(len(paths)), pure=False):
            made.result()
            shown.advance(task)
    return paths, rows


def table(paths: Sequence[Path], rows: int) -> Tensor:
    """The tensor on `dask` that the files make up. Nothing is read yet."""
    return turnout.cat([turnout.dask.from_delayed(delayed(read)(path), (rows, FEATURES + 1)) for path in paths])


# ---- what is computed, each in one pass over the data or a pass for each step


def statistics(x: Tensor) -> dict[str, Tensor]:
    """The mean, the standard deviation and the extremes of each feature."""
    deviation, mean = turnout.std_mean(x, 0)
    found = {"mean": mean, "deviation": deviation, "smallest": x.amin(0), "largest": x.amax(0)}
    return dict(zip(found, turnout.dask.compute(*found.values()), strict=True))  # together: the data are read once


def principal_components(x: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """The directions in which rows differ most, and how much of the variance each has: of the matrix of covariances."""
    centred = x - mean.to("dask")
    covariance = (centred.t() @ centred).cpu() / (x.shape[0] - 1)
    variances, directions = turnout.linalg.eigh(covariance)
    return directions[:, -COMPONENTS:].flip(1), (variances / variances.sum())[-COMPONENTS:].flip(0)


def loss_and_accuracy(x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of a logistic regression, and how many labels it gets right."""
    scores = x @ weights
    loss = turnout.nn.functional.binary_cross_entropy_with_logits(scores, y)
    return loss, ((scores.detach() > 0) == (y > 0)).float().mean()


def descend(x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the regression, for which the data are read once."""
    with turnout.dask.step():
        loss, accuracy = loss_and_accuracy(x, y, weights)
        loss.backward()
        with turnout.no_grad():
            weights -= RATE * weights.grad
        weights.grad = None
        loss = loss.detach()
    return loss, accuracy


def run(client: Client, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Everything, as data."""
    paths, rows = files(client, folder, options.gigabytes, options.chunk)
    data = table(paths, rows)
    features, labels = data[:, :FEATURES], data[:, FEATURES]
    seconds: dict[str, float] = {}
    with bar() as shown:
        task = shown.add_task("passes over the data", total=2 + options.steps)
        start = time.perf_counter()
        known = statistics(features)
        seconds["statistics"] = time.perf_counter() - start
        shown.advance(task)
        start = time.perf_counter()
        _, shares = principal_components(features, known["mean"])
        seconds["components"] = time.perf_counter() - start
        shown.advance(task)
        scaled = (features - known["mean"].to("dask")) / known["deviation"].to("dask")
        weights = turnout.zeros(FEATURES, device="dask", requires_grad=True)
        start = time.perf_counter()
        losses, accuracy = [], turnout.zeros(())
        for _ in range(options.steps):
            loss, accuracy = descend(scaled, labels, weights)
            losses.append(loss.item())  # waits until the step is computed
            shown.advance(task)
        seconds["regression"] = time.perf_counter() - start
    return {
        "gigabytes": data.nbytes / 1e9,
        "chunks": len(paths),
        "rows": data.shape[0],
        "mean": known["mean"].mean().item(),
        "shares": shares.tolist(),
        "losses": losses,
        "accuracy": accuracy.item(),
        "seconds": seconds,
        "megabytes": peaks(client),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it and print what was found."""
    options = parser().parse_args(arguments)
    with workers(options.workers, options.memory) as client:
        if options.folder is not None:
            found = run(client, options.folder, options)
        else:
            with tempfile.TemporaryDirectory() as folder:
                found = run(client, Path(folder), options)
    if options.json:
        print(json.dumps(found))
        return
    print(f"data        {found['gigabytes']:.1f} GB in {found['chunks']} chunks, {found['rows']} rows")
    print(f"components  have {', '.join(f'{100 * share:.0f} %' for share in found['shares'])} of the variance")
    print(
        f"regression  loss {found['losses'][0]:.3f} -> {found['losses'][-1]:.3f}, {100 * found['accuracy']:.1f} % of the labels"
    )
    print("seconds     " + ", ".join(f"{name} {took:.1f}" for name, took in found["seconds"].items()))
    print("peak memory " + ", ".join(f"{name} {peak:.0f} MB" for name, peak in found["megabytes"].items()))


if __name__ == "__main__":
    main()
