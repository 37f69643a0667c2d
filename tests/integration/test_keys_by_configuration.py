"""A user trains under bf16 autocast, with the profiler on and a backend disabled, by a `turnout.toml` alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import facts

import turnout
from outcomes import in_threads
from turnout import config
from turnout.keys import KEYS
from turnout_cli.digits import MODELS

SETTINGS = """\
[keys]
enable = ["AutocastCPU", "Profiler"]

[plugin.autocast]
dtype = "bfloat16"

[plugin.profiler]
sort = "calls"

[plugins]
disable = ["opencl"]
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory with the settings."""
    (tmp_path / "turnout.toml").write_text(SETTINGS)
    return tmp_path.resolve()


@pytest.mark.parametrize("model", MODELS)
def test_the_demo_trains_with_what_the_file_switches_on(examples, work, model):
    before = "import os; os.environ['TURNOUT_PLUGIN__PROFILER__FILE'] = 'demo.svg'"
    done = examples.command("demo", "--json", "--epochs", "3", "--model", model, cwd=work, before=before)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["accuracy"] > 0.8
    assert found["losses"][-1] < found["losses"][0]
    calls = {(row["key"], row["kernel"]): row["calls"] for row in found["calls"]}
    assert calls["AutocastCPU", "autocast to lower precision"] >= 2
    assert calls["Profiler", "profile"] > 20
    assert f"Profiler (keys.enable, {work / 'turnout.toml'}:2)" in found["explanation"]
    head, columns, first, *_ = done.stderr.splitlines()
    assert re.fullmatch(r"\d+ calls of \d+ operators in \d+\.\d\d ms", head)
    assert columns.split() == ["operator", "calls", "total", "ms", "own", "ms", "share"]
    assert int(first.split()[1]) > 500
    assert first.split()[0] in (work / "demo.svg").read_text()


def test_the_command_keys_says_what_is_on_and_why(examples, work):
    done = examples.command("keys", "--json", cwd=work)
    assert done.returncode == 0, done.stderr
    rows = {row["key"]: row for row in json.loads(done.stdout)["keys"]}
    assert rows["Profiler"] == {
        "key": "Profiler",
        "functionality": "Profiler",
        "state": "on",
        "why": f"keys.enable has Profiler ({work / 'turnout.toml'}:2)",
        "provider": "profiler (turnout-profiler 0.1.0)",
        "plugin_state": "active",
        "place": "directly above BatchedMode",
        "note": "",
    }
    assert (rows["AutocastMeta"]["state"], rows["AutocastCPU"]["state"]) == ("off", "on")
    assert rows["OpenCL"]["plugin_state"] == "disabled"
    order = list(rows)
    assert order.index("Profiler") < order.index("AutogradCPU") < order.index("CPU")


def test_a_disabled_key_and_one_that_cannot_be_used_are_shown_as_such(examples, work):
    file = work / "turnout.toml"
    file.write_text('[keys]\nenable = ["Tracer"]\ndisable = ["Autograd"]\n[plugins]\ndisable = ["tracer"]\n')
    done = examples.command("keys", cwd=work)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"Tracer (keys.enable, {file}:2): the plugin tracer is disabled"
    [row] = [line for line in done.stdout.splitlines() if line.startswith("AutogradCPU ")]
    assert f"disabled  keys.disable has Autograd ({file}:3)" in row


@pytest.fixture
def restored():
    yield
    config.unset()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_by_a_setting_casts_in_every_thread_and_gradients_come_back_in_float32(restored, dtype):
    config.set({"keys.enable": ["Autocast"], "plugin.autocast.dtype": dtype})
    found = []

    def train():
        weight = turnout.ones(3, 3, requires_grad=True)
        made = turnout.ones(2, 3) @ weight
        made.float().sum().backward()
        found.append((made.dtype.name, weight.grad.dtype.name, weight.grad.tolist()))

    train()
    in_threads(train)
    assert found == [(dtype, "float32", [[2.0] * 3] * 3)] * 2


def test_a_context_switches_autocast_of_a_setting_off_and_on_again(restored):
    config.set({"keys.enable": ["AutocastCPU"]})
    x = turnout.ones(2, 2)
    assert turnout.amp.is_autocast_enabled()
    with turnout.autocast("cpu", enabled=False):
        assert not turnout.amp.is_autocast_enabled()
        assert (x @ x).dtype is turnout.float32
        with turnout.autocast("cpu", turnout.float16):
            assert (x @ x).dtype is turnout.float16
    with config.override({"plugin.autocast.dtype": "float16"}):
        assert (x @ x).dtype is turnout.float16
    assert (x @ x).dtype is turnout.bfloat16


@pytest.mark.parametrize("key", ["Tracer", "BatchedMode", "SavedTensors", "Forward", "Inference", "Autograd", "ADInplaceOrView"])
def test_keys_of_contexts_that_nothing_entered_change_no_result(restored, key):
    config.set({"keys.enable": [key]})
    x = turnout.ones(2, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert turnout.vmap(lambda a: a * 2)(turnout.ones(3, 2)).tolist() == [[2.0, 2.0]] * 3


def test_a_key_of_a_backend_cannot_be_enabled_alone(restored):
    with pytest.raises(turnout.errors.ConfigError, match="CPU is one key of Dense, which is enabled as a whole: write 'Dense'"):
        config.set({"keys.enable": ["CPU"]})


# fmt: off
MISSING = {
    "Batched":
        "the key Batched takes part in a call without a batched tensor: a guard or keys.enable includes it\n"
        "  to fix  use turnout.vmap, which includes the key where it is needed",
    "Fake":
        "the key Fake takes part in a call without fake tensors and outside a FakeMode: a guard or keys.enable includes it\n"
        "  to fix  use turnout.FakeMode, which includes the key where it is needed",
}
# fmt: on


@pytest.mark.parametrize("key", MISSING)
def test_a_key_without_what_it_is_for_says_what_to_call(restored, key):
    config.set({"keys.enable": [key]})
    with pytest.raises(turnout.errors.TurnoutError) as caught:
        turnout.ones(2) + 1
    assert str(caught.value) == MISSING[key]


def test_the_command_keys_has_every_key_once():
    keys = [row["key"] for row in facts("keys")["keys"]]
    assert keys[::-1] == sorted(keys, key=lambda key: KEYS.universe.rank[key])
    assert set(keys) == set(KEYS.universe.runtime_keys) - {"Undefined"}
