"""One run of a function of tensors, and the gradients that are taken of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnout.registry import find_operator
from turnout_aten.tensor.grad_mode import enable_grad
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.recorded_levels import recording
from turnout_autograd.functional.arguments import RESULTS, as_tuple, ones_like
from turnout_autograd.transforms.linearized import Linearized

if TYPE_CHECKING:
    from turnout_autograd.functional.arguments import Function

zeros_like = find_operator("aten::zeros_like").stub


class Run(Linearized):
    """A linearized function of tensors that returns a tensor or a tuple of them; `several` says which.

    constant  the text of the strict error for a result that does not depend on the inputs
    """

    def __init__(
        self, name: str, func: Function, inputs: Sequence[Tensor], create_graph: bool, strict: bool,
        constant: Callable[[str, int], str] = errors.transforms.strict_result, has_aux: bool = False,
    ) -> None:  # fmt: skip
        self.create_graph, self.strict = create_graph, strict
        self.several = False

        def called(*xs: Tensor) -> Any:
            result = func(*xs)
            value, aux = result if has_aux else (result, None)
            self.several, results = as_tuple(name, RESULTS, value)
            return (results, aux) if has_aux else results

        self.in_mode(super().__init__, name, called, inputs, has_aux)
        for i in range(len(self.outputs) if strict else 0):
            if not self.depends(i):
                raise errors.GradientError(constant(name, i))

    def in_mode(self, run: Callable[..., Any], *args: Any) -> Any:
        """`run(*args)` where imperative autograd records, or does not; functional levels around record as they did."""
        enabled, allowed = GRAD.get()
        return recording(allowed if self.create_graph else enabled & ~1, run, *args)

    def gradients(self, cotangents: Sequence[Tensor | None]) -> list[Tensor]:
        """The gradients of the inputs; strictly, an error instead of zeros."""

        def pulled() -> list[Tensor]:
            found = self.reached(cotangents)
            for i, gradient in enumerate(found if self.strict else ()):
                if gradient is None:
                    raise errors.GradientError(errors.transforms.strict_input(self.name, i))
            return [zeros_like(x) if g is None else g for x, g in zip(self.primals, found, strict=True)]

        return self.in_mode(pulled)


def gradient_of(name: str, func: Function, strict: bool, with_value: bool = False) -> Function:
    """The gradients of a function that returns one number; and the number, where it is asked for."""

    def gradient(*xs: Tensor) -> Any:
        run = Run(name, func, xs, True, strict)
        if run.several or run.outputs[0].numel() != 1:
            raise errors.GradientError(errors.transforms.one_element(name, run.outputs))
        found = tuple(run.gradients([ones_like(run.outputs[0].detach())]))
        return (found, run.outputs[0]) if with_value else found

    return gradient


def computed(name: str, derivative: Function, inputs: Sequence[Tensor], strictly: bool) -> tuple[Any, Any]:
    """What `derivative` gives for the inputs: (derivatives, values). Strictly, all derivatives must depend on the inputs."""
    if not strictly:
        return derivative(*inputs)
    with enable_grad():
        run = Linearized(name, derivative, inputs, True)
    for i in range(len(run.outputs)):
        if not run.depends(i):
            raise errors.GradientError(errors.transforms.strict_graph(name, i % len(inputs)))
    return run.result, run.aux
