"""Levels of vmap: how tensors are taken from one to another while a plugin says how, and without one."""

from __future__ import annotations

from outcomes import refused
from turnout_aten.tensor import levels


class Shaped:
    ndim = 2


def test_lowering_is_the_identity_while_no_vmap_is_active():
    marker = object()
    assert levels.lower(marker, ()) is marker
    assert levels.raise_(marker, ()) is marker
    assert levels.peel(Shaped())[1:] == ((), (0, 1))


def test_lowering_is_what_the_plugin_installed_and_gone_after_undo(monkeypatch):
    monkeypatch.setattr(levels, "_LOWERING", [])  # another test may have activated the plugin
    undo = levels.install_lowering(lambda t, s: ("low", t, s), lambda t, s: ("up", t, s), lambda t: (t, (), ()), lambda t: ())
    assert levels.lower(1, (2,)) == ("low", 1, (2,))
    assert levels.raise_(1, (2,)) == ("up", 1, (2,))
    with_levels = levels.LEVELS.set((1,))
    assert levels.peel(1) == (1, (), ())
    levels.LEVELS.reset(with_levels)
    undo()
    refused(IndexError, levels.lower, 1, (2,))
