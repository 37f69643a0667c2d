"""What generated kernels call where straight-line code would be too long: lists, optional tensors, arguments unlike results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.graph import FREED, Meta, Node, check_saved, metas


def version_of(tensor: Tensor | None) -> int:
    """The version an optional tensor is saved with."""
    return 0 if tensor is None else tensor.version()


def versions_of(tensors: Sequence[Tensor | None]) -> list[int]:
    """The versions that a list of tensors is saved with."""
    return [version_of(t) for t in tensors]


def check_optional(node: Node, argument: str, tensor: Tensor | None, version: int) -> Tensor | None:
    """A saved optional tensor, checked as `check_saved` does."""
    return None if tensor is None else check_saved(node, argument, tensor, version)


def check_list(node: Node, argument: str, tensors: Any, versions: list[int]) -> list[Tensor | None]:
    """A saved list of tensors, each checked."""
    if tensors is FREED:
        raise errors.GradientError(errors.freed(node.op_name))
    return [
        check_optional(node, f"{argument}[{i}]", t, v) for i, (t, v) in enumerate(zip(tensors, versions, strict=True))
    ]


def refuse(node: Node, argument: str, reason: str) -> NoReturn:
    """What `not_implemented` in an entry does at backward."""
    raise errors.GradientError(errors.not_implemented(node.op_name, argument, reason))


def counted(node: Node, arguments: str, grads: Any, count: int) -> Any:
    """The gradients that one formula gives for several arguments, or for a list. Raises GradientError for a wrong number."""
    if not isinstance(grads, (tuple, list)) or len(grads) != count:
        given = f"{len(grads)} gradients" if isinstance(grads, (tuple, list)) else type(grads).__name__
        raise errors.GradientError(errors.formula_count(node.op_name, arguments, given, count))
    return grads


def unlike(result: Tensor, *arguments: Tensor | None) -> tuple[Meta | None, ...] | None:
    """What `fit` needs when any argument differs from the result in shape, dtype or device."""
    shape, dtype, device = result.array.shape, result.dtype, result.device
    for t in arguments:
        if t is not None and (t.array.shape != shape or t.dtype is not dtype or t.device is not device):
            return metas(*arguments)
    return None


def unlike_kind(result: Tensor, arguments: Sequence[Tensor]) -> tuple[Meta | None, ...] | None:
    """The same for a list whose shapes the formula sees to."""
    dtype, device = result.dtype, result.device
    if all(t.dtype is dtype and t.device is device for t in arguments):
        return None
    return metas(*arguments)
