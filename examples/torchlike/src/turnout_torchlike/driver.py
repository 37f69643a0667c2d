"""Stands for your device's library: nothing reaches the memory behind a handle but these calls."""

import ctypes
from collections.abc import Iterable
from typing import Any


class Handle:
    """A new block of memory with these bytes. It is freed with its handle."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._block = (ctypes.c_char * len(data)).from_buffer_copy(data)


def download(handle: Handle) -> bytes:
    """All bytes of a block."""
    return handle._block.raw


def load(handle: Handle, kind: Any, places: Iterable[int]) -> list[Any]:
    """The elements at these places of a block; `kind` is their C type."""
    block = ctypes.cast(handle._block, ctypes.POINTER(kind))
    return [block[place] for place in places]


def store(handle: Handle, kind: Any, places: Iterable[int], values: Iterable[Any]) -> None:
    """Write elements. Integers that do not fit wrap around."""
    block = ctypes.cast(handle._block, ctypes.POINTER(kind))
    for place, value in zip(places, values):
        block[place] = value
