"""Whether a changed schema still serves old callers, or old runtimes the new schema's.

Backward: a call written for the older schema works with the newer. Forward: a call recorded with the newer, its
defaults left out, works where only the older is known. Both return why not, or None. The rules are PyTorch's, found
by asking its schema checker about pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.schema.types import BaseType, ListType, OptionalType, Type

if TYPE_CHECKING:
    from turnout.schema.model import FunctionSchema
    from turnout.schema.parts import Argument, Return

# int and SymInt are one type here as there: a symbolic integer is an int with a history.
_SAME = {"SymInt": "int", "SymFloat": "float", "SymBool": "bool"}
_NUMBERS = ("int", "float", "complex")


def backward_break(newer: FunctionSchema, older: FunctionSchema) -> str | None:
    """Why `newer` would break a caller of `older`; None when it would not."""
    if reason := _other_shape(newer, older):
        return reason
    if len(newer.arguments) < len(older.arguments):
        return "it takes fewer arguments"
    for new_return, old_return in zip(newer.returns, older.returns, strict=True):
        if reason := _narrower_return(new_return, old_return):
            return reason
    old_out, new_out = _first_out(older), _first_out(newer)
    if new_out < old_out:
        return "it takes fewer arguments before the out arguments"
    for new, old in zip(newer.arguments[:old_out], older.arguments[:old_out], strict=True):
        if reason := _narrower(new, old):
            return reason
    for new in newer.arguments[old_out:new_out]:
        if not new.has_default:
            return f"the new argument {new.name} has no default"
    for new, old in zip(newer.arguments[new_out:], older.arguments[old_out:], strict=False):
        if reason := _narrower(new, old):
            return reason
    if len(newer.arguments) - new_out < len(older.arguments) - old_out:
        return "it takes fewer out arguments"
    return None


def forward_break(newer: FunctionSchema, older: FunctionSchema) -> str | None:
    """Why a call recorded with `newer` would fail where only `older` is known; None when it would not."""
    if reason := _other_shape(newer, older):
        return reason
    # differs from torch: `check_forward_compatible_with` compares the types of returns; PyTorch compares only their number.
    for new_return, old_return in zip(newer.returns, older.returns, strict=True):
        if not _accepts(new_return.type, old_return.type) or new_return.annotation != old_return.annotation:
            return f"the return {new_return} was {old_return}"
    old_out, new_out = _first_out(older), _first_out(newer)
    for new, old in zip(newer.arguments[: min(old_out, new_out)], older.arguments, strict=False):
        if reason := _wider(new, old):
            return reason
    for new in newer.arguments[old_out:new_out]:
        if not new.has_default:
            return f"the new argument {new.name} has no default"
        if isinstance(new.default, list):
            return f"the default of the new argument {new.name} is a list"
    # differs from torch: `check_forward_compatible_with` refuses the removal of an argument that the older schema requires.
    for old in older.arguments[new_out:old_out]:
        if not old.has_default:
            return f"the argument {old.name} that was removed has no default"
    if len(newer.arguments) - new_out != len(older.arguments) - old_out:
        return "it has another number of out arguments"
    for new, old in zip(newer.arguments[new_out:], older.arguments[old_out:], strict=True):
        if reason := _wider(new, old):
            return reason
    return None


def _other_shape(newer: FunctionSchema, older: FunctionSchema) -> str | None:
    if newer.name != older.name:
        return f"it is named {newer.name}, not {older.name}"
    if len(newer.returns) != len(older.returns):
        return f"it returns {len(newer.returns)} values, not {len(older.returns)}"
    return None


def _first_out(schema: FunctionSchema) -> int:
    return next((i for i, a in enumerate(schema.arguments) if a.is_out), len(schema.arguments))


def _narrower(new: Argument, old: Argument) -> str | None:
    if reason := _other_argument(new, old):
        return reason
    if new.kwarg_only and not old.kwarg_only:
        return f"{new.name} is keyword-only now"
    if not _accepts(new.type, old.type):
        return f"{new.name} is {new.type}, which does not take every {old.type}"
    if old.has_default and not _same_default(new, old):
        return f"the default of {new.name} changed"
    return None


def _wider(new: Argument, old: Argument) -> str | None:
    if reason := _other_argument(new, old):
        return reason
    if not _accepts(old.type, new.type):
        return f"{new.name} was {old.type}, which does not take every {new.type}"
    if new.has_default != old.has_default or not _same_default(new, old):
        return f"the default of {new.name} changed"
    # differs from torch: `check_forward_compatible_with` refuses that a keyword-only argument becomes positional: a recorded
    # position would have no place in the older schema.
    if old.kwarg_only != new.kwarg_only:
        return f"{new.name} was {'keyword-only' if old.kwarg_only else 'positional'}"
    return None


def _other_argument(new: Argument, old: Argument) -> str | None:
    if new.name != old.name:
        return f"{new.name} stands where {old.name} was"
    if _size(new.type) != _size(old.type):
        return f"{new.name} is {new.type}, which was {old.type}"
    if new.annotation != old.annotation:
        return f"the alias annotation of {new.name} changed"
    return None


def _narrower_return(new: Return, old: Return) -> str | None:
    if new.name != old.name:
        return f"the return {new.name} was {old.name}"
    if not _accepts(old.type, new.type) or _size(old.type) != _size(new.type) or new.annotation != old.annotation:
        return f"the return {new} was {old}"
    return None


def _same_default(a: Argument, b: Argument) -> bool:
    if not a.has_default or not b.has_default:
        return a.has_default == b.has_default
    left, right = a.default, b.default
    # True == 1 == 1.0, but they are not the same default of a Scalar; nan is the same default as nan.
    return type(left) is type(right) and (left == right or repr(left) == repr(right))


def _size(type: Type) -> int | None:
    return type.size if isinstance(type, ListType) else None


def _name(type: BaseType) -> str:
    return _SAME.get(type.canonical, type.canonical)


def _accepts(wide: Type, narrow: Type) -> bool:
    """Whether every value of `narrow` is one of `wide`. Lists are invariant: a kernel may write into one.

    # differs from torch: `ScalarType`, `Layout` and `MemoryFormat` are types of their own in schemas; in PyTorch they are ints.
    """
    if isinstance(wide, OptionalType):
        return _accepts(wide.elem, narrow.elem if isinstance(narrow, OptionalType) else narrow)
    if isinstance(wide, ListType):
        return isinstance(narrow, ListType) and _accepts(wide.elem, narrow.elem) and _accepts(narrow.elem, wide.elem)
    if isinstance(wide, BaseType) and isinstance(narrow, BaseType):
        return _name(wide) == _name(narrow) or (_name(wide) == "Scalar" and _name(narrow) in _NUMBERS)
    return wide == narrow
