"""The kit proves a backend over PyTorch's tensors, which holds no NumPy array."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

CHOSEN = "(gives_what_cpu_gives and row-major) or test_backend_device or pytorch-exp or pytorch-mul. or pytorch-mm"


def test_the_kit_proves_a_backend_of_torch_tensors(tmp_path):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TURNOUT_", "PYTEST_"))}
    clean |= {"PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "torch_backend", "--pyargs", "turnout_conformance"]
    done = subprocess.run(
        [*command, "--turnout-backend=pytorch", "-k", CHOSEN], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "turnout: kernels of pytorch ran for" in done.stdout
