"""The scale of attention."""

from __future__ import annotations

from math import sqrt


def default_scale(width: int) -> float:
    """The factor of products of queries and keys of that length, where a call names none."""
    return 1 / sqrt(width) if width else 1.0
