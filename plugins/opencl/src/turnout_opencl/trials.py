"""What a child of `tuning` runs: functions in vectors of one width, timed with pieces of several lengths."""

from __future__ import annotations

import sys
import time

import pyopencl as cl

from turnout.dtypes import float32
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import fill
from turnout_opencl.devices import ClDevice
from turnout_opencl.pointwise import run_map
from turnout_opencl.threads import on_own_cores
from turnout_opencl.tuning import PIECES, PLAIN, Plan

_TRIED = ("exp", "log", "sin", "tanh", "erf")  # the first one is timed
_ELEMENTS = 1 << 20


def measure(platform: int, device: int, width: int) -> None:
    """In a child: print the seconds of each length of pieces."""
    with on_own_cores():
        found = cl.get_platforms()[platform].get_devices()[device]
    place = ClDevice(found, 0)
    x = new_array(place, (_ELEMENTS,), float32)
    y = new_array(place, (_ELEMENTS,), float32)
    place.plan = PLAIN._replace(vector=width)
    fill(x, 0.5)
    for name in _TRIED:
        run_map(name, y, x)
    place.finish()
    for piece in PIECES:
        place.plan = Plan(piece, PLAIN.group, width)
        sys.stdout.write(f"{min(_seconds(y, x) for _ in range(5))}\n")


def _seconds(y: ClArray, x: ClArray) -> float:
    start = time.perf_counter()
    run_map(_TRIED[0], y, x)
    y.place.finish()
    return time.perf_counter() - start
