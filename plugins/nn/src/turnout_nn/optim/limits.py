"""The limits of hyperparameters. What is outside raises ArgumentError, which is a ValueError; what is no number CallError."""

from __future__ import annotations

from typing import Any

from turnout import Tensor
from turnout.errors import ArgumentError, CallError


def at_least(owner: object, least: float = 0.0, /, **values: Any) -> None:
    """Each value is at least this number; a tensor has one element."""
    for name, value in values.items():
        _check_single(owner, name, value)
        if not value >= least:
            raise ArgumentError(f"{_named(owner)}: {name} must be at least {least:g}, got {_shown(value)}")


def at_most(owner: object, most: float, /, **values: Any) -> None:
    """Each value is at most this number."""
    for name, value in values.items():
        _check_single(owner, name, value)
        if not value <= most:
            raise ArgumentError(f"{_named(owner)}: {name} must be at most {most:g}, got {_shown(value)}")


def decays(owner: object, betas: Any) -> None:
    """The decays of averages, each at least 0 and less than 1."""
    if not isinstance(betas, (tuple, list)):
        raise CallError(f"{_named(owner)}: betas must be a tuple of numbers, got {betas!r}")
    for i, beta in enumerate(betas):
        _check_single(owner, f"betas[{i}]", beta)
        if not 0.0 <= beta < 1.0:
            raise ArgumentError(f"{_named(owner)}: betas[{i}] must be at least 0 and less than 1, got {_shown(beta)}")


def real(owner: object, parameter: Tensor) -> None:
    """A parameter is not complex."""
    require(owner, not parameter.is_complex(), "complex parameters are not supported")


def require(owner: object, holds: bool, text: str) -> None:
    """What a text says, with the values in it."""
    if not holds:
        raise ArgumentError(f"{_named(owner)}: {text}")


def _check_single(owner: object, name: str, value: Any) -> None:
    if not hasattr(value, "__float__"):
        raise CallError(f"{_named(owner)}: {name} must be a number or a tensor of one element, got {value!r}")
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ArgumentError(f"{_named(owner)}: {name} must be a number or a tensor of one element, got shape {list(value.shape)}")


def _named(owner: object) -> str:
    return type(owner).__name__


def _shown(value: Any) -> str:
    return f"{float(value):g}"
