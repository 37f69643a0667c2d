"""Derivatives along tangents: arguments that have none."""

from __future__ import annotations


def not_implemented(name: str, argument: str, reason: str) -> str:
    why = f": {reason}" if reason else ""
    return (
        f"{name}: no derivative along a tangent of '{argument}' is implemented{why}\n"
        f"  to fix  pass {argument}.detach(), which has no tangent"
    )
