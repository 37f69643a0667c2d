"""Every error class that a user can meet, and `report` and `near`, by which plugins lay out texts.

The other modules build the texts of core, one module per concern.

Each class is also a builtin exception, so that code without knowledge of Turnout can catch it by kind. Where PyTorch has a kind
(RuntimeError for shapes, IndexError for dims), the bases follow it.
"""

from __future__ import annotations

from turnout.errors.layout import near, printed, report


class TurnoutError(Exception):
    """The base class of all errors of Turnout."""


class SchemaError(TurnoutError, ValueError):
    """A schema text is not valid, or breaks a convention of declared operators."""


class OverloadError(TurnoutError, TypeError):
    """No overload of a packet accepts the arguments of a call."""


class CallError(TurnoutError, TypeError):
    """An argument of a call has the wrong type or the wrong number of values."""


class KernelSignatureError(TurnoutError, TypeError):
    """A Python function cannot be called the way its operator's schema calls it."""


class NoKernelError(TurnoutError, NotImplementedError):
    """No kernel serves the key that a call chose."""


class NoDataError(TurnoutError, NotImplementedError):
    """A value of a tensor without data was needed."""


class DataDependentSizeError(NoDataError):
    """Something needed the value of a size that depends on data."""


class UnknownOperatorError(TurnoutError, AttributeError):
    """An operator, overload or namespace that is not defined."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, obj=None)  # without this, Python adds a name that it knows to the last line of the text


class PublicNameError(TurnoutError, AttributeError):
    """A public name of `turnout` that no installed plugin provides, or whose plugin cannot be activated."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, obj=None)  # the last line is often a command, and Python adds nothing to it then


class StaleOperatorError(TurnoutError, RuntimeError):
    """A handle to an operator whose definition was undone."""


class RegistrationError(TurnoutError, RuntimeError):
    """A registration that cannot be accepted. The registry is unchanged."""


class ConflictError(RegistrationError):
    """Two libraries claim the same operator and key, or the same name.

    `operator` is one that both define, and `definer` the library that did so first; otherwise both are "".
    """

    operator = definer = ""


class UniverseError(TurnoutError, ValueError):
    """A key, alias or functionality that is unknown, placed in a cycle, or of the wrong kind."""


class DeviceError(TurnoutError, RuntimeError):
    """Tensors of two devices in one call, or a device that does not exist."""


class ArgumentError(TurnoutError, ValueError, RuntimeError):
    """A value that an operator does not accept; a RuntimeError, too, for code written for PyTorch."""


class RangeError(ArgumentError, OverflowError):
    """A number that its argument or dtype cannot hold."""


class DataError(CallError, ArgumentError):
    """Data that no tensor can hold, such as a text, or lists of different lengths."""


class ModeError(ArgumentError, NotImplementedError):
    """A mode that a function does not have, or not for so many dimensions."""


class DTypeError(TurnoutError, TypeError, NotImplementedError):
    """A dtype that an operator or a promotion does not support; a RuntimeError, too, for code written for PyTorch."""


class ShapeError(TurnoutError, ValueError, RuntimeError):
    """Shapes that do not fit the operator, for which PyTorch raises RuntimeError or ValueError."""


class LinAlgError(TurnoutError, RuntimeError):
    """A matrix that is singular or not positive-definite, or for which an algorithm does not converge."""


class DimError(TurnoutError, IndexError, RuntimeError):
    """A dimension or index out of range, for which PyTorch raises IndexError or RuntimeError."""


class IndexKindError(DTypeError, DimError):
    """An object in `x[...]` that is not an index, such as a float; an IndexError and a TypeError."""


class OutOfMemoryError(TurnoutError, MemoryError, RuntimeError):
    """A device has no room for an array of this `shape` and `dtype`; they are None where it does not say for which.

    `facts` and `remedy` are what the text has from the device: what its memory is used for, and what it can do.
    """

    shape: tuple[int, ...] | None = None
    dtype: object = None
    operator: str | None = None
    facts: str = ""
    remedy: str = ""


class AliasError(TurnoutError, RuntimeError):
    """A write that views, overlap or saved tensors forbid."""


class FileFormatError(TurnoutError, ValueError):
    """A file that is damaged, or that does not hold saved tensors."""


class PluginError(TurnoutError, ImportError):
    """A plugin that is needed cannot be activated."""


class ManifestError(TurnoutError, ValueError):
    """A plugin's manifest is missing, incomplete or wrong."""


class ConfigError(TurnoutError, ValueError):
    """A setting with an unknown name or a value of the wrong type."""


class DisabledError(TurnoutError, RuntimeError):
    """Something that is needed is disabled by the configuration."""


class KernelWarning(RuntimeWarning):
    """A backend's kernel raised for valid arguments, and the result was computed in another way."""


class ConfigWarning(UserWarning):
    """A project's file of settings that is ignored, because it belongs to another user."""


class PluginWarning(UserWarning):
    """A plugin that is not needed now is broken, or a shared file names a plugin that is not installed."""


__all__ = ["near", "printed", "report", *(name for name, value in list(vars().items()) if isinstance(value, type))]
