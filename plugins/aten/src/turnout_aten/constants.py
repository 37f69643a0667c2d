"""Constants under PyTorch's names: numbers, layouts and memory formats."""

from __future__ import annotations

from enum import StrEnum, auto
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

newaxis = None


class _Named(StrEnum):
    """A name that is shown as the constant that it is. Each equals its text, so a string serves as well."""

    def __repr__(self) -> str:
        return f"turnout.{self.value}"


class memory_format(_Named):
    """The orders in which elements lie in memory, for `memory_format=`. Each equals its name, so a string serves as well.

    Arguments:
        value: the name of a format

    Example:
        >>> turnout.memory_format("channels_last")
        turnout.channels_last
    """

    contiguous_format = auto()
    preserve_format = auto()
    channels_last = auto()
    channels_last_3d = auto()


class layout(_Named):
    """The ways to store elements, for `layout=`: `strided`, as no other one exists. It equals its name.

    Arguments:
        value: the name of a layout

    Example:
        >>> turnout.layout("strided"), turnout.ones(2).layout is turnout.strided
        (turnout.strided, True)
    """

    strided = auto()


contiguous_format = memory_format.contiguous_format
preserve_format = memory_format.preserve_format
channels_last = memory_format.channels_last
channels_last_3d = memory_format.channels_last_3d
strided = layout.strided

# The dims of a memory format, slowest first.
MEMORY_FORMATS: dict[str, tuple[int, ...]] = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}
