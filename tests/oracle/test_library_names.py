"""Every public name of `torch.library` is here, or stands in the table of what differs, with the reason."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import turnout  # noqa: E402
from turnout import library  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "custom-operators.md"

# Names of torch.library that it imports for itself.
IMPORTED = {"Any", "Callable", "ParamSpec", "Sequence", "TypeVar", "Union", "overload", "deprecated", "contextlib", "functools",
            "inspect", "re", "sys", "torch", "weakref", "NAMELESS_SCHEMA", "TYPE_CHECKING", "device_types_t", "EffectType",
            "OpOverload"}  # fmt: skip


def rows() -> dict[str, str]:
    """The table of the page: name -> the reason for what differs."""
    text = PAGE.read_text("utf-8").partition("## What differs from PyTorch")[2]
    found = re.findall(r"^\| `([^`]+)` \| (.+) \|$", text, re.MULTILINE)
    return dict(found)


def public(value) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def theirs() -> dict[str, object]:
    """Every public function and class of torch.library, and the methods of its classes."""
    names = set(torch.library.__all__) | (public(torch.library) - IMPORTED)
    found = {name: getattr(torch.library, name) for name in names}
    for name in ("Library", "CustomOpDef"):
        found |= {
            f"{name}.{method}": getattr(getattr(torch.library, name), method) for method in public(getattr(torch.library, name))
        }
    return found


def ours(name: str) -> object:
    value: object = library
    for part in name.split("."):
        value = getattr(value, part)
    return value


def parameters(function) -> set[str]:
    """The names of the parameters that a caller can give by name or by place."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in found if not p.name.startswith("_") and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)} - {"self"}


def by_name(function) -> set[str]:
    found = inspect.signature(function).parameters.values()
    return {p.name for p in found if p.kind is p.KEYWORD_ONLY and not p.name.startswith("_")}


def test_every_name_is_here_or_in_the_table():
    missing = []
    for name in theirs():
        try:
            ours(name)
        except AttributeError:
            missing.append(name)
    assert {name for name in missing if name not in rows()} == set()


def test_every_keyword_is_accepted_or_in_the_table():
    missing = set()
    for name, value in theirs().items():
        if not callable(value) or name in rows() or isinstance(value, type):
            continue
        missing |= {f"{name}({word}=)" for word in by_name(value) - parameters(ours(name)) if f"{name}({word}=)" not in rows()}
    assert missing == set()


def test_every_row_is_about_something_that_differs():
    known = theirs()
    for row in rows():
        name, _, word = row.partition("(")
        assert name in known or hasattr(turnout.ops, name.partition(".")[0]), row
        if word:
            word = word.removesuffix("=)")
            assert word in parameters(known[name]), row


def test_overloads_are_listed_as_there():
    for name in ("sin", "add", "sum", "relu"):
        here = set(getattr(turnout.ops.aten, name).overloads())
        # TorchScript's overloads for numbers are not there.
        assert here <= set(getattr(torch.ops.aten, name).overloads()), name
        assert {"out"} & here
    for framework in (torch, turnout):
        with (
            framework.library._scoped_library("surface", "DEF")
            if framework is torch
            else library.Library("surface", "DEF") as lib
        ):
            lib.define("f(Tensor x) -> Tensor")
            lib.define("f.other(Tensor x, Tensor y) -> Tensor")
            assert framework.ops.surface.f.overloads() == ["default", "other"]


def test_checks_of_opcheck_have_the_names_of_torchs():
    from turnout_opcheck.checking import CHECKS

    defaults = inspect.signature(torch.library.opcheck).parameters["test_utils"].default
    assert set(defaults) <= set(CHECKS)
    assert "test_aot_dispatch_static" in CHECKS


class OursMode(turnout.DispatchMode):
    def dispatch(self, op, ks, args):
        return op.redispatch(ks, *args)


class TheirsMode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("framework", "mode"), [(torch, TheirsMode), (turnout, OursMode)], ids=["torch", "turnout"])
def test_a_rule_for_a_mode_gets_what_it_gets_there(framework, mode):
    def shifted(x, n=2, *, m=3):
        return x * n * m

    shifted.__annotations__ = {"x": framework.Tensor, "n": int, "m": int, "return": framework.Tensor}
    op = framework.library.custom_op("surface_rule::shifted", mutates_args=())(shifted)
    seen = []

    @framework.library.register_torch_dispatch("surface_rule::shifted", mode)
    def rule(owner, func, types, args, kwargs):
        seen.append((isinstance(owner, mode), args[1:], kwargs))
        return func(*args, **kwargs) + 1

    x = framework.tensor([1.0])
    assert op(x, 5).tolist() == [15]
    with mode():
        assert op(x, 5, m=7).tolist() == [36]
    assert seen == [(True, (5,), {"m": 7})]
