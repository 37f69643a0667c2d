"""What holds for every suite: a run that depends on nothing outside the repository."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

# Workers share the cores: in each of them the libraries under NumPy, which read this when they are loaded, use one.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(_name, "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--programs` and `--seed` choose the random programs. `--require-backend` is an option of turnout-conformance."""
    parser.addoption("--programs", type=int, default=None, metavar="N", help="how many random programs each suite runs")
    parser.addoption("--seed", type=int, default=0, metavar="SEED", help="the seed of the first random program")


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> Callable[[int], range]:
    """`seeds(200)`: the seeds of a suite that runs 200 random programs unless the command line asks for another number."""

    def choose(default: int) -> range:
        first, count = request.config.getoption("--seed"), request.config.getoption("--programs")
        return range(first, first + (default if count is None else count))

    return choose


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
