"""The kit of Turnout on the device `torchlike`: the device and the plugin, and operators as a sample. The README says how to run all."""

from __future__ import annotations

import subprocess
import sys

SAMPLE = "test_backend_device or test_backend_plugin or mul or neg or (relu and gives_what_cpu_gives)"


def test_the_kit_proves_the_device() -> None:
    kit = [sys.executable, "-m", "pytest", "-q", "--pyargs", "turnout_conformance", "--turnout-backend=torchlike"]
    done = subprocess.run([*kit, "-k", SAMPLE], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
