"""`turnout.cuda`: devices of type "cuda", under PyTorch's names: which there are, streams and events, memory, recorded work.

What a program asks before it chooses a device answers without a package for the device, too: the four functions here. All other
names are members that the package adds.
"""

from __future__ import annotations

from turnout.config.effects import effect
from turnout.errors import TurnoutError
from turnout_aten.functions.docstrings import describe
from turnout_aten.tensor.devices import device as device_named
from turnout_aten.tensor.random import default_generator

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]
__dir__ = __all__.copy


def is_available() -> bool:
    """Whether tensors can be made on the device "cuda": a package for it is installed, works, and finds a device.

    Example:
        >>> device = "cuda" if turnout.cuda.is_available() else "cpu"
        >>> turnout.ones(2, device=device).sum().item()
        2.0
    """
    return device_count() > 0


def device_count() -> int:
    """The number of devices of type "cuda"; 0 where there is no package for them, or where it does not work.

    Example:
        >>> turnout.cuda.device_count() >= 0
        True
    """
    try:
        return device_named("cuda").backend.device_count()
    except TurnoutError:
        return 0


def manual_seed(seed: int) -> None:
    """Restart the default generator of the current device from a seed; without a device it does nothing.

    Example:
        >>> turnout.cuda.manual_seed(0)
    """
    effect("turnout.cuda.manual_seed()")
    if is_available():
        default_generator("cuda").manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Restart the default generators of all devices of type "cuda" from a seed; without a device it does nothing.

    Example:
        >>> turnout.cuda.manual_seed_all(0)
    """
    effect("turnout.cuda.manual_seed_all()")
    for index in range(device_count()):
        default_generator(f"cuda:{index}").manual_seed(seed)


describe(globals(), seed="the seed, an int")
