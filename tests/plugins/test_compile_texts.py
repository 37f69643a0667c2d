"""The reasons and errors of compiled functions that other tests do not meet."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import turnout
from turnout import compiler, plugins
from turnout.errors import PluginError
from turnout_tracer.compiling import eager, signatures

W = turnout.tensor([1.0, 2.0, 3.0])
KEPT: list[Any] = []


def hooked() -> Any:
    w = W.clone().requires_grad_()
    w.register_hook(lambda grad: grad)
    return w


def as_strided(x: Any) -> Any:
    return turnout.as_strided(x, (2,), (1,)) + 1


def two_devices(x: Any) -> Any:
    return x + 1, turnout.zeros(2, device="meta")


REASONS: list[tuple[Callable[..., Any], Callable[[], Any], str]] = [
    (lambda x: x * 2, hooked, "arguments[0] has hooks"),
    (lambda x: (x, KEPT)[1], W.clone, "the call returns a list that the program has too"),
    (as_strided, lambda: turnout.arange(6.0)[1:4], "as_strided may see memory outside of the tensor that it is given"),
    (two_devices, W.clone, "the graph uses several devices: cpu, meta"),
]


@pytest.mark.parametrize(("function", "make", "why"), REASONS)
def test_the_reasons_why_a_call_runs_eagerly(function: Any, make: Any, why: str) -> None:
    compiled = turnout.compile(function, strict=False)
    with pytest.warns(compiler.CompileWarning) as caught:
        [compiled(make()) for _ in range(2)]
    assert [str(each.message).partition(" runs eagerly: ")[2] for each in caught] == [why]


@pytest.mark.parametrize("kind", ["tensor", "generator"])
def test_what_comes_from_a_place_that_no_signature_sees_is_said(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math, "hidden_tensor", W.clone(), raising=False)
    monkeypatch.setattr(math, "hidden_generator", turnout.Generator(), raising=False)
    functions: dict[str, Callable[[Any], Any]] = {
        "tensor": lambda x: x + math.hidden_tensor,  # type: ignore[attr-defined]
        "generator": lambda x: x + turnout.rand(3, generator=math.hidden_generator),  # type: ignore[attr-defined]
    }
    why = (
        rf"runs eagerly: a {kind} comes from a place that the signature does not see, at .*{Path(__file__).name}:\d+ in <lambda>$"
    )
    compiled = turnout.compile(functions[kind])
    with pytest.warns(compiler.CompileWarning, match=why) as caught:
        found = [compiled(W) for _ in range(3)]
    assert len(caught) == 1
    assert (found[0].tolist() == found[1].tolist()) is (kind == "tensor")


def test_an_operator_without_a_kernel_for_fake_tensors_is_named_and_one_with_it_is_compiled() -> None:
    @turnout.library.custom_op("compile_texts::twice", mutates_args=())
    def twice(x: turnout.Tensor) -> turnout.Tensor:
        return x * 2

    compiled = turnout.compile(lambda x: twice(x) + 1)
    with pytest.warns(compiler.CompileWarning) as caught:
        found = [compiled(W).tolist() for _ in range(2)]
    assert found == [[3.0, 5.0, 7.0]] * 2
    [warning] = caught
    start = "compile: function runs eagerly: the graph cannot be made free of writes: "
    assert str(warning.message).startswith(start)
    assert "compile_texts::twice" in str(warning.message)
    twice.register_fake(turnout.empty_like)
    compiler.reset()
    assert [compiled(W).tolist() for _ in range(2)] == found
    assert [signature.calls for signature in compiler.signatures(compiled)] == [1]


def test_a_signature_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "LIMIT", 50)
    with pytest.raises(compiler.CompileError, match="why     the signature has more than 50 parts"):
        turnout.compile(lambda x, numbers: x, strict=True)(W, list(range(60)))
    monkeypatch.setattr(signatures, "LIMIT", 1_000)
    with pytest.raises(compiler.CompileError, match="why     the signature has more than 1,000 parts"):
        turnout.compile(lambda x, numbers: x, strict=True)(W, list(range(1_000)))


def test_arguments_that_are_nested_too_deep_are_refused() -> None:
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    with pytest.raises(compiler.CompileError, match="why     the arguments, or what the function reaches, are nested too deep"):
        turnout.compile(lambda x, lists: x, strict=True)(W, nested)


def test_results_that_are_not_those_of_the_graph_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "compile", lambda *args: lambda *values: [])
    compiled = turnout.compile(lambda x: x + 1)
    compiled(W)
    with pytest.raises(compiler.CompileError) as error:
        compiled(W)
    assert str(error.value) == "compile: the engine 'eager' returned for function nothing, expected float32 [3] on cpu"


ROWS: list[tuple[str, list[tuple[str, Any]], str]] = [
    ("acme", [("acme", ("acme",))], "compile: the engine 'acme' takes graphs of acme, and this one is on cpu"),
    (
        "",
        [("one", ("cpu",)), ("two", ("cpu",))],
        "compile: several engines serve cpu: one, two\n  to fix  name one by engine=, or by the setting compile.engine",
    ),
    (
        "acme",
        [("acme", ()), ("acme", ())],
        (
            "compile: the engine 'acme' is in several plugins: plugin 0, plugin 1\n"
            "  to fix  disable one of them by the setting plugins.disable"
        ),
    ),
]


@pytest.mark.parametrize(("engine", "rows", "text"), ROWS)
def test_which_engine_is_meant(engine: str, rows: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(f"plugin {i}", SimpleNamespace(name=name, devices=devices)) for i, (name, devices) in enumerate(rows)]
    monkeypatch.setattr(plugins, "engines", lambda: found)
    with pytest.raises(compiler.CompileError) as error:
        turnout.compile(lambda x: x + 1, engine=engine)(W)
    assert str(error.value) == text


def test_an_engine_whose_plugin_is_broken_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SimpleNamespace(name="acme", devices=(), module="turnout_tracer.nodes")
    monkeypatch.setattr(plugins, "engines", lambda: [("tracer", row)])
    start = "compile: the engine 'acme' cannot be used: "
    text = start + "AttributeError: module 'turnout_tracer.nodes' has no attribute 'compile'"
    for expected in (text, start + "PluginError: the plugin tracer has failed"):
        with pytest.raises(compiler.CompileError) as error:
            turnout.compile(lambda x: x + 1, engine="acme")(W)
        assert str(error.value) == expected

        def fail(plugin: str) -> None:
            raise PluginError(f"the plugin {plugin} has failed")

        monkeypatch.setattr(plugins, "activate", fail)
