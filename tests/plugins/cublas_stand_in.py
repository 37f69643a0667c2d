"""A stand-in for cuBLAS's C interface: products of batches of matrices, computed by NumPy at the addresses that it is given."""

from __future__ import annotations

import ctypes
from typing import Any

import cupy_stand_in
import ml_dtypes
import numpy as np

KINDS = {0: "f4", 1: "f8", 2: "f2", 4: "c8", 5: "c16", 14: ml_dtypes.bfloat16}
calls: list[dict[str, Any]] = []
workspaces: list[int] = []


def cublasSetStream_v2(handle: int, stream: int) -> int:
    return 0


def cublasSetWorkspace_v2(handle: int, room: int, size: int) -> int:
    assert room
    workspaces.append(size)
    return 0


def at(address: int, kind: int, batch: int, rows: int, columns: int, ld: int, step: int) -> Any:
    """A batch of column-major matrices. Fails where they would overlap, but for those that are repeated."""
    assert ld >= max(rows, 1), (ld, rows)
    dtype = np.dtype(KINDS[kind])
    count = step * (batch - 1) + ld * (columns - 1) + rows
    memory = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(address)
    flat = np.frombuffer(memory, np.uint8).view(dtype)
    size = dtype.itemsize
    return np.lib.stride_tricks.as_strided(flat, (batch, rows, columns), (step * size, size, ld * size))


def factor(pointer: Any, kind: int) -> Any:
    found = pointer._obj
    return complex(*found) if kind in (4, 5) else found.value


def cublasGemmEx(
    handle: int, a_op: int, b_op: int, m: int, n: int, k: int, alpha: Any, a: int, a_kind: int, lda: int, b: int, b_kind: int,
    ldb: int, beta: Any, c: int, c_kind: int, ldc: int, compute: int, algorithm: int,
) -> int:  # fmt: skip
    return cublasGemmStridedBatchedEx(
        handle, a_op, b_op, m, n, k, alpha, a, a_kind, lda, 0, b, b_kind, ldb, 0, beta, c, c_kind, ldc, 0, 1, compute, algorithm
    )


def cublasGemmStridedBatchedEx(
    handle: Any, a_op: int, b_op: int, m: int, n: int, k: int, alpha: Any, a: int, a_kind: int, lda: int, a_step: int, b: int,
    b_kind: int, ldb: int, b_step: int, beta: Any, c: int, c_kind: int, ldc: int, c_step: int, batch: int, compute: int,
    algorithm: int,
) -> int:  # fmt: skip
    assert c_kind == a_kind or (a_kind in (2, 14) and c_kind == 0)
    if m > 1 << 20:
        return 7  # CUBLAS_STATUS_INVALID_VALUE
    calls.append({"kind": a_kind, "compute": compute, "batch": batch, "sizes": (m, n, k), "steps": (a_step, b_step)})
    left = at(a, a_kind, batch, *((k, m) if a_op else (m, k)), lda, a_step)
    right = at(b, b_kind, batch, *((n, k) if b_op else (k, n)), ldb, b_step)
    out = at(c, c_kind, batch, m, n, ldc, c_step)
    left, right = left.swapaxes(1, 2) if a_op else left, right.swapaxes(1, 2) if b_op else right
    first, second = factor(alpha, a_kind), factor(beta, a_kind)
    wide = np.result_type(np.float32, np.dtype(KINDS[a_kind]))

    def run() -> None:
        made = first * (left.astype(wide) @ right.astype(wide))
        out[...] = made if second == 0 else made + second * out.astype(wide)

    cupy_stand_in.recorded(run, makes=False)
    return 0
