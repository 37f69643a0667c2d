"""Plain values in JSON: numbers, strings, None, dtypes and devices, as files of tensors and of graphs hold them.

A value that JSON cannot express is an object with one key that says what it is: {"float": "inf"}, {"complex": ["0.0", "1.0"]},
{"int": "0x1f"} for a long int, {"dtype": "float32"}, {"device": "cpu"}, {"size": [2, 3]}.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import DTYPES, FLOAT, DType
from turnout.errors import FileFormatError, ShapeError
from turnout_aten.files import Damaged, need
from turnout_aten.functions import return_types
from turnout_aten.shapes.extents import reach_of
from turnout_aten.tensor.copying import tensor_at
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.size import Size

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.archives import Archive
    from turnout_aten.tensor.devices import TensorDevice
    from turnout_aten.tensor.storage import Storage
    from turnout_aten.tensor.tensor import Tensor

DEEPEST = 100  # containers inside each other that a file may hold; each level costs stack, of which a program has little
_LONG = 2000  # bits from which an int is written as hex: Python may refuse to read it from decimal digits
TOO_DEEP = f"nested too deep; a file holds at most {DEEPEST} containers inside each other"
NOT_PLAIN: Any = object()


def encode(value: Any) -> Any:
    """The JSON of a plain value; NOT_PLAIN for another one."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if value.bit_length() < _LONG else {"int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, StrEnum):  # a memory format, which equals its name
        return value.value
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Device):
        return {"device": str(value)}
    if kind is Size:
        return {"size": list(value)}
    return NOT_PLAIN


def only(tree: dict[str, Any]) -> tuple[str, Any]:
    """The kind of an object with one key, and what it holds."""
    need(len(tree) == 1, "an object has several kinds, or none")
    return next(iter(tree.items()))


def decode(kind: str, inner: Any) -> Any:
    """The value of an object with this key; NOT_PLAIN for another kind. Raises Damaged for a value that is not of its kind."""
    if kind == "dtype":
        return dtype(inner)
    if kind == "device":
        return place(inner)
    if kind == "float":
        return _read(float, inner, "a float")
    if kind == "int":
        return _read(lambda text: int(text, 16), inner, "an int")
    if kind == "complex":
        parts = fields(inner, 2, "a complex number")
        return complex(*[_read(float, part, "a complex number") for part in parts])
    if kind == "size":
        need(isinstance(inner, list) and all(type(n) is int for n in inner), f"{shown(inner)} is not a size of ints")
        return Size(inner)
    return NOT_PLAIN


def _read(kind: Any, text: Any, what: str) -> Any:
    try:
        return kind(text if isinstance(text, str) else "")
    except ValueError:
        raise Damaged(f"{shown(text)} is not {what}") from None


def dtype(name: Any) -> DType:
    """The dtype of a name."""
    found = DTYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise Damaged(f"{shown(name)} is not the name of a dtype")
    return found


def place(name: Any) -> TensorDevice:
    """The device of a name. Whether it is there is found when it is used."""
    kind, mark, index = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not kind.isidentifier() or (mark and not (index.isascii() and index.isdecimal() and len(index) <= 9)):
        raise Damaged(f"{shown(name)} is not the name of a device")
    return device(name)


def fields(value: Any, count: int, what: str) -> list[Any]:
    """A list of so many elements."""
    need(isinstance(value, list) and len(value) == count, f"{what} is not a list of {count}")
    return value


def row(value: Any, names: frozenset[str], what: str) -> dict[str, Any]:
    """An object that has at least these keys."""
    need(isinstance(value, dict) and names <= value.keys(), f"{what} does not have the fields {', '.join(sorted(names))}")
    return value


def elements(value: Any, what: str) -> list[Any]:
    """A list."""
    need(isinstance(value, list), f"{what} is not a list")
    return value


def size(value: Any, what: str) -> int:
    """A number of elements or bytes, or a place among them."""
    need(type(value) is int and 0 <= value < 1 << 63, f"{what} is {shown(value)}, not a size")
    return value


def distinct(keys: list[Any]) -> list[Any]:
    """The keys of a dict, each of which is there once.

    Keys of one hash, which is easy to arrange for ints, are found one by one: many of them would take a dict for ever to build.
    """
    try:
        hashes = Counter(map(hash, keys))
    except TypeError:
        raise Damaged("a list or dict is the key of a dict") from None
    need(max(hashes.values(), default=0) <= 32, "many keys of a dict have the same hash")
    need(len(set(keys)) == len(keys), "a dict has a key twice")
    return keys


def known(value: Any, kind: str) -> Any:
    """What `decode` made, unless it knows no such kind."""
    need(value is not NOT_PLAIN, f"it holds an object of kind {shown(kind)}")
    return value


def nothing_left(name: str | None) -> None:
    """The name of something that nothing in the file refers to must not be there."""
    need(name is None, f"it holds {shown(name)}, which belongs to nothing in it")


def geometry(
    shape: Any, strides: Any, what: str, number: Callable[[Any, str], int] = size
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A shape and strides, in which `number` reads each."""
    sizes = tuple([number(n, f"a size of {what}") for n in elements(shape, f"the shape of {what}")])
    steps = tuple([number(n, f"a stride of {what}") for n in elements(strides, f"the strides of {what}")])
    need(len(sizes) == len(steps), f"{what} does not have as many sizes as strides")
    return sizes, steps


def tensor(
    flat: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], where: TensorDevice, storage: Storage, what: str
) -> Tensor:
    """A tensor with this offset, shape and strides over the elements of a storage, of which it reaches none that is not there."""
    count, reach = flat.shape[0], 0 if 0 in shape else offset + reach_of(shape, strides)
    need(reach <= count, f"{what} reaches to element {shown(reach)} of a storage of {count}")
    try:
        return tensor_at(flat, (offset, shape, strides), where, storage)
    except (ShapeError, TypeError, ValueError, OverflowError) as error:  # more dims or elements than the backend can count
        raise Damaged(f"{what} cannot have the shape {shown(str(list(shape)))}") from error


def check_tracked(tracked: Any, kind: DType, what: str) -> None:
    """Whether a gradient is required: a bool, and True only where there can be one."""
    fits = tracked is False or (tracked is True and kind.category >= FLOAT)
    need(fits, f"{what} of {kind.name} is said to require a gradient")


def check_keys(keys: list[Any], values: Any) -> None:
    """The keys and the values of a dict."""
    need(len(keys) == len(values), "a dict does not have as many keys as values")


def result_kind(name: Any) -> type[return_types.ReturnType]:
    """The class of an operator's result."""
    try:
        return return_types.standard(name if isinstance(name, str) else "__")
    except AttributeError:
        raise Damaged(f"{shown(name)} is not the name of a result") from None


def check_result(kind: type[return_types.ReturnType], count: int) -> None:
    """The number of values of a result."""
    need(count == len(kind._fields), f"a result of {kind.__name__} has another number of values")


def index(value: Any, count: int, what: str) -> int:
    """The place of one of so many."""
    need(type(value) is int and 0 <= value < count, f"{what} {shown(value)} is not one of {count}")
    return value


def shown(value: Any) -> str:
    """A value from a file in a message: cut where it is long, because nobody knows what it is."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if type(value) is int and value.bit_length() > 64:
        return f"an int of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def parse(text: bytes) -> Any:
    """The values of a JSON text. Raises Damaged for another text, and for one that is nested too deep."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise Damaged("it is nested too deep") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"it is not JSON: {error}") from None
    except Damaged:
        raise
    except ValueError:
        raise Damaged("an int in it has too many digits") from None


def document(archive: Archive, name: str, of: str, form: tuple[str, int], reader: str) -> dict[str, Any]:
    """The JSON object in an entry of an archive, which says this (format, version). Raises FileFormatError for another version.

    `of` and `reader` are what the error names.
    """
    format, version = form
    need(name in archive.entries, f"it has no {name}")
    found = parse(archive.read(name))
    need(isinstance(found, dict) and found.get("format") == format, f"it does not say format {format!r}")
    said = found.get("version")
    if type(said) is not int or said != version:
        raise FileFormatError(f"load: {of} has format version {shown(said)}, this {reader} reads version {version}")
    return found


def bytes_of(archive: Archive, name: str, expected: int) -> bytes:
    """The bytes in an entry of an archive, if there are as many as expected."""
    held = archive.entries[name].size
    need(held == expected, f"{name} has {held} bytes, expected {shown(expected)}")
    return archive.read(name)


def _no_constant(name: str) -> Any:
    raise Damaged(f"it is not JSON: {name}")
