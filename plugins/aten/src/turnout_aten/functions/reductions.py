"""Reductions and searches that are written in Python, as in PyTorch: `norm`, `unique`, `nonzero`, `cdist`.

Their arguments choose the operator, or how many results there are. `ReductionMethods` holds those that are also methods; it comes
before the generated methods with the same names.
"""

from __future__ import annotations

from turnout.errors import ArgumentError
from turnout.operators.tracebacks import shorten, shortening
from turnout.registry import find_operator
from turnout_aten.errors import arguments as texts
from turnout_aten.generated import functions as _functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, SupportsComplex, SupportsFloat, SupportsIndex

    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor

    Number = complex | SupportsComplex | SupportsFloat | SupportsIndex
    MaybeMore = Any  # several tensors in a tuple, where an argument asks for it

COMPUTE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2,
}  # fmt: skip


def norm(
    input: Tensor,
    p: Number | str | Tensor | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | type | None = None,
) -> Tensor:
    """The p-norm over some dims; None means all dims.

    "fro" is the 2-norm of all these elements, "nuc" the sum of the singular values of the matrices in two dims. Raises
    ArgumentError for any other string.

    Arguments:
        input: a tensor
        p: the order of the norm
        dim: the dim, or the dims
        keepdim: whether a reduced dim stays, with length 1
        out: the tensor that the result is written into
        dtype: the dtype to which the elements are converted first

    Example:
        >>> turnout.norm(turnout.tensor([3.0, 4.0]))
        tensor(5.)
    """
    try:
        from turnout_aten import linalg

        given = {} if out is None else {"out": out}
        if not isinstance(p, str) or p == "fro":
            order = 2 if p is None or isinstance(p, str) else p
            return linalg.vector_norm(input, order, dim, keepdim, dtype=dtype, **given)
        if p != "nuc":
            raise ArgumentError(f"norm: p must be a number, 'fro' or 'nuc', got {p!r}")
        dims = (-2, -1) if dim is None else (dim,) if isinstance(dim, int) else dim
        return linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype, **given)
    except Exception as error:
        shorten(error)
        raise


@shortening
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | MaybeMore:
    """The distinct elements, or the distinct slices along `dim`. They are always sorted; `sorted` has no effect.

    With `return_inverse` or `return_counts`, returns a tuple that also holds the index of each element among them, or how often
    each occurs.

    Arguments:
        input: a tensor
        sorted: without effect
        return_inverse: whether to return the index of each element in the result
        return_counts: whether to return how often each element occurs
        dim: the dim along which slices are compared; None compares elements

    Example:
        >>> turnout.unique(turnout.tensor([3, 1, 3]))
        tensor([1, 3])
    """
    if dim is None:
        found = find_operator("aten::_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = _functions.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _asked(found, return_inverse, return_counts)


@shortening
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | MaybeMore:
    """`unique` that compares only neighbours: the first of each run of equal elements.

    Arguments:
        input: a tensor
        return_inverse: whether to return the index of each element in the result
        return_counts: whether to return the length of each run
        dim: the dim along which slices are compared; None compares elements

    Example:
        >>> turnout.unique_consecutive(turnout.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    found = _functions.unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked(found, return_inverse, return_counts)


def _asked(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    if not (return_inverse or return_counts):
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


@shortening
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Tensor | MaybeMore:
    """The indices of the nonzero elements, one per row. With `as_tuple`: one index tensor per dim.

    Arguments:
        input: a tensor
        out: the tensor that the result is written into
        as_tuple: whether one vector per dim is returned

    Example:
        >>> turnout.nonzero(turnout.tensor([0, 3, 4]))
        tensor([[1],
                [2]])
    """
    if not as_tuple:
        return _functions.nonzero(input) if out is None else _functions.nonzero(input, out=out)
    if out is not None:
        raise ArgumentError("nonzero: with as_tuple=True there are several results, which cannot be written into 'out'")
    return tuple(_functions.nonzero_numpy(input))


@shortening
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-distance of every row of x1 [..., P, M] to every row of x2 [..., R, M]: [..., P, R].

    `compute_mode` is one of three strings and affects only rounding. Raises ArgumentError for any other value.

    Arguments:
        x1: the first points
        x2: the second points
        p: the order of the norm
        compute_mode: how Euclidean distances are computed

    Example:
        >>> turnout.cdist(turnout.tensor([[0.0, 0.0]]), turnout.tensor([[3.0, 4.0]]))
        tensor([[5.]])
    """
    if compute_mode not in COMPUTE_MODES:
        raise ArgumentError(texts.not_one_of("cdist", "compute_mode", COMPUTE_MODES, compute_mode))
    return _functions.cdist(x1, x2, p, COMPUTE_MODES[compute_mode])


class ReductionMethods:
    """The functions of this module that are also methods of tensors."""

    __slots__ = ()

    norm = norm
    nonzero = nonzero
    unique = unique
    unique_consecutive = unique_consecutive
