"""Where an object holds tensors: in attributes, and in lists, tuples, dicts and objects there. Names are "layers.0.weight".

An object with the methods `named_parameters` and `named_buffers`, as a `turnout.nn.Module` has, names its tensors itself. A
tuple cannot be written. A tensor in one is replaced by a new tuple, in whatever holds the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from turnout.config.tuples import NamedTuple
from turnout.errors import CallError
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors

_LEAVES = (str, bytes, int, float, complex, type, FunctionType, BuiltinFunctionType, ModuleType)


class Place(NamedTuple):
    """Where a tensor is: `holder`, an object, list or dict, has at `key` the tensor, or a tuple that has it at `inside`."""

    holder: Any
    key: Any
    inside: tuple[int, ...]

    def held(self) -> Any:
        """What the holder has there: the tensor, or the outermost tuple around it."""
        if isinstance(self.holder, (list, dict)):
            return self.holder[self.key]
        return getattr(self.holder, self.key)

    def tensor(self) -> Any:
        """The tensor, or what was put in its place since."""
        found = self.held()
        for index in self.inside:
            found = found[index]
        return found

    def hold(self, value: Any) -> None:
        """Undo of `held`. Does not ask the class of the object, which may be frozen."""
        if isinstance(self.holder, (list, dict)):
            self.holder[self.key] = value
        else:
            object.__setattr__(self.holder, self.key, value)

    def replace(self, tensor: Tensor) -> None:
        """Put a tensor there, in a new tuple where it is in one."""
        self.hold(_with(self.held(), self.inside, tensor))


def _with(value: Any, inside: tuple[int, ...], tensor: Tensor) -> Any:
    if not inside:
        return tensor
    parts = list(value)
    parts[inside[0]] = _with(parts[inside[0]], inside[1:], tensor)
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)


def places_of(module: Any) -> dict[str, Place]:
    """Name -> place of every tensor, in the order of attributes; a tensor that is held twice has two names."""
    found: dict[str, Place] = {}
    for name, place in _places(module.__self__ if isinstance(module, MethodType) else module, "", set()):
        if name in found:
            raise CallError(errors.modules.same_name(name, module))
        found[name] = place
    return found


def names_itself(holder: Any) -> bool:
    """Whether an object says which tensors it holds."""
    return all(callable(getattr(holder, method, None)) for method in ("named_parameters", "named_buffers"))


def _places(holder: Any, prefix: str, seen: set[int]) -> Iterator[tuple[str, Place]]:
    if id(holder) in seen or isinstance(holder, _LEAVES):
        return
    seen.add(id(holder))
    if names_itself(holder):
        for named in (holder.named_parameters, holder.named_buffers):
            for name, _ in named(remove_duplicate=False):
                *inside, last = name.split(".")
                yield prefix + name, Place(reduce(getattr, inside, holder), last, ())
        return
    for key, value in _items(holder):
        yield from _values(value, f"{prefix}{key}", Place(holder, key, ()), seen)


def _values(value: Any, name: str, place: Place, seen: set[int]) -> Iterator[tuple[str, Place]]:
    if isinstance(value, Tensor):
        yield name, place
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from _values(part, f"{name}.{i}", place._replace(inside=(*place.inside, i)), seen)
    else:
        yield from _places(value, name + ".", seen)


def _items(holder: Any) -> list[tuple[Any, Any]]:
    if isinstance(holder, dict):
        return list(holder.items())
    if isinstance(holder, list):
        return list(enumerate(holder))
    slots = [name for kind in type(holder).__mro__ for name in _slots(kind) if hasattr(holder, name)]
    return [*getattr(holder, "__dict__", {}).items(), *((name, getattr(holder, name)) for name in slots)]


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple(name for name in names if not name.startswith("__"))
