"""Two-byte floats in rules of several operators: computed in float32 and rounded once, as kernels do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from turnout.dtypes import FLOAT
from turnout_aten.composites.conversions import converted
from turnout_aten.dtypes import WIDE
from turnout_aten.tensor.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def rounded_once(rule: Callable[P, R]) -> Callable[P, R]:
    """The rule, whose steps get float32 for floats of two bytes. Its results are rounded to their dtype."""

    @wraps(rule)
    def rounding(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(value, Tensor) and value.dtype.itemsize == 2 for value in args):
            return rule(*args, **kwargs)
        floats = {value.dtype for value in args if isinstance(value, Tensor) and value.dtype.category == FLOAT}
        dtype = floats.pop() if len(floats) == 1 else None
        if dtype is None or WIDE[dtype] is dtype:
            return rule(*args, **kwargs)
        wide = WIDE[dtype]
        found = rule(*[_changed(value, dtype, wide) for value in args], **kwargs)
        if isinstance(found, tuple):
            return tuple([_changed(each, wide, dtype) for each in found])
        return _changed(found, wide, dtype)

    return rounding


def widened(x: Tensor) -> Tensor:
    """A tensor of floats as a rule computes with it, whose results are then `rounded` to the dtypes of their specs."""
    return converted(x, WIDE[x.dtype])


def rounded(results: Sequence[Tensor], specs: Sequence[Any]) -> list[Tensor]:
    """Results in the dtypes that the operator's shape function says."""
    return [converted(result, spec.dtype) for result, spec in zip(results, specs, strict=True)]


def _changed(value: Any, of: Any, to: Any) -> Any:
    return converted(value, to) if isinstance(value, Tensor) and value.dtype is of else value
