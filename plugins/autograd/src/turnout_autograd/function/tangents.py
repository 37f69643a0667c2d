"""`Function.apply` in forward mode: the function's own `jvp`, or what its backward says of tangents.

The call itself goes on at the levels outside of the one that it takes part in, as that of an operator does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT
from turnout.errors import ShapeError
from turnout.registry import find_operator
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.carried import found_in, set_tangent, tangent_of, written
from turnout_autograd.duals.levels import ACTIVE, ForwardLevel, at_levels, in_columns
from turnout_autograd.duals.results import outputs_of
from turnout_autograd.engine.saved_tensors import with_tangents
from turnout_autograd.transforms.linearized import Linearized, Pushed

if TYPE_CHECKING:
    from turnout_autograd.function.context import FunctionCtx
    from turnout_autograd.function.function import Function

_zeros_like = find_operator("aten::zeros_like").stub
Applied = tuple[Any, "FunctionCtx"]


def innermost_level(args: tuple[Any, ...]) -> ForwardLevel | None:
    """The innermost active level that an argument carries a tangent of."""
    for level in reversed(ACTIVE.get()):
        if any(level in (found_in(a) or ()) for a in args if isinstance(a, Tensor)):
            return level
    return None


def apply_to_duals(cls: type[Function], level: ForwardLevel, apply: Callable[[tuple[Any, ...]], Applied], args: Any) -> Applied:
    """The results of a call, with their tangents, and its ctx; `apply` makes the call."""
    given = [tangent_of(a, level) if isinstance(a, Tensor) else None for a in args]
    outside = level.outside()
    result, ctx = at_levels(outside, apply, args)
    own = cls.has_jvp()

    def compute(tangents: Any, result: Any, *args: Any) -> Any:
        return _by_jvp(cls, ctx, tangents, result, args) if own else _by_backward(cls, apply, tangents, args)

    outputs = outputs_of(result)
    if level.is_deferred:
        noted = [each.history_owner() for each in outputs]
        found = level.defer(compute, given, noted, [a.history_owner() if isinstance(a, Tensor) else a for a in args], False)
    else:
        found = at_levels(outside, in_columns, level, compute, given, result, *args)
    for tensor, tangent in zip(outputs, found, strict=True):
        if tangent is None:
            continue
        if any(tensor is each for each in ctx._dirty):
            written(tensor, level, tangent)
        else:
            set_tangent(tensor, level, tangent)
        if tensor.gmask and isinstance(ctx._saved, list):
            ctx._saved = [with_tangents(saved, tensor.node, tensor, found_in(tensor)) for saved in ctx._saved]
    return result, ctx


def _by_jvp(cls: type[Function], ctx: FunctionCtx, tangents: Any, result: Any, args: tuple[Any, ...]) -> list[Any]:
    if ctx._materialize:
        tangents = [
            _zeros_like(a) if t is None and isinstance(a, Tensor) and a.dtype.category >= FLOAT else t
            for a, t in zip(args, tangents, strict=True)
        ]
    ctx._in_jvp = True
    try:
        found = cls.jvp(ctx, *tangents)
    finally:
        ctx._in_jvp = False
    outputs = outputs_of(result)
    made = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(made) != len(outputs):
        raise errors.GradientError(errors.functions.function_tangent_count(cls.__name__, len(made), len(outputs)))
    for i, (tangent, tensor) in enumerate(zip(made, outputs, strict=True)):
        if tangent is None or any(tensor is each for each in ctx._constant):
            made[i] = None
        elif not isinstance(tangent, Tensor):
            raise errors.GradientError(errors.functions.function_tangent_kind(cls.__name__, i, tangent))
        elif tangent.shape != tensor.shape:
            raise ShapeError(errors.functions.function_tangent_shape(cls.__name__, i, tangent.shape, tensor.shape))
        elif tangent.dtype is not tensor.dtype:
            made[i] = tangent.to(dtype=tensor.dtype)
    return made


def _by_backward(cls: type[Function], apply: Callable[[tuple[Any, ...]], Applied], tangents: Any, args: Any) -> list[Any]:
    """The pullback of the pullback; forward runs once more.

    # differs from torch: a `turnout.autograd.Function` without `jvp` has the tangents that its backward implies, if that can be
    differentiated. PyTorch raises an error.
    """
    at = [i for i, t in enumerate(tangents) if t is not None]

    def function(*entered: Tensor) -> Any:
        changed = list(args)
        for i, tensor in zip(at, entered, strict=True):
            changed[i] = tensor
        return tuple(outputs_of(apply(tuple(changed))[0]))

    run = Linearized(cls.__name__, function, [args[i] for i in at], False, ())
    found = Pushed(run)([tangents[i] for i in at])
    return [
        t if o.dtype.category >= FLOAT and run.depends(i) else None
        for i, (t, o) in enumerate(zip(found, run.outputs, strict=True))
    ]
