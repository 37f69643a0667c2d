"""Linear algebra that is written in Python, as in PyTorch: `einsum`, `tensordot`, `trace`, `lu`, low-rank approximations.

These functions sort out their arguments and then call operators.
"""

from __future__ import annotations

from turnout import plugins
from turnout.errors import ArgumentError, ShapeError
from turnout.operators.tracebacks import shorten, shortening
from turnout_aten import operators as _operators
from turnout_aten.errors import arguments as texts
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ParamSpec, overload

    P = ParamSpec("P")

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(*args: Any) -> Tensor:
    """The sum of products that an equation describes.

    Either einsum("ij,jk->ik", x, y), where the operands may be one list; or each operand followed by the list of its labels
    (numbers from 0 to 51, and Ellipsis): einsum(x, [0, 1], y, [1, 2], [0, 2]). Raises ShapeError for an equation that does not
    fit the operands, ArgumentError for an invalid label.

    Arguments:
        args: the equation and the operands

    Example:
        >>> turnout.einsum("ij,j->i", turnout.tensor([[1, 2], [3, 4]]), turnout.tensor([1, 1]))
        tensor([3, 7])
    """
    try:
        if len(args) < 2:
            raise ArgumentError("einsum: needs an equation and an operand, or an operand and its labels")
        if isinstance(args[0], str):
            equation, operands = args[0], args[1:]
            if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
                operands = tuple(operands[0])
        else:
            operands = args[0 : len(args) // 2 * 2 : 2]
            equation = ",".join(_written(labels) for labels in args[1 : len(args) // 2 * 2 : 2])
            if len(args) % 2:
                equation += "->" + _written(args[-1])
        return _operators.einsum(equation, list(operands))
    except Exception as error:
        shorten(error)
        raise


def _written(labels: Sequence[Any]) -> str:
    for label in labels:
        if label is not Ellipsis and not (isinstance(label, int) and 0 <= label < len(_LETTERS)):
            raise ArgumentError(f"einsum: labels are Ellipsis and numbers from 0 to {len(_LETTERS) - 1}, got {label!r}")
    return "".join("..." if label is Ellipsis else _LETTERS[label] for label in labels)


@shortening
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """The sum of products over dims of both tensors.

    Raises ArgumentError if the number of dims is negative or too large, ShapeError for lengths that differ.

    Arguments:
        a: the first tensor
        b: the second tensor
        dims: a number n: the last n dims of `a` and the first n of `b`; or two lists: dims of `a`, dims of `b`
        out: the tensor that the result is written into

    Example:
        >>> turnout.tensordot(turnout.tensor([[1, 2]]), turnout.tensor([[3], [4]]), 1)
        tensor([[11]])
    """
    if hasattr(dims, "tolist"):
        dims = dims.tolist()
        dims = dims[0] if isinstance(dims, list) and len(dims) == 1 else dims
    left: Sequence[int]
    right: Sequence[int]
    if isinstance(dims, (list, tuple)) and len(dims) == 2:
        left, right = ([d] if isinstance(d, int) else d for d in dims)
    else:
        if not isinstance(dims, int) or not 0 <= dims <= min(a.ndim, b.ndim):
            shapes = f"{list(a.shape)} and {list(b.shape)}"
            raise ArgumentError(
                f"tensordot: dims must be two lists, or a number of dimensions that both shapes {shapes} have, got {dims!r}"
            )
        left, right = range(a.ndim - dims, a.ndim), range(dims)
    if out is None:
        return _operators.tensordot(a, b, list(left), list(right))
    return _operators.tensordot__out(a, b, list(left), list(right), out=out)


if TYPE_CHECKING:

    @overload
    def trace(input: Tensor) -> Tensor: ...

    @overload
    def trace(input: Callable[P, Any], *, replay: str = "") -> Callable[P, Any]: ...


@shortening
def trace(input: Any, **options: Any) -> Any:
    """The sum of the diagonal of a matrix; of a function, what records the graph of its operators: `turnout.graphs.trace`.

    Raises PluginError for a function where no plugin records graphs.

    Arguments:
        input: a matrix or a function
        options: those of `turnout.graphs.trace`

    Example:
        >>> turnout.trace(turnout.tensor([[1, 2], [3, 4]]))
        tensor(5)
        >>> turnout.trace(lambda x: x + 1)(turnout.tensor([1]))(turnout.tensor([2]))
        tensor([3])
    """
    if isinstance(input, Tensor):
        return _operators.trace(input, **options)
    return plugins.service("Tracer").trace(input, **options)


@shortening
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the cheapest order.

    Arguments:
        matrices: the matrices
        out: the tensor that the result is written into

    Example:
        >>> turnout.chain_matmul(turnout.ones(1, 2), turnout.ones(2, 3), turnout.ones(3, 1))
        tensor([[6.]])
    """
    if out is None:
        return _operators.chain_matmul(list(matrices))
    return _operators.chain_matmul__out(list(matrices), out=out)


@shortening
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """(LU, pivots), or (LU, pivots, info) with `get_infos`. `info` is the index of a zero pivot, from 1; 0 means success.

    Without `get_infos`, raises LinAlgError for a singular matrix.

    Arguments:
        A: the matrices
        pivot: whether rows are exchanged for stability
        get_infos: whether `info` is returned, instead of an error for a singular matrix
        out: the tensors that the results are written into

    Example:
        >>> turnout.lu(turnout.tensor([[1.0, 2.0], [3.0, 4.0]]))[1]
        tensor([2, 2], dtype=turnout.int32)
    """
    found: tuple[Tensor, ...] = _operators._lu_with_info(A, pivot, not get_infos)
    found = found if get_infos else found[:2]
    if out is not None:
        if len(out) != len(found):
            raise ArgumentError(f"lu: out must hold {len(found)} tensors, got {len(out)}")
        for target, value in zip(out, found, strict=True):
            target.resize_(value.shape)
            target.copy_(value)
        return tuple(out)
    return found


# ---- low-rank approximations


@shortening
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with U diag(S) V^H close to A - M. `q` should be slightly larger than the rank. The result is random.

    `niter` rounds of products with random vectors find the range of A.
    Source: Halko, Martinsson, Tropp, "Finding structure with randomness" (2009), algorithm 5.1.

    Arguments:
        A: the matrices
        q: the number of singular values
        niter: the number of rounds
        M: what is subtracted from A

    Example:
        >>> turnout.svd_lowrank(turnout.eye(3), 2)[1].shape
        turnout.Size([2])
    """
    count = 6 if q is None else q
    if A.ndim < 2:
        raise ShapeError(f"svd_lowrank: expected matrices, got shape {list(A.shape)}")
    if count < 0:
        raise ArgumentError(texts.negative("svd_lowrank", "q", q))
    rows, columns = A.shape[-2:]
    away = A if M is None else A - M.expand(A.shape)
    wide = rows < columns
    tall = _adjoint(away) if wide else away
    basis = _range(tall, count, 2 if niter is None else niter)
    U, S, Vh = _operators.linalg_svd(_adjoint(basis).matmul(tall), False)
    left, right = basis.matmul(U), _adjoint(Vh)
    return (right, S, left) if wide else (left, S, right)


@shortening
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """svd_lowrank of A. `center` subtracts the mean of the rows first. `q` defaults to min(6, rows, columns).

    Arguments:
        A: the matrices, rows being observations
        q: the number of components
        center: whether the mean of the rows is subtracted
        niter: the number of rounds

    Example:
        >>> turnout.pca_lowrank(turnout.eye(3), 2)[1].shape
        turnout.Size([2])
    """
    if A.ndim < 2:
        raise ShapeError(f"pca_lowrank: expected matrices, got shape {list(A.shape)}")
    rows, columns = A.shape[-2:]
    count = min(6, rows, columns) if q is None else q
    if not 0 <= count <= min(rows, columns):
        raise ArgumentError(f"pca_lowrank: q must lie between 0 and {min(rows, columns)}, got {q}")
    if niter < 0:
        raise ArgumentError(texts.negative("pca_lowrank", "niter", niter))
    return svd_lowrank(A - A.mean((-2,), True) if center else A, count, niter)


def _adjoint(x: Tensor) -> Tensor:
    turned: Tensor = x.transpose(-2, -1)
    return turned.conj() if x.dtype.is_complex else turned


def _range(A: Tensor, count: int, rounds: int) -> Tensor:
    """Orthonormal columns that span approximately the column space of A."""
    shape = (A.shape[-1], count)
    start = _operators.randn(shape, dtype=A.dtype.to_real(), device=A.device)
    start = start.to(A.dtype) if A.dtype.is_complex else start
    basis: Tensor = _operators.linalg_qr(A.matmul(start))[0]
    for _ in range(rounds):
        other = _operators.linalg_qr(_adjoint(A).matmul(basis))[0]
        basis = _operators.linalg_qr(A.matmul(other))[0]
    return basis
