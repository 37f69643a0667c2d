"""Devices: how they are named, what goes where, and backends with several devices, pretended here on NumPy."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import turnout
import turnout_arrays
from outcomes import refused
from turnout import config, devices
from turnout.devices import register_device_type
from turnout.errors import CallError, DeviceError, UniverseError
from turnout.plugins.discovery import Catalog
from turnout.registry import Registrations
from turnout_aten.kernels.tables import register_kernels
from turnout_aten.tensor import interop


class Pair(turnout_arrays.ArrayBackend):
    """Two devices of one type; notes which one is current while a kernel runs."""

    name = "Pair"
    device_type = "pair"
    indexed = True

    def __init__(self, xp):
        super().__init__(xp)
        self.entered = []
        self.inside = None

    def device_count(self):
        return 2

    @contextmanager
    def guard(self, device):
        before, self.inside = self.inside, str(device)
        self.entered.append(str(device))
        try:
            yield
        finally:
            self.inside = before


@pytest.fixture
def pair():
    backend = Pair(np)
    with Registrations("pair", distribution="pretend") as library:
        library.backend(backend)
        register_kernels(library, backend, turnout_arrays.kernels(np))
        yield backend


# ---- names


def test_equal_devices_are_one_object_that_prints_copies_and_pickles_as_such():
    one = turnout.device("cuda", 1)
    assert one is turnout.device("cuda:1") is turnout.device(one)
    assert (one.type, one.index, str(one), repr(one)) == ("cuda", 1, "cuda:1", "device('cuda:1')")
    assert turnout.device("cpu").index is None
    assert pickle.loads(pickle.dumps(one)) is one


@pytest.mark.parametrize("text", ["", "cpu:", "cpu:x", "cpu:-1", "c pu", "cpu:1:2", "cpu:\u0663"])
def test_a_text_that_names_no_device_is_an_error(text):
    shown = f"{text!r}"
    assert refused(DeviceError, turnout.device, text) == f"a device is written TYPE or TYPE:INDEX, got {shown}"


@pytest.mark.parametrize("name", ["cppu", "cppu:1"])
@pytest.mark.parametrize("use", [turnout.device, lambda name: turnout.ones(2, device=name)])
def test_a_device_that_nobody_provides_is_refused_where_it_is_named(use, name):
    text = refused(DeviceError, use, name)
    assert text.splitlines()[0] == "device 'cppu': there is no such device; did you mean 'cpu'?"
    assert text.splitlines()[1].startswith("  installed  cpu, ")


def test_a_device_of_a_known_package_may_be_named_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(Catalog, "claiming", lambda self, kind, name: [])
    monkeypatch.setattr(devices, "_BACKENDS", {})
    monkeypatch.setattr(devices, "_INTERNED", {})
    assert str(turnout.device("opencl:1")) == "opencl:1"


def test_an_index_of_a_device_that_has_one_only():
    assert turnout.ones(1, device="cpu:0").device is turnout.device("cpu")
    assert refused(DeviceError, turnout.ones, 1, device="cpu:1") == "cpu:1 does not exist: cpu has 1 device(s)"


# ---- what goes where


def test_factories_use_the_device_named_or_the_one_of_their_tensor_or_the_default_one():
    x = turnout.ones(2, device="meta")
    assert str(turnout.zeros_like(x).device) == "meta"
    assert str(x.new_ones(3).device) == "meta"
    assert str(turnout.zeros_like(x, device="cpu").device) == "cpu"
    assert str(turnout.ones(2).device) == "cpu"
    with config.override(default_device="meta"):
        assert str(turnout.ones(2).device) == "meta"
        assert str(turnout.tensor([1.0]).device) == "meta"
        assert str(turnout.arange(3).device) == "meta"
    assert str(turnout.ones(2).device) == "cpu"


def test_the_default_device_does_not_touch_results_of_tensors():
    x = turnout.ones(2)
    with config.override(default_device="meta"):
        made = [x + x, x.sum(), turnout.nn.functional.softmax(x, 0), x[0:1], x.to(turnout.float64)]
    assert {str(t.device) for t in made} == {"cpu"}


def test_to_gives_the_tensor_itself_where_it_is_there_already():
    x = turnout.ones(2)
    assert x.to("cpu") is x
    assert x.to(turnout.device("cpu")) is x
    assert x.to("cpu", turnout.float32) is x
    assert x.to("cpu", copy=True) is not x
    assert x.to("cpu", turnout.int64).tolist() == [1, 1]
    assert x.to(turnout.ones(1, dtype=turnout.float64)).dtype is turnout.float64
    assert x.cpu() is x
    assert refused(TypeError, x.to, "cpu", turnout.float32, False, False, None) == (
        "to: takes at most 4 positional arguments after a device, got 5"
    )


# ---- several devices of one type


def test_a_type_without_an_index_is_the_current_device(pair):
    assert str(turnout.ones(2, device="pair").device) == "pair:0"
    assert str(turnout.ones(2, device="pair:1").device) == "pair:1"
    assert refused(DeviceError, turnout.ones, 2, device="pair:2") == "pair:2 does not exist: pair has 2 device(s)"


def test_results_stay_on_the_device_of_the_arguments_and_0_dim_tensors_of_the_cpu_mix(pair):
    y = turnout.ones(2, device="pair:1")
    made = [y + y, y + 1, y * turnout.tensor(2.0), turnout.tensor(2.0) - y, y.sum(), y[0], y.t(), turnout.cat([y, y])]
    assert {str(t.device) for t in made} == {"pair:1"}
    assert y.to("pair:0").device.index == 0
    assert y.to("pair:1") is y


INDICES = {
    "indices": lambda: turnout.tensor([2, 0]),
    "a mask": lambda: turnout.tensor([True, False, True]),
    "a mask of all": lambda: turnout.tensor([[True, False], [True, True], [False, True]]),
    "several": lambda: (turnout.tensor([2, 0]), turnout.tensor([[1], [0]])),
    "behind a slice": lambda: (slice(None), turnout.tensor([1, 1])),
}


@pytest.mark.parametrize("index", INDICES)
def test_indices_on_the_cpu_select_on_any_device_and_what_they_select_is_known_without_values(pair, index):
    like, where = turnout.arange(6.0).reshape(3, 2), INDICES[index]()
    expected = like[where]
    with turnout.FakeMode(allow_non_fake_inputs=True):
        faked = turnout.zeros(3, 2, device="pair:1")
    for x in (like.to("pair:1"), like.to("meta"), faked):
        made = x[where]
        assert (made.device, made.shape, made.dtype) == (x.device, expected.shape, expected.dtype)
        x[where] = 7.0
        x[where] = turnout.tensor(8.0)
    x = like.to("pair:1")
    assert x[where].tolist() == expected.tolist()
    replay = turnout.trace(lambda x: x[where] * 2)(x)
    assert replay(x + 1).tolist() == ((expected + 1) * 2).tolist()
    if "mask" not in index:
        batch = turnout.stack([x, x + 1])
        assert turnout.vmap(lambda x: x[where])(batch).tolist() == [expected.tolist(), (expected + 1).tolist()]
        places = where if isinstance(where, tuple) else (where,)
        if not isinstance(places[0], slice):
            assert turnout.index_put(x, places, x[where] + 1, accumulate=True).device == x.device


def test_indices_on_another_device_than_the_cpu_are_refused(pair):
    x, y = turnout.zeros(3, device="pair:0"), turnout.tensor([0], device="pair:1")
    fix = "\n  to fix  move one with .to(device); only indices and 0-dim tensors on cpu mix with another device"
    text = "tensors on two devices: self on pair:0, indices[0] on pair:1"
    assert refused(DeviceError, lambda: x[y]) == f"aten::index.Tensor: {text}{fix}"
    assert refused(DeviceError, x.__setitem__, y, 1.0) == f"aten::index_put_: {text}{fix}"
    text = refused(DeviceError, lambda: turnout.zeros(3)[y])
    assert text == f"aten::index.Tensor: tensors on two devices: self on cpu, indices[0] on pair:1{fix}"
    text = refused(DeviceError, turnout.gather, x, 0, turnout.tensor([0]))
    assert text.startswith("aten::gather: tensors on two devices: self on pair:0, index on cpu\n")


def test_kernels_run_under_the_guard_of_the_first_tensor_also_in_a_list(pair):
    y = turnout.ones(2, device="pair:1")
    pair.entered.clear()
    y + y
    assert pair.entered == ["pair:1"]
    turnout.cat([y, y])
    assert set(pair.entered) == {"pair:1"}
    assert pair.inside is None


def test_the_guard_is_left_when_a_kernel_raises(pair):
    y = turnout.ones(2, device="pair:1")
    with Registrations("failing") as library:
        op = library.define("devicetest::fail(Tensor x) -> Tensor")
        seen = []

        def fail(x):
            seen.append(pair.inside)
            raise ValueError("no")

        library.impl("devicetest::fail", "Pair", fail)
        assert "no" in refused(ValueError, op, y)
    assert (seen, pair.inside) == (["pair:1"], None)


def test_a_device_type_has_one_backend():
    assert refused(UniverseError, lambda: register_device_type("cpu", turnout.device("meta").backend)) == (
        "device 'cpu' belongs to backend CPU already"
    )


def test_a_plugin_that_registers_no_backend_is_noticed_when_its_device_is_used(monkeypatch):
    monkeypatch.setattr(
        devices, "installed", lambda: SimpleNamespace(require_device=lambda name: None, check_device=lambda name: None)
    )
    assert refused(DeviceError, turnout.zeros, 2, device="nowhere") == (
        "no backend has devices of type 'nowhere'; `turnout plugins` lists what is installed"
    )


def test_a_backend_says_which_memory_it_does_not_take():
    assert refused(BufferError, lambda: turnout.device("meta").backend.from_dlpack(object())) == (
        "device meta does not accept DLPack tensors"
    )


def test_a_device_that_nobody_knows_is_not_exchanged_and_a_forbidden_copy_is_not_made(monkeypatch):
    exporter = SimpleNamespace(__dlpack__=None, __dlpack_device__=lambda: (99, 0))
    assert refused(CallError, turnout.from_dlpack, exporter) == "from_dlpack: no device is known for DLPack's device type 99"
    monkeypatch.setattr(interop, "dlpack_device", lambda tensor: (2, 0))
    assert refused(BufferError, lambda: turnout.ones(2).__dlpack__(dl_device=(1, 0), copy=False)) == (
        "a tensor on cpu needs a copy to reach the host, which copy=False forbids"
    )


# ---- what an activation opens


@pytest.mark.parametrize(
    ("device", "last", "opened"),
    [
        ("cpu", "keep_freed_memory", "turnout_cpu.pool:Pool"),
        ("dask", "limited", "turnout_dask.scheduling:Scheduling"),
        ("opencl", "register_over", "turnout_opencl.backend:OpenCLBackend"),
    ],
)
def test_what_a_backend_opened_is_closed_where_its_activation_fails_later(
    device: str, last: str, opened: str, need_device: Callable[[str], None]
) -> None:
    need_device(device)
    module, _, name = opened.partition(":")
    program = f"""
import turnout
from turnout.errors import PluginError
from {module} import {name}
from turnout_{device} import plugin

def fail(*args, **options):
    raise RuntimeError("a reason")

closed = []
{name}.close = lambda self: closed.append("closed")
plugin.{last} = fail
try:
    turnout.ones(1, device={device!r})
except PluginError as error:
    print(closed, type(error.__cause__).__name__)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == ("['closed'] RuntimeError", "")
