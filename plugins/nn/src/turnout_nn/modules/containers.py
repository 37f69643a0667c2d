"""Modules that hold others: `Sequential`, `ModuleList`, `ModuleDict`; and `ParameterList`, `ParameterDict`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any, Self, overload

from turnout import Tensor
from turnout.errors import ArgumentError, CallError, DimError
from turnout_nn import errors
from turnout_nn.module import Module
from turnout_nn.parameters import Parameter


class _Numbered(Module):
    """Modules under the names "0", "1", ..., as a list."""

    def _values(self) -> list[Any]:
        own = self.__dict__
        return [own[name] for name in self._module_names]

    def _refill(self, modules: list[Any]) -> None:
        """Hold these modules and no others."""
        own = self.__dict__
        for name in self._module_names:
            del own[name]
        self._module_names.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def _place(self, idx: Any) -> str:
        """The name at an index."""
        names, at = list(self._module_names), index(idx)
        if not -len(names) <= at < len(names):
            raise DimError(errors.no_index(self, at, len(names)))
        return names[at]

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values())

    @overload
    def __getitem__(self, idx: int) -> Any: ...

    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return self._part(list(self._module_names)[idx])
        return self.__dict__[self._place(idx)]

    def _part(self, names: list[str]) -> Any:
        """A container of the same class with some of the modules."""
        made: Any = type(self)
        return made([self.__dict__[name] for name in names])

    def __setitem__(self, idx: int, module: Module) -> None:
        name = self._place(idx)
        if not isinstance(module, Module):
            raise CallError(errors.not_a_member(type(self).__name__, "module", module))
        setattr(self, name, module)

    def __delitem__(self, idx: int | slice) -> None:
        names = list(self._module_names)
        gone = set(names[idx]) if isinstance(idx, slice) else {self._place(idx)}
        self._refill([self.__dict__[name] for name in names if name not in gone])

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns the container.

        Arguments:
            module: the module
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; returns the container.

        Arguments:
            modules: the modules
        """
        if not isinstance(modules, Iterable):
            raise CallError(errors.not_iterable(f"{type(self).__name__}.extend", modules))
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before the one at an index.

        Arguments:
            index: where
            module: the module
        """
        if not isinstance(module, Module):
            raise CallError(errors.not_a_member(type(self).__name__, "module", module))
        modules = self._values()
        modules.insert(index, module)
        self._refill(modules)
        return self

    def pop(self, key: int) -> Any:
        """Remove a module and return it.

        Arguments:
            key: its index
        """
        found = self[key]
        del self[key]
        return found

    def __add__(self, other: Iterable[Module]) -> Self:
        made = type(self)()
        made._refill([*self, *other])
        return made

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)


class Sequential(_Numbered):
    """Modules that are called in turn, each with the result of the one before.

    Arguments:
        args: the modules, or one dict of them, whose keys are their names

    Example:
        >>> turnout.nn.Sequential(turnout.nn.Linear(3, 4), turnout.nn.Identity())
        Sequential(
          (0): Linear(in_features=3, out_features=4, bias=True)
          (1): Identity()
        )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def _part(self, names: list[str]) -> Any:
        return type(self)(OrderedDict((name, self.__dict__[name]) for name in names))

    def __delitem__(self, idx: int | slice) -> None:
        names = list(self._module_names)
        gone = names[idx] if isinstance(idx, slice) else [self._place(idx)]
        numbered = names == [str(i) for i in range(len(names))]
        for name in gone:
            delattr(self, name)
        if numbered:
            self._refill(self._values())

    def __mul__(self, other: int) -> Self:
        if not isinstance(other, int):
            return NotImplemented
        made = type(self)()
        made._refill(self._repeated(other))
        return made

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        if not isinstance(other, int):
            return NotImplemented
        return self.extend(self._repeated(other)[len(self) :])

    def _repeated(self, count: int) -> list[Any]:
        """The modules, and the same ones again."""
        if count < 1:
            raise ArgumentError(errors.wrong_repetition(self, count))
        return self._values() * count

    def forward(self, input: Any) -> Any:
        """The result of the last module.

        Arguments:
            input: the argument of the first one
        """
        own = self.__dict__
        for name in own["_module_names"]:
            input = own[name](input)
        return input


class ModuleList(_Numbered):
    """Modules in a list. It has no `forward`: a module that holds one calls them.

    Arguments:
        modules: the modules

    Example:
        >>> layers = turnout.nn.ModuleList([turnout.nn.Linear(2, 2) for _ in range(3)])
        >>> len(layers), layers[-1]
        (3, Linear(in_features=2, out_features=2, bias=True))
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = [f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}" for a, b, text in runs]
        return "\n".join([f"{self._get_name()}(", *("  " + line.replace("\n", "\n  ") for line in lines), ")"])


class ModuleDict(Module):
    """Modules in a dict, whose keys are their names. It has no `forward`.

    Arguments:
        modules: name -> module, or pairs

    Example:
        >>> heads = turnout.nn.ModuleDict({"left": turnout.nn.Linear(2, 1), "right": turnout.nn.Linear(2, 1)})
        >>> list(heads), heads["left"]
        (['left', 'right'], Linear(in_features=2, out_features=1, bias=True))
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._module_names)

    def __contains__(self, key: object) -> bool:
        return key in self._module_names

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it.

        Arguments:
            key: its name
        """
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._module_names.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with their modules."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or put them in the place of those with their names.

        Arguments:
            modules: name -> module, or pairs
        """
        if not isinstance(modules, (Mapping, ModuleDict, Iterable)):
            raise CallError(errors.not_iterable(f"{type(self).__name__}.update", modules))
        for key, module in _pairs(modules):
            self[key] = module


def _pairs(given: Any) -> list[tuple[str, Any]]:
    pairs = list(given.items()) if hasattr(given, "items") else list(given)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(errors.no_pair(pair))
    return [(key, value) for key, value in pairs]


class ParameterList(Module):
    """Parameters in a list. Tensors become parameters; any other value is kept as it is.

    Arguments:
        values: the values

    Example:
        >>> weights = turnout.nn.ParameterList([turnout.zeros(2), turnout.zeros(3)])
        >>> [name for name, _ in weights.named_parameters()]
        ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, idx: Any) -> str:
        at = index(idx)
        if not -self._size <= at < self._size:
            raise DimError(errors.no_index(self, at, self._size))
        return str(at % self._size)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self._size)])

    @overload
    def __getitem__(self, idx: int) -> Any: ...

    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)([self[i] for i in range(*idx.indices(self._size))])
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, value: Any) -> None:
        setattr(self, self._key(idx), _as_parameter(value))

    def append(self, value: Any) -> Self:
        """Add a value at the end; returns the list.

        Arguments:
            value: a tensor, or anything
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end; returns the list.

        Arguments:
            values: tensors, or anything
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise CallError(errors.not_iterable(f"{type(self).__name__}.extend", values))
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def pop(self) -> Any:
        """Remove the last value and return it. Raises DimError for an empty list."""
        found = self[-1]
        delattr(self, str(self._size - 1))
        self._size -= 1
        return found

    def extra_repr(self) -> str:
        """A line for each value."""
        return "\n".join(f"({i}): {_described(value)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise CallError: there is nothing to compute."""
        raise CallError(errors.no_forward(self))


class ParameterDict(Module):
    """Parameters in a dict, whose keys are their names. Tensors become parameters; any other value is kept as it is.

    Arguments:
        parameters: name -> value, or pairs

    Example:
        >>> scales = turnout.nn.ParameterDict({"left": turnout.ones(1)})
        >>> list(scales.keys()), isinstance(scales["left"], turnout.nn.Parameter)
        (['left'], True)
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise CallError(errors.bad_name(type(self).__name__, key))
        if key not in self._keys and hasattr(self, key):
            raise errors.MemberNameError(errors.name_taken(type(self).__name__, self, key))
        value = _as_parameter(value)
        if isinstance(value, Parameter) and (not key or "." in key):
            raise errors.MemberNameError(errors.bad_name(type(self).__name__, key))
        self._keys[key] = None
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def get(self, key: str, default: Any = None) -> Any:
        """The value with a name, or the default.

        Arguments:
            key: the name
            default: what there is without one
        """
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value with a name, which becomes the default where there is none.

        Arguments:
            key: the name
            default: the value where there is none
        """
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a value and return it.

        Arguments:
            key: its name
        """
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Remove the last name with its value, and return both."""
        key = list(self._keys)[-1] if self._keys else ""
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another dict with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict with these names, each with the same value.

        Arguments:
            keys: the names
            default: the value
        """
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> list[Any]:
        """The values."""
        return [self[key] for key in self._keys]

    def items(self) -> list[tuple[str, Any]]:
        """The names with their values."""
        return [(key, self[key]) for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Add values, or put them in the place of those with their names.

        Arguments:
            parameters: name -> value, or pairs
        """
        if not isinstance(parameters, Iterable):
            raise CallError(errors.not_iterable(f"{type(self).__name__}.update", parameters))
        for key, value in _pairs(parameters):
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """A line for each value."""
        return "\n".join(f"({key}): {_described(value)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise CallError: there is nothing to compute."""
        raise CallError(errors.no_forward(self))


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(map(str, value.shape))
    return f"{kind} containing: [{value.dtype} of size {sizes} on {value.device}]"
