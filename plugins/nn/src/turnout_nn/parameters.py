"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned to it.

Each is a plain tensor with a role (`turnout_aten.tensor.roles`), so that every call treats it as any other tensor.
`isinstance(x, Parameter)` asks for the role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import turnout
from turnout.errors import CallError, ShapeError
from turnout_aten.plugin_api import Tensor, role_of, set_role
from turnout_nn import errors

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]
__dir__ = __all__.copy

PARAMETER, BUFFER, TEMPORARY = "parameter", "buffer", "temporary buffer"


class _HasRole(type):
    """The type of classes whose instances are tensors with certain roles."""

    roles: tuple[str, ...] = ()

    def __instancecheck__(cls, value: object) -> bool:
        return type.__instancecheck__(cls, value) or (isinstance(value, Tensor) and role_of(value) in cls.roles)


class Parameter(Tensor, metaclass=_HasRole):
    """A tensor that a module trains. Assigned to a module, it is among the module's `parameters()`.

    It is over the memory of the given tensor and has no history. Raises CallError for data that is not a tensor.

    # differs from torch: `nn.Parameter(x)` has the type `Tensor` and prints as one; `isinstance(x, nn.Parameter)` holds.

    Arguments:
        data: the tensor; None makes an empty one
        requires_grad: whether gradients with respect to it are wanted

    Example:
        >>> scale = turnout.nn.Parameter(turnout.ones(2))
        >>> scale
        tensor([1., 1.], requires_grad=True)
        >>> isinstance(scale, turnout.nn.Parameter)
        True
    """

    __slots__ = ()
    roles = (PARAMETER,)

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        return in_role(_alias(data, cls), PARAMETER).requires_grad_(requires_grad)  # type: ignore[return-value]


class Buffer(Tensor, metaclass=_HasRole):
    """A tensor that belongs to a module's state and is not trained, such as a running mean.

    Raises CallError for data that is not a tensor.

    # differs from torch: `nn.Buffer(x)` has the type `Tensor`; `isinstance(x, nn.Buffer)` holds.

    Arguments:
        data: the tensor; None makes an empty one
        persistent: whether it is part of the module's `state_dict`

    Example:
        >>> module = turnout.nn.Module()
        >>> module.steps = turnout.nn.Buffer(turnout.tensor(0))
        >>> dict(module.state_dict())
        {'steps': tensor(0)}
    """

    __slots__ = ()
    roles = (BUFFER, TEMPORARY)

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        return in_role(_alias(data, cls), BUFFER if persistent else TEMPORARY)  # type: ignore[return-value]


class _Uninitialized:
    """What the two classes of tensors without a shape have in common."""

    __slots__ = ()

    def materialize(self: Any, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Get memory for a shape, and become a plain parameter or buffer, which the module fills.

        Arguments:
            shape: the shape
            device: where; None for the device given at first
            dtype: the dtype; None for that given at first
        """
        role, kept = role_of(self), {"device": device or self.device, "dtype": dtype or self.dtype}
        self.data = turnout.empty(tuple(shape), **kept)
        self.__class__ = Tensor
        set_role(self, role)

    def _arguments(self: Any) -> tuple[Any, ...]:
        return self.requires_grad, str(self.device), self.dtype, *([role_of(self) == BUFFER] if isinstance(self, Buffer) else [])

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        memo[id(self)] = made = type(self)(*self._arguments())
        return made

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return type(self), self._arguments()

    @property
    def shape(self) -> Any:
        """Raise ShapeError: there is none yet."""
        raise ShapeError(errors.no_shape_yet())


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter of a lazy module, whose shape is not known before the module is called. `materialize` gives it one.

    Arguments:
        requires_grad: whether gradients with respect to it will be wanted
        device: where it will be
        dtype: its dtype

    Example:
        >>> later = turnout.nn.UninitializedParameter()
        >>> later.materialize((2, 3))
        >>> later.shape
        turnout.Size([2, 3])
    """

    __slots__ = ()

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        made = turnout.empty(0, device=device, dtype=dtype).as_subclass(cls)
        return in_role(made, PARAMETER).requires_grad_(requires_grad)  # type: ignore[return-value]

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer of a lazy module, whose shape is not known before the module is called. `materialize` gives it one.

    Arguments:
        requires_grad: accepted, and without effect
        device: where it will be
        dtype: its dtype
        persistent: whether it will be part of the module's `state_dict`

    Example:
        >>> later = turnout.nn.UninitializedBuffer()
        >>> later.materialize((2,))
        >>> later.shape
        turnout.Size([2])
    """

    __slots__ = ()

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made = turnout.empty(0, device=device, dtype=dtype).as_subclass(cls)
        return in_role(made, BUFFER if persistent else TEMPORARY)  # type: ignore[return-value]

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> None:
        pass


def is_uninitialized(tensor: object) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(tensor, _Uninitialized)


def in_role(tensor: Tensor, role: str) -> Tensor:
    """The tensor itself, now with the role."""
    set_role(tensor, role)
    return tensor


def empty_parameter(shape: Sequence[int], device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter with memory of its own, which a module fills in `reset_parameters`."""
    made = turnout.empty(tuple(shape), dtype=dtype, device=device)
    return in_role(made, PARAMETER).requires_grad_()  # type: ignore[return-value]


def _alias(data: Any, cls: type) -> Tensor:
    """A tensor without history over the memory of the given one."""
    if data is None:
        return turnout.empty(0)
    if not isinstance(data, Tensor):
        raise CallError(errors.no_tensor(cls.__name__, data))
    return data.detach()
