"""Programs that write in place and into `out`, where operands and outputs are views of one memory or do not fit."""

from __future__ import annotations

import math
import re
from random import Random
from typing import NamedTuple

Shape = tuple[int, ...]

# fmt: off
BINARY = [
    "add", "sub", "mul", "div", "maximum", "fmin", "atan2", "pow", "remainder", "floor_divide", "fmod", "copysign", "hypot",
]
LOGIC = ["eq", "lt", "ge", "logical_and", "logical_xor", "bitwise_and", "bitwise_or"]
UNARY = [
    "neg", "abs", "exp", "sqrt", "ceil", "sign", "sin", "logical_not", "bitwise_not", "square", "reciprocal", "relu", "sigmoid",
    "round",
]
SHAPES: list[Shape] = [
    (3, 4), (4, 3), (2, 3, 4), (3,), (4,), (4, 4), (1, 4), (3, 1), (), (2, 2, 3), (0, 3), (6,),
]
NUMBERS = ["2", "3", "0.5", "True", "-1"]
# Weights and rows: `{x}` is a tensor, `{y}` and `{z}` are operands for it, `{any}` is any tensor, `{d}` a dim of `{x}`. `{out}`,
# `{less}`, `{product}` and `{places}` are outputs: like `{x}`, without its dim, of a product, of indices.
STEPS: list[tuple[float, list[str]]] = [
    (15, [f"{{x}}.{name}_({{other}})" for name in BINARY + LOGIC if name not in ("maximum", "fmin")]),
    (15, [f"t.{name}({{x}}, {{other}}, out={{out}})" for name in BINARY + LOGIC]),
    (6, [f"{{x}}.{name}_()" for name in UNARY]),
    (6, [f"t.{name}({{x}}, out={{out}})" for name in UNARY if name != "relu"]),
    (8, [
        "{x}.addcmul_({y}, {z}, value=2)", "t.addcmul({x}, {y}, {z}, out={out})", "{x}.lerp_({y}, 0.5)",
        "t.lerp({x}, {y}, {z}, out={out})", "{x}.clamp_({y}, {z})", "t.clamp({x}, 1, 3, out={out})",
        "t.where({x} > 1, {y}, {z}, out={out})", "{x}.masked_fill_({y} > 2, {number})", "{x}.add_({y}, alpha=2)",
        "t.sub({x}, {y}, alpha=3, out={out})",
    ]),
    (14, [
        "t.sum({x}, {d}, out={less})", "t.mean({x}, {d}, out={less})", "t.amax({x}, {d}, out={less})",
        "t.argmin({x}, {d}, out={less})", "t.any({x} > 1, {d}, out={less})", "t.prod({x}, {d}, out={less})",
        "t.max({x}, {d}, out=({less}, {places}))", "t.cumsum({x}, {d}, out={out})", "{x}.cumsum_({d})", "{x}.cumprod_({d})",
        "t.cummax({x}, {d}, out=({out}, {places}))", "t.sort({x}, stable=True, dim={d}, out=({out}, {places}))",
        "t.softmax({x}, {d}, out={out})", "t.logsumexp({x}, {d}, out={less})", "t.norm({x}, 2, {d}, out={less})",
    ]),
    (8, [
        "t.mm({x}, {y}, out={product})", "t.matmul({x}, {y}, out={product})",
        "t.matmul({x}, {x}.transpose(-1, 0), out={product})", "{x}.addmm_({y}, {any})", "{x}.addmm_({x}, {x})",
        "t.outer({x}, {y}, out={product})", "t.mv({x}, {y}, out={product})", "t.dot({x}, {y}, out={product})",
        "t.kron({x}, {y}, out={product})",
    ]),
    (14, [
        "{x}.copy_({y})", "{x}.copy_({y})", "{x}.fill_({number})", "{x}.fill_({any})", "{x}.zero_()", "{x}.tril_()",
        "t.triu({x}, 1, out={out})", "{x}.transpose_(0, -1)", "{x}.squeeze_()", "{x}.unsqueeze_({d})", "{x}.fill_diagonal_(2)",
        "t.flip({x}, [{d}]).copy_({y})", "{x}[...] = {y}", "{x} += {y}", "{x} *= {number}", "{x}.neg_()", "{x}.mul_({x})",
        "t.diag({x}, out={out})", "t.clone({x}).sub_({y})",
    ]),
    (0.15, ["{x}.resize_([2, 2]).fill_(1)"]),
    (8, [
        "t.cat([{x}, {y}], {d}, out={out})", "t.stack([{x}, {y}], {d}, out={out})", "t.cat([{x}], {d}, out={x})",
        "t.hstack([{x}, {y}], out={out})",
    ]),
    (6, [
        "{x}.index_add_({d}, {index}, {y})", "{x}.index_copy_({d}, {index}, {y})", "{x}.index_fill_({d}, {index}, {number})",
        "t.index_select({x}, {d}, {index}, out={out})", "{x}.scatter_({d}, {zeros}, {number})",
        "{x}.scatter_add_({d}, {zeros}, {y})", "t.gather({x}, {d}, {zeros}, out={out})",
        "t.masked_select({x}, {y} > 1, out={out})", "t.nonzero({x}, out=t.zeros([0], dtype=t.int64))",
        "t.take({x}, {index}, out={out})", "{x}.put_({index}, t.ones(2, dtype=t.{dtype}))",
        "{x}.masked_scatter_({y} > 1, {x})",
    ]),
]
# fmt: on
DTYPES = ["float32", "float32", "float32", "float64", "int64", "int64", "int32", "bool", "uint8", "complex64", "float16"]


class Var(NamedTuple):
    """A tensor: its name, shape and dtype, as far as they are known."""

    name: str
    shape: Shape
    dtype: str


class Program:
    """The lines of a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(f"writes {seed}")
        self.scope: list[Var] = []
        self.lines: list[str] = []
        for name in "ab":
            shape, dtype = self.draw.choice(SHAPES), self.draw.choice(DTYPES)
            self._root(name, shape, self.scope[0].dtype if self.scope and self.draw.random() < 0.6 else dtype)
        for i in range(self.draw.randint(1, 4)):
            self._view(f"v{i}")
        self._root("c", self.draw.choice(self.scope).shape, self.draw.choice([self.scope[0].dtype, "float32", "int64"]))
        for i in range(self.draw.randint(1, 4)):
            self.lines.append(self._step(i))

    def _root(self, name: str, shape: Shape, dtype: str) -> None:
        numbers = [self.draw.randint(0, 5) for _ in range(math.prod(shape))]
        self.scope.append(Var(name, shape, dtype))
        self.lines.append(f"{name} = t.tensor({numbers}, dtype=t.{dtype}).reshape({list(shape)})")

    def _view(self, name: str) -> None:
        draw = self.draw
        x = draw.choice(self.scope[:2] + self.scope)
        shape = x.shape
        kind = draw.random()
        if kind < 0.2 and shape:
            d = draw.randrange(len(shape))
            text, made = f"{x.name}.select({d}, 0)", shape[:d] + shape[d + 1 :]
            if not shape[d]:
                return
        elif kind < 0.45 and shape:
            d = draw.randrange(len(shape))
            start, step = draw.randint(0, 1), draw.choice([1, 1, 2])
            stop = draw.choice([shape[d], max(shape[d] - 1, 0)])
            cut = ", ".join([":"] * d + [f"{start}:{stop}:{step}"])
            text = f"{x.name}[{cut}]"
            made = (*shape[:d], len(range(start, stop, step)), *shape[d + 1 :])
        elif kind < 0.65 and len(shape) > 1:
            text, made = f"{x.name}.transpose(0, -1)", (shape[-1], *shape[1:-1], shape[0])
        elif kind < 0.75:
            text, made = f"{x.name}.expand({[2, *shape]})", (2, *shape)
        elif kind < 0.85:
            text, made = f"{x.name}.unsqueeze(0)", (1, *shape)
        elif kind < 0.92 and shape and 0 not in shape:
            text, made = f"{x.name}.flatten()[:2]", (2,)
        elif len(shape) == 1 and shape[0] >= 3:
            text, made = f"{x.name}.unfold(0, 2, 1)", (shape[0] - 1, 2)
        else:
            text, made = f"{x.name}[...]", shape
        self.scope.append(Var(name, made, x.dtype))
        self.lines.append(f"{name} = {text}")

    # ---- steps

    def _any(self) -> Var:
        return self.draw.choice(self.scope)

    def _like(self, x: Var) -> Var:
        """An operand for `x`: mostly one of its shape."""
        fits = [v for v in self.scope if v.shape == x.shape]
        near = [v for v in self.scope if v.shape == x.shape[len(x.shape) - len(v.shape) :]]
        kind = self.draw.random()
        found = fits if kind < 0.6 else near if kind < 0.8 else self.scope
        return self.draw.choice(found or self.scope)

    def _out(self, x: Var, number: int) -> str:
        """An output for a result like `x`."""
        kind = self.draw.random()
        if kind < 0.7:
            return self._like(x).name
        name = f"o{number}"
        dtype = self.draw.choice([x.dtype, x.dtype, *DTYPES])
        shape = self.draw.choice([x.shape, (0,), (2, 2), ()])
        self.lines.append(f"{name} = t.zeros({list(shape)}, dtype=t.{dtype})")
        return name

    def _step(self, number: int) -> str:
        draw = self.draw
        x = self._any()
        y = self._like(x)
        [(_, rows)] = draw.choices(STEPS, [weight for weight, _ in STEPS])
        row = draw.choice(rows)
        if "complex64" in (x.dtype, y.dtype):
            row = row.replace("pow", "add")  # libraries differ in powers of complex zeros
        d = draw.randrange(max(len(x.shape), 1))
        words = {
            "x": lambda: x.name,
            "y": lambda: y.name,
            "z": lambda: self._like(x).name,
            "any": lambda: self._any().name,
            "d": lambda: str(d),
            "number": lambda: draw.choice(NUMBERS),
            "other": lambda: y.name if draw.random() < 0.8 else draw.choice(NUMBERS),
            "out": lambda: self._out(x, number),
            "less": lambda: self._out(Var("", x.shape[:d] + x.shape[d + 1 :], x.dtype), number),
            "product": lambda: self._out(Var("", x.shape[:1] + y.shape[-1:], x.dtype), number),
            "places": lambda: f"t.zeros([0], dtype=t.{draw.choice(['int64', 'int64', 'int32'])})",
            "index": lambda: f"t.tensor({draw.choice([[0], [0, 1], [1, 0]])})",
            "zeros": lambda: f"t.zeros({list(x.shape)}, dtype=t.int64)",
            "dtype": lambda: x.dtype,
        }
        return re.sub(r"\{(\w+)\}", lambda found: words[found[1]](), row)
