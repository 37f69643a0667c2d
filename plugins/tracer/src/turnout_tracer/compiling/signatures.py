"""The signature of a call: one walk over the arguments, and over what the function can reach.

The walk gives a key, in which plain values stand as they are and tensors by what a graph depends on, and the tensors in order of
meeting. Two calls with one key run one program. The walk does not change anything, and calls no code of the program.

Beside each part of the key it writes the lines that ask for this part again: together they are a guard, a function of a call that
returns its tensors where the key would be the same (`guards`). `at` is what a value is called in these lines.
"""

from __future__ import annotations

import enum
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from functools import cache, partial
from operator import attrgetter, methodcaller
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CellType,
    ClassMethodDescriptorType,
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
from turnout_tracer.compiling.guards import Lines, is_odd, parts_of, shared
from turnout_tracer.compiling.reach import (
    CALLED,
    COMPUTED,
    FIELDS,
    FILES,
    OUTSIDE_FUNCTIONS,
    OUTSIDE_NAMES,
    Code,
    has_files,
    is_library,
    is_outside,
)
from turnout_tracer.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = tuple[Any, str]  # the place around it, and what is added
    Holder = tuple[Any, Any, str]  # of a value that can be replaced: the owner, the name there, what a guard calls the owner

LIMIT = 100_000  # parts of a key
_IN_C = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
# What tells how a tensor was computed.
HISTORY = frozenset(("grad_fn", "node", "retains_grad", "output_nr"))
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
    """A place that holds a tensor and can be given another one: a name or a number of an owner, which a guard calls `at`."""

    __slots__ = ("at", "index", "name", "owner", "place")

    def __init__(self, index: int, holder: Holder, place: Any) -> None:
        self.index = index
        self.owner, self.name, self.at = holder
        self.place = place


def put(owner: Any, name: Any, value: Any) -> None:
    """Let a place hold `value`."""
    if isinstance(owner, CellType):
        owner.cell_contents = value
    else:
        owner[name] = value


class Walk:
    """The signature of one call.

    key        what programs are found by
    tensors    in the order in which they were met, those of `.grad` last
    slots      the places that hold them, `.grad` left out
    generators beside them
    main       how many tensors are not there as a `.grad` only
    reason     why the call cannot be compiled, or ""
    lines      of a guard
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], code: Code) -> None:
        self._code = code
        while True:
            before = len(code.names), code.computed
            self._start()
            try:
                self._visit(args, (None, "arguments"), "args")
                if kwargs:
                    self._visit(kwargs, (None, "arguments"), "kwargs")
                else:
                    self.lines.unless("kwargs")
                self._visit(function, (None, getattr(function, "__name__", "function")), self.lines.constant(function))
            except RecursionError:
                self._refuse(errors.TOO_DEEP)
            if before == (len(code.names), code.computed):
                break
        for name in sorted(self._fields - self._own):
            self._refuse(errors.outside_world(name))
        self.main = len(self.tensors)
        self.main_key = tuple(self._parts)
        self.seeds = [initial_seed(), *[each.initial_seed() for each in self.generators]]
        self.nodes = [each.node for each in self.tensors]
        self.lines.tells_sizes = False  # gradients, shared memory and modes go with the sizes that were read
        self._grads()
        self._memories()
        self.modes = tuple(GRAD.get()), config.get("default_device"), get_default_dtype()
        self._add(self.modes, (None, errors.MODES))
        self.lines.modes(self.modes)
        self.key = tuple(self._parts)

    def _start(self) -> None:
        self.tensors: list[Tensor] = []
        self.generators: list[Generator] = []
        self.slots: list[Slot] = []
        self.met: list[int] = []  # how often each tensor
        self.reason = ""
        self.lines = Lines()
        self.containers: set[int] = set()
        self.keep: list[Any] = []  # objects whose id stands in the key
        self.places: list[Any] = []
        self.tensor_places: list[Any] = []
        self._parts: list[Any] = []
        self._seen: dict[Any, tuple[int, str]] = {}
        self._called: list[str] = []  # what a guard calls the tensors
        self._drawn: list[str] = []  # and the generators
        # Which fields the code takes that tensors have, and which of these names objects of the program have: theirs are meant.
        self._fields: set[str] = set()
        self._own: set[str] = set()
        self.arrays: list[Any] = []  # NumPy's

    # ---- the key

    def _add(self, part: Any, place: Any) -> None:
        self._parts.append(part)
        self.places.append(place)
        if len(self._parts) > LIMIT:
            self._refuse(errors.too_large(LIMIT))

    def _refuse(self, why: str) -> None:
        self.reason = self.reason or why

    def _visit(self, value: Any, place: Any, at: str, holder: Holder | None = None, lenient: bool = False) -> None:
        kind = type(value)
        if kind is int or kind is bool or kind is str or value is None:
            self._add((kind, value), place)
            self.lines.is_plain(at, kind, value)
        elif kind is Tensor:
            self._tensor(value, place, at, holder)
        elif kind is float or kind is complex:
            self._add((kind, repr(value)), place)
            self.lines.has_text(at, kind, repr(value))
        elif len(self._parts) <= LIMIT:
            visit = _VISITS.get(kind)
            if visit is not None:
                visit(self, value, place, at)
            else:
                self._other(value, place, at, lenient)

    def _again(self, value: Any, place: Any, at: str, role: str = "") -> bool:
        """Whether an object was met before, in this role; it is then named by when. Without `at` it is always the same."""
        met = (id(value), role) if role else id(value)
        found = self._seen.get(met)
        if found is None:
            self._seen[met] = len(self._seen), at
            if at:
                self.lines.differs(at)
            return False
        self._add(("again", found[0]), place)
        if at:
            self.lines.unless(f"{at} is not {found[1]}", light="")
        return True

    # ---- tensors

    def _tensor(self, value: Tensor, place: Any, at: str, holder: Holder | None = None) -> None:
        if self._again(value, place, at):
            index = next(i for i, each in enumerate(self.tensors) if each is value)
            self.met[index] += 1
        else:
            index = len(self.tensors)
            self.tensors.append(value)
            self.met.append(1)
            self.tensor_places.append(place)
            self._called.append(at)
            if is_odd(value.extra):
                self._refuse(errors.hooks(place_text(place)))
            offset = 0 if value.storage is None else value.storage_offset()
            part = (
                Tensor, value.dtype, value.device, tuple(value.shape), value.stride(), value.keys, value.gmask,
                value.node is None, role_of(value), offset, value.view_of is None,
            )  # fmt: skip
            self._add(part, place)
            self.lines.is_tensor(at, part, value.array)
            if value.node is not None and HISTORY & self._code.names:
                self._refuse(errors.history(place_text(place)))
            if value.view_of is not None and "_base" in self._code.names:
                self._attribute(value, "_base", place, at)
        if holder is not None:
            self.slots.append(Slot(index, holder, place))

    def _grads(self) -> None:
        self.grads: list[Any] = []
        for i in range(self.main):
            extra = self.tensors[i].extra
            grad = None if extra is None else extra.get("grad")
            self.grads.append(grad)
            at = self.lines.grad(self._called[i], grad is not None)
            if grad is not None:
                place = (self.tensor_places[i], ".grad")
                self._add(("grad", i), place)
                if type(grad) is Tensor:
                    self._tensor(grad, place, at)
                else:
                    self._refuse(errors.uncomparable(place_text(place), type(grad).__name__))

    def _memories(self) -> None:
        """Which tensors share memory."""
        self.groups = shared(self.tensors)
        for group in self.groups:
            self._add(("shared", *group), (None, " and ".join(place_text(self.tensor_places[i]) for i in group)))
        if len(self.tensors) > 1:
            self.lines.share(self._called, self.groups)

    def _generator(self, value: Generator, place: Any, at: str) -> None:
        if not self._again(value, place, at):
            self._add((type(value), value.device), place)
            self.lines.is_a(at, type(value), f"{at}.device != {self.lines.constant(value.device)}")
            self.generators.append(value)
            self._drawn.append(at)

    def guard(self, slots: list[int]) -> Callable[..., Any] | None:
        """A function of `args` and `kwargs` that returns what `found` does where a call has this signature, else None."""
        places = [(self.slots[i].at, self.slots[i].name) for i in slots]
        return self.lines.function(self._called, self._drawn, places)

    def guard_of_sizes(self) -> Callable[..., Any] | None:
        """A function of `args` and `kwargs` that returns None where something but the tensors differs, or the shape of one."""
        return self.lines.sizes_only()

    def found(self, slots: list[int]) -> tuple[Any, ...]:
        """The tensors of the call, its generators, and these places: owner and name."""
        return self.tensors, self.generators, [(self.slots[i].owner, self.slots[i].name) for i in slots]

    def _graph(self, value: Graph, place: Any, at: str) -> None:
        """A graph of a program: its calls, which never change, and its tensors. What it prepares for calls is its own affair."""
        if self._again(value, place, at):
            return
        parts = parts_of(value)
        ids = tuple(map(id, parts))
        self._add((Graph, value.replay, ids), place)
        asked = f"type({at}) is not Graph", f"{at}.replay != {value.replay!r}", f"(*map(id, parts_of({at})),) != {ids}"
        self.lines.unless(*asked, light=f"{at} is not {self.lines.constant(value)}")
        self.keep += parts
        told, self.lines.tells_sizes = self.lines.tells_sizes, False  # the calls of a graph decide about the sizes of its tensors
        for i, constant in enumerate(value.constants):
            self._visit(constant.tensor, (place, ".constants"), self.lines.read(f"{at}.constants[{i}].tensor"))
        self._attribute(value, "state", place, at)
        self.lines.tells_sizes = told

    # ---- containers

    def _is_new(self, value: Any, place: Any, at: str) -> bool:
        """Whether a container is met for the first time; then its class and length are part of the key."""
        if self._again(value, place, at):
            return False
        self.containers.add(id(value))
        self._add((type(value), len(value)), place)
        self.lines.is_a(at, type(value), f"len({at}) != {len(value)}")
        return True

    def _list(self, value: Any, place: Any, at: str) -> None:
        if not self._is_new(value, place, at):
            return
        for i, each in enumerate(list(value)):
            self._visit(each, (place, f"[{i}]"), self.lines.read(f"{at}[{i}]"), (value, i, at))

    def _tuple(self, value: Any, place: Any, at: str) -> None:
        length, kind = tuple.__len__(value), type(value)
        self._add((kind, length), place)
        self.lines.is_a(at, kind, f"tuple.__len__({at}) != {length}")
        for i, each in enumerate(tuple.__iter__(value)):  # not by methods of a class of the program
            self._visit(each, (place, f"[{i}]"), self.lines.read(f"tuple.__getitem__({at}, {i})"))

    def _slice(self, value: slice, place: Any, at: str) -> None:
        self._add(slice, place)
        self.lines.is_a(at, slice)
        for name in ("start", "stop", "step"):
            self._visit(getattr(value, name), place, self.lines.read(f"{at}.{name}"))

    def _range(self, value: range, place: Any, at: str) -> None:
        self._add((range, value.start, value.stop, value.step), place)
        self.lines.is_a(at, range, *[f"{at}.{name} != {getattr(value, name)}" for name in ("start", "stop", "step")])

    def _bytes(self, value: bytes, place: Any, at: str) -> None:
        self._add((bytes, value), place)
        self.lines.is_a(at, bytes, f"{at} != {self.lines.constant(value)}")

    def _single(self, value: Any, place: Any, at: str) -> None:
        """`...` or NotImplemented."""
        self._add(... if value is ... else "NotImplemented", place)
        self.lines.unless(f"{at} is not {value!r}")

    def _set(self, value: Any, place: Any, at: str) -> None:
        if not self._is_new(value, place, at):
            return
        if isinstance(value, deque):
            self._add(value.maxlen, place)
            self.lines.unless(f"{at}.maxlen != {value.maxlen}")
        held = self.lines.read(f"[*{at}]") if value else ""
        for i, each in enumerate(list(value)):
            self._visit(each, (place, "{...}"), self.lines.read(f"{held}[{i}]"))

    def _dict(self, value: Any, place: Any, at: str) -> None:
        if not self._is_new(value, place, at):
            return
        if isinstance(value, defaultdict):
            self._attribute(value, "default_factory", place, at)
        names = all(type(key) is str for key in value)
        keys = self.lines.keys(at, (*value,), names)
        for i, (key, each) in enumerate(list(value.items())):
            inner = (place, f"[{key!r}]" if isinstance(key, (str, int)) else "[...]")
            if names:
                self._add((str, key), inner)
                key_at = repr(key)
            else:
                key_at = self.lines.read(f"{keys}[{i}]")
                self._visit(key, inner, key_at)
            self._visit(each, inner, self.lines.read(f"{at}[{key_at}]"), (value, key, at))

    # ---- code

    def _function(self, value: FunctionType, place: Any, at: str) -> None:
        if self._again(value, place, at):
            return
        lines = self.lines
        self._add((FunctionType, id(value.__code__)), place)
        self.keep.append(value.__code__)
        names = lines.constant(value.__globals__)
        lines.is_a(at, FunctionType, f"{at}.__code__ is not {lines.constant(value.__code__)}", f"{at}.__globals__ is not {names}")
        home = str(value.__globals__.get("__name__", ""))
        library = is_library(home)
        if is_outside(home):
            self._refuse(errors.outside_world(place_text(place)))
        if library:
            self._known(value.__name__)
            if has_files(home) and value.__name__ in FILES:
                self._refuse(errors.outside_world(value.__name__))
        else:
            reach = self._code.of(value.__code__)
            self._fields |= reach.fields
            for name in reach.outside:
                self._refuse(errors.outside_world(name))
            for level, name in reach.modules:
                self._module_named(level, name, value.__globals__)
            for name in reach.globals:
                if name in value.__globals__:
                    held = value.__globals__[name]
                    self._visit(held, (None, name), lines.read(f"{names}[{name!r}]"), (value.__globals__, name, names))
                else:
                    self._add((name, "builtin"), (None, name))
                    lines.unless(f"{name!r} in {names}")
                    if name in OUTSIDE_FUNCTIONS:
                        self._refuse(errors.outside_world(f"{name}()"))
        for i, (name, cell) in enumerate(zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)):
            cell_at = lines.read(f"{at}.__closure__[{i}]")
            try:
                held = cell.cell_contents
            except ValueError:
                self._add("empty", (None, name))
                lines.unless(f"not is_empty({cell_at})")
                continue
            self._visit(held, (None, name), lines.read(f"{cell_at}.cell_contents"), (cell, None, cell_at), library)
        for default in ("__defaults__", "__kwdefaults__"):
            each = getattr(value, default)
            default_at = lines.read(f"{at}.{default}")
            if each is not None:
                self._visit(each, (place, " (a default)"), default_at, None, library)
            else:
                lines.unless(f"{default_at} is not None")
        self._attributes(value, place, at, library)

    def _known(self, name: str) -> None:
        """A function of a library is named, whatever the code calls it."""
        self._code.names.add(name)
        if name in OUTSIDE_NAMES:
            self._refuse(errors.outside_world(name))

    def _attribute(self, value: Any, name: str, place: Any, at: str) -> None:
        self._visit(getattr(value, name), (place, f".{name}"), self.lines.read(f"{at}.{name}"))

    def _attributes(self, value: Any, place: Any, at: str, lenient: bool = False, all_names: bool = False) -> None:
        """What the dict of an object holds under names that the code can ask for, or under `all_names`."""
        held = getattr(value, "__dict__", None)
        held_at = self.lines.dict_of(at, held)
        if type(held) is dict:
            self._own |= FIELDS & held.keys()
            for name, each in list(held.items()):
                used = name in self._code.names
                if used or all_names or self._code.computed:
                    self._add(name, place)
                    at_name = self.lines.read(f"{held_at}[{name!r}]")
                    self._visit(each, (place, f".{name}"), at_name, (held, name, held_at), lenient or not used)
        elif held is not None:
            self._refuse(errors.uncomparable(f"{place_text(place)}.__dict__", type(held).__name__))

    def _method(self, value: Any, place: Any, at: str) -> None:
        self._add(MethodType, place)
        self.lines.is_a(at, MethodType)
        self._visit(value.__func__, place, self.lines.read(f"{at}.__func__"))
        self._attribute(value, "__self__", place, at)

    def _partial(self, value: Any, place: Any, at: str) -> None:
        self._add(type(value), place)
        self.lines.is_a(at, type(value))
        for name in ("func", "args", "keywords"):
            self._attribute(value, name, place, at)
        self._attributes(value, place, at)

    def _builtin(self, value: Any, place: Any, at: str) -> None:
        bound = value.__self__
        self._code.computed = self._code.computed or value.__name__ in COMPUTED  # under whatever name the code has it
        if bound is not None and not isinstance(bound, ModuleType):
            self._add((type(value), value.__qualname__), place)
            self.lines.is_a(at, type(value), f"{at}.__qualname__ != {value.__qualname__!r}")
            self._attribute(value, "__self__", place, at)
            return
        self._identity(value, place, at)  # math.sqrt is not cmath.sqrt
        home = str(value.__module__ or "")
        if is_outside(home):
            self._refuse(errors.outside_world(place_text(place)))
        elif (home == "builtins" and value.__name__ in OUTSIDE_FUNCTIONS) or (has_files(home) and value.__name__ in FILES):
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
            at = self.lines.read(f"modules.get({each!r})")
            if found is not None:
                self._module(found, (None, each), at)
            else:
                self.lines.unless(f"{at} is not None")
                if is_outside(each):
                    self._refuse(errors.outside_world(each))

    def _module(self, value: ModuleType, place: Any, at: str) -> None:
        self.lines.is_the(at, value)
        if self._again(value, place, ""):
            return
        name = value.__name__
        self._add((ModuleType, name), place)
        if is_outside(name):
            self._refuse(errors.outside_world(name))
        elif name.partition(".")[0] == "numpy" and (name.startswith("numpy.random") or "random" in self._code.names):
            self._refuse(errors.outside_world("numpy.random"))
        elif is_library(name):
            effects = OUTSIDE_FUNCTIONS if name == "builtins" else FILES if has_files(name) else frozenset()
            for each in sorted(self._code.names & effects & vars(value).keys()):
                self._refuse(errors.outside_world(f"{name}.{each}"))
        else:
            held = vars(value)
            names, lines = self._code.names, self.lines
            held_at, named = lines.constant(held), names | {"__getattr__"}
            known = held.keys() if self._code.computed else held.keys() & named
            of_names = "" if self._code.computed else f" & {lines.constant(frozenset(named))}"
            lines.unless(f"{held_at}.keys(){of_names} != {lines.constant(frozenset(known))}")
            for each in sorted(known):
                if each[:2] != "__" or each in names or each == "__getattr__":
                    inner = lines.read(f"{held_at}[{each!r}]")
                    self._visit(held[each], (place, f".{each}"), inner, (held, each, held_at), each not in names)
            if type(value) is not ModuleType:
                lines.unless(f"type({at}) is not {lines.constant(type(value))}")
                self._kind(type(value), place)

    def _class(self, value: type, place: Any, at: str) -> None:
        """A class that the code can call."""
        self._code.computed = self._code.computed or value.__name__ in COMPUTED
        self._code.names |= CALLED.get(value, frozenset())
        self.lines.is_the(at, value)
        self._called_class(value, place)

    def _called_class(self, value: type, place: Any) -> None:
        if not self._again(value, place, ""):
            self._add((type, value), place)
            self._members(value, place, True)

    def _kind(self, value: type, place: Any) -> None:
        """The class of an object."""
        if {"type", "__class__"} & self._code.names:
            self._called_class(value, place)
        elif not self._again(value, place, "", "kind"):
            self._add((type, value), place)
            self._members(value, place, False)

    def _members(self, value: type, place: Any, is_called: bool) -> None:
        if any(is_outside(each.__module__) for each in value.__mro__):
            self._refuse(errors.outside_world(place_text(place)))
        lines, meta = self.lines, type(value)
        if not is_library(meta.__module__):
            lines.unless(f"type({lines.constant(value)}) is not {lines.constant(meta)}")
            self._kind(meta, place)
        names, computed = self._code.names, self._code.computed
        asked = {name for each in value.__mro__ if each is not object and is_library(each.__module__) for name in vars(each)}
        lines.unless(f"{lines.constant(value)}.__mro__ is not {lines.constant(value.__mro__)}")
        for each in value.__mro__:
            if is_library(each.__module__):
                continue
            members = lines.constant(vars(each))
            lines.unless(f"(*{members},) != {lines.constant((*vars(each),))}")
            for name, held in list(vars(each).items()):
                if name in _CLASS_FACTS or isinstance(held, _DESCRIPTORS):
                    continue
                is_code = isinstance(held, (FunctionType, staticmethod, classmethod, property))
                constructs = name in ("__init__", "__new__")
                at = f"{members}[{name!r}]"
                if is_code and (name in names or (is_called if constructs else computed or name in asked or name[:2] == "__")):
                    lines.is_the(at, held)
                    inner = [held.fget, held.fset] if isinstance(held, property) else [getattr(held, "__func__", held)]
                    for function in inner:
                        self._visit(function, (place, f".{name}"), lines.constant(function), None, lenient=True)
                elif not is_code and (name in names or name in asked or computed):
                    self._add(name, place)
                    self._visit(held, (place, f".{name}"), lines.read(at), None, name not in names)
                elif is_code or name[:2] == "__":
                    lines.is_the(at, held)  # something else there might be part of the key

    # ---- other objects

    def _identity(self, value: Any, place: Any, at: str) -> None:
        self._add((type(value), id(value)), place)
        self.lines.is_the(at, value)
        self.keep.append(value)

    def _other(self, value: Any, place: Any, at: str, lenient: bool) -> None:
        kind: Any = type(value)
        if isinstance(value, (Device, DType, Operator, Packet, CustomOpDef)):
            self._identity(value, place, at)
            if isinstance(value, (Operator, Packet)):
                self._known(value.name)
        elif isinstance(value, enum.Enum):
            self._identity(value, place, at)
            if not self._again(value, place, "", "member"):
                self._kind(kind, place)
                self._visit(value._value_, (place, ".value"), self.lines.read(f"{at}._value_"))
                self._attributes(value, place, at)
        elif isinstance(value, ReferenceType):
            self._add(kind, place)
            self.lines.is_a(at, kind)
            self._visit(value(), (place, "()"), self.lines.read(f"{at}()"))
        elif isinstance(value, (attrgetter, methodcaller)):
            self._getter(value, place, at)
        elif isinstance(value, Generator):
            self._generator(value, place, at)
        elif isinstance(value, type):
            self._class(value, place, at)
        elif isinstance(value, ModuleType):
            self._module(value, place, at)
        elif isinstance(value, (int, float, complex, str, bytes)):
            base = next(each for each in (int, float, complex, str, bytes) if isinstance(value, each))
            self._add((kind, base.__repr__(value)), place)
            self.lines.is_a(at, kind, f"{base.__name__}.__repr__({at}) != {base.__repr__(value)!r}")
            self._kind(kind, place)
            self._attributes(value, place, at)
        elif isinstance(value, tuple):
            self._tuple(value, place, at)
            self._kind(kind, place)
            self._attributes(value, place, at)
        elif isinstance(value, Tensor):
            self._uncomparable(value, place, at, lenient)
        elif hasattr(type(value), "__turnout_compiled__"):
            self._compiled(value, place, at)
        elif (
            type(value).__module__ == "numpy"
            and hasattr(value, "tobytes")
            and value.nbytes <= _SMALL
            and not value.dtype.hasobject
        ):
            self._array(value, place, at)
        elif has_state(kind):
            self._object(value, place, at)
        elif callable(value) and is_library(str(getattr(value, "__module__", None) or type(value).__module__)):
            self._identity(value, place, at)
            self._known(getattr(value, "__name__", ""))
        else:
            self._uncomparable(value, place, at, lenient)

    def _array(self, value: Any, place: Any, at: str) -> None:
        """A small array or number of NumPy's."""
        if self._again(value, place, at):
            return
        laid = value.shape, value.strides, value.flags.writeable
        self._add((type(value), str(value.dtype), laid, value.tobytes()), place)
        self.lines.is_a(
            at, type(value), f"str({at}.dtype) != {str(value.dtype)!r}",
            f"({at}.shape, {at}.strides, {at}.flags.writeable) != {laid!r}", f"{at}.tobytes() != {value.tobytes()!r}",
        )  # fmt: skip
        self.arrays.append(value)

    def _compiled(self, value: Any, place: Any, at: str) -> None:
        """A compiled function: the function itself, and attributes that the program has given to it."""
        if self._again(value, place, at):
            return
        self.lines.is_a(at, type(value))
        self._visit(value.__turnout_compiled__, place, self.lines.read(f"{at}.__turnout_compiled__"))
        held = vars(value)
        held_at = self.lines.read(f"{at}.__dict__")
        self.lines.unless(f"(*{held_at},) != {self.lines.constant((*held,))}")
        for name in [each for each in held if each in self._code.names and each not in value.__turnout_own__]:
            self._add(name, place)
            self._visit(held[name], (place, f".{name}"), self.lines.read(f"{held_at}[{name!r}]"), (held, name, held_at))

    def _getter(self, value: Any, place: Any, at: str) -> None:
        """What `operator.attrgetter` and `methodcaller` made: it names attributes, as code does."""
        self.lines.is_the(at, value)  # it cannot be changed
        function, args = value.__reduce__()[:2]
        if isinstance(function, partial):  # with arguments by keyword
            self._visit(function.keywords, place, self.lines.constant(function.keywords))
            args = (*function.args, *args)
        names = args if isinstance(value, attrgetter) else args[:1]
        self._code.names |= {part for each in names for part in each.split(".")}
        self._add(type(value), place)
        self._tuple(args, place, self.lines.constant(args))

    def _uncomparable(self, value: Any, place: Any, at: str, lenient: bool) -> None:
        if lenient:
            self._identity(value, place, at)
        else:
            self._refuse(errors.uncomparable(place_text(place), type(value).__name__))

    def _object(self, value: Any, place: Any, at: str) -> None:
        if self._again(value, place, at):
            return
        kind = type(value)
        self.containers.add(id(value))
        self.lines.is_a(at, kind)
        self._kind(kind, place)
        library = any(is_library(base.__module__) and base is not object for base in kind.__mro__)
        names, computed = self._code.names, self._code.computed
        self._attributes(value, place, at, all_names=library)
        for base in kind.__mro__:
            for name, slot in list(vars(base).items()):  # a private name is there as code names it
                if isinstance(slot, MemberDescriptorType) and (name in names or library or computed):
                    self._own |= FIELDS & {name}
                    self._add(name, place)
                    get = f"{self.lines.constant(slot)}.__get__({at})"
                    try:
                        each = slot.__get__(value, kind)
                    except AttributeError:
                        self.lines.unless(f"not is_unset({self.lines.constant(slot)}, {at})")
                        continue
                    self._visit(each, (place, f".{name}"), self.lines.read(get), None, lenient=name not in names)


_CLASS_FACTS = frozenset(
    ("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__", "__qualname__", "__firstlineno__",
     "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "_abc_impl")
)  # fmt: skip
_DESCRIPTORS = (MemberDescriptorType, GetSetDescriptorType, type(vars(namedtuple("_OfNames", "name"))["name"]))
_VISITS: dict[type, Callable[[Walk, Any, Any, str], None]] = {
    list: Walk._list, deque: Walk._set, tuple: Walk._tuple, Size: Walk._tuple, dict: Walk._dict, OrderedDict: Walk._dict,
    defaultdict: Walk._dict, set: Walk._set, frozenset: Walk._set, FunctionType: Walk._function, MethodType: Walk._method,
    partial: Walk._partial, BuiltinFunctionType: Walk._builtin, BuiltinMethodType: Walk._builtin, Generator: Walk._generator,
    bytes: Walk._bytes, slice: Walk._slice, range: Walk._range, MethodWrapperType: Walk._builtin, type: Walk._class,
    Graph: Walk._graph, type(...): Walk._single, type(NotImplemented): Walk._single,
}  # fmt: skip
