"""What tests of the compiled call path ask: how many calls it takes, what a debugger sees, what is left in memory."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def taken(counter: Callable[[], int], call: Callable[[], Any]) -> int:
    """How far a counter goes at the second run of a call: the first one compiles what it calls."""
    call()
    before = counter()
    call()
    return counter() - before


def watched(call: Callable[[], Any]) -> Any:
    """What a call gives where a debugger watches, and all that it calls is Python's."""
    sys.setprofile(lambda *_: None)
    try:
        return call()
    finally:
        sys.setprofile(None)


def seen(call: Callable[[], Any]) -> list[Any]:
    """The code of the functions that a debugger sees in a call."""
    codes: list[Any] = []
    sys.setprofile(lambda frame, event, _: codes.append(frame.f_code) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return codes


def blocks_left_by(work: Callable[[], Any], rounds: int = 300) -> int:
    """How many blocks of memory some rounds leave behind, after two times as many that fill what is kept."""
    before = 0
    for _ in range(3):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(rounds):
            work()
    gc.collect()
    return sys.getallocatedblocks() - before
