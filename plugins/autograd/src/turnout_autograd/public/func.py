"""Functions of functions: `vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`. They nest in any order.

What they do is the plugins' that provide the functionalities Batched and Autograd, activated on first use. Arguments and results
may be nested tuples, lists and dicts of tensors, and what `turnout.trees.register` adds to these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout import plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = Callable[..., Any]
    Argnums = int | Sequence[int]


def __getattr__(name: str) -> Any:
    """`vmap` and `loop_counts`, which the plugin that provides Batched has."""
    if name in ("vmap", "loop_counts"):
        return getattr(plugins.service("Batched"), name)
    raise AttributeError(f"module 'turnout.func' has no attribute {name!r}")


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `func`, which returns one number, with respect to some of its arguments.

    argnums  which positional arguments, counted from the end where negative; a tuple gives a tuple of gradients
    has_aux  `func` returns (number, anything), and the gradient comes with that: (gradient, anything)

    The gradient can be differentiated again. Raises GradientError for a result that is not one floating-point number, and for
    arguments that are not floating-point or complex.
    """
    made: Function = plugins.service("Autograd").transforms.grad(func, argnums, has_aux)
    return made


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As `grad`, with what `func` returned: (gradient, value), or (gradient, (value, anything)) with `has_aux`."""
    made: Function = plugins.service("Autograd").transforms.grad_and_value(func, argnums, has_aux)
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
    return plugins.service("Autograd").transforms.vjp(func, *primals, has_aux=has_aux)


def jvp(
    func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> Any:
    """(func(*primals), its derivative along the tangents), and what else `func` returned with `has_aux`.

    strict  an error where a result does not depend on the primals, instead of a derivative of zeros

    # differs from torch: what is computed inside `no_grad` is a constant for tangents too, as it is for gradients.
    """
    return plugins.service("Autograd").transforms.jvp(func, primals, tangents, strict=strict, has_aux=has_aux)


def linearize(func: Function, *primals: Any) -> Any:
    """(func(*primals), the linear function of tangents that `jvp` would compute); `func` runs once."""
    return plugins.service("Autograd").transforms.linearize(func, *primals)


def jacrev(func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """A function that gives the Jacobian, row by row of the result: shape of the result, then shape of the argument.

    Raises GradientError for complex numbers: the Jacobian is that of `view_as_real` of them. `chunk_size` is how many rows are
    computed at a time; with 1 the backward pass runs without vmap, so that it may read values.
    """
    made: Function = plugins.service("Autograd").transforms.jacrev(func, argnums, has_aux, chunk_size)
    return made


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """The same column by column of the argument: for functions with more results than arguments.

    # differs from torch: `func` runs once, outside of vmap, so that its own random numbers are those of all columns.
    """
    made: Function = plugins.service("Autograd").transforms.jacfwd(func, argnums, has_aux, randomness)
    return made


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that gives the second derivatives of a function that returns one number: `jacfwd(jacrev(func))`."""
    made: Function = plugins.service("Autograd").transforms.hessian(func, argnums)
    return made


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "loop_counts", "vjp", "vmap"]
