"""What every rule ends with: the tangent as the result is, in memory of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.formulas.complex import converted


def fitted(made: Tensor | None, result: Tensor, tangents: tuple[Any, ...]) -> Tensor | None:
    """A tangent with the shape, dtype and device of its result; a copy where it is an argument's tangent itself.

    What is written into the result later is written into its tangent too, and must not reach any other.
    """
    if made is None:
        return None
    if made.array.shape != result.array.shape:
        return fitted(made.expand(result.shape).clone(), result, ())
    if made.dtype is not result.dtype:
        made = converted(made, result.dtype)
    if made.device is not result.device:
        made = made.to(device=result.device)
    for tangent in tangents:
        if made is tangent:
            return made.clone()
    return made


def zeros_where_absent(tangents: Sequence[Tensor | None], primals: Sequence[Tensor]) -> list[Tensor]:
    """The tangents of a list, zeros for those that are None."""
    return [aten.zeros_like(p) if t is None else t for t, p in zip(tangents, primals, strict=True)]


def refuse(name: str, argument: str, reason: str) -> NoReturn:
    """What `not_implemented` in an entry does when a tangent comes with that argument."""
    raise errors.GradientError(errors.tangents.not_implemented(name, argument, reason))
