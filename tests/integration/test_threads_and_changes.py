"""Calls from eight threads while a ninth changes what they use; `THREAD_TEST_SECONDS=10` runs it in full length."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import calls_while_plugins_change as program
from installed import Environment

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "threads.md"
SECONDS = float(os.environ.get("THREAD_TEST_SECONDS", "3"))
CHANGES = 100 * SECONDS


def run(environment: Environment, *arguments: str) -> dict:
    command = [str(environment.python), "-X", "faulthandler", program.__file__, *arguments]
    done = subprocess.run(command, cwd=environment.folder, capture_output=True, text=True, timeout=60 + 20 * SECONDS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def documented() -> set[str]:
    return set(re.findall(r"^\| `(\w+Error)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_errors_that_are_let_pass_are_those_of_the_document():
    assert documented() == {error.__name__ for error in program.DOCUMENTED}


def test_calls_give_right_results_while_plugins_come_and_go_and_kernels_are_registered_and_undone(working):
    found = run(working, str(SECONDS), str(int(CHANGES)), "1")
    assert found["wrong"] == []
    assert found["changes"] >= CHANGES
    assert set(found["documented"]) <= documented()
    works = {work.__name__ for work in (*program.STEADY, *program.PASSING)}
    assert set(found["calls"]) == works
    assert found["afterwards"] == 2.0


def test_no_gradient_is_lost_while_autograd_itself_comes_and_goes(working):
    found = run(working, str(SECONDS / 3), "50", "101", "autograd")
    assert found["wrong"] == []
    assert set(found["documented"]) <= {"NoKernelError"}
    assert found["calls"]["gradients"] > 100
