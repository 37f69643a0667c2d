"""What is said about a file that is damaged, or that another program wrote."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from saved_files import GRAPH, graph_document, write_graph

import turnout
from outcomes import refused
from turnout import graphs
from turnout.errors import CallError, FileFormatError
from turnout_aten import archives
from turnout_aten.files import replacing
from turnout_aten.plain_data import shown

PAGE = Path(__file__).parents[2] / "docs/files.md"
TENSOR = {"storage": 0, "offset": 0, "shape": [1], "strides": [1], "requires_grad": False}
STORED: dict[str, Any] = {"dtype": "float32", "device": "cpu", "size": 1}
CONSTANT = {"ref": 2, "dtype": "float32", "shape": [1], "strides": [1], "device": "cpu", "written": False, "data": 0}
CUT = CONSTANT | {"shape": [2], "strides": [1]}
NEITHER = "load: the file was not written by turnout.save, or is damaged: "


def document(obj: Any, **storage: Any) -> bytes:
    return json.dumps({"format": "turnout", "version": 1, "storages": [STORED | storage], "object": obj}).encode()


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(document({"tensor": TENSOR})) | fields).encode()


def archive(data: bytes) -> io.BytesIO:
    file = io.BytesIO()
    archives.write(file, [("data.json", data), ("storages/0", bytes(4))])
    return file


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (document({"tensor": TENSOR}, dtype="float33"), "'float33' is not the name of a dtype"),
        (document({"tensor": TENSOR}, device="no where"), "'no where' is not the name of a device"),
        (document({"tensor": TENSOR | {"shape": [0, 1 << 62], "strides": [1, 1]}}), None),
        (document({"tensor": TENSOR | {"shape": [1] * 65, "strides": [1] * 65}}), None),
        (b"[" * 100_000, "it is nested too deep"),
        (document({"result": ["nothing", {"tuple": []}]}), "'nothing' is not the name of a result"),
        (document({"dict": [[[], 1]]}), "a list or dict is the key of a dict"),
        (document(0).replace(b'"object": 0', b'"object": 1' + b"0" * 5000), "an int in it has too many digits"),
        (document({"call": "os.system"}), "it holds an object of kind 'call'"),
        (document({"tensor": TENSOR}, size=2), "storages/0 has 4 bytes, expected 8"),
        (changed(object={"tensor": TENSOR | {"shape": [100]}}), "a tensor reaches to element 100 of a storage of 1"),
        (changed(object={"tensor": TENSOR | {"storage": 1}}, storages=[STORED] * 2), "the data of a storage on cpu is missing"),
        (changed(storages=[]), "it holds 'storages/0', which belongs to nothing in it"),
        (changed(format="other"), "it does not say format 'turnout'"),
        (document(0).replace(b'"object"', b'"objects"'), "its data.json has no object"),
        (document(json.loads("[" * 101 + "]" * 101)), "it holds more than 100 containers inside each other"),
    ],
)
def test_a_file_of_tensors_is_refused_with_the_reason(data: bytes, why: str | None) -> None:
    said = refused(FileFormatError, turnout.load, archive(data))
    if why is None:
        assert said.startswith(NEITHER + "a tensor cannot have the shape '[")
    else:
        assert said == NEITHER + why


def test_a_later_version_is_named() -> None:
    said = refused(FileFormatError, turnout.load, archive(changed(version=2)))
    assert said == "load: the file has format version 2, this Turnout reads version 1"


def test_a_name_that_is_not_utf8_is_refused() -> None:
    data = archive(document(0)).getvalue().replace(b"storages/0", b"storages/\xff")
    assert refused(FileFormatError, turnout.load, io.BytesIO(data)) == NEITHER + "the name of an entry is not UTF-8"


def test_a_size_of_64_bits_that_is_missing_is_refused() -> None:
    data = archive(document(0)).getvalue()
    at = data.rindex(b"PK\1\2")
    changed = data[: at + 20] + struct.pack("<LL", 0xFFFFFFFF, 0xFFFFFFFF) + data[at + 28 :]
    assert refused(FileFormatError, turnout.load, io.BytesIO(changed)) == NEITHER + "the zip64 field of 'storages/0' is missing"


def constants(*rows: dict[str, Any]) -> tuple[str, str]:
    """What stands where a graph has no constants, and these."""
    return '"constants": []', f'"constants": {json.dumps(list(rows))}'


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('"output": {\n  "structure": null', '"output": {\n  "structure": {"set": []}', "a structure is of kind 'set'"),
        (
            '"output": {\n  "structure": null',
            '"output": {\n  "structure": {"result": [null], "type": "nothing"}',
            "'nothing' is not the name of a result",
        ),
        ("aten::sin", "aten::add.Tensor", "it calls aten::add.Tensor with 1 arguments, but the installed operator takes 3"),
        (
            "aten::sin",
            "aten::atleast_1d.Sequence",
            "it calls aten::atleast_1d.Sequence with an argument 'tensors' that is not of type Tensor[]",
        ),
        (*constants(CONSTANT | {"data": "?"}), "the entry of a constant is '?', not a size"),
        (*constants(CONSTANT | {"data": 7}), "a constant is in tensors/7, which is not there or belongs to another tensor"),
        (
            *constants(CONSTANT, CONSTANT | {"ref": 3}),
            "a constant is in tensors/0, which is not there or belongs to another tensor",
        ),
        (*constants(CUT), "tensors/0 has 4 bytes, expected 8"),
        (
            *constants(CUT | {"shape": [2, 2], "strides": [1, 1]}),
            "the elements of a constant have gaps between them, or share their memory",
        ),
        (*constants(CUT | {"strides": []}), "a constant does not have as many sizes as strides"),
        (*constants(), "it holds 'tensors/0', which belongs to nothing in it"),
        (
            *constants(CONSTANT | {"shape": [1] * 65, "strides": [1] * 65}),
            f"a constant cannot have the shape {shown(str((1,) * 65))}",
        ),
    ],
)
def test_a_file_of_a_graph_is_refused_with_the_reason(tmp_path: Path, before: str, after: str, why: str) -> None:
    path = tmp_path / "graph"
    GRAPH.save(path)
    text = graph_document(path)
    assert before in text
    write_graph(path, text.replace(before, after), bytes(4))
    assert refused(FileFormatError, graphs.load, path) == f"load: {path} is not a saved graph: {why}"


OWN = {"name": "w", "ref": 8} | {name: CONSTANT[name] for name in ("dtype", "shape", "strides", "device", "data")}
GENERATOR = {"device": "cpu", "state": [1, 2]}
READ = {"op": "aten::_local_scalar_dense", "args": [{"ref": 0}], "out": {"size": "s0"}}
TO_BOTH = {"op": "aten::bernoulli", "args": [{"ref": 0}, {"ref": 0}], "out": {"ref": 1}}
SIZES: dict[str, list[Any]] = {"inputs": [None], "births": [], "assumptions": []}


def parts(kind: str, *branches: Any, **fields: Any) -> dict[str, Any]:
    """A structure with its leaves, none of which is a tensor."""
    return {"structure": {kind: list(branches), **fields}, "leaves": [{"constant": 1}] * len(branches)}


# Fields of the document that are given other values, and what is said then. A path leads into what the field holds.
OTHER_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"inputs": 5}, "the list of inputs is not a list"),
    ({"inputs": ["x", "x"]}, "two inputs have the same name"),
    ({"inputs": ["x y"]}, "'x y' is not a name"),
    ({"results": []}, "its output does not have as many values as results"),
    ({"results": [{"size": "s0"}]}, "a result is a size that is not known"),
    ({"output": parts("list") | {"leaves": ["value"]}}, "a structure does not have as many places as leaves"),
    ({"output": parts("list", None) | {"leaves": [{"constant": []}]}}, "a list stands in the place of a value"),
    ({"output": parts("list", None) | {"leaves": [{"constant": {"size": ["x"]}}]}}, "a list is not a size of ints"),
    ({"output": parts("list", {})}, "a structure has no kind"),
    ({"output": parts("dict", None, None, keys=["a", "a"])}, "a dict has a key twice"),
    ({"output": parts("dict", None, keys=[])}, "a dict does not have as many keys as values"),
    ({"output": parts("result", None, type="max")}, "a result of max has another number of values"),
    ({"signature": parts("list", None)}, "its signature is not that of a function"),
    ({"signature/leaves": [{"constant": 1}]}, "its signature does not have as many tensors as inputs"),
    ({"nodes/0/op": "sin"}, "'sin' is not the name of an operator"),
    ({"nodes/0/out": {"tuple": []}}, "aten::sin has other results than the file says"),
    ({"nodes/0/out": {"ref": 0}}, "value 0 is made twice"),
    ({"nodes/0/no_grad": 1}, "a call does not say whether gradients are off"),
    ({"nodes/0/args": [{"ref": 0, "size": 1}]}, "an object has several kinds, or none"),
    ({"nodes/0/args": [{"ref": -1}]}, "the number of a value is -1, not a size"),
    ({"nodes/0/args": [{"size": ["?", 1, 2]}]}, "'?' is not an operation on sizes"),
    ({"nodes/0/args": [{"size": "?"}]}, "'?' is not the name of a size"),
    ({"nodes/0/args": [{"size": None}]}, "None is not a number in a size"),
    ({"nodes/0": TO_BOTH}, "value 0 is used as a tensor and as a generator"),
    ({"nodes/0": READ, "results": [], "sizes": SIZES}, "a call returns a size that has no name"),
    ({"generators": [GENERATOR | {"state": [1]}]}, "the state of a generator is not a list of 2"),
    ({"generators": [GENERATOR | {"state": [1, -1]}]}, "the state of a generator is not two ints of 64 bits"),
    ({"constants": [CONSTANT | {"written": 0}]}, "a constant does not say whether it is written"),
    ({"state": [OWN | {"name": 0}]}, "a tensor of the graph's own has no name"),
    ({"state": [OWN, {"name": "w", "ref": 9, "again": "w"}]}, "two of the graph's own tensors have the name 'w'"),
    ({"state": [{"name": "w", "ref": 9, "again": "v"}]}, "a tensor of the graph's own is that of 'v', which is not one"),
    (
        {"state": [OWN | {"dtype": "int32", "requires_grad": True}]},
        "a tensor of the graph's own of int32 is said to require a gradient",
    ),
    ({"sizes": SIZES | {"inputs": []}}, "it does not have as many shapes as inputs"),
    ({"sizes": SIZES | {"inputs": [["x"]]}}, "a shape of an input has something else than sizes"),
    (
        {"sizes": SIZES | {"inputs": [[{"size": ["+", "s0", 1]}]]}},
        "a shape of an input is computed from a size that no input has",
    ),
    ({"sizes": SIZES | {"births": [[0, 1, 0, "s0"]] * 2}}, "two sizes have the same name"),
    ({"sizes": SIZES | {"births": [[0, "x", 0, "s0"]]}}, "the value of a size is not a number"),
    ({"sizes": SIZES | {"births": [[0, 1, "x", "s0"]]}}, "the dim of a size is not a number"),
    ({"sizes": SIZES | {"births": [[0, 5, 0, "s0"]]}}, "size s0 comes from a call that does not bring it"),
    ({"sizes": SIZES | {"assumptions": [["s0", "==", 1]]}}, "an assumption has unknown sizes"),
    ({"sizes": SIZES | {"assumptions": [["s0", "?", 1]]}}, "'?' is not a comparison"),
]


@pytest.mark.parametrize(("fields", "why"), OTHER_FIELDS, ids=[why for _, why in OTHER_FIELDS])
def test_a_graph_with_other_fields_is_refused_with_the_reason(tmp_path: Path, fields: dict[str, Any], why: str) -> None:
    path = tmp_path / "graph"
    GRAPH.save(path)
    data = json.loads(graph_document(path))
    for place, value in fields.items():
        at = data
        *outer, last = [int(step) if step.isdecimal() else step for step in place.split("/")]
        for step in outer:
            at = at[step]
        at[last] = value
    write_graph(path, data, bytes(4))
    assert refused(FileFormatError, graphs.load, path) == f"load: {path} is not a saved graph: {why}"


LOCAL, ROW, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"


@pytest.mark.parametrize(
    ("mark", "changes", "why"),
    [
        (END, {20: b"\1"}, "its directory is cut off"),
        (END, {16: b"\xff\xff"}, "its directory is not where its end says"),
        (END, {10: b"\t"}, "it has 2 entries, and its end says 9"),
        (ROW, {34: b"\1"}, "its directory is wrong"),
        (ROW, {28: b"\xff"}, "its directory is cut off"),
        (ROW, {8: b"\1"}, "'storages/0' is encrypted"),
        (ROW, {8: b"\4"}, "'storages/0' has unknown flags"),
        (ROW, {10: b"\x08"}, "'storages/0' is compressed; save stores the bytes as they are"),
        (ROW, {20: b"\5"}, "'storages/0' has two sizes, 4 and 5"),
        (ROW, {21: b"\1", 25: b"\1"}, "'storages/0' reaches beyond its place in the file"),
        (ROW, {42: bytes(4)}, "two of its entries are in one place"),
        (ROW, {20: b"\xff" * 4, 28: b"\2", 30: b"\x08", 48: b"\1\0\7\0"}, "the zip64 field of 'st' is cut off"),
        (LOCAL, {8: b"\x08"}, "the header of storages/0 is wrong"),
        (LOCAL, {30: b"S"}, "the header of storages/0 has another name"),
    ],
)
def test_an_archive_is_refused_with_the_reason(mark: bytes, changes: dict[int, bytes], why: str) -> None:
    data = bytearray(archive(document({"tensor": TENSOR})).getvalue())
    start = data.rindex(mark)
    for at, put in changes.items():
        data[start + at : start + at + len(put)] = put
    assert refused(FileFormatError, turnout.load, io.BytesIO(data)) == NEITHER + why


def test_data_of_no_graph_and_what_no_file_holds_are_refused(tmp_path: Path) -> None:
    GRAPH.save(tmp_path / "graph")
    data = json.loads(graph_document(tmp_path / "graph")) | {"constants": [CONSTANT]}
    assert refused(FileFormatError, graphs.Graph.from_data, data, []) == (
        "from_data: these are not the data of a graph: a constant has no bytes"
    )
    for given, what in ((b"x", "an argument of type bytes"), (Pair(1, 2), "an argument or result of type Pair")):
        graph = turnout.trace(lambda x, other: x.sin())(turnout.ones(2), given)
        assert refused(graphs.TraceError, graph.save, tmp_path / "graph") == f"save: a file cannot hold {what}"


def test_a_graph_is_read_from_a_path_and_tensors_from_a_path_or_a_file() -> None:
    assert refused(CallError, lambda: graphs.load(io.BytesIO())) == "load: expected a path, got BytesIO"


def test_the_page_names_the_entries_of_both_kinds_of_files(tmp_path: Path) -> None:
    rows = re.findall(r"^\| (`[^|]*/0`.*|`\w+\.json`) \| ", PAGE.read_text("utf-8"), re.MULTILINE)
    said = [re.findall(r"`(.+?)`", row) for row in rows]
    first, second = turnout.ones(2), turnout.zeros(3)
    turnout.save([first, second], tmp_path / "tensors")
    turnout.trace(lambda x: (x + first, x + second[:2]))(turnout.ones(2)).save(tmp_path / "graph")
    made = [zipfile.ZipFile(tmp_path / name).namelist() for name in ("tensors", "graph")]
    assert [[*said[0], *said[1]], [*said[2], *said[3]]] == made


def test_the_page_names_the_unfinished_file(tmp_path: Path) -> None:
    (size,) = re.findall(r"temporary file is `\.`,\s+(\d+) random bytes in hexadecimal, and `\.part`", PAGE.read_text("utf-8"))
    with replacing(tmp_path / "state"):
        (name,) = os.listdir(tmp_path)
    assert re.fullmatch(rf"\.[0-9a-f]{{{2 * int(size)}}}\.part", name)


class Pair(NamedTuple):
    """A container of the program, which no file knows."""

    first: int
    second: int


class Text(io.BytesIO):
    """A file that says it is binary, and gives text."""

    def read(self, size: int | None = -1, /) -> Any:
        return super().read(size).decode("latin-1")


class Short(io.BytesIO):
    """A file that ends before the bytes of its last entry."""

    def read(self, size: int | None = -1, /) -> bytes:
        return b"" if size == 4 else super().read(size)


def test_a_file_that_ends_too_early_is_refused() -> None:
    assert refused(FileFormatError, turnout.load, Short(archive(document({"tensor": TENSOR})).getvalue())) == (
        NEITHER + "it is cut off"
    )


def test_a_file_that_gives_text_is_refused() -> None:
    assert refused(CallError, lambda: turnout.load(Text(archive(document(0)).getvalue()))) == (
        "load: expected a file that is open in binary mode, got str from it"
    )
