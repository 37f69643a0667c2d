"""Every public name of PyTorch is there, or stands on the page that says what to use instead; the page names no other."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

# The parts of torch.nn whose names are compared: each has a list of its public names, but for torch.nn itself.
NN = ["nn", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.stateless"]
PAGE = Path(__file__).parents[2] / "docs" / "coming-from-pytorch.md"


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def missing(theirs: set[str], ours: Any, prefix: str = "") -> set[str]:
    return {prefix + name for name in theirs if not hasattr(ours, name)}


def absent_names() -> set[str]:
    dtypes = {name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)}
    functional = torch.nn.functional
    homes = (functional.__name__, "torch._C._nn", None)
    own = {name for name in dir(functional) if getattr(getattr(functional, name), "__module__", "") in homes}
    return (
        missing(public(torch.__all__) | public(dir(torch._C._VariableFunctions)) | public(dtypes), turnout)
        | missing(public(dir(torch.Tensor)), turnout.Tensor, "Tensor.")
        | missing(public(own), turnout.nn.functional, "nn.functional.")
        | {name for module in NN for name in absent_in(module)}
    )


def absent_in(module: str) -> set[str]:
    theirs: Any = torch
    ours: Any = turnout
    for part in module.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part, None)
    return missing(public(getattr(theirs, "__all__", dir(theirs))), ours, f"{module}.")


def patterns() -> list[str]:
    text = PAGE.read_text(encoding="utf-8").partition("### Every name that is absent")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [pattern for row in rows for pattern in re.findall(r"`([^`]+)`", row)]


def test_every_name_that_is_absent_stands_on_the_page() -> None:
    listed = patterns()
    assert sorted(name for name in absent_names() if not any(fnmatchcase(name, pattern) for pattern in listed)) == []


def test_the_page_says_of_no_name_that_it_is_absent_if_it_is_there() -> None:
    names = absent_names()
    assert [pattern for pattern in patterns() if not any(fnmatchcase(name, pattern) for name in names)] == []


@pytest.mark.parametrize("module", ["linalg", "fft", "special", "func", "amp", "autograd", "random", "signal.windows"])
def test_modules_have_all_names_but_these(module: str) -> None:
    theirs: Any = torch
    ours: Any = turnout
    for part in module.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    named = getattr(theirs, "__all__", None)
    own = named or [n for n in dir(theirs) if getattr(getattr(theirs, n), "__module__", "") == theirs.__name__]
    left_out = {
        "autograd": {"NestedIOFunction", "Variable", "enforce_grad_layout_policy", "grad_mode", "set_multithreading_enabled",
            "variable"},
        "func": {"debug_unwrap", "rearrange", "replace_all_batch_norm_modules_"},
        "fft": {"Tensor"}, "amp": {"is_autocast_available"}, "random": {"thread_safe_generator"},
    }  # fmt: skip
    assert missing(public(own), ours) <= left_out.get(module, set())
