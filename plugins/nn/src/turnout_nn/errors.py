"""The texts of all errors of modules, and the class of those that no class of core fits."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import turnout
from turnout.errors import TurnoutError, near, report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class StateError(TurnoutError, RuntimeError):
    """A state that a module cannot load, because names or shapes differ."""


class MemberError(TurnoutError, AttributeError):
    """A member of a module that it does not have, that it has already, or that cannot be one."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, obj=None)  # without this, Python adds a name that it knows to the last line of the text


class MemberNameError(MemberError, KeyError):
    """A name that a member of a module cannot have, or that the module has already; PyTorch raises KeyError."""

    __str__ = Exception.__str__  # a KeyError would show the text in quotes


def leave_out_last_frame(error: Exception) -> None:
    """Of a call that a method does not take: the frame of the function that asked for this is the last one then."""
    entry = error.__traceback__
    if isinstance(error, TypeError) and entry is not None and entry.tb_next is None and turnout.config.get("traceback") != "full":
        error.__traceback__ = None


def warn(text: str) -> None:
    """Warn at the line of the program that led here, however many calls of Turnout are between."""
    line, level, frame = turnout.user_frame(), 1, sys._getframe()
    while line is not None and frame.f_back is not None and (frame.f_code.co_filename, frame.f_lineno) != line[:2]:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def _class(value: object) -> str:
    return type(value).__name__


def undefined(value: object, method: str) -> NotImplementedError:
    """The error of a method that a class of the program defines."""
    return NotImplementedError(f"{_class(value)} has no {method}()")


def no_tensor(maker: str, value: object) -> str:
    return f"{maker}: data must be a tensor, got {_class(value)}"


# ---- members of a module


def not_initialised(module: object, name: str) -> str:
    return (
        f"{_class(module)}: {name!r} cannot be assigned before Module.__init__ has run\n"
        "  to fix  call super().__init__() first in __init__"
    )


def wrong_member(module: object, name: str, kind: str, value: object) -> str:
    return f"{_class(module)}: {name!r} is a {kind}, so it can be set to a {kind} or None; got {_class(value)}"


def not_a_member(function: str, kind: str, value: object) -> str:
    return f"{function}: expected a {kind} or None, got {_class(value)}"


def has_history(name: str) -> str:
    return (
        f"register_parameter: {name!r} has a history, so it is not a leaf that can be trained\n"
        "  to fix  register a leaf, and compute from it in forward()"
    )


def bad_name(function: str, name: object) -> str:
    return f"{function}: a name must be a str without dots and not empty, got {name!r}"


def name_taken(function: str, module: object, name: str) -> str:
    return f"{function}: {_class(module)} has an attribute {name!r} already"


def other_number(hook: str, module: object, wanted: int, found: int) -> str:
    return f"a {hook} of {_class(module)} must return {wanted} gradients, as many as it was given, or None; it returned {found}"


def no_forward(module: object) -> str:
    return f"{_class(module)} has no forward(); a module defines one to be called"


def no_member(function: str, module: object, path: str, missing: str, known: Iterable[str]) -> str:
    return f"{function}: {path!r}: {_class(module)} has no {missing!r}{near(missing, known)}"


def not_what_was_asked(function: str, path: str, kind: str, value: object) -> str:
    return f"{function}: {path!r} is {'None' if value is None else f'a {_class(value)}'}, not a {kind}"


def no_index(container: object, index: int, count: int) -> str:
    return f"{_class(container)}: index {index} is out of range for {count} members"


def wrong_repetition(container: object, count: int) -> str:
    return f"{_class(container)}: the modules can be repeated once or more, got {count}"


def not_iterable(function: str, value: object) -> str:
    return f"{function}: expected an iterable, got {_class(value)}"


def no_pair(value: object) -> str:
    return f"expected pairs of a name and a value, got {value!r}"


def not_floating(dtype: Any) -> str:
    return f"to: a module's dtype must be floating-point or complex, got {dtype}"


def wrong_mode(value: object) -> str:
    return f"train: mode must be True or False, got {value!r}"


# ---- states


def no_mapping(value: object) -> str:
    return f"load_state_dict: expected a dict of tensors, got {_class(value)}"


def not_loaded(module: object, missing: Sequence[str], unexpected: Sequence[str], problems: Sequence[str]) -> str:
    rows = [("missing", ", ".join(missing)), ("not known", ", ".join(unexpected)), *(("wrong", text) for text in problems)]
    return report(f"load_state_dict: the state does not fit {_class(module)}", *rows)


def other_shape(name: str, given: Sequence[int], own: Sequence[int]) -> str:
    return f"{name} has shape {list(given)}, and the module's has {list(own)}"


def not_a_tensor(name: str, value: object) -> str:
    return f"{name} must be a tensor, got {_class(value)}"


# ---- arguments of layers


def wrong_limits(name: str, low: float, high: float) -> str:
    return f"{name}: max_val must be above min_val; got {low} and {high}"


def no_probability(name: str, argument: str, value: object) -> str:
    return f"{name}: {argument} must be from 0 to 1, got {value!r}"


def wrong_ndim(name: str, expected: str, input: Any) -> str:
    return f"{name}: expected an input of {expected} dimensions, got {list(input.shape)}"


def wrong_groups(name: str, channels: Sequence[int], groups: int) -> str:
    return f"{name}: groups must be positive and divide the channels; got {groups} groups of {' and '.join(map(str, channels))}"


def wrong_padding(name: str, padding: str) -> str:
    return f"{name}: padding must be numbers, 'same' or 'valid'; got {padding!r}"


def same_with_strides(name: str, stride: Sequence[int]) -> str:
    return f"{name}: padding 'same' needs a stride of 1, got {tuple(stride)}"


def wrong_padding_mode(name: str, mode: object, known: Sequence[str]) -> str:
    return f"{name}: padding_mode must be one of {', '.join(map(repr, known))}; got {mode!r}"


def wrong_factor(name: str, factor: object) -> str:
    return f"{name}: scale_factor must be a number, or one for each dimension, got {type(factor).__name__}"


def wrong_output_size(name: str, given: Sequence[int], ndim: int) -> str:
    return f"{name}: output_size must have {ndim} to {ndim + 2} numbers, got {list(given)}"


def impossible_output_size(name: str, given: Sequence[int], least: Sequence[int], most: Sequence[int]) -> str:
    return f"{name}: output_size must be from {list(least)} to {list(most)} for this input, got {list(given)}"


def wrong_channels(name: str, channels: int, input: Any) -> str:
    return f"{name}: expected {channels} channels, got {list(input.shape)}"


def no_such_tensor(function: str, module: object, name: str) -> str:
    return f"{function}: {_class(module)} has no parameter or buffer {name!r}"


def size_or_ratio(name: str) -> str:
    return f"{name}: give one of output_size and output_ratio"


def wrong_ratio(name: str, ratio: Sequence[float]) -> str:
    return f"{name}: output_ratio must be between 0 and 1, got {tuple(ratio)}"


def no_right_inverse(parametrization: object) -> str:
    return (
        f"a tensor with the parametrization {_class(parametrization)} cannot be assigned: it has no right_inverse\n"
        "  to fix  write one, or assign to what it computes the tensor from, module.parametrizations.NAME.original"
    )


def no_shape_yet() -> str:
    return (
        "a parameter of a lazy module has no shape before the module's first call\n"
        "  to fix  call the module once, or load a state into it"
    )


# ---- schedulers of learning rates


def old_epoch(scheduler: object, given: str = "") -> str:
    """A step to another epoch than the next."""
    return f"{type(scheduler).__name__}.step: epoch is PyTorch's old form; call step({given}) once for each epoch"


def not_for_groups(scheduler: object, name: str, count: int, groups: int) -> str:
    return f"{type(scheduler).__name__}: {name} has {count} values, and the optimiser has {groups} groups"
