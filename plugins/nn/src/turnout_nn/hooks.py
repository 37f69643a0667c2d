"""The hooks of a module: functions that are called before and after `forward`, and in the backward pass.

A module without hooks has no `Hooks`, so its calls look at one attribute. Hooks of all modules (`FOR_ALL`) stand at that
attribute of the class while there are any.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from turnout.autograd import Function

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError
from turnout_nn import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_nn.module import Module

_next_key = count().__next__


class Hook(NamedTuple):
    """A registered function, and how it is called."""

    function: Callable[..., Any]
    with_kwargs: bool = False  # it gets the keyword arguments, too
    always: bool = False  # it is called when `forward` raises, too


class Handle:
    """Removes a hook. It is also a context manager."""

    __slots__ = ("_key", "_table")

    def __init__(self, table: dict[int, Any], hook: Any, *, first: bool = False) -> None:
        self._table = table
        self._key = _next_key()
        others = dict(table) if first else {}
        if first:
            table.clear()
        table[self._key] = hook
        table.update(others)

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._table.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


class Hooks:
    """The tables of hooks of one module. Each maps a key to a hook, in the order of calls."""

    __slots__ = ("after", "backward", "backward_before", "before", "load_after", "load_before", "save_after", "save_before")

    def __init__(self) -> None:
        for table in Hooks.__slots__:
            setattr(self, table, {})

    def __getstate__(self) -> dict[str, Any]:
        return {table: getattr(self, table) for table in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for table, hooks in state.items():
            setattr(self, table, hooks)

    before: dict[int, Hook]
    after: dict[int, Hook]
    backward: dict[int, Callable[..., Any]]
    backward_before: dict[int, Callable[..., Any]]
    save_before: dict[int, Callable[..., Any]]
    save_after: dict[int, Callable[..., Any]]
    load_before: dict[int, Callable[..., Any]]
    load_after: dict[int, Callable[..., Any]]


class HooksForAll(Hooks):
    """The hooks of all modules, and those that are called where a module gets a member."""

    __slots__ = ("buffers", "modules", "parameters")

    def __init__(self) -> None:
        super().__init__()
        self.buffers: dict[int, Callable[..., Any]] = {}
        self.modules: dict[int, Callable[..., Any]] = {}
        self.parameters: dict[int, Callable[..., Any]] = {}


FOR_ALL = HooksForAll()


def registered(table: dict[int, Callable[..., Any]], module: Module, name: str, member: Any) -> Any:
    """What a module gets as a member, where the hooks for it may give another one."""
    for hook in list(table.values()):
        changed = hook(module, name, member)
        member = member if changed is None else changed
    return member


def call(module: Module, own: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module(*args, **kwargs)` with the hooks of all modules and its own."""
    for_all = FOR_ALL.before or FOR_ALL.after or FOR_ALL.backward or FOR_ALL.backward_before
    hooks = _joined(FOR_ALL, own) if for_all and own is not FOR_ALL else own
    called: set[int] = set()
    try:
        for hook in list(hooks.before.values()):
            if hook.with_kwargs:
                changed = hook.function(module, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            elif (changed := hook.function(module, args)) is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        passes = _Passes(module, hooks) if hooks.backward or hooks.backward_before else None
        if passes is not None:
            args = passes.enter(args)
        result = module.forward(*args, **kwargs)
        for key, hook in list(hooks.after.items()):
            called.add(key)
            changed = hook.function(module, args, kwargs, result) if hook.with_kwargs else hook.function(module, args, result)
            if changed is not None:
                result = changed
    except Exception:
        for key, hook in list(hooks.after.items()):
            if hook.always and key not in called:
                _call_after_failure(hook, module, args, kwargs)
        raise
    return result if passes is None else passes.leave(result)


def _joined(first: Hooks, second: Hooks) -> Hooks:
    """The hooks of two, the first ones before the others."""
    made = Hooks()
    for table in ("after", "backward", "backward_before", "before"):
        setattr(made, table, {**getattr(first, table), **getattr(second, table)})
    return made


def _call_after_failure(hook: Hook, module: Module, args: Any, kwargs: Any) -> None:
    try:
        hook.function(module, args, kwargs, None) if hook.with_kwargs else hook.function(module, args, None)
    except Exception as error:  # noqa: BLE001 - the first error is the one to raise
        errors.warn(f"a forward hook with always_call=True raised {error!r} after another error")


class _Passes:
    """Calls the backward hooks of a module, where the gradients of its results and of its arguments are known."""

    def __init__(self, module: Module, hooks: Hooks) -> None:
        self.module = module
        self.before = list(hooks.backward_before.values())
        self.after = list(hooks.backward.values())
        self.outputs: tuple[Any, ...] = ()
        self.has_inputs = False
        self.number = 0

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, recorded as passing here."""
        self.number = len(args)
        places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
        if not self.after or not places or not turnout.is_grad_enabled():
            return args
        self.has_inputs = True
        passed = _Gate.apply(self._inputs_done, len(args), tuple(places), *(args[i] for i in places))
        found = list(args)
        for i, tensor in zip(places, passed, strict=True):
            found[i] = tensor
        return tuple(found)

    def leave(self, result: Any) -> Any:
        """The result, recorded as passing here."""
        is_one = isinstance(result, Tensor)
        results = (result,) if is_one else result
        if not isinstance(results, (tuple, list)) or not turnout.is_grad_enabled():
            return result
        places = [i for i, each in enumerate(results) if isinstance(each, Tensor) and each.requires_grad]
        if not places:
            return result
        passed = _Gate.apply(self._outputs_known, len(results), tuple(places), *(results[i] for i in places))
        found = list(results)
        for i, tensor in zip(places, passed, strict=True):
            found[i] = tensor
        return found[0] if is_one else type(results)(found)

    def _outputs_known(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.before:
            grads = self._changed("full_backward_pre_hook", grads, hook(self.module, grads))
        self.outputs = grads
        if not self.has_inputs:
            for hook in self.after:
                hook(self.module, (None,) * self.number, grads)
        return grads

    def _inputs_done(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.after:
            grads = self._changed("full_backward_hook", grads, hook(self.module, grads, self.outputs))
        return grads

    def _changed(self, name: str, grads: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
        """The gradients that a hook gives in the place of others, as many as there were."""
        if given is None:
            return grads
        found = given if isinstance(given, tuple) else (given,)
        if len(found) != len(grads):
            raise ArgumentError(errors.other_number(name, self.module, len(grads), len(found)))
        return found


class _Gate(Function):
    """An identity of tensors, whose backward gives their gradients to a function."""

    @staticmethod
    def forward(ctx: Any, function: Any, number: int, places: tuple[int, ...], *tensors: Tensor) -> Any:
        """`places` says where the tensors are among `number` values; the function gets so many gradients."""
        ctx.function, ctx.number, ctx.places = function, number, places
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients that the function returns."""
        whole: list[Any] = [None] * ctx.number
        for place, grad in zip(ctx.places, grads, strict=True):
            whole[place] = grad
        found = ctx.function(tuple(whole))
        return (None, None, None, *(found[place] for place in ctx.places))
