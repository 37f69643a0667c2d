"""How a device walks through large arrays. It is measured once per device, in processes of their own, and kept in a file.

Not every compiler of a CPU's driver takes vectors of all widths: some stop the process. So each width is tried by a child, and
a width whose child fails is not used. The length of pieces changes no bits. The width can change the last one, so the compiler
alone decides about it: a child that found no time or no memory says nothing. A child imports nothing from the working directory.
The file is in a folder of the user's, and only one that this user owns is read; whatever else stands there is as good as no file.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pyopencl as cl

from turnout.config.tuples import NamedTuple
from turnout_aten.files import cache_path, is_ours

VERSION = 1  # of what is measured
_WIDTHS = (8, 4, 1)
PIECES = (1024, 4096, 16384)
_SECONDS = 60  # for a child
_FROM_OUTSIDE = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))  # signals that no compiler sends to itself
_LARGEST = 1 << 20  # bytes of a file that is read


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
    path, name = cache_path("opencl.json"), f"{VERSION} {device.platform.name} {device.name} {device.driver_version}"
    kept = _read(path)
    if name not in kept:
        found = _measured(device)
        if found is None:  # another process may have more luck
            return PLAIN
        kept[name] = found
        _write(path, kept)
    return PLAIN._replace(piece=kept[name][0], vector=kept[name][1])


def _read(path: Path | None) -> dict[str, tuple[int, int]]:
    """What the file holds; one that is damaged, a link or another user's holds nothing."""
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8", opener=_opened) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LARGEST or not is_ours(facts):
                return {}
            found = json.load(file)
        return {str(k): (PIECES[PIECES.index(a)], _WIDTHS[_WIDTHS.index(b)]) for k, (a, b) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _opened(path: str, flags: int) -> int:
    """Open no link, and wait for no one to write into a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _write(path: Path | None, kept: dict[str, tuple[int, int]]) -> None:
    """Replace the file, also a link of its name; where it cannot be written, the next process measures again."""
    if path is None:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new, name = tempfile.mkstemp(dir=path.parent)
        try:
            with open(new, "w", encoding="utf-8") as file:
                json.dump(kept, file)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        return


def _measured(device: cl.Device) -> tuple[int, int] | None:
    """The fastest piece of the widest vectors that the compiler takes; None where a child was not heard to its end."""
    place = cl.get_platforms().index(device.platform), device.platform.get_devices().index(device)
    for width in _WIDTHS:
        code = f"from turnout_opencl.trials import measure; measure({place[0]}, {place[1]}, {width})"
        try:
            ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, timeout=_SECONDS, check=True)
            times = dict(zip(PIECES, map(float, ran.stdout.split()), strict=True))
        except subprocess.CalledProcessError as error:
            if -error.returncode in _FROM_OUTSIDE:
                return None
        except (OSError, subprocess.SubprocessError, ValueError):
            return None
        else:
            return min(times, key=lambda each: times[each]), width  # wider vectors are never slower
    return None
