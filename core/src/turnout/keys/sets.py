"""`DispatchKeySet`: a key set for users."""

from __future__ import annotations

from collections.abc import Iterable

from turnout.keys.space import KEYS
from turnout.keys.universe import UNDEFINED


class DispatchKeySet(int):
    """A key set as users see it: an int of bits with methods to query, combine and print it. Dispatch itself uses plain ints."""

    def __new__(cls, keys: int | str | Iterable[str] = 0) -> DispatchKeySet:
        return int.__new__(cls, KEYS.mask(keys))

    def has(self, key: str) -> bool:
        """Whether a runtime key or functionality is in the set."""
        bits = KEYS.mask(key)
        return self & bits == bits

    def highest_priority(self) -> str:
        """The runtime key of highest rank, "Undefined" for an empty set."""
        return next((key for key, _ in KEYS.active(self)), UNDEFINED)

    def keys(self) -> list[str]:
        """The runtime keys, highest priority first."""
        return [key for key, _ in KEYS.active(self)]

    def add(self, keys: str | Iterable[str]) -> DispatchKeySet:
        """The set with these keys added."""
        return self | KEYS.mask(keys)

    def remove(self, keys: str | Iterable[str]) -> DispatchKeySet:
        """The set without these functionalities. Their backends stay."""
        return self & ~(KEYS.mask(keys) & ~KEYS.backend_mask)

    def __or__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) | int(other))

    def __and__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) & int(other))

    def __sub__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) & ~int(other))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(KEYS.names(self)) or 'empty'})"
