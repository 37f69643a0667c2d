"""Rows about compiled functions: the engine `xla` against Turnout's own eager calls, and against the same program in `jax.jit`.

The first call of each side is made beforehand: it compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np
from numeric import Skipped, step
from timing import Pair, Side

import turnout

EAGER, JIT = "eager", "jax.jit"
BATCH, FEATURES, HIDDEN, CLASSES = 64, 784, 256, 10


class EngineRow(NamedTuple):
    """A program, what it is compared with, and the bound of the ratio."""

    name: str
    what: str
    against: str
    at_most: float | None


ROWS = [
    EngineRow("few", "x + 1, 4 floats", JIT, None),
    EngineRow("chain12", "12 element-wise calls, a million floats", JIT, 1.3),
    EngineRow("chain12", "12 element-wise calls, a million floats", EAGER, None),
    EngineRow("chain30", "30 element-wise calls, a million floats", JIT, 1.3),
    EngineRow("chain30", "30 element-wise calls, a million floats", EAGER, None),
    EngineRow("small30", "30 element-wise calls, 1,024 floats", EAGER, 2.0),
    EngineRow("step", "training step 784-256-10, batch 64", JIT, 1.25),
    EngineRow("step", "training step 784-256-10, batch 64", EAGER, 1.05),
]


def pair(row: EngineRow) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares both sides of a row. Raises Skipped without JAX."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        try:
            import jax
        except ImportError as error:
            raise Skipped(f"jax cannot be imported ({error}); install turnout-jax with it") from None
        ours, eager, theirs = _programs(row.name, jax)
        ours()
        theirs()
        yield Pair(Side("run()", run=ours), Side("run()", run=eager if row.against == EAGER else theirs))

    return prepare


def _programs(name: str, jax: Any) -> tuple[Callable[[], Any], ...]:
    """The compiled program, the eager one, and JAX's."""
    return _steps(jax) if name == "step" else _chains(jax, name)


def _chains(jax: Any, name: str) -> tuple[Callable[[], Any], ...]:
    length = 4 if name == "few" else 1024 if name.startswith("small") else 1_000_000
    calls = 1 if name == "few" else int(name.strip("abcdefghijklmnopqrstuvwxyz"))
    x = turnout.linspace(0, 1, length)

    def chain(x: Any) -> Any:
        for i in range(calls):
            x = x + 1.0 if i % 3 == 0 else x * 0.5 if i % 3 == 1 else abs(x)
        return x

    compiled, jitted, array = turnout.compile(chain, engine="xla", strict=True), jax.jit(chain), jax.numpy.asarray(x.numpy())
    return lambda: compiled(x), lambda: chain(x), lambda: jitted(array).block_until_ready()


def _steps(jax: Any) -> tuple[Callable[[], Any], ...]:
    random = np.random.default_rng(0)
    shapes = ((HIDDEN, FEATURES), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
    arrays = [random.standard_normal(shape, np.float32) * 0.05 for shape in shapes]
    x, y = random.standard_normal((BATCH, FEATURES), np.float32), random.integers(0, CLASSES, BATCH)

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = parameters
        made = jax.nn.log_softmax(jax.nn.relu(x @ w1.T + b1) @ w2.T + b2)
        return -made[jax.numpy.arange(BATCH), y].mean()

    @jax.jit
    def theirs(parameters: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(parameters, x, y)
        return loss, [p - 0.01 * g for p, g in zip(parameters, grads, strict=True)]

    def ours(parameters: Any, x: Any, y: Any) -> Any:
        return step(turnout, x, y, parameters).detach()

    compiled = turnout.compile(ours, engine="xla", strict=True)
    made = [[turnout.from_numpy(each.copy()).requires_grad_() for each in arrays] for _ in range(2)]
    given = turnout.from_numpy(x), turnout.from_numpy(y)
    parameters, there = [jax.numpy.asarray(each) for each in arrays], (jax.numpy.asarray(x), jax.numpy.asarray(y))

    def trained() -> Any:
        loss, parameters[:] = theirs(parameters, *there)  # the next step begins with them, as it does in the other programs
        return jax.block_until_ready((loss, parameters))

    return lambda: compiled(made[0], *given), lambda: ours(made[1], *given), trained
