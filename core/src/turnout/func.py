"""Functions of functions: `vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`. They nest in any order.

What they do is the plugins' that provide the functionalities Batched and Autograd, activated on first use. Arguments and results
may be nested tuples, lists and dicts of tensors, and what `turnout.trees.register` adds to these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = Callable[..., Any]
    Argnums = int | Sequence[int]


def _service(functionality: str) -> Any:
    from turnout import plugins
    from turnout.registry import REGISTRY

    found = REGISTRY.services.get(functionality)
    if found is None or REGISTRY.is_disabled(functionality, functionality):
        with REGISTRY.lock:  # the plugin cannot be deactivated between the two
            plugins.require_functionality(functionality)
            found = REGISTRY.services[functionality]
    return found


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """A function that does for a batch what `func` does for one example.

    in_dims     which dim of each argument is the batch, None for arguments that all examples share; an int or None for all
                arguments, or a tuple with one entry for each, which may be nested as the argument is
    out_dims    where the batch dim goes in each result, in the same way; None for a result that is the same for all
    randomness  "error" refuses random operators, "same" draws once for all examples, "different" for each
    chunk_size  how many examples at a time; None for all at once

    Keyword arguments are passed on as they are. Raises VmapArgumentError for dims that do not fit the arguments, and
    VmapError for what a batch cannot do: `item()`, Python conditions on values, writing an example's values into a tensor
    that all share.
    """
    made: Function = _service("Batched").vmap(func, in_dims, out_dims, randomness, chunk_size)
    return made


def loop_counts() -> dict[str, int]:
    """How many calls inside vmap ran once per example, because their operator has no batching rule; by operator."""
    counts: dict[str, int] = _service("Batched").loop_counts()
    return counts


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `func`, which returns one number, with respect to some of its arguments.

    argnums  which positional arguments, counted from the end where negative; a tuple gives a tuple of gradients
    has_aux  `func` returns (number, anything), and the gradient comes with that: (gradient, anything)

    The gradient can be differentiated again. Raises GradientError for a result that is not one floating-point number, and for
    arguments that are not floating-point or complex.
    """
    made: Function = _service("Autograd").transforms.grad(func, argnums, has_aux)
    return made


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As `grad`, with what `func` returned: (gradient, value), or (gradient, (value, anything)) with `has_aux`."""
    made: Function = _service("Autograd").transforms.grad_and_value(func, argnums, has_aux)
    return made


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), pullback), and what else `func` returned with `has_aux`.

    `pullback(cotangents, retain_graph=True, create_graph=None)` takes cotangents in the structure of the result and returns a
    tuple of gradients, one for each primal. It may be called several times, unless with `retain_graph=False`, and inside of
    another transform; not after a vmap that `vjp` was called in. Outer levels record the gradients where they record at all, or
    as `create_graph` says.

    # differs from torch: for levels that do not record when `vjp` is called (inside `no_grad`), the primals are constants in what
    # the pullback gives later; a history without the calls in between would give wrong second derivatives.
    """
    return _service("Autograd").transforms.vjp(func, *primals, has_aux=has_aux)


def jvp(
    func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> Any:
    """(func(*primals), its derivative along the tangents), and what else `func` returned with `has_aux`.

    strict  an error where a result does not depend on the primals, instead of a derivative of zeros

    # differs from torch: what is computed inside `no_grad` is a constant for tangents too, as it is for gradients.
    """
    return _service("Autograd").transforms.jvp(func, primals, tangents, strict=strict, has_aux=has_aux)


def linearize(func: Function, *primals: Any) -> Any:
    """(func(*primals), the linear function of tangents that `jvp` would compute); `func` runs once."""
    return _service("Autograd").transforms.linearize(func, *primals)


def jacrev(func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """A function that gives the Jacobian, row by row of the result: shape of the result, then shape of the argument.

    Raises GradientError for complex numbers: the Jacobian is that of `view_as_real` of them. `chunk_size` is how many rows are
    computed at a time; with 1 the backward pass runs without vmap, so that it may read values.
    """
    made: Function = _service("Autograd").transforms.jacrev(func, argnums, has_aux, chunk_size)
    return made


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """The same column by column of the argument: for functions with more results than arguments.

    # differs from torch: `func` runs once, outside of vmap, so that its own random numbers are those of all columns.
    """
    made: Function = _service("Autograd").transforms.jacfwd(func, argnums, has_aux, randomness)
    return made


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that gives the second derivatives of a function that returns one number: `jacfwd(jacrev(func))`."""
    made: Function = _service("Autograd").transforms.hessian(func, argnums)
    return made


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "loop_counts", "vjp", "vmap"]
