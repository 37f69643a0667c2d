"""Products with Jacobians and Hessians under PyTorch's older names; see `derivatives`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.operators.tracebacks import shortening
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.functional.arguments import as_tuple, fitting_vector, like_given, ones_like
from turnout_autograd.functional.runs import Run, computed, gradient_of
from turnout_autograd.transforms.linearized import Pushed

if TYPE_CHECKING:
    from turnout_autograd.functional.arguments import Function


@shortening
def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), the gradients of its results times `v`); `v` is optional for one number."""
    several, given = as_tuple("vjp", "inputs", inputs)

    def derivative(*xs: Tensor) -> tuple[Any, Any]:
        run = Run("vjp", func, xs, create_graph, strict)
        vector = fitting_vector("vjp", v, run.outputs, "the function returns")
        return like_given(several, run.gradients(vector)), like_given(run.several, run.outputs)

    return computed("vjp", derivative, given, create_graph and strict)[::-1]


@shortening
def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), its derivative along `v`); `v` is optional for one input of one number."""
    given = as_tuple("jvp", "inputs", inputs)[1]
    vector = fitting_vector("jvp", v, given, "it takes")

    def derivative(*xs: Tensor) -> tuple[Any, Any]:
        run = Run("jvp", func, xs, create_graph, strict)
        if strict:
            run.gradients([ones_like(t.detach()) for t in run.outputs])
        pushed = run.in_mode(lambda: Pushed(run)(vector))
        return like_given(run.several, pushed), like_given(run.several, run.outputs)

    return computed("jvp", derivative, given, create_graph and strict)[::-1]


@shortening
def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), `v` times the Hessian of a function that returns one number); `v` as for `jvp`."""
    return _with_hessian("vhp", func, inputs, v, create_graph, strict)


@shortening
def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(func(*inputs), the Hessian times `v`): what `vhp` gives, because a Hessian is symmetric."""
    return _with_hessian("hvp", func, inputs, v, create_graph, strict)


def _with_hessian(name: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool) -> Any:
    several, given = as_tuple(name, "inputs", inputs)
    vector = fitting_vector(name, v, given, "it takes")

    def derivative(*xs: Tensor) -> tuple[Any, Any]:
        gradient = gradient_of(name, func, strict, True)
        run = Run(name, gradient, xs, create_graph, strict, errors.transforms.strict_gradient, has_aux=True)
        return like_given(several, run.gradients(vector)), run.aux

    return computed(name, derivative, given, create_graph and strict)[::-1]
