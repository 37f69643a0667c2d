"""The signature of a call: one walk over the arguments, and over what the function can reach.

The walk gives a key, in which plain values stand as they are and tensors by what a graph depends on, and the tensors in order of
meeting. Two calls with one key run one program. The walk does not change anything, and calls no code of the program.
"""

from __future__ import annotations

import enum
import sys
from collections import OrderedDict, defaultdict, deque
from functools import cache, partial
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

from turnout import config
from turnout.devices import Device
from turnout.dtypes import DType, get_default_dtype
from turnout.operators import Operator, Packet
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.random import Generator, initial_seed
from turnout_aten.tensor.roles import role_of
from turnout_aten.tensor.size import Size
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.reach import (
    COMPUTED,
    OUTSIDE_FUNCTIONS,
    OUTSIDE_NAMES,
    SETTERS,
    Reach,
    is_library,
    is_outside,
    reach_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = tuple[Any, str]  # the place around it, and what is added

LIMIT = 100_000
_IN_C = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
_ABSENT = object()
# Keys of `Tensor.extra` that need no guard of their own: the gradient is walked, the node is made anew when it is needed.
_EXTRA = frozenset(("grad", "role", "autograd node"))
_SMALL = 4096  # bytes of an array of numbers that are compared


def place_text(place: Any) -> str:
    """A place as a program would write it."""
    parts: list[str] = []
    while place is not None:
        place, text = place
        parts.append(text)
    return "".join(reversed(parts))


@cache
def has_state(kind: Any) -> bool:
    """Whether all that an object of a class holds is in its dict or its slots: its classes are written in Python."""
    written = all(not any(isinstance(each, _IN_C) for each in vars(base).values()) for base in kind.__mro__ if base is not object)
    return written and not hasattr(kind, "__next__")


class Slot:
    """A place that holds a tensor and can be given another one."""

    __slots__ = ("index", "name", "owner", "place")

    def __init__(self, index: int, owner: Any, name: Any, place: Any) -> None:
        self.index = index
        self.owner = owner
        self.name = name
        self.place = place

    def put(self, value: Any) -> None:
        """Let the place hold `value`."""
        if isinstance(self.owner, CellType):
            self.owner.cell_contents = value
        else:
            self.owner[self.name] = value


class Code:
    """What is known of the code that a function can reach. It grows, and is never wrong: more names make a signature longer."""

    def __init__(self) -> None:
        self.reached: dict[int, Reach] = {}
        self.names: set[str] = {"forward"}
        self.computed = False

    def of(self, code: CodeType) -> Reach:
        """What a code object names."""
        found = self.reached.get(id(code))
        if found is None:
            found = self.reached[id(code)] = reach_of(code)
            self.names |= found.names
            self.computed = self.computed or bool(COMPUTED & (found.names | set(found.globals)))
        return found


class Walk:
    """The signature of one call.

    key        what programs are found by
    tensors    in the order in which they were met, those of `.grad` last
    slots      the places that hold them, `.grad` left out
    generators beside them
    main       how many tensors are not there as a `.grad` only
    reason     why the call cannot be compiled, or ""
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], code: Code) -> None:
        self._code = code
        while True:
            before = len(code.names), code.computed
            self._start()
            try:
                self._visit(args, (None, "arguments"))
                self._visit(kwargs, (None, "arguments"))
                self._visit(function, (None, getattr(function, "__name__", "function")))
            except RecursionError:
                self._refuse(errors.TOO_LARGE)
            if before == (len(code.names), code.computed):
                break
        self.main = len(self.tensors)
        self.main_key = tuple(self._parts)
        self.seeds = [initial_seed(), *[each.initial_seed() for each in self.generators]]
        self.nodes = [each.node for each in self.tensors]
        self._grads()
        self._memories()
        self.modes = tuple(GRAD.get()), config.get("default_device"), get_default_dtype()
        self._add(self.modes, (None, "the grad mode, or the default device or dtype"))
        self.key = tuple(self._parts)

    def _start(self) -> None:
        self.tensors: list[Tensor] = []
        self.generators: list[Generator] = []
        self.slots: list[Slot] = []
        self.met: list[int] = []  # how often each tensor
        self.reason = ""
        self.containers: set[int] = set()
        self.keep: list[Any] = []  # objects whose id stands in the key
        self.places: list[Any] = []
        self.tensor_places: list[Any] = []
        self._parts: list[Any] = []
        self._seen: dict[int, int] = {}

    # ---- the key

    def _add(self, part: Any, place: Any) -> None:
        self._parts.append(part)
        self.places.append(place)
        if len(self._parts) > LIMIT:
            self._refuse(errors.TOO_LARGE)

    def _refuse(self, why: str) -> None:
        self.reason = self.reason or why

    def _visit(self, value: Any, place: Any, owner: Any = None, name: Any = None, lenient: bool = False) -> None:
        kind = type(value)
        if kind is int or kind is bool or kind is str or value is None:
            self._add((kind, value), place)
        elif kind is Tensor:
            self._tensor(value, place, owner, name)
        elif kind is float or kind is complex:
            self._add((kind, repr(value)), place)
        elif len(self._parts) <= LIMIT:
            visit = _VISITS.get(kind)
            if visit is not None:
                visit(self, value, place)
            else:
                self._other(value, place, lenient)

    def _again(self, value: Any, place: Any) -> bool:
        """Whether an object was met before; it is then named by when."""
        found = self._seen.get(id(value))
        if found is None:
            self._seen[id(value)] = len(self._seen)
            return False
        self._add(("again", found), place)
        return True

    # ---- tensors

    def _tensor(self, value: Tensor, place: Any, owner: Any = None, name: Any = None) -> None:
        found = self._seen.get(id(value))
        if found is not None:
            self._add(("again", found), place)
            index = next(i for i, each in enumerate(self.tensors) if each is value)
            self.met[index] += 1
        else:
            self._seen[id(value)] = len(self._seen)
            index = len(self.tensors)
            self.tensors.append(value)
            self.met.append(1)
            self.tensor_places.append(place)
            extra = value.extra
            if (
                extra is not None
                and not _EXTRA.issuperset(extra)
                and any(each for key, each in extra.items() if key not in _EXTRA)
            ):
                self._refuse(errors.hooks(place_text(place)))
            offset = 0 if value.storage is None else value.storage_offset()
            self._add(
                (Tensor, value.dtype, value.device, tuple(value.shape), value.stride(), value.keys, value.gmask,
                 value.node is None, role_of(value), offset), place,
            )  # fmt: skip
        if owner is not None:
            self.slots.append(Slot(index, owner, name, place))

    def _grads(self) -> None:
        self.grads: list[Any] = []
        for i in range(self.main):
            extra = self.tensors[i].extra
            grad = None if extra is None else extra.get("grad")
            self.grads.append(grad)
            if grad is not None:
                place = (self.tensor_places[i], ".grad")
                self._add(("grad", i), place)
                if type(grad) is Tensor:
                    self._tensor(grad, place)
                else:
                    self._refuse(errors.uncomparable(place_text(place), type(grad).__name__))

    def _memories(self) -> None:
        """Which tensors share memory."""
        groups: dict[int, list[int]] = {}
        for i, tensor in enumerate(self.tensors):
            if tensor.storage is not None:
                groups.setdefault(id(tensor.storage.memory), []).append(i)
        for group in groups.values():
            if len(group) > 1:
                self._add(("shared", *group), (None, " and ".join(place_text(self.tensor_places[i]) for i in group)))
        self.groups = [group for group in groups.values() if len(group) > 1]

    def _generator(self, value: Generator, place: Any) -> None:
        if not self._again(value, place):
            self._add((type(value), value.device), place)
            self.generators.append(value)

    # ---- containers

    def _list(self, value: Any, place: Any) -> None:
        if self._again(value, place):
            return
        self.containers.add(id(value))
        self._add((type(value), len(value)), place)
        for i, each in enumerate(list(value)):
            self._visit(each, (place, f"[{i}]"), value, i)

    def _tuple(self, value: Any, place: Any) -> None:
        self._add((type(value), len(value)), place)
        for i, each in enumerate(value):
            self._visit(each, (place, f"[{i}]"))

    def _set(self, value: Any, place: Any) -> None:
        if self._again(value, place):
            return
        self.containers.add(id(value))
        self._add((type(value), len(value)), place)
        for each in list(value):
            self._visit(each, (place, "{...}"))

    def _dict(self, value: Any, place: Any) -> None:
        if self._again(value, place):
            return
        self.containers.add(id(value))
        self._add((type(value), len(value)), place)
        if isinstance(value, defaultdict):
            self._visit(value.default_factory, (place, ".default_factory"))
        for key, each in list(value.items()):
            self._visit(key, (place, f"[{key!r}]" if isinstance(key, (str, int)) else "[...]"))
            self._visit(each, (place, f"[{key!r}]" if isinstance(key, (str, int)) else "[...]"), value, key)

    # ---- code

    def _function(self, value: FunctionType, place: Any) -> None:
        if self._again(value, place):
            return
        self._add((FunctionType, id(value.__code__)), place)
        self.keep.append(value.__code__)
        home = str(value.__globals__.get("__name__", ""))
        library = is_library(home)
        if is_outside(home):
            self._refuse(errors.outside_world(place_text(place)))
        if not library:
            reach = self._code.of(value.__code__)
            for name in sorted(OUTSIDE_NAMES & reach.names):
                self._refuse(errors.outside_world(name))
            if "config" in reach.names and SETTERS & reach.names:
                self._refuse(errors.outside_world("config"))
            for name in reach.modules:
                self._module_named(name)
            for name in reach.globals:
                if name in value.__globals__:
                    self._visit(value.__globals__[name], (None, name), value.__globals__, name)
                else:
                    self._add((name, "builtin"), (None, name))
                    if name in OUTSIDE_FUNCTIONS:
                        self._refuse(errors.outside_world(f"{name}()"))
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                held = cell.cell_contents
            except ValueError:
                self._add("empty", (None, name))
                continue
            self._visit(held, (None, name), cell, None, library)
        for each in (value.__defaults__, value.__kwdefaults__):
            if each is not None:
                self._visit(each, (place, " (a default)"), None, None, library)

    def _method(self, value: Any, place: Any) -> None:
        self._add(MethodType, place)
        self._visit(value.__func__, place)
        self._visit(value.__self__, (place, ".__self__"))

    def _partial(self, value: Any, place: Any) -> None:
        self._add(type(value), place)
        for name in ("func", "args", "keywords"):
            self._visit(getattr(value, name), (place, f".{name}"))

    def _builtin(self, value: Any, place: Any) -> None:
        bound = value.__self__
        self._add((type(value), value.__qualname__), place)
        if bound is not None and not isinstance(bound, (ModuleType, type)):
            self._visit(bound, (place, ".__self__"))
        elif is_outside(str(value.__module__ or getattr(bound, "__module__", ""))):
            self._refuse(errors.outside_world(place_text(place)))

    def _module_named(self, name: str) -> None:
        found = sys.modules.get(name)
        if found is not None:
            self._module(found, (None, name))
        elif is_outside(name):
            self._refuse(errors.outside_world(name))

    def _module(self, value: ModuleType, place: Any) -> None:
        if self._again(value, place):
            return
        name = value.__name__
        self._add((ModuleType, name), place)
        if is_outside(name):
            self._refuse(errors.outside_world(name))
        elif name.partition(".")[0] == "numpy" and {"random"} & self._code.names:
            self._refuse(errors.outside_world("numpy.random"))
        elif not is_library(name):
            held = vars(value)
            for each in sorted(self._code.names & held.keys()):
                self._visit(held[each], (place, f".{each}"), held, each)

    def _class(self, value: type, place: Any) -> None:
        if self._again(value, place):
            return
        self._add((type, value), place)
        if is_outside(value.__module__):
            self._refuse(errors.outside_world(place_text(place)))
        for each in value.__mro__:
            if is_library(each.__module__):
                continue
            for name, held in list(vars(each).items()):
                if name in _CLASS_FACTS or isinstance(held, _DESCRIPTORS):
                    continue
                is_code = isinstance(held, (FunctionType, staticmethod, classmethod, property))
                if is_code and (
                    name in self._code.names or (name[:2] == "__" and name not in ("__init__", "__repr__", "__new__"))
                ):
                    inner = [held.fget, held.fset] if isinstance(held, property) else [getattr(held, "__func__", held)]
                    for function in inner:
                        self._visit(function, (place, f".{name}"), None, None, lenient=True)
                elif not is_code and (name in self._code.names or self._code.computed):
                    self._add(name, place)
                    self._visit(held, (place, f".{name}"), None, None, name not in self._code.names)

    # ---- other objects

    def _identity(self, value: Any, place: Any) -> None:
        self._add((type(value), id(value)), place)
        self.keep.append(value)

    def _other(self, value: Any, place: Any, lenient: bool) -> None:
        kind: Any = type(value)
        if isinstance(value, (Device, DType, Operator, Packet, enum.Enum)):
            self._identity(value, place)
        elif isinstance(value, Generator):
            self._generator(value, place)
        elif isinstance(value, type):
            self._class(value, place)
        elif isinstance(value, ModuleType):
            self._module(value, place)
        elif isinstance(value, (int, float, complex, str, bytes)) and not isinstance(value, enum.Enum):
            self._add((type(value), repr(value)), place)
        elif isinstance(value, tuple):
            self._tuple(value, place)
        elif isinstance(value, Tensor):
            self._uncomparable(value, place, lenient)
        elif hasattr(type(value), "__turnout_compiled__"):
            self._visit(value.__turnout_compiled__, place)
        elif (
            type(value).__module__ == "numpy"
            and hasattr(value, "tobytes")
            and value.nbytes <= _SMALL
            and not value.dtype.hasobject
        ):
            self._add((type(value), str(value.dtype), value.shape, value.tobytes()), place)
        elif hasattr(value, "__wrapped__") and type(value).__name__ == "_lru_cache_wrapper":
            self._visit(value.__wrapped__, place)
        elif has_state(kind):
            self._object(value, place)
        elif callable(value) and is_library(str(getattr(value, "__module__", None) or type(value).__module__)):
            self._identity(value, place)
        else:
            self._uncomparable(value, place, lenient)

    def _uncomparable(self, value: Any, place: Any, lenient: bool) -> None:
        if lenient:
            self._identity(value, place)
        else:
            self._refuse(errors.uncomparable(place_text(place), type(value).__name__))

    def _object(self, value: Any, place: Any) -> None:
        if self._again(value, place):
            return
        kind = type(value)
        self.containers.add(id(value))
        self._class(kind, place)
        library = any(is_library(base.__module__) and base is not object for base in kind.__mro__)
        names, computed = self._code.names, self._code.computed
        held = getattr(value, "__dict__", None)
        if type(held) is dict:
            for name, each in list(held.items()):
                used = name in names
                if used or library or computed:
                    self._add(name, place)
                    self._visit(each, (place, f".{name}"), held, name, lenient=not used)
        for base in kind.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and (name in names or library or computed):
                    self._add(name, place)
                    each = getattr(value, name, _ABSENT)
                    if each is not _ABSENT:
                        self._visit(each, (place, f".{name}"), None, None, lenient=name not in names)


_CLASS_FACTS = frozenset(
    ("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__", "__qualname__", "__firstlineno__",
     "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "_abc_impl")
)  # fmt: skip
_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType)
_VISITS: dict[type, Callable[[Walk, Any, Any], None]] = {
    list: Walk._list, deque: Walk._set, tuple: Walk._tuple, Size: Walk._tuple, dict: Walk._dict, OrderedDict: Walk._dict,
    defaultdict: Walk._dict, set: Walk._set, frozenset: Walk._set, FunctionType: Walk._function, MethodType: Walk._method,
    partial: Walk._partial, BuiltinFunctionType: Walk._builtin, BuiltinMethodType: Walk._builtin, Generator: Walk._generator,
    bytes: lambda walk, value, place: walk._add((bytes, value), place),
    slice: lambda walk, value, place: walk._tuple((slice, value.start, value.stop, value.step), place),
    range: lambda walk, value, place: walk._add((range, value.start, value.stop, value.step), place),
    type(...): lambda walk, value, place: walk._add(..., place),
    type(NotImplemented): lambda walk, value, place: walk._add("NotImplemented", place),
    type: Walk._class,
}  # fmt: skip
