"""Writing by index and by mask."""

from __future__ import annotations

from typing import Any

from turnout_aten.composites.scattering import BY_INDEX, OF_SCATTER
from turnout_aten.shapes.scattering import REDUCTIONS
from turnout_conformance.cases.model import INDEX, NUMBERS, M, OperatorCase, S, T, row, some

SOURCE = some(2, 2, low=0.5, high=2.0, seed=3)
AT = T([[0, 0], [2, 0]], "int64")
POSITIVE = some(2, 3, low=0.5, high=3.0)


def _reduced(np: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    found: dict[Any, list[Any]] = {}
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = index[place]
        found.setdefault(tuple(to), []).append(source[place])
    made = x.copy()
    apply = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min, "add": np.sum, "multiply": np.prod}[
        reduce
    ]
    for to, taken in found.items():
        made[to] = apply([x[to], *taken] if include_self else taken)
    return made


def _by_index(np: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    shape = [1] * x.ndim
    shape[dim] = -1
    return _reduced(np, x, dim, np.broadcast_to(index.reshape(shape), source.shape), source, reduce, include_self)


def _put(np: Any, x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    made = x.reshape(-1).copy()
    if accumulate:
        np.add.at(made, index.reshape(-1), source.reshape(-1))
    else:
        made[index.reshape(-1)] = source.reshape(-1)
    return made.reshape(x.shape)


def _along(np: Any, x: Any, dim: int, index: Any, value: Any) -> Any:
    made = np.moveaxis(x.copy(), dim, 0)
    made[index] = np.moveaxis(value, dim, 0) if getattr(value, "ndim", 0) else value
    return np.moveaxis(made, 0, dim)


def _masked(np: Any, x: Any, mask: Any, source: Any) -> Any:
    made, mask = (a.copy() for a in np.broadcast_arrays(x, mask))
    made[mask] = source.reshape(-1)[: mask.sum()]
    return made


def _inside(np: Any, x: Any, mask: Any, indices: Any, fill: Any) -> Any:
    kept = tuple(np.clip(i, -n, n - 1) for i, n in zip(indices, x.shape, strict=False))
    return np.where(mask, x[kept], x.dtype.type(fill))


def _added_inside(np: Any, x: Any, mask: Any, indices: Any, added: Any) -> Any:
    made = x.copy()
    kept = tuple(np.clip(i, -n, n - 1) for i, n in zip(indices, x.shape, strict=False))
    np.add.at(made, kept, np.where(mask, added, 0))
    return made


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("put", (S(M, T([[5, -6]], "int64"), some(1, 2, seed=3)), S(M, T([1, 1], "int64"), some(2, seed=3), True)), _put),
    row("index_fill.int_Scalar", (S(M, 1, T([2, 0], "int64"), 3), S(M, 0, T(1, "int64"), 2.0)), _along, NUMBERS),
    row("index_fill.int_Tensor", S(M, 1, T([2, 0], "int64"), T(3.0)), _along),
    row("index_copy", (S(M, 1, T([2, 0], "int64"), some(2, 2, seed=3)), S(M, 0, T([1], "int64"), some(1, 3, seed=3))), _along),
    row("masked_scatter", (S(M, T([[True, False, True], [False, True, True]], "bool"), some(5, seed=3)), S(M, T([False, True, False], "bool"), some(6, seed=3))), _masked),
    row("scatter_reduce.two", tuple(S(POSITIVE, 1, AT, SOURCE, reduce, include_self=with_self) for reduce in REDUCTIONS for with_self in (True, False)), _reduced),
    row("scatter.reduce", tuple(S(M, 1, AT, SOURCE, reduce=reduce) for reduce in OF_SCATTER), _reduced),
    row("scatter.value_reduce", tuple(S(M, 1, AT, 2, reduce=reduce) for reduce in OF_SCATTER), lambda np, x, d, i, v, reduce: _reduced(np, x, d, i, np.full(i.shape, v, x.dtype), reduce)),
    row("index_reduce", (*[S(POSITIVE, 1, INDEX, some(2, 3, low=0.5, seed=3), reduce) for reduce in BY_INDEX], S(POSITIVE, 0, T([1, 1], "int64"), some(2, 3, low=0.5, seed=3), "mean", include_self=False)), _by_index),
    # ---- reading the same way
    row("take", S(M, T([[5, -6], [0, 0]], "int64")), "take"),
    row("_unsafe_index.Tensor", S(M, [None, INDEX]), lambda np, x, i: x[:, i[1]]),
    row("_unsafe_index_put", S(M, [T([1, 1], "int64")], some(2, 3, seed=3), True), lambda np, x, i, v, a=False: (lambda y: np.add.at(y, i[0], v) or y)(x.copy())),
    row("_unsafe_masked_index", S(M, T([True, False, True], "bool"), [T([1, 7, 0], "int64"), INDEX], 2.0), _inside),
    row("_unsafe_masked_index_put_accumulate", S(M, T([True, False, True], "bool"), [T([1, 7, 0], "int64"), INDEX], some(3, seed=3)), _added_inside),
)
# fmt: on
