"""`turnout new-plugin`: the package of each kind lints, type-checks, installs and passes its tests; names that cannot be had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import commands
import pytest
from installed import Environment, clean

import turnout
from turnout.plugins import providers
from turnout_cli import new_plugin
from turnout_cli.new_plugin import KINDS, rendered

NAMES = ("chip", "my_2nd_chip")


def run(*args: object):
    ways = ["backend", "--functional"]
    return commands.run("new-plugin", *(word for arg in args for word in (ways if arg == "functional" else [arg])))


def checked(*program: str, folder: Path) -> str:
    """What a program of the running environment prints in a folder, where it must end well."""
    command = [str(Path(sys.executable).parent / program[0]), *program[1:]]
    done = subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_lints_and_type_checks_and_its_tests_pass(kind, tmp_path):
    done = run("my_chip", "--kind", kind, "--folder", str(tmp_path / "my_chip"))
    assert done.exit_code == 0, done.output
    made = tmp_path / "my_chip"
    checked("ruff", "check", ".", folder=made)
    checked("ruff", "format", "--check", ".", folder=made)
    environment = Environment(tmp_path / "environment")
    environment.install("my_chip", folder=tmp_path)
    checked("mypy", "--strict", "--python-executable", str(environment.python), folder=made)
    assert "skipped" not in environment.pytest(cwd=made)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_formatted_whatever_the_length_of_the_name(kind, name, tmp_path):
    assert run(name, "--kind", kind, "--folder", str(tmp_path / name)).exit_code == 0
    checked("ruff", "check", ".", folder=tmp_path / name)
    checked("ruff", "format", "--check", ".", folder=tmp_path / name)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_to_replace(kind):
    for path, text in rendered("my_chip", kind).items():
        assert "$" not in path + text, path
        assert "template" not in path


def test_it_says_what_it_wrote_and_what_comes_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("my_chip", "--kind", "backend")
    assert done.output == (
        "The device my_chip for Turnout: 15 files in my_chip\n"
        "\n"
        '  install  pip install --editable "my_chip[test]"\n'
        "  use      turnout.ones(3, device='my_chip')\n"
        "  prove    pytest --pyargs turnout_conformance --turnout-backend=my_chip\n"
        "  fill in  my_chip/src/turnout_my_chip/backend.py, my_chip/src/turnout_my_chip/kernels.py\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my_chip"]
    found = new_plugin.distributions
    monkeypatch.setattr(new_plugin, "distributions", lambda name: [] if name == "turnout-conformance" else found(name=name))
    monkeypatch.setattr(providers, "named", lambda name: list(new_plugin.distributions(name)))
    done = run("other_chip", "--kind", "backend")
    folder = Path(__file__).parents[2] / "tools" / "conformance"
    assert done.output.splitlines()[2:4] == [
        f"  first    pip install -e {folder}",
        '  install  pip install --editable "other_chip[test]"',
    ]


WRONG = {
    "My-Chip": (
        "turnout: 'My-Chip' cannot be the name of a plugin\n"
        "  expected  lower case letters, digits and single underscores, a letter first\n"
        "  to fix    choose such a name, for example my_chip\n"
    ),
    "turnout-chip": (
        "turnout: 'turnout-chip' cannot be the name of a plugin\n"
        "  expected  lower case letters, digits and single underscores, a letter first\n"
        "  to fix    choose such a name, for example chip\n"
    ),
    "3": (
        "turnout: '3' cannot be the name of a plugin\n"
        "  expected  lower case letters, digits and single underscores, a letter first\n"
        "  to fix    choose such a name, for example my_chip\n"
    ),
    "class": "turnout: class cannot be the name of a plugin: it is a keyword of Python\n  to fix  choose another name\n",
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_no_plugin_can_have_is_refused(kind, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(name, "--kind", kind)
    assert (done.exit_code, done.output) == (1, WRONG[name])
    assert list(tmp_path.iterdir()) == []


VERSION = f"{turnout.__version__}"
TAKEN = {
    ("backend", "cpu"): f"it is the plugin of turnout-cpu {VERSION}",
    ("operators", "autograd"): f"it is the plugin of turnout-autograd {VERSION}",
    ("functionality", "batched_mode"): f"turnout-batched {VERSION} provides the functionality BatchedMode",
    ("backend", "cli"): "the package turnout_cli is installed",
    ("backend", "inference"): "Inference is a dispatch key",
    ("functionality", "add"): "turnout.add is a public name",
}


@pytest.mark.parametrize(("kind", "name"), TAKEN)
def test_a_name_that_is_taken_is_refused(kind, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(name, "--kind", kind)
    assert done.output == f"turnout: the name {name} is taken: {TAKEN[kind, name]}\n  to fix  choose another name\n"
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_names_that_a_plugin_from_outside_provides_are_taken(working):
    code = """
from turnout_cli.new_plugin import taken_by
found = [taken_by("twin", "backend"), taken_by("letters", "operators")]
"""
    assert working.answer(code) == ["fixture-numpy-twin 0.1 provides the device twin", "it is the plugin of fixture-letters 0.1"]


@pytest.mark.parametrize("inside", [True, False])
def test_an_existing_folder_is_left_alone(inside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_chip").mkdir()
    if inside:
        (tmp_path / "my_chip" / "notes.txt").write_text("mine")
    done = run("my_chip", "--kind", "backend")
    assert done.output == (
        "turnout: my_chip exists already\n"
        "  to fix  remove it, write the plugin to another place with --folder, or bring it up to date with --update\n"
    )
    assert done.exit_code == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["my_chip", *(["notes.txt"] if inside else [])]


def test_a_dry_run_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("my_chip", "--kind", "operators", "--dry-run")
    paths = list(rendered("my_chip", "operators"))
    head = f"Operators for Turnout in the namespace my_chip: {len(paths)} files in my_chip, not written"
    assert done.output.splitlines() == [head, *(f"  {path}" for path in paths)]
    assert list(tmp_path.iterdir()) == []


def test_an_update_writes_what_nobody_changed_and_shows_the_rest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("my_chip", "--kind", "operators")
    made = Path("my_chip")
    old = {path: text.replace("pip", "pipx") for path, text in rendered("my_chip", "operators").items()}
    record = {path: new_plugin.digest(text) for path, text in old.items()}
    workflow = ".github/workflows/test.yml"
    (made / workflow).write_text(old[workflow])  # as an earlier version wrote it
    (made / "README.md").write_text("mine\n")
    (made / "CHANGELOG.md").unlink()
    (made / new_plugin.RECORD).write_text(json.dumps(record))
    dry = run("my_chip", "--kind", "operators", "--update", "--dry-run").output
    assert (made / "README.md").read_text() == "mine\n"
    assert not (made / "CHANGELOG.md").exists()
    done = run("my_chip", "--kind", "operators", "--update").output
    assert dry == done.replace("my_chip\n", "my_chip, not written\n", 1)
    head, *lines = done.splitlines()
    assert head == "Operators for Turnout in the namespace my_chip: 3 files in my_chip"
    assert lines[:3] == [f"  {workflow}", f"  {new_plugin.RECORD}", "  CHANGELOG.md"]
    assert lines[3:5] == ["--- yours/README.md", "+++ new/README.md"]
    assert {line[0] for line in lines[6:]} == {"-", "+"}
    now = rendered("my_chip", "operators")
    assert [path for path in now if (made / path).read_text() != now[path]] == ["README.md"]
    again = json.loads(run("my_chip", "--kind", "operators", "--update", "--json").output)
    assert (again["files"], again["differ"]) == ([new_plugin.RECORD], [])


def test_only_what_new_plugin_wrote_is_brought_up_to_date(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("my_chip", "--kind", "operators", "--update")
    head, fix = done.output.splitlines()
    assert head.startswith("turnout: my_chip cannot be brought up to date: ")
    assert fix == "  to fix  name a folder that `turnout new-plugin` wrote"
    assert done.exit_code == 1


def test_a_kind_must_be_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("my_chip", "--kind", "operators", "--functional")
    assert done.output == "turnout: --functional is for --kind backend, and the kind is operators\n"
    assert run("my_chip").exit_code == 2
    assert run("my_chip", "--kind", "driver").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_is_verified_before_it_is_installed(kind, tmp_path):
    run("my_chip", "--kind", kind, "--folder", str(tmp_path / "my_chip"))
    manifest = tmp_path / "my_chip/src/turnout_my_chip/plugin.toml"
    for path in (tmp_path / "my_chip", manifest):
        done = commands.run("verify", str(path))
        head, said = done.output.splitlines()
        assert (done.exit_code, head) == (0, f"my_chip: the manifest {manifest}")
        assert said.startswith("  fine     provides ")


# What is changed in the project of a new backend -> what `verify` says: file, old text, new text, words.
FAULTS = {
    "another name": ("M", 'name = "my_chip"\n', 'name = "your_chip"\n', "expected 'my_chip', the name of the entry point"),
    "no such module": ("M", "turnout_my_chip.plugin", "turnout_my_chip.plugins", "there is no turnout_my_chip.plugins in"),
    "a taken device": ("M", 'device = "my_chip"', 'device = "cpu"', f"the device cpu is provided by turnout-cpu {VERSION} too"),
    "a later API": ("M", 'api = "1.0"', 'api = "1.7"', "it was built for plugin-API 1.7; this turnout-core has 1.0"),
    "no TOML": ("M", "kind = ", "kind : ", "the manifest of turnout-my-chip 0.1.0 is not accepted"),
    "another file": ("P", ":plugin.toml", ":plug.toml", "the manifest of my_chip = 'turnout_my_chip:plug.toml' is not there: "),
    "no file": ("P", ":plugin.toml", "", "is not there: expected 'PACKAGE:plugin.toml'"),
    "no plugin": ("P", '"turnout.plugins"', '"others"', "names no plugin\n  to fix  add [project.entry-points."),
    "no project": ("P", "[project]", "[project", "pyproject.toml cannot be read: "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_discovery_would_refuse_is_said_before(fault, tmp_path):
    run("my_chip", "--kind", "backend", "--folder", str(tmp_path / "my_chip"))
    file, old, new, words = FAULTS[fault]
    path = tmp_path / "my_chip" / {"M": "src/turnout_my_chip/plugin.toml", "P": "pyproject.toml"}[file]
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    done = commands.run("verify", str(tmp_path / "my_chip"))
    assert done.exit_code == 1
    assert words in done.output


def test_a_folder_without_a_project_is_no_plugin(tmp_path):
    done = commands.run("verify", str(tmp_path))
    assert done.output == f"turnout: {tmp_path} has no pyproject.toml\n  to fix  name a project's folder, or a manifest\n"
    absent = commands.run("verify", str(tmp_path / "nothing"))
    assert (absent.exit_code, absent.output) == (1, f"turnout: the file {tmp_path / 'nothing'} does not exist\n")
