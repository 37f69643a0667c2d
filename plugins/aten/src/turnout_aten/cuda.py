"""`turnout.cuda`: whether there are devices of type "cuda", and how many.

Programs ask this before they choose a device. Both functions answer without a package for the device, too.
"""

from __future__ import annotations

from turnout.errors import TurnoutError
from turnout_aten.tensor.devices import device as device_named

__all__ = ["device_count", "is_available"]
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
