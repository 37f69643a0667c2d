"""What a tensor is to a program, such as a parameter of a module: one word, which copies and pickles of the tensor keep.

A tensor with a role is a plain one in every call: no kernel and no call path asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

_ROLE = "role"  # in `extra`


def role_of(tensor: Tensor) -> str:
    """The tensor's role; "" for a tensor without one."""
    extra = tensor.extra
    return "" if extra is None else extra.get(_ROLE, "")


def set_role(tensor: Tensor, role: str) -> None:
    """Give the tensor a role; "" takes it away."""
    if tensor.extra is None:
        tensor.extra = {}
    tensor.extra[_ROLE] = role
