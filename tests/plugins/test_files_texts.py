"""What is said about a file that is damaged, or that another program wrote."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from saved_files import GRAPH, graph_document, write_graph

import turnout
from outcomes import refused
from turnout import graphs
from turnout.errors import CallError, FileFormatError
from turnout_aten import archives
from turnout_aten.plain_data import shown

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
        (changed(object={"tensor": TENSOR | {"shape": [100]}}), "a tensor reaches beyond its storage"),
        (changed(object={"tensor": TENSOR | {"storage": 1}}, storages=[STORED] * 2), "the data of a storage on cpu is missing"),
        (changed(storages=[]), "it holds 'storages/0', which belongs to nothing in it"),
        (changed(format="other"), "its data.json names another format"),
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


def test_data_of_no_graph_and_what_no_file_holds_are_refused(tmp_path: Path) -> None:
    assert refused(FileFormatError, graphs.Graph.from_data, json.loads(document(0)), []).startswith(
        "from_data: these are not the data of a graph: the graph does not have the fields constants, "
    )
    for given, what in ((b"x", "an argument of type bytes"), (Pair(1, 2), "an argument or result of type Pair")):
        graph = turnout.trace(lambda x, other: x.sin())(turnout.ones(2), given)
        assert refused(graphs.TraceError, graph.save, tmp_path / "graph") == f"save: a file cannot hold {what}"


def test_a_graph_is_read_from_a_path_and_tensors_from_a_path_or_a_file() -> None:
    assert refused(CallError, lambda: graphs.load(io.BytesIO())) == "load: expected a path, got BytesIO"


class Pair(NamedTuple):
    """A container of the program, which no file knows."""

    first: int
    second: int


class Text(io.BytesIO):
    """A file that says it is binary, and gives text."""

    def read(self, size: int | None = -1, /) -> Any:
        return super().read(size).decode("latin-1")


def test_a_file_that_gives_text_is_refused() -> None:
    assert refused(CallError, lambda: turnout.load(Text(archive(document(0)).getvalue()))) == (
        "load: expected a file that is open in binary mode, got str from it"
    )
