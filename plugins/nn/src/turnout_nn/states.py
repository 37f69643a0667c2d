"""The state of a module, its parameters and persistent buffers by name: how it is collected, and how it is loaded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import turnout
from turnout import Tensor
from turnout.errors import CallError, TurnoutError
from turnout_nn import errors
from turnout_nn.parameters import PARAMETER, Parameter, in_role, is_uninitialized

if TYPE_CHECKING:
    from turnout_nn.module import Module

EXTRA = "_extra_state"


class Loaded(NamedTuple):
    """What `load_state_dict` returns: the names that the state lacked, and those that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        names = f"missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys}"
        return f"Loaded({names})" if any(self) else "<All keys matched successfully>"


def save(module: Module, own: Callable[..., Any], destination: Any, prefix: str, keep_vars: bool) -> Any:
    """The state of a module and of those inside, added to `destination`; `_metadata` has the version of each module.

    A module whose `state_dict` is not `own` is asked.
    """
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local
    hooks = module._module_hooks
    for hook in () if hooks is None else list(hooks.save_before.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is None:
            continue
        if getattr(child.state_dict, "__func__", None) is own:  # a call of it takes two frames more at each level of nesting
            save(child, own, destination, f"{prefix}{name}.", keep_vars)
        else:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in () if hooks is None else list(hooks.save_after.values()):
        destination = hook(module, destination, prefix, local) or destination
    return destination


def _own(module: Module) -> Iterator[tuple[str, Any]]:
    """What a module itself has in a state: parameters, then persistent buffers, None included."""
    for name in module._parameter_names:
        yield name, getattr(module, name)
    for name, persistent in module._buffer_names.items():
        if persistent:
            yield name, getattr(module, name)


def save_own(module: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add what a module itself holds."""
    for name, value in _own(module):
        if value is not None:
            destination[prefix + name] = value if keep_vars or is_uninitialized(value) else value.detach()
    if module._has_extra_state():
        destination[prefix + EXTRA] = module.get_extra_state()


def load(module: Module, state: Any, strict: bool, assign: bool) -> Loaded:
    """Copy a state into a module and into those inside. Raises StateError for all that does not fit."""
    if not isinstance(state, Mapping):
        raise CallError(errors.no_mapping(state))
    metadata = getattr(state, "_metadata", None) or {}
    whole = OrderedDict(state)
    missing: list[str] = []
    unexpected: list[str] = []
    problems: list[str] = []
    _load(module, whole, metadata, "", assign, (missing, unexpected, problems))
    if problems or (strict and (missing or unexpected)):
        raise errors.StateError(errors.not_loaded(module, missing if strict else [], unexpected if strict else [], problems))
    return Loaded(missing, unexpected)


def _load(
    module: Module,
    state: dict[str, Any],
    metadata: Mapping[str, Any],
    prefix: str,
    assign: bool,
    found: tuple[list[str], list[str], list[str]],
) -> None:
    """Take a state into a module and those inside. Methods and hooks are told `strict`, so that they note every name."""
    local = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    hooks = module._module_hooks
    for hook in () if hooks is None else list(hooks.load_before.values()):
        hook(module, state, prefix, local, True, *found)
    module._load_from_state_dict(state, prefix, local, True, *found)
    for name, child in module._modules.items():
        if child is not None:
            inside = f"{prefix}{name}."
            own = {key: value for key, value in state.items() if key.startswith(inside)}
            _load(child, own, metadata, inside, assign, found)
    keys = Loaded(found[0], found[1])
    for hook in () if hooks is None else list(hooks.load_after.values()):
        hook(module, keys)


def load_own(
    module: Module,
    state: dict[str, Any],
    prefix: str,
    local: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    problems: list[str],
) -> None:
    """Take what a module itself holds from a state, and note what does not fit."""
    own = {name: value for name, value in _own(module) if value is not None}
    for name, value in own.items():
        key = prefix + name
        if key in state:
            problem = _take(module, name, value, key, state[key], local.get("assign_to_params_buffers", False))
            problems += [problem] if problem else []
        elif strict:
            missing.append(key)
    extra = prefix + EXTRA
    if module._has_extra_state():
        if extra in state:
            module.set_extra_state(state[extra])
        elif strict:
            missing.append(extra)
    if strict:
        for key in state:
            name = key.removeprefix(prefix).partition(".")[0]
            known = (
                name in module._module_names or (key.removeprefix(prefix) in own) or (key == extra and module._has_extra_state())
            )
            if key.startswith(prefix) and not known:
                unexpected.append(key)


def _take(module: Module, name: str, own: Tensor, key: str, given: Any, assign: bool) -> str:
    """Copy or assign one tensor; what is wrong with it, or ""."""
    if not isinstance(given, Tensor):
        return errors.not_a_tensor(key, given)
    if is_uninitialized(own):
        if is_uninitialized(given):
            return ""
        own.materialize(given.shape)
    if is_uninitialized(given):
        return errors.no_shape_yet()
    if own.ndim == 0 and tuple(given.shape) == (1,):
        given = given[0]  # as files of old versions have numbers
    if tuple(given.shape) != tuple(own.shape):
        return errors.other_shape(key, given.shape, own.shape)
    try:
        if assign:
            if isinstance(own, Parameter):
                taken = given if isinstance(given, Parameter) else in_role(given.detach(), PARAMETER)
                given = taken.requires_grad_(own.requires_grad)
            setattr(module, name, given)
        else:
            with turnout.no_grad():
                own.copy_(given)
    except TurnoutError as error:
        return f"{key}: {error}"
    return ""
