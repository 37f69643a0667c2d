"""Modes and Tensor subclasses: Python code that handles operators without a package or a registration.

The key Python serves both. It stands below Autograd and ADInplaceOrView. So they see the calls that a backend would get, with
composites taken apart, and their results are recorded and differentiated like those of any kernel. An active mode adds the
key to the state; instances of a subclass carry it. The innermost mode is called first, subclasses last.
"""

from __future__ import annotations

from typing import Any

from turnout import config
from turnout.errors import CallError, ConflictError, DisabledError
from turnout.guards import Changes, Guard, restore
from turnout.keys import KEYS
from turnout.operators import Operator
from turnout.operators.values import tensors_in
from turnout.registry.registrations import Registrations
from turnout.registry.store import REGISTRY
from turnout.state import DISPATCH, MODES

PYTHON = KEYS.bit("Python")
HANDLER = "__turnout_dispatch__"
_RULES: dict[tuple[str, Any], Any] = {}  # (operator, mode or subclass) -> what handles its calls there


class DispatchMode(Guard):
    """Derive a class, define `dispatch`, and use `with M():`. Every operator called inside goes through the method.

    While the method runs, its own mode is off and the modes around it are on. A mode may be entered several times and in
    several threads: it is active in the contexts that entered it.
    """

    def dispatch(self, op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
        """Called for each operator, with all its arguments in schema order; returns what the operator returns.

        `op.redispatch(ks, *args)` continues with the mode around this one, then a subclass among the arguments, then the
        kernel. Arguments with other keys need a new call, `op.call_boxed(args)`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define dispatch(self, op, ks, args)")

    def sets(self) -> Changes:
        """Raises DisabledError when configuration disables the key Python."""
        require_python_key()
        include, keep = DISPATCH.get()
        return (MODES, [*MODES.get(), self]), (DISPATCH, [include | PYTHON, keep])


def require_python_key() -> None:
    """Raise DisabledError when configuration disables the key, because a mode would see no call."""
    if REGISTRY.is_disabled("Python", "Python"):
        origin = config.origin("keys.disable")
        raise DisabledError(f"modes and Tensor subclasses need the key Python, which keys.disable names ({origin})")


def dispatch(op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
    """The fallback of the key Python: the innermost mode, or the subclasses among the arguments."""
    modes = MODES.get()
    subclasses = _subclasses(args)
    if not modes:
        return _ask_subclasses(op, ks & ~PYTHON, args, subclasses)
    include, keep = before = DISPATCH.get()
    *rest, mode = modes
    try:
        try:
            MODES.set(tuple(rest))
            DISPATCH.set((include if rest else include & ~PYTHON, keep))
            if (op.qualified_name, type(mode)) in _RULES:
                return _by_rule(type(mode), mode, op, args)
            return mode.dispatch(op, ks if rest or subclasses else ks & ~PYTHON, args)
        finally:
            try:
                DISPATCH.set(before)
            except MemoryError:
                restore(DISPATCH, before)
    finally:
        try:
            MODES.set(modes)
        except MemoryError:
            restore(MODES, modes)


def add_rule(group: Registrations, name: str, cls: Any, rule: Any) -> None:
    """Let `rule(mode or class, op, types, args, kwargs)` handle an operator's calls until `group` is undone."""
    if not (isinstance(cls, type) and (issubclass(cls, DispatchMode) or hasattr(cls, HANDLER))):
        raise CallError(f"register_torch_dispatch: expected a DispatchMode, or a Tensor subclass with {HANDLER}, got {cls!r}")
    with REGISTRY.lock:
        if (name, cls) in _RULES:
            raise ConflictError(f"{name} has a rule for {cls.__name__} already\n  to fix  undo the library that registered it")
        _RULES[name, cls] = rule
        group.on_undo(lambda: _RULES.pop((name, cls), None))


def _by_rule(cls: type, owner: Any, op: Operator, args: tuple[Any, ...]) -> Any:
    return _RULES[op.qualified_name, cls](owner, op, tuple(_subclasses(args)), *op.schema.by_keyword(args))


def _subclasses(args: tuple[Any, ...]) -> list[type]:
    """The classes of arguments that dispatch themselves, in order. A class comes before its base classes."""
    found: list[type] = []
    for tensor in tensors_in(args):
        cls = type(tensor)
        if tensor.keys & PYTHON and cls not in found:
            at = next((i for i, other in enumerate(found) if issubclass(cls, other)), len(found))
            found.insert(at, cls)
    return found


def _ask_subclasses(op: Operator, ks: int, args: tuple[Any, ...], subclasses: list[type]) -> Any:
    if not subclasses:  # a guard includes the key, no mode does
        return op.redispatch(ks, *args)
    for cls in subclasses:
        ruled = (op.qualified_name, cls) in _RULES
        result = _by_rule(cls, cls, op, args) if ruled else getattr(cls, HANDLER)(op, ks, args)
        if result is not NotImplemented:
            return result
    names = ", ".join(cls.__name__ for cls in subclasses)
    problem = f"no Tensor subclass among the arguments handles it; {HANDLER} of {names} returned NotImplemented"
    raise CallError(f"{op.qualified_name}: {problem}")
