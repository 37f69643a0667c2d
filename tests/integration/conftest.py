"""Environments that several files use: each is made once in a run, by the worker that asks for it first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from installed import BROKEN, WORKING, Environment
from workspace import ROOT


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A temporary folder of all workers of a run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def once(shared: Path) -> Callable[[str, Callable[[Path], object]], Path]:
    """`once(name, make)`: the folder that `make` fills, for all workers of the run. The others wait for it."""

    def made(name: str, make: Callable[[Path], object]) -> Path:
        import fcntl  # there is none on Windows

        folder, done = shared / name, shared / f"{name}.done"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # half of it, if the worker that made it failed
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def working(once: Callable[..., Path]) -> Environment:
    """The fixture plugins that work."""
    return Environment(once("working", lambda folder: Environment(folder).install(*WORKING)))


@pytest.fixture(scope="session")
def together(once: Callable[..., Path]) -> Environment:
    """All fixture plugins: those that work, and one for each way of being broken."""
    return Environment(once("together", lambda folder: Environment(folder).install(*WORKING, *BROKEN)))


@pytest.fixture(scope="session")
def examples(once: Callable[..., Path]) -> Environment:
    """The packages of examples/, but for the one that the tests of `new-plugin` write and install."""
    folder = ROOT / "examples"
    names = sorted(path.parent.name for path in folder.glob("*/pyproject.toml") if path.parent.name != "loopback")
    return Environment(once("examples", lambda place: Environment(place).install(*names, folder=folder)))


@pytest.fixture(scope="session", autouse=True)
def _one_cache_of_mypy(shared: Path) -> None:
    """Runs of mypy in new environments share what it found about the packages of this one."""
    os.environ["MYPY_CACHE_DIR"] = str(shared / "mypy")
