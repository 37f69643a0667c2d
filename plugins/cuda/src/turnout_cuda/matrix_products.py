"""Products of matrices by cuBLAS, called through its C interface.

CuPy's functions refuse to be recorded into a graph, and switch the precision of float32 for a whole handle.

cuBLAS counts matrices column by column. A row-major matrix is the transposed one there, so c = a b is computed as c' = b' a'.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from turnout.config.tuples import NamedTuple
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.extents import expands_to
from turnout_cuda.programs import name_of

Table = dict[str, Any]
Ints = tuple[int, ...]

# A dtype -> cudaDataType and cublasComputeType_t of library_types.h and cublas_api.h, and what its factors are made of.
TYPES = {
    "float16": (2, 68, ctypes.c_float),
    "bfloat16": (14, 68, ctypes.c_float),
    "float32": (0, 68, ctypes.c_float),
    "float64": (1, 70, ctypes.c_double),
    "complex64": (4, 68, ctypes.c_float * 2),
    "complex128": (5, 70, ctypes.c_double * 2),
}
# How precisely float32 is multiplied -> the compute type: all digits (CUBLAS_COMPUTE_32F), or the 10 of TF32
# (CUBLAS_COMPUTE_32F_FAST_TF32).
PRECISIONS = {"highest": 68, "high": 77}
_DEFAULT_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT
_WORKSPACE = 32 << 20  # bytes that cuBLAS may use in recorded work, where it must not allocate
_LARGEST = (1 << 31) - 1  # of a dim and of a distance between rows


def libraries(cupy: Any) -> tuple[Any, Any]:
    """cuBLAS as CuPy has loaded it, and cuBLASLt, which cuBLAS has loaded."""
    cupy.cuda.get_cublas_handle()
    major = cupy.cuda.runtime.runtimeGetVersion() // 1000
    cublas, lt = (
        ctypes.CDLL(f"{name}64_{major}.dll" if sys.platform == "win32" else f"lib{name}.so.{major}")
        for name in ("cublas", "cublasLt")
    )
    return cublas, lt


class Matrix(NamedTuple):
    """Where cuBLAS finds matrices: the array, whether columns lie together and not rows, their distance, and that of matrices."""

    array: Any
    transposed: bool
    row: int
    step: int


class Products:
    """`load` gives the libraries when the first product is computed."""

    def __init__(self, xp: Any, precision: Callable[[], str], load: Callable[[Any], tuple[Any, Any]] = libraries) -> None:
        self.xp = xp
        self.precision = precision
        self._load = load
        self._libraries: tuple[Any, Any] | None = None

    def libraries(self) -> tuple[Any, Any]:
        """cuBLAS and cuBLASLt."""
        if self._libraries is None:
            cublas, lt = self._load(self.xp.cupy)
            self._libraries = typed_cublas(cublas), typed_lt(lt)
        return self._libraries

    def kind(self, name: str) -> int:
        """A dtype as cuBLAS numbers it."""
        return TYPES[name][0]

    def kind_of_sums(self, name: str) -> int:
        """What products of a dtype are added up in, as cuBLAS numbers it."""
        return PRECISIONS[self.precision()] if name == "float32" else TYPES[name][1]

    def multiply(self, a: Any, b: Any, out: Any = None, alpha: Any = 1, beta: Any = 0) -> Any:
        """alpha a b + beta out, with the shapes that NumPy's matmul takes; NotImplemented for other dtypes. The output of
        two-byte floats may be float32."""
        given = self._as_matrices(a, b)
        if given is None:
            return NotImplemented
        name, (left, right, lead) = name_of(a), given
        m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
        shape = (*lead, *(() if a.ndim == 1 else (m,)), *(() if b.ndim == 1 else (n,)))
        if out is not None and (
            out.shape != shape or (out.dtype != a.dtype and not (a.itemsize == 2 and out.dtype == "float32"))
        ):
            return NotImplemented
        direct = out is not None and out.flags.c_contiguous
        made = out if direct else self.xp.empty(shape, a.dtype if out is None else out.dtype)
        if beta != 0 and not direct:
            self.xp.copyto(made, out)
        if made.size and k:
            first, second = self._placed(left, lead), self._placed(right, lead)
            start = self._starting(name, first, second, (prod(lead), m, n, k), (alpha, beta), name_of(made))
            start(first.array, second.array, made)
        elif made.size and beta == 0:
            made.fill(0)
        elif made.size and beta != 1:
            self.xp.multiply(made, beta, made)
        if out is None or direct:
            return made
        self.xp.copyto(out, made)
        return out

    def placed(self, matrices: Any) -> Any:
        """Matrices for several products: the array itself if cuBLAS reads it as it lies, else a copy."""
        lies = self._as_it_lies(matrices, matrices.shape[:-2]) is not None
        return matrices if lies else self.xp.ascontiguousarray(matrices)

    def prepared(self, a: Any, b: Any) -> Callable[[Any, Any, Any], None] | None:
        """What starts the product of arrays that lie like these, into a row-major output of their dtype. None where they would be
        copied, and where nothing is computed."""
        found = self.as_they_lie(a, b)
        return None if found is None else self._starting(name_of(a), *found, (1, 0), name_of(a))

    def as_they_lie(self, a: Any, b: Any) -> tuple[Matrix, Matrix, Ints] | None:
        """Both as cuBLAS finds them, and the sizes of the product: (batch, rows, columns, inner). None where one would be copied,
        and where nothing is computed."""
        given = self._as_matrices(a, b)
        if given is None:
            return None
        left, right, lead = given
        first, second = self._as_it_lies(left, lead), self._as_it_lies(right, lead)
        sizes = prod(lead), left.shape[-2], right.shape[-1], left.shape[-1]
        return None if first is None or second is None or not all(sizes) else (first, second, sizes)

    def add(self, given: Any, first: Any, second: Any, beta: Any, alpha: Any, out: Any) -> Any:
        """Write beta given + alpha first second into a row-major output; `given` is repeated along dims that it lacks."""
        if beta != 0:  # else it is ignored, even NaN
            self.xp.copyto(out, given)
        return self.multiply(first, second, out, alpha, beta)

    def _as_matrices(self, a: Any, b: Any) -> tuple[Any, Any, Ints] | None:
        """Both as matrices, and the shape of the batch; None where cuBLAS does not multiply them."""
        inner = -2 if b.ndim > 1 else 0
        if name_of(a) not in TYPES or b.dtype != a.dtype or not a.ndim or not b.ndim or a.shape[-1] != b.shape[inner]:
            return None
        left, right = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
        lead = left.shape[:-2]
        if lead != right.shape[:-2]:
            lead = np.broadcast_shapes(lead, right.shape[:-2])
        return None if max(left.shape[-2:] + right.shape[-1:]) > _LARGEST else (left, right, lead)

    def _placed(self, matrices: Any, lead: Ints) -> Matrix:
        """Matrices of a batch as cuBLAS finds them, copied if they lie otherwise."""
        found = self._as_it_lies(matrices, lead)
        if found is None:
            whole = self.xp.ascontiguousarray(self.xp.broadcast_to(matrices, (*lead, *matrices.shape[-2:])))
            found = Matrix(whole, False, whole.shape[-1], whole.shape[-2] * whole.shape[-1])
        return found

    def _as_it_lies(self, matrices: Any, lead: Ints) -> Matrix | None:
        itemsize = matrices.dtype.itemsize
        *outer, row, column = [step // itemsize for step in matrices.strides]
        rows, columns = matrices.shape[-2:]
        step = 0
        if prod(matrices.shape[:-2]) > 1:
            if matrices.shape[:-2] != lead:
                return None
            # From each matrix to the next there must be one distance.
            steps = [(length, own) for length, own in zip(lead, outer, strict=True) if length > 1]
            step = expected = steps[-1][1]
            for length, own in reversed(steps):
                if own != expected:
                    return None
                expected *= length
        if (column == 1 or columns == 1) and (row >= columns or rows == 1):
            return self._within(Matrix(matrices, False, row if rows > 1 else columns, step))
        if (row == 1 or rows == 1) and (column >= rows or columns == 1):
            return self._within(Matrix(matrices, True, column if columns > 1 else rows, step))
        return None

    def _within(self, found: Matrix) -> Matrix | None:
        return found if found.row <= _LARGEST else None

    def _starting(
        self, name: str, a: Matrix, b: Matrix, sizes: Ints, factors: tuple[Any, Any], made_name: str
    ) -> Callable[[Any, Any, Any], None]:
        """What starts a product of arrays that lie like these into another one."""
        batch, m, n, k = sizes
        kind, usual, number = TYPES[name]
        cublas, cuda = self.libraries()[0], self.xp.cupy.cuda
        precision = self.precision if name == "float32" else None
        alpha, beta = (ctypes.byref(_number(factor, number)) for factor in factors)
        first, made_kind = (int(b.transposed), int(a.transposed), n, m, k, alpha), TYPES[made_name][0]
        (_, _, a_row, a_step), (_, _, b_row, b_step) = a, b  # the arrays themselves are not kept

        def start(left: Any, right: Any, made: Any) -> None:
            compute = usual if precision is None else PRECISIONS[precision()]  # `kind_of_sums`, without its frame
            handle, stream = cuda.get_cublas_handle(), cuda.get_current_stream()
            status = cublas.cublasSetStream_v2(handle, stream.ptr)
            if status:
                check("cublasSetStream_v2", status)
            if stream.is_capturing():
                room = self.xp.empty(_WORKSPACE, "uint8")
                check("cublasSetWorkspace_v2", cublas.cublasSetWorkspace_v2(handle, room.data.ptr, _WORKSPACE))
            pointers = right.data.ptr, left.data.ptr, made.data.ptr
            if batch == 1:
                second = (pointers[0], kind, b_row, pointers[1], kind, a_row, beta)
                third = (pointers[2], made_kind, n, compute, _DEFAULT_ALGORITHM)
                status = cublas.cublasGemmEx(handle, *first, *second, *third)
            else:
                each = (pointers[0], kind, b_row, b_step, pointers[1], kind, a_row, a_step, beta)
                rest = (pointers[2], made_kind, n, m * n, batch, compute, _DEFAULT_ALGORITHM)
                status = cublas.cublasGemmStridedBatchedEx(handle, *first, *each, *rest)
            if status:
                check("cublasGemmEx" if batch == 1 else "cublasGemmStridedBatchedEx", status)

        return start


def typed(library: Any, **taken: tuple[Any, ...]) -> Any:
    """A library, whose functions know what they take: Python's numbers are passed as they are."""
    for name, types in taken.items():
        getattr(library, name).argtypes = types
    return library


def typed_cublas(cublas: Any) -> Any:
    """cuBLAS with the types of the functions that are called."""
    pointer, number, long, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong, ctypes.c_size_t
    first = [pointer, *[number] * 5, pointer, pointer, number, number]
    third = [long, pointer, number, number, long, pointer, pointer, number, number, long, number]
    return typed(
        cublas,
        cublasSetStream_v2=(pointer, pointer),
        cublasSetWorkspace_v2=(pointer, pointer, size),
        cublasGemmEx=(*first, pointer, number, number, pointer, pointer, *[number] * 4),
        cublasGemmStridedBatchedEx=(*first, *third, number, number),
    )


def typed_lt(lt: Any) -> Any:
    """cuBLASLt, likewise."""
    pointer, number, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    return typed(
        lt,
        cublasLtMatmulDescCreate=(pointer, number, number),
        cublasLtMatrixLayoutCreate=(pointer, number, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64),
        cublasLtMatmulPreferenceCreate=(pointer,),
        cublasLtMatmulDescSetAttribute=(pointer, number, pointer, size),
        cublasLtMatmulPreferenceSetAttribute=(pointer, number, pointer, size),
        cublasLtMatmulAlgoGetHeuristic=(*[pointer] * 7, number, pointer, pointer),
        cublasLtMatmul=(*[pointer] * 13, pointer, size, pointer),
        cublasLtMatmulDescDestroy=(pointer,),
        cublasLtMatrixLayoutDestroy=(pointer,),
        cublasLtMatmulPreferenceDestroy=(pointer,),
    )


def check(name: str, status: int) -> None:
    """Raises RuntimeError for a status of cuBLAS that is an error."""
    if status:
        raise RuntimeError(f"cuBLAS: {name} failed with status {status}")


def _number(factor: Any, kind: Any) -> Any:
    """A factor as cuBLAS reads it."""
    return kind(factor) if kind in (ctypes.c_float, ctypes.c_double) else kind(complex(factor).real, complex(factor).imag)


def added(products: Products) -> Callable[..., Any]:
    """The function of a row: beta self + alpha first second."""

    def kernel(self: Any, first: Any, second: Any, beta: Any, alpha: Any, out: Any = None) -> Any:
        shape = (*first.shape[:-1], *second.shape[first.ndim - 1 :])
        if not expands_to(self.shape, shape) or second.ndim not in (1, first.ndim):
            return NotImplemented
        if out is None and beta != 0:
            out = products.xp.empty(shape, self.dtype)
        if out is None or name_of(self) not in TYPES or not self.dtype == first.dtype == second.dtype == out.dtype:
            return NotImplemented
        if not out.flags.c_contiguous or first.shape[-1] != second.shape[-2 if second.ndim > 1 else 0]:
            return NotImplemented
        return products.add(self, first, second, beta, alpha, out)

    return kernel


def kernels(products: Products) -> Table:
    """The rows of this module."""

    def product(self: Any, other: Any, out: Any = None) -> Any:
        if self.ndim == 3 and len(self) != len(other):
            return NotImplemented  # a batch of one does not broadcast here
        return products.multiply(self, other, out)

    def prepares(outs: Any, self: Any, other: Any) -> Any:
        return products.prepared(self, other)

    def vdot(self: Any, other: Any, out: Any = None) -> Any:
        return products.multiply(self.conj() if self.dtype.kind == "c" else self, other, out)

    return {
        **{f"{name}.out": Row(product, prepares=prepares) for name in ("mm", "bmm", "mv", "dot")},
        "vdot.out": Row(vdot),
        **{f"{name}.out": Row(added(products)) for name in ("addmv", "baddbmm")},
    }
