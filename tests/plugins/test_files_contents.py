"""What a file can hold, how much of it loading reads, and whose errors are whose."""

from __future__ import annotations

import io
import json
import os
import struct
import time
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from saved_files import GRAPH, graph_document, is_whole, save_tensor, write_graph

import turnout
from outcomes import refused
from turnout import graphs
from turnout.errors import CallError, DeviceError, FileFormatError
from turnout_aten import archives
from turnout_tracer.errors import TraceError

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

    assert to_data(graph, [])["output"]["leaves"][1] == {"constant": {"int": hex(10**5000)}}


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
        assert refused(CallError, turnout.save, obj, tmp_path / "x") == (
            f"save: obj{'[0]' * 100} is nested too deep; a file holds at most 100 containers inside each other"
        )
    graph = turnout.trace(lambda x, options: x + 1)(turnout.ones(2), nested(99))
    assert refused(TraceError, lambda: graph.save(tmp_path / "x")) == (
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
            assert "'data.json' is compressed" in refused(FileFormatError, turnout.load, again)


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
    data = bytearray(file.getvalue())
    data[data.rindex(b"PK\5\6") + 10] ^= 1
    assert refused(FileFormatError, turnout.load, io.BytesIO(data)) == (
        "load: the file was not written by turnout.save, or is damaged: its two ends say different things"
    )


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
    refused(FileFormatError, turnout.load, counting)
    assert counting.taken < 300


def test_keys_that_are_made_to_collide_are_refused() -> None:
    """Each would be compared with all before it: 20,000 keys take a dict minutes."""
    for count, fits in ((30, True), (40, False)):
        keys = [number * (2**61 - 1) for number in range(1, count + 1)]
        assert len(set(map(hash, keys))) == 1
        if fits:
            assert round_trip(dict.fromkeys(keys)) == dict.fromkeys(keys)
        else:
            assert "many keys of a dict have the same hash" in refused(FileFormatError, round_trip, dict.fromkeys(keys))


def test_entries_that_share_their_bytes_are_refused() -> None:
    file = io.BytesIO()
    turnout.save([turnout.ones(1000), turnout.ones(1000)], file)
    data = file.getvalue()
    at = data.rindex(b"PK\1\2")
    first = data.rindex(b"PK\1\2", 0, at)
    (offset,) = struct.unpack_from("<L", data, first + 42)
    for wrong in (offset, offset + 1, offset - 1):
        changed = data[: at + 42] + struct.pack("<L", wrong) + data[at + 46 :]
        refused(FileFormatError, turnout.load, io.BytesIO(changed))


# ---- whose errors are whose


def test_an_error_of_the_users_own_function_goes_through() -> None:
    file = io.BytesIO()
    save_tensor(file)

    def wrong(place: str) -> str:
        raise KeyError(place)

    refused(KeyError, turnout.load, file, map_location=wrong)
    assert refused(CallError, turnout.load, file, map_location=lambda place: 5) == (
        "load: map_location gave a int for cpu; expected a device, or None"
    )
    for location in ("nowhere", {"cpu": "nowhere:1"}, "not a device"):
        refused(DeviceError, turnout.load, file, map_location=location)


def test_a_device_that_is_not_there_is_a_device_error_and_one_that_cannot_be_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    refused(DeviceError, lambda: turnout.device("cpu:" + "9" * 5000))
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
        said = refused(kind, turnout.load, path)
        if kind is FileFormatError:
            assert said.startswith(f"load: {path} was not written by turnout.save, or is damaged: ")
        GRAPH.save(path)
        constant = {"ref": 2, "dtype": "float32", "shape": [1], "strides": [1], "device": place, "written": False, "data": 0}
        document = graph_document(path).replace('"constants": []', f'"constants": [{json.dumps(constant)}]')
        write_graph(path, document, bytes(4))
        refused(kind, graphs.load, path)
