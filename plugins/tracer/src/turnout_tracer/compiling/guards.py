"""Guards: a walk over a call, written down as one function that reads the same again.

The function is made of lines. Each reads a value from another one, or ends where a value differs from what the walk saw. It may
end for a call that has the same signature, for the walk is asked then; it never goes on for one that has another.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from turnout import config
from turnout.dtypes import get_default_dtype
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import CellType

    from turnout_aten.tensor.storage import Storage

LIMIT = 20_000  # lines; a longer walk is done again at each call
# Keys of `Tensor.extra` that need no guard of their own: the gradient is walked, the node is made anew when it is needed.
_EXTRA = frozenset(("grad", "role", "autograd node"))


def is_odd(extra: Mapping[str, Any] | None) -> bool:
    """Whether a tensor has hooks, or whatever else a graph does not know."""
    if not extra or _EXTRA.issuperset(extra):
        return False
    return any(each for key, each in extra.items() if key not in _EXTRA)


def shared(tensors: Sequence[Tensor]) -> list[list[int]]:
    """The groups of tensors that share memory, by number."""
    storages = [storage for each in tensors if (storage := each.storage) is not None]
    memories = [each if each.of is None else each.memory for each in storages]
    if len(set(memories)) == len(memories):
        return []
    groups: dict[Storage, list[int]] = {}
    for i, tensor in enumerate(tensors):
        if tensor.storage is not None:
            groups.setdefault(tensor.storage.memory, []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def is_empty(cell: CellType) -> bool:
    """Whether a cell holds nothing."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def parts_of(graph: Graph) -> list[Any]:
    """What makes a graph the one that it is, its tensors apart."""
    return [graph, graph.signature, graph.output, graph.sizes, *graph.nodes, *graph.constants, *graph.results]


def is_unset(slot: Any, value: Any) -> bool:
    """Whether a slot of an object holds nothing."""
    try:
        slot.__get__(value)
    except AttributeError:
        return True
    return False


_NAMES: dict[str, Any] = {
    "is_odd": is_odd, "shared": shared, "is_empty": is_empty, "is_unset": is_unset, "parts_of": parts_of,
    "modules": sys.modules, "Tensor": Tensor, "Graph": Graph, "strings": {str}, "get": config.get,
    "grad": GRAD.get, "default_dtype": get_default_dtype,
}  # fmt: skip


class Lines:
    """The lines of a guard. `at` is what a value is called in them: `args`, `v3` for what was read, `c5` for a constant.

    tells_sizes  whether what is read next may tell other sizes, which `sizes_only` asks for
    """

    def __init__(self) -> None:
        self.tells_sizes = True
        self._lines: list[str] = []
        self._light: list[str] = []  # those of `sizes_only`
        self._count = 0
        self._constants: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._extra: dict[str, str] = {}  # of tensors, what their `extra` is called
        self._apart: list[str] = []  # mutable objects, each of which was met for the first time

    # ---- lines

    def constant(self, value: Any) -> str:
        """The name of an object that the guard keeps."""
        found = self._numbers.get(id(value))
        if found is None:
            found = self._numbers[id(value)] = len(self._constants)
            self._constants.append(value)
        return f"c{found}"

    def read(self, text: str) -> str:
        """The name of what an expression gives. Where it raises, the guard fails."""
        self._count += 1
        for lines in (self._lines, self._light) if self.tells_sizes else (self._lines,):
            lines.append(f"v{self._count} = {text}")
        return f"v{self._count}"

    def unless(self, *wrong: str, light: str | None = None) -> None:
        """The guard fails where one of these is true; that of `sizes_only` asks for `light`, where it is given."""
        if len(self._lines) <= LIMIT:
            self._lines.append(f"if {' or '.join(wrong)}: return None")
            asked = " or ".join(wrong) if light is None else light
            self._light += [f"if {asked}: return None"] if asked and self.tells_sizes else []

    # ---- what is asked of a value

    def is_the(self, at: str, value: Any) -> None:
        """It is this object."""
        self.unless(f"{at} is not {self.constant(value)}")

    def is_a(self, at: str, kind: type, *wrong: str) -> None:
        """It is of exactly this class, and then nothing of this is true."""
        self.unless(f"type({at}) is not {self.constant(kind)}", *wrong)

    def is_plain(self, at: str, kind: type, value: Any) -> None:
        """It is this int, bool, string or None."""
        if value is None or kind is bool:
            self.unless(f"{at} is not {value}")
        else:
            self.unless(f"type({at}) is not {kind.__name__}", f"{at} != {self.constant(value)}")

    def has_text(self, at: str, kind: type, text: str) -> None:
        """It is a float or complex number that is written like this: -0.0 is not 0.0."""
        exact = kind is float and float(text) == float(text) != 0  # else == does not tell
        self.unless(
            f"type({at}) is not {kind.__name__}", f"{at} != {text}" if exact and "inf" not in text else f"repr({at}) != {text!r}"
        )

    def keys(self, at: str, keys: tuple[Any, ...], names: bool) -> str:
        """A dict has these keys, if all of them are strings; else what they are called, for other lines to ask."""
        if not names:
            return self.read(f"[*{at}]")
        if keys:
            self.unless(f"(*{at},) != {self.constant(keys)}", f"{{*map(type, {at})}} != strings")
        return ""

    def dict_of(self, at: str, held: Any) -> str:
        """Its attributes have these names, where they are kept in a dict; what that is called."""
        if type(held) is not dict:
            self.unless(f"type(getattr({at}, '__dict__', None)) is dict")
            return ""
        found = self.read(f"{at}.__dict__")
        self.unless(f"type({found}) is not dict", f"(*{found},) != {self.constant((*held,))}" if held else found)
        return found

    def is_tensor(self, at: str, part: tuple[Any, ...], array: Any) -> None:
        """It is a tensor with these facts, which are a part of a key, and the strides of this array."""
        _, dtype, device, shape, strides, keys, tracked, no_node, role, offset, no_view = part
        kept, raw = self.constant(device), device.backend.raw_strides
        moved = f"{at}.stride() != {strides}"
        if raw is not None:  # to ask for strides takes longer than for all other facts together
            moved = f"{at}.device.backend.raw_strides({at}.array) != {raw(array)}"
        self.unless(
            f"type({at}) is not Tensor", f"{at}.dtype is not {self.constant(dtype)}", f"{at}.shape != {shape}",
            f"{at}.keys != {keys}", f"{at}.gmask != {tracked}",
            f"({at}.device is not {kept} and {at}.device != {kept})", moved,
            f"{at}.node is {'not ' if no_node else ''}None", f"{at}.view_of is {'not ' if no_view else ''}None",
            light=f"type({at}) is not Tensor or {at}.shape != {shape}",
        )  # fmt: skip
        if offset:
            self.unless(f"{at}.storage is None", f"{at}.offset != {offset}", light="")
        else:
            self.unless(f"({at}.storage is not None and {at}.offset)", light="")
        extra = self._extra[at] = self.read(f"{at}.extra")
        if role:  # with nothing else, in most cases
            self.unless(f"not {extra}", f"{extra}.get('role') != {role!r}", f"(len({extra}) > 1 and is_odd({extra}))", light="")
        else:
            self.unless(f"{extra} and ({extra}.get('role') or is_odd({extra}))", light="")

    def grad(self, at: str, there: bool) -> str:
        """A tensor has a `.grad`, or none; what that is called."""
        extra = self._extra.get(at) or self.read(f"{at}.extra")
        if there:
            return self.read(f"{extra}['grad']")
        self.unless(f"{extra} and {extra}.get('grad') is not None")
        return ""

    def share(self, tensors: Sequence[str], groups: list[list[int]]) -> None:
        """These tensors share memory in these groups."""
        self.unless(f"shared(({', '.join(tensors)})) != {groups}")

    def modes(self, modes: tuple[Any, ...]) -> None:
        """The grad mode, the default device and the default dtype."""
        grad, device, dtype = modes
        self.unless(
            f"(*grad(),) != {grad}",
            f"get('default_device') != {self.constant(device)}",
            f"default_dtype() is not {self.constant(dtype)}",
        )

    def differs(self, at: str) -> None:
        """It is none of the others of which that is said."""
        if at[0] != "c":
            self._apart.append(at)

    # ---- the function

    def function(self, *found: Sequence[Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
        """The guard, which returns tuples of what has these names: tensors, generators, and owners with names in them."""
        if len(self._lines) > LIMIT:
            return None
        tensors, generators, places = found
        kept = [f"({at}, {self.constant(name)})," for at, name in places]
        given = ", ".join([f"({''.join([f'{at}, ' for at in each])})" for each in (tensors, generators)])
        if len(self._apart) > 1:
            self.unless(f"len({{{', '.join([f'id({at})' for at in self._apart])}}}) != {len(self._apart)}")
        return self._made([*self._lines, f"return {given}, ({' '.join(kept)})"])

    def sizes_only(self) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
        """A guard that asks of tensors for nothing but their shapes, for calls that run eagerly because of those. It returns a
        tuple."""
        return self._made([*self._light, "return ((),)"]) if len(self._lines) <= LIMIT else None

    def _made(self, lines: list[str]) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        text = "".join(f"        {line}\n" for line in lines)
        # What raises is not there, or no longer.
        text = f"def guard(args, kwargs):\n    try:\n{text}    except Exception:\n        return None\n"
        scope = _NAMES | {f"c{i}": value for i, value in enumerate(self._constants)}
        exec(compile(text, "<guard>", "exec"), scope)
        return scope["guard"]
