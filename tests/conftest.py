"""What holds for every suite: a run that depends on nothing outside the repository."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Stop the run when the environment would configure Turnout: the tests would then check that configuration."""
    stray = sorted(name for name in os.environ if name.startswith("TURNOUT_"))
    if stray:
        pytest.exit(
            f"these environment variables configure turnout and would change what is tested: {', '.join(stray)}\n"
            f"run again without them: env {' '.join(f'-u {name}' for name in stray)} make test",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
