"""What random programs of views, writes and functions are made of: expressions of one tensor, as Python text with their shapes.

Every entry is called with a `Draw` and a `Var` and gives text, or None where it cannot be applied. The text is written for any
library that names things as PyTorch does; `t` is the library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import NamedTuple

Shape = tuple[int, ...]


@dataclass
class Memory:
    """What is believed of memory that several variables may share.

    leaf    it belongs to a leaf that requires a gradient
    saved   some function or write keeps it for its gradient
    hooked  some of it has hooks
    twice   two variables may be one tensor
    parts   some variables have parts of the complex numbers of others
    cut     it was detached
    """

    leaf: bool = False
    saved: bool = False
    hooked: bool = False
    twice: bool = False
    parts: bool = False
    cut: bool = False


@dataclass
class Var:
    """A variable as the generator believes it to be.

    is_view     it is a view of another
    several     it is one of several views made together
    unrecorded  it is a view made where nothing is recorded
    hooked      it has hooks
    """

    name: str
    shape: Shape
    dtype: str = "float64"
    tracked: bool = False
    is_view: bool = False
    several: bool = False
    unrecorded: bool = False
    hooked: bool = False
    memory: Memory = field(default_factory=Memory)

    def __str__(self) -> str:
        return self.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return prod(self.shape)


class Draw(Random):
    """Random choices, and expressions for second operands.

    scope  the variables that there are
    used   those that operands were made of since it was last cleared
    frees  the program goes backward without keeping the graph
    smooth  the program is a function whose gradients are compared with differences
    """

    def __init__(self, seed: int, smooth: bool = False) -> None:
        super().__init__(seed)
        self.smooth = smooth
        self.scope: list[Var] = []
        self.used: list[Var] = []
        self.frees = self.chance(0.3)

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def dim(self, x: Var) -> int:
        """A dimension, sometimes counted from the end."""
        return self.randrange(-x.ndim, x.ndim) if self.chance(0.4) else self.randrange(x.ndim)

    def number(self) -> str:
        return f"{round(self.uniform(-1.5, 1.5), 3) + 0.0004:.4f}"

    def factor(self) -> str:
        """A number to multiply by, which is a tensor where that makes a difference to what is kept for the gradient."""
        return f"t.tensor({self.number()})" if self.frees else self.number()

    def indices(self, length: int, count: int, repeat: bool = True) -> list[int]:
        return [self.randrange(length) for _ in range(count)] if repeat else self.sample(range(length), count)

    def operand(self, shape: Shape, dtype: str = "float64", exact: bool = False) -> str:
        """A tensor that broadcasts to `shape` (or has it exactly), made of a variable."""
        allowed = [v for v in self.scope if v.dtype == dtype or (self.chance(0.15) and not exact)]
        if not allowed:
            return f"t.ones({shape}, dtype=t.{dtype})"
        y = self.choice(allowed)
        self.used.append(y)
        if y.shape == shape or (not exact and broadcasts(y.shape, shape)):
            return y.name
        if y.numel == prod(shape):
            return f"{y}.reshape({shape})"
        if not exact:
            return f"{y}.sum()" if y.dtype == "int64" else f"{y}.mean()"
        if y.numel >= prod(shape) > 0:
            return f"{y}.reshape(-1)[:{prod(shape)}].reshape({shape})"
        return f"{y}.sum().expand({shape})"


class Made(NamedTuple):
    """An expression with its shape, and its dtype where that is not the operand's."""

    text: str
    shape: Shape
    dtype: str = ""


Entry = Callable[[Draw, Var], Made | None]
Several = Callable[[Draw, Var], tuple[str, list[Shape]] | None]
Write = Callable[[Draw, Var], str | None]


def broadcasts(shape: Shape, to: Shape) -> bool:
    ahead = len(to) - len(shape)
    return ahead >= 0 and all(n in (1, m) for n, m in zip(shape, to[ahead:], strict=True))


def put(shape: Shape, dim: int, *lengths: int) -> Shape:
    """The shape with the dim replaced by others."""
    dim %= len(shape)
    return (*shape[:dim], *lengths, *shape[dim + 1 :])


def factored(d: Draw, count: int) -> Shape:
    """A random shape of as many elements."""
    options = [(count,), (1, count), (count, 1)]
    options += [(n, count // n) for n in range(2, count) if count % n == 0] * 2
    options += [(n, 1, count // n) for n in range(2, count) if count % n == 0]
    return d.choice(options)


def after_slice(length: int, part: slice) -> int:
    return len(range(*part.indices(length)))


def a_slice(d: Draw, length: int, may_be_empty: bool) -> tuple[str, int]:
    start = d.choice([None, None, 0, 1, -1, -2])
    stop = d.choice([None, None, None, length, length - 1, -1])
    step = d.choice([None, None, None, 2, 3])
    count = after_slice(length, slice(start, stop, step))
    if count == length:
        return ":", length  # the other spellings make no view in PyTorch where they are written to
    if not count and not (may_be_empty and d.chance(0.3)):
        return ":", length
    text = f"{'' if start is None else start}:{'' if stop is None else stop}" + ("" if step is None else f":{step}")
    return text, count


def basic_index(d: Draw, x: Var) -> tuple[str, Shape]:
    """A mixed index of integers, slices, None and `...`."""
    items, shape, rest = [], [], list(x.shape)
    while rest:
        kind = d.choice(["int", "slice", "slice", "none", "rest"])
        if kind == "rest" and "..." not in items:
            keep = d.randrange(len(rest) + 1)
            items.append("...")
            shape += rest[: len(rest) - keep]
            rest = rest[len(rest) - keep :]
        elif kind == "none" and len(items) < 4:
            items.append("None")
            shape.append(1)
        elif kind == "int" and rest[0]:
            items.append(str(d.randrange(-rest[0], rest[0])))
            rest.pop(0)
        else:
            text, n = a_slice(d, rest.pop(0), not x.tracked)
            items.append(text)
            shape.append(n)
        if d.chance(0.3) and "..." not in items:
            break
    return ", ".join(items) or "...", (*shape, *rest)
