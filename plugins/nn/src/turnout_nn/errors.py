"""The texts of all errors of modules, and the class of those that no class of core fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import TurnoutError
from turnout.errors.layout import near, report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class StateError(TurnoutError, RuntimeError):
    """A state that a module cannot load, because names or shapes differ."""


def _class(value: object) -> str:
    return type(value).__name__


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


def no_forward(module: object) -> str:
    return f"{_class(module)} has no forward(); a module defines one to be called"


def no_member(function: str, module: object, path: str, missing: str, known: Iterable[str]) -> str:
    return f"{function}: {path!r}: {_class(module)} has no {missing!r}{near(missing, known)}"


def not_what_was_asked(function: str, path: str, kind: str, value: object) -> str:
    return f"{function}: {path!r} is a {_class(value)}, not a {kind}"


def no_index(container: object, index: int, count: int) -> str:
    return f"{_class(container)}: index {index} is out of range for {count} members"


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
