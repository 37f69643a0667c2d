"""What holds for every suite: a run that depends on nothing outside the repository."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

# Workers share the cores: in each of them the libraries under NumPy, which read this when they are loaded, use one.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(_name, "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which random programs and cases run. `--require-backend` is an option of turnout-conformance."""
    parser.addoption("--programs", type=int, default=None, metavar="N", help="how many random programs each suite runs")
    parser.addoption("--seed", type=int, default=0, metavar="SEED", help="the seed of the first random program")
    parser.addoption("--whole-kit", action="store_true", help="run all of turnout-conformance on dask, not only a part of it")


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> Callable[[int], range]:
    """`seeds(200)`: the seeds of a suite that runs 200 random programs unless the command line asks for another number."""

    def choose(default: int) -> range:
        first, count = request.config.getoption("--seed"), request.config.getoption("--programs")
        return range(first, first + (default if count is None else count))

    return choose


# The whole kit takes many minutes on dask, which has a graph for each call. Of its tests of operators, these run always.
DASK = Path(__file__).parent / "conformance" / "test_dask.py"
PART_OF_KIT = re.compile(r"test_operator_gives_what_cpu_gives\[.*-row-major\]")
OPERATORS = "turnout_conformance.test_backend_operators"


def is_extra(item: pytest.Item) -> bool:
    """Whether a test is one of operators on dask that does not run always."""
    module = getattr(getattr(item, "function", None), "__module__", "")
    return item.path == DASK and module == OPERATORS and not PART_OF_KIT.fullmatch(item.name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out a part of the kit. Names decide, so all workers of a run choose the same."""
    left_out = set() if config.getoption("--whole-kit") else {i for i in items if is_extra(i)}
    if left_out:
        config.hook.pytest_deselected(items=[i for i in items if i in left_out])
        items[:] = [i for i in items if i not in left_out]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector pass over the tests themselves: with all of them collected, each `gc.collect` takes a second."""
    gc.collect()
    gc.freeze()


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
