"""`explain`, doctor and errors name the true cause, and the setting where one asked."""

from __future__ import annotations

import re
import warnings

import pytest
from click.testing import CliRunner

import turnout
from turnout import config
from turnout.errors import DeviceError, DisabledError, NoKernelError, PluginWarning
from turnout.errors.plugins import warn
from turnout.registry import Registrations
from turnout_cli.main import turnout as command


@pytest.fixture(autouse=True)
def restored():
    yield
    config.unset()


def test_a_disabled_backend_key_is_named_by_the_call_and_by_explain():
    x = turnout.ones(2)
    config.set({"keys.disable": ["CPU"]})
    with pytest.raises(NoKernelError) as caught:
        x.exp()
    lines = str(caught.value).splitlines()
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
    with pytest.raises(DeviceError) as caught:
        turnout.ones(2)
    assert str(caught.value).splitlines()[0] == problem
    done = CliRunner().invoke(command, ["doctor"])
    assert done.exit_code == 1
    assert problem in done.output


def test_doctor_tries_the_keys_that_are_enabled():
    config.set({"keys.enable": ["Tracer"], "plugins.disable": ["tracer"]})
    done = CliRunner().invoke(command, ["doctor"])
    assert done.exit_code == 1
    assert "Tracer (keys.enable, turnout.config.set): the plugin tracer is disabled" in done.output


def test_a_warning_about_a_plugin_points_at_the_program():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", PluginWarning)
        warn("broken")
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
