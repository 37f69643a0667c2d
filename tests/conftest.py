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
    """`--require-backend opencl` makes a missing device a failure; `--programs` and `--seed` choose the random programs."""
    parser.addoption(
        "--require-backend", action="append", default=[], metavar="DEVICE", help="fail where this device is missing"
    )
    parser.addoption("--programs", type=int, default=None, metavar="N", help="how many random programs each suite runs")
    parser.addoption("--seed", type=int, default=0, metavar="SEED", help="the seed of the first random program")


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> Callable[[int], range]:
    """`seeds(200)`: the seeds of a suite that runs 200 random programs unless the command line asks for another number."""

    def choose(default: int) -> range:
        first, count = request.config.getoption("--seed"), request.config.getoption("--programs")
        return range(first, first + (default if count is None else count))

    return choose


@pytest.fixture(scope="session")
def need_device(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`need_device("opencl")` skips the test, saying why, where the device cannot be used; fails it where it is required."""
    reasons: dict[str, str] = {}

    def need(device_type: str) -> None:
        if device_type not in reasons:
            reasons[device_type] = _why_not(device_type)
        if reasons[device_type]:
            stop = pytest.fail if device_type in request.config.getoption("--require-backend") else pytest.skip
            stop(f"no device {device_type}: {reasons[device_type]}")

    return need


def _why_not(device_type: str) -> str:
    from turnout import plugins
    from turnout.errors import DeviceError, PluginError

    try:
        plugins.require_device(device_type)
    except (DeviceError, PluginError) as error:
        return next(
            (line.removeprefix("  why").strip() for line in str(error).splitlines() if line.startswith("  why")),
            str(error),
        )
    return ""


def pytest_configure(config: pytest.Config) -> None:
    """Stop the run when the environment would configure Turnout: the tests would then check that configuration."""
    stray = sorted(name for name in os.environ if name.startswith("TURNOUT_"))
    if stray:
        pytest.exit(
            f"these environment variables configure turnout and would change what is tested: {', '.join(stray)}\n"
            f"run again without them: env {' '.join(f'-u {name}' for name in stray)} make test",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
