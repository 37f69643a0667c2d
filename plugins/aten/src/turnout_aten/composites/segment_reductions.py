"""segment_reduce: one result for each run of elements along a dim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, INT
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds, is_checked
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.levels import of_all_examples

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

# The result of an empty segment without `initial`; it also replaces the elements of other segments.
NEUTRAL = {"sum": 0.0, "mean": 0.0, "max": float("-inf"), "min": float("inf"), "prod": 1.0}


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Tensor:  # fmt: skip
    """sum, mean, max, min or prod over segments [..., S] of data [..., N, ...], given by lengths or by S + 1 offsets.

    `axis` is the last dim of the lengths. An empty segment gives `initial`, or the neutral value; nan for mean.
    """
    if reduce not in NEUTRAL:
        raise ArgumentError(texts.not_one_of("segment_reduce", "reduce", NEUTRAL, reduce))
    if indices is not None or (lengths is None) == (offsets is None):
        raise ArgumentError("segment_reduce: give either lengths or offsets; indices are not supported")
    if data.dtype.category != FLOAT:
        raise DTypeError(texts.not_float("segment_reduce", data.dtype))
    given = lengths if lengths is not None else offsets
    assert given is not None
    if given.dtype.category != INT:
        raise DTypeError(f"segment_reduce: lengths and offsets must be integers, got {given.dtype.name}")
    d = wrap_dim(axis, data.ndim)
    if given.ndim != d + 1 or given.shape[:-1] != data.shape[:d]:
        wanted = ", ".join([*map(str, data.shape[:d]), "segments"])
        raise ShapeError(
            f"segment_reduce: lengths and offsets along dim {d} of {list(data.shape)} must have shape [{wanted}], got "
            f"{list(given.shape)}"
        )
    starts, ends = _limits(lengths, offsets)
    if lengths is not None and not unsafe:
        _check_lengths(lengths, data.shape[d])
    return _reduced(data, reduce, d, starts, ends, initial)


def _limits(lengths: Tensor | None, offsets: Tensor | None) -> tuple[Tensor, Tensor]:
    if lengths is not None:
        ends = aten.cumsum(lengths, -1)
        return aten.sub__Tensor(ends, lengths), ends
    assert offsets is not None
    return aten.slice__Tensor(offsets, -1, 0, -1), aten.slice__Tensor(offsets, -1, 1)


def _check_lengths(lengths: Tensor, size: int) -> None:
    lengths = of_all_examples(lengths)
    if not is_checked(lengths):
        return
    if not holds(aten.ge__Scalar(lengths, 0)):
        raise ArgumentError("segment_reduce: lengths must not be negative")
    if not holds(aten.eq__Scalar(aten.sum__dim_IntList(lengths, (-1,)), size)):
        raise ShapeError(f"segment_reduce: the lengths must add up to {size}, the length of the dim of data")


def _reduced(data: Tensor, reduce: str, d: int, starts: Tensor, ends: Tensor, initial: Any) -> Tensor:
    place = aten.arange(data.shape[d], dtype=ends.dtype, device=data.device)
    inside = aten.logical_and(
        aten.ge__Tensor(place, aten.unsqueeze(starts, -1)), aten.lt__Tensor(place, aten.unsqueeze(ends, -1))
    )
    inside = aten.reshape(inside, (*inside.shape, *(1,) * (data.ndim - d - 1)))
    each = aten.where__ScalarOther(inside, aten.unsqueeze(data, d), NEUTRAL[reduce])
    over, base = d + 1, initial
    if reduce in ("max", "min"):
        bound = aten.new_full(each, (*each.shape[:over], 1, *each.shape[over + 1 :]), _start(reduce, initial))
        return (aten.amax if reduce == "max" else aten.amin)(aten.cat([each, bound], over), (over,))
    if reduce == "prod":
        made = aten.prod__dim_int(each, over)
        return made if base is None else aten.mul__Scalar(made, base)
    made = aten.sum__dim_IntList(each, (over,))
    made = made if base is None else aten.add__Scalar(made, base)
    if reduce == "mean":
        counts = aten.to__dtype(aten.sub__Tensor(ends, starts), data.dtype)
        counts = aten.reshape(counts, (*counts.shape, *(1,) * (data.ndim - d - 1)))
        empty = aten.eq__Scalar(counts, 0)
        made = aten.div__Tensor(made, aten.where__ScalarSelf(empty, 1, counts))
        made = aten.masked_fill__Scalar(made, empty, float("nan")) if base is None else made
    return made


def _start(reduce: str, initial: Any) -> float:
    return NEUTRAL[reduce] if initial is None else float(initial)
