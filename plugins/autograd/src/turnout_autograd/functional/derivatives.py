"""Jacobians and Hessians under PyTorch's older names.

All of `turnout.autograd.functional` are runs of `Linearized`. Inputs are a tensor or a tuple of tensors, and what belongs to them
comes in the same form. With `create_graph` results belong to the graphs of the inputs and of what the function captures, else to
none. That is about imperative autograd: functional transforms around the call record it in any case.

# differs from torch: `turnout.autograd.functional` leaves an input that requires no gradient as it is, so no result requires a
gradient because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.operators.tracebacks import shortening
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.recorded_levels import recording
from turnout_autograd.functional.arguments import FORWARD, RESULTS, REVERSE, as_tuple, check_strategy, like_given
from turnout_autograd.functional.runs import Run, computed, gradient_of
from turnout_autograd.transforms.jacobians import basis, check_real, columns_of, mapped

if TYPE_CHECKING:
    from turnout_autograd.functional.arguments import Function


@shortening
def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = REVERSE,
) -> Any:  # fmt: skip
    """The Jacobian of each result with respect to each input: shape of the result, then shape of the input.

    Of real results alone; with respect to a complex input it holds the gradients. `strategy="forward-mode"` wants real inputs.

    strict     an error instead of zeros where a result does not depend on an input; with `create_graph` also where a Jacobian
               does not
    vectorize  all rows at once by `vmap`, not one after the other
    strategy   "forward-mode" computes columns, for functions of few inputs; only with `vectorize`, and without the other two
    """
    check_strategy("jacobian", strategy, create_graph, strict, vectorize)
    several, given = as_tuple("jacobian", "inputs", inputs)
    if strategy == FORWARD:
        single, rows = _columns("jacobian", func, given)
        return like_given(single, [like_given(several, row) for row in rows])

    def derivative(*xs: Tensor) -> tuple[Any, tuple[()]]:
        run = Run("jacobian", func, xs, create_graph, strict)
        made = [like_given(several, row) for row in run.in_mode(_rows, run, vectorize)]
        return like_given(run.several, made), ()

    return computed("jacobian", derivative, given, create_graph and strict)[0]


@shortening
def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = REVERSE,
) -> Any:  # fmt: skip
    """The second derivatives of a function that returns one number: for each input, with respect to each input."""
    check_strategy("hessian", outer_jacobian_strategy, create_graph, strict, vectorize)
    several, given = as_tuple("hessian", "inputs", inputs)
    if outer_jacobian_strategy == FORWARD:
        _, rows = _columns("hessian", gradient_of("hessian", func, strict), given)
        return like_given(several, [like_given(several, row) for row in rows])

    def derivative(*xs: Tensor) -> tuple[Any, tuple[()]]:
        run = Run("hessian", gradient_of("hessian", func, strict), xs, create_graph, strict, errors.transforms.strict_gradient)
        made = [like_given(several, row) for row in run.in_mode(_rows, run, vectorize)]
        return like_given(several, made), ()

    return computed("hessian", derivative, given, create_graph and strict)[0]


def _rows(run: Run, vectorize: bool) -> list[list[Tensor]]:
    """For each result the Jacobians with respect to the inputs, row by row."""
    made = []
    check_real(run, arguments=False)
    for i, output in enumerate(run.outputs):

        def pulled(cotangent: Tensor, i: int = i) -> tuple[Tensor, ...]:
            return tuple(run.gradients([cotangent if j == i else None for j in range(len(run.outputs))]))

        rows = mapped(pulled, basis(output), None if vectorize else 1)
        made.append([g.reshape((*output.shape, *x.shape)) for g, x in zip(rows, run.primals, strict=True)])
    return made


def _columns(name: str, func: Function, inputs: tuple[Tensor, ...]) -> tuple[bool, list[list[Tensor]]]:
    """The same in forward mode, all columns at once, and whether the function returned a tuple.

    `check_strategy` has refused what it cannot do.
    """
    several: list[bool] = []

    def called(*xs: Tensor) -> tuple[Tensor, ...]:
        of_many, results = as_tuple(name, RESULTS, func(*xs))
        several.append(of_many)
        return results

    rows = recording(GRAD.get()[0] & ~1, columns_of, name, called, inputs, False)[1]
    return several[0], rows
