"""`autograd.Function`: a forward and a backward in Python, as one node of the tape.

Forward runs without recording; its outputs then get the node. Both forms are taken: `forward(*args)` with `setup_context(ctx,
inputs, output)`, and the older `forward(ctx, *args)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnout.config.effects import effect
from turnout.errors import CallError
from turnout.keys import KEYS
from turnout.operators.tracebacks import shorten
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.levels import ACTIVE
from turnout_autograd.engine.anomaly import ANOMALY, note
from turnout_autograd.engine.nodes import start
from turnout_autograd.engine.recorded_levels import recording
from turnout_autograd.function.batched_calls import apply_to_elements
from turnout_autograd.function.context import FunctionCtx
from turnout_autograd.function.nodes import FunctionNode
from turnout_autograd.function.outputs import as_returned, attach_outputs, save, unrecorded
from turnout_autograd.recording.views import refresh

_BATCHED = KEYS.bit("Batched")


def _run_forward(cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if cls.setup_context is Function.setup_context:
        return cls.forward(ctx, *args, **kwargs)
    output = cls.forward(*args, **kwargs)
    cls.setup_context(ctx, args, output)
    return output


class Function:
    """Derive, define `forward` and `backward` (and `setup_context`) as static methods, call `apply`.

    Inside vmap forward and backward see one element of the batch. A static method `vmap(info, in_dims, *args)`, which returns
    (result, out_dims), does all elements at once instead; `generate_vmap_rule = True` only states that there is no such method.
    """

    generate_vmap_rule = False
    _signature: tuple[Any, int]  # of forward, and how many places it has for positional arguments; of this very class
    shown_as = ""  # what messages call it, where it stands for an operator

    @staticmethod
    def shown_input(ctx: Any, index: int) -> str:
        """What messages call one of forward's arguments."""
        return f"input {index}"

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The computation."""
        raise NotImplementedError("a Function must define forward as a static method")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, when forward takes no ctx."""

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient per argument of forward, None for those without."""
        raise NotImplementedError("a Function must define backward as a static method, or not be differentiated")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The tangent of each result of forward, for the tangents of its arguments: None for those that are not tensors.

        `ctx.saved_tensors` are those of `save_for_forward`. Without this method tangents are what `backward` implies.
        """
        raise NotImplementedError("a Function may define jvp as a static method")

    @classmethod
    def has_jvp(cls) -> bool:
        """Whether `jvp` is written."""
        return cls.jvp is not Function.jvp

    @classmethod
    def backward_rule(cls) -> Callable[..., Any]:
        """`backward`, or `vjp`, which is another name for it. Raises GradientError where both are written."""
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise errors.GradientError(errors.functions.function_both(cls.__name__))
        return cls.vjp

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """The computation for all elements of a vmap's batch; `info` has batch_size and randomness."""
        raise NotImplementedError("a Function may define vmap as a static method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise GradientError: a function is not called as an instance."""
        raise errors.GradientError(errors.functions.function_called(type(self).__name__))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, recorded as one node where a tensor among the arguments is tracked.

        Arguments that are given by keyword count as the positional ones that they are in forward's signature; with
        `setup_context` omitted ones count with their defaults. Raises CallError for a tracked tensor that forward takes by
        keyword only, TypeError where the arguments do not fit.
        """
        try:
            if kwargs or cls.setup_context is not Function.setup_context:
                args, kwargs = _positional(cls, args, kwargs)
            if LEVELS.get() and _has_batched(args if cls.vmap is Function.vmap else trees.flatten(args)[0]):
                return apply_to_elements(Function, cls, args, kwargs)
            return _applied(cls, args, kwargs)[0]
        except Exception as error:
            shorten(error)
            raise


def _applied(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, FunctionCtx]:
    """What a call returns, and its ctx."""
    if not ACTIVE.get():
        return _recorded(cls, args, kwargs)
    from turnout_autograd.function.tangents import apply_to_duals, innermost_level

    level = innermost_level(args)
    if level is None:
        return _recorded(cls, args, kwargs)
    return apply_to_duals(cls, level, lambda args: _applied(cls, args, kwargs), args)


def _recorded(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, FunctionCtx]:
    enabled, allowed = GRAD.get()
    tracked = 0
    allowed |= 1
    needed: list[bool] = []
    edges: list[Any] = []
    metas: list[Any] = []
    for value in args:
        if not isinstance(value, Tensor):
            needed.append(False)
            edges.append(None)
            metas.append(None)
            continue
        if value.view_of is not None:
            refresh(value)
        mask = value.gmask
        tracked |= mask & enabled
        needed.append(mask & allowed != 0)
        edges.append((value.node or value) if mask & enabled else None)
        metas.append((value.shape, value.dtype, value.device))
    ctx = FunctionCtx()
    ctx.needs_input_grad = tuple(needed)
    output = recording(0, _run_forward, cls, ctx, args, kwargs)
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    for tensor in ctx._dirty:
        if not any(tensor is each for each in outputs):
            raise errors.GradientError(errors.functions.function_not_input(cls.__name__))
    if not tracked:
        return as_returned(output, [unrecorded(cls, value, args, ctx._dirty) for value in outputs]), ctx
    effect("Function.apply()", of_gradients=True)
    node = FunctionNode()
    start(node, tuple(edges))
    node.function = cls
    node.ctx = ctx
    node.inputs = metas
    if ANOMALY.enabled:
        note(node)
    made = attach_outputs(cls, node, ctx, args, outputs, tracked)
    save(ctx, node, outputs, made, tracked)
    return as_returned(output, made), ctx


def _has_batched(values: Sequence[Any]) -> bool:
    return any(isinstance(v, Tensor) and v.keys & _BATCHED for v in values)


def _positional(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments by position as far as forward's signature has places for them, and the rest by name."""
    newer = cls.setup_context is not Function.setup_context
    found = cls.__dict__.get("_signature")
    if found is None:
        import inspect

        signature = inspect.signature(cls.forward)
        kinds = [p.kind for p in signature.parameters.values()]
        found = cls._signature = signature, sum(k <= inspect.Parameter.POSITIONAL_OR_KEYWORD for k in kinds)
    signature, places = found
    if not kwargs and len(args) >= places:
        return args, kwargs
    bound = signature.bind(*args, **kwargs) if newer else signature.bind(None, *args, **kwargs)
    if newer:
        bound.apply_defaults()
    for name, value in bound.kwargs.items():
        if isinstance(value, Tensor) and (value.requires_grad or value.keys & _BATCHED):
            raise CallError(errors.functions.function_keyword(cls.__name__, name))
    return bound.args[0 if newer else 1 :], bound.kwargs
