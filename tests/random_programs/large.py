"""Chains of steps over arrays of up to 200,000 elements, of sizes around those from which devices work in loops, lines and pieces.

What later steps take is exact on every device: multiples of a quarter, kept small, and sums of rounded numbers. So values that jump,
such as places of extremes, agree in each element. What is inexact, or has a shape that only the values tell, is the end of its chain.
"""

# ruff: noqa: E501 - rows of tables

from __future__ import annotations

import math
from random import Random

from random_programs.chains import Shape, Var

LARGEST = 200_000
COUNTS = (1, 7, 64, 1000, 4095, 4097, 16_384, 65_535, 65_536, 65_537, 70_001, 131_072, 131_073, LARGEST)
DTYPES = ("float32", "float32", "float32", "float64", "float16", "int64", "int32", "int16", "uint8", "bool")

# `{x}` and `{y}` are tensors that broadcast to the shape of `{x}`, `{d}` is a dim.
# fmt: off
EXACT = (
    "t.clamp({x} + {y}, -64, 64)", "t.clamp({x} * {y}, -64, 64)", "{x} - {y}", "-{x}", "{x}.abs()", "t.floor({x})", "{x}.round()", "{x}.sign()",
    "t.relu({x})", "t.maximum({x}, {y})", "t.fmin({x}, {y})", "t.where({x} > 1, {y}, {x})", "{x}.masked_fill({y} > 1, 2)", "{x} > {y}", "{x} == {y}",
    "~({x} > 0)", "t.logical_xor({x}, {y})", "{x} // 3", "{x} % 3", "t.fmod({x}, 3)", "{x} // ({y}.abs() + 1)", "t.remainder({x}, {y}.abs() + 1)",
    "{x}.abs().to(t.int64)", "{x}.clamp(0, 64).to(t.uint8)", "{x}.to(t.float32)", "{x}.to(t.float64)", "{x}.flip([{d}])", "{x}.roll(3, {d})",
    "t.tril({x})", "{x}.contiguous()", "{x}.clone()", "{x}.sort({d}).values", "{x}.argsort(dim={d}, stable=True)", "{x}.cummax({d}).values",
    "{x}.clamp(-8, 8).round().cumsum({d})", "{x}.sort({d}, descending=True, stable=True).indices", "{x}.gather({d}, {x}.argsort(dim={d}, stable=True))",
)
REDUCED = ("{x}.clamp(-8, 8).round().sum({d})", "{x}.amax({d})", "{x}.amin({d})", "{x}.argmax({d})", "{x}.argmin({d})", "{x}.any({d})", "{x}.all({d})", "t.count_nonzero({x}, {d})")
LAST = (
    "t.sin({x}.clamp(-9, 9))", "t.exp2({x}.clamp(-2, 2))", "t.tanh({x})", "t.sqrt({x}.abs())", "t.log1p({x}.abs())", "t.erf({x})", "t.atan2({x}, {y})",
    "t.nn.functional.gelu({x}.clamp(-3, 3))", "t.nn.functional.softplus({x})", "{x} / ({y}.abs() + 1)", "{x}.clamp(-2, 2) ** 3", "t.lerp({x}, {y}, 0.25)",
    "t.addcmul({x}, {y}, {x})", "{x}.clamp(-2, 2).mean({d})", "{x}.clamp(-2, 2).log_softmax({d})", "{x}.clamp(-2, 2).double().var({d})",
    "t.nonzero({x})", "t.argwhere({x} > 1)", "{x}[{x} > 0]", "t.masked_select({x}, {y} > 0)", "t.unique({x})", "t.cat([{x}, {x}], {d})",
    "t.nn.functional.pad({x}, (1, 1))", "t.stack([{x}, {x}], {d})", "t.clamp({x}, -2, 2).round().sum()", "{x}.argmax()", "{x}.amin()", "t.count_nonzero({x})",
)
WRITTEN = (
    "{x}.add_(1)", "{x}.mul_({x} > 0)", "{x}[{x} > 1] = 0", "{x}[1:] = {x}[:-1]", "{x}.masked_fill_({y} > 0, 2)", "{x}.transpose(0, -1).sub_(1)",
    "t.maximum({x}, {y}, out={x})", "{x}.clamp_(0, 2)", "{x}.index_fill_({d}, t.tensor([0, -1]), 3)", "{x}[..., :1] = 3", "{x}.copy_({x}.flip([{d}]))",
)
# fmt: on


class Program:
    """The lines of a seed. The tensors are made by `t.arange`, on the default device."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Random(f"large {seed}")
        self.scope: list[Var] = []
        self.lines: list[str] = []
        for name in "ab":
            shape, dtype = self._shape(), draw.choice(DTYPES)
            numbers = f"t.arange({math.prod(shape)}) * {draw.choice((7, 31, 101))} % {draw.choice((3, 5, 17, 1009))}"
            signed = f"(({numbers} - 8) / 4).clamp(-64, 64)" if dtype.startswith("float") else f"({numbers} % 61)"
            self._add(f"{signed}.to(t.{dtype}).reshape({list(shape)})", shape, name)
        for _ in range(draw.randint(2, 6)):
            x = draw.choice(self.scope[-2:] + self.scope)
            d = draw.randrange(max(len(x.shape), 1))
            alike = [v.name for v in self.scope if v.shape == x.shape] + [f"{x.name}[:1]", f"{x.name}[..., :1]"]
            (table, change), kind = self._kind(x.shape, d), draw.random()
            if kind < 0.25:
                table, change = self._views(x.shape, d)
            text = draw.choice(table).format(x=x.name, y=draw.choice(alike), d=d)
            if table is WRITTEN:
                self.lines.append(text)
            elif table is LAST:
                self.lines.append(f"e{len(self.lines)} = {text}")
            else:
                self._add(text, change)

    def _add(self, text: str, shape: Shape, name: str = "") -> None:
        self.scope.append(Var(name or f"r{len(self.lines)}", shape))
        self.lines.append(f"{self.scope[-1].name} = {text}")

    def _shape(self) -> Shape:
        """A shape of at most LARGEST elements: one of COUNTS, whole or beside other dims."""
        draw = self.draw
        shape = [draw.choice(COUNTS)]
        while draw.random() < 0.5 and len(shape) < 4:
            beside = draw.choice((1, 2, 3, 5, 30, 257))
            shape[0] = min(shape[0], LARGEST // (math.prod(shape[1:]) * beside)) or 1
            shape.insert(draw.randrange(1, len(shape) + 1), beside)
        draw.shuffle(shape)
        return tuple(shape)

    def _kind(self, shape: Shape, d: int) -> tuple[tuple[str, ...], Shape]:
        table = self.draw.choices((EXACT, REDUCED, LAST, WRITTEN), (40, 15, 30, 15))[0]
        return table, shape[:d] + shape[d + 1 :] if table is REDUCED else shape

    def _views(self, shape: Shape, d: int) -> tuple[tuple[str, ...], Shape]:
        """One view of a tensor, and its shape."""
        if not shape:
            return ("{x}.unsqueeze(0)",), (1,)
        start, step = self.draw.randint(0, 1), self.draw.choice((1, 1, 2))
        cut = ", ".join([":"] * d + [f"{start}::{step}"])
        turned = (shape[d], *shape[1:d], shape[0], *shape[d + 1 :]) if d else shape
        return self.draw.choice((
            (("{x}.transpose(0, {d})",), turned),
            ((f"{{x}}[{cut}]",), (*shape[:d], len(range(start, shape[d], step)), *shape[d + 1 :])),
            (("{x}.reshape(-1)",), (math.prod(shape),)),
            (("{x}.unsqueeze({d})",), (*shape[:d], 1, *shape[d:])),
            (("{x}.select({d}, -1)",), shape[:d] + shape[d + 1 :]),
        ))  # fmt: skip
