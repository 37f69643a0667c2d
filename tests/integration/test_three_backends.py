"""cpu, opencl and NumPy under another name, installed as plugins, in one process: configuration enables and disables each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from installed import Environment

DEVICES = ("cpu", "opencl", "twin")
PLUGINS = {"cpu": "cpu", "opencl": "opencl", "twin": "numpy_twin"}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("three"))
    made.install("numpy_twin")
    return made


@pytest.fixture(autouse=True)
def opencl(need_device: Callable[[str], None]) -> None:
    need_device("opencl")


def test_copies_go_each_way_and_mixing_names_both(three: Environment) -> None:
    done = three.run(f"""
import turnout
for source, target in {list(permutations(DEVICES, 2))}:
    x = turnout.arange(6.0, device=source).reshape(2, 3).t()
    moved = x.to(target)
    assert (moved.device.type, moved.tolist()) == (target, x.tolist())
    assert turnout.zeros(3, 2, device=target).copy_(x).tolist() == x.tolist()
    try:
        x + moved
    except turnout.errors.DeviceError as error:
        assert f"self on {{x.device}}, other on {{moved.device}}" in str(error), error
    else:
        raise AssertionError((source, target))
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("disabled", DEVICES)
def test_a_file_disables_one_and_the_others_compute(three: Environment, disabled: str, tmp_path: Path) -> None:
    (tmp_path / "turnout.toml").write_text(f'[plugins]\ndisable = ["{PLUGINS[disabled]}"]\n')
    done = three.run(
        f"""
import turnout
for device in {DEVICES}:
    try:
        found = turnout.arange(3.0, device=device).exp().sum().item()
    except turnout.errors.DisabledError as error:
        assert device == {disabled!r} and "turnout.toml:2" in str(error), error
    else:
        assert device != {disabled!r} and abs(found - 11.107337) < 1e-5, (device, found)
""",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("disabled", DEVICES)
def test_a_call_disables_one_that_was_used_and_enables_it_again(three: Environment, disabled: str) -> None:
    done = three.run(f"""
import turnout

def works(device):
    try:
        return turnout.ones(2, device=device).exp().shape == (2,)
    except turnout.errors.DisabledError:
        return False

assert all(works(device) for device in {DEVICES})
turnout.config.set(plugins__disable=[{PLUGINS[disabled]!r}])
assert [device for device in {DEVICES} if not works(device)] == [{disabled!r}]
turnout.config.unset()
assert all(works(device) for device in {DEVICES})
""")
    assert done.returncode == 0, done.stderr


def test_the_host_fallback_says_that_the_host_is_disabled(three: Environment) -> None:
    done = three.run("""
import turnout
turnout.config.set(plugins__disable=["cpu"])
x = turnout.ones(2, device="opencl")
try:
    turnout.host_fallback.host("cpu")(turnout.ops.aten.exp.default, 0, (x,))
except turnout.errors.DisabledError as error:
    print(error)
""")
    assert done.stdout.startswith("device 'cpu': the plugin cpu is disabled\n"), done.stderr
