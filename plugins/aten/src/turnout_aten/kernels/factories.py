"""Factories and fills as kernels that call the backend's methods, not operators: one step instead of three.

They follow the internal convention and serve every backend, at CompositeExplicitAutograd. BackendSelect has resolved the device
of a factory before the call; `new_*` and `*_like` take omitted options from a tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import COMPLEX, DEFAULT, DType, bool_, get_default_dtype
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout.operators.stubs import compile_function, python_name
from turnout.plugins import replaceable
from turnout.registry import find_operator
from turnout_aten.constants import MEMORY_FORMATS
from turnout_aten.dtypes import BOUND, check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.facts import NOTHING, Function, fact, facts_of
from turnout_aten.kernels.outputs import check_expanded
from turnout_aten.kernels.standing import does
from turnout_aten.shapes.extents import preserved_strides
from turnout_aten.shapes.layouts import ordered
from turnout_aten.shapes.promotion import number_dtype
from turnout_aten.tensor.devices import FAKE_MODE, place
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.pinning import pinned_array
from turnout_aten.tensor.tensor import Tensor, wrap, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel

    Sizes = Sequence[int]


_FORMATS = ("contiguous_format", "preserve_format", *MEMORY_FORMATS)


def check_layout(layout: Any) -> None:
    """Raise ArgumentError for any layout except strided."""
    if layout is not None and not (isinstance(layout, str) and layout == "strided"):
        raise ArgumentError(texts.not_strided("", layout))


def strides_as(memory_format: Any, shape: Sizes, tensor: Tensor | None = None) -> tuple[int, ...] | None:
    """The strides that a memory format gives a new tensor of this shape; None means row-major.

    None as the format means preserve_format, which keeps the layout of `tensor` if that is dense. Raises ArgumentError for an
    unknown format, or one for another number of dimensions.
    """
    if memory_format is None:
        return None if tensor is None else preserved_strides(tensor)
    if not isinstance(memory_format, str) or memory_format not in _FORMATS:
        raise ArgumentError(
            f"memory_format must be contiguous_format, preserve_format, channels_last or channels_last_3d, got {memory_format!r}"
        )
    if memory_format not in MEMORY_FORMATS:
        return None if tensor is None or memory_format == "contiguous_format" else preserved_strides(tensor)
    order = MEMORY_FORMATS[memory_format]
    if len(shape) != len(order):
        raise ArgumentError(f"{memory_format} needs {len(order)} dimensions, got shape {list(shape)}")
    return ordered(shape, order)


def _make(
    size: Sizes, dtype: DType | None, layout: Any, device: Device | None, strides: Sizes | None = None, *, zeros: bool = False,
    pin_memory: Any = None,
) -> Tensor:  # fmt: skip
    """An uninitialised tensor, or one of zeros."""
    if layout is not None:
        check_layout(layout)
    where: Any = device
    if device is None or device is not device.backend.place or device.backend.indexed or FAKE_MODE.get():
        where = place(device)
    dtype = dtype or get_default_dtype()
    backend = where.backend
    native = backend.native.get(dtype)
    new = backend.zero_array if zeros else backend.new_array
    if strides is None and new is not None and native is not None and not pin_memory:
        try:
            return wrap(new(tuple(size), native), where)
        except (ValueError, OverflowError, MemoryError):  # what is wrong is said below
            pass
    for length in size:
        if length < 0:
            raise ShapeError(texts.negative_length("", size))
    array = pinned_array(size, dtype, where, strides) if pin_memory else None
    if array is None:
        array = backend.empty(tuple(size), dtype, where, None if strides is None else tuple(strides))
    if zeros:
        backend.fill(array, 0)
    return wrap(array, where)


def _filled(made: Tensor, value: Any, name: str, argument: str = "value") -> Tensor:
    """Fill `made` with one value; returns it. Raises RangeError for a value that the dtype cannot hold."""
    if value.__class__ is int and 0 <= value <= 1:  # every dtype has them
        made.device.backend.fill(made.array, value)
        return made
    dtype = made.dtype
    if dtype is bool_:
        value = bool(value)
    if value.__class__ is complex and dtype.category != COMPLEX:
        raise DTypeError(texts.complex_into("", dtype))
    check_held(dtype, value, name, argument)
    made.device.backend.fill(made.array, value)
    return made


def fills(value: Any) -> Callable[[Function], Function]:
    """Says of a factory what it fills with: a number, the name of an argument, or None for memory as it is.

    A call path does so at once, compiled or not, for row-major memory, where layout, memory format and pin_memory are omitted.
    """
    return fact(fills=value)


@replaceable
def bind_factory(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    """The binder of kernels that follow the internal convention: the kernel itself, or one frame before it for usual calls."""
    made: Callable[..., Any] = kernel.fn.__wrapped__
    value = facts_of(made).fills
    if value is NOTHING:
        return made
    if op.schema.kind == "inplace":
        return _filling(made, value)
    return _at_once(op, made, value)


def _filling(kernel: Callable[..., Any], number: Any) -> Callable[..., Any]:
    """A fill of memory that is not expanded, by a number that all dtypes have, or a moderate float of floats: in one frame."""

    def fill(ks: int, self: Tensor, *given: Any) -> Any:
        try:
            array, value = self.array, given[0] if given else number
            kind = value.__class__
            served = (kind is int and 0 <= value <= 1) or (kind is float and -BOUND < value < BOUND and array.dtype.char in "fd")
            if served and (self.storage is None or 0 not in array.strides):
                self.device.backend.fill(array, value)
                return self
        except Exception:  # noqa: BLE001 - the kernel says what is wrong
            pass
        return kernel(ks, self, *given)

    return does("fill", fill)


def _at_once(op: Operator, kernel: Callable[..., Any], value: Any) -> Callable[..., Any]:
    """A factory of row-major memory as generated source: 700 ns of 2,300. Any other call, and any that fails, runs the kernel."""
    names = [python_name(a.name) for a in op.schema.arguments]
    shape, of_self = ("size", "self" in names) if "size" in names else ("self.array.shape", True)
    plain = [f"{name} is None" for name in ("layout", "memory_format") if name in names] + ["not pin_memory"]
    if shape != "size":  # a dim of length 1 may have any stride, which the new tensor keeps
        plain.append("(len(self.array.shape) < 2 or self.array.__class__ is _at.array_type and _at.row_major is not None")
        plain[-1] += " and _at.row_major(self.array) and 1 not in self.array.shape and 0 not in self.array.shape)"
    otherwise = f"NUMBER({value})" if isinstance(value, str) else "DEFAULT[0]"
    native = f"_at.native.get(dtype or {otherwise})"
    if of_self:  # the array says its dtype without two frames
        own = "_where is self.device and self.array.__class__ is _at.array_type"
        native = f"_at.native.get(dtype) if dtype is not None else self.array.dtype if {own} else _at.native.get(self.dtype)"
    maker = "zero_array" if value == 0 and value is not None else "new_array"
    fill = {1: "_at.fill(_array, 1)", 0: "", None: ""}.get(value, "")
    lines = [
        f"def factory(ks, {', '.join(names)}):",
        f"    _where = {'self.device if device is None else device' if of_self else 'device'}",
        "    _array = None",
        "    try:",
        "        _at = _where.backend",
        "        if _where is _at.place and not _at.indexed and not FAKE_MODE():",
        f"            _new = _at.{maker}",
        f"            _native = {native}",
        f"            if {' and '.join(['_new is not None and _native is not None', *plain])}:",
        f"                _array = _new({'tuple(size)' if shape == 'size' else shape}, _native)",
        *([f"                {fill}"] if fill else []),
        "    except Exception:",
        "        _array = None",  # the kernel says what is wrong
        "    if _array is None:",
        f"        return KERNEL(ks, {', '.join(names)})",
        *("    " + line for line in wrapping_lines(array="_array", keys="_at.keys", device="_where")),
        f"    return {f'FILLED(t, {value}, {op.name!r}, {value!r})' if isinstance(value, str) else 't'}",
    ]
    variables = {
        "__name__": __name__, "KERNEL": kernel, "FAKE_MODE": FAKE_MODE.get, "DEFAULT": DEFAULT, "NUMBER": number_dtype,
        "FILLED": _filled, "Tensor": Tensor, "CLOCK": CLOCK,
    }  # fmt: skip
    return does("factory", compile_function("\n".join(lines) + "\n", "factory", f"<factory {op.qualified_name}>", variables))


# ---- uninitialised


@fills(None)
def empty(
    ks: int, size: Sizes, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any, memory_format: Any
) -> Tensor:
    """A tensor with unspecified contents."""
    return _make(size, dtype, layout, device, strides_as(memory_format, size), pin_memory=pin_memory)


def empty_permuted(
    ks: int, size: Sizes, physical_layout: Sizes, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any
) -> Tensor:
    """A tensor with unspecified contents. Its dims lie in memory in the given order, slowest first."""
    if sorted(physical_layout) != list(range(len(size))):
        raise ShapeError(
            f"empty_permuted: physical_layout {list(physical_layout)} must name each of the {len(size)} dimensions once"
        )
    return _make(size, dtype, layout, device, ordered(size, physical_layout), pin_memory=pin_memory)


def empty_strided(
    ks: int, size: Sizes, stride: Sizes, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any
) -> Tensor:
    """A tensor with unspecified contents and the given strides, in elements."""
    if len(size) != len(stride):
        raise ShapeError(texts.unequal_lengths("empty_strided", size, stride))
    return _make(size, dtype, layout, device, stride, pin_memory=pin_memory)


@fills(None)
def empty_like(
    ks: int, self: Tensor, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any, memory_format: Any
) -> Tensor:
    """An uninitialised tensor like self. Shape, layout, dtype and device are those of self unless given."""
    strides = strides_as(memory_format, self.array.shape, self)
    return _make(self.array.shape, dtype or self.dtype, layout, device or self.device, strides, pin_memory=pin_memory)


@fills(None)
def new_empty(
    ks: int, self: Tensor, size: Sizes, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any
) -> Tensor:
    """An uninitialised tensor of another shape. dtype and device are those of self unless given."""
    return _make(size, dtype or self.dtype, layout, device or self.device, pin_memory=pin_memory)


def new_empty_strided(
    ks: int, self: Tensor, size: Sizes, stride: Sizes, dtype: DType | None, layout: Any, device: Device | None,
    pin_memory: Any,
) -> Tensor:  # fmt: skip
    """`new_empty` with strides, in elements."""
    return empty_strided(ks, size, stride, dtype or self.dtype, layout, device or self.device, pin_memory)


# ---- filled with one value


@fills(0)
def zeros(ks: int, size: Sizes, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any) -> Tensor:
    """Zeros."""
    return _make(size, dtype, layout, device, zeros=True, pin_memory=pin_memory)


@fills(1)
def ones(ks: int, size: Sizes, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any) -> Tensor:
    """Ones."""
    return _filled(_make(size, dtype, layout, device, pin_memory=pin_memory), 1, "ones")


@fills("fill_value")
def full(
    ks: int, size: Sizes, fill_value: Any, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any
) -> Tensor:
    """A tensor filled with one value. The value's Python type sets the default dtype."""
    made = _make(size, dtype or number_dtype(fill_value), layout, device, pin_memory=pin_memory)
    return _filled(made, fill_value, "full", "fill_value")


def scalar_tensor(ks: int, s: Any, dtype: DType | None, layout: Any, device: Device | None, pin_memory: Any) -> Tensor:
    """A 0-dim tensor of one value, in the default dtype unless `dtype` is given."""
    return _filled(_make((), dtype, layout, device, pin_memory=pin_memory), s, "scalar_tensor", "s")


@fills(0)
def zeros_like(ks: int, self: Tensor, *options: Any) -> Tensor:
    """Zeros like self."""
    return _filled(empty_like(ks, self, *options), 0, "zeros_like")


@fills(1)
def ones_like(ks: int, self: Tensor, *options: Any) -> Tensor:
    """Ones like self."""
    return _filled(empty_like(ks, self, *options), 1, "ones_like")


@fills("fill_value")
def full_like(ks: int, self: Tensor, fill_value: Any, *options: Any) -> Tensor:
    """A tensor like self, filled with one value. The dtype is that of self, whatever the value's type."""
    return _filled(empty_like(ks, self, *options), fill_value, "full_like", "fill_value")


@fills(0)
def new_zeros(ks: int, self: Tensor, size: Sizes, *options: Any) -> Tensor:
    """Zeros of another shape, like self in dtype and device."""
    return _filled(new_empty(ks, self, size, *options), 0, "new_zeros")


@fills(1)
def new_ones(ks: int, self: Tensor, size: Sizes, *options: Any) -> Tensor:
    """Ones of another shape, like self in dtype and device."""
    return _filled(new_empty(ks, self, size, *options), 1, "new_ones")


@fills("fill_value")
def new_full(ks: int, self: Tensor, size: Sizes, fill_value: Any, *options: Any) -> Tensor:
    """A tensor of another shape, filled with one value."""
    return _filled(new_empty(ks, self, size, *options), fill_value, "new_full", "fill_value")


# ---- in place


@fills("value")
def fill_scalar_(ks: int, self: Tensor, value: Any) -> Tensor:
    """Fill self with a number, converted to self's dtype."""
    if self.storage is not None and self.array.shape:  # only a view can be expanded
        check_expanded("aten::fill_.Scalar", self.device.backend, self)
    try:
        return _filled(self, value, "fill_")
    except Exception as error:
        retell(find_operator("aten::fill_.Scalar"), error, (self, value))
        raise


@fills(0)
def zero_(ks: int, self: Tensor) -> Tensor:
    """0 everywhere."""
    return fill_scalar_(ks, self, 0)
