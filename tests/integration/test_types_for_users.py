"""What mypy and pyright see of Turnout's public names, in a folder where nothing but the installed packages tells them.

Each checker runs once over all files: the programs of README.md and docs, calls that are wrong, and calls that are right.
"""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import pytest
from installed import clean
from pages import blocks, tracked

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "types"
PYTHON = Path(sys.executable)
CHANGING = {"add-an-operator.md"}  # pages whose programs run after a change of the operators
FILE = re.compile(r"# \w+/(?:src/)?(\w+/\w+\.py)\n")  # the first line of a block that is a module of a package

Errors = dict[str, dict[int, list[str]]]


def programs() -> Iterator[tuple[str, str]]:
    """File names and texts: every Python program that users read."""
    for page in [
        ROOT / file for file in tracked(("README.md", "docs")) if file.endswith(".md") and Path(file).name not in CHANGING
    ]:
        found: dict[str, str] = {}
        name = ""
        for block in blocks(page):
            module = FILE.match(block.text)
            if block.kind != "python":
                continue
            if module is not None:
                found[module[1]] = block.text
            elif block.goes_on:
                found[name] += "\n" + block.text
            else:
                name = f"{page.stem.replace('-', '_').lower()}_{block.line}.py"
                found[name] = block.text
        yield from found.items()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("types")
    for file, text in programs():
        (made / file).parent.mkdir(exist_ok=True)
        if "/" in file:  # a page need not show an empty __init__.py
            (made / file).with_name("__init__.py").touch()
        (made / file).write_text(text, encoding="utf-8")
    # A page has a kernel in CuPy, which can be installed where CUDA is.
    (made / "cupy.pyi").write_text("from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n", encoding="utf-8")
    for path in FIXTURES.glob("*.py"):
        (made / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return made


def run(command: list[str], folder: Path) -> str:
    # A cache of its own: the other runs of mypy are strict.
    done = subprocess.run(command, cwd=folder, env=clean(MYPY_CACHE_DIR=".mypy_cache"), capture_output=True, text=True)
    assert done.returncode in (0, 1), f"{command[0]} did not work:\n{done.stdout}{done.stderr}"
    return done.stdout


def mypy(folder: Path) -> Iterator[tuple[str, int, str]]:
    options = ["--config-file=", "--python-executable", str(PYTHON), "--no-error-summary", "--hide-error-context"]
    for line in run([str(PYTHON), "-m", "mypy", *options, "."], folder).splitlines():
        match = re.fullmatch(r"(.+?):(\d+): (error|note): (.*)", line)
        assert match, line
        if match[3] == "error":
            yield Path(match[1]).as_posix(), int(match[2]), match[4]


def pyright(folder: Path) -> Iterator[tuple[str, int, str]]:
    command = [str(PYTHON.parent / "pyright"), "--outputjson", "--pythonpath", str(PYTHON), "."]
    report = json.loads(run(command, folder))
    assert report["summary"]["filesAnalyzed"] == len([*folder.rglob("*.py"), *folder.rglob("*.pyi")])
    for each in report["generalDiagnostics"]:
        if each["severity"] == "error":
            file = Path(each["file"]).relative_to(folder.resolve()).as_posix()
            yield file, each["range"]["start"]["line"] + 1, each["message"]


# The name that the plugin of a page brings. Type checkers know those of the packages of this repository only.
BROUGHT = re.compile(r'Module has no attribute "ledger"|"ledger" is not a known attribute of')


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, folder: Path) -> Errors:
    """file -> line -> messages"""
    found: Errors = {}
    for file, line, message in request.param(folder):
        found.setdefault(file, {}).setdefault(line, []).append(message)
    return found


def wrong_lines() -> list[tuple[int, str]]:
    text = (FIXTURES / "wrong_calls.py").read_text(encoding="utf-8")
    return [(i, line.strip()) for i, line in enumerate(text.splitlines(), 1) if line.endswith("# wrong")]


def test_the_programs_of_the_readme_and_the_documentation_have_no_errors(errors):
    names = [name for name, _ in programs()]
    assert len(names) > 8
    found = {name: [m for messages in errors.get(name, {}).values() for m in messages if not BROUGHT.match(m)] for name in names}
    assert {name: messages for name, messages in found.items() if messages} == {}


def test_every_wrong_call_is_refused_and_nothing_else(errors):
    wrong = dict(wrong_lines())
    assert len(wrong) > 100
    refused = errors["wrong_calls.py"]
    assert {i: line for i, line in wrong.items() if i not in refused} == {}
    assert {i: messages for i, messages in refused.items() if i not in wrong} == {}


def test_right_calls_have_the_types_that_they_say(errors):
    assert errors.get("right_calls.py", {}) == {}


def test_the_stubs_are_what_the_sources_give(tmp_path):
    """After a change, `make codegen` writes them anew."""
    runpy.run_path(str(ROOT / "tools" / "stubs" / "setup.py"))["write_stubs"](tmp_path)
    installed = ROOT / "tools" / "stubs" / "src" / "turnout-stubs"

    def texts(folder: Path) -> dict[str, str]:
        return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*.pyi")}

    assert texts(installed) == texts(tmp_path)


def test_the_two_signatures_of_vmap_agree():
    """`turnout.func` declares it for type checkers, as the distribution that has it may be missing."""
    declared, has = (
        ast.unparse(node.args) + ast.unparse(node.returns)
        for module in ("autograd/src/turnout_autograd/public/func.py", "batched/src/turnout_batched/mapping.py")
        for node in ast.walk(ast.parse((ROOT / "plugins" / module).read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "vmap"
    )
    assert declared == has


@cache
def beginning() -> str:
    text = (FIXTURES / "wrong_calls.py").read_text(encoding="utf-8")
    return text.partition("# Names that there are not")[0]


@pytest.mark.parametrize("line", [line for _, line in wrong_lines()])
def test_wrong_calls_raise(line):
    names: dict[str, Any] = {}
    exec(beginning(), names)
    with pytest.raises(Exception):  # noqa: B017 - each has an error of its own; that they are errors is what counts
        exec(line, names)


def is_of(value: Any, type: Any) -> bool:
    """Whether a value is of a type as far as `right_calls.py` writes types."""
    if isinstance(type, UnionType):
        return any(is_of(value, each) for each in get_args(type))
    origin, inner = get_origin(type) or type, get_args(type)
    if origin is tuple:
        return isinstance(value, tuple) and all(is_of(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(is_of(each, inner[1]) for each in value.values())
    if inner:  # type[C]
        return isinstance(value, origin)
    return isinstance(value, origin or object)


def test_right_calls_return_what_they_say_when_they_are_run(monkeypatch):
    seen = []

    def assert_type(value: Any, type: Any) -> Any:
        assert is_of(value, type), f"{value!r} is not {type}"
        seen.append(type)
        return value

    monkeypatch.setattr("typing.assert_type", assert_type)
    text = (FIXTURES / "right_calls.py").read_text(encoding="utf-8")
    exec(compile(text, "right_calls.py", "exec"), {"__name__": "right_calls"})
    assert len(seen) == text.count("\nassert_type(") + text.count("    assert_type(")
