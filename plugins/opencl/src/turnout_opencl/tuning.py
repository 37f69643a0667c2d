"""How a device walks through large arrays. It is measured once per device, in processes of their own, and kept in a file.

Not every compiler of a CPU's driver takes vectors of all widths: some stop the process. So each width is tried by a child, and
a width whose child fails is not used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyopencl as cl

VERSION = 1  # of what is measured
_WIDTHS = (8, 4, 1)
PIECES = (1024, 4096, 16384)
_SECONDS = 60  # for a child


class Plan(NamedTuple):
    """How loops are cut up.

    piece   elements that a work-item walks through
    group   work-items of a group
    vector  elements of the vectors in which functions are computed
    """

    piece: int
    group: int
    vector: int


_SPREAD = Plan(1, 64, 1)  # neighbouring work-items read neighbouring elements, as GPUs want it
PLAIN = Plan(4096, 8, 1)  # a core walks through memory


def plan_for(device: cl.Device) -> Plan:
    """The plan of a device: that of its file, or a measured one."""
    if not device.type & cl.device_type.CPU:
        return _SPREAD
    path, name = _file(), f"{VERSION} {device.platform.name} {device.name} {device.driver_version}"
    kept = _read(path)
    if name not in kept:
        kept[name] = _measured(device)
        _write(path, kept)
    return PLAIN._replace(piece=kept[name][0], vector=kept[name][1])


def _file() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnout" / "opencl.json"


def _read(path: Path) -> dict[str, tuple[int, int]]:
    """What the file holds; a damaged one holds nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(k): (PIECES[PIECES.index(a)], _WIDTHS[_WIDTHS.index(b)]) for k, (a, b) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(path: Path, kept: dict[str, tuple[int, int]]) -> None:
    """Replace the file; where it cannot be written, the next process measures again."""
    new = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(kept), encoding="utf-8")
        new.replace(path)
    except OSError:
        return


def _measured(device: cl.Device) -> tuple[int, int]:
    """The fastest piece and width of those whose child came to its end."""
    place = cl.get_platforms().index(device.platform), device.platform.get_devices().index(device)
    times: dict[tuple[int, int], float] = {}
    for width in _WIDTHS:
        code = f"from turnout_opencl.trials import measure; measure({place[0]}, {place[1]}, {width})"
        try:
            ran = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=_SECONDS, check=True)
            times |= {(piece, width): t for piece, t in zip(PIECES, map(float, ran.stdout.split()), strict=True)}
        except (OSError, subprocess.SubprocessError, ValueError):
            continue
        if width > 1:
            break  # wider vectors are never slower
    return min(times, key=lambda each: times[each]) if times else (PLAIN.piece, 1)
