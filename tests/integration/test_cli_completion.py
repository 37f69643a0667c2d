"""`turnout completion`: shells complete commands, options and names, tried in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import commands
import pytest

from turnout_cli.completion import SHELLS
from turnout_cli.main import COMMANDS

ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

# In bash the function is called as readline calls it; `compopt` works only inside a real completion.
BASH = """\
eval "$(turnout completion bash)"
compopt() { :; }
for COMP_LINE in "$@"; do
    COMP_POINT=${#COMP_LINE}
    _turnout_completion turnout
    echo "${COMPREPLY[@]}"
done
"""
# In zsh the function is called as its completion system calls it, with the builtins that take the answers replaced.
ZSH = """\
compdef() { : }
compadd() { print -rn -- "${(P@)@[-1]} " }
_describe() { local each; for each in ${(P@)3}; do print -rn -- "${each%%:*} "; done }
eval "$(turnout completion zsh)"
for line in "$@"; do
    words=(${(z)line})
    CURRENT=$#words
    _turnout_completion
    print
done
"""
FISH = """\
turnout completion fish | source
for line in $argv
    echo (complete -C $line | string replace -r '\\t.*' '')
end
"""
SCRIPTS = {"bash": [BASH, "--norc"], "fish": [FISH, "--no-config"], "zsh": [ZSH, "-f"]}

# What is typed -> what is offered.
TYPED = {
    "turnout cov": ["coverage"],
    "turnout table addm": ["addmm", "addmm_", "addmv", "addmv_"],
    "turnout table add.T": ["add.Tensor"],
    "turnout table aten::addmm.o": ["aten::addmm.out"],
    "turnout coverage --key AutogradCP": ["AutogradCPU"],
    "turnout coverage --miss": ["--missing"],
    "turnout plugins c": ["cpu", "cuda"],
    "turnout config default_": ["default_device"],
    "turnout demo --device me": ["meta"],
    "turnout completion f": ["fish"],
    "turnout demo --compile ea": ["eager"],
    "turnout nosuch a": [],
}


def answers(shell, lines, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script, *options = SCRIPTS[shell]
    file = tmp_path / "script"
    file.write_text(script)
    done = subprocess.run(
        [shell, *options, str(file), *lines], env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_options_and_names(shell, tmp_path):
    found = {line: answer.split() for line, answer in zip(TYPED, answers(shell, TYPED, tmp_path), strict=True)}
    expected = dict(TYPED)
    if shell == "bash":  # which takes a colon for the end of a word, and replaces what is after it
        expected["turnout table aten::addmm.o"] = ["addmm.out"]
    assert found == expected


def test_all_commands_are_offered(tmp_path):
    assert answers("bash", ["turnout "], tmp_path)[0].split() == list(COMMANDS)


def test_a_configuration_that_cannot_be_read_breaks_no_completion(tmp_path, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "TURNOUT_STRICT", "perhaps")
    assert answers("bash", ["turnout config str", "turnout cov"], tmp_path) == ["", "coverage"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_as_it_is_or_as_json(shell):
    text = commands.text("completion", shell)
    assert "_TURNOUT_COMPLETE" in text
    assert commands.facts("completion", shell) == {"shell": shell, "script": text}
