"""Rows of backends whose arrays are values: functions that take values and return values.

`register_functional_kernels` is for such a backend what `register_kernels` is for others. The left side of the table is the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.config.tuples import NamedTuple
from turnout_aten.backend.functional_arrays import FunctionalArray
from turnout_aten.backend.functional_backend import values_in
from turnout_aten.errors import rows as errors
from turnout_aten.kernels.rows import SIMPLE
from turnout_aten.kernels.tables import called_with, checked_rows, register_over, register_through

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout.registry import Registrations
    from turnout_aten.backend.functional_backend import FunctionalBackend

    Call = Callable[..., Any]


class Wanted(NamedTuple):
    """What a result has to be: the last argument of a row, one for each output."""

    shape: tuple[int, ...]
    dtype: DType
    device: Device


def register_functional_kernels(
    library: Registrations, backend: FunctionalBackend, table: Mapping[str, Any], *, namespace: str = "aten"
) -> None:
    """Register a table of rows that take and return values.

    A row is called with all arguments by position, tensors as values, and a `Wanted` for each output last. It returns the values
    of the outputs: one, or a tuple of several. A value of another dtype than the one wanted is converted. The row of an operator
    without outputs, such as `nonzero`, returns its new values. A row that says `allocates` is also called without a `Wanted`, and
    then returns what it makes. One RegistrationError reports all rows that name no operator or cannot be called so.
    """
    register_through(library, backend, table, namespace, partial(_around, backend))


def register_functional_over(
    library: Registrations, backend: FunctionalBackend, table: Mapping[str, Any], *, namespace: str = "aten"
) -> None:
    """Register rows over the composite kernels of operators: functions of values, which may return NotImplemented.

    Where an operator is composed of others for its gradient, calls that record one stay composed. One RegistrationError reports
    all rows that name no operator or cannot be called so.
    """
    rows = checked_rows(library, backend.name, table, namespace)
    made = {name: row.through(_around(backend, name)) for name, row in rows.items()}
    register_over(library, backend.name, made, namespace=namespace, yields=False)


def _around(backend: FunctionalBackend, name: str) -> Callable[[str, Call], Call]:
    """What stands around the functions of the row of this name: it takes arrays for values, and writes the outputs."""
    names, count, _ = called_with(name)

    def around(word: str, function: Call) -> Call:
        return _making(backend, function) if word == SIMPLE else _kernel(backend, name, function, len(names), count)

    return around


def _kernel(backend: FunctionalBackend, name: str, function: Call, given: int, count: int) -> Call:
    alone = _making(backend, function)

    def kernel(*args: Any) -> Any:
        if len(args) < given or not count:
            return alone(*args)
        outs = args[len(args) - count :]
        values = [values_in(a) for a in args[: len(args) - count]]
        made = function(*values, *[Wanted(out.shape, out.dtype, out.memory.device) for out in outs])
        made = made if isinstance(made, (tuple, list)) else (made,)
        if len(made) != count:
            raise errors.too_few_values(name, backend.name, function, len(made), count)
        # All are looked at before the first is written: a row that fails changes nothing.
        fitted = [_fitted(backend, name, function, value, out) for value, out in zip(made, outs, strict=True)]
        for value, out in zip(fitted, outs, strict=True):
            out.write(value)
        return None

    kernel.__wrapped__ = function  # type: ignore[attr-defined]  # so that `explain` names the function that computes
    return kernel


def _making(backend: FunctionalBackend, function: Call) -> Call:
    """A function of values as one of arrays, whose results are new arrays on the device of one that it is given."""
    function, as_array = backend.in_kernel_context(function), backend.as_array

    def made(*args: Any) -> Any:
        values, place = [], None
        for given in args:  # no comprehensions: their frames are a tenth of the time of a small call
            if given.__class__ is FunctionalArray:
                place = given.memory.device
                values.append(given.value())
            else:
                values.append(values_in(given))
        made = function(*values)
        if made is NotImplemented:
            return made
        return [as_array(each, place) for each in made] if isinstance(made, (tuple, list)) else as_array(made, place)

    return made


def _fitted(backend: FunctionalBackend, name: str, function: Call, value: Any, out: FunctionalArray) -> Any:
    """A row's value as the output needs it."""
    value = backend.as_value(value)
    found = backend.dtype_of_value(value)
    if tuple(value.shape) != out.shape:
        raise errors.changed(name, backend.name, function, (out.shape, out.dtype.name), (tuple(value.shape), found.name))
    return value if found is out.dtype else backend.converted(value, out.dtype)
