"""Programs that write in place and into `out`, where operands and outputs are views of one memory or do not fit."""

from __future__ import annotations

import math
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

    def _number(self) -> str:
        return self.draw.choice(["2", "3", "0.5", "True", "-1"])

    def _step(self, number: int) -> str:
        draw = self.draw
        x = self._any()
        y = self._like(x)
        kinds = [(30, self._binary), (12, self._unary), (8, self._ternary), (14, self._reduction), (8, self._products)]
        kinds += [(14, self._elements), (8, self._joins), (6, self._places)]
        weights, makers = zip(*kinds, strict=True)
        return draw.choices(makers, weights)[0](x, y, number)

    def _binary(self, x: Var, y: Var, number: int) -> str:
        draw = self.draw
        name = draw.choice(BINARY + LOGIC)
        if name == "pow" and "complex64" in (x.dtype, y.dtype):
            name = "add"  # libraries differ in powers of complex zeros
        other = y.name if draw.random() < 0.8 else self._number()
        if draw.random() < 0.5 and name not in ("maximum", "fmin"):
            return f"{x.name}.{name}_({other})"
        return f"t.{name}({x.name}, {y.name}, out={self._out(x, number)})"

    def _unary(self, x: Var, y: Var, number: int) -> str:
        name = self.draw.choice(UNARY)
        if self.draw.random() < 0.5 or name == "relu":
            return f"{x.name}.{name}_()"
        return f"t.{name}({x.name}, out={self._out(x, number)})"

    def _ternary(self, x: Var, y: Var, number: int) -> str:
        z = self._like(x)
        out = self._out(x, number)
        return self.draw.choice(
            [
                f"{x.name}.addcmul_({y.name}, {z.name}, value=2)",
                f"t.addcmul({x.name}, {y.name}, {z.name}, out={out})",
                f"{x.name}.lerp_({y.name}, 0.5)",
                f"t.lerp({x.name}, {y.name}, {z.name}, out={out})",
                f"{x.name}.clamp_({y.name}, {z.name})",
                f"t.clamp({x.name}, 1, 3, out={out})",
                f"t.where({x.name} > 1, {y.name}, {z.name}, out={out})",
                f"{x.name}.masked_fill_({y.name} > 2, {self._number()})",
                f"{x.name}.add_({y.name}, alpha=2)",
                f"t.sub({x.name}, {y.name}, alpha=3, out={out})",
            ]
        )

    def _reduction(self, x: Var, y: Var, number: int) -> str:
        d = self.draw.randrange(max(len(x.shape), 1))
        out = self._out(Var("", x.shape[:d] + x.shape[d + 1 :], x.dtype), number)
        same, places = self._out(x, number), f"t.zeros([0], dtype=t.{self.draw.choice(['int64', 'int64', 'int32'])})"
        return self.draw.choice(
            [
                f"t.sum({x.name}, {d}, out={out})",
                f"t.mean({x.name}, {d}, out={out})",
                f"t.amax({x.name}, {d}, out={out})",
                f"t.argmin({x.name}, {d}, out={out})",
                f"t.any({x.name} > 1, {d}, out={out})",
                f"t.prod({x.name}, {d}, out={out})",
                f"t.max({x.name}, {d}, out=({out}, {places}))",
                f"t.cumsum({x.name}, {d}, out={same})",
                f"{x.name}.cumsum_({d})",
                f"{x.name}.cumprod_({d})",
                f"t.cummax({x.name}, {d}, out=({same}, {places}))",
                f"t.sort({x.name}, stable=True, dim={d}, out=({same}, {places}))",
                f"t.softmax({x.name}, {d}, out={same})",
                f"t.logsumexp({x.name}, {d}, out={out})",
                f"t.norm({x.name}, 2, {d}, out={out})",
            ]
        )

    def _products(self, x: Var, y: Var, number: int) -> str:
        out = self._out(Var("", x.shape[:1] + y.shape[-1:], x.dtype), number)
        return self.draw.choice(
            [
                f"t.mm({x.name}, {y.name}, out={out})",
                f"t.matmul({x.name}, {y.name}, out={out})",
                f"t.matmul({x.name}, {x.name}.transpose(-1, 0), out={out})",
                f"{x.name}.addmm_({y.name}, {self._any().name})",
                f"{x.name}.addmm_({x.name}, {x.name})",
                f"t.outer({x.name}, {y.name}, out={out})",
                f"t.mv({x.name}, {y.name}, out={out})",
                f"t.dot({x.name}, {y.name}, out={out})",
                f"t.kron({x.name}, {y.name}, out={out})",
            ]
        )

    def _elements(self, x: Var, y: Var, number: int) -> str:
        d = self.draw.randrange(max(len(x.shape), 1))
        out = self._out(x, number)
        return self.draw.choice(
            [
                f"{x.name}.copy_({y.name})",
                f"{x.name}.copy_({y.name})",
                f"{x.name}.fill_({self._number()})",
                f"{x.name}.fill_({self._any().name})",
                f"{x.name}.zero_()",
                f"{x.name}.tril_()",
                f"t.triu({x.name}, 1, out={out})",
                f"{x.name}.transpose_(0, -1)",
                f"{x.name}.squeeze_()",
                f"{x.name}.unsqueeze_({d})",
                f"{x.name}.fill_diagonal_(2)",
                f"t.flip({x.name}, [{d}]).copy_({y.name})",
                f"{x.name}[...] = {y.name}",
                f"{x.name} += {y.name}",
                f"{x.name} *= {self._number()}",
                f"{x.name}.resize_([2, 2]).fill_(1)" if self.draw.random() < 0.2 else f"{x.name}.neg_()",
                f"{x.name}.mul_({x.name})",
                f"t.diag({x.name}, out={out})",
                f"t.clone({x.name}).sub_({y.name})",
            ]
        )

    def _joins(self, x: Var, y: Var, number: int) -> str:
        d = self.draw.randrange(max(len(x.shape), 1))
        out = self._out(x, number)
        return self.draw.choice(
            [
                f"t.cat([{x.name}, {y.name}], {d}, out={out})",
                f"t.stack([{x.name}, {y.name}], {d}, out={out})",
                f"t.cat([{x.name}], {d}, out={x.name})",
                f"t.hstack([{x.name}, {y.name}], out={out})",
            ]
        )

    def _places(self, x: Var, y: Var, number: int) -> str:
        d = self.draw.randrange(max(len(x.shape), 1))
        out = self._out(x, number)
        index = f"t.tensor({self.draw.choice([[0], [0, 1], [1, 0]])})"
        return self.draw.choice(
            [
                f"{x.name}.index_add_({d}, {index}, {y.name})",
                f"{x.name}.index_copy_({d}, {index}, {y.name})",
                f"{x.name}.index_fill_({d}, {index}, {self._number()})",
                f"t.index_select({x.name}, {d}, {index}, out={out})",
                f"{x.name}.scatter_({d}, t.zeros({list(x.shape)}, dtype=t.int64), {self._number()})",
                f"{x.name}.scatter_add_({d}, t.zeros({list(x.shape)}, dtype=t.int64), {y.name})",
                f"t.gather({x.name}, {d}, t.zeros({list(x.shape)}, dtype=t.int64), out={out})",
                f"t.masked_select({x.name}, {y.name} > 1, out={out})",
                f"t.nonzero({x.name}, out=t.zeros([0], dtype=t.int64))",
                f"t.take({x.name}, {index}, out={out})",
                f"{x.name}.put_({index}, t.ones(2, dtype=t.{x.dtype}))",
                f"{x.name}.masked_scatter_({y.name} > 1, {x.name})",
            ]
        )
