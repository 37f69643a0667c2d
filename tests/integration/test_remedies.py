"""What an error tells people to type can be typed: commands of pip from an index and from a clone, and those of `turnout`."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import click
import pytest
from pages import ROOT, pages
from workspace import distributions, manifests

from turnout.plugins import providers
from turnout_cli.main import turnout as command

SOURCES = sorted(
    path
    for place in ("core", "plugins/*", "tools/*")
    for path in ROOT.glob(f"{place}/src/**/*.py")
    if "generated" not in path.parts
)
DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# What some machines need, and nothing here can require.
OUTSIDE = {"cupy-cuda12x", "cupy-cuda13x", "jax", "pocl-binary-distribution", "triton"}


def strings(source: str) -> Iterator[str]:
    """The strings of a program without its docstrings; "{}" stands for what an f-string fills in."""
    tree = ast.parse(source)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCSTRINGS) and node.body and isinstance(node.body[0], ast.Expr):
            left_out.add(id(node.body[0].value))
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def required() -> set[str]:
    """Every package from elsewhere that a distribution of this repository requires or has as an extra."""
    found: set[str] = set()
    for each in distributions():
        extras = each.project.get("optional-dependencies", {}).values()
        texts = [*each.project.get("dependencies", ()), *(text for extra in extras for text in extra)]
        found |= {re.split(r"[^\w-]", text)[0] for text in texts}
    return {name for name in found if not name.startswith("turnout")}


def cannot_be_typed(remedy: str) -> list[str]:
    """The packages of `pip install` in a text that no index has, or that a clone installs by another command."""
    given = re.findall(r"pip install (?:-[\w-]+ )*((?!-)[\w.-]+)", remedy)
    return [name for name in given if name not in required() | OUTSIDE]


def test_a_command_of_pip_in_a_text_names_packages_of_an_index_and_leaves_those_of_turnout_to_one_function():
    assert cannot_be_typed("pip install turnout-cpu, or pip install -U numpy or pip install nunpy") == ["turnout-cpu", "nunpy"]
    texts = [(path, text) for path in SOURCES for text in strings(path.read_text("utf-8")) if "pip install" in text]
    assert len(texts) >= 8
    assert [(str(path), text) for path, text in texts if cannot_be_typed(text)] == []


def with_prose(text: str) -> list[str]:
    """The commands of pip in a text that stand outside of backticks and go on in prose, so that the line cannot be typed."""
    commands = re.findall(r"(?<!`)pip install [^`\n]*", text)
    return [
        found for found in commands if not re.fullmatch(r'pip install( -[\w-]+| "?[\w.{}/-]+(\[[\w,]+\])?"?)+', found.rstrip())
    ]


def test_a_command_of_pip_ends_its_line_or_stands_in_backticks():
    assert with_prose('pip install numpy\n  pip install "./plugins/cpu[x]" jax\nor `pip install triton`, or not') == []
    assert len(with_prose("pip install jax, or not\npip install pocl; then again")) == 2
    texts = [(path, text) for path in SOURCES for text in strings(path.read_text("utf-8"))]
    for path in sorted(ROOT.glob("*/*/src/*/plugin.toml")):
        texts += [(path, need["install"]) for need in tomllib.loads(path.read_text("utf-8")).get("needs", ())]
    assert [(str(path), with_prose(text)) for path, text in texts if with_prose(text)] == []


@pytest.mark.parametrize(
    "distribution", [each for each in distributions() if each.name.startswith("turnout-")], ids=lambda each: each.name
)
def test_each_distribution_is_installed_by_its_name_or_from_folders_of_this_clone_with_what_it_needs(distribution, monkeypatch):
    monkeypatch.setattr(providers, "named", lambda name: [])  # nothing is installed, and core came from an index
    assert providers.install(distribution.name) == f"pip install {distribution.name}"
    monkeypatch.setattr(providers, "project_of", lambda found: (ROOT / "core", False))
    words = shlex.split(providers.install(distribution.name))
    assert words[:2] == ["pip", "install"]
    if distribution.folder == ROOT / "core" or not distribution.folder.is_relative_to(ROOT / "plugins"):
        return
    folders = [tomllib.loads((ROOT / word / "pyproject.toml").read_text("utf-8"))["project"] for word in words[2:]]
    assert folders[-1]["name"] == distribution.name
    names = {folder["name"] for folder in folders} | {"turnout-core"}
    for folder in folders:
        assert {re.split(r"[^\w-]", text)[0] for text in folder["dependencies"] if text.startswith("turnout-")} <= names


def test_what_a_manifest_says_of_a_missing_module_installs_that_module():
    """Modules of this repository are installed by the function of the test above, whatever the manifest says."""
    needs = [
        (path, need["module"].partition(".")[0], need["install"])
        for path in manifests()
        for need in tomllib.loads(path.read_text("utf-8")).get("needs", ())
    ]
    others = [row for row in needs if not row[1].startswith("turnout")]
    assert len(others) > 8
    for path, module, install in others:
        assert cannot_be_typed(install) == [], path
        assert re.match(rf"`?pip install {module}(-cuda\d+x)?\b", install), path


# Each class in the place of an attribute that Python has a guess for.
UNCAUGHT = """
import contextlib, importlib, io, json, sys
class Holder:
    value = 1
    def __getattr__(self, name):
        raise error
for module, name in json.load(sys.stdin):
    error = getattr(importlib.import_module(module), name)("what failed\\n  to fix  pip install x")
    try:
        Holder().valu
    except Exception as caught:
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            sys.excepthook(type(caught), caught, None)
        print(name, shown.getvalue().splitlines()[-1].split())
"""


def test_python_adds_no_guess_behind_a_remedy():
    named = re.compile(r"^class (\w+)\([^)]*\b(?:Attribute|Import|Name)Error\)", re.MULTILINE)
    found = [
        (".".join(path.with_suffix("").parts[path.parts.index("src") + 1 :]).removesuffix(".__init__"), name)
        for path in SOURCES
        for name in named.findall(path.read_text("utf-8"))
    ]
    assert len(found) >= 3
    command = [sys.executable, "-c", UNCAUGHT]
    run = subprocess.run(command, input=json.dumps(found), capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [f"{name} ['to', 'fix', 'pip', 'install', 'x']" for _, name in found]


def unknown(line: str) -> str:
    """What the command line `turnout LINE` has that there is not: the command or an option."""
    name, *words = line.split()
    if name.startswith("-") or name in ("help", "COMMAND", "{}"):
        return ""
    found = command.get_command(click.Context(command), name)
    if found is None:
        return name
    options = {option for each in found.params if isinstance(each, click.Option) for option in (*each.opts, *each.secondary_opts)}
    asked = [word.partition("=")[0].rstrip(",.") for word in words if re.match(r"--?[a-z]", word)]
    return next((word for word in asked if word not in options | {"--help", "-h"}), "")


def test_a_command_of_turnout_in_a_text_or_on_a_page_exists_with_its_options():
    assert [unknown(line) for line in ("plugins --json", "plugin", "lock -o FILE", "lock --outptu=x")] == [
        "",
        "plugin",
        "",
        "--outptu",
    ]
    texts = [(path, text) for path in SOURCES for text in strings(path.read_text("utf-8"))]
    texts += [(path, path.read_text("utf-8")) for path in pages()]
    lines = [(str(path), line) for path, text in texts for line in re.findall(r"`turnout ((?:[a-z-]|\{\})[^`\n]*)`", text)]
    assert len(lines) > 60
    assert [(path, line, unknown(line)) for path, line in lines if unknown(line)] == []
