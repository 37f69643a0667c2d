"""A .pt2 file: a zip archive of JSON texts and of the raw bytes of tensors. Nothing in it is executed, and no pickle is opened.

All entries are under one folder: `models/model.json` is the program, `data/weights` and `data/constants` hold its tensors, each
folder with a JSON that says what they are. A tensor's bytes are those of its storage, which several tensors may share.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

from turnout.dtypes import DTYPES as KNOWN
from turnout_aten import plain_data
from turnout_aten.archives import Archive
from turnout_aten.files import Damaged, need
from turnout_aten.plain_data import row, shown, size
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.storage import Storage

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.devices import TensorDevice
    from turnout_aten.tensor.tensor import Tensor

# The numbers of dtypes in the schema. Those that Turnout does not have are named for the message.
DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64", 9: "complex32",
    10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2",
    31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
STRIDED = 7

_PAYLOAD = frozenset({"path_name", "use_pickle", "tensor_meta"})
_META = frozenset({"dtype", "sizes", "strides", "storage_offset", "layout", "requires_grad"})
_FILE = re.compile(r"[\w.-]{1,200}", re.ASCII)


def dtype(number: Any) -> DType:
    """The dtype of a number of the schema."""
    name = DTYPES.get(number) if type(number) is int else None
    if name is None:
        raise Damaged(f"{shown(number)} is not the number of a dtype")
    if name not in KNOWN:
        raise Damaged(f"it has a tensor of dtype {name}, which Turnout does not have")
    return plain_data.dtype(name)


class Package:
    """The program of an archive, and its tensors. Raises Damaged for what `torch.export.save` does not write."""

    def __init__(self, file: IO[bytes], where: TensorDevice) -> None:
        self._archive = Archive(file)
        self._where = where.backend.resolve_device(where)
        self._flat: dict[tuple[str, str], tuple[Any, Storage]] = {}
        found = [name for name in self._archive.entries if name.endswith("/archive_format")]
        need(len(found) == 1, f"it holds {len(found)} files archive_format; expected 1")
        self._root = found[0].removesuffix("archive_format")
        need(self._read("archive_format") == b"pt2", "its archive_format is not pt2")
        need(self._read("byteorder") == b"little", "its numbers are not little-endian")
        start, end = f"{self._root}models/", ".json"
        models = [n[len(start) : -len(end)] for n in self._archive.entries if n.startswith(start) and n.endswith(end)]
        need(len(models) == 1, f"it holds {len(models)} models; expected 1")
        self._model = models[0]
        self.program = self._json(f"models/{self._model}.json")

    def tensors(self, folder: str) -> dict[str, Tensor]:
        """The tensors of "weights" or "constants", by name. Two names of one tensor have one tensor."""
        config = self._json(f"data/{folder}/{self._model}_{folder}_config.json").get("config")
        if not isinstance(config, dict):
            raise Damaged(f"the list of {folder} is not an object")
        made: dict[str, Tensor] = {}
        same: dict[Any, Tensor] = {}
        for name, payload in config.items():
            row(payload, _PAYLOAD, f"{shown(name)} of the {folder}")
            need(payload["use_pickle"] is False, f"{shown(name)} of the {folder} is pickled: a program, and not data")
            meta = row(payload["tensor_meta"], _META, f"{shown(name)} of the {folder}")
            tensor = self._tensor(f"data/{folder}", payload["path_name"], meta, name)
            key = (payload["path_name"], tensor.dtype.name, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
            made[name] = same.setdefault(key, tensor)
            if meta["requires_grad"] is True and payload.get("is_param") is True:
                plain_data.check_tracked(True, tensor.dtype, shown(name))
                made[name].requires_grad_()
        return made

    def _tensor(self, folder: str, file: Any, meta: dict[str, Any], name: str) -> Tensor:
        what = shown(name)
        need(isinstance(file, str) and _FILE.fullmatch(file) is not None, f"{shown(file)} is not the name of a file")
        need(meta["layout"] == STRIDED, f"{what} is not strided")
        kind = dtype(meta["dtype"])
        shape, strides = plain_data.geometry(meta["sizes"], meta["strides"], what, _number)
        offset = _number(meta["storage_offset"], f"the offset of {what}")
        flat, storage = self._storage(f"{folder}/{file}", kind)
        return plain_data.tensor(flat, offset, shape, strides, self._where, storage, what)

    def _storage(self, file: str, kind: DType) -> tuple[Any, Storage]:
        count = self._size(file) // kind.itemsize
        key = (file, kind.name)
        if key not in self._flat:
            held = self._read(file)[: count * kind.itemsize]
            flat = self._where.backend.from_host(held, (count,), kind, self._where)
            self._flat[key] = (flat, Storage(flat, CLOCK.epoch))
        return self._flat[key]

    def _size(self, name: str) -> int:
        entry = self._archive.entries.get(self._root + name)
        if entry is None:
            raise Damaged(f"it has no {name}")
        return entry.size

    def _read(self, name: str) -> bytes:
        self._size(name)
        return self._archive.read(self._root + name)

    def _json(self, name: str) -> dict[str, Any]:
        found = plain_data.parse(self._read(name))
        need(isinstance(found, dict), f"{name} is not an object")
        return found  # type: ignore[no-any-return]


def _number(value: Any, what: str) -> int:
    """A size of a tensor that is saved, which is a number."""
    kind, number = plain_data.only(row(value, frozenset(), what))
    need(kind == "as_int", f"{what} is not a number")
    return size(number, what)
