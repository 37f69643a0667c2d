"""Calls by unusual ways, errors that name the true cause and the setting that asked, and undo that meets an obstacle."""

from __future__ import annotations

import os
import re
import threading
import warnings

import numpy as np
import pytest
from commands import run

import turnout
from outcomes import refused
from turnout import config, library
from turnout.errors import (
    AliasError,
    DeviceError,
    DisabledError,
    DTypeError,
    KernelSignatureError,
    NoKernelError,
    PluginWarning,
    RegistrationError,
    UniverseError,
)
from turnout.errors.plugins import warn
from turnout.registry import REGISTRY, Registrations
from turnout.state import exclude


@pytest.fixture(autouse=True)
def _configuration_ends():
    yield
    config.unset()


def test_an_argument_named_self_can_be_given_by_keyword():
    x = turnout.ones(2)
    add = turnout.ops.aten.add
    assert add(self=x, other=x).tolist() == [2, 2]
    assert add.Tensor(self=x, other=x).tolist() == [2, 2]
    assert add.Tensor.redispatch(x.keys, self=x, other=x).tolist() == [2, 2]
    assert add.choose(self=x, other=x) is add.Tensor


def test_the_kernel_of_an_autograd_key_goes_on_from_the_keys_of_its_arguments():
    x = turnout.ones(2, requires_grad=True)
    assert turnout.ops.aten.add.Tensor.kernel("AutogradCPU")(x, x).requires_grad
    assert not turnout.ops.aten.add.Tensor.kernel("CPU")(x, x).requires_grad


def test_a_step_of_undo_that_raises_keeps_no_other_step_and_can_be_tried_again():
    low, high = Registrations("edge_low"), Registrations("edge_high")
    low.define("edge_low::f(Tensor x) -> Tensor")
    low.functionality("EdgeLow", after="Autograd")
    high.functionality("EdgeHigh", after="EdgeLow")
    with pytest.raises(UniverseError, match="still the anchor of EdgeHigh"):
        low.undo()
    assert "edge_low::f" not in REGISTRY.operators
    high.undo()
    low.undo()
    assert "EdgeLow" not in REGISTRY.keys.universe.rank


def test_what_cannot_be_called_is_no_kernel():
    with Registrations("edge") as library:
        library.define("f(Tensor x) -> Tensor")
        with pytest.raises(KernelSignatureError, match="a kernel is a function or FALLTHROUGH, got int 3"):
            library.impl("f", "CPU", 3)
        with pytest.raises(KernelSignatureError, match=r"a function or FALLTHROUGH, got None$"):
            library.fallback("Tracer", None)
        with pytest.raises(RegistrationError, match="a kernel's form is one of unboxed, boxed, internal, array, got 'x'"):
            library.impl("f", "CPU", len, form="x")
        assert library.provided() == {"namespace:edge"}


def test_a_functionality_cannot_take_the_name_of_an_alias_key():
    with Registrations("edge") as library, pytest.raises(UniverseError, match="has the name of an alias key"):
        library.functionality("CompositeImplicitAutograd", after="Dense")


def test_a_missing_kernel_blames_the_guard_that_took_the_key_away():
    x = turnout.ones(2)
    with exclude("CPU"), pytest.raises(NoKernelError) as caught:
        x + x
    assert "the tensors bring CPU, which is excluded or not in the given key set" in str(caught.value)


def test_a_gradient_is_refused_where_one_backends_autograd_key_is_disabled():
    config.set({"keys.disable": ["AutogradCPU"]})
    with pytest.raises(DisabledError, match=r"AutogradCPU was asked for, but keys\.disable switches"):
        turnout.ones(2, requires_grad=True)


def test_a_deactivated_plugin_is_named_as_the_remedy():
    x = turnout.ones(2, requires_grad=True)
    turnout.plugins.deactivate("autograd", with_dependents=True)
    try:
        with pytest.raises(NoKernelError) as caught:
            x * 2
    finally:
        turnout.plugins.activate("autograd")
    assert 'to fix        turnout.plugins.activate("autograd"); ' in str(caught.value)


def test_kernels_of_other_packages_are_none_where_the_backend_is_deactivated():
    x = turnout.ones(2)
    sin = library.custom_op("edges::sin", np.sin, mutates_args=(), schema="(Tensor x) -> Tensor", device_types="cpu", arrays=True)
    turnout.plugins.deactivate("cpu", with_dependents=True)
    try:
        for call, name in (
            (lambda: turnout.exp(x), "aten::exp: no kernel for CPU"),
            (lambda: sin(x), "edges::sin: no kernel for CPU"),
        ):
            text = refused(NoKernelError, call)
            assert text.startswith(name)
            assert ": a tensor on cpu, whose backend is not active\n" in text
            assert '  to fix        turnout.plugins.activate("cpu"); ' in text
    finally:
        turnout.plugins.activate("cpu")
        sin.undo()
    assert x.exp().shape == (2,)


def test_a_generator_of_another_device_is_an_error_that_names_both():
    with pytest.raises(DeviceError, match="the generator is on cpu, the result is asked for on meta"):
        turnout.rand(2, generator=turnout.Generator(), device="meta")


def test_a_generated_out_variant_refuses_to_drop_fractions():
    out = turnout.zeros(2, dtype=turnout.int32)
    with pytest.raises(DTypeError, match="cannot be written into int32"):
        turnout.add(turnout.ones(2), 1.5, out=out)
    assert out.tolist() == [0, 0]


def test_an_array_whose_elements_share_memory_is_not_written():
    broadcast = np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.float32), (3,), (0,))
    with pytest.raises(AliasError, match="cannot write into an expanded tensor"):
        turnout.from_numpy(broadcast).add_(turnout.ones(3))


def test_choices_are_set_and_unset_as_they_are_written_in_a_file():
    name = "aten::add.Tensor@CPU"
    for values in ({"kernels.choose": {name: "a"}}, {f'kernels.choose."{name}"': "a"}, {"kernels": {"choose": {name: "a"}}}):
        config.set(values)
        assert config.choices("kernels.choose") == {name: "a"}
        config.unset("kernels.choose")
        assert config.choices("kernels.choose") == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_during_a_change_can_register():
    held, over = threading.Event(), threading.Event()

    def hold():
        with config.LOCK:
            held.set()
            over.wait(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        done = threading.Thread(target=lambda: Registrations("edge").define("f(Tensor x) -> Tensor"), daemon=True)
        done.start()
        done.join(10)
        os._exit(done.is_alive())
    over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


# ---- causes, and where they come from


def test_a_disabled_backend_key_is_named_by_the_call_and_by_explain():
    x = turnout.ones(2)
    config.set({"keys.disable": ["CPU"]})
    lines = refused(NoKernelError, x.exp).splitlines()
    assert lines[0] == "aten::exp: no kernel, because keys.disable has CPU"
    assert lines[1] == "  asked for by  CPU, switched off by keys.disable (turnout.config.set)"
    assert lines[-1] == "  to fix        take CPU out of keys.disable; `turnout table aten::exp` prints the whole table"
    assert str(turnout.explain("exp", x)).splitlines()[-1].split("  ")[-1].strip() == "missing (take CPU out of keys.disable)"


@pytest.mark.parametrize(("entry", "device"), [("Autocast", "cpu"), ("AutocastCPU", "cpu"), ("Autocast", "meta")])
def test_the_remedy_names_the_entry_that_the_setting_has(entry, device):
    config.set({"keys.disable": [entry]})
    with pytest.raises(DisabledError) as caught, turnout.autocast(device):
        pass
    key = "Autocast" + turnout.device(device).backend.name
    assert str(caught.value) == (
        f"{key} was asked for, but keys.disable switches it off\n"
        f"  set in  turnout.config.set\n  to fix  take {entry} out of keys.disable"
    )


def test_explain_names_no_package_for_a_key_whose_plugin_is_active():
    with Registrations("quant") as library:
        library.functionality("Quantized", per_backend="Quantized", after="Dense", backend_key=True)
        x = turnout.ones(2)
        x.keys = x.keys & ~turnout.DispatchKeySet("Dense") | turnout.DispatchKeySet("Quantized")
        [line] = [line for line in str(turnout.explain("exp", x)).splitlines() if line.startswith("-> Quantized")]
        assert "pip install" not in line


def test_a_misspelt_keyword_of_a_factory_names_the_public_function():
    for name in ("ones", "zeros", "empty"):
        with pytest.raises(TypeError, match=re.escape(f"{name}() got an unexpected keyword argument 'dvice'")) as caught:
            getattr(turnout, name)(2, dvice="cpu")
        assert f"_{name}" not in str(caught.value)


@pytest.mark.parametrize(
    ("device", "problem"),
    [
        ("gpu", "device 'gpu' (default_device, turnout.config.set): there is no such device; did you mean 'cpu'?"),
        ("cpu:4", "device 'cpu:4' (default_device, turnout.config.set): cpu:4 does not exist: cpu has 1 device(s)"),
    ],
)
def test_an_error_about_the_default_device_names_the_setting_and_doctor_tries_it(device, problem):
    config.set(default_device=device)
    assert refused(DeviceError, turnout.ones, 2).splitlines()[0] == problem
    done = run("doctor")
    assert done.exit_code == 1
    assert problem in done.output


def test_doctor_tries_the_keys_that_are_enabled():
    config.set({"keys.enable": ["Tracer"], "plugins.disable": ["tracer"]})
    done = run("doctor")
    assert done.exit_code == 1
    assert "Tracer (keys.enable, turnout.config.set): the plugin tracer is disabled" in done.output


def test_a_warning_about_a_plugin_points_at_the_program():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", PluginWarning)
        warn("broken", turnout.plugins.is_ours)
    assert [each.filename for each in found] == [__file__]


def test_the_names_of_overloads_are_a_list_as_a_method_gives_it():
    assert set(turnout.ops.aten.add.overloads()) >= {"Tensor", "Scalar", "out"}
    assert turnout.ops.aten.relu.overloads()[0] == "default"


def test_a_shape_is_a_size_of_turnout_whatever_the_library_of_the_backend_hands_out():
    class Size(tuple):
        __slots__ = ()

    class Odd:
        shape = Size((2, 3))

    x = turnout.ones(2, 3)
    x.array = Odd()
    assert type(x.shape) is turnout.Size
