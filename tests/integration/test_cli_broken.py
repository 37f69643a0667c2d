"""The command where plugins and configuration are broken: it says so, and everything else goes on."""

from __future__ import annotations

import json

import pytest
from installed import Environment

BROKEN = ("import_raises", "missing_dependency", "lying_manifest", "misspelt_manifest", "other_api", "twin_one", "twin_two")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("cli"))
    environment.install("letters", *BROKEN)
    return environment


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import turnout\n\ndef f():\n    return turnout.ones(2, requires_grad=True) * 2\n")
    return path


def run(environment, *args, before=""):
    return environment.run(f"{before}\nimport sys; sys.argv[1:] = {list(args)!r}\nfrom turnout_cli.main import main; main()")


def test_plugins_lists_every_one_with_its_state(broken):
    done = run(broken, "plugins", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    states = {record["distribution"]: record["state"] for record in json.loads(done.stdout)}
    assert states["fixture-missing-dependency"] == "unavailable"
    assert states["fixture-misspelt-manifest"] == "failed"
    assert states["fixture-other-api"] == "incompatible"
    assert states["fixture-twin-one"] == states["fixture-twin-two"] == "conflict"


def test_doctor_tries_each_and_names_state_cause_and_remedy_with_exit_code_1(broken):
    done = run(broken, "doctor")
    assert done.returncode == 1
    assert done.stderr == ""
    text = done.stdout
    assert "(fixture-import-raises 0.1): failed\n  why     " in text
    assert "(fixture-lying-manifest 0.1): failed\n  why     " in text
    assert "(fixture-missing-dependency 0.1): unavailable\n" in text
    assert "  to fix  pip install fixture-driver\n" in text
    assert "(fixture-other-api 0.1): incompatible\n" in text
    assert text.count(": conflict\n") == 2
    assert "(fixture-letters 0.1): active\n" in text
    assert text.endswith("something is broken: see above\n")
    assert "Traceback" not in text


def test_doctor_shows_the_traceback_of_a_plugin_that_raised_when_asked(broken):
    done = run(broken, "doctor", "--traceback")
    assert done.returncode == 1
    assert "Traceback (most recent call last):" in done.stdout


def test_the_other_commands_work_beside_broken_plugins(broken, program):
    for args in (
        ("graph", f"{program}:f"),
        ("table", "add"),
        ("explain", "mul", "float32[2]", "2"),
        ("coverage", "add"),
        ("config",),
        ("lock",),
    ):
        done = run(broken, *args)
        assert done.returncode == 0, (args, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stdout


def test_commands_about_kernels_say_which_plugins_are_left_out(broken):
    (line,) = run(broken, "table", "add").stderr.splitlines()
    assert line.startswith("without ")
    assert line.endswith(": broken, `turnout doctor` says why")


def test_a_configuration_that_cannot_be_read_is_shown_and_does_not_stop_doctor(broken, program):
    setting = "import os; os.environ['TURNOUT_STRICT'] = 'maybe'"
    done = run(broken, "doctor", before=setting)
    assert done.returncode == 1
    assert "configuration: broken\n" in done.stdout
    assert "'maybe'" in done.stdout
    done = run(broken, "plugins", before=setting)
    assert done.returncode == 0
    assert "'maybe'" in done.stderr
    for args in (("config",), ("table", "add"), ("lock",), ("graph", f"{program}:f")):
        done = run(broken, *args, before=setting)
        assert done.returncode == 1
        assert done.stderr.startswith("turnout: ")
        assert "'maybe'" in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
