"""What saving leaves on the disk, at whatever stands at the path, and after every failure."""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from saved_files import GRAPH, SAVERS, is_whole, save_tensor

import turnout
from outcomes import refused
from turnout import graphs
from turnout.errors import CallError
from turnout_aten import archives, files

posix = pytest.mark.skipif(os.name == "nt", reason="needs the files of a POSIX system")


# ---- what stands at the path


@posix
@SAVERS
def test_a_new_file_has_the_mode_that_the_umask_leaves_it(tmp_path: Path, save: Callable[[Any], None]) -> None:
    for mask in (0o022, 0o077, 0o002):
        before = os.umask(mask)
        try:
            save(tmp_path / f"{mask}")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"{mask}").stat().st_mode) == 0o666 & ~mask


@posix
@SAVERS
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, save: Callable[[Any], None]) -> None:
    for mode in (0o600, 0o640, 0o666, 0o755):
        path = tmp_path / oct(mode)
        path.touch()
        path.chmod(mode)
        save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert is_whole(path)


@posix
def test_nobody_else_can_read_a_private_file_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch()
    path.chmod(0o600)
    with files.replacing(path) as file:
        file.write(b"x")
        (unfinished,) = [each for each in tmp_path.iterdir() if each != path]
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600


@posix
@SAVERS
def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path, save: Callable[[Any], None]) -> None:
    (tmp_path / "there").mkdir()
    target, link, second = tmp_path / "there" / "file", tmp_path / "link", tmp_path / "second"
    link.symlink_to(Path("there") / "file")
    second.symlink_to(link)
    for path in (link, second):  # the first time the target does not exist yet
        save(path)
        assert path.is_symlink()
        assert is_whole(target)
        target.write_bytes(b"")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "second", "there"]
    assert [each.name for each in target.parent.iterdir()] == ["file"]


@posix
@SAVERS
def test_a_pipe_is_written_through_and_read(tmp_path: Path, save: Callable[[Any], None]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=save, args=(pipe,))
    writer.start()
    whole = turnout.load(pipe)["w"].tolist() == [1.0, 1.0] if save is save_tensor else str(graphs.load(pipe)) == str(GRAPH)
    writer.join()
    assert whole
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


@posix
@SAVERS
def test_a_device_is_written_through(tmp_path: Path, save: Callable[[Any], None]) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    save(link)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert list(tmp_path.iterdir()) == [link]


@posix
def test_a_file_without_a_name_is_written_through(tmp_path: Path) -> None:
    with open(tmp_path / "file", "w+b") as file:
        (tmp_path / "file").unlink()
        path = f"/proc/self/fd/{file.fileno()}"
        if not os.path.exists(path):
            pytest.skip("this system shows no open files")
        save_tensor(path)
        assert turnout.load(file)["w"].tolist() == [1.0, 1.0]
    assert list(tmp_path.iterdir()) == []


@SAVERS
@pytest.mark.parametrize("length", [240, 245, 255])
def test_a_name_may_be_as_long_as_the_system_takes(tmp_path: Path, save: Callable[[Any], None], length: int) -> None:
    path = tmp_path / ("n" * length)
    for _ in range(2):
        save(path)
    assert is_whole(path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


class Named:
    def __init__(self, path: str | bytes) -> None:
        self.path = path

    def __fspath__(self) -> str | bytes:
        return self.path


@SAVERS
def test_paths_are_text_bytes_and_path_objects(tmp_path: Path, save: Callable[[Any], None]) -> None:
    text = str(tmp_path / "file")
    for path in (text, os.fsencode(text), Path(text), Named(text), Named(os.fsencode(text))):
        save(path)
        assert is_whole(path)
        assert is_whole(text)
        os.unlink(text)


def test_files_are_binary_file_objects_with_and_without_a_buffer_or_a_place(tmp_path: Path) -> None:
    class Bare:
        """A file that can only be read and written, three bytes at a time."""

        def __init__(self) -> None:
            self.data = b""

        def write(self, data: bytes) -> int:
            self.data += data[:3]
            return len(data[:3])

        def read(self, size: int = -1) -> bytes:
            given, self.data = self.data[:3], self.data[3:]
            return given

    bare = Bare()
    save_tensor(bare)
    assert is_whole(bare)
    with open(tmp_path / "raw", "w+b", buffering=0) as raw:
        raw.write(b"something before it")
        save_tensor(raw)
        assert is_whole(raw)


@pytest.mark.parametrize("file", [5, None, io.StringIO(), object()])
def test_what_is_no_file_is_refused(file: object) -> None:
    kind = type(file).__name__
    assert (
        refused(CallError, turnout.save, 1, file) == f"save: expected a path, or a file that is open in binary mode, got {kind}"
    )
    assert refused(CallError, turnout.load, file) == f"load: expected a path, or a file that is open in binary mode, got {kind}"


# ---- failures


class Full(OSError):
    pass


FAILING = {
    "open": "builtins.open",
    "fsync": "turnout_aten.files.os.fsync",
    "chmod": "turnout_aten.files.os.chmod",
    "replace": "turnout_aten.files.os.replace",
}


@pytest.mark.parametrize("step", FAILING)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@SAVERS
def test_a_step_that_fails_leaves_the_file_as_it_was_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[Any], None], step: str, error: BaseException
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def failing(*args: Any, **named: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(FAILING[step], failing)
        with pytest.raises(type(error)) as caught:
            save(path)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"before", [path])
    if isinstance(error, OSError):
        assert str(caught.value) == f"[Errno {errno.ENOSPC}] No space left on device: {str(path)!r}"


def test_a_write_that_fails_at_any_byte_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    real = archives.put
    most = 0

    def failing(file: Any, data: bytes) -> None:
        nonlocal most
        if most == 0:
            raise Full(errno.ENOSPC, "No space left on device")
        most -= 1
        real(file, data)

    monkeypatch.setattr(archives, "put", failing)
    count = 0
    while path.read_bytes() == b"before":
        most = count
        try:
            save_tensor(path)
        except Full:
            assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"before", [path])
            count += 1
    assert count > 5
    assert is_whole(path)


@posix
@SAVERS
def test_paths_that_cannot_be_written_are_named(tmp_path: Path, save: Callable[[Any], None]) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for path, kind in (
        (tmp_path / "missing" / "file", FileNotFoundError),
        (tmp_path / "file" / "below", NotADirectoryError),
        (tmp_path, IsADirectoryError),
        (tmp_path / ("n" * 256), OSError),
        (tmp_path / "loop", OSError),
    ):
        with pytest.raises(kind) as caught:
            save(path)
        assert caught.value.filename == str(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "loop"]


@posix
@SAVERS
def test_a_path_below_a_working_directory_that_was_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[Any], None]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as caught:
        save("file")
    assert caught.value.filename == "file"
    save(tmp_path / "file")
    assert is_whole(tmp_path / "file")


@posix
@SAVERS
def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[Any], None]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"kept")
    monkeypatch.setattr(os, "access", lambda *args: False)  # root may write everything
    with pytest.raises(PermissionError) as caught:
        save(path)
    assert (caught.value.filename, path.read_bytes(), list(tmp_path.iterdir())) == (str(path), b"kept", [path])


@SAVERS
def test_a_file_that_others_replace_at_any_moment_is_never_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[Any], None]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    seen: list[Any] = []

    def replaced(function: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **named: Any) -> Any:
            found = function(*args, **named)
            seen.append(open(path, "rb"))  # noqa: SIM115 - closed below
            other = tmp_path / "other"
            other.write_bytes(b"before")
            other.rename(path)
            return found

        return asked

    with monkeypatch.context() as patch:
        for name in ("stat", "lstat", "access"):
            patch.setattr(os, name, replaced(getattr(os, name)))
        save(path)
    assert len(seen) > 1
    assert [each.read() for each in seen] == [b"before"] * len(seen)
    for each in seen:
        each.close()
    assert is_whole(path)
