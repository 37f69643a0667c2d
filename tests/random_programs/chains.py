"""Chains of operators and views, for comparing a device with `cpu`: each step makes a tensor from earlier ones.

No step converts negative or infinite numbers to integers, which is undefined, or writes into elements that overlap.
"""

from __future__ import annotations

import math
from random import Random
from typing import NamedTuple

Shape = tuple[int, ...]

# fmt: off
UNARY = [
    "neg", "abs", "sin", "cos", "tanh", "floor", "ceil", "sign", "square", "relu", "sigmoid", "exp2", "isnan", "isfinite",
    "logical_not", "erf", "log1p", "trunc", "round", "rsqrt", "atan", "sinh", "softplus", "gelu", "silu", "expm1",
]
BINARY = [
    "add", "sub", "mul", "div", "maximum", "minimum", "atan2", "fmod", "remainder", "floor_divide", "eq", "lt", "ge", "ne",
    "logical_and", "logical_or", "hypot", "heaviside", "fmax", "logaddexp", "bitwise_xor", "bitwise_and",
]
SHAPES: list[Shape] = [(3, 4), (4, 3), (2, 3, 4), (3,), (4,), (4, 4), (1, 4), (3, 1), (), (2, 2, 3), (0, 3), (2, 1, 2, 2)]
DTYPES = ["float32", "float32", "float32", "float32", "float64", "int64", "int32", "bool", "uint8", "float16", "int16"]
# fmt: on


class Var(NamedTuple):
    """A tensor and its shape, as far as that is known."""

    name: str
    shape: Shape


class Program:
    """The lines of a seed. The tensors are made by `t.tensor`, on the default device."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Random(f"chains {seed}")
        self.scope: list[Var] = []
        self.lines: list[str] = []
        for name in "ab":
            shape = draw.choice(SHAPES)
            dtype = draw.choice(DTYPES)
            whole = not dtype.startswith("float")
            numbers = [draw.randint(0, 4) if whole else round(draw.uniform(-2, 2), 2) for _ in range(math.prod(shape))]
            self.lines.append(f"{name} = t.tensor({numbers}, dtype=t.{dtype}).reshape({list(shape)})")
            self.scope.append(Var(name, shape))
        for i in range(draw.randint(3, 7)):
            name = f"r{i}"
            text, shape = self._step()
            if shape is None:
                self.lines.append(text)
            else:
                self.lines.append(f"{name} = {text}")
                self.scope.append(Var(name, shape))

    def _step(self) -> tuple[str, Shape | None]:
        draw = self.draw
        x = draw.choice(self.scope[-3:] + self.scope)
        kinds = [(25, self._pointwise), (30, self._view), (15, self._reduction), (10, self._moved), (10, self._written)]
        weights, makers = zip(*kinds, strict=True)
        return draw.choices(makers, weights)[0](x)

    def _like(self, x: Var) -> Var:
        fits = [v for v in self.scope if v.shape == x.shape]
        near = [v for v in self.scope if v.shape and v.shape == x.shape[len(x.shape) - len(v.shape) :]]
        return self.draw.choice(fits + near + fits + [v for v in self.scope if v.shape == ()]) if fits else x

    def _pointwise(self, x: Var) -> tuple[str, Shape]:
        draw = self.draw
        y, z = self._like(x), self._like(x)
        number = draw.choice(["2", "0.5", "-1", "3", "True"])
        kind = draw.random()
        if kind < 0.35:
            name = draw.choice(UNARY)
            home = "t.nn.functional" if name in ("softplus", "gelu", "silu") else "t"
            return f"{home}.{name}({x.name})", x.shape
        if kind < 0.7:
            return f"t.{draw.choice(BINARY)}({x.name}, {y.name})", x.shape
        # fmt: off
        return draw.choice([
            f"{x.name} + {number}", f"{x.name} * {number}", f"{number} - {x.name}", f"{x.name} / 4", f"{x.name} ** 2",
            f"t.where({x.name} > 1, {y.name}, {z.name})", f"t.where({x.name} > 0, {x.name}, {number})",
            f"t.clamp({x.name}, 0, 1)", f"t.lerp({x.name}, {y.name}, 0.25)", f"t.addcmul({x.name}, {y.name}, {z.name})",
            f"{x.name}.to(t.{draw.choice(['float32', 'float64', 'float16', 'bool'])})",
            f"({x.name} > 1).to(t.{draw.choice(DTYPES)})", f"{x.name}.masked_fill({y.name} > 1, {number})", f"{x.name}.clone()",
            f"{x.name} == {y.name}", f"~({x.name} > 0)", f"t.nan_to_num({x.name} / {y.name})",
        ]), x.shape
        # fmt: on

    def _view(self, x: Var) -> tuple[str, Shape]:
        draw, shape = self.draw, x.shape
        if not shape:
            return draw.choice([(f"{x.name}.unsqueeze(0)", (1,)), (f"{x.name}.expand(3)", (3,))])
        d = draw.randrange(len(shape))
        n = shape[d]
        start, step = draw.randint(0, 1), draw.choice([1, 1, 2])
        cut = ", ".join([":"] * d + [f"{start}::{step}"])
        # fmt: off
        return draw.choice([
            (f"{x.name}.transpose(0, {d})", (shape[d], *shape[1:d], shape[0], *shape[d + 1 :]) if d else shape),
            (f"{x.name}[{cut}]", (*shape[:d], len(range(start, n, step)), *shape[d + 1 :])),
            (f"{x.name}.unsqueeze({d})", (*shape[:d], 1, *shape[d:])),
            (f"{x.name}.expand({[2, *shape]})", (2, *shape)),
            (f"{x.name}.reshape(-1)", (math.prod(shape),)),
            (f"{x.name}.flip([{d}])", shape),
            (f"{x.name}.select({d}, -1)", shape[:d] + shape[d + 1 :]) if n else (f"{x.name}[...]", shape),
            (f"{x.name}.unfold({d}, 2, 1) + 0", (*shape[:d], n - 1, *shape[d + 1 :], 2)) if n > 1 else (f"{x.name}.mT", shape),
            (f"{x.name}.roll(1, {d})", shape),
            (f"{x.name}.contiguous()", shape),
            (f"{x.name}.diagonal()", (min(shape[:2]), )) if len(shape) == 2 else (f"{x.name}.squeeze({d})", shape),
        ])
        # fmt: on

    def _reduction(self, x: Var) -> tuple[str, Shape]:
        draw, shape = self.draw, x.shape
        d = draw.randrange(max(len(shape), 1))
        less = shape[:d] + shape[d + 1 :]
        name = draw.choice(["sum", "mean", "amax", "amin", "prod", "any", "all", "argmax", "argmin", "logsumexp", "var", "std"])
        keep = draw.random() < 0.3
        if draw.random() < 0.25 and name not in ("logsumexp",):
            return f"{x.name}.{name}()", ()
        if draw.random() < 0.3:
            which = draw.choice(
                ["cumsum({})", "cumprod({})", "softmax({})", "log_softmax({})", "sort({}).values", "argsort(dim={}, stable=True)"]
            )
            return f"{x.name}.{which.format(d)}", shape
        if name in ("var", "std"):
            return f"{x.name}.{name}({d}, correction=0)", less
        kept = (*shape[:d], 1, *shape[d + 1 :])
        return (f"{x.name}.{name}({d}, True)", kept) if keep and shape else (f"{x.name}.{name}({d})", less)

    def _moved(self, x: Var) -> tuple[str, Shape]:
        draw, shape = self.draw, x.shape
        y = self._like(x)
        d = draw.randrange(max(len(shape), 1))
        n = shape[d] if shape else 1
        double = (*shape[:d], 2 * n, *shape[d + 1 :])
        places = [draw.randrange(-max(n, 1), max(n, 1)) for _ in range(2)]
        picked = (*shape[:d], 2, *shape[d + 1 :])
        return draw.choice(
            [
                (f"t.cat([{x.name}, {y.name}], {d})", double),
                (f"t.stack([{x.name}, {y.name}], {d})", (*shape[:d], 2, *shape[d:])),
                (f"{x.name}[{', '.join([':'] * d + [f't.tensor({places})'])}]", picked),
                (f"{x.name}[{x.name} > 0]", (2,)),
                (f"{x.name}.index_select({d}, t.tensor({[abs(p) % max(n, 1) for p in places]}))", picked),
                (f"t.tril({x.name})", shape),
                (f"t.nn.functional.pad({x.name}, (1, 1))", (*shape[:-1], shape[-1] + 2) if shape else ()),
                (f"t.matmul({x.name}, {y.name}.mT)", shape),
                (f"{x.name}.repeat({[2] * len(shape)})", tuple([2 * k for k in shape])),
                (f"{x.name}.gather({d}, t.zeros({list(shape)}, dtype=t.int64))", shape),
            ]
        )

    def _written(self, x: Var) -> tuple[str, None]:
        draw = self.draw
        y = self._like(x)
        return draw.choice(
            [
                f"{x.name}.add_({y.name})",
                f"{x.name}.mul_(2)",
                f"{x.name}.copy_({y.name} > 0)",
                f"{x.name}[{x.name} > 1] = 0",
                f"{x.name}[..., :1] = 3",
                f"{x.name}.zero_()",
                f"{x.name}.masked_fill_({y.name} > 0, 2)",
                f"{x.name}.transpose(0, -1).sub_(1)",
                f"t.add({x.name}, {y.name}, out={x.name})",
                f"{x.name}.clamp_(0, 2)",
            ]
        ), None
