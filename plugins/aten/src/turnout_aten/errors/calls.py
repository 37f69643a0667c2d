"""Texts of the errors of public functions and named results."""

from __future__ import annotations


def wrong_result_count(name: str, fields: tuple[str, ...], given: int) -> str:
    """A named result made from a sequence of another length."""
    return f"{name}: takes a sequence of {len(fields)} values ({', '.join(fields)}), got {given}"


def unexpected_keyword(function: str, name: str) -> str:
    """A keyword that a public function does not take, or a second name of an argument that is given already."""
    return f"{function}: got an unexpected keyword argument '{name}'"
