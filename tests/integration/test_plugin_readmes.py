"""The README of every distribution: its programs run as written, in a process of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = [
    pytest.param(readme, block, id=f"{readme.parent.name}-{number}")
    for readme in sorted([*ROOT.glob("plugins/*/README.md"), *ROOT.glob("tools/*/README.md"), *ROOT.glob("core/README.md")])
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL))
]
SHOWN = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize(("readme", "program"), PROGRAMS)
def test_a_program_of_a_readme_runs_and_prints_what_it_says(
    readme: Path, program: str, need_device: Callable[[str], None], tmp_path: Path
) -> None:
    for device in ("cuda", "opencl"):
        if f'"{device}' in program:
            need_device(device)
    earlier = ""
    if "import turnout" not in program:
        earlier = "import turnout\n"
    if "register_autocast" in program:
        earlier += 'turnout.library.define("mylib::attention", "(Tensor q) -> Tensor")\n'
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", earlier + program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    for expected in SHOWN.findall(program):
        assert expected in found.stdout
