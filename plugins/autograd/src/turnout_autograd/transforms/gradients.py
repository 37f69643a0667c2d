"""`turnout.func.grad` and `grad_and_value`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.dtypes import FLOAT
from turnout.operators.tracebacks import shortening_as
from turnout.registry import find_operator
from turnout_aten import trees
from turnout_autograd import errors
from turnout_autograd.transforms.arguments import picked, select_arguments
from turnout_autograd.transforms.linearized import Linearized

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    from turnout_autograd.transforms.arguments import Argnums, Function

    P = ParamSpec("P")

_ones_like = find_operator("aten::ones_like").stub


def grad(func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """Return a function that gives the gradient of `func`, which must return one number, with respect to some of its arguments.

    The gradient can be differentiated again. Raises GradientError for a result that is not one floating-point number, and for
    arguments that are not floating-point or complex.

    Arguments:
        func: the function
        argnums: which positional arguments; negative ones count from the end, and a tuple gives a tuple of
            gradients
        has_aux: whether `func` returns (number, anything); the gradient comes with that: (gradient, anything)

    Example:
        >>> turnout.func.grad(lambda x: x * x)(turnout.tensor(3.0))
        tensor(6.)
    """
    both = _with_value("grad", func, argnums, has_aux)

    @shortening_as(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """As `grad`, with what `func` returned: (gradient, value), or (gradient, (value, anything)) with `has_aux`.

    Arguments:
        func: the function
        argnums: which positional arguments
        has_aux: whether `func` returns (number, anything)

    Example:
        >>> turnout.func.grad_and_value(lambda x: x * x)(turnout.tensor(3.0))
        (tensor(6.), tensor(9.))
    """
    return shortening_as(func)(_with_value("grad_and_value", func, argnums, has_aux))


def _with_value(name: str, func: Function, argnums: Argnums, has_aux: bool) -> Function:
    """`grad_and_value`; `name` is the transform that messages name."""
    plugins.service("Autograd")  # raises where autograd is disabled

    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        chosen, function = select_arguments(name, func, argnums, args, kwargs)
        run = Linearized(name, function, chosen, has_aux)
        if run.structure is not trees.LEAF or run.outputs[0].shape != ():
            raise errors.GradientError(errors.transforms.not_one_number(name, run.outputs, run.structure is trees.LEAF))
        output = run.outputs[0]
        if output.dtype.category != FLOAT:
            # differs from torch: `turnout.func.grad` of a function that returns an integer or a bool is an error. PyTorch gives
            # zeros.
            raise errors.GradientError(errors.transforms.not_floating(name, output))
        found = picked(argnums, trees.unflatten(run.inputs, run.pull([_ones_like(output.detach())])))
        return found, (output, run.aux) if has_aux else output

    return gradient_and_value
