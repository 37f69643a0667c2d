"""A product of matrices and a row that is added to each of its rows, in one launch: what a linear layer computes, by cuBLASLt.

cuBLAS itself adds what lies in the output, so that the row would have to be copied into each row of it first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from turnout.config.lock import new_lock
from turnout_aten.kernels.rows import Row
from turnout_cuda.matrix_products import Matrix, Products, added, check
from turnout_cuda.programs import name_of

# Of cublasLt.h: attributes of a product and of what is asked for, and the step that adds a row.
_TRANSPOSED = (3, 4)
_EPILOGUE, _ROW = 7, 8
_ADDS_ROW = 4
_MOST_ROOM, _ALIGNMENTS = 1, (5, 6, 7, 8)
_ROOM = 32 << 20  # bytes that an algorithm may use beside the matrices
_ALIGNED = 16  # bytes of which all addresses are multiples
_NAMES = ("float16", "bfloat16", "float32")


class _Choice(ctypes.Structure):
    """`cublasLtMatmulHeuristicResult_t`."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8), ("room", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )  # fmt: skip


def kernels(products: Products) -> dict[str, Any]:
    """The row of this module."""

    def prepares(outs: Any, self: Any, first: Any, second: Any, beta: Any, alpha: Any) -> Callable[..., Any] | None:
        return prepared(products, self, first, second) if beta == alpha == 1 else None

    return {"addmm.out": Row(added(products), prepares=prepares)}


def prepared(products: Products, row: Any, first: Any, second: Any) -> Callable[..., Any] | None:
    """What starts `row + first @ second` for arrays that lie like these, into a row-major output.

    None where the row does not have an element for each column, where cuBLASLt has no algorithm, and where nothing is computed.
    """
    name = name_of(row)
    if name not in _NAMES or row.shape != second.shape[1:] or not row.flags.c_contiguous or row.dtype != first.dtype:
        return None
    found = products.as_they_lie(first, second)
    product = None if found is None else _Product(products, name, *found)
    return None if product is None or product.chosen(products.kind_of_sums(name)) is None else product.start


class _Product:
    """A product with a row, as cuBLASLt describes it, for all devices and precisions that meet it."""

    def __init__(self, products: Products, name: str, a: Matrix, b: Matrix, sizes: tuple[int, ...]) -> None:
        _, m, n, k = sizes
        self.products, self.name = products, name
        self._lt, self._lock = products.libraries()[1], new_lock()
        # As for cuBLAS, the second matrix comes first; a matrix whose columns lie together is a transposed one.
        self._transposed = b.transposed, a.transposed
        self._shapes = ((k, n) if b.transposed else (n, k), (m, k) if a.transposed else (k, m), (n, m))
        self._steps = b.row, a.row, n
        self._chosen: dict[tuple[int, int], tuple[Any, ...] | None] = {}
        self._one, self._zero = ctypes.c_float(1), ctypes.c_float(0)

    def start(self, row: Any, first: Any, second: Any, beta: Any, alpha: Any, out: Any) -> None:
        """Start it; the factors are 1."""
        pointers = second.data.ptr, first.data.ptr, out.data.ptr, row.data.ptr
        chosen = self.chosen(self.products.kind_of_sums(self.name))
        if chosen is None or (pointers[0] | pointers[1] | pointers[2] | pointers[3]) % _ALIGNED:
            self.products.add(row, first, second, 1, 1, out)
            return
        product, (a, b, c), choice = chosen
        cuda = self.products.xp.cupy.cuda
        room = self.products.xp.empty(choice.room, "uint8") if choice.room else None
        handle, stream = cuda.get_cublas_handle(), cuda.get_current_stream()
        with self._lock:  # the row is a part of the description
            self._set("MatmulDesc", product, _ROW, ctypes.c_void_p(pointers[3]))
            status = self._lt.cublasLtMatmul(
                handle, product, ctypes.byref(self._one), pointers[0], a, pointers[1], b, ctypes.byref(self._zero),
                pointers[2], c, pointers[2], c, ctypes.byref(choice), 0 if room is None else room.data.ptr, choice.room,
                stream.ptr,
            )  # fmt: skip
        if status:
            check("cublasLtMatmul", status)

    def chosen(self, sums: int) -> tuple[Any, ...] | None:
        """The description of the product, those of its matrices, and the algorithm, on the current device; None without one."""
        key = int(self.products.xp.cupy.cuda.runtime.getDevice()), sums
        if key not in self._chosen:
            with self._lock:
                if key not in self._chosen:
                    self._chosen[key] = self._choose(sums)
        return self._chosen[key]

    def _choose(self, sums: int) -> tuple[Any, ...] | None:
        kind = self.products.kind(self.name)
        product, wanted = self._made("MatmulDesc", sums, 0), self._made("MatmulPreference")  # numbers beside it are float32: 0
        try:
            for attribute, transposed in zip(_TRANSPOSED, self._transposed, strict=True):
                self._set("MatmulDesc", product, attribute, ctypes.c_int32(transposed))
            self._set("MatmulDesc", product, _EPILOGUE, ctypes.c_int32(_ADDS_ROW))
            matrices = [
                self._made("MatrixLayout", kind, *shape, step) for shape, step in zip(self._shapes, self._steps, strict=True)
            ]
            self._set("MatmulPreference", wanted, _MOST_ROOM, ctypes.c_uint64(_ROOM))
            for attribute in _ALIGNMENTS:
                self._set("MatmulPreference", wanted, attribute, ctypes.c_uint32(_ALIGNED))
            choice, count = _Choice(), ctypes.c_int(0)
            a, b, c = matrices
            status = self._lt.cublasLtMatmulAlgoGetHeuristic(
                self.products.xp.cupy.cuda.get_cublas_handle(), product, a, b, c, c, wanted, 1, ctypes.byref(choice),
                ctypes.byref(count),
            )  # fmt: skip
        finally:
            self._lt.cublasLtMatmulPreferenceDestroy(wanted)
        return None if status or not count.value or choice.state else (product, tuple(matrices), choice)

    def _made(self, kind: str, *args: int) -> Any:
        made = ctypes.c_void_p()
        check(f"cublasLt{kind}Create", getattr(self._lt, f"cublasLt{kind}Create")(ctypes.byref(made), *args))
        return made

    def _set(self, kind: str, of: Any, attribute: int, value: Any) -> None:
        name = f"cublasLt{kind}SetAttribute"
        check(name, getattr(self._lt, name)(of, attribute, ctypes.byref(value), ctypes.sizeof(value)))

    def __del__(self) -> None:
        for product, matrices, _ in filter(None, getattr(self, "_chosen", {}).values()):
            self._lt.cublasLtMatmulDescDestroy(product)
            for each in matrices:
                self._lt.cublasLtMatrixLayoutDestroy(each)
