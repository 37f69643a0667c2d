"""Pages of the documentation, run as they are written: files are made, commands and programs run, outputs compared.

A fenced block that starts with a comment naming a file is that file. A diff block is a change of the file it names. Any other
python block that begins with an import is a program; one that does not goes on from the block before it. A text block after a
program, or after commands, is the whole output of the last one: only what `VARIES` names may differ. A block of no language is a
picture, a toml block without a file an excerpt. Everything runs in a copy of the packages, one after the other.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from installed import Environment, Only, clean

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./-]+\.(?:toml|py|yml))\n")
# What differs between machines, runs and versions, and what all of it counts as.
VARIES = (
    (re.compile(r"(?<![\w./])/[^\s()]*(?=/turnout[_.])"), ""),  # the folder of a package of Turnout, or of turnout.toml
    (re.compile(r"(?<=\.py):\d+"), ":1"),
    (re.compile(r"(?<=\S)  +"), "  "),  # the width of a column
    (re.compile(r"\b\d+(?:\.\d+)? (?=us\b|ms\b|%)"), "0 "),  # times, and shares of them
    (re.compile(r"(?<=  )\d+\.\d{3}\b"), "0.000"),  # milliseconds in a table
    (re.compile(r"(turnout-[a-z-]+) \d+\.\d+\.\d+"), r"\1 0.0.0"),
)
END = "---- what an earlier block printed ends here"
BETWEEN = f"\nprint({END!r})\n"
CHANGED = re.compile(r"--- ([\w./-]+)\n")


class Block(NamedTuple):
    """A fenced block: the line it starts in, its language, its text."""

    line: int
    kind: str
    text: str

    @property
    def file(self) -> str:
        """The file that it is, or ""."""
        match = FILE.match(self.text)
        return match[1] if match and self.kind in ("toml", "python", "yaml") else ""

    @property
    def goes_on(self) -> bool:
        """Whether it is python that goes on from the block before it."""
        return self.kind == "python" and not self.text.startswith(("import ", "from ", "# "))

    @property
    def changed(self) -> str:
        """The file that it changes, or ""."""
        match = CHANGED.match(self.text)
        return match[1] if match and self.kind == "diff" else ""


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in FENCE.finditer(text)]


def shell_commands(block: Block) -> list[str]:
    """The commands of a block of kind sh, without comments."""
    return [line.partition("  #")[0].strip() for line in block.text.splitlines() if line and not line.startswith("#")]


def changed_text(text: str, block: Block) -> str:
    """A file's text after the change that a diff block shows.

    The lines without a + must stand in the file exactly once, except for those before them in the file that `@@` skips.
    """
    for hunk in re.split(r"^@@.*\n", block.text.partition("\n")[2], flags=re.MULTILINE):
        lines = hunk.splitlines(keepends=True)
        assert all(line[0] in " +\n" for line in lines), f"line {block.line}: only lines with + or a space are understood"
        old = "".join(line[1:] if line[0] == " " else line for line in lines if line[0] != "+")
        new = "".join(line[1:] if line[0] in " +" else line for line in lines)
        if not hunk:
            continue
        assert text.count(old) == 1, f"{block.changed}: {text.count(old)} places are as line {block.line} shows:\n{old}"
        text = text.replace(old, new)
    return text


class Reader:
    """Someone who follows a page, with an environment of their own and no network: in a clone of some folders, or outside.

    The environment sees what is installed outside; `only` names the distributions of this repository among them that it sees.
    """

    def __init__(self, folder: Path, trees: tuple[str, ...] = (), only: Container[str] | None = None) -> None:
        self.environment = Environment(folder) if only is None else Only(folder, only)
        self.python = str(self.environment.python)
        self.clone = folder / "clone"
        self.clone.mkdir()
        for file in tracked(trees):
            (self.clone / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, self.clone / file)
        # `pip` of the environment, which has none of its own: the running one is told where to install.
        commands = {"pip": f'"{sys.executable}" -m pip --python "{self.python}"'}
        if "core" not in trees:  # what is installed outside is used
            commands |= {
                "turnout": f'"{self.python}" -m turnout_cli',
                "pytest": f'"{self.python}" -m pytest -p no:cacheprovider',
                "mypy": f'"{self.python}" -m mypy',
                "ruff": f'"{Path(sys.executable).parent / "ruff"}"',  # `python -m ruff` would look for this very file
            }
        for name, line in commands.items():
            script = self.environment.python.parent / name
            script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
            script.chmod(0o755)

    def run(self, command: list[str] | str) -> subprocess.CompletedProcess[str]:
        """Run a command, or a line of shell, in the clone."""
        variables = clean(
            PATH=f"{self.environment.python.parent}{os.pathsep}{os.environ['PATH']}",
            XDG_CONFIG_HOME=str(self.clone.parent / "home"),
            # What the packages need is there already, and pip would look for it in an index.
            PIP_NO_INDEX="1",
            PIP_NO_DEPS="1",
            PIP_NO_BUILD_ISOLATION="0",
            PIP_DISABLE_PIP_VERSION_CHECK="1",
            PIP_ROOT_USER_ACTION="ignore",
        )
        return subprocess.run(
            command, cwd=self.clone, env=variables, capture_output=True, text=True, shell=isinstance(command, str)
        )

    def done(self, command: list[str] | str, where: str = "") -> str:
        """What a command prints; it must end well."""
        done = self.run(command)
        assert done.returncode == 0, f"{where or command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, page: Path, instead: Mapping[str, str] | None = None) -> list[Block]:
        """Do what the page says, block by block; `instead` has commands that stand for some of the page's, "" for nothing."""
        found = blocks(page)
        printed = ""
        parts: list[str] = []  # what the blocks print that go on from a program
        for i, block in enumerate(found):
            where = f"{page.name}:{block.line}"
            if block.file:
                path = self.clone / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif block.changed:
                path = self.clone / block.changed
                path.write_text(changed_text(path.read_text(), block))
            elif block.kind == "sh":
                for command in shell_commands(block):
                    printed = self.done((instead or {}).get(command, command), f"{where}: {command}")
            elif block.kind == "python":
                if not block.goes_on:
                    program = [block.text, *(each.text for each in going_on(found[i + 1 :]))]
                    parts = self.done([self.python, "-W", "error", "-c", BETWEEN.join(program)], where).split(f"{END}\n")
                printed = parts.pop(0)
            elif block.kind == "text":
                assert is_as_shown(block.text, printed), f"{where} is not what is printed:\n{printed}"
            elif block.kind == "toml":
                tomllib.loads(block.text)
            elif block.kind:
                raise AssertionError(f"{where}: a block of kind {block.kind!r}, which nothing runs")
        return found


def going_on(later: list[Block]) -> Iterator[Block]:
    """The blocks that go on from a program, of those after it: only outputs stand between."""
    for block in later:
        if block.goes_on:
            yield block
        elif block.kind != "text":
            return


def tracked(trees: tuple[str, ...]) -> list[str]:
    """What a clone has of some folders and files: nothing that a build made."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *trees]
    if not trees:
        return []
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return [file for file in done.stdout.splitlines() if (ROOT / file).is_file()]


def is_as_shown(expected: str, printed: str) -> bool:
    """Whether an output is the one shown, but for what `VARIES` names. Spaces at the ends do not count."""
    texts = [expected, printed]
    for pattern, same in VARIES:
        texts = [pattern.sub(same, text) for text in texts]
    shown, found = ([line.rstrip() for line in text.strip().splitlines()] for text in texts)
    return shown == found


def pages() -> list[Path]:
    """Every page that people read: those of the site, and those of folders."""
    names = ("README.md", "CONTRIBUTING.md", "docs")
    return [ROOT / file for file in tracked(names) if file.endswith(".md")] + sorted(ROOT.glob("*/*/README.md"))


def broken_links(page: Path) -> list[str]:
    """Links of a page to files or sections that are not there."""
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", FENCE.sub("", page.read_text(encoding="utf-8"))):
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor.removeprefix("#") not in anchors(path)):
            broken.append(target + anchor)
    return broken


def anchors(page: Path) -> set[str]:
    """The anchors of a page's sections, as GitHub and the site make them."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        again = sum(each == anchor or re.fullmatch(rf"{re.escape(anchor)}-\d+", each) is not None for each in found)
        found.add(f"{anchor}-{again}" if again else anchor)
    return found
