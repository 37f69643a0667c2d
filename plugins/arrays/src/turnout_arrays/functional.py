"""`FunctionalArrayBackend`: a backend whose values are arrays of a module with NumPy's names that are not written.

`functional_kernels(xp)` is its table of rows, made of the kernels of this package.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout_arrays.drafts import Absent, Drafts, Function, bare, positions, with_part
from turnout_arrays.native_dtypes import NativeDtypes
from turnout_arrays.numbers import real_for
from turnout_arrays.random import random_bits
from turnout_arrays.table import kernels
from turnout_aten.backend.functional_backend import FunctionalBackend
from turnout_aten.backend.functional_rows import Wanted
from turnout_aten.kernels.rows import COUNT, FREEDOM, Row, Sizes, Steps
from turnout_aten.kernels.tables import called_with

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.backend.functional_arrays import FunctionalArray

Ints = tuple[int, ...]


class FunctionalArrayBackend(NativeDtypes, FunctionalBackend):
    """A backend whose values are `xp.ndarray`.

    xp        the array module
    bfloat16  the scalar type for that dtype, if the module has one, or the name of the module that has it, as for `ArrayBackend`
    adopts    None, or the class of arrays that `turnout.as_tensor` takes as values without a copy, because nobody can write them
    """

    wrapper_module = "turnout_arrays.wrapped"
    adopts: Any = None

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
        with self.kernel_context():
            return self.frozen(real_for(native, value).astype(native))

    def reshaped(self, value: Any, shape: Ints) -> Any:
        return self.frozen(value.reshape(shape))

    def permuted(self, value: Any, order: Ints) -> Any:
        return value.transpose(order)

    def sliced(self, value: Any, index: tuple[slice, ...]) -> Any:
        return value[index]

    def assigned(self, value: Any, index: tuple[slice, ...], part: Any) -> Any:
        return self.frozen(with_part(self.xp, value, index, part))

    def repeated(self, value: Any, shape: Ints) -> Any:
        return self.xp.broadcast_to(value, shape)

    def gathered(self, flat: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        return self.frozen(flat[self.element_positions(shape, strides, offset)])

    def scattered(self, flat: Any, shape: Ints, strides: Ints, offset: int, part: Any) -> Any:
        return self.frozen(with_part(self.xp, flat, self.element_positions(shape, strides, offset), part))

    def element_positions(self, shape: Ints, strides: Ints, offset: int) -> Any:
        """The positions of the elements of a geometry, in its shape."""
        return positions(self.xp, shape, strides, offset)

    def reinterpreted(self, value: Any, dtype: DType) -> Any:
        native = self.native_dtype(dtype)
        flat = getattr(self.xp, "ascontiguousarray", self.xp.asarray)(value).reshape(-1).view("u1")
        return self.frozen(flat[: flat.size // native.itemsize * native.itemsize].view(native))

    def value_to_host(self, value: Any) -> bytes | memoryview:
        return (value.byteswap() if sys.byteorder == "big" else value).tobytes()

    def value_from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        flat = self.xp.frombuffer(bytes(data), "u1").view(self.native_dtype(dtype))
        return self.frozen((flat.byteswap() if sys.byteorder == "big" else flat).reshape(shape))

    # ---- arrays

    def adopt(self, value: Any) -> FunctionalArray | None:
        if self.adopts is None or not isinstance(value, self.adopts) or not self.is_native(value.dtype):
            return None
        return self.array_of(value, self._dtypes[value.dtype], self.device_of_value(value))

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


def functional_kernels(xp: Any) -> dict[str, Row]:
    """Operator -> row for `register_functional_kernels`: the rows of `kernels`, on values of an array module without writes.

    A row runs its kernel on drafts. What is one function of the module, or is described by steps, is called without a draft where
    that serves the call. Left out are rows whose function the module does not have, and operators such as `nonzero`, where the
    numbers say how large the result is: a composite or the host fallback serves them.
    """
    drafts = Drafts(xp)
    table = {name: row if isinstance(row, Row) else Row(row) for name, row in kernels(drafts).items()}
    left_out = {name for name, row in table.items() if row.fn.__class__ is Absent or not called_with(f"aten::{name}")[1]}
    return {name: _on_values(drafts, name, row) for name, row in table.items() if name not in left_out}


def _on_values(drafts: Drafts, name: str, row: Row) -> Row:
    kernel, dtype_named = row.fn, drafts.xp.dtype

    def on_values(*args: Any) -> Any:
        given = list(map(drafts.of_argument, args))
        outs = []
        for at, want in enumerate(args):
            if want.__class__ is Wanted:
                given[at] = drafts.empty(want.shape, dtype_named(want.dtype.name))
                outs.append(given[at])
        made = kernel(*given)
        return bare(made) if not outs else outs[0].value() if len(outs) == 1 else tuple([out.value() for out in outs])

    on_values.__wrapped__ = kernel  # type: ignore[attr-defined]  # so that `explain` names it
    simple, upto, accepts = row.sizes.simple, row.sizes.upto, row.accepts
    if simple.__class__ is Function:
        simple = simple.function
    elif kernel.__class__ is Function and row.allocates:
        simple = kernel.function
    elif isinstance(row.program, Steps) and row.allocates:
        simple, upto = _stepped(name, row.program.steps), row.program.upto
        if simple is not None and accepts.ranks not in ((), (2, 2)):
            simple = _product(simple)
        accepts = accepts if simple is None else accepts._replace(refuses=_NO_FLOATS)
    sizes = Sizes(upto, simple=simple) if simple is not None else Sizes()
    return Row(on_values, row.allocates, pointwise=row.pointwise, accepts=accepts, sizes=sizes)


def _product(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two matrices, or of an addend and two. It raises NotImplementedError where a module broadcasts others."""

    def product(*args: Any) -> Any:
        first, second = args[-2:]
        made = function(*args)
        if first.shape[:-2] != second.shape[:-2] or made.shape != (*first.shape[:-1], second.shape[-1]):
            raise NotImplementedError
        return made

    return product


_NO_FLOATS = "biucV"  # dtypes for which no steps are written


def _stepped(name: str, steps: Sequence[tuple[Any, ...]]) -> Callable[..., Any] | None:
    """The steps of a kernel as a function of its operator's required arguments, of floats; None if they need others.

    It raises NotImplementedError for what it does not serve: a reduction of two-byte floats, or of nothing along a dim.
    """
    names, _, required = called_with(f"aten::{name}")
    names = names[:required]
    named = {operand for _, *given in steps for operand in given if operand.__class__ is str}
    reducing = [len(given) == 1 and f.reduction is not None for f, *given in steps]
    if not {*names} - {"dim"} <= named <= {*names} or any(reducing[1:]) or any(FREEDOM in given for _, *given in steps):
        return None
    if len(steps) == 1 and not reducing[0]:
        function, operands = steps[0][0].function, steps[0][1:]
        if operands == names:
            return function
        places = [(names.index(v), None) if v.__class__ is str else (None, v) for v in operands]
        return lambda *args: function(*[v if at is None else args[at] for at, v in places])

    def stepped(*args: Any) -> Any:
        first, given = args[0], dict(zip(names, args, strict=True))
        if reducing[0] and (first.dtype.itemsize < 4 or not first.size or not first.shape):
            raise NotImplementedError
        made: list[Any] = []
        for (function, *operands), reduces in zip(steps, reducing, strict=True):
            values = [given[v] if v.__class__ is str else made[v] if v.__class__ is int else v for v in operands]
            if reduces:
                made.append(function.reduction(*values, axis=_axis(given.get("dim"))))
            else:  # COUNT is how many elements were reduced to one
                made.append(function.function(*[first.size // made[0].size if v is COUNT else v for v in values]))
        return made[-1]

    if len(steps) == 1 and names == ("self",):
        reduction = steps[0][0].reduction

        def reduced(x: Any) -> Any:
            if x.dtype.itemsize < 4:
                raise NotImplementedError
            return reduction(x)

        return reduced
    return stepped


def _axis(dim: Any) -> Any:
    return dim if dim is None or dim.__class__ is int else tuple(dim) or None
