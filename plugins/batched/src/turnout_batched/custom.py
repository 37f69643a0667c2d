"""Batching rules written by users, for operators and Functions: `function(info, in_dims, *args) -> (result, out_dims)`.

A rule written in operators is like any other. An *opaque* one calls an array library: it runs on plain tensors without being
recorded, so that outer vmaps loop over it, and its gradient is the operator's own, one example after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.guards import during
from turnout_aten import operators as aten
from turnout_aten import trees
from turnout_aten.tensor.levels import LEVELS
from turnout_aten.tensor.tensor import Tensor
from turnout_batched import errors
from turnout_batched.kernels import by_rule, entered, example_of, peeled, top_level, wrapped
from turnout_batched.levels import moved, spread_all
from turnout_batched.values import batched_tensor, is_batched

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout_batched.levels import Level

    Call = Callable[..., Any]


class VmapInfo:
    """What a rule is told about the vmap: the batch size, and how random numbers are drawn."""

    __slots__ = ("batch_size", "randomness")

    def __init__(self, level: Level) -> None:
        self.batch_size = level.size
        self.randomness = level.randomness


def custom_rule(op: Operator, function: Call, opaque: bool) -> Call:
    """The kernel at Batched for a rule."""

    def rule(level: Level, dims: list[Any], *values: Any) -> Any:
        given, keywords = op.schema.by_keyword(values)
        found = function(VmapInfo(level), tuple(dims[: len(given)]), *given, **keywords)
        if not isinstance(found, tuple) or len(found) != 2:
            raise errors.VmapError(errors.bad_rule(op.qualified_name, found))
        _check_dims(op.qualified_name, *found)
        return found

    return entered(op, by_rule(op, _opaque(op, rule) if opaque else rule, with_level=True))


def by_function(name: str, function: Call, args: tuple[Any, ...]) -> Any:
    """Run a rule for a call with batched tensors, for the innermost of their vmaps. Raises VmapError.

    Arguments may be nested: `in_dims` is nested as they are, and `out_dims` may be as the result is.
    """
    leaves, structure = trees.flatten(args)
    level = top_level(tuple(leaves))
    values, dims = peeled(spread_all(leaves, level), level)
    found = function(VmapInfo(level), trees.unflatten(structure, dims), *trees.unflatten(structure, values))
    if not isinstance(found, tuple) or len(found) != 2:
        raise errors.VmapError(errors.bad_rule(name, found))
    made, bdim = found
    outputs, nested = trees.flatten(made)
    bdims = _check_dims(name, made, bdim)
    return trees.unflatten(nested, [wrapped(v, d, level) for v, d in zip(outputs, bdims, strict=True)])


def _check_dims(name: str, made: Any, bdim: Any) -> list[Any]:
    """The entries of out_dims for the leaves of a result. Raises VmapError if they do not fit it."""
    outputs, nested = trees.flatten(made)
    bdims = trees.spread(bdim, nested)
    if bdims is None or not all(_is_dim(d, v) for d, v in zip(bdims, outputs, strict=True)):
        raise errors.VmapError(errors.bad_out_dims(name, bdim))
    return bdims


def _is_dim(dim: Any, value: Any) -> bool:
    """Whether an entry of out_dims is valid: None or a dim of the tensor. A result that is not a tensor takes any entry."""
    if dim is None or not isinstance(value, Tensor):
        return True
    return isinstance(dim, int) and -value.ndim <= dim < value.ndim


def _opaque(op: Operator, rule: Call) -> Call:
    def run(level: Level, dims: list[Any], *values: Any) -> Any:
        if any(is_batched(v) for v in values):
            outer = top_level(values)
            results = [run(level, dims, *[example_of(v, i, outer) for v in values]) for i in range(outer.size)]
            return _stacked([made for made, _ in results], outer), results[0][1]
        if "Autograd" not in op.kernels:
            return rule(level, dims, *values)
        found: list[Any] = []
        made = _recorded(op, rule, level, dims, found).apply(*values)
        return made, found[0]

    return run


def _stacked(results: list[Any], level: Level) -> Any:
    if isinstance(results[0], (list, tuple)):
        return type(results[0])([_stacked(list(column), level) for column in zip(*results, strict=True)])
    return batched_tensor(aten.stack(results, 0), 0, level)


def _recorded(op: Operator, rule: Call, level: Level, dims: list[Any], found: list[Any]) -> Any:
    """The `autograd.Function` of one call: forward is the rule, backward is the operator's own gradient of each example."""

    def forward(ctx: Any, *values: Any) -> Any:
        ctx.save_for_backward(*[v if isinstance(v, Tensor) else None for v in values])
        ctx.values = [None if isinstance(v, Tensor) else v for v in values]
        made, bdim = rule(level, dims, *values)
        found.append(bdim)
        return made

    def backward(ctx: Any, *grads: Any) -> Any:
        saved = [s if s is not None else v for s, v in zip(ctx.saved_tensors, ctx.values, strict=True)]
        at = [i for i, needed in enumerate(ctx.needs_input_grad) if needed]
        bdims = found[0] if isinstance(found[0], (list, tuple)) else [found[0]] * len(grads)

        def pulled(k: int) -> Any:
            values = [v if d is None else aten.select__int(v, d, k) for v, d in zip(saved, dims, strict=True)]
            given = [g if d is None else aten.select__int(g, d, k) for g, d in zip(grads, bdims, strict=True)]
            return _pulled(op, values, at, tuple(given))

        # The values are plain: inside of the vmaps that they were made in, they would be batched again.
        outside = tuple([each for each in LEVELS.get() if each not in around])
        rows = during(LEVELS, outside, lambda: [pulled(k) for k in range(level.size)])
        gradients: list[Any] = [None] * len(saved)
        for i, column in zip(at, zip(*rows, strict=True), strict=True):
            together = aten.stack(list(column), 0)
            gradients[i] = aten.sum__dim_IntList(together, (0,)) if dims[i] is None else moved(together, 0, dims[i])
        return tuple(gradients)

    around = LEVELS.get()
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(f"Batched_{op.namespace}_{op.name}", (plugins.service("Autograd").Function,), members)


def _pulled(op: Operator, values: list[Any], at: list[int], grads: tuple[Any, ...]) -> tuple[Tensor, ...]:
    differentiable: list[bool] = []

    def of_tensors(*tensors: Tensor) -> list[Tensor]:
        given = list(values)
        for i, tensor in zip(at, tensors, strict=True):
            given[i] = tensor
        results = trees.flatten(op.call_boxed(tuple(given)))[0]
        differentiable.extend(t.is_floating_point() or t.is_complex() for t in results)
        return [t for t, kept in zip(results, differentiable, strict=True) if kept]

    _, pull = plugins.service("Autograd").vjp(of_tensors, *[values[i] for i in at])
    return pull([g for g, kept in zip(grads, differentiable, strict=True) if kept])
