"""Tensors of a module that are computed from others: `turnout.nn.utils.parametrize`.

`register_parametrization(module, "weight", f)` moves the parameter to `module.parametrizations.weight.original`, and
`module.weight` is `f(original)` from then on. The module gets a class of its own, derived from the one it had, whose
`__getattr__` computes what the module does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, TypeVar

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, CallError, ModeError, ShapeError
from turnout_nn import errors
from turnout_nn.module import Module
from turnout_nn.modules.containers import ModuleDict, ModuleList
from turnout_nn.parameters import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]
__dir__ = __all__.copy

T = TypeVar("T", bound=Module)

_CLASSES: dict[Any, Any] = {}  # a class of modules -> that of parametrized ones

# a ParametrizationList -> what it computed, inside `cached()`
_CACHE: ContextVar[dict[Any, Tensor] | None] = ContextVar("parametrizations", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Inside the block, every parametrized tensor is computed once.

    Example:
        >>> layer = turnout.nn.utils.parametrizations.weight_norm(turnout.nn.Linear(2, 2))
        >>> with turnout.nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    token = _CACHE.set({} if _CACHE.get() is None else _CACHE.get())
    try:
        yield
    finally:
        _CACHE.reset(token)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensor or tensors from which they compute it.

    Those are `original`, or `original0`, `original1` and so on where the `right_inverse` of the last parametrization returns
    several. Calling the list gives the tensor.

    Arguments:
        modules: the parametrizations, the first one to be applied first
        original: the tensor
        unsafe: whether dtype and shape may change

    Raises:
        ShapeError: a parametrization changes the shape or the dtype, and `unsafe` is False.
        CallError: one of them gives something else than tensors.

    Example:
        >>> weight = turnout.nn.Parameter(turnout.ones(2))
        >>> turnout.nn.utils.parametrize.ParametrizationList([turnout.nn.ReLU()], weight)()
        tensor([1., 1.], grad_fn=<ReluBackward0>)
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        with turnout.no_grad():
            found = self._inverse(original, True)
        if isinstance(found, Tensor):
            _check_dtype("right_inverse", found, original, unsafe)
            original.data = found.data  # the object stays, so that an optimiser keeps what it knows of it
            self.original: Any = original
            if not isinstance(original, Parameter):
                self._buffer("original", original)
        else:
            for i, each in enumerate(found):
                if not isinstance(each, Tensor):
                    raise CallError(f"right_inverse must return tensors, got {type(each).__name__}")
                if isinstance(original, Parameter):
                    setattr(self, f"original{i}", Parameter(each, original.requires_grad))
                else:
                    self._buffer(f"original{i}", each)
        self.ntensors = 1 if isinstance(found, Tensor) else len(found)
        self.is_tensor = isinstance(found, Tensor)
        with turnout.no_grad():
            made = self()
        if not isinstance(made, Tensor):
            raise CallError(f"a parametrization must return a tensor, got {type(made).__name__}")
        _check_dtype("a parametrization", made, original, unsafe)
        if not unsafe:
            _check_shape(made, original)

    def _buffer(self, name: str, tensor: Tensor) -> None:
        if name in self.__dict__:
            delattr(self, name)
        self.register_buffer(name, tensor)

    def _originals(self) -> list[Tensor]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def _inverse(self, value: Tensor, begins: bool) -> Any:
        """The originals for a value. Where training `begins`, a parametrization without an inverse gets the value itself."""
        found: Any = value
        for module in reversed(list(self)):
            try:
                inverse = getattr(module, "right_inverse", None)
                new = NotImplemented if inverse is None else inverse(found)
            except NotImplementedError:
                new = NotImplemented
            if new is not NotImplemented:
                if not isinstance(new, (Tensor, list, tuple)):
                    raise CallError(f"right_inverse must return a tensor or several, got {type(new).__name__}")
                found = new
            elif not begins:
                raise ModeError(errors.no_right_inverse(module))
        return found

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrizations give a value. Raises ModeError if one of them has no `right_inverse`.

        Arguments:
            value: the value
        """
        with turnout.no_grad():
            found = self._inverse(value, False)
            for own, new in zip(self._originals(), [found] if isinstance(found, Tensor) else found, strict=True):
                own.data = new.to(own.dtype).clone().data if self.unsafe else _same(new, own).clone().data

    def forward(self) -> Tensor:
        """The tensor."""
        first, *rest = self
        made: Tensor = first(*self._originals())
        for module in rest:
            made = module(made)
        return made


def _same(new: Tensor, own: Tensor) -> Tensor:
    _check_dtype("right_inverse", new, own, False)
    _check_shape(new, own)
    return new


def _check_shape(made: Tensor, original: Tensor) -> None:
    if made.shape != original.shape:
        raise ShapeError(
            f"a parametrization must keep the shape {list(original.shape)}, got {list(made.shape)}\n"
            "  to fix  pass unsafe=True to allow another one"
        )


def _check_dtype(what: str, made: Tensor, original: Tensor, unsafe: bool) -> None:
    if not unsafe and made.dtype != original.dtype:
        raise ArgumentError(
            f"{what} must keep the dtype {original.dtype}, got {made.dtype}\n  to fix  pass unsafe=True to allow another one"
        )


class _Parametrized(Module):
    """What the class of a parametrized module has before its own."""

    parametrizations: ModuleDict

    def __getattr__(self, name: str) -> Any:
        # Asked for what the instance does not hold, also while a copy of it is being made.
        found = self.__dict__.get("parametrizations")
        if found is None or name not in found:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        known = _CACHE.get()
        if known is None:
            return found[name]()
        computing = found[name]
        if computing not in known:
            known[computing] = computing()
        return known[computing]

    def __setattr__(self, name: str, value: Any) -> None:
        found = self.__dict__.get("parametrizations")
        if found is None or name not in found:
            super().__setattr__(name, value)
        else:
            found[name].right_inverse(value)
            known = _CACHE.get()
            if known is not None:
                known.pop(found[name], None)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.parametrizations})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _blank, (type_before_parametrizations(self),), self.__dict__


def _blank(cls: type[Module]) -> Module:
    """A parametrized module of a class before its state comes. Copies and pickles are made from it."""
    made: type[Module] = _class_for(cls)
    return made.__new__(made)


def _class_for(cls: Any) -> Any:
    """The class of parametrized modules for one of modules, which is made once."""
    made = _CLASSES.get(cls)
    if made is None:
        given = {"__module__": cls.__module__, "__doc__": cls.__doc__}
        made = _CLASSES.setdefault(cls, type(f"Parametrized{cls.__name__}", (_Parametrized, cls), given))
    return made


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class that the module had before its tensors were parametrized.

    Arguments:
        module: the module

    Example:
        >>> layer = turnout.nn.utils.parametrizations.weight_norm(turnout.nn.Linear(2, 2))
        >>> turnout.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return type(module).__mro__[2] if isinstance(module, _Parametrized) else type(module)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module is computed by parametrizations; without a name, whether any is.

    Arguments:
        module: the module
        tensor_name: the name of the tensor

    Example:
        >>> turnout.nn.utils.parametrize.is_parametrized(turnout.nn.Linear(2, 2))
        False
    """
    found = module.__dict__.get("parametrizations")
    if not isinstance(module, _Parametrized) or not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def register_parametrization(module: T, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> T:
    """Compute a parameter or buffer of a module by another module from now on. Returns the module, whose class is another.

    The tensor itself becomes `module.parametrizations.<name>.original`. If the parametrization has a `right_inverse`, that gives
    the first original, and assigning to the tensor calls it. A second parametrization of a tensor is applied to the result of the
    first.

    Arguments:
        module: the module
        tensor_name: the name of the parameter or buffer
        parametrization: the module that computes it from its original
        unsafe: whether shape and dtype may change

    Raises:
        ArgumentError: the module has no such parameter or buffer, or the dtype changes.
        ShapeError: the shape changes.

    Example:
        >>> class Symmetric(turnout.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = turnout.nn.Linear(3, 3)
        >>> layer = turnout.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> turnout.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations = _held(module)[tensor_name]
        if not unsafe:
            with turnout.no_grad():
                now = getattr(module, tensor_name)
                made = parametrization(now)
                _check_dtype("a parametrization", made, now, unsafe)
                _check_shape(made, now)
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
        return module
    if tensor_name not in {**module._parameters, **module._buffers}:
        raise ArgumentError(errors.no_such_tensor("register_parametrization", module, tensor_name))
    made_list = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    made_list.train(module.training)
    delattr(module, tensor_name)
    _held(module)[tensor_name] = made_list
    return module


def _held(module: Module) -> Any:
    """The parametrizations of a module by name; a module without any becomes one that can have some."""
    if not isinstance(module, _Parametrized):
        module.__class__ = _class_for(type(module))
        setattr(module, "parametrizations", ModuleDict())  # noqa: B010 - its class has just got the attribute
    return vars(module)["parametrizations"]


def remove_parametrizations(module: T, tensor_name: str, leave_parametrized: bool = True) -> T:
    """Make a parametrized tensor a parameter or buffer of the module again. Returns the module.

    Arguments:
        module: the module
        tensor_name: the name of the tensor
        leave_parametrized: whether the tensor keeps the value that was computed, rather than that of its original

    Raises:
        ArgumentError: the tensor is not parametrized, or has several originals and should get back the value of one.

    Example:
        >>> layer = turnout.nn.utils.parametrizations.weight_norm(turnout.nn.Linear(2, 2))
        >>> layer = turnout.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> type(layer).__name__
        'Linear'
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"remove_parametrizations: {type(module).__name__} has no parametrization of {tensor_name!r}")
    held = _held(module)
    parametrizations = held[tensor_name]
    originals = parametrizations._originals()
    if not leave_parametrized and not parametrizations.is_tensor:
        raise ArgumentError(
            f"remove_parametrizations: {tensor_name!r} is computed from {len(originals)} tensors, so there is no original to "
            "return to\n  to fix  pass leave_parametrized=True"
        )
    is_parameter = isinstance(originals[0], Parameter)
    left = originals[0]
    if leave_parametrized:
        with turnout.no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if parametrizations.is_tensor and value.dtype == left.dtype:
            left.data = value  # the object that an optimiser knows
        else:
            left = Parameter(value, left.requires_grad) if is_parameter else value
    del held[tensor_name]
    if not held:
        delattr(module, "parametrizations")
        module.__class__ = type_before_parametrizations(module)  # type: ignore[assignment]
    if is_parameter:
        module.register_parameter(tensor_name, left)
    else:
        module.register_buffer(tensor_name, left)
    return module


def transfer_parametrizations_and_params(from_module: Module, to_module: T, tensor_name: str | None = None) -> T:
    """Give a module the parametrized tensors of another one: copies of the parametrizations and of their originals.

    Arguments:
        from_module: the module that has them
        to_module: the module that gets them, which is returned
        tensor_name: the name of the tensor; by default, all

    Raises:
        ArgumentError: the first module has no such parametrization.

    Example:
        >>> source = turnout.nn.utils.parametrizations.weight_norm(turnout.nn.Linear(2, 2))
        >>> made = turnout.nn.utils.parametrize.transfer_parametrizations_and_params(source, turnout.nn.Linear(2, 2))
        >>> turnout.equal(made.weight, source.weight)
        True
    """
    if not is_parametrized(from_module, tensor_name):
        wanted = "" if tensor_name is None else f" of {tensor_name!r}"
        raise ArgumentError(f"transfer_parametrizations_and_params: {type(from_module).__name__} has no parametrization{wanted}")
    source: Any = from_module
    for name in [tensor_name] if tensor_name is not None else list(source.parametrizations):
        if is_parametrized(to_module, name):
            remove_parametrizations(to_module, name)
        if name in to_module.__dict__:
            delattr(to_module, name)
        _held(to_module)[name] = deepcopy(source.parametrizations[name])
    return to_module
