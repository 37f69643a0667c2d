"""The functions of random programs: those whose gradient is linear first, for they save nothing that a write could spoil."""

from __future__ import annotations

from autograd_programs.draw import Draw, Entry, Made, Shape, Var, factored, put


def _same(*texts: str) -> Entry:
    """A function that keeps the shape; {y} is a tensor that broadcasts to it, {n} a number."""

    def make(d: Draw, x: Var) -> Made:
        text = d.choice(texts)
        y = d.operand(x.shape, x.dtype) if "{y}" in text else ""
        return Made(text.format(x=x, y=y, n=d.number(), f=d.factor()), x.shape)

    return make


def _reduce(*names: str) -> Entry:
    def make(d: Draw, x: Var) -> Made:
        name = d.choice(names)
        if not x.ndim or d.chance(0.2):
            return Made(f"{x}.{name}()", ())
        dim, keep = d.dim(x), d.chance(0.3)
        return Made(f"{x}.{name}({dim}, keepdim={keep})", put(x.shape, dim, *[1] * keep))

    return make


def _on_dim(text: str) -> Entry:
    return lambda d, x: Made(text.format(x=x, dim=d.dim(x)), x.shape) if x.ndim else None


def _ramp(x: Var) -> str:
    """The tensor without equal elements, so that orders are certain."""
    return f"({x} + t.arange({x.numel}).view({x.shape}) * 0.4142)"


def _largest(d: Draw, x: Var) -> Made | None:
    if not x.ndim or not x.numel:
        return None
    dim = d.dim(x)
    n = x.shape[dim]
    k = d.randint(1, n)
    text, shape = d.choice(
        [
            (f"max({dim})[0]", put(x.shape, dim)),
            (f"min({dim}, keepdim=True).values", put(x.shape, dim, 1)),
            (f"sort({dim})[0]", x.shape),
            (f"topk({k}, {dim})[0]", put(x.shape, dim, k)),
            (f"amax({dim})", put(x.shape, dim)),
            (f"median({dim}).values", put(x.shape, dim)),
            (f"cummax({dim})[0]", x.shape),
            ("max()", ()),
        ]
    )
    return Made(f"{_ramp(x)}.{text}", shape)


def _matmul(d: Draw, x: Var) -> Made | None:
    if not 1 <= x.ndim <= 2 or not x.numel:
        return None
    y = d.operand((x.shape[-1], 2), x.dtype, exact=True)
    return Made(f"{x} @ {y}", (*x.shape[:-1], 2))


def _cat(d: Draw, x: Var) -> Made | None:
    if not x.ndim:
        return None
    dim = d.randrange(x.ndim)
    y = d.operand(x.shape, x.dtype, exact=True)
    return Made(f"t.cat([{x}, {y}], {dim})", put(x.shape, dim, 2 * x.shape[dim]))


def _stack(d: Draw, x: Var) -> Made | None:
    if x.ndim > 2:
        return None
    return Made(f"t.stack([{x}, {d.operand(x.shape, x.dtype, exact=True)}])", (2, *x.shape))


def _where(d: Draw, x: Var) -> Made:
    return Made(f"t.where({x} > 0.0713, {x}, {d.operand(x.shape, x.dtype)})", x.shape)


def _advanced(d: Draw, x: Var) -> Made | None:
    if not x.ndim or not x.numel:
        return None
    n = x.shape[0]
    picked = d.indices(n, d.randint(1, 3))
    kinds: list[tuple[str, Shape]] = [
        (f"[{picked}]", put(x.shape, 0, len(picked))),
        (f".index_select(0, t.tensor({picked}))", put(x.shape, 0, len(picked))),
    ]
    if x.ndim > 1:
        others = d.indices(x.shape[1], len(picked))
        kinds.append((f"[{picked}, {others}]", (len(picked), *x.shape[2:])))
        kinds.append((f"[:, {others}]", put(x.shape, 1, len(others))))
    text, shape = d.choice(kinds)
    return Made(f"{x}{text}", shape)


def _gather(d: Draw, x: Var) -> Made | None:
    if not x.ndim or not x.numel:
        return None
    dim, count = d.randrange(x.ndim), d.randint(1, 3)
    shape = put(x.shape, dim, count)
    index = d.indices(x.shape[dim], count)
    # A clone: PyTorch keeps it, for its shape alone, and does not like it to be written.
    return Made(f"{x}.clone().gather({dim}, t.tensor({index}).view({put((1,) * x.ndim, dim, count)}).expand({shape}))", shape)


def _repeat(d: Draw, x: Var) -> Made | None:
    return Made(f"{x}.repeat(2{', 1' * (x.ndim - 1)})", (2 * x.shape[0], *x.shape[1:])) if 0 < x.ndim < 3 else None


def _flip(d: Draw, x: Var) -> Made | None:
    if not x.ndim:
        return None
    dim = d.dim(x)
    return Made(f"{x}.{d.choice([f'flip({dim})', f'roll(1, {dim})'])}", x.shape)


def _convert(d: Draw, x: Var) -> Made:
    dtype = d.choice(["float64", "float64", "float32"])
    return Made(f"{x}.to(t.{dtype})", x.shape, dtype)


def _reshaped_sum(d: Draw, x: Var) -> Made | None:
    if not x.numel:
        return None
    shape = factored(d, x.numel)
    return Made(f"{x}.reshape({shape}).sum(0)", shape[1:])


LINEAR: dict[str, Entry] = {
    "scale": _same("{x} * {f}", "{x} + {n}", "{n} - {x}", "-{x}", "{f} * {x}"),
    "add": _same("{x} + {y}", "{x} - {y}", "t.add({x}, {y}, alpha=2)", "{y} - {x}"),
    "clone": _same("{x}.clone()", "{x}.contiguous()", "{x}.clone()"),
    "sum": _reduce("sum", "mean"),
    "cat": _cat,
    "stack": _stack,
    "where": _where,
    "advanced": _advanced,
    "gather": _gather,
    "repeat": _repeat,
    "flip": _flip,
    "cumsum": _on_dim("{x}.cumsum({dim})"),
    "convert": _convert,
    "largest": _largest,
    "reshaped sum": _reshaped_sum,
    "triu": lambda d, x: Made(f"{x}.triu()", x.shape) if x.ndim >= 2 else None,
    "constant": _same("t.zeros_like({x})", "t.ones_like({x})", "({x} > 0.1713).to({x}.dtype)"),
}

SAVING: dict[str, Entry] = {
    "mul": _same("{x} * {y}", "{x} * {y}", "{x} * {x}"),
    "div": _same("{x} / (({y}).cos() + 2.5)"),
    "sin": _same("{x}.sin()", "{x}.cos()"),
    "exp": _same("({x} * {f}).tanh().exp()", "{x}.tanh()", "{x}.sigmoid()"),
    "pow": _same("{x}.square()", "{x} ** 2", "{x}.abs()"),
    "clamp": _same("{x}.clamp(-0.5117, 0.5117)", "{x}.relu()"),
    "matmul": _matmul,
    "softmax": _on_dim("{x}.softmax({dim})"),
    "logsumexp": _on_dim("{x}.log_softmax({dim})"),
    "addcmul": _same("t.addcmul({x}, {y}, {y})", "t.lerp({x}, {y}, 0.25)"),
    "var": lambda d, x: Made(f"{x}.var(0)", x.shape[1:]) if x.ndim and x.shape[0] > 1 else None,
}

# For tensors of numbers that have an order, or are real.
REAL = {"where", "largest", "clamp", "softmax", "logsumexp", "constant", "convert", "var", "addcmul"}
