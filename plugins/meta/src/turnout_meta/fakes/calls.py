"""What a call with fake tensors runs.

The key Fake stands above the backends and below everything that records or transforms. The tensors and devices of a call are
admitted to its mode; then the kernel of Meta runs, under the key set in which Meta stands for the backend of the tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.devices import Device, default_device
from turnout.errors import CallError, NoDataError, TurnoutError
from turnout.guards import restore
from turnout.keys import KEYS, UNDEFINED
from turnout.library.fake import missing
from turnout.operators.kernels import ARRAY, INTERNAL, Kernel
from turnout.operators.placement import mixed, one_device
from turnout.operators.values import tensors_in
from turnout.state import included
from turnout_aten.tensor.devices import fake_mode
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.tensor import Tensor
from turnout_meta.fakes import errors
from turnout_meta.fakes.devices import FAKE, FakeDevice
from turnout_meta.symbols.sizes import ASSUMED, SymInt, representative

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator
    from turnout.schema import Argument
    from turnout_meta.fakes.mode import FakeMode

    Call = Callable[..., Any]

LABEL = "the kernel of Meta, for fake tensors"

_SELECT = KEYS.bit("BackendSelect")
_ON_META = KEYS.bit("Dense") | KEYS.backend_bit("Meta")


def specialize(op: Operator) -> Kernel:
    """The kernel of an operator at Fake: that of Meta, in the mode of the call."""
    entry = op.entry("Meta")
    if entry is None and op.entry(UNDEFINED) is None:
        absent = missing(op)
        return Kernel(in_mode(op, absent.fn), INTERNAL, label=absent.label)
    # A structured operator: numbers mixed with tensors decide dtypes, and nothing else.
    structured = entry is not None and entry.kernel.form == ARRAY

    def run_on_meta(ks: int, *args: Any) -> Any:
        ks &= ~(FAKE | _SELECT | KEYS.backend_mask)
        return op.lookup(ks | _ON_META)(ks | _ON_META, *args)

    return Kernel(in_mode(op, run_on_meta, structured=structured), INTERNAL, label=LABEL)


def in_mode(op: Operator, call: Call, *, checks_result: bool = False, structured: bool = False) -> Call:
    """`call`, a function of the internal convention, with admitted arguments and in the mode that they belong to."""
    arguments = op.schema.arguments
    place = (
        None
        if op.schema.takes_tensors
        else next((i for i, a in enumerate(arguments) if a.type.canonical.rstrip("?") == "Device"), None)
    )
    numbers = [structured and a.type.canonical.startswith("Scalar") for a in arguments]

    def call_in_mode(ks: int, *args: Any) -> Any:
        mode = _mode_of(args)
        active: Any = fake_mode()
        given = [_admitted(op, mode, a, v, n) for a, v, n in zip(arguments, args, numbers, strict=True)]
        if place is not None and given[place] is None:
            given[place] = mode.device(default_device())
        backends = KEYS.backends_in(ks)
        if op.device_check and backends:
            if len(backends) > 1:
                return _moved(op, ks, given)
            if len(given) > 1 and any(t.device.backend.indexed for t in tensors_in(given)):
                one_device(op, tuple(given))
        before = ASSUMED.get()
        try:
            ASSUMED.set(())
            if active is mode and included(FAKE):
                result = call(ks, *given)
            else:
                with mode:
                    result = call(ks, *given)
        except TurnoutError as error:
            if ASSUMED.get() and not isinstance(error, NoDataError):
                raise ASSUMED.get()[-1].undecided() from error
            raise
        finally:
            try:
                ASSUMED.set(before)
            except MemoryError:
                restore(ASSUMED, before)
        if checks_result:
            _check_fake(op, mode, result)
        return result

    return call_in_mode


def _moved(op: Operator, ks: int, args: list[Any]) -> Any:
    return mixed(op)(ks | FAKE, *args)


def _mode_of(args: tuple[Any, ...]) -> FakeMode:
    """The mode of the call's fake tensors; when there are none, that of a device or that of the context."""
    for value in tensors_in(args):
        mode = _own_mode(value)
        if mode is not None:
            return mode
    for value in args:
        if isinstance(value, FakeDevice):
            return value.backend.mode
    active: Any = fake_mode()
    if active is None:
        raise CallError(errors.NO_MODE)
    return active


def _own_mode(value: Any) -> FakeMode | None:
    place = value.device if isinstance(value, Tensor) else None
    return place.backend.mode if isinstance(place, FakeDevice) else None


def _admitted(op: Operator, mode: FakeMode, argument: Argument, value: Any, is_number: bool) -> Any:
    """An argument as kernels of the mode take it."""
    if value.__class__ is int or value is None:
        return value
    if isinstance(value, Tensor):
        return _admitted_tensor(op, mode, argument.name, value)
    if isinstance(value, (list, tuple)):
        return type(value)([_admitted(op, mode, argument, each, is_number) for each in value])
    if isinstance(value, Device):
        return mode.device(value)
    if isinstance(value, Generator):
        return mode.generator(value.device)
    # What number it is decides nothing about the result's shape and dtype, so a symbol becomes one of its values.
    return representative(value) if is_number and isinstance(value, SymInt) else value


def _admitted_tensor(op: Operator, mode: FakeMode, name: str, tensor: Tensor) -> Tensor:
    place = tensor.device
    if isinstance(place, FakeDevice):
        if place.backend.mode is not mode:
            raise CallError(errors.two_modes(op, name))
        return tensor
    if not mode.allow_non_fake_inputs:
        shown = f"Tensor {tensor.dtype.name} {list(tensor.shape)} on {tensor.device}"
        raise CallError(errors.real_input(op, name, shown))
    return mode.from_tensor(tensor)


def _check_fake(op: Operator, mode: FakeMode, result: Any) -> None:
    for tensor in tensors_in(result if isinstance(result, (list, tuple)) else (result,)):
        if isinstance(tensor, Tensor) and _own_mode(tensor) is not mode:
            raise CallError(errors.real_result(op))
