"""Operators say of themselves what PyTorch's say."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402
from turnout.registry import REGISTRY  # noqa: E402


def said(op, schema):
    arguments = [
        (a.name, a.kwarg_only, alias(a.alias_info), a.name in ("dtype", "memory_format") or default(a.default_value))
        for a in schema.arguments
    ]
    return str(op), op.__name__, op.is_view, str(op.overloadpacket), arguments, [alias(r.alias_info) for r in schema.returns]


def alias(info):  # the sets of lists are those of their elements, in PyTorch
    return info and info.is_write


def default(value):
    return value if isinstance(value, (bool, int, float, str, type(None))) else None


def test_operators_say_what_torchs_say():
    compared = 0
    turnout.ones(1)
    for name, op in REGISTRY.operators.items():
        packet, _, overload = name.removeprefix("aten::").partition(".")
        theirs = (
            getattr(getattr(torch.ops.aten, packet, None), overload or "default", None) if name.startswith("aten::") else None
        )
        if theirs is not None and len(theirs._schema.arguments) == len(op.schema.arguments):
            assert said(op, op.schema) == said(theirs, theirs._schema)
            compared += 1
    assert compared > 1500
