"""Gradient rules of custom operators: `backward` and `setup_context` of a user as an `autograd.Function`.

`Function.apply` takes tensors and other values side by side: lists of tensors are laid out flat for it and put back for the rule.
An operator without lists in its schema skips both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from turnout.config.tuples import NamedTuple
from turnout.errors.library import KernelResultError
from turnout.operators import Operator
from turnout.operators.kernels import Kernel
from turnout.schema import FunctionSchema, ListType, OptionalType
from turnout.state import BELOW_AUTOGRAD
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.function.function import Function

Call = Callable[..., Any]


class Rule(NamedTuple):
    """What a user registered: `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`, or None.

    `schema` is that of `op`, which a recorded graph outlives; `names` are its positional arguments, of which the first `tensors`
    may have gradients. Without lists in the schema, values need no layout.
    """

    op: Operator
    schema: FunctionSchema
    backward: Call
    setup_context: Call | None
    names: list[str]
    with_lists: bool
    tensors: int

    @property
    def shown(self) -> str:
        """The rule's function and where it is from, for messages."""
        kernel = Kernel(self.backward)
        return f"{kernel.name} ({kernel.source})"


def custom_rule(op: Operator, backward: Call, setup_context: Call | None) -> Call:
    """The kernel of an operator's gradient rule: `turnout.library.register_autograd` asks for it at the first tracked call."""
    function = _function(op.namespace, op.name, op.overload)
    positional = op.schema.positional
    types = [a.type for a in positional] + [r.type for r in op.schema.returns]
    with_lists = any(isinstance(t.elem if isinstance(t, OptionalType) else t, ListType) for t in types)
    tensors = max((i + 1 for i, a in enumerate(positional) if a.type.is_tensor_like), default=0)
    rule = Rule(op, op.schema, backward, setup_context, [a.name for a in positional], with_lists, tensors)
    split = len(positional)

    def call_with_gradient(ks: int, *args: Any) -> Any:
        ks &= BELOW_AUTOGRAD
        if not GRAD.get()[0]:
            return op.lookup(ks)(ks, *args)
        call = _Call(rule, ks, args[split:])
        if not rule.with_lists:
            return function.apply(*args[:split], call)
        call.inputs = _Layout(args[:split])
        call.outputs = _Layout(())
        made = function.apply(*call.inputs.taken(), call)
        return call.outputs.put_back(made)

    return call_with_gradient


class _Call:
    """One recorded call: its rule, where it goes on, and how inputs and outputs were laid out flat; None without lists.

    The first `tensors` of its arguments may have gradients: those after them are no tensors, or None.
    """

    __slots__ = ("inputs", "keywords", "ks", "outputs", "rule", "tensors")
    inputs: _Layout | None
    outputs: _Layout | None

    def __init__(self, rule: Rule, ks: int, keywords: tuple[Any, ...]) -> None:
        self.rule = rule
        self.ks = ks
        self.keywords = keywords
        self.inputs = self.outputs = None
        self.tensors = rule.tensors


class _Layout:
    """Values of which some are lists with tensors, and the same values in a row."""

    __slots__ = ("flat", "lengths", "single")

    def __init__(self, values: Sequence[Any], *, single: bool = False) -> None:
        self.single = single  # an operator's only result, not in a tuple
        self.lengths = [len(v) if _has_tensors(v) else None for v in values]
        self.flat: list[Any] = []
        for value, length in zip(values, self.lengths, strict=True):
            self.flat += [value] if length is None else value

    def taken(self) -> list[Any]:
        """The values in a row, once: the tape must not keep what the rule did not save, nor a result the node that made it."""
        flat, self.flat = self.flat, []
        return flat

    def place(self, names: Sequence[str], index: int) -> str:
        """What messages call one of the values in a row: the argument, and its place in a list."""
        for name, length in zip(names, self.lengths, strict=True):
            if index < (length or 1):
                return f"'{name}'" if length is None else f"'{name}[{index}]'"
            index -= 1 if length is None else length
        return "an argument"

    def put_back(self, flat: Any) -> Any:
        """As many values in a row, in the places that they came from."""
        if self.single and self.lengths == [None]:
            return flat[0] if isinstance(flat, tuple) else flat
        rest = iter(flat if isinstance(flat, (tuple, list)) else (flat,))
        values = tuple(next(rest) if n is None else [next(rest) for _ in range(n)] for n in self.lengths)
        return values[0] if self.single else values


def _has_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value)


@lru_cache(maxsize=1024)
def _function(namespace: str, operator: str, overload: str) -> Any:
    """The subclass of `turnout.autograd.Function` that records calls of an operator with a rule.

    A class is in cycles with itself, which only the collector frees. So it is made once for each name, and knows no rule: that
    comes with each call.
    """

    def forward(ctx: Any, *flat: Any) -> Any:
        *values, call = flat
        rule = call.rule
        inputs = tuple(values) if call.inputs is None else call.inputs.put_back(values)
        while call.tensors and inputs[call.tensors - 1] is None:
            call.tensors -= 1
        output = rule.op.lookup(call.ks)(call.ks, *inputs, *call.keywords)
        if call.outputs is not None:
            several = len(rule.schema.returns) > 1
            call.outputs = _Layout(output if several else (output,), single=not several)
        ctx.operator_call = call
        if rule.setup_context is not None:
            if rule.schema.kwarg_only:
                keywords = {a.name: v for a, v in zip(rule.schema.kwarg_only, call.keywords, strict=True)}
                rule.setup_context(ctx=ctx, inputs=inputs, keyword_only_inputs=keywords, output=output)
            else:
                rule.setup_context(ctx=ctx, inputs=inputs, output=output)
        if call.outputs is None:
            return output
        made = tuple(call.outputs.taken())
        return made[0] if len(made) == 1 else made

    def backward(ctx: Any, *grads: Any) -> Any:
        call = ctx.operator_call
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = needed[:-1] if call.inputs is None else call.inputs.put_back(needed[:-1])
        if call.outputs is not None:
            outputs = call.outputs.put_back(grads)
            grads = (outputs,) if call.outputs.single else outputs
        try:
            found = call.rule.backward(ctx, *grads)
        finally:
            ctx.needs_input_grad = needed
        return (*_flat_gradients(call, found), None)

    def shown_input(ctx: Any, index: int) -> str:
        rule, layout = ctx.operator_call.rule, ctx.operator_call.inputs
        return f"'{rule.names[index]}'" if layout is None else str(layout.place(rule.names, index))

    name = f"GeneratedBackwardFor_{namespace}_{operator}_{overload or 'default'}"
    members: dict[str, Any] = {"forward": staticmethod(forward), "backward": staticmethod(backward), "__module__": __name__}
    shown = f"{namespace}::{operator}{'.' if overload else ''}{overload}"
    members.update(shown_as=shown, shown_input=staticmethod(shown_input))
    return type(name, (Function,), members)


def _flat_gradients(call: _Call, found: Any) -> Sequence[Any]:
    """What a rule returned, one value per flat input. Raises KernelResultError for a wrong number."""
    rule, layout = call.rule, call.inputs
    op, names = rule.op, rule.names
    grads = found if isinstance(found, tuple) else (found,)
    if len(grads) != len(names):
        if any(g is not None for g in grads[len(names) :]) or len(grads) < call.tensors:
            raise KernelResultError(errors.recording.wrong_gradients(op, rule.shown, names, len(grads)))
        # Missing at the end for what is no tensor in this call, or None too many: both are common in rules written for PyTorch.
        grads = (*grads, *[None] * len(names))[: len(names)]
    if layout is None:
        return grads
    flat: list[Any] = []
    for name, length, grad in zip(names, layout.lengths, grads, strict=True):
        if length is None:
            flat.append(grad)
        elif grad is None:
            flat += [None] * length
        elif isinstance(grad, (list, tuple)) and len(grad) == length:
            flat += grad
        else:
            raise KernelResultError(errors.recording.wrong_list_gradient(op, rule.shown, name, length, grad))
    return flat
