"""Copies, conversions and fills. Copies within a backend go from array to array; between backends they go through host bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import BOOL, COMPLEX, FLOAT, PYTHON_TYPES, DType
from turnout.errors import ArgumentError, DimError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.endings import OTHER_DTYPE, ROW_MAJOR, SAME_DTYPE, copies, element, ends_in, shortcut
from turnout_aten.composites.layouts import lying
from turnout_aten.dtypes import check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.factories import check_layout, strides_as
from turnout_aten.kernels.outputs import check_expanded
from turnout_aten.shapes.extents import contiguous_strides, expands_to, numel
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.tensor.devices import place
from turnout_aten.tensor.inference import mark
from turnout_aten.tensor.pinning import pinned_array
from turnout_aten.tensor.storage import Storage
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.tensor.devices import TensorDevice


def _in_one_step(call: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a row-major tensor that the backend duplicates, without two frames. Only the dtype may be given."""

    def duplicated(
        ks: int, self: Tensor, dtype: DType | None, layout: Any, device: Any, pinned: Any, non_blocking: Any, memory_format: Any
    ) -> Any:
        if self.__class__ is Tensor and not (layout or device or pinned or non_blocking or memory_format):
            array, own = self.array, self.device
            shape = array.shape
            if len(shape) < 2 or (1 not in shape and 0 not in shape):  # a dim of length 1 may have any stride, which is kept
                try:
                    array = own.backend.duplicate(array, dtype or self.dtype)
                except Exception:  # noqa: BLE001 - the kernel says what is wrong
                    array = None
                if array is not None:
                    return wrap(array, own)
        return call(ks, self, dtype, layout, device, pinned, non_blocking, memory_format)

    return duplicated


def _cloned_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """A copy that the backend makes in one step, without two frames."""

    def cloned(ks: int, self: Tensor, memory_format: Any) -> Any:
        if self.__class__ is Tensor:
            array, device = self.array, self.device
            made, shape = None, array.shape
            try:
                if memory_format is None:
                    if len(shape) < 2 or (1 not in shape and 0 not in shape):  # as above
                        made = device.backend.duplicate(array, self.dtype)
                elif memory_format == "contiguous_format":
                    made = device.backend.row_major_copy(array)
            except Exception:  # noqa: BLE001 - as above
                made = None
            if made is not None:
                return wrap(made, device)
        return call(ks, self, memory_format)

    return cloned


@shortcut(_cloned_at_once)
@copies()
def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in new memory, with the same layout if that is dense."""
    dtype = self.dtype
    made = _row_major_copy(self, dtype, memory_format)
    if made is None:
        made = _converted(self, dtype, self.device, strides_as(memory_format, self.array.shape, self))
    return made


def _row_major_copy(self: Tensor, dtype: DType, memory_format: Any) -> Tensor | None:
    """A copy of a row-major tensor in one step; None if the backend or the layout needs more of them."""
    device = self.device
    array = self.array
    if memory_format != "contiguous_format":
        shape = array.shape
        # A dim of length 1 may have any stride, which the copy keeps.
        if (memory_format is not None and memory_format != "preserve_format") or (len(shape) > 1 and (1 in shape or 0 in shape)):
            return None
    made = device.backend.duplicate(array, dtype)
    if made is None and memory_format == "contiguous_format" and dtype is self.dtype:
        made = device.backend.row_major_copy(array)
    return None if made is None else wrap(made, device)


@ends_in("", "self", self=ROW_MAJOR, memory_format="contiguous_format")
def contiguous(self: Tensor, *, memory_format: Any = "contiguous_format") -> Tensor:
    """self if it already has the memory format (row-major by default), else a copy that has it."""
    if _laid_out(self, memory_format):
        return self
    return aten.clone(self, memory_format=memory_format)


def _laid_out(self: Tensor, memory_format: Any) -> bool:
    """Whether a tensor has the strides of a memory format. Always true for preserve_format."""
    if memory_format is None or memory_format == "preserve_format":
        return True
    if memory_format == "contiguous_format":
        return self.is_contiguous()
    wanted = strides_as(memory_format, self.array.shape) or ()
    return all(have == want for n, have, want in zip(self.shape, self.stride(), wanted, strict=True) if n != 1)


def _converted(
    self: Tensor, dtype: DType, device: TensorDevice, strides: tuple[int, ...] | None, *, pin_memory: Any = None,
    non_blocking: bool = False,
) -> Tensor:  # fmt: skip
    backend = device.backend
    array = pinned_array(self.array.shape, dtype, device, strides) if pin_memory else None
    if array is None:
        array = backend.empty(self.array.shape, dtype, device, strides)
    _write(backend, array, device, self, non_blocking)
    return wrap(array, device)


def _write(backend: TensorBackend, array: Any, device: Device, source: Tensor, non_blocking: bool = False) -> None:
    """Copy a tensor's elements into an array of the same shape."""
    moved = source.array
    if source.device is not device:
        if non_blocking and backend.receive_later(array, source):
            return
        moved = backend.received(source, device)
    backend.copy(array, moved)


def _copy_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """A copy between row-major arrays of one shape and dtype on one device, without five frames: 800 ns of 2,700."""

    def copy_(ks: int, self: Tensor, src: Tensor, non_blocking: bool) -> Any:
        if self.__class__ is Tensor and src.__class__ is Tensor and src.device is self.device and src is not self:
            target, source, backend = self.array, src.array, self.device.backend
            row_major, ours = backend.row_major, target.__class__ is backend.array_type is source.__class__
            alike = ours and target.shape == source.shape and target.dtype is source.dtype
            if alike and row_major is not None and row_major(target):
                try:
                    backend.copy(target, source)
                    return self
                except Exception:  # noqa: BLE001 - the kernel says what is wrong
                    pass
        return call(ks, self, src, non_blocking)

    return copy_


@shortcut(_copy_at_once)
@element("copy")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write `src`, expanded to self's shape and converted to its dtype, from any device."""
    if self is src:
        return self
    backend = self.device.backend
    check_expanded("aten::copy_", self.device.backend, self)
    shape = self.array.shape
    if src.array.shape != shape:
        if not expands_to(src.array.shape, shape):
            raise ShapeError(texts.not_expanded("copy_", "src", src.array.shape, shape))
        src = aten.expand(src, shape)
    _write(backend, self.array, self.device, src, non_blocking)
    return self


@shortcut(_in_one_step)
@copies(into="dtype")
def to_copy(
    self: Tensor, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None, non_blocking: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A copy with another dtype or on another device."""
    if layout is not None:
        check_layout(layout)
    if device is None and not pin_memory:
        made = _row_major_copy(self, dtype or self.dtype, memory_format)
        if made is not None:
            return made
    strides, where = strides_as(memory_format, self.array.shape, self), self.device if device is None else place(device, self)
    return _converted(self, dtype or self.dtype, where, strides, pin_memory=pin_memory, non_blocking=non_blocking)


def _to(
    self: Tensor, dtype: DType | None, device: Device | None, copy: bool, memory_format: Any, non_blocking: bool = False
) -> Tensor:
    """self if nothing changes, else a converted copy."""
    device = None if device is None else place(device, self)
    if (
        not copy
        and (dtype is None or dtype is self.dtype)
        and (device is None or device is self.device)
        and (memory_format is None or _laid_out(self, memory_format))
    ):
        return self
    return aten._to_copy(self, dtype=dtype, device=device, non_blocking=non_blocking, memory_format=memory_format)


@ends_in("", "self", dtype=SAME_DTYPE, copy=False, memory_format=None)
@ends_in("aten::_to_copy", "self", "dtype", keywords=1, dtype=OTHER_DTYPE, memory_format=None)
def to_dtype(self: Tensor, dtype: DType, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Tensor:
    """In another dtype."""
    return _to(self, dtype, None, copy, memory_format)


def to_device(
    self: Tensor, device: Device, dtype: DType, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Tensor:
    """On another device, in another dtype."""
    return _to(self, dtype, device, copy, memory_format, non_blocking)


def to_dtype_layout(
    self: Tensor, *, dtype: DType | None = None, layout: Any = None, device: Device | None = None,
    pin_memory: bool | None = None, non_blocking: bool = False, copy: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A conversion by keywords."""
    check_layout(layout)
    return _to(self, dtype, device, copy, memory_format, non_blocking)


def to_other(self: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Tensor:
    """In the dtype and on the device of another tensor."""
    return _to(self, other.dtype, other.device, copy, memory_format, non_blocking)


def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """`src` with the shape, dtype, layout and device of self."""
    if not expands_to(src.shape, self.shape):
        raise ShapeError(texts.not_expanded("copy", "src", src.shape, self.shape))
    spread = aten.to__other(aten.expand(src, self.shape), self)
    made: Tensor = aten.clone(spread, memory_format="contiguous_format")
    return lying(made, as_operands(self.shape, self))


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """In the dtype and on the device of another tensor."""
    return aten.to__other(self, other)


def item(self: Tensor) -> bool | int | float | complex:
    """The Python number in a tensor of one element."""
    return aten._local_scalar_dense(self)


# ---- fills


def fill_tensor_(self: Tensor, value: Tensor) -> Tensor:
    """Fill self with the value of a 0-dim tensor."""
    zero_dims("fill_", value)
    aten.copy_(self, value)
    return self


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number where all indices are equal. With `wrap`, a tall matrix gets another diagonal, one row after the first."""
    shape = self.shape
    if len(shape) < 2:
        raise DimError(texts.needs_dims("fill_diagonal_", 2, shape))
    if len(shape) > 2:
        if len(set(shape)) > 1:
            raise ShapeError(f"fill_diagonal_: all dimensions must have one length, got shape {list(shape)}")
        places = aten.arange(shape[0], device=self.device)
        aten.index_put_(self, [places] * len(shape), aten.new_full(self, (), fill_value))
        return self
    rows, columns = shape
    for start in range(0, rows if wrap else 1, columns + 1):
        aten.fill___Scalar(aten.diagonal(aten.slice__Tensor(self, 0, start)), fill_value)
    return self


def fill_scalar(self: Tensor, value: Any) -> Tensor:
    """A tensor like self, filled with a number."""
    return aten.full_like(self, value)


def fill_tensor(self: Tensor, value: Tensor) -> Tensor:
    """fill_scalar with the value of a 0-dim tensor."""
    zero_dims("fill", value)
    return aten.copy_(aten.empty_like(self), value)


def zero_dims(name: str, value: Tensor) -> None:
    """Raise ShapeError for a value with dims."""
    if value.array.shape:
        raise ShapeError(texts.no_number(name, value.array.shape))


@element("fill where")
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` where the mask is true, else self, in self's dtype. self and the mask broadcast."""
    dtype = self.dtype
    is_tensor = isinstance(value, Tensor)
    is_complex = value.dtype.category == COMPLEX if is_tensor else isinstance(value, complex)
    if is_complex and dtype.category != COMPLEX:
        raise DTypeError(texts.complex_into("masked_fill", dtype))
    if is_tensor:
        zero_dims("masked_fill", value)
        made: Tensor = aten.where__self(mask, value, self)
    else:
        check_held(dtype, value, "masked_fill", "value")
        if dtype.category < FLOAT:  # the number is converted to self's dtype before it is promoted with it
            value = bool(value) if dtype.category == BOOL else int(value)
        made = aten.where__ScalarSelf(mask, value, self)
    return lying(made if made.dtype is dtype else aten._to_copy(made, dtype=dtype))


def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """masked_fill, written into self, to which the mask is broadcast."""
    if not expands_to(mask.array.shape, self.array.shape):
        raise ShapeError(texts.not_expanded("masked_fill_", "mask", mask.array.shape, self.array.shape))
    aten.copy_(self, masked_fill(self, mask, value))
    return self


# ---- sizes and values


def resize_(self: Tensor, size: Sequence[int], *, memory_format: Any = None) -> Tensor:
    """Change the shape in place: row-major from the same first element. New elements are unspecified. A tensor that has the shape
    stays as it is, however it lies, unless a memory format is given.

    # differs from torch: a tensor that outgrows its memory in `resize_` moves to a new one, and its views keep the old one.
    PyTorch's views follow it; here each tensor has an array of its own, and not all that share a memory are known.
    """
    shape = tuple(size)
    if any(n < 0 for n in shape):
        raise ShapeError(texts.negative_length("resize_", shape))
    if memory_format is None and shape == self.array.shape:
        return self
    backend = self.device.backend
    strides = strides_as(memory_format, shape) or contiguous_strides(shape)
    root = self.array if self.storage is None else self.storage.array
    offset = 0 if self.storage is None else self.offset
    needed = offset + numel(shape)
    if needed > backend.storage_size(root):
        grown = backend.empty((needed,), self.dtype, self.device)
        kept = backend.storage_size(root)
        if kept:
            backend.copy(backend.strided(grown, (kept,), (1,), 0), backend.strided(root, (kept,), (1,), 0))
        root = grown
        if self.storage is not None:
            inference = self.is_inference()
            self.storage, self.view_of = Storage(root, 0 if inference else self.storage.version()), None
            if inference:
                mark(self)
    self.array = backend.strided(root, shape, strides, offset)
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """resize_ to another tensor's shape."""
    if memory_format == "preserve_format":
        memory_format = None if the_template.is_contiguous() else "channels_last"
    aten.resize_(self, the_template.shape, memory_format=memory_format)
    return self


def _read_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """The number of a tensor of one element, without two frames, where the backend has a function that reads it."""

    def local_scalar_dense(ks: int, self: Tensor) -> Any:
        read = self.device.backend.read_number
        if read is not None:
            try:
                number = read(self.array)
                if number.__class__ in PYTHON_TYPES:
                    return number
            except Exception:  # noqa: BLE001 - the kernel says what is wrong
                pass
        return call(ks, self)

    return local_scalar_dense


@shortcut(_read_at_once)
@element("read")
def local_scalar_dense(self: Tensor) -> bool | int | float | complex:
    """The Python number in a tensor of one element."""
    if self.array.shape and numel(self.array.shape) != 1:
        raise ArgumentError(texts.not_one_element("", self.array.shape, "; use tolist()"))
    return self.device.backend.item(self.array)


def lift_fresh(self: Tensor) -> Tensor:
    """An alias of a tensor that was just made from data, for programs that were recorded around it."""
    return aten.alias(self)


def lift_fresh_copy(self: Tensor) -> Tensor:
    """A copy of a tensor that a recorded program holds, so that writes into it stay in one run."""
    return aten.clone(self, memory_format="contiguous_format")
