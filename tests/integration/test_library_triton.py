"""`triton_op` and `wrap_triton`, without Triton and with a module that stands for it."""

from __future__ import annotations

import pytest

import turnout
from turnout import Tensor, library
from turnout.errors import PluginError


def twice(x: Tensor) -> Tensor:
    return x.exp() * 2


@pytest.mark.parametrize(
    ("api", "call"),
    [("triton_op", lambda: library.triton_op("tri::f", mutates_args=())), ("wrap_triton", lambda: library.wrap_triton(twice))],
)
def test_without_triton_the_error_says_what_is_missing(monkeypatch, api, call):
    monkeypatch.setattr("turnout_aten.triton.find_spec", lambda name: None)
    with pytest.raises(PluginError) as caught:
        call()
    assert str(caught.value) == f"{api}: Triton is not installed\n  to fix  pip install triton, or write the kernel for custom_op"


def test_a_trace_shows_the_parts_of_a_triton_operator(monkeypatch):
    monkeypatch.setattr("turnout_aten.triton.find_spec", lambda name: object())
    op = library.triton_op("tri::twice", mutates_args=())(twice)
    try:
        x = turnout.tensor([0.0, 1.0])
        assert op(x).tolist() == twice(x).tolist()
        graph = turnout.trace(op)(x)
        assert [node.op.qualified_name for node in graph.nodes] == ["aten::exp", "aten::mul.Scalar"]
        assert graph(x).tolist() == twice(x).tolist()
        plain = library.custom_op("tri::plain", mutates_args=())(twice)
        assert [node.op.qualified_name for node in turnout.trace(plain)(x).nodes] == ["tri::plain"]
        plain.undo()
    finally:
        op.undo()
    assert library.wrap_triton(twice) is twice
