"""What saving leaves on the disk, at whatever stands at the path, and after every failure; and how much loading reads."""

from __future__ import annotations

import errno
import io
import os
import stat
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import turnout
from turnout import graphs
from turnout.errors import CallError, DeviceError, FileFormatError
from turnout_aten import archives, files
from turnout_tracer.errors import TraceError

posix = pytest.mark.skipif(os.name == "nt", reason="needs the files of a POSIX system")
GRAPH = turnout.trace(lambda x: x.sin())(turnout.ones(2))


def save_tensor(path: Any) -> None:
    turnout.save({"w": turnout.ones(2)}, path)


def save_graph(path: Any) -> None:
    GRAPH.save(path)


SAVERS = pytest.mark.parametrize("save", [save_tensor, save_graph])


def is_whole(path: Any) -> bool:
    """Whether a file holds what one of the functions above saves."""
    try:
        return bool(turnout.load(path)["w"].tolist() == [1.0, 1.0])
    except FileFormatError:
        return str(graphs.load(path)) == str(GRAPH)


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
    with pytest.raises(CallError) as caught:
        turnout.save(1, file)
    assert str(caught.value) == f"save: expected a path, or a file that is open in binary mode, got {kind}"
    with pytest.raises(CallError) as caught:
        turnout.load(file)
    assert str(caught.value) == f"load: expected a path, or a file that is open in binary mode, got {kind}"


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


# ---- what a file can hold


def round_trip(obj: Any) -> Any:
    file = io.BytesIO()
    turnout.save(obj, file)
    return turnout.load(file)


def test_ordered_dicts_and_long_ints_come_back_as_what_they_are() -> None:
    obj = OrderedDict([("b", 1), ("a", OrderedDict())])
    again = round_trip([obj, {"plain": obj}])
    assert again == [obj, {"plain": obj}]
    assert [type(each) for each in (again[0], again[0]["a"], again[1], again[1]["plain"])] == [
        OrderedDict, OrderedDict, dict, OrderedDict,
    ]  # fmt: skip
    for number in (10**5000, -(10**5000), 2**64, -(2**2000), 0):
        assert round_trip({number: number}) == {number: number}


def test_a_graph_holds_ordered_dicts_and_long_ints() -> None:
    graph = turnout.trace(lambda x, options: OrderedDict(y=x["x"] + 1, n=10**5000))(OrderedDict(x=turnout.ones(2)), 10**5000)
    file = Path(os.devnull)
    graph.save(file)
    from turnout_tracer.data import to_data

    assert to_data(graph)["output"]["leaves"][1] == {"constant": {"int": hex(10**5000)}}


def nested(depth: int) -> Any:
    obj: Any = turnout.ones(1)
    for level in range(depth):
        obj = ([obj], (obj,), {"k": obj}, OrderedDict(k=obj))[level % 4]
    return obj


def test_containers_may_be_nested_100_deep_and_no_deeper(tmp_path: Path) -> None:
    again = round_trip(nested(100))
    for level in reversed(range(100)):
        again = again["k"] if level % 4 > 1 else again[0]
    assert again.tolist() == [1.0]
    for depth in (101, 5000):
        obj = [[]]
        for _ in range(depth - 2):
            obj = [obj]
        with pytest.raises(CallError) as caught:
            turnout.save(obj, tmp_path / "x")
        assert str(caught.value) == (
            f"save: obj{'[0]' * 100} is nested too deep; a file holds at most 100 containers inside each other"
        )
    graph = turnout.trace(lambda x, options: x + 1)(turnout.ones(2), nested(99))
    with pytest.raises(TraceError) as raised:
        graph.save(tmp_path / "x")
    assert str(raised.value) == (
        "save: an argument or result is nested too deep; a file holds at most 100 containers inside each other"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_same_object_gives_the_same_bytes_which_any_zip_tool_reads() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    turnout.save({"x": turnout.arange(5), "e": turnout.zeros(0)}, first)
    time.sleep(0.01)
    turnout.save({"x": turnout.arange(5), "e": turnout.zeros(0)}, second)
    assert first.getvalue() == second.getvalue()
    with zipfile.ZipFile(first) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["data.json", "storages/0", "storages/1"]
        assert archive.read("storages/0") == struct.pack("<5q", *range(5))


def test_what_another_zip_tool_stored_again_is_read_and_what_it_compressed_is_refused() -> None:
    file = io.BytesIO()
    turnout.save({"w": turnout.ones(2)}, file)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        again = io.BytesIO()
        with zipfile.ZipFile(file) as source, zipfile.ZipFile(again, "w", method) as archive:
            for name in source.namelist():
                archive.writestr(name, source.read(name))
        if method == zipfile.ZIP_STORED:
            assert is_whole(again)
        else:
            with pytest.raises(FileFormatError, match=r"'data\.json' is compressed"):
                turnout.load(again)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zip64 fields from 100 bytes or 3 entries on, as they are from 4 GiB or 65,535 entries on."""
    monkeypatch.setattr(archives, "LIMIT", 100)
    monkeypatch.setattr(archives, "LIMIT_OF_ENTRIES", 3)


def test_large_archives_have_fields_of_64_bits(small_limits: None) -> None:
    obj = {str(i): turnout.arange(i) for i in range(30)}
    file = io.BytesIO(b"before it")
    file.seek(0, 2)
    turnout.save(obj, file)
    again = turnout.load(file)
    assert {key: value.tolist() for key, value in again.items()} == {str(i): list(range(i)) for i in range(30)}
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 31
        assert archive.read("storages/29") == struct.pack("<29q", *range(29))


# ---- how much is read


class Counting(io.BytesIO):
    """A file that counts the bytes and the reads."""

    taken = calls = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        self.calls += 1
        return data


def test_every_byte_is_read_once_whatever_the_number_of_storages() -> None:
    for count in (1, 100, 3000):
        file = io.BytesIO()
        turnout.save([turnout.full((3,), i) for i in range(count)], file)
        counting = Counting(file.getvalue())
        again = turnout.load(counting)
        assert [t.tolist()[0] for t in again[:: max(1, count // 10)]] == list(range(count))[:: max(1, count // 10)]
        assert counting.taken <= len(file.getvalue())
        assert counting.calls <= 3 * (count + 1) + 5


def test_a_compressed_entry_is_refused_before_anything_of_it_is_read() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.json", "{}")
        archive.writestr("storages/0", bytes(50_000_000))
    counting = Counting(file.getvalue())
    with pytest.raises(FileFormatError):
        turnout.load(counting)
    assert counting.taken < 300


def test_keys_that_are_made_to_collide_are_refused() -> None:
    """Each would be compared with all before it: 20,000 keys take a dict minutes."""
    for count, fits in ((30, True), (40, False)):
        keys = [number * (2**61 - 1) for number in range(1, count + 1)]
        assert len(set(map(hash, keys))) == 1
        if fits:
            assert round_trip(dict.fromkeys(keys)) == dict.fromkeys(keys)
        else:
            with pytest.raises(FileFormatError, match="many keys of a dict have one hash"):
                round_trip(dict.fromkeys(keys))


def test_entries_that_share_their_bytes_are_refused() -> None:
    file = io.BytesIO()
    turnout.save([turnout.ones(1000), turnout.ones(1000)], file)
    data = file.getvalue()
    at = data.rindex(b"PK\1\2")
    first = data.rindex(b"PK\1\2", 0, at)
    (offset,) = struct.unpack_from("<L", data, first + 42)
    for wrong in (offset, offset + 1, offset - 1):
        changed = data[: at + 42] + struct.pack("<L", wrong) + data[at + 46 :]
        with pytest.raises(FileFormatError):
            turnout.load(io.BytesIO(changed))


# ---- whose errors are whose


def test_an_error_of_the_users_own_function_goes_through() -> None:
    file = io.BytesIO()
    save_tensor(file)

    def wrong(place: str) -> str:
        raise KeyError(place)

    with pytest.raises(KeyError):
        turnout.load(file, map_location=wrong)
    with pytest.raises(CallError) as caught:
        turnout.load(file, map_location=lambda place: 5)
    assert str(caught.value) == "load: map_location gave a int for cpu; expected a device, or None"
    for location in ("nowhere", {"cpu": "nowhere:1"}, "not a device"):
        with pytest.raises(DeviceError):
            turnout.load(file, map_location=location)


def test_a_device_that_is_not_there_is_a_device_error_and_one_that_cannot_be_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(DeviceError):
        turnout.device("cpu:" + "9" * 5000)
    for place, kind in (
        ("nowhere", DeviceError), ("nowhere:1", DeviceError), ("no where", FileFormatError),
        ("cpu:x", FileFormatError), ("cpu:" + "9" * 5000, FileFormatError), ("", FileFormatError),
    ):  # fmt: skip
        document = (
            '{"format": "turnout", "version": 1, "storages": [{"dtype": "float32", "device": "PLACE", "size": 1}], "object": '
            '{"tensor": {"storage": 0, "offset": 0, "shape": [1], "strides": [1], "requires_grad": false}}}'
        ).replace("PLACE", place)
        with open(path, "wb") as file:
            archives.write(file, [("data.json", document.encode()), ("storages/0", bytes(4))])
        with pytest.raises(kind) as caught:
            turnout.load(path)
        if kind is FileFormatError:
            assert str(caught.value).startswith(f"load: {path} was not written by turnout.save, or is damaged: ")
        GRAPH.save(path)
        text = path.read_text().replace('"constants": []', '"constants": [{"ref": 2, "dtype": "float32", "shape": [1], '
            '"device": "PLACE", "written": false, "data": "AAAAAA=="}]').replace("PLACE", place)  # fmt: skip
        path.write_text(text)
        with pytest.raises(kind):
            graphs.load(path)


# ---- one path, several writers and readers

WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
import turnout

path, count, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def work(number):
    for mark in range(first + number * count, first + (number + 1) * count):
        turnout.save({"mark": mark, "x": turnout.full((257,), mark)}, path)

with ThreadPoolExecutor(4) as threads:
    for done in [threads.submit(work, number) for number in range(4)]:
        done.result()
"""


def test_two_processes_with_four_threads_each_save_to_one_path_while_others_read(
    tmp_path: Path, seeds: Callable[[int], range], capsys: pytest.CaptureFixture[str]
) -> None:
    count = len(seeds(40))  # saves of each thread
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"
    turnout.save({"mark": -1, "x": turnout.full((257,), -1)}, path)
    command = [sys.executable, "-W", "error", "-c", WRITER, str(path), str(count)]
    start = time.monotonic()
    writers = [subprocess.Popen([*command, str(first)]) for first in (0, 4 * count)]

    def read() -> list[int]:
        marks = []
        while any(writer.poll() is None for writer in writers):
            found = turnout.load(path)
            assert set(found["x"].tolist()) == {found["mark"]}
            marks.append(found["mark"])
        return marks

    try:
        with ThreadPoolExecutor(2) as readers:
            marks = [future.result() for future in [readers.submit(read), readers.submit(read)]]
    finally:
        codes = [writer.wait() for writer in writers]
    assert codes == [0, 0]
    assert min(map(len, marks)) > 0
    assert {mark for each in marks for mark in each} <= set(range(-1, 8 * count))
    assert turnout.load(path)["mark"] in range(8 * count)
    assert list(folder.iterdir()) == [path]
    if count > 40:
        with capsys.disabled():
            seen = len({mark for each in marks for mark in each})
            took = time.monotonic() - start
            sys.stdout.write(f"\n{8 * count} saves, {sum(map(len, marks))} reads of {seen} files, {took:.0f} s\n")


def unfinished(folder: Path) -> Iterator[Path]:
    return folder.glob(".*.part")


def test_threads_that_save_to_one_path_leave_one_of_their_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(20):
        threads = [threading.Thread(target=turnout.save, args=({"n": n}, path)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert turnout.load(path)["n"] in range(4)
        assert list(unfinished(tmp_path)) == []
