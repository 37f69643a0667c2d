"""Programs with modules, optimisers and loaders give the same losses on both, with only the imports changed."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any

import nn_programs
import numpy as np
import pytest
import torch


def changed(module: types.ModuleType) -> types.ModuleType:
    """A module of programs with the imports of turnout in place of those of torch."""
    text = Path(str(module.__file__)).read_text()
    text = re.sub(r"^import torch$", "import turnout as torch", text, flags=re.M)
    text = re.sub(r"^(import|from) torch\b", r"\1 turnout", text, flags=re.M)
    made = types.ModuleType(f"{module.__name__}_on_turnout")
    exec(compile(text, f"{module.__name__}.py, on turnout", "exec"), made.__dict__)
    return made


OURS = changed(nn_programs)


@pytest.mark.parametrize("name", [program.__name__ for program in nn_programs.PROGRAMS])
def test_a_program_has_the_same_losses(name: str) -> None:
    torch.set_num_threads(1)
    wanted = getattr(nn_programs, name)(nn_programs.Stream())
    found = getattr(OURS, name)(OURS.Stream())
    assert len(wanted) >= nn_programs.STEPS
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_replicas_on_dask_have_the_same_losses(need_device: Any) -> None:
    need_device("dask")
    found = OURS.data_parallel(OURS.Stream(), device="dask")
    np.testing.assert_allclose(found, nn_programs.data_parallel(nn_programs.Stream()), rtol=1e-4)
