"""`linearize`: a function runs once at a level that notes what to compute of tangents, and computes it for any tangents later.

In place of a tangent, tensors carry its number. What a rule needs of the call is kept as it was: before memory is written that
something noted needs, a copy takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnout.dtypes import FLOAT
from turnout.errors import AliasError
from turnout.operators.values import tensors_in
from turnout.registry import find_operator
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.levels import ForwardLevel, at_levels
from turnout_autograd.duals.results import for_each, outputs_of
from turnout_autograd.engine.recorded_levels import LIVE, recording

_clone = find_operator("aten::clone").stub


class Step:
    """One computation: the numbers of tangents in and out, and a rule with the values it was called with.

    `result` and `args` are None for a function of tangents alone. `off` are the gradient levels that did not record there.
    """

    __slots__ = ("args", "compute", "given", "made", "off", "result", "versions")

    def __init__(
        self, compute: Callable[..., Any], given: Sequence[Any], made: Sequence[int | None], result: Any, args: Any
    ) -> None:
        self.compute = compute
        self.given = given
        self.made = made
        self.result = result
        self.args = args
        enabled, allowed = GRAD.get()
        self.off = allowed & ~enabled
        self.versions = [(t, t.version()) for t in self.tensors()]

    def tensors(self) -> list[Tensor]:
        return [] if self.args is None else list(tensors_in((*self.args, *outputs_of(self.result))))

    def replace(self, copies: dict[int, Tensor]) -> None:
        """Put copies in the place of tensors."""

        def replaced(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [replaced(each) for each in value]
            return copies.get(id(value), value)

        self.args = replaced(self.args)
        self.result = replaced(self.result)
        self.versions = [(t, t.version()) for t in self.tensors()]

    def run(self, tangents: dict[int, Any]) -> None:
        enabled = GRAD.get()[0]
        if enabled & self.off:
            return recording(enabled & ~self.off, self.run, tangents)
        given = [_looked_up(g, tangents) for g in self.given]
        if all(g is None or (g.__class__ is tuple and all(t is None for t in g)) for g in given):
            return None
        if self.args is None:
            found: Sequence[Any] = [self.compute(*given)]
        else:
            for tensor, version in self.versions:
                if tensor.version() != version:
                    raise AliasError(errors.forward.changed(tensor))
            found = self.compute(given, self.result, *self.args)
            found = for_each(self.compute, found, outputs_of(self.result))
        for number, tangent in zip(self.made, found, strict=True):
            if number is not None:
                tangents[number] = tangent
        return None


def _looked_up(given: Any, tangents: dict[int, Any]) -> Any:
    if given.__class__ is tuple:
        return tuple([_looked_up(each, tangents) for each in given])
    return None if given is None else tangents.get(given)


class DeferredLevel(ForwardLevel):
    """A forward level that notes what to compute."""

    __slots__ = ("_count", "_kept", "_steps")
    is_deferred = True

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._steps: list[Step] = []
        self._kept: set[Any] = set()  # gradient levels of what was noted: while they live, no other level has their bits

    def number(self) -> int:
        """The number of one more tangent."""
        self._count += 1
        return self._count

    def defer(self, compute: Callable[..., Any], given: Sequence[Any], result: Any, args: Sequence[Any], one: bool) -> Any:
        """Note a rule; the numbers of the tangents that it will make."""
        outputs = outputs_of(result)
        made = [self.number() if t.dtype.category >= FLOAT else None for t in outputs]
        step = Step(compute, given, made, result, args)
        self._steps.append(step)
        for tensor in step.tensors():
            self._kept.update(level for bit, level in LIVE.items() if tensor.gmask & bit)
        return made[0] if one else made

    def compute(self, function: Callable[..., Any], *tangents: Any) -> Any:
        made = self.number()
        self._steps.append(Step(function, tangents, [made], None, None))
        return made

    def protect(self, targets: Sequence[Tensor]) -> None:
        """Before a write: keep copies of the values that something noted needs."""
        # differs from torch: `turnout.func.linearize` of a function that writes into its argument gives the derivative. PyTorch
        # computes with what was written.
        copies: dict[int, Tensor] = {}
        for step in self._steps:
            shared = [t for t in step.tensors() if any(t.shares_memory_with(target) for target in targets)]
            for tensor in shared:
                if id(tensor) not in copies:
                    copies[id(tensor)] = at_levels(self.outside(), _clone, tensor)
            if shared:
                step.replace(copies)

    def push(self, numbers: Sequence[Any], given: Sequence[Tensor], wanted: Sequence[Any]) -> list[Any]:
        """The tangents of some numbers for those of others, None for zero."""
        tangents = dict(zip(numbers, given, strict=True))
        for step in self._steps:
            step.run(tangents)
        return [None if number is None else tangents.get(number) for number in wanted]
