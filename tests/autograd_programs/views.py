"""The view operators of random programs, one of them or several at once."""

from __future__ import annotations

from autograd_programs.draw import Draw, Entry, Made, Several, Shape, Var, a_slice, basic_index, broadcasts, factored, put


def _select(d: Draw, x: Var) -> Made | None:
    if not x.ndim:
        return None
    dim = d.dim(x)
    n = x.shape[dim]
    return Made(f"{x}.select({dim}, {d.randrange(-n, n)})", put(x.shape, dim)) if n else None


def _slice(d: Draw, x: Var) -> Made | None:
    if not x.ndim:
        return Made(f"{x}[...]", ())
    dim = d.randrange(x.ndim)
    text, n = a_slice(d, x.shape[dim], not x.tracked)
    return Made(f"{x}[{':, ' * dim}{text}]", put(x.shape, dim, n))


def _index(d: Draw, x: Var) -> Made:
    text, shape = basic_index(d, x)
    return Made(f"{x}[{text}]", shape)


def _narrow(d: Draw, x: Var) -> Made | None:
    if not x.ndim:
        return None
    dim = d.dim(x)
    start = d.randrange(x.shape[dim] + 1)
    if start == x.shape[dim] and x.tracked:
        return None
    length = d.randint(0 if d.chance(0.1) and not x.tracked else min(1, x.shape[dim] - start), x.shape[dim] - start)
    return Made(f"{x}.narrow({dim}, {start}, {length})", put(x.shape, dim, length))


def _transpose(d: Draw, x: Var) -> Made | None:
    if x.ndim < 2:
        return None
    i, j = d.dim(x), d.dim(x)
    shape = list(x.shape)
    shape[i], shape[j] = shape[j], shape[i]
    return Made(f"{x}.{d.choice(['transpose', 'transpose', 'swapaxes', 'swapdims'])}({i}, {j})", tuple(shape))


def _permute(d: Draw, x: Var) -> Made:
    order = d.sample(range(x.ndim), x.ndim)
    return Made(f"{x}.permute({tuple(order)})", tuple(x.shape[i] for i in order))


def _movedim(d: Draw, x: Var) -> Made | None:
    if x.ndim < 2:
        return None
    i, j = d.dim(x), d.dim(x)
    shape = list(x.shape)
    shape.insert(j % x.ndim, shape.pop(i % x.ndim))
    return Made(f"{x}.movedim({i}, {j})", tuple(shape))


def _t(d: Draw, x: Var) -> Made | None:
    if x.ndim == 2:
        names = ["t()", "T", "mT"] + ["adjoint()"] * (x.dtype != "complex128")
        return Made(f"{x}.{d.choice(names)}", x.shape[::-1])
    return Made(f"{x}.t()", x.shape) if x.ndim < 2 else None


def _view(d: Draw, x: Var) -> Made | None:
    if not x.numel:
        return None
    shape = factored(d, x.numel)
    return Made(f"{x}.view({shape})", shape)


def _reshape(d: Draw, x: Var) -> Made | None:
    if not x.numel:
        return None
    shape = factored(d, x.numel)
    given = put(shape, d.randrange(len(shape)), -1) if d.chance(0.3) else shape
    return Made(f"{x}.reshape({given})", shape)


def _flatten(d: Draw, x: Var) -> Made:
    if x.ndim == 3 and d.chance(0.5):
        return Made(f"{x}.flatten(1)", (x.shape[0], x.shape[1] * x.shape[2]))
    return Made(f"{x}.{d.choice(['flatten', 'ravel'])}()", (x.numel,))


def _unflatten(d: Draw, x: Var) -> Made | None:
    if not x.ndim:
        return None
    dim = d.dim(x)
    n = x.shape[dim]
    if not n:
        return None
    sizes = d.choice([(n, 1), (1, n), *[(k, n // k) for k in range(2, n) if n % k == 0]])
    return Made(f"{x}.unflatten({dim}, {sizes})", put(x.shape, dim, *sizes))


def _view_as(d: Draw, x: Var) -> Made | None:
    others = [y for y in d.scope if y.numel == x.numel]
    if not others:
        return None
    y = d.choice(others)
    d.used.append(y)
    return Made(f"{x}.{d.choice(['view_as', 'reshape_as'])}({y})", y.shape)


def _unsqueeze(d: Draw, x: Var) -> Made | None:
    if x.ndim > 3:
        return None
    dim = d.randint(0, x.ndim)
    return Made(f"{x}.unsqueeze({dim})", (*x.shape[:dim], 1, *x.shape[dim:]))


def _squeeze(d: Draw, x: Var) -> Made:
    if x.ndim and d.chance(0.5):
        dim = d.dim(x)
        return Made(f"{x}.squeeze({dim})", put(x.shape, dim) if x.shape[dim] == 1 else x.shape)
    return Made(f"{x}.squeeze()", tuple(n for n in x.shape if n != 1))


def _expand(d: Draw, x: Var) -> Made | None:
    if x.ndim > 2:
        return None
    shape = tuple(d.choice([2, 3]) if n == 1 else n for n in x.shape)
    if d.chance(0.5):
        shape = (2, *shape)
    others = [y for y in d.scope if broadcasts(x.shape, y.shape)]
    if others and d.chance(0.3):
        y = d.choice(others)
        d.used.append(y)
        return Made(f"{x}.expand_as({y})", y.shape)
    return Made(f"{x}.{d.choice(['expand', 'broadcast_to'])}({shape})", shape)


def _diagonal(d: Draw, x: Var) -> Made | None:
    if x.ndim < 2:
        return None
    i, j = d.sample(range(x.ndim), 2)
    offset = d.choice([0, 0, 1, -1])
    rows, columns = x.shape[i], x.shape[j]
    n = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    return Made(f"{x}.diagonal({offset}, {i}, {j})", (*[m for k, m in enumerate(x.shape) if k not in (i, j)], n))


def _unfold(d: Draw, x: Var) -> Made | None:
    if not x.ndim or x.ndim > 3:
        return None
    dim = d.dim(x)
    n = x.shape[dim]
    if not n:
        return None
    size, step = d.randint(1, n), d.randint(1, 2)
    return Made(f"{x}.unfold({dim}, {size}, {step})", (*put(x.shape, dim, (n - size) // step + 1), size))


def _as_strided(d: Draw, x: Var) -> Made | None:
    # As one of a view it reaches elements that the view has not, whose gradients are lost.
    if x.numel < 2 or (d.smooth and x.is_view):
        return None
    shape = tuple(d.randint(1, 3) for _ in range(d.randint(1, 2)))
    strides = tuple(d.randint(1, 3) for _ in shape)
    return Made(f"{x}.as_strided({shape}, {strides}, {d.randint(0, 2)})", shape)


def _parts(d: Draw, x: Var) -> Made | None:
    """Parts of complex numbers, and complex numbers of parts."""
    if x.memory.cut:
        return None
    if x.dtype == "complex128":
        if d.chance(0.4) and x.ndim < 3:
            return Made(f"t.view_as_real({x})", (*x.shape, 2), "float64")
        return Made(f"{x}.{d.choice(['real', 'imag'])}", x.shape, "float64")
    if x.dtype == "float64" and x.shape[-1:] == (2,):
        return Made(f"t.view_as_complex({x})", x.shape[:-1], "complex128")
    return None


def _same(d: Draw, x: Var) -> Made:
    return Made(f"{x}{d.choice(['[...]', f'.view({x.shape})', f'.expand({x.shape})'])}", x.shape)


def _detach(d: Draw, x: Var) -> Made:
    return Made(f"{x}.detach()", x.shape)


VIEWS: dict[str, Entry] = {
    "select": _select, "slice": _slice, "index": _index, "narrow": _narrow, "transpose": _transpose, "permute": _permute,
    "movedim": _movedim, "t": _t, "view": _view, "reshape": _reshape, "flatten": _flatten, "unflatten": _unflatten,
    "view_as": _view_as, "unsqueeze": _unsqueeze, "squeeze": _squeeze, "expand": _expand, "diagonal": _diagonal,
    "unfold": _unfold, "as_strided": _as_strided, "parts": _parts, "same": _same, "detach": _detach,
}  # fmt: skip


# ---- several views at once


def _split(d: Draw, x: Var) -> tuple[str, list[Shape]] | None:
    if not x.ndim or not x.shape[0]:
        return None
    dim, n = 0, x.shape[0]
    kind = d.choice(["split", "sizes", "chunk", "tensor_split", "unbind"])
    if kind == "unbind":
        return f"{x}.unbind(0)", [put(x.shape, 0)] * n
    if kind == "sizes" and n > 1:
        return f"{x}.split([1, {n - 1}])", [put(x.shape, 0, 1), put(x.shape, 0, n - 1)]
    if kind == "tensor_split" and n > 1:
        return f"{x}.tensor_split((1,))", [put(x.shape, 0, 1), put(x.shape, 0, n - 1)]
    size = d.randint(1, n)
    if kind == "chunk":
        return f"{x}.chunk({-(-n // size)}, {dim})", chunked(x.shape, -(-n // -(-n // size)))
    return f"{x}.split({size})", chunked(x.shape, size)


def chunked(shape: Shape, size: int) -> list[Shape]:
    n = shape[0]
    return [put(shape, 0, min(size, n - at)) for at in range(0, n, size)]


def _meshes(d: Draw, x: Var) -> tuple[str, list[Shape]] | None:
    if x.ndim != 1:
        return None
    shape = (x.shape[0], x.shape[0])
    return f"t.meshgrid({x}, {x}, indexing='ij')", [shape, shape]


SEVERAL: dict[str, Several] = {"split": _split, "split again": _split, "meshgrid": _meshes}
