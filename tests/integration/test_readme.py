"""The README, run as it is written: its files are made, its commands and programs run, and what it shows is what they print.

A fenced block that starts with a comment naming a file is that file. Other python blocks are programs; a text block after
one is its output, in which `...` stands for anything. Everything runs in a copy of the packages, one after the other.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from installed import Environment

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./-]+\.(?:toml|py))\n")
TREES = ("core", "plugins", "tools")


class Block(NamedTuple):
    """A fenced block: the line it starts in, its language, its text."""

    line: int
    kind: str
    text: str

    @property
    def file(self) -> str:
        """The file that it is, or ""."""
        match = FILE.match(self.text)
        return match[1] if match and self.kind in ("toml", "python") else ""


def blocks() -> list[Block]:
    text = README.read_text(encoding="utf-8")
    return [Block(text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in FENCE.finditer(text)]


def shell_commands(block: Block) -> list[str]:
    return [line.partition("  #")[0].strip() for line in block.text.splitlines() if line and not line.startswith("#")]


class Reader:
    """Someone who follows the README in a clone, with an environment of their own and no network."""

    def __init__(self, folder: Path) -> None:
        self.environment = Environment(folder)
        self.clone = folder / "clone"
        self.clone.mkdir()
        for tree in TREES:
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
            shutil.copytree(ROOT / tree, self.clone / tree, ignore=ignored)
        # `pip` of the environment, which has none of its own: the running one is told where to install.
        pip = self.environment.python.parent / "pip"
        pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip --python "{self.environment.python}" "$@"\n')
        pip.chmod(0o755)

    def run(self, command: list[str] | str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("TURNOUT_", "PYTHON"))}
        clean |= {
            "PATH": f"{self.environment.python.parent}{os.pathsep}{clean['PATH']}",
            "XDG_CONFIG_HOME": str(self.clone.parent / "home"),
            # What the packages need is there already, and pip would look for it in an index.
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        }
        return subprocess.run(
            command, cwd=self.clone, env=clean, capture_output=True, text=True, shell=isinstance(command, str)
        )


def is_as_shown(expected: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)


@pytest.mark.skipif(os.name == "nt", reason="the README's commands are for a POSIX shell")
def test_every_file_command_and_program_of_the_readme_works_and_prints_what_it_says(tmp_path):
    reader = Reader(tmp_path)
    printed = ""
    for block in blocks():
        where = f"README.md:{block.line}"
        if block.file:
            path = reader.clone / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.kind == "sh":
            for command in shell_commands(block):
                if command.startswith("make "):
                    continue
                done = reader.run(command)
                assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
        elif block.kind == "python":
            done = reader.run([str(reader.environment.python), "-W", "error", "-c", block.text])
            assert done.returncode == 0, f"{where}\n{done.stderr}"
            printed = done.stdout
        elif block.kind == "text":
            assert is_as_shown(block.text, printed), f"{where} is not what is printed:\n{printed}"
        else:
            raise AssertionError(f"{where}: a block of kind {block.kind!r}, which nothing runs")


def test_the_outputs_shown_are_compared_not_skipped():
    assert is_as_shown("a ... c\n", "a b c\n")
    assert not is_as_shown("a ... c\n", "a b d\n")
    kinds = [block.kind for block in blocks() if not block.file]
    for i, kind in enumerate(kinds):
        assert kind != "text" or kinds[i - 1] == "python"


def test_its_make_commands_are_targets_and_ci_runs_the_same_test_command():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = [c for b in blocks() if b.kind == "sh" for c in shell_commands(b) if c.startswith("make ")]
    assert commands == ["make demo", "make test"]
    for command in commands:
        assert re.search(rf"^{command.removeprefix('make ')}:", makefile, re.MULTILINE)
    assert re.search(r"^step test make test( ARGS=.*)?$", ci, re.MULTILINE)


def test_what_it_links_to_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
