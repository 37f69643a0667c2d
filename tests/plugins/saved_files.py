"""What the tests of files save, and whether a file holds it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import turnout
from turnout import graphs
from turnout.errors import FileFormatError
from turnout_aten import archives

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


def graph_document(path: Path) -> str:
    """The text of the document of a saved graph."""
    return archives.Archive(io.BytesIO(path.read_bytes())).read("graph.json").decode()


def write_graph(path: Path, document: Any, *tensors: bytes) -> None:
    """Write a saved graph with another document, as text or data, with the entries that it had or these."""
    if not tensors and path.exists():
        archive = archives.Archive(io.BytesIO(path.read_bytes()))
        tensors = tuple(archive.read(name) for name in archive.entries if name != "graph.json")
    text = document if isinstance(document, str) else json.dumps(document)
    with path.open("wb") as file:
        archives.write(file, [("graph.json", text.encode()), *((f"tensors/{i}", data) for i, data in enumerate(tensors))])
