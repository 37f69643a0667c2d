"""`Function.apply` inside of vmap.

A Function's forward and backward see one element of the batch, the tape one node for all of them: the arguments are lowered, and
the node is recorded on the lowered tensors. Its forward raises them again, so that the user's code runs as in the mapped
function around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnout.keys import KEYS
from turnout.registry import REGISTRY
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, LEVELS, lower, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.recorded_levels import EPOCHS
from turnout_autograd.function.context import FunctionCtx
from turnout_autograd.transforms.batch_elements import run_in

if TYPE_CHECKING:
    from turnout_autograd.function.function import Function


def apply_to_elements(base: Any, cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls.apply` for arguments of which some are inside of a vmap; `base` is `Function` itself."""
    rule = None if cls.vmap is base.vmap else _rule(cls, kwargs)
    if rule is not None and not _recorded_inside(args):
        return rule(*args)
    levels = LEVELS.get()
    single: list[bool] = []

    def forward(ctx: FunctionCtx, *given: Any) -> Any:
        inner = FunctionCtx()
        inner.needs_input_grad = ctx.needs_input_grad
        inputs = tuple([raise_(v, levels) if isinstance(v, Tensor) else v for v in given])
        if cls.setup_context is base.setup_context:
            output = cls.forward(inner, *inputs, **kwargs)
        else:
            output = rule(*inputs) if rule is not None and _batched(inputs) else cls.forward(*inputs, **kwargs)
            cls.setup_context(inner, inputs, output)
        if inner._dirty:
            raise errors.GradientError(errors.functions.function_dirty_inside_vmap(cls.__name__))
        ctx.inner = inner  # type: ignore[attr-defined]
        single.append(not isinstance(output, (tuple, list)))
        outputs = [output] if single[0] else list(output)
        made = [lower(v, levels) if isinstance(v, Tensor) else v for v in outputs]
        constant = [low for low, v in zip(made, outputs, strict=True) if any(v is t for t in inner._constant)]
        ctx.mark_non_differentiable(*constant)
        # Saved as the tape's own tensors: an element that was kept would hold the node that holds it.
        known = {id(v): low for v, low in zip((*inputs, *outputs), (*given, *made), strict=True)}
        for keep, tensors in ((ctx.save_for_backward, inner._to_save), (ctx.save_for_forward, inner._for_forward)):
            keep(*[None if t is None else known[id(t)] if id(t) in known else lower(t, levels) for t in tensors])
        inner._to_save = inner._for_forward = inner._constant = ()
        return tuple(made)

    def lowered(found: Any) -> tuple[Any, ...]:
        results = found if isinstance(found, (tuple, list)) else [found]
        return tuple([lower(v, levels) if isinstance(v, Tensor) else v for v in results])

    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors

        def of_elements() -> tuple[Any, ...]:
            raised = [None if g is None else raise_(g, levels) for g in grads]
            ctx.inner._to_save = tuple([None if t is None else raise_(t, levels) for t in saved])
            try:
                found = cls.backward_rule()(ctx.inner, *raised)
            finally:
                ctx.inner._to_save = ()
            return lowered(found)

        return run_in(levels, of_elements)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        def of_elements() -> tuple[Any, ...]:
            ctx.inner._in_jvp = True
            ctx.inner._for_forward = tuple([None if t is None else raise_(t, levels) for t in ctx.saved_tensors])
            try:
                found = cls.jvp(ctx.inner, *[None if t is None else raise_(t, levels) for t in tangents])
            finally:
                ctx.inner._for_forward = ()
                ctx.inner._in_jvp = False
            return lowered(found)

        return run_in(levels, of_elements)

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    if cls.has_jvp():
        members["jvp"] = staticmethod(jvp)
    function: Any = type(cls.__name__, (base,), members)
    made = function.apply(*[lower(a, levels) if isinstance(a, Tensor) else a for a in args])
    outputs = [raise_(v, levels) if isinstance(v, Tensor) else v for v in made]
    return outputs[0] if single[0] else tuple(outputs)


def _rule(cls: type[Function], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """The Function's own `vmap` as a function of the arguments."""
    if cls.generate_vmap_rule:
        raise errors.GradientError(errors.functions.function_two_rules(cls.__name__))

    def call(info: Any, in_dims: tuple[Any, ...], *values: Any) -> Any:
        return cls.vmap(info, in_dims, *values, **kwargs)

    return lambda *args: REGISTRY.services["Batched"].by_function(cls.__name__, call, args)


def _batched(args: Any) -> list[Tensor]:
    return [a for a in trees.flatten(args)[0] if isinstance(a, Tensor) and a.keys & KEYS.bit("Batched")]


def _recorded_inside(args: Sequence[Any]) -> bool:
    """Whether a functional gradient that was entered inside of the innermost vmap records the call.

    It sees one element, so it needs the Function's backward, and not the gradient of what the rule does for all.
    """
    enabled = GRAD.get()[0]
    began = max(batched.array.level.epoch for batched in _batched(args))
    tracked = 0
    for tensor in _batched(args):
        tracked |= lower(tensor, LEVELS.get()).gmask & enabled
    return any(tracked & bit and epoch > began for bit, epoch in EPOCHS.copy().items())
