"""Factories of sequences and patterns, written in operators. Factories that fill with one value are in `kernels.factories`."""

from __future__ import annotations

from array import array
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX, FLOAT, DType, get_default_dtype, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout.operators.values import is_symbol
from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.composites.endings import element, shortcut
from turnout_aten.dtypes import BOUND, WIDE, check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.outputs import resize_output
from turnout_aten.shapes.promotion import number_dtype
from turnout_aten.tensor.devices import FAKE_MODE, place
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


def _made(tensor: Any) -> Tensor:
    """The result of a stub, typed for the type checker."""
    return tensor


# ---- sequences


def _backend_of(layout: Any, device: Any) -> TensorBackend | None:
    """The backend of the device of a factory, if it makes arrays with data there at once."""
    if layout is not None or device is None:
        return None
    backend: TensorBackend = device.backend
    return backend if device is backend.place and not backend.indexed and not FAKE_MODE.get() else None


def _arange_at_once(call: Call) -> Call:
    """Few ints by one function of the backend."""

    def arange(ks: int, *args: Any) -> Any:
        *numbers, dtype, layout, device, pin_memory = args
        start, end, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        backend = None if pin_memory else _backend_of(layout, device)
        if backend is not None and (dtype is None or dtype is int64) and _are_plain(start, end, step):
            array = backend.counted(start, end, step) if step and (end - start) * step >= 0 else None
            if array is not None:
                return wrap(array, device)
        return call(ks, *args)

    return arange


@shortcut(_arange_at_once)
@element("count")
def arange_end(end: Any, **options: Any) -> Tensor:
    """arange(0, end)."""
    return arange(0, end, 1, **options)


@shortcut(_arange_at_once)
@element("count")
def arange_start(start: Any, end: Any, **options: Any) -> Tensor:
    """arange(start, end, 1)."""
    return arange(start, end, 1, **options)


@shortcut(_arange_at_once)
@element("count")
def arange(start: Any, end: Any, step: Any = 1, **options: Any) -> Tensor:
    """start, start + step, ... below end: int64 if all three are integers, else the default dtype.

    For an integer dtype, all three are truncated towards 0 first.
    """
    if options.get("dtype") in (None, int64) and _are_plain(start, end, step) and step and (end - start) * step >= 0:
        options["dtype"] = int64
        n = -((start - end) // step)
        return _counted(start, end, step, n, _made(aten.empty__memory_format((n,), **options)))
    if options.get("dtype") is None:
        whole = all([number_dtype(v).category < FLOAT for v in (start, end, step)])  # noqa: C419 - no generator's frames
        options["dtype"] = int64 if whole else get_default_dtype()
    if options["dtype"].category < FLOAT and _all_finite(start, end, step):
        start, end, step = _whole_steps(start, end, step)
    n = arange_length(start, end, step)
    return _counted(start, end, step, n, _made(aten.empty__memory_format((n,), **options)))


def _are_plain(start: Any, end: Any, step: Any) -> bool:
    """Whether all three are ints that are counted in int64: the usual case, without the checks of each."""
    return start.__class__ is end.__class__ is step.__class__ is int and max(abs(start), abs(end), abs(step)) >> 62 == 0


def _whole_steps(start: Any, end: Any, step: Any) -> tuple[int, int, int]:
    """The three truncated towards 0. Raises RangeError for one beyond int64, in which they are counted."""
    for name, value in (("start", start), ("end", end), ("step", step)):
        if value.__class__ is not int or abs(value) >> 62:
            check_held(int64, value, "arange", name)
    start, end, step = [v if v.__class__ is int or is_symbol(v) else int(v) for v in (start, end, step)]
    return start, end, step


def _all_finite(*values: Any) -> bool:
    return all([v.__class__ is int or is_symbol(v) or isfinite(v) for v in values])  # noqa: C419 - no generator's frames


def arange_length(start: Any, end: Any, step: Any) -> int:
    """The number of values. Raises ShapeError if step is 0 or leads away from the end."""
    if not _all_finite(start, end, step):
        raise ArgumentError(f"arange: start, end and step must be finite, got {start}, {end} and {step}")
    if step == 0:
        raise ArgumentError("arange: step must not be 0")
    if (end - start) * step < 0:
        raise ArgumentError(f"arange: step {step} leads away from end: start is {start}, end is {end}")
    if all([isinstance(v, int) or is_symbol(v) for v in (start, end, step)]):  # noqa: C419 - no generator's frames
        return -((start - end) // step)
    return ceil((end - start) / step)


def arange_out(start: Any, end: Any, step: Any = 1, *, out: Tensor) -> Tensor:
    """Write arange(start, end, step) into `out`, resized where needed."""
    if out.dtype.category < FLOAT and _all_finite(start, end, step):
        start, end, step = _whole_steps(start, end, step)
    n = arange_length(start, end, step)
    resize_output(find_operator("aten::arange.start_out"), out.device.backend, out, (n,))
    return _counted(start, end, step, n, out)


def _counted(start: Any, end: Any, step: Any, n: int, out: Tensor) -> Tensor:
    """The n values of an arange, written into `out`.

    If the backend has no ramp, counts with a running sum of ones, which is exact, and scales that.
    """
    real = not (isinstance(start, complex) or isinstance(step, complex)) and out.dtype.category <= FLOAT
    if real and out.is_contiguous() and out.device.backend.ramp(out.array, start, step):
        return out
    counted = aten.sub__Scalar(aten.cumsum(aten.new_ones(out, (n,), dtype=int64), 0), 1)
    whole = out.dtype.category < FLOAT and all(isinstance(v, int) for v in (start, end, step))
    if not whole:
        counted = aten._to_copy(counted, dtype=out.dtype if out.dtype.category >= FLOAT else get_default_dtype())
    return _made(aten.copy_(out, aten.add__Scalar(aten.mul__Scalar(counted, step), start)))


def empty_out(size: Sequence[int], *, memory_format: Any = None, out: Tensor) -> Tensor:
    """`out` resized, with unspecified contents."""
    if memory_format is not None:
        return _made(aten.resize_(out, size, memory_format=memory_format))
    resize_output(find_operator("aten::empty.out"), out.device.backend, out, tuple(size))
    return out


def _bounds(name: str, start: Any, end: Any, steps: int, options: dict[str, Any]) -> tuple[Any, Any]:
    """start and end as numbers, or as 0-dim tensors. Raises ShapeError for other tensors and for negative steps."""
    if steps < 0:
        raise ShapeError(texts.negative(name, "steps", steps))
    for value in (start, end):
        if isinstance(value, Tensor):
            if value.ndim:
                raise ShapeError(f"{name}: start and end must be numbers or 0-dim tensors, got shape {list(value.shape)}")
            if options.get("device") is None:
                options["device"] = value.device
            options["device"] = place(options["device"])
    return start, end


def _steps_dtype(name: str, start: Any, end: Any, dtype: DType | None) -> DType:
    """The dtype of the result: the requested one, else the default dtype, made complex if an end is complex."""
    usual = get_default_dtype()
    ends_complex = any(isinstance(v, complex) or (isinstance(v, Tensor) and v.is_complex()) for v in (start, end))
    if dtype is None:
        return usual.to_complex() if ends_complex else usual
    if ends_complex and dtype.category != COMPLEX:
        raise DTypeError(f"{name}: a complex start or end needs a complex dtype, got {dtype.name}")
    return dtype


def _linspace_at_once(call: Call) -> Call:
    """Few floats between two numbers by one function of the backend."""

    def linspace(ks: int, start: Any, end: Any, steps: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
        backend = None if pin_memory else _backend_of(layout, device)
        numbers = start.__class__ in _NUMBERS and end.__class__ in _NUMBERS and steps.__class__ is int
        if numbers and backend is not None and -BOUND < start < BOUND and -BOUND < end < BOUND:
            array = backend.spaced(start, end, steps, dtype or get_default_dtype())
            if array is not None:
                return wrap(array, device)
        return call(ks, start, end, steps, dtype, layout, device, pin_memory)

    return linspace


_NUMBERS = frozenset({int, float})


@shortcut(_linspace_at_once)
@element("space")
def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """`steps` values from start to end, both included. Each is counted from the nearer end, so that both ends are exact.

    For an integer dtype, steps and values are computed in float32 or float64; the values are then truncated towards 0.
    """
    if options.pop("pin_memory", None):
        return linspace(start, end, steps, **options).pin_memory()
    start, end = _bounds("linspace", start, end, steps, options)
    dtype = _steps_dtype("linspace", start, end, options.pop("dtype", None))
    computed = WIDE[dtype]
    if steps == 0:
        return _made(aten.empty__memory_format((0,), dtype=dtype, **options))
    for argument, value in (("start", start), ("end", end)):
        if not isinstance(value, Tensor):
            check_held(dtype, value, "linspace", argument)
    if dtype.category < FLOAT:
        start, end = _whole(start), _whole(end)
    made: Any
    if dtype is computed and not (isinstance(start, Tensor) or isinstance(end, Tensor)):
        where = place(options.get("device"))
        array = where.backend.spaced(start, end, steps, dtype)
        if array is not None:
            return wrap(array, where)
    first, last = _as_tensor(start, computed, options), _as_tensor(end, computed, options)
    if steps == 1:
        made = aten.clone(aten.view(first, (1,)))
    else:
        i = aten._to_copy(aten.arange(steps, dtype=int64, **options), dtype=computed)
        step = aten.div__Scalar(aten.sub__Tensor(last, first), steps - 1)
        up = aten.add__Tensor(aten.mul__Tensor(i, step), first)
        down = aten.sub__Tensor(last, aten.mul__Tensor(aten.rsub__Scalar(i, steps - 1), step))
        near = aten.lt__Scalar(aten.arange(steps, dtype=int64, **options), steps // 2)
        made = aten.where__self(near, up, down)
    return _made(made if dtype is computed else aten._to_copy(made, dtype=dtype))


def _whole(value: Any) -> Any:
    """The end of a range of integers, truncated towards 0."""
    return aten.to__dtype(value, int64) if isinstance(value, Tensor) else int(value)


def _as_tensor(value: Any, dtype: DType, options: dict[str, Any]) -> Tensor:
    if isinstance(value, Tensor):
        return _made(aten.to__device(value, options.get("device") or value.device, dtype))
    return _made(aten.full((), value, dtype=dtype, **options))


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """`base` to the powers of linspace(start, end, steps)."""
    if options.pop("pin_memory", None):
        return logspace(start, end, steps, base, **options).pin_memory()
    start, end = _bounds("logspace", start, end, steps, options)
    dtype = _steps_dtype("logspace", start, end, options.pop("dtype", None))
    computed = WIDE[dtype]
    if dtype.category < FLOAT:
        start, end = _whole(start), _whole(end)
    elif dtype is not computed and steps > 1:  # for two-byte floats, the ends are rounded before the step is computed
        start, end = _as_tensor(start, dtype, options), _as_tensor(end, dtype, options)
    exponents = linspace(start, end, steps, dtype=computed, **options)
    made = aten.pow__Scalar(float(base), exponents)
    return _made(made if dtype is computed else aten._to_copy(made, dtype=dtype))


# ---- indices of a triangle


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """The row and column indices on and below a diagonal, in row-major order."""
    _check_matrix("tril_indices", row, col)
    rows = [(i, max(0, min(col, i + offset + 1))) for i in range(row)]
    return _places([(i, 0, n) for i, n in rows], options)


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """The row and column indices on and above a diagonal, in row-major order."""
    _check_matrix("triu_indices", row, col)
    return _places([(i, max(0, min(col, i + offset)), col) for i in range(row)], options)


def _check_matrix(name: str, row: int, col: int) -> None:
    if row < 0 or col < 0:
        raise ShapeError(f"{name}: row and col must not be negative, got {row} and {col}")


def _places(spans: list[tuple[int, int, int]], options: dict[str, Any]) -> Tensor:
    """(row, first column, end) of each row as the two rows of a tensor."""
    dtype = options.pop("dtype", None) or int64
    rows = array("q", [i for i, first, end in spans for _ in range(first, end)])
    columns = array("q", [j for _, first, end in spans for j in range(first, end)])
    where = place(options.get("device"))
    made = wrap(where.backend.from_host((rows + columns).tobytes(), (2, len(rows)), int64, where), where)
    made = made if dtype is int64 else _made(aten._to_copy(made, dtype=dtype))
    return made.pin_memory() if options.get("pin_memory") else made


# ---- identities


def _eye_at_once(call: Call) -> Call:
    """A small identity by one function of the backend."""

    def eye(ks: int, *args: Any) -> Any:
        *sizes, dtype, layout, device, pin_memory = args
        backend = None if pin_memory else _backend_of(layout, device)
        if backend is not None and sizes[0].__class__ is sizes[-1].__class__ is int and sizes[0] >= 0 <= sizes[-1]:
            array = backend.identity(sizes[0], sizes[-1], dtype or get_default_dtype())
            if array is not None:
                return wrap(array, device)
        return call(ks, *args)

    return eye


@shortcut(_eye_at_once)
@element("identity")
def eye(n: int, **options: Any) -> Tensor:
    """The n by n identity."""
    return eye_m(n, n, **options)


@shortcut(_eye_at_once)
@element("identity")
def eye_m(n: int, m: int, **options: Any) -> Tensor:
    """An n by m matrix with ones on the main diagonal."""
    made = aten.zeros((n, m), **options)
    aten.fill___Scalar(aten.diagonal(made), 1)
    return _made(made)
