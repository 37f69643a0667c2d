"""Decompositions of batches of matrices: those of the array module, and others composed of them.

An array module's `LinAlgError` becomes Turnout's. `info` is as in LAPACK: 0, or the leading minor or pivot that failed, from 1.
"""

from __future__ import annotations

from typing import Any

from turnout.errors import ArgumentError, LinAlgError
from turnout_arrays.numbers import POSTPONING, store
from turnout_aten.tensor.checks import are_postponed, note

Table = dict[str, Any]


def failed(name: str, info: Any, what: str) -> LinAlgError:
    """The error for the first matrix of a batch whose `info` is not 0."""
    flat = info.reshape(-1)
    index = next(i for i, value in enumerate(flat.tolist()) if value)
    where = f" of matrix {index} of the batch" if info.ndim else ""
    return LinAlgError(f"{name}: {what.format(int(flat[index]))}{where}")


def require_finite(xp: Any, name: str, given: Any) -> None:
    """Raise LinAlgError for infinite and NaN elements."""
    if not xp.isfinite(given).all():
        raise LinAlgError(f"{name}: the input has infinite or NaN elements")


def converged(xp: Any, name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of the array module returns. Raises LinAlgError where it does not converge."""
    try:
        return function(*args, **kwargs)
    except xp.linalg.LinAlgError as error:
        raise LinAlgError(f"{name}: the algorithm did not converge; is the input finite?") from error


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""

    def cholesky(self: Any, upper: bool, check_errors: bool, L: Any, info: Any) -> None:
        # Only one triangle is read; the other one may hold any values.
        given = self.conj().swapaxes(-1, -2) if upper else self
        try:
            found = xp.linalg.cholesky(given)
            info[...] = 0
        except xp.linalg.LinAlgError:
            found = partial_cholesky(given, info)
        if check_errors and info.any():
            what = "the input is not positive-definite; see the leading minor of order {}"
            raise failed("linalg.cholesky", info, what)
        store(xp, L, found.conj().swapaxes(-1, -2) if upper else found)

    def partial_cholesky(given: Any, info: Any) -> Any:
        """Factor matrix by matrix. If one is not positive-definite, factor its largest leading block that is."""
        found = xp.zeros_like(given)
        for at in xp.ndindex(*given.shape[:-2]):
            matrix, n = given[at], given.shape[-1]
            info[at] = 0
            for k in range(n, -1, -1):
                try:
                    found[at][:k, :k] = xp.linalg.cholesky(matrix[:k, :k])
                except xp.linalg.LinAlgError:
                    continue
                found[at][k:] = xp.tril(matrix)[k:]
                info[at] = k + 1 if k < n else 0
                break
        return found

    def lu_unpack(LU: Any, pivots: Any, data: bool, permutation: bool, P: Any, L: Any, U: Any) -> None:
        k = min(LU.shape[-2:])
        if data:
            store(xp, L, xp.tril(LU[..., :k], -1) + xp.eye(LU.shape[-2], k, dtype=LU.dtype))
            store(xp, U, xp.triu(LU[..., :k, :]))
        if permutation:
            m = LU.shape[-2]
            wrong = xp.any((pivots < 1) | (pivots > m))
            if xp.__class__ in POSTPONING and are_postponed():
                note(wrong.value())
            elif bool(wrong):
                raise ArgumentError(f"lu_unpack: 'LU_pivots' must lie between 1 and {m}, as those of lu_factor do")
            rows = permuted_rows(pivots, m)
            store(xp, P, xp.arange(m)[:, None] == rows[..., None, :])

    def permuted_rows(pivots: Any, m: int) -> Any:
        """The row of the matrix that each row of L U is. Pivot i is the row with which row i was exchanged in step i."""
        rows = xp.broadcast_to(xp.arange(m), (*pivots.shape[:-1], m)).copy()
        if not rows.size:
            return rows
        for i in range(pivots.shape[-1]):
            other = pivots[..., i : i + 1].astype(rows.dtype) - 1
            kept = rows[..., i : i + 1].copy()
            rows[..., i : i + 1] = xp.take_along_axis(rows, other, -1)
            xp.put_along_axis(rows, other, kept, -1)
        return rows

    def svd(A: Any, full_matrices: bool, compute_uv: bool, driver: Any, U: Any, S: Any, Vh: Any) -> None:
        if not compute_uv:
            store(xp, S, converged(xp, "linalg.svd", xp.linalg.svd, A, compute_uv=False))
            return
        require_finite(xp, "linalg.svd", A)  # LAPACK may not return for infinite elements
        found = converged(xp, "linalg.svd", xp.linalg.svd, A, full_matrices)
        for target, value in zip((U, S, Vh), found, strict=True):
            store(xp, target, value)

    def eigh(A: Any, UPLO: str, compute_v: bool, values: Any, vectors: Any) -> None:
        require_finite(xp, "linalg.eigh", A)  # LAPACK gives finite eigenvalues to a matrix of two rows that has NaN
        if not compute_v:
            store(xp, values, converged(xp, "linalg.eigh", xp.linalg.eigvalsh, A, UPLO.upper()))
            return
        found = converged(xp, "linalg.eigh", xp.linalg.eigh, A, UPLO.upper())
        store(xp, values, found[0])
        store(xp, vectors, found[1])

    def qr(A: Any, mode: str, Q: Any, R: Any) -> None:
        found = xp.linalg.qr(A, mode)
        if mode == "r":
            store(xp, R, found)
            return
        store(xp, Q, found[0])
        store(xp, R, found[1])

    return {
        "linalg_cholesky_ex.L": cholesky,
        "lu_unpack.out": lu_unpack,
        "_linalg_svd.U": svd,
        "_linalg_eigh.eigenvalues": eigh,
        "linalg_qr.out": qr,
    }
