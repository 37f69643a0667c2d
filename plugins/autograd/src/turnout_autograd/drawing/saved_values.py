"""What nodes have saved, as rows of their boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors
from turnout_autograd.engine.nodes import InputNode, Node
from turnout_autograd.engine.saved_tensors import FREED, FREED_OUTPUT, Kept
from turnout_autograd.function.nodes import FunctionNode
from turnout_autograd.function.once_differentiable import OnceNode
from turnout_autograd.hooks.packing import Packed
from turnout_autograd.recording.missing_gradients import NotImplementedNode

WIDTH = 60  # characters of a row; the rest is cut off
_NOT_SHOWN = ("metas",)  # how gradients are fitted to their arguments: nothing that a user saved


def _saved(node: Node) -> Iterator[tuple[str, Any, Any]]:
    """Name, value and version of what a node saved; the version is None for what has none."""
    while hasattr(node, "inner"):  # of a write into a view: the node of the write
        node = node.inner
    if isinstance(node, FunctionNode):
        kept = node.saved()
        if kept is FREED:
            yield "tensors", FREED, None
            return
        for i, value in enumerate(kept):
            yield f"tensors[{i}]", *(value if isinstance(value, tuple) else (value, None))
        return
    if isinstance(node, (OnceNode, NotImplementedNode, InputNode)):
        return
    names = [name for kind in type(node).__mro__ for name in getattr(kind, "__slots__", ()) if kind is not Node]
    values = {name: getattr(node, name) for name in names if hasattr(node, name)}
    for name, value in values.items():
        version = f"{name}_version"
        if value is FREED and version in names and version not in values:
            continue  # what is freed sets this too where it was not saved
        of_tensor = name.endswith("_version") and name.removesuffix("_version") in names
        if not (of_tensor or name in _NOT_SHOWN or name.endswith("_geometry") or (name == "count" and node.several)):
            yield name, value, values.get(version)


def saved_rows(node: Node) -> list[str]:
    """A row for each tensor, and as few as hold all the rest."""
    rows: list[str] = []
    numbers: list[str] = []
    for name, value, version in _saved(node):
        if value is FREED or value is FREED_OUTPUT:
            rows.append(f"saved {name}: freed")
        elif isinstance(value, (Tensor, Kept)):
            rows.append(f"saved {name}: {_tensor(value, version)}")
        elif isinstance(value, Packed):
            rows.append(f"saved {name}: packed by a hook")
        elif isinstance(value, (list, tuple)) and any(isinstance(each, (Tensor, Packed)) for each in value):
            for i, each in enumerate(value):
                if isinstance(each, Packed):
                    rows.append(f"saved {name}[{i}]: packed by a hook")
                elif each is not None:
                    rows.append(f"saved {name}[{i}]: {_tensor(each, version[i])}")
        else:
            shown = shown_value(value)
            numbers += [] if value is None or not shown else [f"{name}={shown}"]
    return [*rows, *_filled(numbers)]


def _filled(parts: list[str]) -> list[str]:
    """Parts separated by commas, in rows that are not too wide."""
    rows: list[str] = []
    for part in parts:
        if rows and len(rows[-1]) + len(part) + 3 <= WIDTH:
            rows[-1] += f", {part}"
        else:
            rows[-1:] = [f"{rows[-1]},", part] if rows else [f"with {part}"]
    return rows


def _tensor(saved: Any, version: Any) -> str:
    """A saved tensor, and whether backward would refuse it."""
    if isinstance(saved, Kept):
        text, now, version = errors.tensor_text(wrap(saved.array, saved.device)), saved.storage.version(), saved.version
    else:
        text, now = errors.tensor_text(saved), saved.version()
    return text if now == version else f"{text}, changed in place since"


def shown_value(value: Any) -> str:
    """A number, text, dtype, device, or list of such; "" for anything else."""
    if isinstance(value, DType):
        return value.name
    if value is None or isinstance(value, (bool, int, float, complex, str, Device)):
        return repr(value) if not isinstance(value, Device) else str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(shown_value(each) or '...' for each in value)}]"
    return ""
