"""Random numbers: `Generator` (a seed and an offset) and the default generator of each device.

A random operator reserves as many 64-bit words as it needs and asks the backend for the bits of (seed, offset). The bits are
a pure function of both, so results do not depend on thread timing or on the backend. Reserving is the only change of state.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from turnout.config.effects import effect
from turnout.config.lock import new_lock
from turnout.errors import CallError
from turnout.operators.tracebacks import shortening
from turnout.registry import REGISTRY
from turnout_aten.tensor.devices import FAKE_MODE
from turnout_aten.tensor.devices import device as device_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from turnout.devices import Device

    State = tuple[int, int]

_LOCK = new_lock()
WORD = (1 << 64) - 1  # the largest word
SPAN = 1 << 32  # up to this many integers, the remainder of 63 bits prefers some by less than 2**-31
_DEFAULT_SEED = 67280421310721  # the seed of every process, so that a program that sets no seed is reproducible


class Generator:
    """A source of random numbers for tensors on one device.

    device  the device on which its numbers are made
    keys    the backend's bit: a call with a generator runs on that generator's device
    """

    __module__ = "turnout"
    __slots__ = ("_offset", "_seed", "device")
    __unwrapped__ = ("reserve",)  # each random call has one
    schema_type = "Generator"

    def __init__(self, device: str | Device = "cpu") -> None:
        named = device_named(device)
        self.device = named.backend.resolve_device(named)
        self._seed = _DEFAULT_SEED
        self._offset = 0

    @property
    def keys(self) -> int:
        """The key set that the generator brings to a call: the bit of its device's backend."""
        keys = REGISTRY.keys
        return keys.backend_bit(self.device.backend.name) | keys.bit("Dense")

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a seed. Any int is valid; a negative one counts back from 2**64. Returns self."""
        effect("Generator.manual_seed()")
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise CallError(f"manual_seed: argument 'seed' must be an int, got {type(seed).__name__}")
        with _LOCK:
            self._seed, self._offset = seed.__index__() & WORD, 0
        return self

    def seed(self) -> int:
        """Restart from a seed taken from the operating system. Returns the seed."""
        fresh = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(fresh)
        return fresh

    def initial_seed(self) -> int:
        """The seed from which the generator started."""
        effect("Generator.initial_seed()")
        return self._seed

    def reserve(self, count: int) -> State:
        """The (seed, offset) of `count` words, reserved for the caller."""
        with _LOCK:
            offset = self._offset
            self._offset = (offset + count) & WORD
            return self._seed, offset

    def get_state(self) -> State:
        """The state as `set_state` accepts it: (seed, offset)."""
        effect("Generator.get_state()")
        with _LOCK:
            return self._seed, self._offset

    def set_state(self, state: State) -> Generator:
        """Continue from a state that `get_state` returned. Returns self."""
        effect("Generator.set_state()")
        parts = state if isinstance(state, (tuple, list)) else ()
        if len(parts) != 2 or not all(isinstance(part, int) and 0 <= part <= WORD for part in parts):
            raise CallError(f"set_state: expected a state from get_state(), two ints of 64 bits; got {state!r}")
        with _LOCK:
            self._seed, self._offset = state
        return self

    def clone_state(self) -> Generator:
        """A new generator in the same state."""
        return Generator(self.device).set_state(self.get_state())

    def __repr__(self) -> str:
        return f"<Generator on {self.device}: seed {self._seed}, offset {self._offset}>"

    def __reduce__(self) -> tuple[object, tuple[str, State]]:
        return (_restore, (str(self.device), self.get_state()))


def _restore(device: str, state: State) -> Generator:
    return Generator(device).set_state(state)


_DEFAULTS: dict[Device, Generator] = {}
_PROCESS_SEED = [_DEFAULT_SEED]


def default_generator(device: str | Device = "cpu") -> Generator:
    """The generator that random operators on a device use by default."""
    if not isinstance(device, str) and not FAKE_MODE.get():
        known = _DEFAULTS.get(device)
        if known is not None and known.device is device:
            return known
    named = device_named(device)
    mode = named.backend.fake_mode
    if mode is not None:
        return mode.generator(named)
    named = named.backend.resolve_device(named)
    found = _DEFAULTS.get(named)
    if found is None:
        with _LOCK:
            found = _DEFAULTS.setdefault(named, (named.backend.generator_type or Generator)(named))
            found._seed = _PROCESS_SEED[0]
    return found


def default_generator_states() -> dict[Device, State]:
    """The state of the default generator of every device that has one."""
    return {device: generator.get_state() for device, generator in list(_DEFAULTS.items())}


def set_default_generator_states(states: dict[Device, State]) -> None:
    """Continue from what `default_generator_states` returned; a generator that is newer restarts from the seed of the process."""
    for device, generator in list(_DEFAULTS.items()):
        generator.set_state(states.get(device, (_PROCESS_SEED[0], 0)))


@shortening
def manual_seed(seed: int) -> Generator:
    """Restart the default generators of all devices from a seed, including generators that do not exist yet.

    Returns the default generator of the default device.

    Arguments:
        seed: the seed, an int

    Example:
        >>> g = turnout.manual_seed(0)
        >>> x = turnout.rand(2)
        >>> g = turnout.manual_seed(0)
        >>> turnout.equal(x, turnout.rand(2))
        True
    """
    effect("manual_seed()")
    from turnout.devices import default_device

    first = default_generator(default_device()).manual_seed(seed)
    with _LOCK:
        _PROCESS_SEED[0] = first._seed
    for generator in list(_DEFAULTS.values()):
        generator.manual_seed(seed)
    return first


def initial_seed() -> int:
    """The seed from which the default generators started.

    Example:
        >>> g = turnout.manual_seed(3)
        >>> turnout.initial_seed()
        3
    """
    effect("initial_seed()")
    return _PROCESS_SEED[0]


def seed() -> int:
    """Restart the default generators from a seed taken from the operating system. Returns the seed.

    Example:
        >>> turnout.seed() == turnout.initial_seed()
        True
    """
    effect("seed()")
    fresh = int.from_bytes(os.urandom(8), "little")
    manual_seed(fresh)
    return fresh


def get_rng_state() -> State:
    """The state of the default generator of the default device, as `set_rng_state` accepts it.

    # differs from torch: `get_rng_state` gives a seed and an offset, two ints, not a tensor of bytes.

    Example:
        >>> g = turnout.manual_seed(3)
        >>> turnout.get_rng_state()
        (3, 0)
    """
    effect("get_rng_state()")
    from turnout.devices import default_device

    return default_generator(default_device()).get_state()


@shortening
def set_rng_state(new_state: State) -> None:
    """Continue with the default generator of the default device from a state. Raises CallError for anything else.

    Arguments:
        new_state: what `get_rng_state` returned

    Example:
        >>> state = turnout.get_rng_state()
        >>> x = turnout.rand(2)
        >>> turnout.set_rng_state(state)
        >>> turnout.equal(x, turnout.rand(2))
        True
    """
    effect("set_rng_state()")
    from turnout.devices import default_device

    default_generator(default_device()).set_state(new_state)


def fork_rng(devices: Iterable[str | Device] | None = None, enabled: bool = True) -> AbstractContextManager[None]:
    """A block after which the default generators continue as if it had drawn nothing, and with the seed of before.

    Arguments:
        devices: the devices whose generators are meant, beside `cpu`; None means all
        enabled: False makes it do nothing

    Example:
        >>> g = turnout.manual_seed(0)
        >>> with turnout.random.fork_rng():
        ...     x = turnout.rand(2)
        >>> turnout.equal(x, turnout.rand(2))
        True
    """
    effect("fork_rng()")
    return _forked(devices) if enabled else nullcontext()


@contextmanager
def _forked(devices: Iterable[str | Device] | None) -> Iterator[None]:
    states, seed = default_generator_states(), _PROCESS_SEED[0]
    chosen = None if devices is None else {default_generator(each).device for each in ("cpu", *devices)}
    try:
        yield
    finally:
        with _LOCK:
            _PROCESS_SEED[0] = seed
        now = {} if chosen is None else default_generator_states()
        kept = {device: state for device, state in now.items() if chosen is not None and device not in chosen}
        set_default_generator_states(states | kept)
