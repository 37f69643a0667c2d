"""Hooks of all modules, for tools that look at programs: each is called before the hooks that a module has itself.

Calls of modules cost nothing more until the first one is registered, and again after the last one is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout.plugins import effect
from turnout_aten.plugin_api import describe
from turnout_nn.hooks import FOR_ALL, Handle, Hook, Hooks
from turnout_nn.module import Module

__all__ = [
    "register_module_buffer_registration_hook", "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip
__dir__ = __all__.copy


class _HandleForAll(Handle):
    """Removes a hook of all modules."""

    __slots__ = ()

    def __init__(self, table: dict[int, Any], hook: Any) -> None:
        super().__init__(table, hook)
        Module._module_hooks = FOR_ALL

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        super().remove()
        if not any(getattr(FOR_ALL, table) for table in Hooks.__slots__):
            Module._module_hooks = None


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, args)` before `forward` of any module. What it returns takes the place of the arguments, if not None.

    Example:
        >>> from turnout.nn.modules.module import register_module_forward_pre_hook
        >>> with register_module_forward_pre_hook(lambda module, args: print(type(module).__name__)):
        ...     y = turnout.nn.Sequential(turnout.nn.ReLU())(turnout.ones(1))
        Sequential
        ReLU
    """
    effect("register_module_forward_pre_hook()")
    return _HandleForAll(FOR_ALL.before, Hook(hook))


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Call `hook(module, args, output)` after `forward` of any module. What it returns, if not None, is the output.

    Arguments:
        with_kwargs: whether it is called as `hook(module, args, kwargs, output)`
        always_call: whether it is called when `forward` raises, too

    Example:
        >>> from turnout.nn.modules.module import register_module_forward_hook
        >>> with register_module_forward_hook(lambda module, args, output: output * 2):
        ...     turnout.nn.ReLU()(turnout.ones(1))
        tensor([2.])
    """
    effect("register_module_forward_hook()")
    return _HandleForAll(FOR_ALL.after, Hook(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, grad_output)` when the gradients of a module's outputs are known. It may return others.

    Example:
        >>> from turnout.nn.modules.module import register_module_full_backward_pre_hook
        >>> x = turnout.ones(1, requires_grad=True)
        >>> with register_module_full_backward_pre_hook(lambda module, grads: print(grads)):
        ...     turnout.nn.ReLU()(x).sum().backward()
        (tensor([1.]),)
    """
    effect("register_module_full_backward_pre_hook()")
    return _HandleForAll(FOR_ALL.backward_before, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of a module's arguments are known. It may return others.

    Example:
        >>> from turnout.nn.modules.module import register_module_full_backward_hook
        >>> x = turnout.ones(1, requires_grad=True)
        >>> with register_module_full_backward_hook(lambda module, inputs, outputs: print(type(module).__name__)):
        ...     turnout.nn.ReLU()(x).sum().backward()
        ReLU
    """
    effect("register_module_full_backward_hook()")
    return _HandleForAll(FOR_ALL.backward, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, name, parameter)` where a module gets a parameter. It may return another one.

    Example:
        >>> from turnout.nn.modules.module import register_module_parameter_registration_hook
        >>> with register_module_parameter_registration_hook(lambda module, name, parameter: print(name)):
        ...     layer = turnout.nn.Linear(2, 2)
        weight
        bias
    """
    effect("register_module_parameter_registration_hook()")
    return Handle(FOR_ALL.parameters, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, name, buffer)` where a module gets a buffer. It may return another one.

    Example:
        >>> from turnout.nn.modules.module import register_module_buffer_registration_hook
        >>> with register_module_buffer_registration_hook(lambda module, name, buffer: print(name)):
        ...     layer = turnout.nn.BatchNorm1d(2)
        running_mean
        running_var
        num_batches_tracked
    """
    effect("register_module_buffer_registration_hook()")
    return Handle(FOR_ALL.buffers, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(module, name, submodule)` where a module gets a module. It may return another one.

    Example:
        >>> from turnout.nn.modules.module import register_module_module_registration_hook
        >>> with register_module_module_registration_hook(lambda module, name, submodule: print(name, submodule)):
        ...     layers = turnout.nn.Sequential(turnout.nn.ReLU())
        0 ReLU()
    """
    effect("register_module_module_registration_hook()")
    return Handle(FOR_ALL.modules, hook)


describe(globals(), hook="the function")
