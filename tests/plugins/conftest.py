"""What tests of several plugins share."""

from __future__ import annotations

from typing import Any

import pytest

INSTRUCTIONS = ("generic", "avx2", "avx512")


@pytest.fixture(params=INSTRUCTIONS)
def instructions(request: pytest.FixtureRequest) -> Any:
    """Each set of instructions that compiled kernels have and the processor, too."""
    from turnout_kernels import native

    try:
        native.choose_instructions(request.param)
    except ValueError:
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    native.choose_instructions("")
