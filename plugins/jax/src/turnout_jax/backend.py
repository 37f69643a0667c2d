"""The backend of device `jax`: values are arrays of JAX.

JAX has 64-bit numbers only where its setting `jax_enable_x64` is on, and turns others into 32 bits. Turnout's integers and places
have 64. To switch the setting on for the process would change what other code gets from `jnp.arange(3)`. So each operation on
values switches it on for its own time, in its thread (`wide`), and leaves the program's as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import wraps
from inspect import isfunction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from turnout.devices import Device, device
from turnout.dtypes import DType
from turnout.errors import NoDataError, OutOfMemoryError, TurnoutError
from turnout_arrays import FunctionalArrayBackend
from turnout_aten.tensor.random import Generator

Ints = tuple[int, ...]
MANY = 200  # programs that JAX may keep: 1.5 MB each, however small, and 30 ms to compile it again
COMPILED = "/jax/core/compile/backend_compile_duration"  # the event


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with 64-bit numbers while it runs. To switch the setting takes 0.7 us."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with jax.enable_x64(True):
            return function(*args, **options)

    return run


class DefaultGenerator(Generator):
    """The default generator of a device. While a program is traced that draws, another one stands for it in this context."""

    __slots__ = ()

    def reserve(self, count: int) -> tuple[int, int]:
        """(seed, offset) of so many words."""
        stands_for_it = STANDS_FOR_DEFAULT.get()
        return super().reserve(count) if stands_for_it is None else stands_for_it.reserve(count)


STANDS_FOR_DEFAULT: ContextVar[Generator | None] = ContextVar("turnout_jax.generator", default=None)


class JaxBackend(FunctionalArrayBackend):
    """Arrays of JAX. Where JAX has several devices, they are `jax:0`, `jax:1` and so on."""

    name = "Jax"
    device_type = "jax"
    generator_type = DefaultGenerator
    adopts = jax.Array
    traced = jax.core.Tracer
    array_class: type | None = None  # of arrays that are not traced, from the first one on

    def __init__(self) -> None:
        super().__init__(jnp, jnp.bfloat16)
        self.devices = jax.devices()
        self.indexed = len(self.devices) > 1
        self.compiled = 0  # programs since the cache was emptied, about

    # ---- devices

    def device_count(self) -> int:
        return len(self.devices)

    def guard(self, device: Device) -> AbstractContextManager[object]:
        return jax.default_device(self.devices[device.index or 0])

    def guarded(self, function: Callable[..., Any], device: Device) -> Callable[..., Any]:
        """The function, run with a device as the one where JAX makes what is not tied to another."""

        def run(*args: Any) -> Any:
            with self.guard(device):
                return function(*args)

        return run

    def there(self, value: Any, device: Device) -> Any:
        """A new value on a device.

        It is tied to the device, but for the one where JAX makes what is not tied: with an array that is spread over several
        devices, such a value is spread too, and JAX refuses one that is tied.
        """
        if not self.indexed or isinstance(value, self.traced):
            return value
        wanted = self.devices[device.index or 0]
        return value if wanted == (jax.config.jax_default_device or self.devices[0]) else jax.device_put(value, wanted)

    def device_of_value(self, value: Any) -> Device:
        if not self.indexed or isinstance(value, self.traced):
            return self.current_device()
        return device(self.device_type, min(map(self.devices.index, value.devices())))

    def empty_cache(self) -> None:
        """Forget what JAX has compiled, once it is `MANY` programs: all of it, whoever had it compiled."""
        if self.compiled >= MANY:
            self.compiled = 0
            jax.clear_caches()

    def count(self, event: str, seconds: float, **options: Any) -> None:
        """A listener of JAX: a program was compiled."""
        self.compiled += event == COMPILED

    def error_kind(self, error: Exception) -> type[TurnoutError] | None:
        return OutOfMemoryError if "RESOURCE_EXHAUSTED" in str(error) else None

    # ---- values

    @wide
    def full(self, shape: Ints, dtype: DType, device: Device, number: Any) -> Any:
        native = self.native_dtype(dtype)
        with np.errstate(all="ignore"):  # an integer that does not fit wraps around
            return self.there(jnp.full(shape, np.asarray(number).astype(native), native), device)

    def as_value(self, made: Any) -> Any:
        if made.__class__ is self.array_class:  # to ask for jax.Array takes 0.3 us
            return made
        if not isinstance(made, jax.Array):
            return wide(jnp.asarray)(made)
        if not isinstance(made, self.traced):
            self.array_class = made.__class__
        return made

    def value_to_host(self, value: Any) -> bytes | memoryview:
        if isinstance(value, self.traced):
            raise NoDataError("the elements of a tensor on jax are not known while JAX traces the program (jax.jit, jax.grad)")
        return super().value_to_host(value)

    @wide
    def value_from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        array = np.frombuffer(data, self.native_dtype(dtype)) if len(data) else np.empty(0, self.native_dtype(dtype))
        return self.there(jnp.asarray(array.reshape(shape)), device)

    def item(self, array: Any) -> Any:
        value = array.value()
        return super().item(array) if isinstance(value, self.traced) else value.item()

    # Whatever else computes has 64-bit numbers, too; the rest of the base class asks, or is called by these.
    _ASKS = frozenset(("check_dtype", "dtype_of_value", "frozen", "element_positions", "adopt", "kernel_context"))
    for _name, _method in vars(FunctionalArrayBackend).items():
        if isfunction(_method) and _name not in _ASKS and _name not in locals():
            locals()[_name] = wide(_method)
