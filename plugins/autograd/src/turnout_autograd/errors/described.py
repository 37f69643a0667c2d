"""Tensors as error texts describe them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout import Tensor


def tensor_text(tensor: Tensor) -> str:
    return f"{tensor.dtype.name} {list(tensor.shape)}"
