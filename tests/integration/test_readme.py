"""The README, run as it is written (`pages` says how), and the programs of the READMEs of all distributions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from pages import ROOT, Block, Reader, blocks, broken_links, is_as_shown, pages, shell_commands

README = ROOT / "README.md"
PARTS = ("core", "plugins/arrays", "plugins/autograd", "plugins/autocast", "plugins/batched")  # what the README's program needs
INSTALL = f"pip install ./plugins/aten {' '.join(f'./{part}' for part in PARTS)}"
MAKE = {"make demo": INSTALL, "make test": ""}  # `make demo` leaves all packages in .venv


@pytest.mark.skipif(os.name == "nt", reason="the README's commands are for a POSIX shell")
def test_every_file_command_and_program_of_the_readme_works_and_prints_what_it_says(tmp_path):
    reader = Reader(tmp_path, trees=("core", "plugins", "tools"))
    followed = reader.follow(README, MAKE | {". .venv/bin/activate": ""})
    assert {block.kind for block in followed} >= {"sh", "python", "text", "toml"}
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
    backend = "".join(block.text for block in followed if block.file)
    lines = sum(bool(line.strip()) and not line.startswith("#") for line in backend.splitlines())
    said = [n for page in pages() for n in re.findall(r"(?:some |\[|A backend in )(\d+) lines", page.read_text("utf-8"))]
    assert set(said) == {str(round(lines, -1))}
    assert len(said) > 3


def test_the_outputs_shown_are_compared_not_skipped():
    assert not is_as_shown("a ... c\n", "a b c\n")
    assert not is_as_shown("a b\n", "a c\n")
    assert not is_as_shown("tensor([1.000])\n", "tensor([2.000])\n")
    assert not is_as_shown("(turnout-cpu 0.1.0, /a/turnout_cpu/a.py:1)", "(turnout-cpu 0.1.0, /a/turnout_cpu/b.py:1)")
    assert not is_as_shown("  set in  /a/turnout.toml:3", "  set in  /a/turnout.toml:4")
    line = "-> CPU  sin (turnout-cpu {}, {}/turnout_cpu/kernels.py:{})  {} us\n"
    assert is_as_shown(line.format("0.1.0", "/home/me", 7, "  7.5"), line.format("1.2.10", "/var/x", 81, "3212.0"))
    kinds = [block.kind for block in blocks(README) if not block.file]
    for i, kind in enumerate(kinds):
        assert kind != "text" or kinds[i - 1] in ("python", "sh")


def test_its_make_commands_are_targets_and_ci_runs_the_same_test_command():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = [c for b in blocks(README) if b.kind == "sh" for c in shell_commands(b) if c.startswith("make ")]
    assert commands == list(MAKE)
    for command in commands:
        assert re.search(rf"^{command.removeprefix('make ')}:", makefile, re.MULTILINE)
    assert re.search(r"^test +make test( ARGS=.*)?$", ci, re.MULTILINE)


def test_every_page_links_to_files_and_sections_that_exist():
    found = pages()
    assert len(found) > 40
    assert {str(page): broken for page in found if (broken := broken_links(page))} == {}


def test_a_link_to_a_section_that_is_not_there_is_broken(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One `name`\n\n## Two\n\n## Two\n\n[a](#one-name) [b](page.md#two-1) [c](#three) [d](other.md) [e](page.md#two-2)\n"
    )
    assert broken_links(page) == ["#three", "other.md", "page.md#two-2"]


# ---- the README of every distribution: its programs, each in a process of its own

READMES = sorted([*ROOT.glob("plugins/*/README.md"), *ROOT.glob("tools/*/README.md"), *ROOT.glob("core/README.md")])


def programs():
    """Each program, and its whole output where that stands in a block behind it."""
    found = []
    for readme in READMES:
        number = 0
        for block, after in pairwise([*blocks(readme), Block(0, "", "")]):
            if block.kind == "python":
                output = after.text if after.kind == "text" else ""
                found.append(pytest.param(block.text, output, id=f"{readme.parent.name}-{number}"))
                number += 1
    return found


SHOWN = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize(("program", "output"), programs())
def test_a_program_of_the_readme_of_a_distribution_runs_and_prints_what_it_says(program, output, need_device, tmp_path):
    for device in ("cuda", "jax", "opencl"):
        if f'"{device}' in program:
            need_device(device)
    earlier = "" if "import turnout" in program else "import turnout\n"
    if "register_autocast" in program:
        earlier += 'turnout.library.define("mylib::attention", "(Tensor q) -> Tensor")\n'
    command = [sys.executable, "-W", "error", "-c", earlier + program]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    for expected in SHOWN.findall(program):
        assert expected in found.stdout
    assert not output or is_as_shown(output, found.stdout)


def test_an_output_of_a_readme_stands_where_it_is_compared():
    behind = re.compile(r"^```python\n(?:(?!```).*\n)+```\n\n    \S", re.MULTILINE)
    assert [str(readme) for readme in READMES if behind.search(readme.read_text("utf-8"))] == []
    assert behind.search("```python\nprint(1)\n```\n\n    1\n")
    assert sum(bool(each.values[1]) for each in programs()) >= 4
