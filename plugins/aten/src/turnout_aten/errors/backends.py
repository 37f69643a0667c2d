"""The error of a backend that lacks a method."""

from __future__ import annotations

from turnout.errors import TurnoutError


class MissingMethodError(TurnoutError, NotImplementedError):
    """A backend of tensors does not define a method that a call needs."""
