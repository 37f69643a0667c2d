"""`turnout.finfo` and `turnout.iinfo` against torch's."""

from __future__ import annotations

import pytest
import torch

import turnout

FLOATING = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
INTEGER = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("name", FLOATING)
def test_floating_point_limits_are_torchs(name: str) -> None:
    ours, theirs = turnout.finfo(getattr(turnout, name)), torch.finfo(getattr(torch, name))
    for field in ("bits", "eps", "max", "min", "smallest_normal", "tiny", "resolution"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert ours.dtype.name == theirs.dtype
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("name", INTEGER)
def test_integer_limits_are_torchs(name: str) -> None:
    ours, theirs = turnout.iinfo(getattr(turnout, name)), torch.iinfo(getattr(torch, name))
    assert (ours.bits, ours.min, ours.max, ours.dtype.name) == (theirs.bits, theirs.min, theirs.max, theirs.dtype)
    assert repr(ours) == f"iinfo(min={theirs.min}, max={theirs.max}, dtype={name})"


def test_the_default_dtype_is_the_default() -> None:
    assert turnout.finfo().dtype is turnout.get_default_dtype()
    assert turnout.finfo().eps == torch.finfo().eps
