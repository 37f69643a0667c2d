"""`FunctionalArrayBackend`: a backend whose values are arrays of a module with NumPy's names that are not written.

`in_scratch` makes rows for it of the rows of this package: they write into a new array, which is a value from then on.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout_arrays.native_dtypes import NativeDtypes
from turnout_arrays.random import random_bits
from turnout_aten.backend.functional_backend import FunctionalBackend
from turnout_aten.backend.functional_rows import Wanted
from turnout_aten.kernels.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from turnout_aten.backend.functional_arrays import FunctionalArray

Ints = tuple[int, ...]


class FunctionalArrayBackend(NativeDtypes, FunctionalBackend):
    """A backend whose values are `xp.ndarray`.

    xp        the array module
    bfloat16  the scalar type for that dtype, if the module has one (`ml_dtypes.bfloat16` for NumPy)
    """

    wrapper_module = "turnout_arrays.wrapped"

    def __init__(self, xp: Any, bfloat16: Any = None) -> None:
        super().__init__()
        self.xp = xp
        self._name_dtypes(xp, bfloat16)

    # ---- dtypes

    def check_dtype(self, dtype: DType) -> None:
        self.native_dtype(dtype)

    def dtype_of_value(self, value: Any) -> DType:
        return self._dtypes[value.dtype]

    # ---- values

    def frozen(self, value: Any) -> Any:
        """An array that nobody else has, as a value. By default it is one as it is."""
        return value

    def as_value(self, made: Any) -> Any:
        return made if isinstance(made, self.xp.ndarray) else self.frozen(self.xp.asarray(made))

    def full(self, shape: Ints, dtype: DType, device: Device, number: Any) -> Any:
        native = self.native_dtype(dtype)
        try:
            return self.frozen(self.xp.full(shape, number, native))
        except OverflowError:  # an integer that does not fit wraps around
            return self.frozen(self.xp.full(shape, self.xp.asarray(number).astype(native), native))

    def converted(self, value: Any, dtype: DType) -> Any:
        native = self.native_dtype(dtype)
        if value.dtype.kind == "c" and native.kind not in "cb":
            value = value.real
        with self.kernel_context():
            return self.frozen(value.astype(native))

    def reshaped(self, value: Any, shape: Ints) -> Any:
        return self.frozen(value.reshape(shape))

    def permuted(self, value: Any, order: Ints) -> Any:
        return value.transpose(order)

    def sliced(self, value: Any, index: tuple[slice, ...]) -> Any:
        return value[index]

    def assigned(self, value: Any, index: tuple[slice, ...], part: Any) -> Any:
        made = value.copy()
        made[index] = part
        return self.frozen(made)

    def repeated(self, value: Any, shape: Ints) -> Any:
        return self.xp.broadcast_to(value, shape)

    def gathered(self, flat: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        return self.frozen(flat[self.element_positions(shape, strides, offset)])

    def scattered(self, flat: Any, shape: Ints, strides: Ints, offset: int, part: Any) -> Any:
        made = flat.copy()
        made[self.element_positions(shape, strides, offset)] = part
        return self.frozen(made)

    def element_positions(self, shape: Ints, strides: Ints, offset: int) -> Any:
        """The positions of the elements of a geometry, in its shape."""
        found = self.xp.full((1,) * len(shape), offset, "int64")
        for d, (length, stride) in enumerate(zip(shape, strides, strict=True)):
            found = found + self.xp.arange(length).reshape((1,) * d + (length,) + (1,) * (len(shape) - d - 1)) * stride
        return found

    def reinterpreted(self, value: Any, dtype: DType) -> Any:
        native = self.native_dtype(dtype)
        flat = self.xp.ascontiguousarray(value).reshape(-1).view("u1")
        return self.frozen(flat[: flat.size // native.itemsize * native.itemsize].view(native))

    def value_to_host(self, value: Any) -> bytes | memoryview:
        flat = self.xp.ascontiguousarray(value).reshape(-1)
        if sys.byteorder == "big":
            flat = flat.byteswap()
        data: memoryview = flat.view("u1").data
        return data

    def value_from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        flat = self.xp.frombuffer(bytes(data), "u1").view(self.native_dtype(dtype))
        return self.frozen((flat.byteswap() if sys.byteorder == "big" else flat).reshape(shape))

    # ---- arrays

    def ramp(self, target: FunctionalArray, start: Any, step: Any) -> bool:
        native = self.native_dtype(target.dtype)
        whole = native.kind in "iu"
        places = self.xp.arange(target.shape[0], dtype="int64" if whole else "float64")
        places = places * (int(step) if whole else step) + (int(start) if whole else start)
        target.write(self.frozen(places.astype(native)))
        return True

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> FunctionalArray:
        return self.as_array(random_bits(self.xp, shape, seed, offset))

    def kernel_context(self) -> AbstractContextManager[object]:
        errstate = getattr(self.xp, "errstate", None)
        return nullcontext() if errstate is None else errstate(all="ignore")


def in_scratch(rows: Mapping[str, Any], backend: FunctionalArrayBackend) -> dict[str, Row]:
    """Rows that write into their last arguments, as rows that return values: each result is a new array of the module."""
    made = {name: row if isinstance(row, Row) else Row(row) for name, row in rows.items()}
    return {name: Row(_in_scratch(name, row.fn, backend), pointwise=row.pointwise) for name, row in made.items()}


def _in_scratch(name: str, function: Callable[..., Any], backend: FunctionalArrayBackend) -> Callable[..., Any]:
    def on_values(*args: Any) -> Any:
        given = [a for a in args if a.__class__ is not Wanted]
        outs = [backend.xp.empty(a.shape, backend.native_dtype(a.dtype)) for a in args if a.__class__ is Wanted]
        made = function(*given, *outs)
        return tuple(map(backend.frozen, outs)) if outs else made

    on_values.__name__ = on_values.__qualname__ = getattr(function, "__name__", name)
    return on_values
