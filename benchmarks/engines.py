"""Rows about compiled functions: the engine `xla` against Turnout's own eager calls, and against the same program in `jax.jit` or
in PyTorch. And eager calls on the device `jax` against JAX's own.

The first call of each side is made beforehand: it compiles. A pause stands between turns, because threads of both sides look for
work after their turns, on processors that the other side needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np
from numeric import Skipped, step, torch_with_threads
from timing import IN_A_LOOP, Pair, Side, rest

import turnout

EAGER, JIT, JAX, TORCH = "eager", "jax.jit", "jax", "torch"
BATCH, FEATURES, HIDDEN, CLASSES = 64, 784, 256, 10
LAYERS, HEADS, WIDTH, LENGTH, WORDS, TEXTS = 2, 4, 128, 64, 96, 8  # of the transformer


class EngineRow(NamedTuple):
    """A program, what it is compared with, and the bound of the ratio."""

    name: str
    what: str
    against: str
    at_most: float | None


ROWS = [
    EngineRow("few", "x + 1, 4 floats", JIT, None),
    EngineRow("chain12", "12 element-wise calls, a million floats", JIT, 1.15),
    EngineRow("chain12", "12 element-wise calls, a million floats", EAGER, None),
    EngineRow("chain30", "30 element-wise calls, a million floats", JIT, 1.15),
    EngineRow("chain30", "30 element-wise calls, a million floats", EAGER, None),
    EngineRow("outside12", "12 such calls on memory of NumPy's", JIT, 1.3),
    EngineRow("outside30", "30 such calls on memory of NumPy's", JIT, 1.3),
    EngineRow("small30", "30 element-wise calls, 1,024 floats", EAGER, 2.0),
    EngineRow("written", "100 written inputs of 4 floats", JIT, 3.0),
    EngineRow("step", "training step 784-256-10, batch 64", JIT, 1.25),
    EngineRow("step", "training step 784-256-10, batch 64", EAGER, 1.05),
    EngineRow("step_torch", "training step 784-256-10, batch 64", TORCH, 0.8),
    EngineRow("attention", "attention of 8 heads over 256 places", JIT, None),
    EngineRow("attention", "attention of 8 heads over 256 places", EAGER, None),
    EngineRow("transformer", "training step of a transformer of 2 layers", JIT, None),
    EngineRow("transformer", "training step of a transformer of 2 layers", EAGER, None),
    EngineRow("add", "x + y, 4 floats on jax", JAX, None),
    EngineRow("relu", "relu(x), 4 floats on jax", JAX, None),
    EngineRow("sum", "x.sum(), 4 floats on jax", JAX, None),
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
        yield Pair(Side("run()", run=ours), Side("run()", run=eager if row.against == EAGER else theirs), rest, IN_A_LOOP)

    return prepare


def _programs(name: str, jax: Any) -> tuple[Callable[[], Any], ...]:
    """The compiled program, the eager one, and JAX's or PyTorch's."""
    if name in ("add", "relu", "sum"):
        return _calls(jax, name)
    of_name = {
        "written": _written, "step": _steps, "step_torch": _steps_torch, "attention": _attentions, "transformer": _transformers,
    }  # fmt: skip
    return of_name[name](jax) if name in of_name else _chains(jax, name)


def _calls(jax: Any, name: str) -> tuple[Callable[[], Any], ...]:
    x, a = turnout.ones(4, device="jax"), jax.numpy.ones(4)
    ours = {"add": lambda: x + x, "relu": lambda: turnout.relu(x), "sum": lambda: x.sum()}[name]
    return ours, ours, {"add": lambda: a + a, "relu": lambda: jax.nn.relu(a), "sum": lambda: a.sum()}[name]


def _chains(jax: Any, name: str) -> tuple[Callable[[], Any], ...]:
    length = 4 if name == "few" else 1024 if name.startswith("small") else 1_000_000
    calls = 1 if name == "few" else int(name.strip("abcdefghijklmnopqrstuvwxyz"))
    x, outside = turnout.linspace(0, 1, length), np.linspace(0, 1, length, dtype=np.float32)
    if name.startswith("outside"):
        x = turnout.from_numpy(outside)

    def chain(x: Any) -> Any:
        for i in range(calls):
            x = x + 1.0 if i % 3 == 0 else x * 0.5 if i % 3 == 1 else abs(x)
        return x

    compiled, jitted = turnout.compile(chain, engine="xla", strict=True), jax.jit(chain)
    array = jax.numpy.array(x.numpy(), copy=True)  # else it would lie over the memory of the tensor

    def ours() -> Any:
        return compiled(x), outside  # the program has NumPy's memory, too

    return ours, lambda: chain(x), lambda: jitted(array).block_until_ready()


def _written(jax: Any) -> tuple[Callable[[], Any], ...]:
    def ours(tensors: Any) -> None:
        for each in tensors:
            each.add_(1.0)

    compiled, jitted = turnout.compile(ours, engine="xla", strict=True), jax.jit(lambda arrays: [each + 1.0 for each in arrays])
    tensors, arrays = ([make(4) for _ in range(100)] for make in (turnout.zeros, jax.numpy.zeros))

    def theirs() -> Any:
        arrays[:] = jitted(arrays)
        return jax.block_until_ready(arrays)

    return lambda: compiled(tensors), lambda: ours(tensors), theirs


def _network() -> tuple[list[Any], Any, Any]:
    """Arrays of parameters, images and classes."""
    random = np.random.default_rng(0)
    shapes = ((HIDDEN, FEATURES), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
    arrays = [random.standard_normal(shape, np.float32) * 0.05 for shape in shapes]
    return arrays, random.standard_normal((BATCH, FEATURES), np.float32), random.integers(0, CLASSES, BATCH)


def _steps(jax: Any) -> tuple[Callable[[], Any], ...]:
    arrays, x, y = _network()

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

    return _trainings(jax, ours, theirs, arrays, x, y)


def _steps_torch(jax: Any) -> tuple[Callable[[], Any], ...]:
    try:
        torch = torch_with_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    except ImportError as error:
        raise Skipped(f"torch cannot be imported ({error})") from None
    arrays, x, y = _network()
    parameters, given = [torch.from_numpy(each).requires_grad_() for each in arrays], (torch.from_numpy(x), torch.from_numpy(y))
    return *_steps(jax)[:2], lambda: step(torch, *given, parameters)


def _trainings(jax: Any, ours: Any, theirs: Any, arrays: list[Any], x: Any, y: Any) -> tuple[Callable[[], Any], ...]:
    """Steps of a training, each of which begins with what the one before has left."""
    compiled = turnout.compile(ours, engine="xla", strict=True)
    made = [[turnout.from_numpy(each.copy()).requires_grad_() for each in arrays] for _ in range(2)]
    given = turnout.from_numpy(x), turnout.from_numpy(y)
    parameters, there = [jax.numpy.asarray(each) for each in arrays], (jax.numpy.asarray(x), jax.numpy.asarray(y))

    def trained() -> Any:
        loss, parameters[:] = theirs(parameters, *there)
        return jax.block_until_ready((loss, parameters))

    return lambda: compiled(made[0], *given), lambda: ours(made[1], *given), trained


def _attentions(jax: Any) -> tuple[Callable[[], Any], ...]:
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((2, 8, 256, 64), np.float32) for _ in range(3)]

    def ours(query: Any, key: Any, value: Any) -> Any:
        return turnout.nn.functional.scaled_dot_product_attention(query, key, value)

    @jax.jit
    def theirs(query: Any, key: Any, value: Any) -> Any:
        return jax.nn.softmax(query @ key.swapaxes(-1, -2) * 0.125) @ value

    compiled = turnout.compile(ours, engine="xla", strict=True)
    given, there = [turnout.from_numpy(each) for each in arrays], [jax.numpy.asarray(each) for each in arrays]
    return lambda: compiled(*given), lambda: ours(*given), lambda: theirs(*there).block_until_ready()


def _transformers(jax: Any) -> tuple[Callable[[], Any], ...]:
    random = np.random.default_rng(0)
    shapes = [(WORDS, WIDTH), (LENGTH, WIDTH)]
    shapes += [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)] * LAYERS
    arrays = [random.standard_normal(shape, np.float32) * 0.05 for shape in shapes]
    x, y = (random.integers(0, WORDS, (TEXTS, LENGTH)) for _ in range(2))
    functional = turnout.nn.functional

    def norm(x: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        return x / jax.numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def ours(parameters: Any, x: Any, y: Any) -> Any:
        made = transformer(
            lambda x: functional.layer_norm(x, (WIDTH,)), lambda x: turnout.softmax(x, -1), functional.gelu, parameters, x
        )
        loss = functional.cross_entropy(made.reshape(-1, WORDS), y.reshape(-1))
        loss.backward()
        with turnout.no_grad():
            for each in parameters:
                each.sub_(each.grad, alpha=0.01)
                each.grad = None
        return loss.detach()

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        made = transformer(norm, jax.nn.softmax, lambda x: jax.nn.gelu(x, approximate=False), parameters, x)
        return -jax.nn.log_softmax(made.reshape(-1, WORDS))[jax.numpy.arange(y.size), y.reshape(-1)].mean()

    @jax.jit
    def theirs(parameters: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(parameters, x, y)
        return loss, [p - 0.01 * g for p, g in zip(parameters, grads, strict=True)]

    return _trainings(jax, ours, theirs, arrays, x, y)


def transformer(norm: Any, softmax: Any, gelu: Any, parameters: Any, tokens: Any) -> Any:
    """What a transformer says of each token, in the operators that both libraries have."""
    words, places, *layers = parameters
    x = words[tokens] + places
    for i in range(0, len(layers), 4):
        first, second, third, fourth = layers[i : i + 4]
        parts = (norm(x) @ first).reshape(TEXTS, LENGTH, 3, HEADS, WIDTH // HEADS)
        query, key, value = (parts[:, :, part].swapaxes(1, 2) for part in range(3))
        seen = softmax(query @ key.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5) @ value
        x = x + seen.swapaxes(1, 2).reshape(TEXTS, LENGTH, WIDTH) @ second
        x = x + gelu(norm(x) @ third) @ fourth
    return norm(x) @ words.T
