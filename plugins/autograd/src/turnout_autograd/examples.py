"""`autograd.Function` inside of vmap: forward and backward see one example, the tape one node for all of them.

The arguments are lowered, and the node is recorded on the lowered tensors. Its forward raises them again, so that the user's code
runs as in the mapped function around it. Backward may run when those vmaps are over: they are made active again for its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from turnout.errors import AliasError
from turnout.state import LEVELS, lower, raise_
from turnout.tensors import Tensor
from turnout_autograd import errors
from turnout_autograd.function import Function, FunctionCtx


@contextmanager
def active(levels: tuple[Any, ...]) -> Iterator[None]:
    """While entered, these vmaps are active beside those that are."""
    together = {level.num: level for level in (*levels, *LEVELS.get())}
    token = LEVELS.set(tuple([together[num] for num in sorted(together)]))
    try:
        yield
    finally:
        LEVELS.reset(token)


def apply(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls.apply` for arguments of which some are inside of a vmap."""
    levels = LEVELS.get()
    single: list[bool] = []

    def forward(ctx: FunctionCtx, *lowered: Any) -> Any:
        inner = FunctionCtx()
        inner.needs_input_grad = ctx.needs_input_grad
        inputs = tuple([raise_(v, levels) if isinstance(v, Tensor) else v for v in lowered])
        if cls.setup_context is Function.setup_context:
            output = cls.forward(inner, *inputs, **kwargs)
        else:
            output = cls.forward(*inputs, **kwargs)
            cls.setup_context(inner, inputs, output)
        if inner._dirty:
            raise errors.GradientError(errors.function_dirty_inside_vmap(cls.__name__))
        ctx.inner = inner  # type: ignore[attr-defined]
        ctx.versions = [(t, t.version()) for t in inner._to_save if t is not None]  # type: ignore[attr-defined]
        single.append(not isinstance(output, (tuple, list)))
        outputs = [output] if single[0] else list(output)
        made = [lower(v, levels) if isinstance(v, Tensor) else v for v in outputs]
        constant = [low for low, v in zip(made, outputs, strict=True) if any(v is t for t in inner._constant)]
        ctx.mark_non_differentiable(*constant)
        return tuple(made)

    def backward(ctx: Any, *grads: Any) -> Any:
        for i, (tensor, version) in enumerate(ctx.versions):
            if tensor.version() != version:
                raise AliasError(errors.changed(cls.__name__, f"saved_tensors[{i}]", tensor, version, tensor.version()))
        with active(levels):
            raised = [None if g is None else raise_(g, levels) for g in grads]
            found = cls.backward(ctx.inner, *raised)
            results = list(found) if isinstance(found, (tuple, list)) else [found]
            return tuple([lower(g, levels) if isinstance(g, Tensor) else g for g in results])

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type(cls.__name__, (Function,), members)
    made = function.apply(*[lower(a, levels) if isinstance(a, Tensor) else a for a in args])
    outputs = [raise_(v, levels) if isinstance(v, Tensor) else v for v in made]
    return outputs[0] if single[0] else tuple(outputs)
