"""Building modules without their initial values."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from turnout.errors import CallError
from turnout_nn.module import Module

T = TypeVar("T", bound=Module)


def skip_init(module_cls: type[T], *args: Any, **kwargs: Any) -> T:
    """A module whose parameters and buffers hold whatever was in memory; nothing is drawn.

    Raises CallError for a class that is not a module's, or whose constructor takes no `device`.

    Arguments:
        module_cls: the class of the module
        args: arguments of its constructor
        kwargs: keyword arguments of its constructor, such as `device`

    Example:
        >>> turnout.nn.utils.skip_init(turnout.nn.Linear, 3, 2).weight.shape
        turnout.Size([2, 3])
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise CallError(f"skip_init: expected the class of a module, got {module_cls!r}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise CallError(f"skip_init: the constructor of {module_cls.__name__} does not take 'device'")
    device = kwargs.pop("device", None) or "cpu"
    make: Any = module_cls  # whose constructor takes a device
    made: T = make(*args, device="meta", **kwargs)
    return made.to_empty(device=device)
