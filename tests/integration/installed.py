"""Temporary environments with really installed fixture packages, and scripts that run in them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Container
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures" / "plugins"
WORKING = ("letters", "counter", "numpy_twin")
BROKEN = ("import_raises", "missing_dependency", "lying_manifest", "misspelt_manifest", "other_api", "twin_one", "twin_two")
CONFIGURING = ("TURNOUT_", "PYTHON", "PYTEST_", "MYPY", "PIP_")
SHARED = {"PYTHONPYCACHEPREFIX", "MYPY_CACHE_DIR"}
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
OFFLINE = ["--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
# Plugins of pytest that are installed here and that no package asks for: each run would import all of zarr and hypothesis.
PYTEST = {"PYTEST_ADDOPTS": "-p no:zarr -p no:hypothesispytest"}
# What pip does with a folder, for several folders, with one import of setuptools.
WHEELS = """
import os, sys
import setuptools.build_meta as backend
wheels, *folders = sys.argv[1:]
for folder in folders:
    if not (child := os.fork()):
        os.chdir(folder)
        os._exit(not backend.build_wheel(wheels))
    assert not os.waitpid(child, 0)[1], folder
"""
COMMANDS = """
from click.testing import CliRunner
from turnout_cli.main import turnout as command

def done(*line):
    result = CliRunner().invoke(command, line)
    return result.exit_code, result.stdout, result.stderr
"""


def clean(**more: str) -> dict[str, str]:
    """The variables of this process, without those that configure it, but for the places of caches."""
    kept = {k: v for k, v in os.environ.items() if k in SHARED or not k.startswith(CONFIGURING)}
    return kept | PYTEST | more


class Environment:
    """A virtual environment that sees what the running interpreter has; packages are added by pip, offline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
            self.see_outside()

    def see_outside(self) -> None:
        """Let it see the packages of the running interpreter."""
        # addsitedir, not a plain line: the editable installs of the running environment have .pth files of their own.
        outer = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (self.packages() / "outer.pth").write_text(outer, encoding="utf-8")

    def packages(self) -> Path:
        """Its site-packages."""
        [found] = (self.folder / "venv").glob("[Ll]ib/**/site-packages")
        return found

    def pip(self, *arguments: str) -> None:
        """A command of pip about this environment; it must end well."""
        done = subprocess.run([*PIP, "--python", str(self.python), *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def install(self, *names: str, folder: Path = FIXTURES, editable: bool = False) -> None:
        """Install packages of a folder, the fixtures by default, from copies: building leaves nothing in the repository."""
        copies = [self.folder / "sources" / name for name in names]
        for name, copy in zip(names, copies, strict=True):
            if not copy.exists():
                shutil.copytree(folder / name, copy, ignore=shutil.ignore_patterns("*.egg-info", "build"))
        if editable or not hasattr(os, "fork"):
            wanted = [text for copy in copies for text in (*(["--editable"] if editable else []), str(copy))]
        else:
            wheels = self.folder / "wheels"
            shutil.rmtree(wheels, ignore_errors=True)
            done = subprocess.run([sys.executable, "-c", WHEELS, wheels, *copies], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            wanted = [str(wheel) for wheel in wheels.glob("*.whl")]
        self.pip("install", *OFFLINE, *wanted)

    def run(self, code: str, *, flags: tuple[str, ...] = (), cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a script in a working directory of its own, without the variables that configure this process."""
        work = cwd or self.folder / "work"
        work.mkdir(exist_ok=True)
        command = [str(self.python), *flags, "-c", code]
        home = {"XDG_CONFIG_HOME": str(self.folder / "home")}
        return subprocess.run(command, cwd=work, env=clean(**home), capture_output=True, text=True)

    def answer(self, code: str, **options: Any) -> Any:
        """What a script leaves in `found`, brought here as JSON; it must end well."""
        done = self.run(f"{code}\nimport json\nprint(json.dumps(found))", **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def command(self, *arguments: str, before: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
        """`turnout ARGUMENTS`, after a line of Python."""
        start = f"import sys; sys.argv[1:] = {arguments!r}\nfrom turnout_cli.main import main; main()"
        return self.run(f"{before}\n{start}", **options)

    def commands(self, *lines: tuple[str, ...], before: str = "") -> list[Any]:
        """Exit code, output and errors of `turnout LINE` for each line, all in one process."""
        return self.answer(f"{before}\n{COMMANDS}\nfound = [done(*line) for line in {lines!r}]")

    def pytest(self, *arguments: str, **options: Any) -> str:
        """What pytest prints, in one process and a folder without a configuration of ours; it must end well."""
        plain = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
        code = f"import sys; sys.path.append({str(HERE)!r}); import pytest; raise SystemExit(pytest.main({list(plain)!r}))"
        done = self.run(code, **options)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def kit(self, *arguments: str) -> str:
        """What turnout-conformance prints; it must end well."""
        return self.pytest("--pyargs", "turnout_conformance", *arguments)


class Only(Environment):
    """What the running interpreter has, but of the distributions of this repository only those of the names, `cpu` for one."""

    def __init__(self, folder: Path, names: Container[str]) -> None:
        self.names = names
        super().__init__(folder)

    def see_outside(self) -> None:
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            ours = re.match(r"(?:__editable__\.)?turnout_(\w+)-", entry.name)
            if (ours is None or ours[1] in self.names) and not (self.packages() / entry.name).exists():
                (self.packages() / entry.name).symlink_to(entry)


class Without(Only):
    """What the running interpreter has, less one distribution of this repository."""

    def __init__(self, folder: Path, missing: str) -> None:
        found = {name.stem.partition("-")[0] for name in Path(sysconfig.get_path("purelib")).glob("turnout_*.dist-info")}
        super().__init__(folder, {name.removeprefix("turnout_") for name in found} - {missing})
