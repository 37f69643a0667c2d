"""The in-place operators of random programs: those that write, and those that turn a tensor into another view of its memory.

Second operands come from `Draw.operand`, which fits what it finds to the target's shape. Where values are compared with a
threshold, it is a number that no write leaves behind.
"""

from __future__ import annotations

from autograd_programs.draw import Draw, Shape, Var, Write, basic_index, put


def _simple(text: str) -> Write:
    return lambda d, x: text.format(x=x)


def _with_number(text: str) -> Write:
    return lambda d, x: text.format(x=x, n=d.number(), f=d.factor())


def _with_tensor(*texts: str) -> Write:
    return lambda d, x: d.choice(texts).format(x=x, y=d.operand(x.shape, x.dtype))


def _with_two(text: str) -> Write:
    return lambda d, x: text.format(x=x, y=d.operand(x.shape, x.dtype), z=d.operand(x.shape, x.dtype))


def _named(*names: str) -> Write:
    return lambda d, x: f"{x}.{d.choice(names)}()"


def _put(d: Draw, x: Var) -> str | None:
    if not x.numel:
        return None
    picked = d.indices(x.numel, d.randint(1, x.numel), repeat=False)
    value = d.operand((len(picked),), x.dtype, exact=True)
    return f"{x}.put_(t.tensor({picked}), {value}.clone(), accumulate={d.chance(0.5)})"


def _clamp(d: Draw, x: Var) -> str:
    low = round(d.uniform(-0.9, 0.3), 2) + 0.0007
    texts = [f"clamp_({low}, {low + 0.5:.4f})", f"clamp_({low})", f"clamp_(max={low})", f"clamp_min_({low})"]
    return f"{x}.{d.choice(texts)}"


def _masked_fill(d: Draw, x: Var) -> str:
    value = d.number() if d.chance(0.6) else d.operand((), x.dtype)
    return f"{x}.masked_fill_({x} > 0.2113, {value})"


def _masked_scatter(d: Draw, x: Var) -> str:
    return f"{x}.masked_scatter_({x} > 0.2113, {d.operand(x.shape, x.dtype, exact=True)}.clone())"


def _set(d: Draw, x: Var) -> str:
    index, shape = basic_index(d, x)
    value = d.factor() if d.chance(0.3) else d.operand(shape, x.dtype)
    # PyTorch takes x for a leaf after a write to all of it by an index, until somebody asks.
    sign = "=" if not set(index) - set("., :") else d.choice(["=", "=", "+=", "*="])
    return f"{x}[{index}] {sign} {value}"


def _set_advanced(d: Draw, x: Var) -> str | None:
    if not x.ndim or not x.numel:
        return None
    n = x.shape[0]
    picked = d.indices(n, d.randint(1, n), repeat=False)
    index, shape = f"[{', '.join(map(str, picked))}]", put(x.shape, 0, len(picked))
    if x.ndim > 1 and d.chance(0.5):
        last = d.randrange(x.shape[-1])
        index, shape = f"{index}, ..., {last}", shape[:-1]
    elif d.chance(0.3):
        return f"{x}[{x} < 0.1719] = {d.number()}"
    value = d.factor() if d.chance(0.3) else d.operand(shape, x.dtype)
    return f"{x}[{index}] {d.choice(['=', '=', '*='])} {value}"


def _index_put(d: Draw, x: Var) -> str | None:
    if not x.ndim or not x.numel:
        return None
    add = d.chance(0.5)
    picked = d.indices(x.shape[0], d.randint(1, x.shape[0]), repeat=add)
    value = d.operand(put(x.shape, 0, len(picked)), x.dtype)
    return f"{x}.index_put_((t.tensor({picked}),), {value}, accumulate={add})"


def _by_index(name: str, repeat: bool = False) -> Write:
    def write(d: Draw, x: Var) -> str | None:
        if not x.ndim or not x.numel:
            return None
        dim = d.dim(x)
        picked = d.indices(x.shape[dim], d.randint(1, x.shape[dim]), repeat)
        if name == "index_fill_":
            value = d.number() if d.chance(0.5) or x.dtype != "float64" else d.operand((), x.dtype)
        else:
            # A clone: PyTorch keeps it, for its shape alone, and does not like it to be written.
            value = d.operand(put(x.shape, dim, len(picked)), x.dtype, exact=True) + ".clone()"
        return f"{x}.{name}({dim}, t.tensor({picked}), {value})"

    return write


def _scatter(d: Draw, x: Var) -> str | None:
    if not x.ndim or not x.numel:
        return None
    dim = d.randrange(x.ndim)
    n = x.shape[dim]
    add = d.chance(0.4)
    rows = d.randint(1, n)
    shape = put(x.shape, dim, rows)
    order = d.indices(n, rows, repeat=add)
    index = f"t.tensor({order}).view({put((1,) * x.ndim, dim, rows)}).expand({shape})"
    if not add and d.chance(0.4):
        return f"{x}.scatter_({dim}, {index}, {d.number()})"
    return f"{x}.{'scatter_add_' if add else 'scatter_'}({dim}, {index}, {d.operand(shape, x.dtype, exact=True)})"


def _lerp(d: Draw, x: Var) -> str | None:
    y, z = (d.operand(x.shape, x.dtype, exact=True) for _ in range(2))
    # PyTorch keeps the weight for gradients of the others even where they need none, and refuses its own once it was written.
    if len(d.used) == 3 and d.used[2].tracked and not (x.tracked or d.used[1].tracked):
        return None
    return f"{x}.lerp_({y}, {z})"


def _addmm(d: Draw, x: Var) -> str | None:
    if x.ndim != 2:
        return None
    n, m = x.shape
    y, z = (d.operand(shape, x.dtype, exact=True) for shape in ((n, 2), (2, m)))
    return f"{x}.addmm_({y}.clone(), {z}.clone(), beta=0.5)"


def _triangle(d: Draw, x: Var) -> str | None:
    return f"{x}.{d.choice(['triu_', 'tril_'])}({d.choice([-1, 0, 1])})" if x.ndim >= 2 else None


# Gradients of these need nothing that a later write would spoil.
LINEAR: dict[str, Write] = {
    "add_": _with_tensor("{x}.add_({y})", "{x} += {y}", "{x}.add_({y}, alpha=0.5)"),
    "sub_": _with_tensor("{x}.sub_({y})", "{x} -= {y}"),
    "copy_": _with_tensor("{x}.copy_({y})"),
    "zero_": _simple("{x}.zero_()"),
    "fill_": _with_number("{x}.fill_({n})"),
    "fill_ with a tensor": lambda d, x: f"{x}.fill_({d.operand((), x.dtype, exact=True)})",
    "scale_": _with_number("{x}.mul_({f})"),
    "shift_": _with_number("{x} += {n}"),
    "halve_": lambda d, x: f"{x}.div_({'t.tensor(1.75)' if d.frees else '1.75'})",
    "neg_": _simple("{x}.neg_()"),
    "set": _set,
    "set again": _set,
    "set advanced": _set_advanced,
    "index_put_": _index_put,
    "index_add_": _by_index("index_add_", repeat=True),
    "index_copy_": _by_index("index_copy_"),
    "index_fill_": _by_index("index_fill_"),
    "scatter_": _scatter,
    "masked_fill_": _masked_fill,
    "masked_scatter_": _masked_scatter,
    "triangle": _triangle,
    "cumsum_": lambda d, x: f"{x}.cumsum_({d.dim(x)})" if x.ndim else None,
    "put_": _put,
    "steps": _named("floor_", "trunc_", "round_", "sign_", "ceil_", "frac_"),
    "compare_": _simple("{x}.gt_(0.3117)"),
}

SAVING: dict[str, Write] = {
    "mul_": _with_tensor("{x}.mul_({y})", "{x} *= {y}"),
    "div_": _with_tensor("{x}.div_(({y}).cos() + 2.5)"),
    "sin_": _simple("{x}.sin_()"),
    "cos_": _simple("{x}.cos_()"),
    "exp_": _simple("{x}.clamp_(-2.0007, 1.0003).exp_()"),
    "curves": _named("tanh_", "sigmoid_", "atan_", "sinh_"),
    "curves of reals": _named("relu_", "erf_", "expm1_", "deg2rad_", "nan_to_num_"),
    "clamp_ with tensors": _with_tensor("{x}.clamp_({y} - 0.5, {y} + 0.25)", "{x}.clamp_min_({y})"),
    "abs_": _simple("{x}.abs_()"),
    "pow_": _simple("{x}.pow_(2)"),
    "square_": _simple("{x} **= 2"),
    "clamp_": _clamp,
    "addcmul_": _with_two("{x}.addcmul_({y}, {z}, value=0.5)"),
    "lerp_": _lerp,
    "atan2_": _with_tensor("{x}.atan2_(({y}).cos() + 2.5)"),
    "addmm_": _addmm,
}

# For tensors of numbers that have an order.
REAL = {
    "masked_fill_", "masked_scatter_", "steps", "compare_", "curves of reals", "clamp_", "clamp_ with tensors", "exp_", "atan2_",
    "set advanced", "addcmul_", "lerp_",
}  # fmt: skip


# ---- in-place views: text and the new shape


def turns(d: Draw, x: Var) -> list[tuple[str, Shape]]:
    """The in-place views that can be applied."""
    made = [(f"{x}.squeeze_()", tuple(n for n in x.shape if n != 1))]
    if x.ndim <= 2:
        made.append((f"{x}.t_()", x.shape[::-1]))
    if x.ndim >= 2:
        i, j = d.sample(range(x.ndim), 2)
        shape = list(x.shape)
        shape[i], shape[j] = shape[j], shape[i]
        made += [(f"{x}.transpose_({i}, {j})", tuple(shape)), (f"{x}.swapaxes_({i}, {j})", tuple(shape))]
    if x.ndim < 3:
        dim = d.randint(0, x.ndim)
        made.append((f"{x}.unsqueeze_({dim})", (*x.shape[:dim], 1, *x.shape[dim:])))
    # Views of what it had before may reach beyond what it has then.
    if x.numel > 1 and d.chance(0.3) and sum(v.memory is x.memory for v in d.scope) == 1:
        made.append((f"{x}.as_strided_((2,), (1,))", (2,)))
    return made
