"""Reductions and searches whose arguments choose among operators, or how much is returned: `norm`, `unique`, `nonzero`, `cdist`.

PyTorch writes these in Python too. `ReductionMethods` holds those that are methods, before the generated ones of these names.
"""

from __future__ import annotations

from turnout.errors import ArgumentError
from turnout.registry import find_operator
from turnout_aten.generated import functions as _functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor

    MaybeMore = Any  # several tensors in a tuple, where an argument asks for it

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2,
}  # fmt: skip


def norm(
    input: Tensor,
    p: complex | str | Tensor | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | type | None = None,
) -> Tensor:
    """The p-norm over some dims, all of them for None.

    "fro" is the 2-norm of all those elements, "nuc" the sum of the singular values of the matrices in two dims. Raises
    ArgumentError for another word.
    """
    from turnout_aten import linalg

    given = {} if out is None else {"out": out}
    if not isinstance(p, str) or p == "fro":
        order = 2 if p is None or isinstance(p, str) else p
        found: Tensor = linalg.vector_norm(input, order, dim, keepdim, dtype=dtype, **given)
        return found
    if p != "nuc":
        raise ArgumentError(f"norm: p must be a number, 'fro' or 'nuc', got {p!r}")
    dims = (-2, -1) if dim is None else (dim,) if isinstance(dim, int) else dim
    return linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype, **given)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | MaybeMore:
    """The distinct elements, or slices along `dim`, in order whatever `sorted` says.

    Returns them, or a tuple of them, the place of each element among them (`return_inverse`), and how often each occurs
    (`return_counts`).
    """
    if dim is None:
        found = find_operator("aten::_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = _functions.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _asked(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | MaybeMore:
    """The same, where only neighbours are compared: the first of each run of equal elements."""
    found = _functions.unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked(found, return_inverse, return_counts)


def _asked(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    if not (return_inverse or return_counts):
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Tensor | MaybeMore:
    """The indices of the elements that are not 0, one row each; with `as_tuple` one tensor per dim, to index with."""
    if not as_tuple:
        return _functions.nonzero(input) if out is None else _functions.nonzero(input, out=out)
    return tuple(_functions.nonzero_numpy(input))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-distance of every row of x1 [..., P, M] to every row of x2 [..., R, M]: [..., P, R].

    `compute_mode` is one of three words and changes nothing but rounding. Raises ArgumentError for another one.
    """
    if compute_mode not in _MODES:
        raise ArgumentError(f"cdist: compute_mode must be one of {', '.join(_MODES)}, got {compute_mode!r}")
    found: Tensor = _functions.cdist(x1, x2, p, _MODES[compute_mode])
    return found


class ReductionMethods:
    """Those functions that are methods of tensors too."""

    __slots__ = ()

    norm = norm
    nonzero = nonzero
    unique = unique
    unique_consecutive = unique_consecutive
