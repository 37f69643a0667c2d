"""Factories: `empty` asks the backend, all others fill what it gives.

A factory is reached with its device resolved, by BackendSelect; `new_*` and `*_like` take what is not given from a tensor.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from turnout.devices import Device, default_device
from turnout.dtypes import FLOAT, DType, get_default_dtype, int64
from turnout.errors import ShapeError, TurnoutError
from turnout.generated import operators as aten
from turnout.native.wrappers import resize_output
from turnout.registry import find_operator
from turnout.shapes.extents import preserved_strides
from turnout.shapes.promotion import number_dtype
from turnout.tensors import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    Sizes = Sequence[int]


def place(device: Device | None) -> Device:
    """A device as tensors have it: the default one for None, with its index where the backend has several."""
    wanted = default_device() if device is None else device
    return wanted.backend.resolve_device(wanted)


def _shape(size: Sizes) -> tuple[int, ...]:
    shape = tuple(size)
    for n in shape:
        if n < 0:
            raise ShapeError(f"a tensor cannot have shape {list(shape)}: {n} is no length")
    return shape


def check_layout(layout: Any) -> None:
    """Raise for any layout but the strided one."""
    if layout is not None and layout != "strided":
        raise TurnoutError(f"layout must be turnout.strided, got {layout!r}")


def keeps_layout(memory_format: Any) -> bool:
    """Whether a memory format means the layout of the original. Raises for formats that do not exist here."""
    if memory_format in (None, "preserve_format"):
        return True
    if memory_format == "contiguous_format":
        return False
    raise TurnoutError(f"memory_format must be contiguous_format or preserve_format, got {memory_format!r}")


# ---- uninitialised


def empty(
    size: Sizes, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of unspecified contents, row-major. `pin_memory` is accepted and has no effect."""
    if layout is not None or memory_format is not None:
        check_layout(layout)
        keeps_layout(memory_format)
    where = place(device)
    return wrap(where.backend.empty(_shape(size), dtype or get_default_dtype(), where), where)


def empty_strided(
    size: Sizes, stride: Sizes, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """The same with strides in elements."""
    check_layout(layout)
    if len(size) != len(stride):
        raise ShapeError(f"empty_strided: size {list(size)} and stride {list(stride)} must be equally long")
    where = place(device)
    return wrap(where.backend.empty(_shape(size), dtype or get_default_dtype(), where, tuple(stride)), where)


def empty_like(
    self: Tensor, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of self's shape, layout, dtype and device, as far as nothing else is asked for."""
    check_layout(layout)
    strides = preserved_strides(self) if keeps_layout(memory_format) else None
    wanted = {"dtype": dtype or self.dtype, "device": device or self.device}
    if strides is None:
        return _made(aten.empty__memory_format(self.shape, **wanted))
    return _made(aten.empty_strided(self.shape, strides, **wanted))


def new_empty(
    self: Tensor, size: Sizes, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of another shape, of self's dtype and device unless told otherwise."""
    return _made(aten.empty__memory_format(size, dtype=dtype or self.dtype, layout=layout, device=device or self.device))


def new_empty_strided(
    self: Tensor, size: Sizes, stride: Sizes, *, dtype: DType | None = None, layout: Any = None,
    device: Device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """The same with strides in elements."""
    return _made(aten.empty_strided(size, stride, dtype=dtype or self.dtype, layout=layout, device=device or self.device))


def _made(tensor: Any) -> Tensor:
    """What a stub returned, for the type checker."""
    made: Tensor = tensor
    return made


# ---- filled with one value


def zeros(
    size: Sizes, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """Zeros."""
    return _made(aten.zero_(aten.empty__memory_format(size, dtype=dtype, layout=layout, device=device)))


def ones(
    size: Sizes, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """Ones."""
    return _made(aten.fill___Scalar(aten.empty__memory_format(size, dtype=dtype, layout=layout, device=device), 1))


def full(
    size: Sizes, fill_value: Any, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """One value everywhere; its Python type gives the dtype."""
    dtype = dtype or number_dtype(fill_value)
    return _made(aten.fill___Scalar(aten.empty__memory_format(size, dtype=dtype, layout=layout, device=device), fill_value))


def zeros_like(self: Tensor, **options: Any) -> Tensor:
    """Zeros like self."""
    return _made(aten.zero_(aten.empty_like(self, **options)))


def ones_like(self: Tensor, **options: Any) -> Tensor:
    """Ones like self."""
    return _made(aten.fill___Scalar(aten.empty_like(self, **options), 1))


def full_like(self: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One value everywhere, like self: in its dtype, whatever the value's type."""
    return _made(aten.fill___Scalar(aten.empty_like(self, **options), fill_value))


def new_zeros(self: Tensor, size: Sizes, **options: Any) -> Tensor:
    """Zeros of another shape."""
    return _made(aten.zero_(aten.new_empty(self, size, **options)))


def new_ones(self: Tensor, size: Sizes, **options: Any) -> Tensor:
    """Ones of another shape."""
    return _made(aten.fill___Scalar(aten.new_empty(self, size, **options), 1))


def new_full(self: Tensor, size: Sizes, fill_value: Any, **options: Any) -> Tensor:
    """One value in another shape."""
    return _made(aten.fill___Scalar(aten.new_empty(self, size, **options), fill_value))


def scalar_tensor(s: Any, **options: Any) -> Tensor:
    """A 0-dim tensor of one value, in the default dtype unless told otherwise."""
    options["dtype"] = options.get("dtype") or get_default_dtype()
    return _made(aten.full((), s, **options))


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
