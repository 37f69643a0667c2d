"""`turnout.func.vjp`, `jvp` and `linearize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.operators.tracebacks import shortening
from turnout_aten import trees
from turnout_aten.tensor.grad_mode import enable_grad, no_grad
from turnout_aten.tensor.levels import GRAD, LEVELS, lower
from turnout_autograd import errors
from turnout_autograd.duals.levels import ForwardLevel
from turnout_autograd.transforms.arguments import check_tensor, fitting
from turnout_autograd.transforms.deferred import DeferredLevel
from turnout_autograd.transforms.dual_runs import DualRun, lowered
from turnout_autograd.transforms.linearized import Linearized, check_outputs
from turnout_autograd.transforms.results import check_returned

if TYPE_CHECKING:
    from turnout_autograd.transforms.arguments import Function


@shortening
def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), pullback), and what else `func` returned with `has_aux`.

    `pullback(cotangents, retain_graph=True, create_graph=None)` takes cotangents in the structure of the result and returns a
    tuple of gradients, one for each primal. It may be called several times, unless with `retain_graph=False`, and inside of
    another transform; not after a vmap that `vjp` was called in. Outer levels record the gradients where they record at all, or
    as `create_graph` says.

    # differs from torch: where `turnout.func.vjp` is called inside `no_grad`, the primals are constants in what the pullback
    gives later. A history without the calls in between would give wrong second derivatives.

    Arguments:
        func: the function
        primals: the arguments of `func`
        has_aux: whether `func` returns (result, anything)

    Example:
        >>> value, pullback = turnout.func.vjp(lambda x: x * x, turnout.tensor(3.0))
        >>> pullback(turnout.tensor(1.0))
        (tensor(6.),)
    """
    run = Linearized("vjp", func, primals, has_aux)
    check_outputs(run)

    def pullback(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = fitting("vjp", "cotangent", cotangents, run.structure, run.outputs)
        if create_graph is None:
            return trees.unflatten(run.inputs, run.pull(given, retain_graph))
        with enable_grad() if create_graph else no_grad():
            return trees.unflatten(run.inputs, run.pull(given, retain_graph))

    return (run.result, pullback, run.aux) if has_aux else (run.result, pullback)


@shortening
def jvp(
    func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> Any:
    """(func(*primals), its derivative along the tangents), and what else `func` returned with `has_aux`.

    `func` runs once, and may write in place, into its arguments too. `no_grad` in it does not stop tangents, `detach` does.

    Arguments:
        func: the function
        primals: the arguments of `func`
        tangents: the direction, a tensor for each primal
        strict: whether it is an error if a result does not depend on the primals, instead of a derivative of zeros
        has_aux: whether `func` returns (result, anything)

    Example:
        >>> turnout.func.jvp(lambda x: x * x, (turnout.tensor(3.0),), (turnout.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise errors.GradientError(errors.transforms.not_tuples("jvp"))
    leaves, structure = trees.flatten(tuple(primals))
    if not leaves:
        raise errors.GradientError(errors.transforms.no_primals("jvp"))
    given = fitting("jvp", "tangent", tuple(tangents), structure, [check_tensor("jvp", "an argument", t) for t in leaves])
    plugins.service("Autograd")  # raises where autograd is disabled
    level = ForwardLevel(recorded=GRAD.get()[1])
    # differs from torch: `turnout.func.jvp` of a function that writes in place does not write into the tangents that it is given.
    run = DualRun("jvp", func, primals, level, [lowered(level.vmaps, p, t) for p, t in zip(leaves, given, strict=True)], has_aux)
    check_returned("jvp", run.outputs)
    if strict and any(t is None for t in run.tangents):
        raise errors.GradientError(errors.transforms.independent("jvp"))
    made = trees.unflatten(run.structure, [run.raised(i, t) for i, t in enumerate(run.tangents)])
    return (run.result, made, run.aux) if has_aux else (run.result, made)


@shortening
def linearize(func: Function, *primals: Any) -> Any:
    """(func(*primals), the linear function of tangents that `jvp` would compute); `func` runs once.

    The linear function may be called several times, and inside of other transforms. It raises AliasError where a tensor that it
    needs, and that the function did not compute of its arguments, was written since.

    Arguments:
        func: the function
        primals: the arguments of `func`

    Example:
        >>> value, linear = turnout.func.linearize(lambda x: x * x, turnout.tensor(3.0))
        >>> linear(turnout.tensor(1.0))
        tensor(6.)
    """
    plugins.service("Autograd")  # raises where autograd is disabled
    level = DeferredLevel()
    numbers = [level.number() for _ in trees.flatten(primals)[0]]
    run = DualRun("linearize", func, primals, level, [(number, level.vmaps) for number in numbers])
    leaves = trees.flatten(primals)[0]

    def push(*tangents: Any) -> Any:
        given = fitting("linearize", "tangent", tangents, run.inputs, leaves)
        if any(vmap not in LEVELS.get() for vmap in level.vmaps):
            raise errors.GradientError(errors.transforms.pulled_outside("linearize"))
        found = level.push(numbers, [lower(t, level.vmaps) for t in given], run.tangents)
        return trees.unflatten(run.structure, [run.raised(i, t) for i, t in enumerate(found)])

    return run.result, push
