"""The start: `import turnout` in a new interpreter against the interpreter alone, and the first large call with turnout-kernels
against the same without it.

What counts is what users have: wheels, installed with their bytecode. They are built from a copy of the sources into an
environment of their own; where that fails, or in a hurry, the running environment is measured and the table says so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import QUICK, Result, Side, summary

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("LICENSE", "core", "plugins", "tools")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
OFFLINE = ["--no-index", "--no-deps"]


OTHERS = ("bare Python", "no turnout-kernels")
IMPORTS = ("import turnout", "pass")
OWN = "this environment, not installed wheels"
_CALL = "import turnout; turnout.config.set({{'plugins.disable': {}}}); turnout.nn.functional.gelu(turnout.ones(1 << 20))"
FIRST_CALLS = (_CALL.format([]), _CALL.format(["kernels"]))


def measure(quick: bool) -> Result:
    """Start with the import and without it; `value` is the median difference, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        python, note = (sys.executable, OWN) if quick else installed(Path(folder))
        return difference(python, IMPORTS, QUICK if quick else 60, Path(folder), note)


def measure_first_call(quick: bool) -> Result:
    """Import and call an operator once, with turnout-kernels and without it; `value` as above."""
    with tempfile.TemporaryDirectory() as folder:
        return difference(sys.executable, FIRST_CALLS, QUICK if quick else 60, Path(folder), OWN)


def installed(folder: Path) -> tuple[str, str]:
    """The interpreter of an environment with all wheels in it, and a note."""
    try:
        return str(install_wheels(folder)), "installed wheels with bytecode"
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or "no output").strip().splitlines()[-1]
        return sys.executable, f"this environment, for the wheels cannot be built: {last}"


def install_wheels(folder: Path) -> Path:
    """Build and install every distribution of this repository. Raises CalledProcessError."""
    tree = folder / "tree"
    tree.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=ignore)
        else:
            shutil.copyfile(source, tree / name)
    plugins_and_tools = [file.parent for part in PARTS[2:] for file in sorted((tree / part).glob("*/pyproject.toml"))]
    projects = map(str, [tree / "core", *plugins_and_tools])
    _run([*PIP, "wheel", *OFFLINE, "--no-build-isolation", "-w", str(folder), *projects], tree)
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], folder)
    [python] = [p for p in (folder / "env/bin/python", folder / "env/Scripts/python.exe") if p.exists()]
    _run([*PIP, "--python", str(python), "install", *OFFLINE, *map(str, folder.glob("*.whl"))], folder)
    return python


def _run(command: list[str], cwd: Path) -> None:
    subprocess.run(command, check=True, cwd=cwd, capture_output=True, text=True)


def difference(python: str, programs: tuple[str, str], repeats: int, cwd: Path, note: str) -> Result:
    """Seconds for each program, and their difference."""
    times: tuple[list[float], list[float]] = ([], [])
    for program in programs:
        start(python, program, cwd)  # files into memory, bytecode written where it was missing
    for repeat in range(repeats):
        for i in (0, 1) if repeat % 2 else (1, 0):
            times[i].append(start(python, programs[i], cwd))
    return summary(*times, [a - b for a, b in zip(*times, strict=True)], note)


def start(python: str, program: str, cwd: Path) -> float:
    """Seconds from starting an interpreter to its end, of the clock that was chosen. -I: nothing of the caller's folder and
    variables."""
    begin = _now()
    subprocess.run([python, "-I", "-c", program], check=True, cwd=cwd)
    return _now() - begin


def _now() -> float:
    """Seconds on the clock, or the processor's time of all processes that were started."""
    if Side.clock is time.perf_counter:
        return time.perf_counter()
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
