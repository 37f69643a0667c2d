"""What the tests of files save, and whether a file holds it."""

from __future__ import annotations

from typing import Any

import pytest

import turnout
from turnout import graphs
from turnout.errors import FileFormatError

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
