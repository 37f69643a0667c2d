"""Tables of refused calls of functions and operators of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from refusal_tables import rows, said
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

_NAMES: dict[str, Any] = {
    "F": turnout.nn.functional,
    "aten": turnout.ops.aten,
    "inf": float("inf"),
    "nan": float("nan"),
    "turnout": turnout,
}
_NAMES |= {f.__name__: f for f in (arange, empty, full, ones, randn, tensor, zeros)}
_NAMES |= {d.name: d for d in (complex64, float16, float32, float64, int8, int32, int64, uint8)}


def refused(table: str) -> Callable[..., None]:
    """A test with a case for each row, which its call names: the error is of exactly this class and says exactly this."""

    def test(call: str, says: str) -> None:
        assert said(call, _NAMES) == says

    found = rows(table)
    return pytest.mark.parametrize(("call", "says"), found, ids=[call.replace("turnout.", "") for call, _ in found])(test)
