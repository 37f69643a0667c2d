"""Gradients of dropout."""

from __future__ import annotations


def dropout_scale(p: float, train: bool | None) -> float:
    """What kept elements were multiplied by."""
    return 1.0 if train is False else 0.0 if p == 1 else 1 / (1 - p)
