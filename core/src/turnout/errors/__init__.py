"""Every error class a user can meet. Texts are built by the modules beside this one, one per concern.

Each class is also a builtin exception, so that code which knows nothing of Turnout can catch it by kind. Classes whose
kind follows PyTorch (shape errors are RuntimeError, bad dims IndexError) say so in their bases.
"""

from __future__ import annotations


class TurnoutError(Exception):
    """The common ancestor."""


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
    """A value was asked for of a tensor that has none, such as one of a backend without data."""


class UnknownOperatorError(TurnoutError, AttributeError):
    """An operator, overload or namespace that nobody defined."""


class PublicNameError(TurnoutError, AttributeError):
    """A public name of `turnout` that no installed plugin provides."""


class StaleOperatorError(TurnoutError, RuntimeError):
    """A handle to an operator whose definition was undone."""


class RegistrationError(TurnoutError, RuntimeError):
    """A registration that cannot be accepted; the registry is as it was before."""


class ConflictError(RegistrationError):
    """Two libraries claim the same operator and key, or the same name."""


class UniverseError(TurnoutError, ValueError):
    """A key, alias or functionality that is unknown, placed in a cycle, or of the wrong kind."""


class DeviceError(TurnoutError, RuntimeError):
    """Tensors of two devices in one call, or a device that does not exist."""


class ArgumentError(TurnoutError, ValueError, RuntimeError):
    """A value that an operator does not take: a RuntimeError to code that was written for PyTorch."""


class DTypeError(TurnoutError, TypeError, RuntimeError):
    """A dtype that an operator or a promotion does not support: a RuntimeError to code that was written for PyTorch."""


class ShapeError(TurnoutError, RuntimeError):
    """Shapes that do not fit the operator."""


class LinAlgError(TurnoutError, RuntimeError):
    """A matrix that is singular, not positive-definite, or on which an algorithm does not converge."""


class DimError(TurnoutError, IndexError, RuntimeError):
    """A dimension or index out of range; PyTorch raises an IndexError for some and a RuntimeError for others."""


class AliasError(TurnoutError, RuntimeError):
    """A write that views, overlap or saved tensors forbid."""


class FileFormatError(TurnoutError, ValueError):
    """A file of saved tensors that is damaged, or no such file."""


class PluginError(TurnoutError, ImportError):
    """A plugin that was asked for cannot be activated."""


class ManifestError(TurnoutError, ValueError):
    """A plugin's manifest is missing, incomplete or says what is not so."""


class ConfigError(TurnoutError, ValueError):
    """A setting with an unknown name or a value of the wrong type."""


class DisabledError(TurnoutError, RuntimeError):
    """Something was asked for that the configuration disables."""


class KernelWarning(RuntimeWarning):
    """A backend's kernel raised for arguments that its operator accepts; the result was computed in another way."""


class PluginWarning(UserWarning):
    """A plugin that nobody asked for is broken, or a shared file names one that is not installed."""
