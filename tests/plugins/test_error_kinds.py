"""The classes that common mistakes raise: each is also the builtin that PyTorch raises in the same place."""

# ruff: noqa: E501 - rows of a table

from __future__ import annotations

from pathlib import Path

import pytest

import turnout
from common_mistakes import MISTAKES
from outcomes import refused
from turnout.errors import CallError, DataError, DTypeError, IndexKindError, ModeError


@pytest.mark.parametrize(("mistake", "theirs", "own"), [pytest.param(*row, id=name) for name, *row in MISTAKES])
def test_a_mistake_raises_its_class_which_is_also_the_one_that_pytorch_raises(mistake, theirs, own):
    with pytest.raises(Exception) as caught:
        mistake(turnout)
    kinds = [each.__name__ for each in type(caught.value).__mro__]
    assert (kinds[0], theirs in kinds) == (own, True), caught.value


def test_the_table_is_what_the_page_promises():
    page = (Path(__file__).parents[2] / "docs" / "coming-from-pytorch.md").read_text("utf-8")
    assert "Every class is also the builtin that PyTorch raises in the same\n  place" in page
    assert "compare 100 common mistakes" in page
    assert len(MISTAKES) >= 100


# fmt: off
TEXTS = [
    (lambda: turnout.ones(3)[1.0], IndexKindError, "an index consists of ints, slices, None, '...', bools, lists and integer or bool tensors; got float"),
    (lambda: turnout.ones(3)[[0.5]], IndexKindError, "a list used as an index must hold ints or bools, got [0.5]"),
    (lambda: turnout.tensor([[1, 2], [3]]), DataError, "tensor: expected a sequence of length 2 at dim 1, got length 1"),
    (lambda: turnout.promote_types(1, 2), DTypeError, "promote_types: expected two dtypes, got 1 and 2"),
    (lambda: turnout.result_type(1, "a"), CallError, "result_type: expected tensors and numbers, got str"),
    (lambda: turnout.nn.functional.pad(turnout.ones(2), (1, 1), mode="no"), ModeError, "pad: mode must be one of constant, reflect, replicate, circular, got 'no'"),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "text"), TEXTS)
def test_what_is_no_index_data_dtype_or_mode_says_so(call, error, text):
    assert refused(error, call) == text
