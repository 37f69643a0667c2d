"""The command where plugins and configuration are broken: it says so, and everything else goes on."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import turnout\n\ndef f():\n    return turnout.ones(2, requires_grad=True) * 2\n")
    return f"{path}:f"


def test_plugins_lists_every_one_with_its_state(together):
    done = together.command("plugins", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    states = {record["distribution"]: record["state"] for record in json.loads(done.stdout)}
    assert states["fixture-missing-dependency"] == "unavailable"
    assert states["fixture-misspelt-manifest"] == "failed"
    assert states["fixture-other-api"] == "incompatible"
    assert states["fixture-twin-one"] == states["fixture-twin-two"] == "conflict"


def test_the_other_commands_work_beside_broken_plugins(together, program):
    lines = [
        ("table", "add"), ("graph", program), ("explain", "mul", "float32[2]", "2"), ("coverage", "add"), ("config",), ("lock",),
        ("doctor", "--traceback"),
    ]  # fmt: skip
    done = dict(zip(lines, together.commands(*lines), strict=True))
    code, text, _ = done.pop(("doctor", "--traceback"))
    assert (code, "Traceback (most recent call last):" in text) == (1, True)
    for line, (code, printed, errors) in done.items():
        assert (code, "Traceback" in errors) == (0, False), (line, errors)
        assert printed
    (said,) = done["table", "add"][2].splitlines()
    assert said.startswith("without ")
    assert said.endswith(": broken, `turnout doctor` says why")


def test_a_configuration_that_cannot_be_read_is_shown_and_stops_only_what_depends_on_it(together, program):
    setting = "import os; os.environ['TURNOUT_STRICT'] = 'maybe'"
    lines = [("doctor",), ("plugins",), ("config",), ("table", "add"), ("lock",), ("graph", program)]
    doctor, plugins, *others = together.commands(*lines, before=setting)
    assert (doctor[0], "configuration: broken\n" in doctor[1], "'maybe'" in doctor[1]) == (1, True, True)
    assert (plugins[0], "'maybe'" in plugins[2]) == (0, True)
    for code, printed, errors in others:
        assert (code, printed) == (1, "")
        assert errors.startswith("turnout: ")
        assert "'maybe'" in errors
