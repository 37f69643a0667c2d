"""Tensors from data: `tensor` and `as_tensor` take numbers, nested sequences, and other libraries' arrays.

Arrays are read through the buffer protocol or adopted by the device's backend, so no array library is needed here.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from turnout.dtypes import PYTHON_TYPES, DType, bool_, get_default_dtype, int64
from turnout.errors import DataError, DeviceError, DisabledError, DTypeError, PluginError
from turnout.keys import KEYS
from turnout.operators.arguments import as_dtype
from turnout.operators.tracebacks import shorten
from turnout_aten.dtypes import promote_types
from turnout_aten.tensor import host_bytes as elements
from turnout_aten.tensor.devices import FAKE_MODE, default_device
from turnout_aten.tensor.devices import device as named
from turnout_aten.tensor.devices import place as place_of
from turnout_aten.tensor.inference import made as inference_made
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnout.devices import Device
    from turnout_aten.tensor.devices import TensorDevice


def tensor(
    data: Any, *, dtype: DType | type | None = None, device: str | Device | None = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor with a copy of `data`.

    Without `dtype`, an array keeps its own; bools give bool, ints give int64, floats give the default dtype and complex
    numbers give its complex counterpart. Raises DataError for data of another kind or ragged nesting, DTypeError for values
    that the dtype cannot hold.

    Arguments:
        data: a number, nested sequences of numbers, a tensor, or any array with the buffer protocol or of the
            device's library
        dtype: the dtype of the tensor
        device: the device; by default that of a tensor or array, else the default device
        requires_grad: whether gradients with respect to the tensor are wanted

    Example:
        >>> turnout.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    try:
        place = place_of(device)
        if dtype is not None and type(dtype) is not DType:
            dtype = as_dtype("tensor", "dtype", dtype)
        if isinstance(data, Tensor):
            made = data.detach().clone() if device is None else data.detach().to(device=place, copy=True)
            made = made if dtype is None else made.to(dtype)
        else:
            found = _from_array(data, dtype, place)
            made = inference_made(_from_numbers(data, dtype, place) if found is None else found)
        return made.requires_grad_() if requires_grad else made
    except Exception as error:
        shorten(error)
        raise


def new_tensor(
    self: Tensor, data: Any, *, dtype: DType | type | None = None, device: Any = None, requires_grad: Any = False
) -> Tensor:
    """A tensor with a copy of `data`. dtype and device default to those of this tensor; see `turnout.tensor`.

    Arguments:
        data: as for `turnout.tensor`
        dtype: the dtype
        device: the device
        requires_grad: whether gradients with respect to the new tensor are wanted

    Example:
        >>> turnout.tensor([1.0]).new_tensor([2, 3])
        tensor([2., 3.])
    """
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def as_tensor(data: Any, dtype: DType | type | None = None, device: str | Device | None = None) -> Tensor:
    """`data` as a tensor, sharing memory when it is a tensor or a compatible array. Raises as `tensor` does.

    Arguments:
        data: as for `tensor`
        dtype: the dtype; another than that of the data makes a copy
        device: the device; another than that of the data makes a copy. By default that of a tensor, or the device whose manifest
            says that it adopts such arrays, else the default device

    Example:
        >>> turnout.as_tensor([1, 2])
        tensor([1, 2])
    """
    try:
        place = None if device is None else place_of(device)
        if dtype is not None and type(dtype) is not DType:
            dtype = as_dtype("as_tensor", "dtype", dtype)
        if not isinstance(data, Tensor):
            taking = _taking(data)
            there = taking or place or default_device()
            adopted = there.backend.adopt(data)
            if adopted is None:
                return tensor(data, dtype=dtype, device=device)
            data = inference_made(wrap(adopted, there.backend.device_of(adopted) if taking else place_of(device)))
        if place is not None and data.device != place:
            data = data.to(device=place)
        return data if dtype is None or data.dtype is dtype else data.to(dtype)
    except Exception as error:
        shorten(error)
        raise


def _taking(data: Any) -> TensorDevice | None:
    """The device whose backend takes arrays of the package of `data`; None for none, or one that cannot be used."""
    package = type(data).__module__.partition(".")[0]
    for row in KEYS.backend_rows.values() if hasattr(data, "dtype") and not FAKE_MODE.get() else ():
        if package in row.adopts:
            try:
                found = named(row.device)
                return found.backend.resolve_device(found)
            except (DeviceError, PluginError, DisabledError):
                return None
    return None


def operand(self: Tensor, array: Any) -> Tensor:
    """A copy of a NumPy array as a tensor on `cpu`, for an operator between this tensor and the array.

    A copy, because the tape may keep it until the backward pass. Raises DTypeError for an array of other things than numbers.
    """
    # differs from torch: `tensor + array` of a NumPy array is a tensor with the dtype that two tensors would give, and a gradient
    # is recorded. In PyTorch NumPy computes it.
    return tensor(array, device="cpu")


# ---- arrays


def _from_array(data: Any, dtype: DType | None, place: TensorDevice) -> Tensor | None:
    """A copy of another library's array, or None when `data` is not an array."""
    if isinstance(data, (list, tuple, int, float, complex)) and not hasattr(data, "dtype"):
        return None
    backend = place.backend
    adopted = backend.adopt(data)
    if adopted is not None:
        target = dtype if dtype is not None else backend.dtype_of(adopted)
        copied = backend.empty(adopted.shape, target, place)
        backend.copy(copied, adopted)
        return wrap(copied, place)
    if isinstance(data, bytes) or (hasattr(data, "dtype") and elements.foreign_dtype(data.dtype) is None):
        return _from_foreign(data, dtype, place)  # its buffer says that it holds bytes, which are no numbers
    try:
        view = memoryview(data)
    except (TypeError, ValueError, BufferError):
        return _from_foreign(data, dtype, place)
    found = elements.buffer_dtype(view)
    if found is None:
        return _from_foreign(data, dtype, place)
    made = wrap(backend.from_host(view.tobytes(), tuple(view.shape or ()), found, place), place)
    return made if dtype is None or dtype is found else made.to(dtype)


def _from_foreign(data: Any, dtype: DType | None, place: TensorDevice) -> Tensor | None:
    """An array whose buffer cannot be read directly: on another device, in another byte order, or of bfloat16."""
    if not hasattr(data, "tolist") or not hasattr(data, "dtype"):
        return None
    found = dtype or elements.foreign_dtype(data.dtype)
    if found is None:
        raise DTypeError(f"no tensor has dtype {data.dtype}")
    return _from_numbers(data.tolist(), found, place, tuple(data.shape))


# ---- numbers


def _from_numbers(data: Any, dtype: DType | None, place: TensorDevice, shape: tuple[int, ...] | None = None) -> Tensor:
    plain = _plain_numbers(data) if shape is None else None
    if plain is not None:
        shape, numbers, kinds = plain
        if len(kinds) == 1:
            kind = kinds.pop()
            found = dtype or _dtype_of(kind())
            made = place.backend.from_numbers(numbers, shape, found) if elements.OWN.get(found.category) is kind else None
            if made is not None:
                return wrap(made, place)
        else:
            found = dtype or _common_dtype([kind() for kind in kinds])
        return wrap(place.backend.from_host(elements.encode(numbers, found), shape, found, place), place)
    shape = _shape(data) if shape is None else shape
    flat: list[Any] = list(_flat(data, shape, 0))
    found = dtype or _common_dtype(flat)
    values = [value.item() if hasattr(value, "item") else value for value in flat]
    return wrap(place.backend.from_host(elements.encode(values, found), shape, found, place), place)


def _plain_numbers(data: Any) -> tuple[tuple[int, ...], list[Any], set[type]] | None:
    """The shape, the numbers and their types, for numbers of Python's own types in lists and tuples of one shape; else None.

    Read level by level, which takes few steps for any number of elements.
    """
    shape: list[int] = []
    level = [data]
    path: set[int] = set()
    while not (kinds := set(map(type, level))) <= PYTHON_TYPES.keys():
        lengths = set(map(len, level)) if _SEQUENCES.issuperset(kinds) else ()
        if len(lengths) != 1:
            return None
        # Where all sequences of a level have one length, a circle anywhere has no end, and so the first elements have none.
        if id(level[0]) in path:
            raise DataError("tensor: the data contains itself")
        path.add(id(level[0]))
        shape += lengths
        level = list(chain.from_iterable(level))
    return (tuple(shape), level, kinds) if level else None


_SEQUENCES = frozenset({list, tuple})
_DEEPEST = 500  # more than any device has dims, and less than Python has frames for `_flat`


def _shape(data: Any) -> tuple[int, ...]:
    """The shape read off the first element at each depth; `_flat` checks the others against it.

    # differs from torch: a tensor among the data has all of its dims: `tensor([ones(1), ones(1)])` has shape [2, 1]. In PyTorch
    a tensor of one element is a number.
    """
    shape: list[int] = []
    path: list[Any] = []
    while _is_sequence(data):
        if any(data is outer for outer in path):
            raise DataError("tensor: the data contains itself")
        if len(path) == _DEEPEST:
            raise DataError(f"tensor: the data is nested deeper than {_DEEPEST} levels")
        path.append(data)
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
    return tuple(shape)


def _is_sequence(data: Any) -> bool:
    if isinstance(data, (str, bytes, dict)) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        return False
    return not hasattr(data, "shape") or data.shape != ()


def _flat(data: Any, shape: tuple[int, ...], depth: int) -> Iterator[Any]:
    if depth == len(shape):
        if not _is_number(data):
            kind = f"a sequence at depth {depth}" if _is_sequence(data) else f"{type(data).__name__}"
            raise DataError(f"tensor: expected numbers in nested sequences of one shape, got {kind} as a number")
        yield data
        return
    if not _is_sequence(data):
        raise DataError(f"tensor: expected a sequence of length {shape[depth]} at dim {depth}, got {data!r}")
    if len(data) != shape[depth]:
        raise DataError(f"tensor: expected a sequence of length {shape[depth]} at dim {depth}, got length {len(data)}")
    for element in data:
        yield from _flat(element, shape, depth + 1)


def _is_number(value: Any) -> bool:
    if isinstance(value, (int, float, complex)):
        return True
    return hasattr(value, "item") and hasattr(value, "dtype") and getattr(value, "shape", None) == ()


def _common_dtype(values: list[Any]) -> DType:
    """The dtype that all values convert to; the default dtype if there are no values."""
    kinds = {value.dtype if hasattr(value, "dtype") else type(value): value for value in values}
    common: DType | None = None
    for value in kinds.values():
        found = _dtype_of(value)
        common = found if common is None else promote_types(common, found)
    return get_default_dtype() if common is None else common


def _dtype_of(value: Any) -> DType:
    own = getattr(value, "dtype", None)
    if own is not None:
        found = own if isinstance(own, DType) else elements.foreign_dtype(own)
        if found is None:
            raise DTypeError(f"no tensor has dtype {own}")
        return found
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return get_default_dtype() if isinstance(value, float) else get_default_dtype().to_complex()
