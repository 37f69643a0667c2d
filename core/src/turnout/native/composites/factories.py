"""Factories of sequences and patterns, written in operators. Those that fill with one value are in `native.direct`."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, get_default_dtype, int64
from turnout.errors import ShapeError
from turnout.generated import operators as aten
from turnout.native.wrappers import resize_output
from turnout.registry import find_operator
from turnout.shapes.promotion import number_dtype

if TYPE_CHECKING:
    from turnout.tensors import Tensor


def _made(tensor: Any) -> Tensor:
    """What a stub returned, for the type checker."""
    made: Tensor = tensor
    return made


# ---- sequences


def arange_end(end: Any, **options: Any) -> Tensor:
    """arange(0, end)."""
    return arange(0, end, 1, **options)


def arange_start(start: Any, end: Any, **options: Any) -> Tensor:
    """arange(start, end, 1)."""
    return arange(start, end, 1, **options)


def arange(start: Any, end: Any, step: Any = 1, **options: Any) -> Tensor:
    """start, start + step, ... below end: int64 when all three are integers, else the default dtype."""
    if options.get("dtype") is None:
        whole = all(number_dtype(v).category < FLOAT for v in (start, end, step))
        options["dtype"] = int64 if whole else get_default_dtype()
    made = aten.empty__memory_format((arange_length(start, end, step),), **options)
    return _made(aten.arange__start_out(start, end, step, out=made))


def arange_length(start: Any, end: Any, step: Any) -> int:
    """How many values there are. Raises ShapeError for a step of 0 or away from the end."""
    if step == 0:
        raise ShapeError("arange: step must not be 0")
    if (end - start) * step < 0:
        raise ShapeError(f"arange: step {step} leads away from end, from {start} to {end}")
    if all(isinstance(v, int) for v in (start, end, step)):
        return int(-((start - end) // step))
    count: int = ceil((end - start) / step)
    return count


def arange_out(start: Any, end: Any, step: Any = 1, *, out: Tensor) -> Tensor:
    """Write arange(start, end, step) into `out`, resized where needed.

    Counts with a running sum of ones, which is exact, and scales that; a backend may have a faster kernel.
    """
    n = arange_length(start, end, step)
    resize_output(find_operator("aten::arange.start_out"), out.device.backend, out, (n,))
    counted = aten.sub__Scalar(aten.cumsum(aten.new_ones(out, (n,), dtype=int64), 0), 1)
    whole = out.dtype.category < FLOAT and all(isinstance(v, int) for v in (start, end, step))
    if not whole:
        counted = aten._to_copy(counted, dtype=out.dtype if out.dtype.category >= FLOAT else get_default_dtype())
    return _made(aten.copy_(out, aten.add__Scalar(aten.mul__Scalar(counted, step), start)))


def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """`steps` values from start to end, both included; counted from the nearer end, so that both are exact."""
    if steps < 0:
        raise ShapeError(f"linspace: steps must not be negative, got {steps}")
    dtype = options.pop("dtype", None) or get_default_dtype()
    computed = dtype if dtype.category >= FLOAT else get_default_dtype()
    if steps == 1:
        return _made(aten.full((1,), start, dtype=dtype, **options))
    i = aten.arange(steps, dtype=computed, **options)
    step = (end - start) / (steps - 1) if steps else 0
    up = aten.add__Scalar(aten.mul__Scalar(i, step), start)
    down = aten.rsub__Scalar(aten.mul__Scalar(aten.rsub__Scalar(i, steps - 1), step), end)
    made = aten.where__self(aten.lt__Scalar(i, steps // 2), up, down)
    return _made(made if dtype is computed else aten._to_copy(made, dtype=dtype))


def eye(n: int, **options: Any) -> Tensor:
    """The n by n identity."""
    return eye_m(n, n, **options)


def eye_m(n: int, m: int, **options: Any) -> Tensor:
    """Ones on the main diagonal of an n by m matrix."""
    made = aten.zeros((n, m), **options)
    aten.fill___Scalar(aten.diagonal(made), 1)
    return _made(made)
