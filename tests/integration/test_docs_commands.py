"""Command lines on pages, where nothing runs them, too: each option is one of its command, and each variable is a setting."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache

import click
import pytest
from pages import FENCE, ROOT, Block, pages, shell_commands
from test_docs_names import options

from turnout.config.settings import CHOICES, SETTINGS
from turnout.config.sources import environment
from turnout_cli.main import COMMANDS
from turnout_cli.main import turnout as cli

INDENTED = re.compile(r"^ {4}\S.*", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
# What a command line of ours begins with, behind variables and `python -m`, and what stands for a command in `make`.
MADE = {"bench": "benchmarks/run.py", "demo": "turnout demo"}
START = r"(?:^|[(/]|=\S* |-m |python )"
OURS = re.compile(
    rf"{START}(turnout [a-z][a-z-]*|turnout-[a-z-]+|pytest|make [a-z-]+|benchmarks/\w+\.py|turnout_aten\.generation)(?=\s|$)"
)
# An option that stands alone -> whose it is.
NOT_OURS = {"--disable-gil": "Python's configure"}


def lines(text: str) -> Iterator[str]:
    """The command lines of a page, and what else it has in code marks."""
    for kind, body in FENCE.findall(text):
        if kind == "sh":
            yield from shell_commands(Block(0, kind, body))
    text = FENCE.sub("", text)
    yield from (line.partition(" #")[0].strip() for line in INDENTED.findall(text))
    yield from (" ".join(code.split()) for code in re.findall(r"`([^`]+)`", INDENTED.sub("", text)))


@cache
def words_of(path: str) -> set[str]:
    """The options of a program with argparse, which its source has as strings."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {"--help", *(text for text in texts if OPTION.fullmatch(text))}


@cache
def scripts() -> dict[str, str]:
    """The commands of examples, and a module that is one -> the sources that define them."""
    found = {"turnout_aten.generation": "plugins/aten/src/turnout_aten/generation/__main__.py"}
    for path in ROOT.glob("examples/*/pyproject.toml"):
        for command, target in tomllib.loads(path.read_text("utf-8"))["project"].get("scripts", {}).items():
            found[command] = f"{path.parent.relative_to(ROOT)}/src/{target.partition(':')[0].replace('.', '/')}.py"
    return found


@cache
def of_click(name: str) -> set[str]:
    """The options of a command of `turnout`; none where there is no such command."""
    context = click.Context(cli)
    command = cli if name == "help" else cli.get_command(context, name)
    if command is None:
        return set()
    return {option for each in command.get_params(context) for option in each.opts if option.startswith("-")}


@pytest.fixture
def has(pytestconfig) -> Callable[[str, str], bool]:
    """Whether a command has an option."""
    absent = object()

    def asked(command: str, option: str) -> bool:
        head, _, name = command.partition(" ")
        if head == "make":
            return asked(MADE.get(name, "pytest"), option)
        if head == "pytest":
            return pytestconfig.getoption(option, absent) is not absent
        if head == "turnout":
            return option in of_click(name)
        return option in words_of(scripts().get(command, command))

    return asked


def commands(line: str) -> Iterator[tuple[str, str]]:
    """Each command of ours on a line, with the rest of its part of the line."""
    for part in re.split(r" (?:&&|\||\|\||;) ", line):
        found = OURS.search(part)
        if found and (not found[1].startswith("turnout-") or found[1] in scripts()):
            yield found[1], part[found.end() :]


def wrong(text: str, has: Callable[[str, str], bool]) -> list[str]:
    """The options on a page that their commands do not have. One that stands alone is of pytest or of any that the page names."""
    named, alone, missing = set(), [], []
    for line in lines(text):
        for command, rest in commands(line):
            named.add(command)
            asked = ["--help", *OPTION.findall(rest)]
            missing += [f"{command} {option}" for option in asked if not has(command, option)]
        if re.match('-|ARGS="', line):
            alone += OPTION.findall(line)
    every = {"pytest", *(named or {f"turnout {name}" for name in COMMANDS})}
    return missing + [each for each in alone if each not in NOT_OURS and not any(has(command, each) for command in every)]


TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in pages()}


def test_every_option_on_a_page_is_one_of_its_command(has):
    assert {page: found for page, text in TEXTS.items() if (found := wrong(text, has))} == {}
    assert {name for text in TEXTS.values() for line in lines(text) for name, _ in commands(line)} >= {*scripts(), *MADE.values()}


def test_an_option_that_a_command_does_not_have_is_noticed(has):
    text = """`turnout demo --model cnn --turnout-key X`, `turnout demos`
`make bench ARGS="--group x --grup"`, `--model`, `--layers`
    turnout-gpt --layers 6 --layer 6  # --none
    CFLAGS=-O1 python -m pytest -k a --turnout-keys B && ruff --fix
"""
    of_commands = ["turnout-gpt --layer", "pytest --turnout-keys", "turnout demo --turnout-key", "turnout demos --help"]
    assert wrong(text, has) == [*of_commands, "make bench --grup"]
    assert wrong("`pytest`, `--turnout-key`, `--layers`", has) == ["--layers"]


def unknown(text: str) -> list[str]:
    """The variables of Turnout in a text that set nothing."""
    named = dict.fromkeys(re.findall(r"\bTURNOUT_[A-Z0-9_]+", text), "")
    entries, known = environment(named).entries, {*SETTINGS, *options()}
    return [str(raw.origin) for name, raw in entries.items() if name not in known and not name.startswith(tuple(CHOICES))]


def test_every_variable_on_a_page_is_a_setting():
    assert unknown("".join(TEXTS.values())) == []
    known = "TURNOUT_CONFIG TURNOUT_SPEED TURNOUT_PLUGINS__CHOOSE__CPU TURNOUT_PLUGIN__JAX__COMPILE_FROM"
    wrong = ["TURNOUT_DEFAULT_DEVISE", "TURNOUT_PLUGIN__JAX__COMPILE_ABOVE", "TURNOUT_PLUGIN__JXA__COMPILE_FROM"]
    assert unknown(f"{known} {' '.join(wrong)}") == [f"environment {name}" for name in wrong]
