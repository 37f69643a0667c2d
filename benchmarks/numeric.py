"""What the kernels themselves take: work on large tensors, and the step that trains a small network.

PyTorch and Turnout use the same number of threads: all cores, and one in the training step, which runs in a process of its own
because the libraries under NumPy read their number of threads when they are loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from timing import QUICK, THREADS, Pair, Result, Side, compare

import turnout

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SEED = 1


class Skipped(Exception):
    """Why a row cannot be measured."""


def torch_with_threads(threads: int) -> Any:
    """The module torch. Raises Skipped where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise Skipped(f"torch cannot be imported ({error}); `make oracle` installs it") from None
    torch.set_num_threads(threads)
    return torch


def _random(*shape: int) -> Any:
    return np.random.default_rng(SEED).standard_normal(shape, np.float32)


def against_torch(statement: str, **arrays: Any) -> Callable[[], AbstractContextManager[Pair]]:
    """One statement in both libraries; `m` is the library, other names are tensors of these shapes."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        torch = torch_with_threads(CORES)
        made = {name: _random(*shape) for name, shape in arrays.items()}
        sides = [Side(statement, m=m, **{n: m.from_numpy(a) for n, a in made.items()}) for m in (turnout, torch)]
        yield Pair(*sides)

    return prepare


def against_numpy(statement: str, plain: str, **arrays: Any) -> Callable[[], AbstractContextManager[Pair]]:
    """One statement of Turnout and one of NumPy on the same arrays."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        made = {name: _random(*shape) for name, shape in arrays.items()}
        ours = {name: turnout.from_numpy(a) for name, a in made.items()}
        yield Pair(Side(statement, m=turnout, **ours), Side(plain, np=np, **made))

    return prepare


def step(m: Any, x: Any, y: Any, parameters: list[Any]) -> Any:
    """Forward, cross entropy, backward, SGD: a network 784-256-10."""
    w1, b1, w2, b2 = parameters
    functional = m.nn.functional
    hidden = functional.relu(functional.linear(x, w1, b1))
    loss = functional.cross_entropy(functional.linear(hidden, w2, b2), y)
    loss.backward()
    with m.no_grad():
        for p in parameters:
            p.sub_(p.grad, alpha=0.01)
            p.grad = None
    return loss


def training(quick: bool) -> Result:
    """The step against torch's, both on one thread. Raises Skipped."""
    return on_one_thread(__file__, *(["--quick"] if quick else []))


def on_one_thread(*program: str) -> Result:
    """What a program prints that compares two sides, in a process of its own. Raises Skipped, also where it fails."""
    torch_with_threads(1)
    done = subprocess.run(
        [sys.executable, *program],
        env=os.environ | dict.fromkeys(THREADS, "1"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Skipped(done.stderr.strip().splitlines()[-1])
    return Result(*json.loads(done.stdout))


def network(m: Any, device: Any) -> tuple[Any, Any, list[Any]]:
    """64 images of 784 numbers, their classes of 10, and the parameters of the network."""
    shapes = ((256, 784), (256,), (10, 256), (10,))
    parameters = [m.from_numpy(_random(*shape) * np.float32(0.05)).to(device).requires_grad_() for shape in shapes]
    y = np.random.default_rng(SEED).integers(0, 10, 64)
    return m.from_numpy(_random(64, 784)).to(device), m.from_numpy(y).to(device), parameters


def _training(quick: bool) -> Result:
    torch = torch_with_threads(1)
    sides = []
    for m in (turnout, torch):
        x, y, parameters = network(m, "cpu")
        sides.append(Side("step(m, x, y, p)", m=m, x=x, y=y, p=parameters, step=step))
    return compare(Pair(*sides), QUICK if quick else 100, 0.01)


if __name__ == "__main__":
    print(json.dumps(_training("--quick" in sys.argv)))
