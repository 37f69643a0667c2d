"""Transforms of a small network, which takes longer to call than to compute: each row is one statement against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np
from numeric import torch_with_threads
from timing import Pair, Side

import turnout

SEED = 1
FEATURES, HIDDEN, EXAMPLES = 8, 16, 8
FEW, NARROW = 3, 4  # of the network whose Hessian is taken: 21 parameters


class Transform(NamedTuple):
    """A statement over what `names` gives, and the bound of its ratio."""

    name: str
    statement: str
    at_most: float


ROWS = [
    Transform("vmap_grad", "per_example(params, x, y)", 0.5),
    Transform("hessian", "second(flat)", 0.6),
    Transform("jacfwd", "columns(x[0])", 0.4),
    Transform("jacrev", "rows(x[0])", 0.6),
    Transform("vmap_hessian", "seconds(flats)", 0.4),
]


def pair(row: Transform) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares both sides of a row."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        torch = torch_with_threads(1)
        yield Pair(*[Side(row.statement, **names(library)) for library in (turnout, torch)])

    return prepare


def names(library: Any) -> dict[str, Any]:
    """What statements use: a network 8-16-1 and a batch, its transforms, and those of the loss of a network 3-4-1."""
    random = np.random.default_rng(SEED)

    def tensor(*shape: int) -> Any:
        return library.from_numpy(random.standard_normal(shape, np.float32))

    func = library.func
    params = tensor(HIDDEN, FEATURES), tensor(HIDDEN), tensor(1, HIDDEN), tensor(1)
    x, y = tensor(EXAMPLES, FEATURES), tensor(EXAMPLES, 1)
    few = tensor(EXAMPLES, FEW)
    flat = library.linspace(-1, 1, NARROW * (FEW + 2) + 1)

    def network(params: Any, x: Any) -> Any:
        w, b, v, c = params
        return (x @ w.t() + b).tanh() @ v.t() + c

    def loss(params: Any, x: Any, y: Any) -> Any:
        return ((network(params, x) - y) ** 2).mean()

    def loss_of_flat(flat: Any) -> Any:
        end = NARROW * FEW
        split = flat[:end].reshape(NARROW, FEW), flat[end : end + NARROW], flat[end + NARROW : -1].reshape(1, NARROW), flat[-1:]
        return loss(split, few, y)

    def layer(x: Any) -> Any:
        return (params[0] @ x + params[1]).tanh()

    return {
        "params": params, "x": x, "y": y, "flat": flat, "flats": library.stack([flat, flat * 0.5, flat * 2]),
        "per_example": func.vmap(func.grad(loss), (None, 0, 0)), "second": func.hessian(loss_of_flat),
        "seconds": func.vmap(func.hessian(loss_of_flat)), "columns": func.jacfwd(layer), "rows": func.jacrev(layer),
    }  # fmt: skip
