"""Files that are replaced whole or not at all, and files that are read.

A file is written under another name in the folder of its target, brought to the disk, and renamed. So whoever opens the target
finds what stood there before or what stands there now, and a failure leaves what stood there before.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from turnout.config.effects import effect
from turnout.errors import CallError

if TYPE_CHECKING:
    FilePath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Damaged(ValueError):
    """What a file holds is not what was written there. Whoever reads the file makes a FileFormatError of it."""


def need(condition: bool, what: str) -> None:
    """Raise Damaged, saying what is wrong, unless the condition holds."""
    if not condition:
        raise Damaged(what)


def is_path(value: Any) -> bool:
    """Whether a value names a file: a str, bytes, or path object."""
    return isinstance(value, (str, bytes, os.PathLike))


def require_file(caller: str, value: Any, method: str) -> None:
    """Raise CallError unless a value is a path, or a file object with this method that is not open as text."""
    if not is_path(value) and (isinstance(value, io.TextIOBase) or not hasattr(value, method)):
        kind = type(value).__name__
        raise CallError(f"{caller}: expected a path, or a file that is open in binary mode, got {kind}")


def name_of(file: Any) -> str:
    """A file's name for messages."""
    return os.fsdecode(file) if is_path(file) else str(getattr(file, "name", "the file"))


# ---- writing


def replacing(path: FilePath) -> AbstractContextManager[IO[bytes]]:
    """A file to write, which takes the place of what stands at the path when the block ends without an error.

    A symbolic link stays, and the file it leads to is replaced. A file keeps its mode and, where the system permits that, its
    owner; one that may not be written is not replaced. A device or a pipe is written through. Raises OSError, which names the
    path. Then nothing is left of the new file.
    """
    effect("a file")
    return _replacing(path)


@contextmanager
def _replacing(path: FilePath) -> Iterator[IO[bytes]]:
    given = os.fsdecode(path)
    with _named(given):
        target = os.path.realpath(given)
        before = _state(given)
    if before is not None and not (stat.S_ISREG(before.st_mode) and _has_name(target)):
        with open(given, "wb") as through:
            yield through
        return
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), given)
    # The name is short, whatever the target's is, and no other thread or process has it.
    unfinished = os.path.join(os.path.dirname(target), f".{os.urandom(16).hex()}.part")
    try:
        with _named(given):
            new = open(unfinished, "xb", opener=_private if before is not None else None)  # noqa: SIM115 - closed below
        with new:
            yield new
            with _named(given):
                new.flush()
                if before is not None:
                    _keep(before, unfinished)
                os.fsync(new.fileno())
        with _named(given):
            os.replace(unfinished, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def _state(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _has_name(target: str) -> bool:
    """Whether a file that is there has a name: one behind /dev/stdout may have none any more, of which Linux says this.

    Whether it is there is asked once. Others may replace it at any time, and two answers would be those of two files.
    """
    return not target.endswith(" (deleted)") or os.path.exists(target)


def _private(path: str, flags: int) -> int:
    """Until the new file has the mode of the old one, nobody else may read it."""
    return os.open(path, flags, 0o600)


def _keep(before: os.stat_result, path: str) -> None:
    if hasattr(os, "chown"):
        with suppress(OSError):  # another's file stays readable to those to whom its mode opens it
            os.chown(path, before.st_uid, before.st_gid)
    os.chmod(path, stat.S_IMODE(before.st_mode))


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors name the path that the caller knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def write_text(path: FilePath, text: str) -> None:
    """Write a text as UTF-8 in the way of `replacing`."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


# ---- reading


def reading(file: Any) -> AbstractContextManager[IO[bytes]]:
    """A file to read and to seek in: a path, or a file object that gives bytes. A pipe is read to its end first."""
    effect("a file")
    return _reading(file)


@contextmanager
def _reading(file: Any) -> Iterator[IO[bytes]]:
    if is_path(file):
        with open(os.fsdecode(file), "rb") as opened, _reading(opened) as found:
            yield found
        return
    seekable: Callable[[], bool] | None = getattr(file, "seekable", None)
    if seekable is not None and seekable() and hasattr(file, "seek"):
        yield file
    else:
        yield io.BytesIO(exactly(file, None))


def exactly(file: IO[bytes], size: int | None) -> bytes:
    """The next bytes of a file, or all that follow: a read may give fewer than were asked for. Damaged when it ends before."""
    parts: list[bytes] = []
    left = size
    while left is None or left > 0:
        part = file.read() if left is None else file.read(left)
        if not isinstance(part, (bytes, bytearray, memoryview)):
            raise CallError(f"load: expected a file that is open in binary mode, got {type(part).__name__} from it")
        if not part:
            break
        parts.append(bytes(part))
        left = None if left is None else left - len(part)
    need(not left, "it is cut off")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def is_ours(facts: os.stat_result) -> bool:
    """Whether a file belongs to the user as whom this process runs; True where files have no owners."""
    return not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()


def cache_path(name: str) -> Path | None:
    """Where what can be made again is kept between processes: a file or folder of this name; None for a user without a home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    folder = given if os.path.isabs(given) else os.path.expanduser("~/.cache")
    return Path(folder, "turnout", name) if os.path.isabs(folder) else None  # not in the working directory
