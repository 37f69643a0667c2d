"""`turnout.func.jacrev`, `jacfwd` and `hessian`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.dtypes import COMPLEX
from turnout.operators.tracebacks import shortening_as
from turnout.registry import find_operator
from turnout_aten import trees
from turnout_aten.counts import check_count
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.transforms.arguments import picked, select_arguments
from turnout_autograd.transforms.dual_runs import DualRun, by_columns, columns
from turnout_autograd.transforms.linearized import Linearized, check_outputs
from turnout_autograd.transforms.results import check_returned

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    from turnout_autograd.transforms.arguments import Argnums, Function

    P = ParamSpec("P")

_ones_like = find_operator("aten::ones_like").stub
_stack = find_operator("aten::stack").stub


def jacrev(
    func: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, Any]:
    """Return a function that gives the Jacobian, one row of the result at a time: shape of the result, then of the argument.

    Raises GradientError for complex numbers: the Jacobian is that of `view_as_real` of them. `chunk_size` is how many rows are
    computed at a time; with 1 the backward pass runs without vmap, so that it may read values.

    Arguments:
        func: the function
        argnums: which positional arguments, one or a tuple
        has_aux: whether `func` returns (result, anything)
        chunk_size: how many rows are computed at a time; None for all

    Example:
        >>> turnout.func.jacrev(lambda x: x * x)(turnout.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    return _by_rows("jacrev", func, argnums, has_aux, chunk_size)


def jacfwd(func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[P, Any]:
    """As `jacrev`, one column of the argument at a time: for functions with more results than arguments.

    # differs from torch: `turnout.func.jacfwd` runs `func` once, outside of vmap, so all columns have the same random numbers.

    Arguments:
        func: the function
        argnums: which positional arguments, one or a tuple
        has_aux: whether `func` returns (result, anything)
        randomness: what random operators do; see `turnout.vmap`

    Example:
        >>> turnout.func.jacfwd(lambda x: x * x)(turnout.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    return _by_columns("jacfwd", func, argnums, has_aux, randomness)


def hessian(func: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """Return a function that gives the second derivatives of a function that returns one number: `jacfwd(jacrev(func))`.

    Arguments:
        func: the function
        argnums: which positional arguments, one or a tuple

    Example:
        >>> turnout.func.hessian(lambda x: (x * x * x).sum())(turnout.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    rows = _by_rows("hessian", func, argnums, False, None)
    return _by_columns("hessian", rows, argnums, False, "error")


def _by_rows(name: str, func: Function, argnums: Argnums, has_aux: bool, chunk_size: int | None) -> Function:
    plugins.service("Autograd")  # raises where autograd is disabled
    check_count(name, "chunk_size", chunk_size, or_none=True)

    @shortening_as(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen, function = select_arguments(name, func, argnums, args, kwargs)
        run = Linearized(name, function, chosen, has_aux)
        check_outputs(run)
        check_real(run)
        rows = []
        for i, output in enumerate(run.outputs):
            if output.numel() == 1:  # the Jacobian is a gradient: half the time of a vmap over one row
                found: Sequence[Tensor] = _pull_of(run, i)(_ones_like(output.detach()))
                shaped = [g.reshape(output.shape + g.shape) if output.shape else g for g in found]
            else:
                found = mapped(_pull_of(run, i), basis(output), chunk_size)
                shaped = [g.reshape(output.shape + g.shape[1:]) for g in found]
            rows.append(picked(argnums, trees.unflatten(run.inputs, shaped)))
        made = trees.unflatten(run.structure, rows)
        return (made, run.aux) if has_aux else made

    return jacobian


def mapped(pull: Function, seeds: Tensor, chunk_size: int | None) -> Sequence[Tensor]:
    """What `pull` gives for each seed; one by one without vmap, which cannot do whatever a backward does."""
    if chunk_size != 1 or not seeds.shape[0]:
        return tuple(plugins.service("Batched").vmap(pull, chunk_size=chunk_size)(seeds))
    return [_stack(list(column)) for column in zip(*map(pull, seeds), strict=True)]


def check_real(run: Linearized, arguments: bool = True) -> None:
    """The gradients of complex results are the conjugates of their derivatives, so the Jacobian is not unique."""
    if arguments:
        refuse_complex(run.name, "an argument", run.primals)
    refuse_complex(run.name, "a result", run.outputs)


def refuse_complex(name: str, what: str, tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if tensor.dtype.category == COMPLEX:
            raise errors.GradientError(errors.transforms.complex_jacobian(name, what, tensor))


def _pull_of(run: Linearized, i: int) -> Function:
    def pull_one(cotangent: Tensor) -> tuple[Tensor, ...]:
        return tuple(run.pull([cotangent if j == i else None for j in range(len(run.outputs))]))

    return pull_one


def basis(tensor: Tensor) -> Tensor:
    """All tensors of this shape that are 1 at one place: [number of elements, shape]."""
    count = tensor.numel()
    made = tensor.new_zeros((count, count))
    if count:
        made.diagonal().fill_(1)
    return made.reshape((count, *tensor.shape))


def _by_columns(name: str, func: Function, argnums: Argnums, has_aux: bool, randomness: str) -> Function:
    plugins.service("Autograd")  # raises where autograd is disabled

    @shortening_as(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen, function = select_arguments(name, func, argnums, args, kwargs)
        run, rows = columns_of(name, function, chosen, has_aux, randomness)
        check_returned(name, run.outputs)
        made = trees.unflatten(run.structure, [picked(argnums, trees.unflatten(run.inputs, row)) for row in rows])
        return (made, run.aux) if has_aux else made

    return jacobian


def columns_of(
    name: str, function: Function, chosen: Sequence[Any], has_aux: bool, randomness: str = "error"
) -> tuple[DualRun, list[list[Tensor]]]:
    """A run of a function, and for each result its Jacobians with respect to the arguments, all columns at once."""
    primals = trees.flatten(tuple(chosen))[0]
    level, tangents = columns(name, primals, randomness)
    refuse_complex(name, "an argument", primals)
    run = DualRun(name, function, chosen, level, tangents, has_aux)
    refuse_complex(name, "a result", run.outputs)
    rows = []
    for i, output in enumerate(run.outputs):
        found = by_columns(run, i)
        row, start = [], 0
        for primal in primals:
            count = primal.numel()
            part = found if len(primals) == 1 else found.narrow(-1, start, count)
            row.append(part.reshape((*output.shape, *primal.shape)))
            start += count
        rows.append(row)
    return run, rows
