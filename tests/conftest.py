"""What holds for every suite: a run that depends on nothing outside the repository, and which tests it takes."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import progress
import selection
from turnout.config.lock import forbid_imports

ROOT = Path(__file__).parents[1]

forbid_imports()  # an import under the lock of registrations and plugins could wait for ever

# Workers share the cores: in each of them the libraries under NumPy, which read this when they are loaded, use one.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

# Interpreters that tests start read what an earlier one compiled, also where the caller wants no bytecode beside the sources.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which tests and random programs run. `--require-backend` is an option of turnout-conformance."""
    add = parser.addoption
    add("--selection", choices=selection.SELECTIONS, default="all", help="which tests run: see tests/selection.py")
    add("--record-seconds", action="store_true", help="write what each test took to tests/seconds.tsv")
    add("--many", action="store_true", help="sweeps try the large counts that they have for it")
    add("--programs", type=int, default=None, metavar="N", help="how many random programs each suite runs")
    add("--seed", type=int, default=0, metavar="SEED", help="the seed of the first random program")


def pytest_configure(config: pytest.Config) -> None:
    """Stop the run when the environment would configure Turnout: the tests would then check that configuration.

    Only TURNOUT_SPEED may be set, because the suite has to pass with and without the compiled call path.
    """
    stray = sorted(name for name in os.environ if name.startswith("TURNOUT_") and name != "TURNOUT_SPEED")
    if stray:
        pytest.exit(
            f"these environment variables configure turnout and would change what is tested: {', '.join(stray)}\n"
            f"run again without them: env {' '.join(f'-u {name}' for name in stray)} make test",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(progress.Worker(config), "progress")
    elif config.getoption("numprocesses", None) or config.getoption("--record-seconds"):
        config.pluginmanager.register(progress.Progress(config), "progress")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[Any]:
    """Take back what distributed leaves in the environment of whoever starts its workers: it changes how memory is kept."""
    before = os.environ.get(_OF_DISTRIBUTED)
    result = yield
    if before is None:
        os.environ.pop(_OF_DISTRIBUTED, None)
    return result


_OF_DISTRIBUTED = "MALLOC_TRIM_THRESHOLD_"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    """Say in the report of a phase how much CPU time it took, which other work on the machine changes little."""
    report = yield
    now = progress.cpu()
    report.cpu, progress.CPU[0] = now - progress.CPU[0], now
    return report


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> Callable[..., range]:
    """`seeds(200)`: the seeds of a suite that runs 200 random programs unless the command line asks for another number.

    `seeds(200, many=5000)`: those of a sweep, which runs 5000 with `--many` (`make sweeps`).
    """

    def choose(default: int, many: int | None = None) -> range:
        option = request.config.getoption
        count = option("--programs") or (many if option("--many") else None) or default
        return range(option("--seed"), option("--seed") + count)

    return choose


# ---- which tests run


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which the selection has no test."""
    if collection_path.suffix != ".py" or not collection_path.is_relative_to(selection.TESTS):
        return None
    file = collection_path.relative_to(ROOT).as_posix()
    return None if selection.may_have(file, config.getoption("--selection")) else True


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str) -> list[pytest.Item] | None:
    """Make no tests of functions of which the selection has none: of 54,000 that the fast selection would look at, 19,000."""
    if not isinstance(collector, pytest.Module) or not name.startswith("test_"):
        return None
    return [] if selection.has_none_of(f"{collector.nodeid}::{name}", collector.config.getoption("--selection")) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without the garbage collector, which would look at all tests many times, and freeze them for its later passes.

    The last collection finds nothing. It has the collector forget how many objects the tests are: full collections wait until a
    quarter as many new ones are old, and until then nothing frees the cycles among these.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # not `gc.disable`: see turnout/plugins/collector.py
    try:
        return (yield)
    finally:
        gc.set_threshold(*thresholds)
        gc.collect()
        gc.freeze()
        gc.collect()
        progress.CPU[0] = progress.cpu()  # the first test took none of this


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the selection whose devices are there, slow files first. All workers of a run choose the same.

    Tests of core and of aten keep their places before those that activate plugins.
    """
    chosen = selection.SELECTIONS[config.getoption("--selection")]
    missing = Missing(config)
    left_out = [item for item in items if not chosen(item.nodeid) or missing.device_of(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    seconds: dict[Path, float] = {}
    for item in items:
        seconds[item.path] = seconds.get(item.path, 0.0) + (selection.record().seconds(item.nodeid) or 0.0)
    items.sort(key=lambda item: 0.0 if item.nodeid.startswith(("tests/core/", "tests/aten/")) else 1 / (1 + seconds[item.path]))
    config.stash[LEFT_OUT] = {f"no device {name}: {why}": count for (name, why), count in missing.counted.items()}


LEFT_OUT = pytest.StashKey[dict[str, int]]()


class Missing:
    """The devices that are not there.

    A module says with `NEEDS_DEVICE` which device all its tests are for. Tests of the kit are for the device that they prove.
    Where `--require-backend` names the device, its tests stay, and fail.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.required = config.getoption("--require-backend", [])
        self.reasons: dict[str, str] = {}
        self.counted: dict[tuple[str, str], int] = {}

    def device_of(self, item: pytest.Item) -> str:
        """The device without which a test cannot run, if it is missing; else an empty text."""
        params = getattr(getattr(item, "callspec", None), "params", {})
        name = params.get("turnout_device") or getattr(getattr(item, "module", None), "NEEDS_DEVICE", "")
        if not isinstance(name, str) or not name or name in self.required:
            return ""
        if name not in self.reasons:
            from turnout_conformance.plugin import why_not

            self.reasons[name] = why_not(name)
        if not self.reasons[name]:
            return ""
        key = name, self.reasons[name]
        self.counted[key] = self.counted.get(key, 0) + 1
        return name


@pytest.fixture(autouse=True, scope="module")
def needed_device(request: pytest.FixtureRequest) -> None:
    """Fail the tests of a module for a device that is required and missing."""
    name = getattr(request.module, "NEEDS_DEVICE", "")
    if name:
        request.getfixturevalue("need_device")(name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Say after failures that compiled modules are older than their sources. `make test` would have compiled them."""
    question = ["make", "-q", ".venv/.stamp-install"]
    if not exitstatus or not shutil.which("make"):
        return
    if subprocess.run(question, cwd=ROOT, capture_output=True, check=False).returncode == 1:
        terminalreporter.write_line("compiled modules are older than their sources: run `make setup` first")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that started this worker what it left out and how much memory it has had."""
    told: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["left out"] = session.config.stash.get(LEFT_OUT, {})
        told["peak"] = progress.peak()
