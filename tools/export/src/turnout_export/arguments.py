"""One argument of a call: from the schema of `torch.export` to the data of a graph.

Each value is an object with one key that says what it is, such as {"as_tensor": {"name": "x"}}. Names are looked up in a `Scope`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten import plain_data
from turnout_aten.files import Damaged, need
from turnout_aten.plain_data import elements, only, row, shown
from turnout_export import archive
from turnout_export.expressions import Comparison, Tree

if TYPE_CHECKING:
    from turnout.dtypes import DType

MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_SPECIAL = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}
_LISTS = {"as_ints": "as_int", "as_floats": "as_float", "as_bools": "as_bool", "as_strings": "as_string"}
_SIZES = ("as_sym_int", "as_sym_float")
_PLAIN: dict[str, type] = {"as_int": int, "as_bool": bool, "as_string": str}


class Unsupported(Exception):
    """What a graph cannot hold; the text says it."""


class Scope:
    """The names of one graph, and what they stand for.

    values   tensors -> their numbers
    sizes    numbers that are computed from sizes -> their formulas
    truths   what compares them -> comparisons, all of which hold where it is true
    metas    tensors -> their dtypes and sizes, as the program says
    """

    def __init__(self, metas: Any) -> None:
        need(isinstance(metas, dict), "the facts about tensors are not an object")
        self.metas: dict[str, Any] = metas
        self.values: dict[str, int] = {}
        self.sizes: dict[str, Tree] = {}
        self.truths: dict[str, list[Comparison]] = {}

    def value(self, name: Any) -> int:
        """The number of a tensor."""
        if not isinstance(name, str) or name not in self.values:
            raise Damaged(f"{shown(name)} is used before it is made")
        return self.values[name]

    def size(self, name: Any) -> Tree:
        """The formula of a number."""
        if not isinstance(name, str) or name not in self.sizes:
            raise Damaged(f"{shown(name)} is used before it is made")
        return self.sizes[name]

    def meta(self, name: Any) -> dict[str, Any]:
        """What the program says of a tensor."""
        need(isinstance(name, str) and name in self.metas, f"the program says nothing of {shown(name)}")
        return row(self.metas[name], frozenset({"dtype", "sizes"}), f"what the program says of {name}")

    def dtype(self, name: Any) -> DType:
        """The dtype of a tensor."""
        return archive.dtype(self.meta(name)["dtype"])

    def encode(self, argument: Any) -> Any:
        """An argument, as the data of a graph has it. Raises Unsupported, Damaged."""
        kind, value = only(row(argument, frozenset(), "an argument"))
        if kind == "as_none":
            return None
        if kind == "as_tensor":
            return {"ref": self.value(_name(value))}
        if kind == "as_tensors":
            return [{"ref": self.value(_name(each))} for each in elements(value, "a list of tensors")]
        if kind in ("as_optional_tensors", "as_optional_tensor"):
            many = kind == "as_optional_tensors"
            return [self.encode(each) for each in elements(value, "a list of tensors")] if many else self.encode(value)
        if kind in _SIZES:
            return self._size(value)
        if kind in ("as_sym_ints", "as_sym_floats"):
            return {"tuple": [self._size(each) for each in elements(value, "a list of sizes")]}
        if kind in _LISTS:
            return {"tuple": [_plain(_LISTS[kind], each) for each in elements(value, "a list of numbers")]}
        if kind == "as_sym_bool":
            found = row(value, frozenset(), "a truth")
            if "as_bool" in found:
                return _plain("as_bool", found["as_bool"])
            raise Unsupported("a comparison of sizes as an argument of an operator")
        return _plain(kind, value)

    def _size(self, value: Any) -> Any:
        kind, held = only(row(value, frozenset(), "a size"))
        return as_data(self.size(held)) if kind == "as_name" else _plain(kind, held)


def as_data(tree: Tree) -> Any:
    """A formula as the data of a graph has it; a number is a number."""
    return {"size": listed(tree)} if isinstance(tree, (str, tuple)) else tree


def listed(tree: Tree) -> Any:
    """A formula as JSON has it."""
    return [tree[0], listed(tree[1]), listed(tree[2])] if isinstance(tree, tuple) else tree


def unlisted(data: Any) -> Tree:
    """A formula from what `listed` made."""
    return (data[0], unlisted(data[1]), unlisted(data[2])) if isinstance(data, list) else data


def _name(value: Any) -> Any:
    return row(value, frozenset({"name"}), "a tensor")["name"]


def _plain(kind: str, value: Any) -> Any:
    if kind in _PLAIN:
        need(type(value) is _PLAIN[kind], f"{shown(value)} is not of the kind {kind}")
        return plain_data.encode(value)
    if kind == "as_float":
        if isinstance(value, str) and value in _SPECIAL:
            return {"float": _SPECIAL[value]}
        need(type(value) in (int, float), f"{shown(value)} is not of the kind {kind}")
        need(abs(value) < 1 << 1000, "a float is too large")
        return plain_data.encode(float(value))
    if kind == "as_complex":
        parts = [_plain("as_float", each) for each in row(value, frozenset({"real", "imag"}), "a complex number").values()]
        return {"complex": [part["float"] if isinstance(part, dict) else repr(part) for part in parts]}
    if kind == "as_scalar_type":
        return {"dtype": archive.dtype(value).name}
    if kind == "as_memory_format":
        need(type(value) is int and value in MEMORY_FORMATS, f"{shown(value)} is not the number of a memory format")
        return MEMORY_FORMATS[value]
    if kind == "as_layout":
        if value != archive.STRIDED:
            raise Unsupported(f"layout {shown(value)}, which is not strided")
        return "strided"
    if kind == "as_device":
        found = row(value, frozenset({"type"}), "a device")
        index = found.get("index")
        need(isinstance(found["type"], str) and (index is None or type(index) is int), "a device has no name")
        return {"device": found["type"] if index is None else f"{found['type']}:{index}"}
    raise Unsupported(f"an argument of kind {shown(kind)}")
