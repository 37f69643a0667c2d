"""What is particular to the device `torchlike`."""

from __future__ import annotations

import pytest
import turnout
from turnout import host_fallback


def test_its_own_kernels_serve_mul_and_neg() -> None:
    host_fallback.reset_calls()
    x = turnout.tensor([[1.0, -2.0], [3.0, 0.5]], device="torchlike")
    assert (-x * 2).tolist() == [[-2.0, 4.0], [-6.0, -1.0]]
    assert host_fallback.calls() == {}


def test_a_write_into_a_view_changes_its_base() -> None:
    x = turnout.ones(2, 2, device="torchlike")
    x[0].mul_(3)
    assert x.tolist() == [[3.0, 3.0], [1.0, 1.0]]


def test_cpu_runs_what_has_no_kernel_here() -> None:
    host_fallback.reset_calls()
    assert turnout.ones(3, device="torchlike").cumsum(0).tolist() == [1.0, 2.0, 3.0]
    assert host_fallback.calls()["aten::cumsum", "torchlike", "cpu"] == 1


def test_the_setting_switches_cpu_off_and_on_at_once() -> None:
    x = turnout.ones(3, device="torchlike")
    with (
        turnout.config.override({"plugin.torchlike.host_fallback": False}),
        pytest.raises(turnout.errors.NoKernelError, match="plugin.torchlike.host_fallback = true lets it run on cpu"),
    ):
        x.cumsum(0)
    assert x.cumsum(0).shape[0] == 3
