"""Programs that are compiled, drawn by a seed: what calls of them leave is compared with what the functions leave.

A program has arguments that may be one tensor or views of one, tensors and numbers in its closure, an object whose attributes it
reads and replaces, a list, a parameter with gradients, writes into views, random numbers, and branches that depend on shapes.
Between calls its world is changed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from random import Random
from typing import Any

import turnout
from turnout import compiler

CALLS = 4


class Holder:
    """An object of a program."""

    def __init__(self, state: Any, scale: float) -> None:
        self.state = state
        self.scale = scale

    def scaled(self, x: Any) -> Any:
        """A method that reads an attribute."""
        return x * self.scale


def tensors_of(tree: Any) -> Iterator[Any]:
    """The tensors of nested tuples and lists."""
    if isinstance(tree, turnout.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for each in tree:
            yield from tensors_of(each)


class World:
    """What a program can reach, made by a seed for a device."""

    def __init__(self, seed: int, device: str) -> None:
        self.draw = Random(f"world {seed}")
        self.device = device
        self.outside = [self.tensor()]
        self.weight = self.tensor().requires_grad_()
        self.holder = Holder(self.tensor(), 0.5)
        self.items = [self.tensor(), self.tensor()]

    def tensor(self) -> Any:
        """Two rows of three small numbers."""
        return turnout.tensor([[self.draw.randint(-4, 4) / 4 for _ in range(3)] for _ in range(2)], device=self.device)

    def arguments(self) -> tuple[Any, Any]:
        """Two tensors: apart, the same, or one within the other."""
        kind = self.draw.randrange(4)
        a = self.tensor()
        if kind == 0:
            return a, a
        if kind == 1:
            base = turnout.cat([a, self.tensor()])
            return base, base[1:3]
        return a, self.tensor().t().contiguous().t() if kind == 2 else self.tensor()

    def change(self) -> None:
        """What happens between two calls."""
        kind = self.draw.randrange(6)
        if kind == 0:
            self.holder.scale = self.draw.choice((0.25, 0.5, 2.0))
        elif kind == 1:
            self.holder.state = self.tensor()
        elif kind == 2:
            self.items[0] = self.items[1]
        elif kind == 3:
            self.weight.grad = None
        elif kind == 4:
            self.outside[0].add_(0.25)

    def all(self) -> list[Any]:
        """Its tensors."""
        return [*self.outside, self.weight, self.holder.state, *self.items]


class Drawn:
    """The lines of a program."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Random(f"compiled {seed}")
        self.names = ["a", "b", "outside[0]", "holder.state", "items[0]", "items[1]"]
        self.views: list[str] = []
        self.lines: list[str] = []
        for i in range(draw.randint(3, 9)):
            self.lines += self._line(i)
        kept = draw.sample(self.names + self.views, min(4, len(self.names + self.views)))
        self.text = (
            "def make(world, t):\n"
            "    outside, weight, holder, items, device = world.outside, world.weight, world.holder, world.items, world.device\n"
            "    rate = 0.5\n"
            "    def half(x, by=0.5):\n"
            "        return x * by * rate\n"
            "    def program(a, b):\n"
            "        b = b[:2] if b.shape[0] > 2 else b\n"
            "        a = a[:2] if len(a) > 2 else a\n"
            + "".join(f"        {line}\n" for line in self.lines)
            + f"        return {', '.join(kept)}, [{self.draw.choice(self.names)}]\n"
            "    return program\n"
        )

    def _line(self, i: int) -> list[str]:
        draw = self.draw
        x, y, new = draw.choice(self.names), draw.choice(self.names), f"x{i}"
        value = draw.choice(
            (f"t.tanh({x} + {y})", f"{x} - {y} * 0.5", f"half({x})", f"holder.scaled({x})", f"t.maximum({x}, {y})",
             f"({x} @ {y}.t()) @ {y} / 8", f"t.rand(2, 3, device=device) - {x}", f"{x}.clone()",
             f"t.nn.functional.dropout({x}, 0.5)", f"t.tensor([[0.5, 1.0, 2.0]], device=device) * {x}",
             f"t.tanh({x} * weight).detach()", f"{x}.sum(0, keepdim=True) / 4 + {y}")
        )  # fmt: skip
        kind = draw.randrange(8)
        if kind < 3:
            self.names.append(new)
            return [f"{new} = {value}"]
        if kind == 3:
            self.views.append(f"v{i}")
            part = draw.choice((f"{x}[0]", f"{x}.t()", f"{x}[:, 1:]", f"{x}.view(-1)[1:4]", f"{x}.detach()"))
            return [f"v{i} = {part}" if ".view" not in part else f"v{i} = {x}[1:]"]
        if kind == 4:
            target = draw.choice(self.names + self.views)
            return [f"{target}.{draw.choice(('mul_(0.5)', 'tanh_()', 'add_(0.25)', 'zero_()', 'uniform_()'))}"]
        if kind == 5:
            return [f"{x}.copy_({value})" if draw.random() < 0.5 else f"{x}[{draw.randrange(2)}] = ({value})[0]"]
        if kind == 6:
            place = draw.choice(("holder.state", "items[0]", "items[1]"))
            return [f"{place} = {value}"]
        with_step = [f"(weight * {x}.detach().clone()).sum().backward()"]
        if draw.random() < 0.5:
            with_step += ["with t.no_grad():", "    weight.sub_(weight.grad * 0.125)"]
        return with_step


def facts(tree: Any) -> list[Any]:
    """Dtypes, shapes, strides, aliases and identities, and the values in a list each."""
    found: list[Any] = []
    tensors = list(tensors_of(tree))
    for i, x in enumerate(tensors):
        grad = x.grad if x.is_leaf else None
        values = [x.detach().cpu().reshape(-1).tolist(), [] if grad is None else grad.cpu().reshape(-1).tolist()]
        same = [(x is y, x.is_alias_of(y)) for y in tensors[:i]]
        found.append((x.dtype.name, tuple(x.shape), x.stride(), x.storage_offset(), x.requires_grad, grad is None, same, values))
    return found


def difference(found: list[Any], expected: list[Any], close: float) -> str:
    """What differs, or ""."""
    if len(found) != len(expected):
        return f"{len(found)} tensors, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a[:-1] != b[:-1]:
            return f"tensor {i}: {a[:-1]}, expected {b[:-1]}"
        for x, y in zip(chain(*a[-1]), chain(*b[-1]), strict=True):
            near = repr(x) == repr(y) or (bool(close) and math.isclose(x, y, rel_tol=close, abs_tol=close))
            if not near:
                return f"tensor {i}: {a[-1]}, expected {b[-1]}"
    return ""


def _maker(text: str) -> Any:
    """`make` of a drawn program."""
    scope: dict[str, Any] = {"__name__": "drawn"}
    exec(text, scope)
    return scope["make"]


class Outcome:
    """What calls of a drawn program gave.

    problem  what differs from the function, or ""
    ran      how many calls ran a graph
    """

    def __init__(self, seed: int, engine: str, device: str, close: float = 0.0) -> None:
        self.problem = ""
        self.ran = 0
        self.text = Drawn(seed).text
        make = _maker(self.text)
        ours, theirs = World(seed, device), World(seed, device)
        function = make(theirs, turnout)
        compiled: Any = turnout.compile(make(ours, turnout), engine=engine)
        before: tuple[list[Any], list[Any]] = [], []  # results of earlier calls: they stay as they are
        for i in range(CALLS * 2):
            if i % 2 == 0:
                ours.change()
                theirs.change()
            mine, others = ours.arguments(), theirs.arguments()
            expected, found = outcome(function, others, i), outcome(compiled, mine, i)
            if isinstance(found, str) or isinstance(expected, str):
                if found != expected:
                    self.problem = f"{found}, expected {expected}"
                return  # an operator that raises may leave writes behind, which a compiled call has not done yet
            self.problem = difference(
                facts([found, list(mine), ours.all(), before[0]]), facts([expected, list(others), theirs.all(), before[1]]), close
            )
            if self.problem:
                return
            for kept, new in zip(before, (found, expected), strict=True):
                kept[:] = [*kept[-1:], new]
        self.ran = sum(signature.calls for signature in compiler.signatures(compiled))


def outcome(function: Callable[..., Any], args: tuple[Any, ...], seed: int) -> Any:
    """The result, from a seed of the random numbers, or the text of the error: its class and first line."""
    turnout.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except compiler.CompileError:
            raise
        except Exception as error:  # noqa: BLE001 - what the program raises is part of the comparison
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"


class DrawnSizes:
    """The lines of a program for tensors of several sizes: it computes with them, branches on them, and writes its arguments."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(f"sizes {seed}")
        self.names = ["a", "b"]
        lines: list[str] = []
        for i in range(self.draw.randint(2, 7)):
            lines += self._line(i)
        kept = self.draw.sample(self.names, min(3, len(self.names)))
        self.text = (
            "def make(outside, t, device):\n    def program(a, b):\n"
            + "".join(f"        {line}\n" for line in lines)
            + f"        return {', '.join(kept)}, [{self.draw.choice(self.names)}]\n    return program\n"
        )

    def _line(self, i: int) -> list[str]:
        draw = self.draw
        x, y, new = draw.choice(self.names), draw.choice(self.names), f"x{i}"
        kind = draw.randrange(8)
        if kind == 0:
            return [f"{draw.choice(('a', 'b'))}.{draw.choice(('mul_(0.5)', 'add_(0.25)', 'tanh_()', 'uniform_()'))}"]
        if kind == 1:
            return [f"{draw.choice(('a', 'b'))}[0] = {x}.sum(0) / 8"]
        if kind == 2:
            size = draw.choice(("a.shape[0]", "a.shape[1]", "a.numel()", "a.shape[0] + a.shape[1]"))
            return [f"if {size} {draw.choice(('>', '<', '==', '%'))} {draw.randint(2, 6)}:", f"    {x} = {x} * 0.5"]
        self.names.append(new)
        value = draw.choice(
            (f"t.tanh({x} + {y})", f"{x} - {y} * 0.5", f"{x} * {x}.shape[0] / 4", f"({x} @ {y}.t()) @ {y} / {y}.shape[0]",
             f"{x} + {y}.sum(0, keepdim=True)", f"{x}.reshape(-1).reshape({x}.shape[0], -1)", f"{x} + outside.sum()",
             f"t.rand(a.shape[0], a.shape[1], device=device) - {x}", f"{x} + t.arange({x}.shape[1], device=device)",
             f"t.cat([{x}, {y}])[:a.shape[0]] + 0", f"t.nn.functional.dropout({x}, 0.5)", f"{x}.view(-1)[:1] + {y}",
             f"{x}.softmax(1)", f"t.zeros({x}.shape[0], 1, device=device) + {x}", f"t.tensor([0.5], device=device) * {x}")
        )  # fmt: skip
        return [f"{new} = {value}"]


class SizedOutcome:
    """What calls of a drawn program with several sizes gave, compiled with `dynamic=True`.

    problem  what differs from the function, or ""
    traced   how many sizes were served by a trace of other sizes
    """

    def __init__(self, seed: int, engine: str, device: str, close: float = 0.0) -> None:
        self.problem = ""
        self.traced = 0
        self.text = DrawnSizes(seed).text
        make = _maker(self.text)
        draw = Random(f"calls {seed}")
        outside = turnout.tensor([0.25, 0.5], device=device)
        function = make(outside, turnout, device)
        compiled: Any = turnout.compile(function, engine=engine, dynamic=True)
        for i in range(8):
            sizes = draw.randint(1 if i else 2, 7), draw.choice((3, 3, 4))
            values = [[[draw.randint(-4, 4) / 4 for _ in range(sizes[1])] for _ in range(sizes[0])] for _ in range(2)]
            mine, others = ([turnout.tensor(each, device=device) for each in values] for _ in range(2))
            expected, found = outcome(function, tuple(others), i), outcome(compiled, tuple(mine), i)
            if isinstance(found, str) or isinstance(expected, str):
                if found != expected:
                    self.problem = f"{sizes}: {found}, expected {expected}"
                return
            self.problem = difference(facts([found, mine]), facts([expected, others]), close)
            if self.problem:
                self.problem = f"{sizes}: {self.problem}"
                return
        traces = [signature.sizes for signature in compiler.signatures(compiled) if signature.sizes]
        self.traced = len(traces) - len(set(traces))
