"""`as_subclass`: a tensor's array as an instance of a subclass of Tensor, which may dispatch itself."""

from __future__ import annotations

import weakref
from typing import Any

from turnout.errors import CallError
from turnout.operators.tracebacks import shortening
from turnout.registry import REGISTRY
from turnout.registry.modes import HANDLER, PYTHON, require_python_key
from turnout.state import in_effect
from turnout_aten.tensor.backend_keys import kept_keys
from turnout_aten.tensor.tensor import Tensor

_SLOTS = tuple(slot for slot in Tensor.__slots__ if slot != "__weakref__")


@shortening
def as_subclass(tensor: Tensor, cls: type[Tensor]) -> Any:
    """The tensor's array as an instance of `cls`, over the same memory and with the same history for gradients.

    If `cls` defines the class method `__turnout_dispatch__(cls, op, ks, args)`, calls with the instance as an argument
    go there instead of to a kernel. In it, `op.redispatch(ks, *args)` runs the kernel on the arrays and returns plain
    tensors; returning NotImplemented passes the call to the next subclass among the arguments.
    `as_subclass(t, turnout.Tensor)` converts back. `cls.__init__` is not called. Raises TypeError when `cls` is not a
    subclass of Tensor.

    # differs from torch: what operators compute from an instance of a subclass, such as `x + 1` or `x[0]`, is a plain tensor,
    and it prints as one.

    Arguments:
        tensor: the tensor
        cls: a subclass of Tensor

    Example:
        >>> class Mine(turnout.Tensor): pass
        >>> type(turnout.as_subclass(turnout.tensor([1]), Mine)).__name__
        'Mine'
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise CallError(f"as_subclass: cls must be a subclass of turnout.Tensor, got {cls!r}")
    plain = _plain_alias(tensor)
    if cls is Tensor:
        return plain
    made = object.__new__(cls)
    for slot in _SLOTS:
        if hasattr(plain, slot):
            setattr(made, slot, getattr(plain, slot))
    if made.view_of is not None and made.storage is not None:
        made.storage.views.append(weakref.ref(made))
    if hasattr(cls, HANDLER):
        require_python_key()
        made.keys |= PYTHON
    return made


def _plain_alias(tensor: Tensor) -> Tensor:
    """A plain tensor over the same memory. A tracked tensor goes through the operator, so that gradients flow back."""
    if not tensor.gmask:
        alias = tensor.new_alias(tensor.array, tensor.storage_offset())
        alias.keys = kept_keys(alias.keys, tensor.keys)
        return alias
    return REGISTRY.find("aten::alias").redispatch(in_effect(tensor.keys) & ~PYTHON, tensor)
