"""Linear algebra that only SciPy has: LU, LDL and QR as LAPACK stores them, triangular solvers, eigenvalues, exponentials.

SciPy is imported when one of them is called first. Its LAPACK functions take one matrix, so kernels go through the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from turnout.errors import ArgumentError, LinAlgError
from turnout_arrays.decompositions import converged, failed, require_finite
from turnout_arrays.numbers import store

Index = tuple[int, ...]


def kernels() -> dict[str, Any]:
    """Operator -> kernel."""
    # fmt: off
    return {
        "linalg_lu_factor_ex.out":     lu_factor,
        "linalg_ldl_factor_ex.out":    ldl_factor,
        "linalg_ldl_solve.out":        ldl_solve,
        "linalg_eig.out":              eig,
        "geqrf.a":                     geqrf,
        "linalg_solve_triangular.out": solve_triangular,
        "linalg_matrix_exp.out":       matrix_exp,
    }
    # fmt: on


def _lapack(names: tuple[str, ...], *arrays: Any) -> Any:
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(names, arrays)


def _batch(shape: tuple[int, ...]) -> Iterator[Index]:
    """The index of every matrix of a batch that has elements."""
    if 0 not in shape[-2:]:
        yield from np.ndindex(*shape[:-2])


def lu_factor(A: Any, pivot: bool, check_errors: bool, LU: Any, pivots: Any, info: Any) -> None:
    """getrf, whose pivots count from 0 in SciPy."""
    if not pivot:
        raise LinAlgError("linalg.lu_factor: LU without pivoting is not implemented on cpu; use pivot=True")
    (getrf,) = _lapack(("getrf",), A)
    info[...] = 0
    for at in _batch(A.shape):
        LU[at], found, info[at] = getrf(A[at])
        pivots[at] = found + 1
    if check_errors and info.any():
        raise failed("linalg.lu_factor", info, "the matrix is singular: diagonal element {} of U is zero in the factor")


def ldl_factor(self: Any, hermitian: bool, check_errors: bool, LD: Any, pivots: Any, info: Any) -> None:
    """sytrf or hetrf of the lower triangle; the upper one of the result is zero."""
    name = "hetrf" if hermitian and self.dtype.kind == "c" else "sytrf"
    trf, size = _lapack((name, f"{name}_lwork"), self)
    info[...] = 0
    for at in _batch(self.shape):
        work, _ = size(self.shape[-1], lower=1)
        found, pivots[at], info[at] = trf(self[at], lower=1, lwork=int(work.real))
        LD[at] = np.tril(found)
    if check_errors and info.any():
        raise failed("linalg.ldl_factor", info, "the matrix is singular: diagonal element {} of D is zero in the factor")


def ldl_solve(LD: Any, pivots: Any, B: Any, hermitian: bool, out: Any) -> None:
    """sytrs or hetrs."""
    (trs,) = _lapack(("hetrs" if hermitian and LD.dtype.kind == "c" else "sytrs",), LD, B)
    LD = np.broadcast_to(LD, (*out.shape[:-2], *LD.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*out.shape[:-2], LD.shape[-1]))
    B = np.broadcast_to(B, out.shape)
    for at in _batch(out.shape):
        check_ldl_pivots(pivots[at])
        out[at], _ = trs(LD[at], pivots[at].astype(np.int32), B[at], lower=1)


def check_ldl_pivots(pivots: Any) -> None:
    """Raise ArgumentError for pivots that sytrf does not make. sytrs does not check them, and writes wherever they say.

    # differs from torch: `linalg.ldl_solve` checks its pivots, PyTorch does not.
    """
    n = len(pivots)
    if ((pivots < 1) | (pivots > n)).any():
        at = 0
        while at < n:
            # A block of two rows has its pivot twice, as a negative number.
            block = pivots[at] < 0 and at + 1 < n and pivots[at] == pivots[at + 1]
            if not (1 <= pivots[at] <= n or (block and -n <= pivots[at])):
                raise ArgumentError(
                    f"linalg.ldl_solve: 'pivots' must be those of linalg.ldl_factor, from 1 to {n}, or two equal ones from "
                    f"-{n} to -1 in a row; got {pivots.tolist()}"
                )
            at += 1 + int(block)


def eig(self: Any, values: Any, vectors: Any) -> None:
    """geev; real matrices have complex eigenvalues in conjugate pairs."""
    require_finite(np, "linalg.eig", self)
    found = converged(np, "linalg.eig", np.linalg.eig, self)
    store(np, values, found[0])
    store(np, vectors, found[1])


def geqrf(self: Any, a: Any, tau: Any) -> None:
    """Householder vectors below the diagonal, R on and above it."""
    (function,) = _lapack(("geqrf",), self)
    store(np, a, self)
    for at in _batch(self.shape):
        a[at], tau[at], _, _ = function(self[at])


def solve_triangular(self: Any, B: Any, upper: bool, left: bool, unitriangular: bool, out: Any) -> None:
    """trsm, which divides by zeros on the diagonal as they are."""
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), (self, B))
    A = np.broadcast_to(self, (*out.shape[:-2], *self.shape[-2:]))
    B = np.broadcast_to(B, out.shape)
    for at in _batch(out.shape):
        # The transposed system, because BLAS wants columns one after the other.
        out[at] = trsm(1, A[at].T, B[at].T, side=int(left), lower=int(upper), diag=int(unitriangular)).T


def matrix_exp(self: Any, out: Any) -> None:
    """Scaling and squaring, in double precision: the squares of a float32 matrix lose two digits."""
    from scipy.linalg import expm

    if self.size:
        store(np, out, expm(self.astype(np.complex128 if self.dtype.kind == "c" else np.float64)))
