"""Several OpenCL devices and platforms: copies, guards, kernels, streams and refusals.

A child process shows PoCL's CPU as two devices.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import turnout

pytestmark = pytest.mark.usefixtures("opencl")
PREAMBLE = """
import turnout
from turnout.errors import DeviceError

if turnout.opencl.device_count() < 2:
    raise SystemExit(77)
x, y = turnout.arange(6.0, device="opencl:0"), turnout.arange(6.0, device="opencl:1")


def refused(call):
    try:
        call()
    except DeviceError as error:
        return str(error).partition("\\n")[0]
    raise AssertionError("nothing was raised")


"""


def run(code: str) -> None:
    """Run code where there are two devices; skip the test where PoCL is not the driver, or does not show two."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + code], env={**os.environ, "POCL_DEVICES": "basic pthread"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("the driver does not show two devices; PoCL does, by POCL_DEVICES")
    assert done.returncode == 0, done.stderr


def test_each_device_computes_with_its_own_memory() -> None:
    run("""
assert [str(each.device) for each in (x, y, turnout.zeros_like(y), y + 1, y.sort().values)] == ["opencl:0", *["opencl:1"] * 4]
assert turnout.opencl.get_device_name("opencl:0") != turnout.opencl.get_device_name("opencl:1")
for call in (turnout.exp, turnout.sum, lambda t: t.view(2, 3) @ t.view(3, 2), lambda t: t[t > 2], lambda t: t.softmax(0)):
    assert call(x).tolist() == call(y).tolist()
inverse = turnout.linalg.inv(turnout.eye(3, device="opencl:1"))  # on the host
assert (str(inverse.device), inverse.tolist()) == ("opencl:1", turnout.eye(3).tolist())
counted = [turnout.opencl.memory_stats(f"opencl:{i}")["allocated_bytes.all.current"] for i in (0, 1)]
kept = turnout.ones(1000, device="opencl:1")
assert turnout.opencl.memory_stats("opencl:0")["allocated_bytes.all.current"] == counted[0]
assert turnout.opencl.memory_stats("opencl:1")["allocated_bytes.all.current"] == counted[1] + 4000
draws = [turnout.rand(5, device=d, generator=turnout.Generator(d).manual_seed(3)).tolist() for d in ("opencl:0", "opencl:1")]
assert draws[0] == draws[1]
""")


def test_tensors_are_copied_from_one_device_to_the_other() -> None:
    run("""
import pickle
import numpy as np

there = x.view(2, 3).t().to("opencl:1")
assert (str(there.device), there.tolist()) == ("opencl:1", x.view(2, 3).t().tolist())
assert str(y.to("opencl").device) == "opencl:0"
assert x.copy_(y + 1).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
weight = turnout.ones(6, device="opencl:1", requires_grad=True)
(weight.to("opencl:0") * x).sum().backward()
assert (str(weight.grad.device), weight.grad.tolist()) == ("opencl:1", x.tolist())
assert str(pickle.loads(pickle.dumps(y)).device) == "opencl:1"
assert y.__dlpack_device__() == (4, 1)
assert np.from_dlpack(y, device="cpu").tolist() == y.tolist()
assert turnout.from_dlpack(y).device == y.device
""")


def test_operands_on_two_devices_are_refused_and_nothing_is_written() -> None:
    run("""
assert refused(lambda: x + y) == "aten::add.Tensor: tensors on two devices: self on opencl:0, other on opencl:1"
assert refused(lambda: turnout.cat([x, y])) == (
    "aten::cat: tensors on two devices: tensors[0] on opencl:0, tensors[1] on opencl:1"
)
assert refused(lambda: turnout.add(x, x, out=y)) == "aten::add.out: tensors on two devices: self on opencl:0, out on opencl:1"
assert refused(lambda: y[turnout.tensor([0], device="opencl:0")]) == (
    "aten::index.Tensor: tensors on two devices: self on opencl:1, indices[0] on opencl:0"
)
assert refused(lambda: turnout.ones(1, device="opencl:2")) == "opencl:2 does not exist: opencl has 2 device(s)"
assert (y + turnout.tensor(1.0)).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
assert y.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
try:
    turnout.empty(1 << 40, device="opencl:1")
except turnout.errors.OutOfMemoryError as error:
    assert str(error).startswith("opencl:1 has no room for 4.0 TiB (float32 [1099511627776])")
else:
    raise AssertionError
""")


def test_a_stream_chooses_its_device_and_the_other_ones_keep_theirs() -> None:
    run("""
cl = turnout.opencl
s = cl.Stream("opencl:1")
assert (str(s.device), str(cl.default_stream("opencl:1").device)) == ("opencl:1", "opencl:1")
try:
    with cl.stream(s):
        assert str(turnout.ones(1, device="opencl").device) == "opencl:1"
        assert cl.current_stream() is cl.current_stream("opencl:1") is s
        assert cl.current_stream("opencl:0") is cl.default_stream("opencl:0")
        first = cl.Stream("opencl:0")
        with cl.stream(first):
            assert str(turnout.ones(1, device="opencl").device) == "opencl:0"
            assert (cl.current_stream("opencl:0"), cl.current_stream("opencl:1")) == (first, s)
            assert (x.exp() + 1).tolist() == (y.exp() + 1).tolist()  # each in the stream of its device
        assert (x + 1).tolist() == (y + 1).tolist()
        1 // 0
except ZeroDivisionError:
    pass
assert str(turnout.ones(1, device="opencl").device) == "opencl:0"
with cl.stream(s):
    z = y * 2
event = s.record_event()
first.wait_event(event)  # through the host
with cl.stream(first):
    assert z.to("opencl:0").sum().item() == 30.0
start, end = (cl.Event(enable_timing=True) for _ in range(2))
start.record(s)
end.record(first)
cl.synchronize("opencl:0")
cl.synchronize("opencl:1")
try:
    start.elapsed_time(end)
except turnout.errors.CallError as error:
    assert str(error) == "elapsed_time: the events are of two devices, opencl:1 and opencl:0"
else:
    raise AssertionError
with cl.profile() as found:
    x.exp()
    y.exp()
assert [each.device for each in found.kernels] == ["opencl:0", "opencl:1"]
""")


class Platform:
    """A platform of a driver that is not installed."""

    def __init__(self, name: str, devices: list[str] | None) -> None:
        self.name = name
        self._devices = devices

    def get_devices(self) -> list[str]:
        import pyopencl as cl

        if self._devices is None:
            raise cl.Error("no device")
        return self._devices


def test_the_option_platform_leaves_the_others_out_and_indices_count_over_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_opencl import devices

    platforms: Any = [Platform("NVIDIA CUDA", ["a", "b"]), Platform("Empty", None), Platform("Intel(R) OpenCL", ["c"])]
    monkeypatch.setattr(devices.cl, "get_platforms", lambda: platforms)
    assert devices.found_devices() == ["a", "b", "c"]
    assert devices.found_devices("nvidia") == ["a", "b"]
    assert devices.found_devices("Intel") == ["c"]
    assert devices.found_devices("empty") == devices.found_devices("AMD") == []


def test_the_option_platform_is_read_when_the_plugin_is_activated() -> None:
    name = turnout.ones(1, device="opencl").array.place.device.platform.name
    turnout.plugins.deactivate("opencl")
    try:
        with turnout.config.override({"plugin.opencl.platform": name[1:6].upper()}):
            assert turnout.opencl.device_count() >= 1
            assert turnout.ones(2, device="opencl").tolist() == [1.0, 1.0]
    finally:
        turnout.plugins.deactivate("opencl")


# ---- the threads of a driver that computes on the host's processors

THREADS = """
import os

from turnout_opencl.devices import found_devices

before = set(os.listdir("/proc/self/task"))
devices = found_devices()
if not any("Portable Computing Language" in each.platform.name for each in devices):
    raise SystemExit(77)
started = set(os.listdir("/proc/self/task")) - before
print(os.environ.get("POCL_AFFINITY"), sorted(sorted(os.sched_getaffinity(int(thread))) for thread in started))
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not say on which cores a thread may run")
@pytest.mark.parametrize("setting", [{}, {"POCL_AFFINITY": "0"}, {"POCL_MAX_PTHREAD_COUNT": "1"}])
def test_threads_keep_to_a_core_each_where_there_is_one_for_each_core(setting: dict[str, str]) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("POCL_")} | {"POCL_DEVICES": "pthread"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS], env=environment | setting, capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("the driver is not PoCL, whose threads these are")
    assert done.returncode == 0, done.stderr
    cores = sorted(os.sched_getaffinity(0))
    own = not setting and len(cores) == os.cpu_count() > 1
    count = 1 if "POCL_MAX_PTHREAD_COUNT" in setting else len(cores)
    assert done.stdout.split(maxsplit=1)[0] == setting.get("POCL_AFFINITY", "None"), "the environment is as it was"
    assert done.stdout.split(maxsplit=1)[1].strip() == str([[core] for core in cores] if own else [cores] * count)


def test_the_environment_is_put_back_when_a_driver_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_opencl import devices, threads

    def fails() -> Any:
        seen.append(os.environ.get("POCL_AFFINITY"))
        raise devices.cl.Error("no platform")

    seen: list[str | None] = []
    monkeypatch.delenv("POCL_AFFINITY", raising=False)
    monkeypatch.setattr(threads, "_is_thread_per_core", lambda: True)
    monkeypatch.setattr(devices.cl, "get_platforms", fails)
    assert devices.found_devices() == []
    assert (seen, os.environ.get("POCL_AFFINITY")) == (["1"], None)
