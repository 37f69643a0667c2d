"""Copies that outlive a tensor: deepcopy, pickle, and files.

All three record a tensor as a storage (dtype, device, bytes) and its place in the storage. Tensors that share a storage share the
copy, and a tensor that occurs twice is one tensor in the copy. deepcopy and pickle keep the class and the attributes of a
subclass instance. Files hold only data: a zip archive of one JSON document and the bytes. Reading a file never runs code from it.
"""

from __future__ import annotations

import copy
import json
import math
import os
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from turnout.devices import Device
from turnout.dtypes import DType, dtype_named
from turnout.errors import AliasError, CallError, FileFormatError, NoDataError
from turnout_aten.functions import return_types
from turnout_aten.tensor.backend_keys import kept_keys
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.grad_mode import tracked_levels
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.storage import Storage
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from turnout_aten.tensor.devices import TensorDevice

    Place = tuple[int, tuple[int, ...], tuple[int, ...]]
    MapLocation = str | Device | Mapping[str, str] | Callable[[str], str | Device | None] | None

FORMAT, VERSION = "turnout", 1


def _place(tensor: Tensor) -> Place:
    """The place of a tensor in its storage: offset, shape, strides, in elements."""
    offset = tensor.offset if tensor.storage is not None else 0
    return offset, tensor.shape, tensor.stride()


def _root(tensor: Tensor) -> Any:
    return tensor.array if tensor.storage is None else tensor.storage.array


def _flat(tensor: Tensor) -> Any:
    """All of the storage's memory as one array of one dim."""
    backend, root = tensor.device.backend, _root(tensor)
    return backend.strided(root, (backend.storage_size(root),), (1,), 0)


def _at(flat: Any, place: Place, where: TensorDevice, storage: Storage | None) -> Tensor:
    """A tensor at a place of a flat array."""
    offset, shape, strides = place
    made = wrap(where.backend.strided(flat, tuple(shape), tuple(strides), offset), where)
    made.storage = storage
    made.offset = offset
    return made


# ---- instances of subclasses


def _state(tensor: Tensor) -> Any:
    """The state that a subclass adds to an instance, from its `__getstate__`; by default the attributes. None if empty."""
    state: Any = tensor.__getstate__()
    if type(tensor).__getstate__ is not object.__getstate__:
        return state
    attributes, slots = state
    own = {name: value for name, value in slots.items() if name not in Tensor.__slots__}
    return (attributes, own) if attributes or own else None


def _restore(tensor: Tensor, state: Any) -> None:
    """Restore the state that `_state` returned."""
    if state is None:
        return
    if hasattr(tensor, "__setstate__"):
        tensor.__setstate__(state)
        return
    attributes, slots = state
    for name, value in {**(attributes or {}), **slots}.items():
        setattr(tensor, name, value)


def shallow_copy(tensor: Tensor) -> Tensor:
    """Another tensor over the same memory, of the same class, with the same history and the same attributes."""
    made = _in_class(tensor.new_alias(tensor.array, tensor.storage_offset()), type(tensor))
    made.set_gmask(tensor.gmask)
    if tensor.gmask:
        made.node = tensor.node
    if type(tensor) is not Tensor:
        _restore(made, _state(tensor))
    return made


def _in_class(plain: Tensor, cls: type[Tensor]) -> Tensor:
    if cls is Tensor:
        return plain
    from turnout_aten.tensor.subclasses import as_subclass

    made: Tensor = as_subclass(plain, cls)
    return made


# ---- deepcopy


def deepcopy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with the same values, gradient included; tensors that share memory share it in the copy.

    Raises AliasError for a tensor with history, or one that a functional transform tracks, because the graph is not copied.
    """
    found = memo.get(id(tensor))
    if found is not None:
        return found  # type: ignore[no-any-return]
    if not tensor.is_leaf or tracked_levels(tensor) & ~1:
        raise AliasError("deepcopy: only leaves can be copied with their gradient state; use .detach() first")
    key = id(tensor if tensor.storage is None else tensor.storage)
    copied = memo.get(("storage", key))  # type: ignore[call-overload]
    if copied is None:
        backend, flat = tensor.device.backend, _flat(tensor)
        target = backend.empty(flat.shape, tensor.dtype, tensor.device)
        backend.copy(target, flat)
        copied = memo[("storage", key)] = Storage(target, CLOCK.epoch)  # type: ignore[index]
    made = _in_class(_at(copied.array, _place(tensor), tensor.device, copied), type(tensor))
    memo[id(tensor)] = made
    made.keys = kept_keys(made.keys, tensor.keys)
    made.set_gmask(tensor.gmask & 1)
    if type(tensor) is not Tensor:
        _restore(made, copy.deepcopy(_state(tensor), memo))
    if tensor.grad is not None:
        made.grad = deepcopy(tensor.grad, memo)
    return made


# ---- pickle


class Memory:
    """A storage as pickle sees it: one object for all tensors that share it, so that pickle's memo keeps them together.

    It holds a reference to the storage, so that the id is not reused while the record lives.
    """

    __slots__ = ("__weakref__", "device", "dtype", "flat", "owner")

    def __init__(self, flat: Any, dtype: DType, where: TensorDevice, owner: Storage | None) -> None:
        self.flat = flat
        self.dtype = dtype
        self.device = where
        self.owner = owner

    def __reduce__(self) -> tuple[Any, ...]:
        backend = self.device.backend
        try:
            data = bytes(backend.to_host(self.flat))
        except NoDataError:
            data = None
        return (_read_memory, (str(self.device), self.dtype.name, self.flat.shape[0], data))


_MEMORIES: WeakValueDictionary[int, Memory] = WeakValueDictionary()


def _memory(tensor: Tensor) -> Memory:
    storage = tensor.storage
    found = None if storage is None else _MEMORIES.get(id(storage))
    if found is None:
        found = Memory(_flat(tensor), tensor.dtype, tensor.device, storage)
        if storage is not None:
            _MEMORIES[id(storage)] = found
    return found


def reduce(tensor: Tensor, protocol: Any = None) -> tuple[Any, ...]:
    """The parts that pickle stores. A tensor with history comes back as a leaf that requires a gradient, without `.grad`."""
    made = (_memory(tensor), _place(tensor), bool(tensor.gmask & 1))
    cls = type(tensor)
    return (_read_tensor, made) if cls is Tensor else (_read_tensor, (*made, cls), _state(tensor))


def _read_memory(place: str, dtype: str, size: int, data: bytes | None) -> Memory:
    where, kind = device(place), dtype_named(dtype)
    backend = where.backend
    flat = backend.empty((size,), kind, where) if data is None else backend.from_host(data, (size,), kind, where)
    return Memory(flat, kind, where, Storage(flat, CLOCK.epoch))


def _read_tensor(memory: Memory, place: Place, requires_grad: bool, cls: type[Tensor] = Tensor) -> Tensor:
    made = _in_class(_at(memory.flat, place, memory.device, memory.owner), cls)
    return made.requires_grad_() if requires_grad else made


# ---- files


def save(obj: Any, path: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write tensors in dicts, lists and tuples, with numbers, strings and None, to a file.

    An existing file is replaced only when everything has been written. Raises CallError, naming the place, for any other
    object, including instances of subclasses of Tensor. Then no file is left behind.
    """
    writer = _Writer()
    tree = writer.tree(obj, "obj")
    if not isinstance(path, (str, os.PathLike)):
        writer.write(tree, path)
        return
    target = Path(path)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            writer.write(tree, file)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


class _Writer:
    """Turns an object into JSON values and collects the storages it meets."""

    def __init__(self) -> None:
        self.storages: list[dict[str, Any]] = []
        self.blobs: list[Any] = []
        self.known: dict[int, int] = {}
        self.tensors: dict[int, int] = {}
        self.kept: list[Any] = []  # so that no id is reused while writing
        self.open: set[int] = set()

    def tree(self, obj: Any, where: str) -> Any:
        if obj is None or type(obj) in (bool, int, str):
            return obj
        if type(obj) is float:
            return obj if math.isfinite(obj) else {"float": repr(obj)}
        if type(obj) is complex:
            return {"complex": [repr(obj.real), repr(obj.imag)]}
        if isinstance(obj, Tensor):
            return self.tensor_or_again(obj, where)
        if type(obj) in (list, tuple, dict, OrderedDict) or return_types.is_standard(type(obj)):
            return self.container(obj, where)
        if isinstance(obj, DType):
            return {"dtype": obj.name}
        raise CallError(
            f"save: {where} is a {type(obj).__name__}; files hold tensors, numbers, strings, None, dicts, lists, tuples"
        )

    def container(self, obj: Any, where: str) -> Any:
        if id(obj) in self.open:
            raise CallError(f"save: {where} contains itself")
        self.open.add(id(obj))
        if type(obj) is list:
            made: Any = [self.tree(v, f"{where}[{i}]") for i, v in enumerate(obj)]
        elif isinstance(obj, tuple):
            made = {"tuple": [self.tree(v, f"{where}[{i}]") for i, v in enumerate(obj)]}
            if return_types.is_standard(type(obj)):
                made = {"result": [type(obj).__name__, made]}
        else:
            items = [[self.tree(k, f"a key of {where}"), self.tree(v, f"{where}[{k!r}]")] for k, v in obj.items()]
            made = {"dict": items}
        self.open.discard(id(obj))
        return made

    def tensor_or_again(self, tensor: Tensor, where: str) -> dict[str, Any]:
        if type(tensor) is not Tensor:
            raise CallError(
                f"save: {where} is a {type(tensor).__name__}; files hold data, not classes\n"
                "  to fix  save turnout.as_subclass(t, turnout.Tensor), or use pickle"
            )
        number = self.tensors.get(id(tensor))
        if number is not None:
            return {"again": number}
        self.tensors[id(tensor)] = len(self.tensors)
        self.kept.append(tensor)
        return {"tensor": self.tensor(tensor)}

    def tensor(self, tensor: Tensor) -> dict[str, Any]:
        owner = tensor if tensor.storage is None else tensor.storage
        number = self.known.get(id(owner))
        if number is None:
            number = self.known[id(owner)] = len(self.storages)
            flat = _flat(tensor)
            try:
                self.blobs.append(tensor.device.backend.to_host(flat))
            except NoDataError:
                self.blobs.append(None)
            self.storages.append({"dtype": tensor.dtype.name, "device": str(tensor.device), "size": flat.shape[0]})
            self.kept.append(owner)
        offset, shape, strides = _place(tensor)
        place = {"storage": number, "offset": offset, "shape": list(shape), "strides": list(strides)}
        return place | {"requires_grad": bool(tensor.gmask & 1)}

    def write(self, tree: Any, file: IO[bytes]) -> None:
        head = {"format": FORMAT, "version": VERSION, "storages": self.storages, "object": tree}
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            archive.writestr("data.json", json.dumps(head, allow_nan=False))
            for number, blob in enumerate(self.blobs):
                if blob is not None:
                    with archive.open(f"storages/{number}", "w", force_zip64=True) as entry:
                        entry.write(blob)


def load(path: str | os.PathLike[str] | IO[bytes], *, map_location: MapLocation = None) -> Any:
    """Read an object that `save` wrote.

    map_location  None: the saved devices. A device: that device for everything. A mapping or function: from a saved device
                  string to a device; None keeps the saved one

    Raises FileFormatError for a file that `save` did not write or that is damaged, OSError for a file that cannot be read.
    """
    name = str(path) if isinstance(path, (str, os.PathLike)) else getattr(path, "name", "the file")
    try:
        with zipfile.ZipFile(path) as archive:
            return _Reader(archive, name, map_location).read()
    except (zipfile.BadZipFile, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"load: {name} was not written by turnout.save: {error}") from error


class _Reader:
    """Turns the document back into objects. Everything in it is checked because the file may come from anywhere."""

    def __init__(self, archive: zipfile.ZipFile, name: str, map_location: MapLocation) -> None:
        self.archive = archive
        self.name = name
        self.map_location = map_location
        self.loaded: dict[int, tuple[Any, TensorDevice, Storage]] = {}
        self.tensors: list[Tensor] = []
        self.storages: list[Any] = []

    def wrong(self, what: str) -> FileFormatError:
        return FileFormatError(f"load: {self.name} was not written by turnout.save, or is damaged: {what}")

    def read(self) -> Any:
        try:
            head = json.loads(self.archive.read("data.json"))
        except KeyError:
            raise self.wrong("it has no data.json") from None
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise self.wrong("its data.json names another format")
        if head.get("version") != VERSION:
            found = head.get("version")
            raise FileFormatError(f"load: {self.name} has format version {found}, this Turnout reads version {VERSION}")
        self.storages = head.get("storages", [])
        try:
            return self.object(head.get("object"))
        except (AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise self.wrong(f"{type(error).__name__}: {error}") from error

    def object(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.object(v) for v in tree]
        if not isinstance(tree, dict):
            return tree
        ((kind, value),) = tree.items()
        if kind == "tuple":
            return tuple(self.object(v) for v in value)
        if kind == "result":
            return return_types.standard(value[0])(self.object(value[1]))
        if kind == "dict":
            return {self.object(k): self.object(v) for k, v in value}
        if kind == "float":
            return float(value)
        if kind == "complex":
            return complex(float(value[0]), float(value[1]))
        if kind == "dtype":
            return dtype_named(value)
        if kind == "tensor":
            self.tensors.append(self.tensor(value))
            return self.tensors[-1]
        if kind == "again":
            return self.tensors[value]
        raise self.wrong(f"it holds an object of kind {kind!r}")

    def tensor(self, row: dict[str, Any]) -> Tensor:
        flat, where, storage = self.storage(row["storage"])
        offset, shape, strides = row["offset"], tuple(row["shape"]), tuple(row["strides"])
        if not all(type(n) is int and n >= 0 for n in (offset, *shape, *strides)) or len(shape) != len(strides):
            raise self.wrong("a tensor's shape, strides or offset are not sizes")
        reach = 0 if 0 in shape else offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if reach > flat.shape[0]:
            raise self.wrong("a tensor reaches beyond its storage")
        made = _at(flat, (offset, shape, strides), where, storage)
        return made.requires_grad_() if row["requires_grad"] else made

    def storage(self, number: int) -> tuple[Any, TensorDevice, Storage]:
        found = self.loaded.get(number)
        if found is None:
            row = self.storages[number]
            kind, size = dtype_named(row["dtype"]), row["size"]
            where = self.location(row["device"])
            backend = where.backend
            where = backend.resolve_device(where)
            entry = f"storages/{number}"
            if entry in self.archive.namelist():
                data = self.archive.read(entry)
                if len(data) != size * kind.itemsize:
                    raise self.wrong(f"{entry} has {len(data)} bytes, expected {size * kind.itemsize}")
                flat = backend.from_host(data, (size,), kind, where)
            else:
                flat = self.without_data(row["device"], size, kind)
                where = device(row["device"])
            found = self.loaded[number] = (flat, where, Storage(flat, CLOCK.epoch))
        return found

    def without_data(self, place: str, size: int, kind: DType) -> Any:
        """A storage on a device without data, such as meta. On any other device the file is incomplete."""
        where = device(place)
        flat = where.backend.empty((0,), kind, where)
        try:
            where.backend.to_host(flat)
        except NoDataError:
            return where.backend.empty((size,), kind, where)
        raise self.wrong(f"the data of a storage on {place} is missing")

    def location(self, saved: str) -> TensorDevice:
        wanted: Any = self.map_location
        if callable(wanted):
            wanted = wanted(saved)
        elif wanted is not None and not isinstance(wanted, (str, Device)):
            wanted = wanted.get(saved)
        return device(saved if wanted is None else wanted)
