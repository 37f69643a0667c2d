"""Every public name that is a class in PyTorch is one here, where it is there at all."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

ROOMS = ("", "autograd", "func", "library", "linalg", "nn.functional", "special", "fft", "testing", "utils.checkpoint")


def classes(room):
    theirs, ours = torch, turnout
    for part in filter(None, room.split(".")):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    for name in dir(theirs):
        if isinstance(getattr(theirs, name), type) and not name.startswith("_") and hasattr(ours, name):
            yield name, getattr(ours, name)


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.filterwarnings("ignore")
def test_classes_of_torch_are_classes(room):
    found = dict(classes(room))
    assert [name for name, value in found.items() if not isinstance(value, type)] == []
    assert found or room not in ("", "autograd", "linalg")
