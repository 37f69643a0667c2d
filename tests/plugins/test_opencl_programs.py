"""Random chains of operators and views on `opencl`, against the same on `cpu`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from random_programs import chains, indexing, large, writes
from random_programs.on_device import judge, let_go_of_programs
from random_programs.running import check


@pytest.mark.parametrize("kind", [chains, indexing, writes], ids=["chains", "indexing", "writes"])
def test_opencl_computes_what_cpu_computes(kind: Any, seeds: Callable[[int], range], need_device: Callable[[str], None]) -> None:
    need_device("opencl")
    check({seed: kind.Program(seed).lines for seed in seeds(25)}, judge("opencl"))


def test_large_arrays_have_the_values_of_cpu(seeds: Callable[..., range], need_device: Callable[[str], None]) -> None:
    need_device("opencl")
    for seed in seeds(8, many=5000):
        check({seed: large.Program(seed).lines}, judge("opencl"))
        let_go_of_programs(1000)
