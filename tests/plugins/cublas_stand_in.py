"""A stand-in for the C interfaces of cuBLAS and cuBLASLt: products of matrices, by NumPy, at the addresses that it is given."""

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


# ---- cuBLASLt: a description is a dict, and its address its number

described: dict[int, dict[Any, Any]] = {}
refused: list[str] = []  # what the next calls fail at


def _make(made: Any, **facts: Any) -> int:
    made._obj.value = number = max(described, default=0) + 1
    described[number] = facts
    return 0


def cublasLtMatmulDescCreate(made: Any, compute: int, numbers: int) -> int:
    assert numbers == 0
    return _make(made, compute=compute)


def cublasLtMatrixLayoutCreate(made: Any, kind: int, rows: int, columns: int, ld: int) -> int:
    return _make(made, kind=kind, rows=rows, columns=columns, ld=ld)


def cublasLtMatmulPreferenceCreate(made: Any) -> int:
    return _make(made)


def cublasLtMatmulDescSetAttribute(of: Any, attribute: int, value: Any, size: int) -> int:
    assert size == {3: 4, 4: 4, 7: 4, 8: 8}[attribute]
    described[of.value][attribute] = value._obj.value
    return 0


def cublasLtMatmulPreferenceSetAttribute(of: Any, attribute: int, value: Any, size: int) -> int:
    assert size == {1: 8, 5: 4, 6: 4, 7: 4, 8: 4}[attribute]
    described[of.value][attribute] = value._obj.value
    return 0


def cublasLtMatmulAlgoGetHeuristic(
    handle: int, product: Any, a: Any, b: Any, c: Any, d: Any, wanted: Any, most: int, choice: Any, count: Any
) -> int:
    assert (most, c.value, described[wanted.value]) == (1, d.value, {1: 32 << 20, 5: 16, 6: 16, 7: 16, 8: 16})
    count._obj.value = int("algorithm" not in refused)
    choice._obj.room = 64
    return 0


def cublasLtMatmul(
    handle: int, product: Any, alpha: Any, a: int, a_lies: Any, b: int, b_lies: Any, beta: Any, c: int, c_lies: Any, d: int,
    d_lies: Any, choice: Any, room: int, size: int, stream: int,
) -> int:  # fmt: skip
    if "product" in refused:
        return 7  # CUBLAS_STATUS_INVALID_VALUE
    facts, first, second, last = (described[each.value] for each in (product, a_lies, b_lies, d_lies))
    assert (alpha._obj.value, beta._obj.value, c, facts[7], bool(room), size) == (1, 0, d, 4, True, 64)
    assert all(address % 16 == 0 for address in (a, b, d, facts[8]))
    calls.append({"kind": last["kind"], "compute": facts["compute"], "row": True, "sizes": (last["rows"], last["columns"])})
    left, right, out = (
        at(address, one["kind"], 1, one["rows"], one["columns"], one["ld"], 0)[0]
        for address, one in ((a, first), (b, second), (d, last))
    )
    left, right = left.T if facts[3] else left, right.T if facts[4] else right
    row = at(facts[8], last["kind"], 1, last["rows"], 1, last["rows"], 0)[0]
    wide = np.result_type(np.float32, np.dtype(KINDS[last["kind"]]))

    def run() -> None:
        out[...] = left.astype(wide) @ right.astype(wide) + row.astype(wide)

    cupy_stand_in.recorded(run, makes=False)
    return 0


def _drop(of: Any) -> int:
    del described[of.value]
    return 0


cublasLtMatmulDescDestroy = cublasLtMatrixLayoutDestroy = cublasLtMatmulPreferenceDestroy = _drop
