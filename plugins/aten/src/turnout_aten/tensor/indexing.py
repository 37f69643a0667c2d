"""`x[index]` and `x[index] = value`, with PyTorch's meaning, in terms of operators.

Integers, slices, None and `...` become views, one after the other; tensors and lists then go to `index` or `index_put_`
in one call. So, unlike in NumPy, an integer does not influence where the selected dims go.

# differs from torch: slices may have negative steps, which PyTorch refuses. No view has a negative stride: `x[::-1]` is a copy,
that of `flip`, and `x[::-1] = value` writes into `x`.
"""

from __future__ import annotations

import warnings
from array import array
from typing import TYPE_CHECKING, Any

from turnout.dtypes import INT, bool_, int64
from turnout.errors import CallError, DataError, DimError, IndexKindError, RangeError, ShapeError
from turnout.keys import KEYS
from turnout.operators.tracebacks import shorten
from turnout.operators.values import is_symbol
from turnout_aten import operators as aten
from turnout_aten.dtypes import BOUND
from turnout_aten.errors import arguments as argument_texts
from turnout_aten.errors import tensors as texts
from turnout_aten.functions.call_forms import is_number
from turnout_aten.kernels.standing import Standing
from turnout_aten.shapes.indexing import MASK_DTYPES
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_aten.views.shortcuts import index_at_once

if TYPE_CHECKING:
    from turnout_aten.tensor.devices import TensorDevice


def get(tensor: Tensor, index: Any) -> Tensor:
    """`tensor[index]`: a view if the index consists of integers, slices with positive steps, None and `...`, else a copy.

    Raises DimError for an index out of range or too many indices, IndexKindError for an object that is not an index.
    """
    try:
        if index.__class__ is int:
            return aten.select__int(tensor, 0, index)
        if index is None:
            return aten.unsqueeze(tensor, 0)
        found = _cut(tensor, index) if index.__class__ is tuple else _usual(tensor, index)
        backwards: list[int] = []
        viewed, tensors = found or _apply(tensor, index, backwards)
        if backwards:
            viewed = aten.flip(viewed, backwards)
        for item in tensors:
            if item is not None and item.device is not viewed.device:
                tensors = _counted(tensors, viewed)
                break
        if tensors:
            return aten.index__Tensor(viewed, tensors)
        return aten.alias(tensor) if viewed is tensor else viewed
    except Exception as error:
        shorten(error)
        raise


def set(tensor: Tensor, index: Any, value: Any) -> None:
    """`tensor[index] = value`, in place. `value` is a number, or a tensor that expands to the shape of `tensor[index]`.

    x[True] = value writes everything, and x[False] = value nothing, whatever the value. Raises as `get` does, ShapeError for a
    value that does not fit, CallError for one that is neither a number nor a tensor.
    """
    try:
        if value.__class__ is float and _put_at_once(tensor, index, value):
            return
        if index is False:
            return
        if index is True:
            index = None
        backwards: list[int] = []
        viewed, tensors = _usual(tensor, index) or _apply(tensor, index, backwards)
        if not isinstance(value, Tensor):
            if value.__class__ is not float and not is_number(value):
                raise CallError(f"x[index] = value: 'value' must be a number or a tensor, got {type(value).__name__}")
            if not tensors:
                aten.fill___Scalar(viewed, value)
                return
            value = aten.full((), value, dtype=tensor.dtype, device=tensor.device)
        # The value may have more dims than the target if the additional leading ones have length 1.
        shape = value.array.shape
        if shape and shape[0] == 1:
            while shape and shape[0] == 1:
                shape = shape[1:]
            value = aten.reshape(value, shape)
        if not tensors:
            aten.copy_(viewed, aten.flip(aten.expand(value, viewed.array.shape), backwards) if backwards else value)
            return
        for item in tensors:
            if item is not None and item.device is not viewed.device:
                tensors = _counted(tensors, viewed)
                break
        if value.device is not tensor.device and not shape:
            value = aten._to_copy(value, device=tensor.device)
        if backwards:
            turned = aten.flip(viewed, backwards)
            aten.index_put_(turned, tensors, value)
            aten.copy_(viewed, aten.flip(turned, backwards))
            return
        aten.index_put_(viewed, tensors, value)
    except Exception as error:
        shorten(error)
        raise


_PUTS = Standing(full="factory", index_put_="put")
_FILLS = Standing(select__int="view", slice__Tensor="view", fill___Scalar="fill")


def _put_at_once(tensor: Tensor, index: Any, value: float) -> bool:
    """Whether the array module has written a float where an index says: a mask, a vector of indices, ints or slices.

    Only into plain memory, and no view of it, while the operators do what they say. Nobody sees the views that they would make.
    """
    ks, backend, array = tensor.keys, tensor.device.backend, tensor.array
    plain = ks is backend.keys and tensor.view_of is None and tensor.__class__ is Tensor
    ours = plain and backend.view_array is not None and array.__class__ is backend.array_type
    if not ours or array.dtype.char not in "fd":
        return False
    storage = tensor.storage
    if not -BOUND < value < BOUND or (storage is not None and 0 in array.strides):
        return False
    if index.__class__ is Tensor:
        places = index.array
        kind, shape = places.dtype.char, places.shape
        fits = shape == array.shape if kind == "?" else kind == "l" and len(shape) == 1 and array.shape != ()
        if not (fits and shape and index.keys is ks and (storage is None or storage is not index.storage) and _PUTS(ks)):
            return False
    else:
        for item in index if index.__class__ is tuple else (index,):
            if item.__class__ is not int and not (item.__class__ is slice and _is_forward(item)):
                return False
        places = index
        if not array.shape or index == () or not _FILLS(ks):
            return False
    try:
        array[places] = value
    except Exception:  # noqa: BLE001 - nothing was written: the operator says what is wrong
        return False
    if storage is None:
        tensor.ver += 1
    elif storage.ver is not None:
        storage.ver += 1
    else:
        storage.count()
    return True


def _is_forward(item: slice) -> bool:
    """Whether the bounds of a slice are ints or omitted, and its step is positive."""
    plain = _BOUNDS.issuperset((item.start.__class__, item.stop.__class__))
    return plain and (item.step is None or (item.step.__class__ is int and item.step > 0))


def _usual(tensor: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None]] | None:
    """What `_apply` answers for an index of one of the usual kinds, told apart by types alone. None for any other."""
    kind = index.__class__
    shape = tensor.array.shape
    if kind is slice or kind is int:
        if not shape:
            return None
        if kind is int:
            return aten.select__int(tensor, 0, index), []
        if index.step is not None and (index.step.__class__ is not int or index.step < 0):
            return None
        whole = index.start is None and index.stop is None and index.step is None
        return tensor if whole else _sliced(tensor, 0, index), []
    if kind is Tensor:
        own = index.array.shape
        if own:
            dtype = index.dtype
            if (len(own) if dtype in MASK_DTYPES else 1) <= len(shape):
                return tensor, [index]
        return None
    if kind is list:
        return (tensor, [_tensor(index, None, tensor.device)]) if shape and _NUMBERS.issuperset(map(type, index)) else None
    return _cut(tensor, index if kind is tuple else (index,))


def _counted(tensors: list[Tensor | None], indexed: Tensor) -> list[Tensor | None]:
    """The index tensors, with the indices of what they select in place of masks that are on a host, like cpu, of another device.

    The device of `indexed` may have no values, like meta, or may have to compute before it knows how many a mask selects.
    """
    found: list[Tensor | None] = []
    dim = 0
    for item in tensors:
        dims = 1 if item is None else _dims(item)
        mask = item is not None and item.device is not indexed.device and item.dtype in MASK_DTYPES
        if item is not None and mask and item.device.backend.scalars_mix and item.shape == indexed.shape[dim : dim + dims]:
            found += aten.unbind__int(aten.nonzero(item), 1)
        else:
            found.append(item)
        dim += dims
    return found


def _cut(tensor: Tensor, items: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None]] | None:
    """The same for a tuple of ints, slices, None, one `...`, and tensors with dims that are not masks."""
    taken = views = 0
    rest = False
    plain = True  # views only, and bounds that are ints
    for item in items:
        kind = item.__class__
        if kind is int:
            taken += 1
            views += 1
        elif kind is slice:
            taken += 1
            if item.step is not None and (item.step.__class__ is not int or item.step < 0):
                return None
            if item.start is not None or item.stop is not None or item.step is not None:
                views += 1
                if not _BOUNDS.issuperset((item.start.__class__, item.stop.__class__, item.step.__class__)):
                    plain = False
        elif kind is Tensor and item.array.shape and item.dtype not in MASK_DTYPES:
            taken += 1
            plain = False
        elif item is Ellipsis and not rest:
            rest = True
        elif item is None:
            views += 1
        else:
            return None
    left = len(tensor.array.shape) - taken
    if left < 0:
        return None
    if views > 1 and plain and tensor.keys is tensor.device.backend.keys:
        key: tuple[Any, ...] = ()
        for item in items:  # no comprehension: a frame before Python 3.12
            key += ((item.start, item.stop, 1 if item.step is None else item.step) if item.__class__ is slice else item,)
        made = index_at_once()(tensor, key)
        if made is not None:
            return made, []
    viewed = tensor
    tensors: list[Tensor | None] = []
    dim = 0
    for item in items:
        kind = item.__class__
        if kind is int:
            viewed = aten.select__int(viewed, dim, item)
        elif kind is slice:
            if item.start is not None or item.stop is not None or item.step is not None:
                viewed = _sliced(viewed, dim, item)
            dim += 1
        elif item is None:
            viewed = aten.unsqueeze(viewed, dim)
            dim += 1
        elif item is Ellipsis:
            dim += left
        else:
            if dim > len(tensors):
                tensors += (None,) * (dim - len(tensors))
            tensors.append(item)
            dim += 1
    return viewed, tensors


def _apply(tensor: Tensor, index: Any, backwards: list[int]) -> tuple[Tensor, list[Tensor | None]]:
    """The view that everything but tensors gives, and the index tensor of each of its dims, or None.

    A slice with a negative step gives the view of its elements from the front; its dim in the view is added to `backwards`.
    """
    items = index if isinstance(index, tuple) else (index,)
    if index.__class__ is list and _stands_for_a_tuple(index):
        warnings.warn(texts.list_as_tuple(), UserWarning, stacklevel=3)
        items = tuple(index)
    device = tensor.device
    ndim = len(tensor.array.shape)
    items = tuple([item if item.__class__ in _PLAIN else _item(item, device) for item in items])
    missing = ndim - sum([1 if item.__class__ is int or item.__class__ is slice else _dims(item) for item in items])
    if missing < 0:
        raise DimError(argument_texts.too_many_indices("", ndim - missing, ndim))
    viewed = tensor
    tensors: list[Tensor | None] = []
    dim = 0
    seen_ellipsis = False
    for item in items:
        if item.__class__ is int or is_symbol(item):
            viewed = aten.select__int(viewed, dim, item)
        elif item.__class__ is slice:
            step = item.step if item.step is None else _bound(item.step)
            if step.__class__ is int and step < 0:
                item = _turned(viewed.array.shape[dim], item.start, item.stop, step)
                backwards.append(dim)
            viewed = _sliced(viewed, dim, item)
            dim += 1
        elif item is None:
            viewed = aten.unsqueeze(viewed, dim)
            dim += 1
        elif item is Ellipsis:
            if seen_ellipsis:
                # differs from torch: an index with two ellipses, `x[..., 0, ...]`, is refused, as in NumPy. PyTorch reads the
                # second one as a full slice.
                raise DimError("an index can have only one ellipsis ('...')")
            seen_ellipsis = True
            dim += missing
        elif item.__class__ is bool:
            # x[True] equals x[None], and x[False] is empty: both add a dim and select index 0 or nothing from it.
            viewed = aten.unsqueeze(viewed, dim)
            _put(tensors, dim, _tensor([0] if item else [], int64, tensor.device))
            dim += 1
        else:
            _put(tensors, dim, item)
            dim += _dims(item)
    return viewed, tensors


def _stands_for_a_tuple(index: list[Any]) -> bool:
    """Whether PyTorch reads a list as a tuple: it holds more than numbers, and fewer than 32 items."""
    kinds = (list, tuple, range, slice, Tensor, type(None), type(Ellipsis))
    return len(index) < 32 and any(isinstance(item, kinds) or _is_array(item) for item in index)


def _is_array(item: Any) -> bool:
    return hasattr(item, "tolist") and getattr(item, "shape", ()) != ()


def _put(tensors: list[Tensor | None], dim: int, item: Tensor) -> None:
    # A mask of n dims is one entry for n dims.
    taken = sum([1 if t is None else _dims(t) for t in tensors])
    tensors.extend([None] * (dim - taken))
    tensors.append(item)


def _dims(item: Any) -> int:
    """How many dims an item consumes."""
    if item is None or item is Ellipsis or item.__class__ is bool:
        return 0
    return item.ndim if isinstance(item, Tensor) and item.dtype in MASK_DTYPES else 1


def _sliced(viewed: Tensor, dim: int, item: slice) -> Tensor:
    start, stop, step = item.start, item.stop, item.step
    if start is None and stop is None and step is None:
        return viewed
    return aten.slice__Tensor(
        viewed,
        dim,
        start if start is None or start.__class__ is int else _bound(start),
        stop if stop is None or stop.__class__ is int else _bound(stop),
        1 if step is None else step if step.__class__ is int else _bound(step),
    )


def _turned(length: Any, start: Any, stop: Any, step: int) -> slice:
    """The slice with the elements of one whose step is negative, from the front. Raises ShapeError for a length that is a symbol,
    unless all of it is meant."""
    if start is None and stop is None and step == -1:
        return slice(None)
    first, last = [value if value is None else _bound(value) for value in (start, stop)]
    if any(map(is_symbol, (length, first, last))):
        raise ShapeError(texts.backwards_over_symbol(step))
    found = range(*slice(first, last, step).indices(length))
    return slice(found[-1], found[0] + 1, -step) if found else slice(0, 0)


def _bound(value: Any) -> Any:
    try:
        return value if is_symbol(value) else int(value.__index__())
    except (AttributeError, TypeError):
        raise CallError(f"a slice takes integers, got {type(value).__name__}") from None


def _item(item: Any, device: TensorDevice) -> Any:
    """An item as an int, bool, slice, None, Ellipsis or an index tensor; lists become tensors on `device`."""
    if item.__class__ in _PLAIN or item is None or item is Ellipsis or is_symbol(item):
        return item
    if isinstance(item, Tensor):
        dtype = item.dtype
        if item.ndim == 0 and dtype.category <= INT and not item.keys & _BATCHED:
            found = item.item()
            return bool(found) if dtype in MASK_DTYPES else found if is_symbol(found) else int(found)
        return item
    if hasattr(item, "tolist"):
        item = item.tolist()
    if isinstance(item, (list, tuple, range)):
        return _tensor(item, None, device)
    if item.__class__ in _PLAIN:
        return item
    if hasattr(item, "__index__"):
        return int(item.__index__())
    raise IndexKindError(
        f"an index consists of ints, slices, None, '...', bools, lists and integer or bool tensors; got {type(item).__name__}"
    )


_PLAIN = frozenset({int, bool, slice})
_NUMBERS = frozenset({int, bool})
_BOUNDS = frozenset({int, type(None)})
_BATCHED = KEYS.bit("Batched")  # inside vmap an index can be a different number for each example


def _tensor(data: Any, dtype: Any, device: TensorDevice) -> Tensor:
    """An index tensor from nested lists: bool if all elements are bools, else int64."""
    values: list[Any] = []
    shape: tuple[int, ...]
    if data.__class__ is list and _NUMBERS.issuperset(map(type, data)):
        values, shape = data, (len(data),)
    else:
        shape = _flatten(data, values)
    kinds = frozenset(map(type, values))
    if dtype is None:
        dtype = bool_ if kinds == {bool} else int64
    if kinds == {bool if dtype is bool_ else int}:
        made = device.backend.from_numbers(values, shape, dtype)
        if made is not None:
            return wrap(made, device)
    try:
        raw = array("b" if dtype is bool_ else "q", values)
    except OverflowError:
        raise RangeError(f"an int of a list used as an index does not fit in int64, got {data!r}"[:120]) from None
    except TypeError:
        raise IndexKindError(f"a list used as an index must hold ints or bools, got {data!r}"[:120]) from None
    return wrap(device.backend.from_host(raw.tobytes(), shape, dtype, device), device)


def _flatten(data: Any, values: list[Any]) -> tuple[int, ...]:
    if hasattr(data, "tolist"):
        data = data.tolist()
    if not isinstance(data, (list, tuple, range)):
        values.append(data)
        return ()
    shapes = [_flatten(element, values) for element in data]
    if any(shape != shapes[0] for shape in shapes):
        raise DataError("a list used as an index must be rectangular: its inner lists must have the same length")
    return (len(shapes), *(shapes[0] if shapes else ()))
