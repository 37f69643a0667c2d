"""Rows of refused calls: the source of a call, the class of its error, and everything that the error says about it."""

from __future__ import annotations

from typing import Any

import pytest

import turnout
from turnout import (
    arange,
    complex64,
    empty,
    float16,
    float32,
    float64,
    full,
    int8,
    int32,
    int64,
    ones,
    randn,
    tensor,
    uint8,
    zeros,
)

Row = tuple[str, type[Exception], str]

_NAMES: dict[str, Any] = {
    "F": turnout.nn.functional,
    "aten": turnout.ops.aten,
    "inf": float("inf"),
    "nan": float("nan"),
    "turnout": turnout,
}
_NAMES |= {f.__name__: f for f in (arange, empty, full, ones, randn, tensor, zeros)}
_NAMES |= {d.name: d for d in (complex64, float16, float32, float64, int8, int32, int64, uint8)}


def refused(*rows: Row) -> Any:
    """A decorator that runs a test for each row. A row's name is the source of its call."""
    return pytest.mark.parametrize(("call", "error", "text"), rows, ids=[row[0].replace("turnout.", "") for row in rows])


def check(call: str, error: type[Exception], text: str) -> None:
    """A call is refused with an error of exactly this class, which says exactly this."""
    with pytest.raises(error) as caught:
        eval(call, dict(_NAMES))
    assert type(caught.value) is error
    assert str(caught.value) == text
