"""`turnout.func.functional_call`, `module_state` and `stack_module_state`.

A module is a callable object that holds tensors (`places`). It need not be a `turnout.nn.Module`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MethodType
from typing import Any

from turnout.errors import ArgumentError, CallError
from turnout.operators.tracebacks import shortening
from turnout_aten import operators as aten
from turnout_aten.errors import transforms as transform_texts
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.modules.places import Place, names_itself, places_of

Tensors = dict[str, Tensor]


@shortening
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Tensors | Sequence[Tensors],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with other tensors in the place of its own, which come back when the call is over.

    A module is any callable object, or a method of one: what counts are its `named_parameters()` and `named_buffers()`, where it
    has such methods, else the tensors in its attributes, and in lists, tuples, dicts and objects there. Their names are paths,
    such as "layers.0.weight"; `module_state` lists them. A tensor that the call
    assigns in the place of a given one is put into the dict. The module has its own tensors again when the call raises.

    The module is changed while the call runs: another thread that uses it then sees the given tensors.

    Raises CallError for a name that the module does not have, and for a name in two dicts. Raises ArgumentError for different
    tensors for one that the module holds twice, and for names that `strict` misses.

    # differs from torch: `functional_call` takes any callable object for a module, and refuses a name that it does not hold.

    Arguments:
        module: the callable object
        parameter_and_buffer_dicts: name -> tensor, or several such dicts; what is not named stays as it is
        args: the arguments, in a tuple; something else is one argument
        kwargs: arguments by name
        tie_weights: whether a tensor that the module holds under two names is replaced under both when one is given
        strict: whether all tensors of the module must be given

    Example:
        >>> class Line:
        ...     def __init__(self):
        ...         self.slope, self.height = turnout.tensor(2.0), turnout.tensor(1.0)
        ...     def __call__(self, x):
        ...         return self.slope * x + self.height
        >>> turnout.func.functional_call(Line(), {"slope": turnout.tensor(3.0)}, turnout.tensor(10.0))
        tensor(31.)
    """
    if not callable(module):
        raise CallError(transform_texts.not_callable("functional_call", "module", module))
    dicts = _dicts(parameter_and_buffer_dicts)
    if kwargs is not None and not isinstance(kwargs, dict):
        raise CallError(errors.modules.no_arguments(kwargs))
    places = places_of(module)
    given = _given(dicts, places, module)
    if tie_weights:
        given = _tied(given, places)
    if strict and (missing := [name for name in places if name not in given]):
        raise ArgumentError(errors.modules.missing(missing, _owner(module)))
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    before = [(places[name], places[name].held()) for name in given]
    try:
        for name, tensor in given.items():
            places[name].replace(tensor)
        return module(*args, **(kwargs or {}))
    finally:
        _keep_assigned(dicts, places)
        for place, held in before:
            place.hold(held)


def _dicts(given: Any) -> list[Tensors]:
    dicts = [given] if isinstance(given, dict) else given
    if not isinstance(dicts, (list, tuple)) or not all(isinstance(each, dict) for each in dicts):
        raise CallError(errors.modules.no_dict(given))
    return list(dicts)


def _given(dicts: list[Tensors], places: Mapping[str, Place], module: Any) -> Tensors:
    """All dicts in one, checked."""
    given: Tensors = {}
    for name, tensor in (item for each in dicts for item in each.items()):
        if name in given:
            raise CallError(errors.modules.given_twice(name))
        if name not in places:
            raise CallError(errors.modules.unknown(name, _owner(module), list(places)))
        if not isinstance(tensor, Tensor):
            raise CallError(errors.modules.no_tensor(name, tensor))
        given[name] = tensor
    return given


def _tied(given: Tensors, places: Mapping[str, Place]) -> Tensors:
    """The given tensors under all names of the tensors that they replace."""
    names_of: dict[int, list[str]] = {}
    for name, place in places.items():
        names_of.setdefault(id(place.tensor()), []).append(name)
    everywhere = dict(given)
    for names in names_of.values():
        chosen = [name for name in names if name in given]
        if len({id(given[name]) for name in chosen}) > 1:
            raise ArgumentError(errors.modules.tied(chosen))
        if chosen:
            everywhere |= dict.fromkeys(names, given[chosen[0]])
    return everywhere


def _keep_assigned(dicts: list[Tensors], places: Mapping[str, Place]) -> None:
    """Put what the call assigned in the place of given tensors into the dicts."""
    for each in dicts:
        for name in each:
            try:
                now = places[name].tensor()
            except (AttributeError, IndexError, KeyError, TypeError):
                continue  # the call removed it
            if isinstance(now, Tensor):
                each[name] = now


def _owner(module: Any) -> Any:
    return module.__self__ if isinstance(module, MethodType) else module


@shortening
def module_state(module: Any) -> tuple[Tensors, Tensors]:
    """The parameters and buffers of a module, by name. `functional_call` takes both.

    Parameters are what `named_parameters()` has; of an object without this method, the tensors that require a gradient. A
    tensor that is held under several names is listed under the first one.

    Arguments:
        module: an object that holds tensors, as for `functional_call`; it need not be callable

    Example:
        >>> class Line:
        ...     def __init__(self):
        ...         self.slope, self.height = turnout.tensor(2.0, requires_grad=True), turnout.tensor(1.0)
        >>> parameters, buffers = turnout.func.module_state(Line())
        >>> list(parameters), list(buffers)
        (['slope'], ['height'])
    """
    seen: set[int] = set()
    state: tuple[Tensors, Tensors] = {}, {}
    named = {id(tensor) for _, tensor in module.named_parameters()} if names_itself(module) else None
    for name, place in places_of(module).items():
        tensor = place.tensor()
        if id(tensor) not in seen:
            seen.add(id(tensor))
            is_parameter = tensor.requires_grad if named is None else id(tensor) in named
            state[0 if is_parameter else 1][name] = tensor
    return state


@shortening
def stack_module_state(models: Sequence[Any]) -> tuple[Tensors, Tensors]:
    """`module_state` of several modules of one class, stacked: for `turnout.vmap` over `functional_call`.

    Stacked tensors are leaves; those of tensors that require a gradient require one. Raises ArgumentError where the modules
    differ in their tensors. Trees of tensors without a module are stacked with `turnout.trees.map_leaves`.

    Arguments:
        models: the modules

    Example:
        >>> class Scale:
        ...     def __init__(self, by):
        ...         self.by = turnout.tensor(by, requires_grad=True)
        ...     def __call__(self, x):
        ...         return self.by * x
        >>> models = [Scale(2.0), Scale(3.0)]
        >>> parameters, buffers = turnout.func.stack_module_state(models)
        >>> call = lambda own, x: turnout.func.functional_call(models[0], own, x)
        >>> turnout.vmap(call, in_dims=(0, None))(parameters, turnout.tensor(10.0)).tolist()
        [20.0, 30.0]
    """
    models = list(models)
    if not models:
        raise ArgumentError(errors.modules.no_modules())
    for i, model in enumerate(models):
        if type(model) is not type(models[0]):
            raise ArgumentError(errors.modules.other_class(i, models[0], model))
    states = [module_state(model) for model in models]
    whole = [parameters | buffers for parameters, buffers in states]
    for i, state in enumerate(whole):
        if differing := sorted(set(whole[0]) ^ set(state)):
            raise ArgumentError(errors.modules.other_names(i, differing))
    for name, first in whole[0].items():
        for i, state in enumerate(whole):
            if (state[name].shape, state[name].dtype) != (first.shape, first.dtype):
                raise ArgumentError(errors.modules.other_tensor(name, i, state[name], first))
            if state[name].requires_grad != first.requires_grad:
                raise ArgumentError(errors.modules.other_tracking(name))
    parameters = {name: _stacked(name, whole).requires_grad_(tensor.requires_grad) for name, tensor in states[0][0].items()}
    return parameters, {name: _stacked(name, whole) for name in states[0][1]}


def _stacked(name: str, states: list[Tensors]) -> Tensor:
    return aten.stack([state[name].detach() for state in states])
