"""`turnout.autograd.graph.draw`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten.errors.tensors import REQUIRE

if TYPE_CHECKING:
    from collections.abc import Sequence


def graph_format(given: object, formats: Sequence[str]) -> str:
    return f"draw: the format must be {' or '.join(map(repr, formats))}, got {given!r}"


def graph_of_nothing() -> str:
    return "draw: no outputs were given"


def graph_not_tensor(what: str, given: object) -> str:
    return f"draw: {what} must be a tensor, got {type(given).__name__}"


def graph_untracked(index: int) -> str:
    return f"draw: outputs[{index}] does not require a gradient and was not computed from a tensor that does\n{REQUIRE}"


def svg_missing() -> str:
    return (
        'draw: the format "svg" needs pygraphviz, which is not installed\n'
        '  to fix  `pip install pygraphviz`; the format "dot" needs nothing'
    )


def svg_failed(said: str) -> str:
    last = said.strip().splitlines()[-1:] or ["it did not say why"]
    return f"draw: Graphviz could not lay out the drawing: {last[0]}"
