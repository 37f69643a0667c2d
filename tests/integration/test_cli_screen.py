"""What the commands look like: in narrow and wide terminals, in pipes, with and without colours, in any encoding."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.text import Text
from workspace import ROOT

from turnout_cli import output
from turnout_cli.main import COMMANDS
from turnout_cli.main import turnout as command

PROGRAM = Path(sys.executable).with_name("turnout")
COLOUR = "\x1b["

GRAPH = """\
import turnout


def loss():
    x = turnout.ones(2, requires_grad=True)
    return (x * 2).sum()
"""

# Command -> the lines that show what it prints. Those of `graph`, `lock` and `completion` are files, and never folded.
LINES = {
    "plugins": [["plugins"], ["plugins", "cuda"], ["plugins", "cpuu"]],
    "doctor": [["doctor"]],
    "config": [["config"], ["config", "strict"], ["config", "strikt"]],
    "keys": [["keys"]],
    "table": [["table", "add"], ["table", "exp", "--all"], ["table", "ad"]],
    "explain": [["explain", "add", "float32[2,3]:grad", "float32[3]"], ["explain", "neg", "float33[2]"]],
    "coverage": [["coverage", "add*"], ["coverage", "conv_*"], ["coverage", "nosuch*"]],
    "diff": [["diff", "OLD", "NEW"]],
    "new-plugin": [
        ["new-plugin", "acme", "--kind", "backend", "--folder", "FOLDER"],
        ["new-plugin", "Acme", "--kind", "backend"],
    ],
    "verify": [["verify", "MANIFEST"]],
    "run": [["run", "nosuch.pt2"], ["run", "MODEL"]],
    "demo": [["demo", "--epochs", "1"]],
}
MODEL = ROOT / "tests/plugins/exported/core.pt2"
FILES = {"graph": ["FILE"], "lock": [], "completion": ["bash"]}


@pytest.fixture
def line(tmp_path):
    """A command line, with files for its placeholders: a graph's program, and two lock files."""

    def with_files(args):
        program, old, new = tmp_path / "model.py", tmp_path / "old.lock", tmp_path / "new.lock"
        program.write_text(GRAPH)
        for path, version in ((old, "0.9.0"), (new, "1.0.0")):
            slots = {"aten::mul.Tensor": {"CPU": ["multiply", "kernel", f"turnout-cpu {version}"]}}
            found = {"format": 1, "versions": {}, "plugins": {"cpu of turnout-cpu": version}, "fallbacks": {}, "slots": slots}
            path.write_text(json.dumps(found))
        shutil.rmtree(tmp_path / "acme", ignore_errors=True)
        names = {
            "FILE": f"{program}:loss",
            "OLD": str(old),
            "NEW": str(new),
            "FOLDER": str(tmp_path / "acme"),
            "MODEL": str(MODEL),
            "MANIFEST": str(ROOT / "plugins/cpu/src/turnout_cpu/plugin.toml"),
        }
        return [names.get(arg, arg) for arg in args]

    return with_files


def run(args, monkeypatch, width=None):
    """What a command prints where the terminal has this width: standard output and error together."""
    with monkeypatch.context() as patch:
        patch.setattr(output, "columns", lambda *, stderr=False: width)
        patch.setattr("turnout_cli.main.columns", lambda *, stderr=False: width)
        return CliRunner().invoke(command, args).output


def test_every_command_is_looked_at():
    assert LINES.keys() | FILES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("args", [args for lines in LINES.values() for args in lines if args[0] != "demo"], ids=" ".join)
def test_no_word_and_no_path_is_broken_and_nothing_is_wider_than_the_terminal(args, line, monkeypatch):
    whole, narrow = (run(line(args), monkeypatch, width) for width in (None, 80))
    rules = {"|", ".", *"operator"}  # of the titles of a matrix, and its corner
    words = {word for word in whole.split() if not set(word) <= rules}
    assert words - set(narrow.split()) == set()
    for shown in narrow.splitlines():
        assert len(shown) <= 80 or len(shown.split()) == 1, shown


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_fits_a_terminal(name, monkeypatch):
    assert max(map(len, run([name, "--help"], monkeypatch, 80).splitlines())) <= 80


def test_a_table_that_is_too_wide_has_its_last_columns_as_notes_below(monkeypatch):
    lines = [("add", "a kernel", "a/path:12"), ("mul", "", "b/path:3"), ("neg", "another", ""), ("exp", "", "a/path:12")]
    assert [each.plain for each in output.table_lines(("operator", "kernel", "source"), lines, 24)] == [
        "operator  kernel    note",
        "add       a kernel  1",
        "mul                 2",
        "neg       another",
        "exp                 1",
        "",
        "note  source",
        "1     a/path:12",
        "2     b/path:3",
    ]
    for width in range(24):  # a word that is wider goes beyond it
        assert len([*output.table_lines(("operator", "kernel", "source"), lines, width)]) >= 7
    assert [each.plain for each in output.table_lines(("operator", "kernel", "source"), lines, None)] == [
        "operator  kernel    source",
        "add       a kernel  a/path:12",
        "mul                 b/path:3",
        "neg       another",
        "exp                 a/path:12",
    ]


def test_a_matrix_that_is_too_wide_leads_each_title_to_its_column():
    rows = [("aten::add", "K1", ".", "F2"), ("aten::a_very_long_name_of_an_operator", "K1", "K3", ".")]
    shown = [each.plain for each in output.matrix_lines("operator", ("CPU", "CUDA", "AutogradCPU"), rows, 40)]
    assert shown == [
        "AutogradCPU --------------------------.",
        "CUDA ------------------------------.  |",
        "CPU ----------------------------.  |  |",
        "aten::add                       K1 .  F2",
        "aten::a_very_long_name_of_an_operator",
        "                                K1 K3 .",
    ]
    assert [each.plain for each in output.matrix_lines("operator", ("CPU", "CUDA"), [rows[0][:3]], None)] == [
        "operator   CPU  CUDA",
        "aten::add  K1   .",
    ]


def test_a_line_is_folded_at_blanks_and_goes_on_below_its_text():
    text = "  to fix  name a function that makes its inputs itself: /a/path/that/is/longer/than/the/others.py"
    assert [each.plain for each in output.folded(Text(text), 40, 10)] == [
        "  to fix  name a function that makes its",
        "          inputs itself:",
        "/a/path/that/is/longer/than/the/others.py",
    ]
    assert [each.plain for each in output.folded(Text("nothing to fold"), 40, 4)] == ["nothing to fold"]


# ---- real terminals and pipes


def in_terminal(*args, columns=80, **variables):
    """What a terminal of that many columns shows, and the exit code."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [PROGRAM, *args], stdin=subprocess.DEVNULL, stdout=inner, stderr=inner, env=env | {"TERM": "xterm"} | variables
    )
    os.close(inner)
    shown = b""
    try:
        while part := os.read(outer, 65536):
            shown += part
    except OSError:  # Linux says the end of a terminal in this way
        pass
    os.close(outer)
    return shown.decode().replace("\r\n", "\n"), process.wait()


def in_pipe(*args, **variables):
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    return subprocess.run([PROGRAM, *args], capture_output=True, env=env | {"TERM": "xterm"} | variables, check=False)


def test_a_terminal_is_filled_up_to_its_own_width_and_wide_ignores_it():
    narrow, code = in_terminal("plugins", NO_COLOR="1")
    assert code == 0
    assert COLOUR not in narrow
    assert "     backend:CPU, device:cpu\n" in narrow
    wide, _ = in_terminal("plugins", columns=200, NO_COLOR="1")
    piped = in_pipe("plugins").stdout.decode()
    assert wide == piped == in_terminal("plugins", "--wide", NO_COLOR="1")[0]
    assert max(map(len, piped.splitlines())) > 80
    assert in_terminal("plugins", NO_COLOR="1", COLUMNS="200")[0] == piped


def test_states_have_colours_in_a_terminal_and_none_in_a_pipe_unless_asked_for():
    shown, _ = in_terminal("doctor")
    assert "cpu (turnout-cpu 0.1.0): \x1b[32mactive\x1b[0m\n" in shown
    assert shown.endswith("\x1b[32mhealthy\x1b[0m\n")
    assert "\x1b[32mdiscovered\x1b[0m" in in_terminal("plugins")[0]
    assert COLOUR not in in_pipe("plugins").stdout.decode()
    forced = in_pipe("plugins", FORCE_COLOR="1").stdout.decode()
    assert "\x1b[32mdiscovered\x1b[0m" in forced
    assert COLOUR not in in_pipe("plugins", FORCE_COLOR="1", NO_COLOR="1").stdout.decode()


def test_an_error_is_folded_like_everything_else():
    shown, code = in_terminal("explain", "neg", "float32[2", columns=60, NO_COLOR="1")
    assert code == 2
    assert max(map(len, shown.splitlines())) <= 60
    assert "float32[2,3]:grad@cpu," in shown.split()


def test_what_the_encoding_of_the_output_lacks_is_escaped(tmp_path):
    (tmp_path / "turnout.toml").write_text('plugin.opencl.platform = "Größe →"\n', encoding="utf-8")
    where = {"TURNOUT_CONFIG": str(tmp_path / "turnout.toml")}
    done = in_pipe("config", "plugin.opencl.platform", **where, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert b"'Gr\xf6\xdfe \\u2192'" in done.stdout
    assert b"Gr" in in_pipe("config", "plugin.opencl.platform", **where, PYTHONIOENCODING="ascii").stdout


def test_a_drawing_is_utf_8_whatever_the_encoding_of_the_output(tmp_path):
    (tmp_path / "größe.py").write_text(GRAPH.replace("x = ", "größe = x = "), encoding="utf-8")
    done = in_pipe("graph", str(tmp_path / "größe.py") + ":loss", PYTHONIOENCODING="latin-1", PYTHONUTF8="1")
    assert done.returncode == 0, done.stderr
    assert "größe" in done.stdout.decode("utf-8")
