"""The sets of instructions that compiled kernels have, and those of them that this processor has."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

ALL = ("generic", "avx2", "avx512")


@cache
def available() -> list[str]:
    """Those that can be chosen. Combinations with others are made of these, so that no processor leaves any out."""
    from turnout_kernels import native

    found = []
    for name in ALL:
        with suppress(ValueError):
            found.append(native.choose_instructions(name))
    native.choose_instructions("")
    return found
