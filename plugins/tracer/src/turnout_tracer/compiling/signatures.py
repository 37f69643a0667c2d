"""The signature of a call: one walk over the arguments, and over what the function can reach.

The walk gives a key, in which plain values stand as they are and tensors by what a graph depends on, and the tensors in order of
meeting. Two calls with one key run one program. The walk does not change anything, and calls no code of the program.
"""

from __future__ import annotations

import enum
import sys
from collections import OrderedDict, defaultdict, deque
from functools import cache, partial
from operator import attrgetter, methodcaller
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
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

from turnout import config
from turnout.devices import Device
from turnout.dtypes import DType, get_default_dtype
from turnout.library import CustomOpDef
from turnout.operators import Operator, Packet
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.random import Generator, initial_seed
from turnout_aten.tensor.roles import role_of
from turnout_aten.tensor.size import Size
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.reach import COMPUTED, FILES, OUTSIDE_FUNCTIONS, Reach, is_library, is_outside, reach_of
from turnout_tracer.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = tuple[Any, str]  # the place around it, and what is added

LIMIT = 100_000
_IN_C = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
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
                if kwargs:
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
        self._seen: dict[Any, int] = {}
        self.arrays: list[Any] = []  # NumPy's

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

    def _again(self, value: Any, place: Any, role: str = "") -> bool:
        """Whether an object was met before, in this role; it is then named by when."""
        met = (id(value), role) if role else id(value)
        found = self._seen.get(met)
        if found is None:
            self._seen[met] = len(self._seen)
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
                 value.node is None, role_of(value), offset, value.view_of is None), place,
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

    def _graph(self, value: Graph, place: Any) -> None:
        """A graph of a program: its calls, which never change, and its tensors. What it prepares for calls is its own affair."""
        if self._again(value, place):
            return
        held = [value, value.signature, value.output, value.sizes, *value.nodes, *value.constants, *value.results]
        self._add((Graph, value.replay, tuple(map(id, held))), place)
        self.keep += held
        for constant in value.constants:
            self._visit(constant.tensor, (place, ".constants"))
        self._visit(value.state, (place, ".state"))

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

    def _slice(self, value: slice, place: Any) -> None:
        self._add(slice, place)
        for each in (value.start, value.stop, value.step):
            self._visit(each, place)

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
        if library:
            if value.__name__ in FILES:
                self._refuse(errors.outside_world(value.__name__))
        else:
            reach = self._code.of(value.__code__)
            for name in reach.outside:
                self._refuse(errors.outside_world(name))
            for level, name in reach.modules:
                self._module_named(level, name, value.__globals__)
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
        self._attributes(value, place, library)

    def _attributes(self, value: Any, place: Any, lenient: bool = False) -> None:
        """Attributes that were given to an object that is no instance of a plain class: a function, a subclass of int."""
        held = getattr(value, "__dict__", None)
        if type(held) is dict:
            for name, each in list(held.items()):
                if name in self._code.names or self._code.computed:
                    self._add(name, place)
                    self._visit(each, (place, f".{name}"), held, name, lenient or name not in self._code.names)

    def _method(self, value: Any, place: Any) -> None:
        self._add(MethodType, place)
        self._visit(value.__func__, place)
        self._visit(value.__self__, (place, ".__self__"))

    def _partial(self, value: Any, place: Any) -> None:
        self._add(type(value), place)
        for name in ("func", "args", "keywords"):
            self._visit(getattr(value, name), (place, f".{name}"))
        self._attributes(value, place)

    def _builtin(self, value: Any, place: Any) -> None:
        bound = value.__self__
        self._add((type(value), value.__qualname__), place)
        if bound is not None and not isinstance(bound, ModuleType):
            self._visit(bound, (place, ".__self__"))
            return
        self._add(id(value), place)  # math.sqrt is not cmath.sqrt
        self.keep.append(value)
        home = str(value.__module__ or "")
        if is_outside(home):
            self._refuse(errors.outside_world(place_text(place)))
        elif (home == "builtins" and value.__name__ in OUTSIDE_FUNCTIONS) or (is_library(home) and value.__name__ in FILES):
            self._refuse(errors.outside_world(f"{value.__name__}()"))

    def _module_named(self, level: int, name: str, names: dict[str, Any]) -> None:
        """A module that code imports, and the packages around it."""
        if level:
            package = str(names.get("__package__") or str(names.get("__name__", "")).rpartition(".")[0])
            around = package.rsplit(".", level - 1)[0]
            name = f"{around}.{name}" if name else around
        parts = name.split(".")
        for i in range(len(parts)):
            each = ".".join(parts[: i + 1])
            found = sys.modules.get(each)
            if found is not None:
                self._module(found, (None, each))
            elif is_outside(each):
                self._refuse(errors.outside_world(each))

    def _module(self, value: ModuleType, place: Any) -> None:
        if self._again(value, place):
            return
        name = value.__name__
        self._add((ModuleType, name), place)
        if is_outside(name):
            self._refuse(errors.outside_world(name))
        elif name.partition(".")[0] == "numpy" and (name.startswith("numpy.random") or "random" in self._code.names):
            self._refuse(errors.outside_world("numpy.random"))
        elif is_library(name):
            effects = OUTSIDE_FUNCTIONS if name == "builtins" else FILES
            for each in sorted(self._code.names & effects & vars(value).keys()):
                self._refuse(errors.outside_world(f"{name}.{each}"))
        else:
            held = vars(value)
            names = self._code.names
            for each in sorted(held if self._code.computed else held.keys() & (names | {"__getattr__"})):
                if each[:2] != "__" or each in names or each == "__getattr__":
                    self._visit(held[each], (place, f".{each}"), held, each, each not in names)
            if type(value) is not ModuleType:
                self._kind(type(value), place)

    def _class(self, value: type, place: Any) -> None:
        """A class that the code can call."""
        if not self._again(value, place):
            self._add((type, value), place)
            self._members(value, place, True)

    def _kind(self, value: type, place: Any) -> None:
        """The class of an object."""
        if {"type", "__class__"} & self._code.names:
            self._class(value, place)
        elif not self._again(value, place, "kind"):
            self._add((type, value), place)
            self._members(value, place, False)

    def _members(self, value: type, place: Any, is_called: bool) -> None:
        if any(is_outside(each.__module__) for each in value.__mro__):
            self._refuse(errors.outside_world(place_text(place)))
        if not is_library(type(value).__module__):
            self._kind(type(value), place)
        names, computed = self._code.names, self._code.computed
        asked = {name for each in value.__mro__ if each is not object and is_library(each.__module__) for name in vars(each)}
        for each in value.__mro__:
            if is_library(each.__module__):
                continue
            for name, held in list(vars(each).items()):
                if name in _CLASS_FACTS or isinstance(held, _DESCRIPTORS):
                    continue
                is_code = isinstance(held, (FunctionType, staticmethod, classmethod, property))
                constructs = name in ("__init__", "__new__")
                if is_code and (name in names or (is_called if constructs else computed or name in asked or name[:2] == "__")):
                    inner = [held.fget, held.fset] if isinstance(held, property) else [getattr(held, "__func__", held)]
                    for function in inner:
                        self._visit(function, (place, f".{name}"), None, None, lenient=True)
                elif not is_code and (name in names or name in asked or computed):
                    self._add(name, place)
                    self._visit(held, (place, f".{name}"), None, None, name not in names)

    # ---- other objects

    def _identity(self, value: Any, place: Any) -> None:
        self._add((type(value), id(value)), place)
        self.keep.append(value)

    def _other(self, value: Any, place: Any, lenient: bool) -> None:
        kind: Any = type(value)
        if isinstance(value, (Device, DType, Operator, Packet, CustomOpDef)):
            self._identity(value, place)
        elif isinstance(value, enum.Enum):
            self._identity(value, place)
            if not self._again(value, place, "member"):
                self._kind(kind, place)
                self._visit(value._value_, (place, ".value"))
                self._attributes(value, place)
        elif isinstance(value, ReferenceType):
            self._add(kind, place)
            self._visit(value(), (place, "()"))
        elif isinstance(value, (attrgetter, methodcaller)):
            self._getter(value, place)
        elif isinstance(value, Generator):
            self._generator(value, place)
        elif isinstance(value, type):
            self._class(value, place)
        elif isinstance(value, ModuleType):
            self._module(value, place)
        elif isinstance(value, (int, float, complex, str, bytes)):
            base = next(each for each in (int, float, complex, str, bytes) if isinstance(value, each))
            self._add((kind, base.__repr__(value)), place)
            self._kind(kind, place)
            self._attributes(value, place)
        elif isinstance(value, tuple):
            self._tuple(value, place)
            self._kind(kind, place)
            self._attributes(value, place)
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
            self.arrays.append(value)
        elif has_state(kind):
            self._object(value, place)
        elif callable(value) and is_library(str(getattr(value, "__module__", None) or type(value).__module__)):
            self._identity(value, place)
        else:
            self._uncomparable(value, place, lenient)

    def _getter(self, value: Any, place: Any) -> None:
        """What `operator.attrgetter` and `methodcaller` made: it names attributes, as code does."""
        function, args = value.__reduce__()[:2]
        if isinstance(function, partial):  # with arguments by keyword
            self._visit(function.keywords, place)
            args = (*function.args, *args)
        names = args if isinstance(value, attrgetter) else args[:1]
        self._code.names |= {part for each in names for part in each.split(".")}
        self._add(type(value), place)
        self._tuple(args, place)

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
        self._kind(kind, place)
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
            for name, slot in list(vars(base).items()):  # a private name is there as code names it
                if isinstance(slot, MemberDescriptorType) and (name in names or library or computed):
                    self._add(name, place)
                    try:
                        each = slot.__get__(value, kind)
                    except AttributeError:
                        continue
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
    slice: Walk._slice, MethodWrapperType: Walk._builtin, Graph: Walk._graph,
    range: lambda walk, value, place: walk._add((range, value.start, value.stop, value.step), place),
    type(...): lambda walk, value, place: walk._add(..., place),
    type(NotImplemented): lambda walk, value, place: walk._add("NotImplemented", place),
    type: Walk._class,
}  # fmt: skip
