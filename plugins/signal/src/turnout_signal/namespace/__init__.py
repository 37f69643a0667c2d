"""`turnout.signal`: `windows`."""

from turnout_signal.namespace import windows

__all__ = ["windows"]
__dir__ = __all__.copy
