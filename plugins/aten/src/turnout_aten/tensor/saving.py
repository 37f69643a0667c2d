"""Files of tensors: `save` and `load`.

A file holds only data: a zip archive of one JSON document and the bytes of the storages, as they are. Reading it never runs code
from it, and everything in it is checked, because it may come from anywhere. docs/files.md says what users can rely on.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import IO, TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.errors import CallError, FileFormatError, NoDataError
from turnout.operators.tracebacks import shortening
from turnout_aten import archives, plain_data
from turnout_aten.files import Damaged, is_path, name_of, need, reading, replacing, require_file
from turnout_aten.functions import return_types
from turnout_aten.plain_data import DEEPEST, NOT_PLAIN, TOO_DEEP, distinct, elements, fields, index, only, row, shown, size
from turnout_aten.tensor.backend_keys import names_of
from turnout_aten.tensor.copying import flat_memory, place_of
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.reads import reads
from turnout_aten.tensor.storage import Storage
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from turnout_aten.files import FilePath
    from turnout_aten.tensor.devices import TensorDevice

    MapLocation = str | Device | Mapping[str, str] | Callable[[str], str | Device | None] | None

FORMAT, VERSION = "turnout", 1
DOCUMENT = "data.json"


@shortening
def save(obj: Any, path: FilePath | IO[bytes]) -> None:
    """Write `obj`, tensors in dicts, lists and tuples, with numbers, strings and None, to the file `path`.

    A file that exists is replaced when everything has been written, and never seen half-written: docs/files.md has the details.
    Raises CallError, naming the place, for any other object, including instances of subclasses of Tensor, and OSError where
    the file cannot be written. Then what stood at the path is as it was, and no file is left behind.

    Arguments:
        obj: what is written
        path: a str, bytes or path object, or a file object that is open for writing in binary mode

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> turnout.save({"weight": turnout.ones(2), "epoch": 3}, file)
        >>> file.getbuffer().nbytes > 0
        True
    """
    require_file("save", path, "write")
    writer = _Writer()
    tree = writer.tree(obj, "obj")
    if not is_path(path):
        writer.write(tree, path)  # type: ignore[arg-type]
        return
    with replacing(path) as file:  # type: ignore[arg-type]
        writer.write(tree, file)


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
        if isinstance(obj, Tensor):
            return self.tensor_or_again(obj, where)
        if type(obj) in (list, tuple, dict, OrderedDict) or return_types.is_standard(type(obj)):
            return self.container(obj, where)
        made = NOT_PLAIN if isinstance(obj, Device) else plain_data.encode(obj)
        if made is NOT_PLAIN:
            plain = next((kind.__name__ for kind in (dict, list, tuple) if isinstance(obj, kind)), None)
            held = "files hold tensors, numbers, strings, None, dicts, lists, tuples"
            remedy = f"\n  to fix  save {plain}({where}), or use pickle" if plain else ""
            raise CallError(f"save: {where} has type {type(obj).__name__}; {held}{remedy}")
        return made

    def container(self, obj: Any, where: str) -> Any:
        if id(obj) in self.open:
            raise CallError(f"save: {where} contains itself")
        if len(self.open) == DEEPEST:
            raise CallError(f"save: {where} is {TOO_DEEP}")
        self.open.add(id(obj))
        if type(obj) is list:
            made: Any = [self.tree(v, f"{where}[{i}]") for i, v in enumerate(obj)]
        elif isinstance(obj, tuple):
            made = {"tuple": [self.tree(v, f"{where}[{i}]") for i, v in enumerate(obj)]}
            if return_types.is_standard(type(obj)):
                made = {"result": [type(obj).__name__, made]}
        else:
            items = [[self.tree(k, f"a key of {where}"), self.tree(v, f"{where}[{_key(k)}]")] for k, v in obj.items()]
            made = {"dict" if type(obj) is dict else "ordered": items}
        self.open.discard(id(obj))
        return made

    def tensor_or_again(self, tensor: Tensor, where: str) -> dict[str, Any]:
        if type(tensor) is not Tensor:
            raise CallError(
                f"save: {where} is a {type(tensor).__name__}; files hold data, not classes\n"
                "  to fix  save turnout.as_subclass(t, turnout.Tensor), or use pickle"
            )
        names = names_of(tensor)
        if names:
            raise CallError(
                f"save: {where} has the key {names[0]}, without which its elements mean something else; files hold no keys\n"
                f"  to fix  save without_key(t, {names[0]!r}) of turnout_aten.tensor.backend_keys, or use pickle"
            )
        reads("save()")
        number = self.tensors.get(id(tensor))
        if number is not None:
            return {"again": number}
        self.tensors[id(tensor)] = len(self.tensors)
        self.kept.append(tensor)
        return {"tensor": self.tensor(tensor)}

    def tensor(self, tensor: Tensor) -> dict[str, Any]:
        owner = tensor if tensor.storage is None else tensor.storage.array
        number = self.known.get(id(owner))
        if number is None:
            number = self.known[id(owner)] = len(self.storages)
            flat = flat_memory(tensor)
            try:
                self.blobs.append(tensor.device.backend.to_host(flat))
            except NoDataError:
                self.blobs.append(None)
            self.storages.append({"dtype": tensor.dtype.name, "device": str(tensor.device), "size": flat.shape[0]})
            self.kept.append(owner)
        offset, shape, strides = place_of(tensor)
        place = {"storage": number, "offset": offset, "shape": list(shape), "strides": list(strides)}
        return place | {"requires_grad": bool(tensor.gmask & 1)}

    def write(self, tree: Any, file: IO[bytes]) -> None:
        head = {"format": FORMAT, "version": VERSION, "storages": self.storages, "object": tree}
        archives.write(file, self.entries(json.dumps(head, allow_nan=False)))

    def entries(self, document: str) -> Iterator[tuple[str, Any]]:
        yield DOCUMENT, document.encode("ascii")
        for number, blob in enumerate(self.blobs):
            if blob is not None:
                yield f"storages/{number}", blob


def _key(key: Any) -> str:
    """A key in an error's text. Python may refuse to print a long int."""
    return shown(key) if type(key) is int else repr(key)


@shortening
def load(path: FilePath | IO[bytes], map_location: MapLocation = None, *, weights_only: bool = True) -> Any:
    """Read an object that `save` wrote to `path`.

    Raises FileFormatError for a file that `save` did not write or that is damaged, OSError for a file that cannot be read,
    DeviceError for a device that is not there. Reads no byte twice, and takes no more memory than the file says and holds.

    Arguments:
        path: a str, bytes or path object, or a file object that is open for reading in binary mode
        map_location: the device for everything; or a mapping or function from a saved device string to a device, or to None
            for the saved one; None for the saved devices
        weights_only: accepted, and without effect: files hold data, and no code that could be run

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> turnout.save({"weight": turnout.ones(2), "epoch": 3}, file)
        >>> position = file.seek(0)
        >>> turnout.load(file)
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    require_file("load", path, "read")
    name = name_of(path)
    with reading(path) as file:
        try:
            return _Reader(archives.Archive(file), name, map_location).read()
        except Damaged as error:
            text = f"load: {name} was not written by turnout.save, or is damaged: {error}"
            raise FileFormatError(text) from None


_TENSOR = frozenset({"storage", "offset", "shape", "strides", "requires_grad"})
_STORAGE = frozenset({"dtype", "device", "size"})


class _Reader:
    """Turns the document back into objects. Raises Damaged for anything that `_Writer` does not write."""

    def __init__(self, archive: archives.Archive, name: str, map_location: MapLocation) -> None:
        self.archive = archive
        self.name = name
        self.map_location = map_location
        self.loaded: dict[int, tuple[Any, TensorDevice, Storage]] = {}
        self.tensors: list[Tensor] = []
        self.storages: list[Any] = []
        self.depth = 0

    def read(self) -> Any:
        head = plain_data.document(self.archive, DOCUMENT, self.name, (FORMAT, VERSION), "Turnout")
        self.storages = elements(head.get("storages"), "the list of storages")
        known = {DOCUMENT, *[f"storages/{i}" for i in range(len(self.storages))]}
        strange = next((name for name in self.archive.entries if name not in known), None)
        plain_data.nothing_left(strange)
        need("object" in head, f"its {DOCUMENT} has no object")
        return self.object(head["object"])

    def object(self, tree: Any) -> Any:
        if not isinstance(tree, (list, dict)):
            return tree
        if isinstance(tree, list):
            return self.inside(tree)
        kind, value = only(tree)
        if kind == "tensor":
            self.tensors.append(self.tensor(row(value, _TENSOR, "a tensor")))
            return self.tensors[-1]
        if kind == "again":
            return self.tensors[index(value, len(self.tensors), "tensor")]
        if kind == "tuple":
            return tuple(self.inside(elements(value, "a tuple")))
        if kind == "dict" or kind == "ordered":
            return self.mapping(dict if kind == "dict" else OrderedDict, elements(value, "a dict"))
        if kind == "result":
            return self.result(*fields(value, 2, "a result"))
        return plain_data.known(NOT_PLAIN if kind == "device" else plain_data.decode(kind, value), kind)

    def inside(self, trees: list[Any]) -> list[Any]:
        """The elements of a container."""
        self.depth += 1
        need(self.depth <= DEEPEST, f"it holds more than {DEEPEST} containers inside each other")
        made = [self.object(each) for each in trees]
        self.depth -= 1
        return made

    def mapping(self, kind: type[dict[Any, Any]], items: list[Any]) -> dict[Any, Any]:
        both = self.inside([each for item in items for each in fields(item, 2, "an item of a dict")])
        return kind(zip(distinct(both[::2]), both[1::2], strict=True))

    def result(self, name: Any, tree: Any) -> Any:
        kind = plain_data.result_kind(name)
        values = self.object(tree)
        plain_data.check_result(kind, len(values) if type(values) is tuple else -1)
        return kind(values)

    def tensor(self, row: dict[str, Any]) -> Tensor:
        flat, where, storage = self.storage(index(row["storage"], len(self.storages), "storage"))
        offset = size(row["offset"], "the offset of a tensor")
        shape, strides = plain_data.geometry(row["shape"], row["strides"], "a tensor")
        made = plain_data.tensor(flat, offset, shape, strides, where, storage, "a tensor")
        tracked = row["requires_grad"]
        plain_data.check_tracked(tracked, made.dtype, "a tensor")
        return made.requires_grad_() if tracked else made

    def storage(self, number: int) -> tuple[Any, TensorDevice, Storage]:
        found = self.loaded.get(number)
        if found is None:
            saved = row(self.storages[number], _STORAGE, "a storage")
            kind, count = plain_data.dtype(saved["dtype"]), size(saved["size"], "the size of a storage")
            entry, place = f"storages/{number}", plain_data.place(saved["device"])
            if entry in self.archive.entries:
                held = plain_data.bytes_of(self.archive, entry, count * kind.itemsize)
                where = self.location(place)
                where = where.backend.resolve_device(where)
                flat = where.backend.from_host(held, (count,), kind, where)
            else:
                where, flat = place, self.without_data(place, count, kind)
            found = self.loaded[number] = (flat, where, Storage(flat, CLOCK.epoch))
        return found

    def without_data(self, where: TensorDevice, count: int, kind: DType) -> Any:
        """A storage on a device without data, such as meta. On any other device the file is incomplete."""
        flat = where.backend.empty((0,), kind, where)
        try:
            where.backend.to_host(flat)
        except NoDataError:
            return where.backend.empty((count,), kind, where)
        raise Damaged(f"the data of a storage on {where} is missing")

    def location(self, saved: TensorDevice) -> TensorDevice:
        """The device on which a storage goes. What a function of the user's raises is the user's."""
        wanted: Any = self.map_location
        if callable(wanted):
            wanted = wanted(str(saved))
        elif wanted is not None and not isinstance(wanted, (str, Device)):
            wanted = wanted.get(str(saved))
        if wanted is not None and not isinstance(wanted, (str, Device)):
            raise CallError(f"load: map_location gave a {type(wanted).__name__} for {saved}; expected a device, or None")
        return saved if wanted is None else device(wanted)
