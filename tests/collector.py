"""The collector of cycles, switched off: what reference counts alone free, and which objects are new since then.

With all plugins imported a full collection takes a second, and a list of all objects as long. New objects are few: with the
collector off they are those of its youngest generations.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def collector_off() -> Iterator[None]:
    """No cycle is collected inside the block, but by `collect_new`."""
    gc.disable()
    gc.collect(1)  # what is there already goes into the oldest generation
    try:
        yield
    finally:
        gc.enable()


def new_objects() -> list[Any]:
    """The objects that were made inside the block and are alive."""
    found = gc.get_objects(generation=0)  # without the list itself, which would be a cycle
    found += gc.get_objects(generation=1)
    return found


def collect_new() -> None:
    """Free the cycles among them that were made since the last time."""
    gc.collect(0)
