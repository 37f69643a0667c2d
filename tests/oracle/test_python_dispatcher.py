"""All 2,048 registration sets of `PythonDispatcher`, against PyTorch's own."""

from __future__ import annotations

import pytest

from turnout.errors import RegistrationError
from turnout_aten.python_dispatcher import PythonDispatcher

torch_dispatcher = pytest.importorskip("torch._python_dispatcher", reason="torch is not installed")


def _answer(dispatcher: object, keys: list[str]) -> tuple[str, str] | None:
    try:
        dispatcher.register(keys)  # type: ignore[attr-defined]
    except RuntimeError:
        return None
    return dispatcher.registrations(), dispatcher.dispatchTable()  # type: ignore[attr-defined]


def _ask_torch(keys: list[str]) -> tuple[str, str] | None:
    # PyTorch's registers one operator for the process as long as the object lives: only one may be alive.
    return _answer(torch_dispatcher.PythonDispatcher(), keys)


def test_the_keys_are_the_same():
    assert PythonDispatcher().keys() == torch_dispatcher.PythonDispatcher().keys()


def test_every_subset_of_the_keys_gives_the_same_texts_and_the_same_errors():
    keys = PythonDispatcher().keys()
    errors = 0
    for mask in range(1 << len(keys)):
        subset = [key for i, key in enumerate(keys) if mask >> i & 1]
        expected = _ask_torch(subset)
        assert _answer(PythonDispatcher(), subset) == expected, subset
        errors += expected is None
    assert errors == 512


@pytest.mark.parametrize("keys", [["CPU", "CPU"], ["Meta"], ["CPU", "Foo"], ["Math"], "CPU"])
def test_what_torch_refuses_is_refused(keys):
    assert _ask_torch(keys) is None
    with pytest.raises(RegistrationError):
        PythonDispatcher().register(keys)


def test_registering_in_two_calls_gives_the_same_texts():
    ours, theirs = PythonDispatcher(), torch_dispatcher.PythonDispatcher()
    for part in (["XLA", "Autograd"], ["CPU", "AutogradXLA"]):
        ours.register(part)
        theirs.register(part)
        assert ours.registrations() == theirs.registrations()
        assert ours.dispatchTable() == theirs.dispatchTable()
