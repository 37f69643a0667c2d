"""Temporary environments with really installed fixture packages, and scripts that run in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "plugins"


class Environment:
    """A virtual environment that sees what the running interpreter has; packages are added by pip, offline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        self.python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        # addsitedir, not a plain line: the editable installs of the running environment have .pth files of their own.
        outer = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (self.packages() / "outer.pth").write_text(outer, encoding="utf-8")

    def packages(self) -> Path:
        """Its site-packages."""
        [found] = (self.folder / "venv").glob("[Ll]ib/**/site-packages")
        return found

    def install(self, *names: str, folder: Path = FIXTURES, editable: bool = False) -> None:
        """Install packages of a folder, the fixtures by default, from copies: building leaves nothing in the repository."""
        copies = []
        for name in names:
            copy = self.folder / "sources" / name
            shutil.copytree(folder / name, copy, ignore=shutil.ignore_patterns("*.egg-info", "build"))
            copies += ["--editable", str(copy)] if editable else [str(copy)]
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet", "--no-index"]
        done = subprocess.run(
            [*command, "--no-build-isolation", "--no-deps", "--disable-pip-version-check", *copies],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def run(self, code: str, *, flags: tuple[str, ...] = (), cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a script in a working directory of its own, without the variables that configure this process."""
        work = cwd or self.folder / "work"
        work.mkdir(exist_ok=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("TURNOUT_", "PYTHON"))}
        clean["XDG_CONFIG_HOME"] = str(self.folder / "home")
        return subprocess.run([str(self.python), *flags, "-c", code], cwd=work, env=clean, capture_output=True, text=True)

    def answer(self, code: str, **options: Any) -> Any:
        """What a script printed, as JSON; it must end well."""
        done = self.run(code, **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


class Without(Environment):
    """What the running interpreter has, less one distribution of this repository."""

    def __init__(self, folder: Path, missing: str) -> None:
        super().__init__(folder)
        (self.packages() / "outer.pth").unlink()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if f"turnout_{missing}" not in entry.name and not (self.packages() / entry.name).exists():
                (self.packages() / entry.name).symlink_to(entry)
