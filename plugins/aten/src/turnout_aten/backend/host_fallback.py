"""The host fallback: it runs operators that a backend has no kernel for on another device, and copies the results back.

A backend opts in with `library.fallback(backend.name, host("cpu"))` for all operators, or with `on_host` for one row of its
table. Both copy through `to_host` and `from_host`, so they work for any pair of backends. Every such call is counted: `calls()`
and `report()` list what ran elsewhere; `explain` and `trace_dispatch` say where an operator runs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from turnout import config
from turnout.config.effects import effect
from turnout.config.lock import new_lock
from turnout.devices import Device
from turnout.errors import DTypeError, NoDataError, NoKernelError
from turnout.registry import REGISTRY
from turnout_aten.errors import backends as errors
from turnout_aten.kernels.outputs import check_writable
from turnout_aten.shapes.extents import preserved_strides
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.tensor.devices import TensorDevice

    Boxed = Callable[[Operator, int, tuple[Any, ...]], Any]

__all__ = ["calls", "carried", "host", "on_host", "report", "reset_calls"]
__dir__ = __all__.copy

_LOCK = new_lock()
_CALLS: Counter[tuple[str, str, str]] = Counter()


def host(device_type: str = "cpu", option: str = "") -> Boxed:
    """A boxed fallback for a backend's key.

    The call's tensors are copied to the device, the operator's kernel runs there, and the results are copied back. Mutated
    arguments are written (and resized) back into the original tensors. Devices and generators among the arguments are replaced
    too. A view operator raises NoKernelError, because a copy would not be a view. If the other device has no kernel either, the
    usual NoKernelError names that device.

    Arguments:
        device_type: the device that runs the operators
        option: a setting, such as "plugin.acme.host_fallback", that is read at each call: while it is false, the call is an error

    Example:
        >>> def turnout_activate(library, options):
        ...     library.fallback("Acme", turnout.host_fallback.host("cpu"))
    """

    def run_on_host(op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
        trip = _Trip(op, device_type, args)
        if option and not config.get(option):
            raise NoKernelError(errors.host_switched_off(op.qualified_name, trip.home.backend.name, trip.where.type, option))
        return trip.run()

    # Without a label, a fallback is shown by its function's name.
    while_on = f", while {option} is true" if option else ""
    run_on_host.__name__ = run_on_host.__qualname__ = f"runs on {device_type}, copied there and back{while_on}"
    return run_on_host


def on_host(
    name: str, backend: TensorBackend, place: Callable[[Any], Device], device_type: str = "cpu", option: str = ""
) -> Callable[..., None]:
    """An array kernel for the row `name` of a backend's table: the structured out operator, run on another device.

    The kernel takes the row's arguments and outputs, like any row. Another row may delegate to it for cases that it does not
    implement, such as certain dtypes.

    Arguments:
        name: the row: "exp.out"
        backend: the backend whose table it is for
        place: takes one of the backend's arrays, and returns its device
        device_type: the device that runs the operator
        option: a setting that is read at each call: while it is false, the call is a DTypeError

    Example:
        >>> cpu = turnout.device("cpu")
        >>> turnout.host_fallback.on_host("exp.out", cpu.backend, lambda array: cpu, "meta").__name__
        'exp.out on meta'
    """
    qualified = name if "::" in name else f"aten::{name}"

    def run_row_on_host(*args: Any) -> None:
        op = REGISTRY.find(qualified)
        array_type = backend.array_type
        assert array_type is not None, "a backend with rows on the host names its array_type"

        if option and not config.get(option):
            dtypes = sorted({backend.dtype_of(each).name for each in _flat(args) if isinstance(each, array_type)})
            raise DTypeError(errors.dtypes_switched_off(name, backend.device_type, dtypes, device_type, option))

        def wrapped(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [wrapped(v) for v in value]
            return wrap(value, place(value)) if isinstance(value, array_type) else value

        _Trip(op, device_type, tuple(wrapped(a) for a in args)).run()

    run_row_on_host.__name__ = run_row_on_host.__qualname__ = f"{name} on {device_type}"
    return run_row_on_host


def calls() -> dict[tuple[str, str, str], int]:
    """The number of fallback calls since `reset_calls` for each (operator, device of the call, device that ran it).

    Example:
        >>> turnout.host_fallback.reset_calls()
        >>> turnout.host_fallback.calls()
        {}
    """
    effect("host_fallback.calls()")
    with _LOCK:
        return dict(_CALLS)


def reset_calls() -> None:
    """Reset all counts to 0.

    Example:
        >>> turnout.host_fallback.reset_calls()
    """
    effect("host_fallback.reset_calls()")
    with _LOCK:
        _CALLS.clear()


def report() -> str:
    """The counts as lines, most frequent first; empty if there were no fallback calls.

    Example:
        >>> turnout.host_fallback.reset_calls()
        >>> turnout.host_fallback.report()
        ''
    """
    effect("host_fallback.report()")
    counted = sorted(calls().items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"{n:>8}  {op}  {called} -> {ran}" for (op, called, ran), n in counted)


def carried(tensor: Tensor, where: TensorDevice) -> Tensor:
    """A copy of a tensor on another device, with the same layout if that is dense. Calls no operators.

    Arguments:
        tensor: the tensor
        where: the device

    Example:
        >>> turnout.host_fallback.carried(turnout.tensor([1, 2]), turnout.device("cpu"))
        tensor([1, 2])
    """
    data = tensor.device.backend.to_host(tensor.array)
    backend = where.backend
    made = backend.from_host(data, tensor.array.shape, tensor.dtype, where)
    strides = preserved_strides(tensor)
    if strides is not None and strides != backend.strides(made):
        ordered = backend.empty(tensor.array.shape, tensor.dtype, where, strides)
        backend.copy(ordered, made)
        made = ordered
    return wrap(made, where)


class _Trip:
    """One call on the host: copies to it and back."""

    def __init__(self, op: Operator, device_type: str, args: tuple[Any, ...]) -> None:
        named = device(device_type)
        self.op = op
        self.args = args
        self.where = named.backend.resolve_device(named)
        self.home = _home(args, self.where)
        self.copies: dict[int, Tensor] = {}
        self.generators: list[tuple[Generator, Generator]] = []

    def run(self) -> Any:
        op = self.op
        if op.schema.is_view:
            raise NoKernelError(
                f"{op.qualified_name}: no kernel for {self.home.backend.name}\n"
                f"  a view cannot be made on {self.where} and copied back; the backend must have a kernel for this operator"
            )
        for argument, value in zip(op.schema.arguments, self.args, strict=True):
            if argument.is_write and isinstance(value, Tensor):
                check_writable(op, value.device.backend, value, ())
        try:
            there = tuple(self._sent(a) for a in self.args)
        except NoDataError as error:  # another library traces the program
            raise NoDataError(
                errors.host_without_values(op.qualified_name, self.home.backend.name, str(self.where), error)
            ) from None
        with _LOCK:
            _CALLS[op.qualified_name, self.home.type, self.where.type] += 1
        ks = REGISTRY.keys.mask(self.where.backend.name)
        result = op.lookup(ks)(ks, *there)
        for mine, theirs in self.generators:
            mine.set_state(theirs.get_state())
        written = self._write_back()
        return self._returned(result, written)

    def _sent(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if value.device is self.where:
                return value
            if id(value) not in self.copies:
                self.copies[id(value)] = carried(value, self.where)
            return self.copies[id(value)]
        if isinstance(value, (list, tuple)):
            return type(value)(self._sent(v) for v in value)
        if isinstance(value, Device):
            return self.where if value.type == self.home.type else value
        if isinstance(value, Generator):
            theirs = Generator(str(self.where)).set_state(value.get_state())
            self.generators.append((value, theirs))
            return theirs
        return value

    def _write_back(self) -> dict[int, Tensor]:
        """Copy mutated arguments back into the original tensors. The result maps the id of each copy to its original."""
        originals: dict[int, Tensor] = {}
        for argument, value in zip(self.op.schema.arguments, self.args, strict=True):
            if not argument.is_write:
                continue
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, Tensor) and id(tensor) in self.copies:
                    copy = self.copies[id(tensor)]
                    if copy.shape != tensor.shape:
                        tensor.resize_(copy.shape)
                    backend = tensor.device.backend
                    backend.copy(tensor.array, carried(copy, tensor.device).array)
                    originals[id(copy)] = tensor
        return originals

    def _returned(self, value: Any, written: dict[int, Tensor]) -> Any:
        if isinstance(value, Tensor):
            if id(value) in written:
                return written[id(value)]
            unchanged = next((a for a in self.args if a is value), None)
            return value if unchanged is not None or value.device is not self.where else carried(value, self.home)
        if isinstance(value, (list, tuple)):
            return type(value)(self._returned(v, written) for v in value)
        return value


def _flat(args: Sequence[Any]) -> list[Any]:
    """Arguments, with the elements of lists in their place."""
    return [v for a in args for v in (a if isinstance(a, (list, tuple)) else (a,))]


def _home(args: Sequence[Any], where: TensorDevice) -> TensorDevice:
    """The device of the call: that of the first tensor that is not on the host, else of a device argument."""
    flat = _flat(args)
    for value in flat:
        if isinstance(value, Tensor) and value.device is not where:
            return value.device
    for value in flat:
        if isinstance(value, Device):
            return device(value).backend.resolve_device(value)
    return where
