"""What a transformed function returns: its results, and with `has_aux` what else it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnout_aten import trees
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.transforms.arguments import check_tensor

if TYPE_CHECKING:
    from turnout_autograd.transforms.arguments import Function


def call(name: str, function: Function, args: Sequence[Any], has_aux: bool) -> tuple[list[Tensor], Any, Any]:
    """The tensors that `function(*args)` returns, their structure, and what else it returns: None without `has_aux`."""
    result = function(*args)
    aux = None
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise errors.GradientError(errors.transforms.aux_missing(name))
        result, aux = result
    outputs, structure = trees.flatten(result)
    return [check_tensor(name, "a result", t) for t in outputs], structure, aux


def check_returned(name: str, outputs: Sequence[Tensor]) -> None:
    if not outputs:
        raise errors.GradientError(errors.transforms.nothing_returned(name))
