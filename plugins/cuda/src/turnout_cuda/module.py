"""`CuPyModule`: CuPy under NumPy's names, with the few that the shared kernel library uses and CuPy lacks.

CuPy reduces with functions (`amax`, `any`) where NumPy has `ufunc.reduce`, accumulates sums and products only, and adds at
repeated indices for some dtypes only. It multiplies at repeated indices for no dtype, so shared kernels that do so are omitted
(`WITHOUT`). Everything else is CuPy's own, looked up when it is asked for.

Where CuPy differs from NumPy in what a name does, kernels ask: `wraps_indices` says that an index out of range gives an element
and no error, and `expect_indices` has the device look for those that a kernel reads at.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy  # whole: another thread may be importing it, and does not wait for one that imports a part

from turnout.errors import CallError
from turnout_cuda.faults import Faults, Noted
from turnout_cuda.matrix_products import Products, libraries
from turnout_cuda.pointwise import functions
from turnout_cuda.prepared import Script, Watched
from turnout_cuda.programs import Programs, name_of
from turnout_cuda.selection import Masks

# Operators whose shared kernels combine values at repeated indices by products, maxima or minima. They have raw kernels instead.
WITHOUT = ("scatter_reduce.two_out",)

# What CuPy adds atomically. Other integers are added in uint64, where sums wrap around to the same bits.
_ADDED = frozenset({"int32", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"})


class Accumulating:
    """An associative CuPy ufunc with `accumulate`, in as many steps as the length has bits."""

    def __init__(self, ufunc: Any) -> None:
        self._ufunc = ufunc
        self.__name__ = str(getattr(ufunc, "__name__", ufunc))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ufunc(*args, **kwargs)

    def accumulate(self, array: Any, axis: int = 0) -> Any:
        """Along one axis. Each step joins what is `reach` apart: W. D. Hillis, G. L. Steele, "Data Parallel Algorithms", 1986."""
        found, reach = array.copy(), 1
        lead = (slice(None),) * (axis % array.ndim)
        while reach < array.shape[axis]:
            joined = self._ufunc(found[(*lead, slice(None, -reach))], found[(*lead, slice(reach, None))])
            found[(*lead, slice(reach, None))] = joined
            reach *= 2
        return found


class Reducing(Accumulating):
    """One with `reduce` too, from one of CuPy's functions `reduction(array, axis, out=, keepdims=)`."""

    def __init__(self, ufunc: Any, reduction: Callable[..., Any]) -> None:
        super().__init__(ufunc)
        self._reduction = reduction

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Over an axis, several, or all for None, in the array's dtype."""
        return self._reduction(array, axis, out=out, keepdims=keepdims)


class Adding:
    """CuPy's `add`, whose `at` takes every dtype."""

    def __init__(self, cupy: Any, add: Callable[..., Any]) -> None:
        self._cupy = cupy
        self._add = add
        self.reduce = cupy.add.reduce
        self.__name__ = "add"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._add(*args, **kwargs)

    def at(self, array: Any, indices: Any, values: Any) -> None:
        """array[indices] += values, where repeated indices add up."""
        if name_of(array) in _ADDED:
            self._cupy.add.at(array, indices, values)
        elif name_of(array) == "int64":
            self._cupy.add.at(array.view("u8"), indices, values.astype("i8").view("u8"))
        else:
            wide = array.astype("i8").view("u8")
            self._cupy.add.at(wide, indices, values.astype("i8").view("u8"))
            self._cupy.copyto(array, wide, casting="unsafe")


class Linalg:
    """CuPy's `linalg`, raising LinAlgError where a solver fails: by itself CuPy returns what memory held, to spare waiting."""

    LinAlgError = numpy.linalg.LinAlgError

    def __init__(self, linalg: Any, errstate: Callable[..., Any]) -> None:
        self._linalg = linalg
        self._errstate = errstate

    def __getattr__(self, name: str) -> Any:
        function, errstate = getattr(self._linalg, name), self._errstate

        def checked(*args: Any, **kwargs: Any) -> Any:
            with errstate(linalg="raise"):
                return function(*args, **kwargs)

        return checked


class CuPyModule:
    """The array module that `turnout_arrays` is given. `errstate` is CuPyX's, which has settings of its own."""

    wraps_indices = True

    def __init__(
        self, cupy: Any, errstate: Callable[..., Any], precision: Callable[[], str] = lambda: "highest",
        cublas: Callable[[Any], tuple[Any, Any]] = libraries, script: Script | None = None, faults: Faults | None = None,
    ) -> None:  # fmt: skip
        self.cupy = cupy
        self.errstates = errstate
        self.precision = precision
        self.programs = Programs(cupy) if script is None else script
        self.faults = faults or Faults(cupy, self.programs)
        self.expect_indices = self.faults.expect
        self.masks = Masks(self)
        self.products = Products(self, precision, cublas)
        made = functions(self)
        vars(self).update(made)
        self.add = Adding(cupy, made["add"])
        self.linalg = Linalg(cupy.linalg, errstate)
        self.maximum = Reducing(made["maximum"], cupy.amax)
        self.minimum = Reducing(made["minimum"], self._amin)
        self.logaddexp = Accumulating(cupy.logaddexp)
        self.logical_and = Reducing(cupy.logical_and, cupy.all)
        self.logical_or = Reducing(cupy.logical_or, cupy.any)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cupy, name)

    def errstate(self, **settings: Any) -> Any:
        """Nothing to do: a GPU raises no floating-point warnings."""
        return nullcontext()

    def _amin(self, array: Any, axis: Any, out: Any, keepdims: bool) -> Any:
        """CuPy's, which takes `out` for the dtype where CUB reduces (14.2.0)."""
        made = self.cupy.amin(array, axis, keepdims=keepdims)
        if out is None:
            return made
        self.cupy.copyto(out, made)
        return out

    def matmul(self, a: Any, b: Any, out: Any = None) -> Any:
        """By cuBLAS, or by CuPy's loops for integers."""
        made = self.products.multiply(a, b, out)
        return self.cupy.matmul(a, b, out=out) if made is NotImplemented else made

    def nonzero(self, array: Any) -> tuple[Any, ...]:
        """The places of true elements, an array for each dim."""
        found = self.masks.places(array)
        return tuple(self.cupy.nonzero(array)) if found is None else tuple([found[dim] for dim in range(array.ndim)])

    def script(self) -> CuPyModule:
        """The same module, which writes down what it is asked for, and computes nothing."""
        script = Script(self.programs)
        cupy = Watched(self.cupy, script)
        return CuPyModule(cupy, self.errstates, self.precision, script=script, faults=Noted(self.faults, cupy, script))

    # ---- from the host

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """An array of the device; a CuPy array stays as it is."""
        self._refuse_while_recording(value)
        return self.cupy.asarray(value) if dtype is None else self.cupy.asarray(value, dtype)

    def array(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """A new array."""
        self._refuse_while_recording(value)
        return self.cupy.array(value, *args, **kwargs)

    def _refuse_while_recording(self, value: Any) -> None:
        """Replays of recorded work would copy from where the value lay on the host then."""
        if not isinstance(value, self.cupy.ndarray) and self.cupy.cuda.get_current_stream().is_capturing():
            raise CallError(
                "cuda graph: a value of the host cannot be copied to the device while work is recorded; make the tensor before"
            )
