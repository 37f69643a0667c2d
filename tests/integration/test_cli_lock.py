"""lock and diff: a file that says which kernel of which version serves each slot."""

from __future__ import annotations

import json

import pytest
from commands import facts, run, text

from turnout.plugins.manager import Manager
from turnout.registry import Registrations


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    path = tmp_path_factory.mktemp("lock") / "turnout.lock"
    assert text("lock", "-o", path) == f"wrote {path}\n"
    return path


def test_a_lock_names_kernel_reason_and_version_of_each_slot_a_line_for_each_operator(locked):
    found = json.loads(locked.read_text())
    assert found["format"] == 1
    assert found["plugins"]["cpu of turnout-cpu"].endswith(" active")
    kernel, reason, origin = found["slots"]["aten::sin"]["CPU"]
    assert (kernel, reason) == ("sin", "kernel")
    assert origin.startswith("turnout-cpu ")
    lines = locked.read_text().splitlines()
    assert sum(line.startswith('  "aten::sin"') for line in lines) == 1


def test_locking_twice_gives_the_same_text(locked):
    assert text("lock", "--json") == locked.read_text()


@pytest.mark.parametrize("line", [("lock",), ("coverage", "sin*"), ("table", "add")], ids=lambda line: line[0])
def test_plugins_are_activated_once_and_not_for_each_operator(monkeypatch, line):
    activate_all, calls = Manager.activate_all, []
    monkeypatch.setattr(Manager, "activate_all", lambda self, **given: (calls.append(given), activate_all(self, **given)))
    text(*line)
    assert calls == [{}]


def test_nothing_has_changed_since_a_moment_ago(locked):
    done = run("diff", locked)
    assert (done.exit_code, done.stdout) == (0, "nothing has changed\n")
    assert facts("diff", locked, locked) == []


def test_a_kernel_of_another_library_is_shown_and_the_exit_code_is_1(locked, tmp_path):
    new = tmp_path / "new.lock"
    with Registrations("fast", distribution="turnout-fast", version="3.0") as library:
        library.impl("aten::sin", "CPU", lambda self: self, allow_override=True, label="fast_sin")
        library.define("fast::new(Tensor x) -> Tensor")
        text("lock", "-o", new)
    done, rows = run("diff", locked, new), facts("diff", locked, new, code=1)
    assert done.exit_code == 1
    version = json.loads(locked.read_text())["slots"]["aten::sin"]["CPU"][2]
    second, first = done.stdout.splitlines()
    assert first == f"aten::sin @ CPU: sin [kernel] ({version}) -> fast_sin [kernel] (turnout-fast 3.0)"
    assert second.startswith("operator fast::new: nothing -> ")
    assert rows[0] == {
        "what": "aten::sin @ CPU",
        "old": ["sin", "kernel", version],
        "new": ["fast_sin", "kernel", "turnout-fast 3.0"],
    }


def test_an_upgrade_is_one_line_and_not_one_for_each_slot(locked, tmp_path):
    found = json.loads(locked.read_text())
    for slots in found["slots"].values():
        for slot in slots.values():
            if slot[2].startswith("turnout-cpu "):
                slot[2] = "turnout-cpu 0.0.1"
    found["plugins"]["cpu of turnout-cpu"] = "0.0.1 active"
    old = tmp_path / "old.lock"
    old.write_text(json.dumps(found))
    first, second = run("diff", old, locked).stdout.splitlines()
    assert first.startswith("plugin cpu of turnout-cpu: 0.0.1 active -> ")
    assert " slots at CPU, the same kernels: turnout-cpu 0.0.1 -> turnout-cpu " in second


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("no json", "cannot be read as a lock file: Expecting value: line 1 column 1 (char 0)"),
        ("[]", "is not a lock file of format 1; `turnout lock -o FILE` writes one"),
        ('{"format": 2}', "is not a lock file of format 1; `turnout lock -o FILE` writes one"),
        ('{"format": 1}', "has no table 'versions'; `turnout lock -o FILE` writes a whole one"),
    ],
)
def test_a_file_that_is_no_lock_is_refused_with_exit_code_2(tmp_path, other, message):
    path = tmp_path / "other.json"
    path.write_text(other)
    done = run("diff", path)
    assert done.exit_code == 2
    assert done.stderr == f"turnout: {path} {message}\n"
