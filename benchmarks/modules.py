"""What modules and optimisers cost: against PyTorch's, and against the same step written with functions alone. One thread each.

    python benchmarks/modules.py ROW [--quick]

measures one of `PAIRS` in this process, and prints the times as JSON; `of` runs that in a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numeric import SEED, on_one_thread, torch_with_threads
from timing import Pair, Result, Side, compare

import turnout

WIDTH, HEADS, LAYERS, VOCABULARY, CONTEXT = 128, 4, 4, 65, 64


def identities() -> Pair:
    """A call of 20 modules that do nothing."""
    sides = []
    for m in (turnout, torch_with_threads(1)):
        model = m.nn.Sequential(*(m.nn.Identity() for _ in range(20)))
        sides.append(Side("model(x)", model=model, x=m.zeros(1)))
    return Pair(*sides)


def perceptron() -> Pair:
    """The training step of a network 784-256-10 in modules, with SGD."""
    return Pair(*(_trained(m, _perceptron(m), *_images(m)) for m in (turnout, torch_with_threads(1))))


def gpt() -> Pair:
    """The training step of a small GPT in modules, with SGD."""
    return Pair(*(_trained(m, _gpt(m), *_tokens(m)) for m in (turnout, torch_with_threads(1))))


def gpt_functions() -> Pair:
    """The same step in modules, and in functions of Turnout alone."""
    model, other = _gpt(turnout), _gpt(turnout)
    parameters, order = dict(other.named_parameters()), turnout.arange(CONTEXT)

    def step(tokens: Any, targets: Any) -> None:
        turnout.nn.functional.cross_entropy(_forward(parameters, tokens, order).flatten(0, 1), targets).backward()
        with turnout.no_grad():
            for p in parameters.values():
                p.sub_(p.grad, alpha=0.01)
                p.grad = None

    x, y = _tokens(turnout)
    return Pair(_trained(turnout, model, x, y), Side("step(x, y)", step=step, x=x, y=y))


PAIRS = {"identities": identities, "perceptron": perceptron, "gpt": gpt, "gpt_functions": gpt_functions}


def of(name: str) -> Callable[[bool], Result]:
    """What measures a pair in a process of its own. It raises Skipped."""
    return lambda quick: on_one_thread(__file__, name, *(["--quick"] if quick else []))


def _trained(m: Any, model: Any, x: Any, y: Any) -> Side:
    optimiser = m.optim.SGD(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> None:
        optimiser.zero_grad()
        m.nn.functional.cross_entropy(model(x).flatten(0, -2), y).backward()
        optimiser.step()

    return Side("step(x, y)", step=step, x=x, y=y)


def _perceptron(m: Any) -> Any:
    return m.nn.Sequential(m.nn.Linear(784, 256), m.nn.ReLU(), m.nn.Linear(256, 10))


def _images(m: Any) -> tuple[Any, Any]:
    generator = np.random.default_rng(SEED)
    return m.from_numpy(generator.standard_normal((64, 784), np.float32)), m.from_numpy(generator.integers(0, 10, 64))


def _tokens(m: Any) -> tuple[Any, Any]:
    drawn = np.random.default_rng(SEED).integers(0, VOCABULARY, (8, CONTEXT + 1))
    return m.from_numpy(drawn[:, :-1].copy()), m.from_numpy(drawn[:, 1:].reshape(-1).copy())


def _gpt(m: Any) -> Any:
    nn, functional = m.nn, m.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attn, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.gelu = nn.GELU()

        def forward(self, x: Any) -> Any:
            x = x + self.proj(_attended(functional, self.attn(self.ln_1(x))))
            return x + self.down(self.gelu(self.up(self.ln_2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.last = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
            self.order = m.arange(CONTEXT)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(self.order)
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x))

    return GPT()


def _attended(functional: Any, qkv: Any) -> Any:
    q, k, v = (part.view(8, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2) for part in qkv.split(WIDTH, dim=2))
    found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return found.transpose(1, 2).reshape(8, CONTEXT, WIDTH)


def _forward(p: dict[str, Any], tokens: Any, order: Any) -> Any:
    """The GPT from its parameters, without a module."""
    functional = turnout.nn.functional
    x = functional.embedding(tokens, p["tokens.weight"]) + functional.embedding(order, p["places.weight"])
    for i in range(LAYERS):
        w = f"blocks.{i}."
        hidden = functional.layer_norm(x, (WIDTH,), p[w + "ln_1.weight"], p[w + "ln_1.bias"])
        hidden = _attended(functional, functional.linear(hidden, p[w + "attn.weight"], p[w + "attn.bias"]))
        x = x + functional.linear(hidden, p[w + "proj.weight"], p[w + "proj.bias"])
        hidden = functional.layer_norm(x, (WIDTH,), p[w + "ln_2.weight"], p[w + "ln_2.bias"])
        hidden = functional.gelu(functional.linear(hidden, p[w + "up.weight"], p[w + "up.bias"]))
        x = x + functional.linear(hidden, p[w + "down.weight"], p[w + "down.bias"])
    return functional.linear(functional.layer_norm(x, (WIDTH,), p["last.weight"], p["last.bias"]), p["head.weight"])


if __name__ == "__main__":
    print(json.dumps(compare(PAIRS[sys.argv[1]](), 5 if "--quick" in sys.argv else 60, 0.01)))
