"""Tangent rules."""


def rule(op):
    return None
