"""`turnout demo`: it learns, it repeats itself, and it says what it needs."""

from __future__ import annotations

import json
import re
import sys

import pytest
from commands import facts, run

import turnout
from turnout_cli.demo import demo
from turnout_cli.digits import MODELS


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The whole demo, as data."""
    return facts("demo", "--plot", tmp_path_factory.mktemp("plot") / "demo.png")


def test_the_classifier_reaches_96_percent_on_digits_it_has_not_seen(found):
    assert found["model"] == "mlp"
    assert found["accuracy"] >= 0.96
    assert found["training_images"] + found["held_out_images"] == 1797
    assert found["losses"][-1] < 0.05 < found["losses"][0]
    assert sum(map(sum, found["confusion"])) == found["held_out_images"]


def test_the_convolutional_network_reaches_97_percent_and_is_counted_and_explained():
    found = facts("demo", "--model", "cnn")
    assert (found["model"], found["epochs"], found["parameters"]) == ("cnn", 15, 6090)
    assert found["accuracy"] >= 0.97
    assert found["losses"][-1] < 0.05 < found["losses"][0]
    assert {(row["key"], row["kernel"]): row["calls"] for row in found["calls"]}["AutogradCPU", "conv2d"] == 2
    assert found["explained"] == "turnout.convolution(images, weight, bias, ...)"
    assert found["explanation"].startswith("aten::convolution(")
    assert "\n-> AutogradCPU" in found["explanation"]
    assert "\n-> CPU " in found["explanation"]


def test_one_step_is_counted_by_key_and_kernel(found):
    calls = {(row["key"], row["kernel"]): row["calls"] for row in found["calls"]}
    products = [n for (key, kernel), n in calls.items() if key == "CPU" and kernel.startswith("addmm")]
    assert sum(products) == 2  # of turnout-kernels where it is installed: "addmm, or the kernel below"
    assert {key for key, _ in calls} >= {"AutogradCPU", "ADInplaceOrView", "CPU"}


def test_the_explanation_goes_from_the_gradient_kernel_down_to_the_backend(found):
    text = found["explanation"]
    assert text.startswith("aten::addmm(")
    assert "\n-> AutogradCPU" in text
    assert "\nnext, if it redispatches: " in text
    assert "\n-> CPU " in text


# What is trained where and in which precision -> the accuracy that it reaches.
LEARNS = {
    "--amp bf16 --epochs 12": 0.96,
    "--amp fp16 --epochs 6": 0.94,
    "--model cnn --amp bf16 --epochs 8": 0.97,
    "--device opencl --epochs 12": 0.96,
    "--device opencl --amp bf16 --epochs 12": 0.96,
    "--device opencl --model cnn --epochs 6": 0.97,
}
AMP = {"bf16": "bfloat16", "fp16": "float16"}


@pytest.mark.parametrize("line", LEARNS)
def test_mixed_precision_and_a_device_with_its_own_memory_learn_as_well(need_device, line):
    args = line.split()
    options = dict(zip(args[::2], args[1::2], strict=True))
    device = options.get("--device", "cpu")
    need_device(device)
    found = facts("demo", *args)
    assert found["device"].partition(":")[0] == device
    assert found["hosted"] == []  # it asks the host for nothing
    assert found["accuracy"] >= LEARNS[line]
    if "--amp" in options:
        assert found["amp"] == AMP[options["--amp"]]
        key = f"Autocast{'CPU' if device == 'cpu' else 'OpenCL'}"
        assert f"\n-> {key}  autocast to lower precision" in found["explanation"]
        if options.get("--model") != "cnn":
            assert (key, "autocast to float32") in {(row["key"], row["kernel"]) for row in found["calls"]}


def test_every_model_is_offered():
    [option] = [each for each in demo.params if each.name == "model"]
    assert list(option.type.choices) == list(MODELS)


@pytest.fixture(scope="module")
def on_cpu():
    """One epoch on cpu."""
    return facts("demo", "--epochs", 1)


def agree(found, expected):
    assert found["losses"] == pytest.approx(expected["losses"], rel=1e-4)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.005)


@pytest.mark.filterwarnings("ignore:Creating scratch directories")  # as Dask says on a busy machine
def test_a_cluster_of_processes_learns_what_cpu_learns(need_device, on_cpu, monkeypatch):
    need_device("dask")
    pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # the command sets it for its whole process
    done = run("demo", "--json", "--device", "dask", "--workers", "2", "--epochs", "1")
    assert done.exit_code == 0, done.output
    assert re.search(r"Dask's dashboard: http://127\.0\.0\.1:\d+/status", done.stderr)
    found = json.loads(done.stdout)
    assert (found["device"], found["workers"], on_cpu["workers"]) == ("dask", 2, None)
    agree(found, on_cpu)
    assert found["hosted"] == []


def test_the_threads_of_this_process_learn_what_cpu_learns_on_dask(need_device, on_cpu):
    need_device("dask")
    agree(facts("demo", "--epochs", 1, "--device", "dask"), on_cpu)


def test_the_convolutional_network_learns_on_dask_what_it_learns_on_cpu(need_device):
    need_device("dask")
    agree(facts("demo", "--epochs", 1, "--model", "cnn", "--device", "dask"), facts("demo", "--epochs", 1, "--model", "cnn"))


def test_what_ran_on_the_host_is_counted_and_shown(need_device, monkeypatch):
    need_device("opencl")
    from turnout_cli import digits

    plain = digits.Perceptron.forward

    def with_a_detour(self, images):
        images.to(turnout.complex64).exp()
        return plain(self, images)

    monkeypatch.setattr(digits.Perceptron, "forward", with_a_detour)
    text = run("demo", "--device", "opencl", "--epochs", "1").stdout
    assert "what had no kernel there: it ran on another device, and its results were copied back" in text
    assert "aten::exp.out  opencl  cpu" in text


def test_the_plot_is_a_picture(found):
    with open(found["plot"], "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_a_seed_gives_the_same_result_and_another_seed_another():
    one, same, other = (facts("demo", "--epochs", 2, "--seed", seed) for seed in (1, 1, 2))
    assert one["losses"] == same["losses"]
    assert one["confusion"] == same["confusion"]
    assert one["losses"] != other["losses"]


def test_the_text_begins_with_accuracy_loss_and_time_per_step_and_shows_twelve_kernels():
    done = run("demo", "--epochs", 2)
    assert done.exit_code == 0, done.output
    accuracy, loss, time, _, title, head, *kernels = done.stdout.splitlines()
    assert (title[:27], head.split()[0], kernels.index("")) == ("what took longest in one st", "key", 12)
    assert accuracy.startswith("accuracy       ")
    assert accuracy.endswith(" % of 360 held-out digits")
    assert loss.endswith(" in the last of 2")
    assert time.startswith("time per step  ")
    assert time.endswith(" ms (median of 46 on cpu)")


@pytest.mark.parametrize(
    ("module", "args", "message"),
    [
        ("sklearn", [], "turnout: this needs scikit-learn\n  to fix  pip install scikit-learn\n"),
        (
            "distributed",
            ["--device", "dask", "--workers", "2"],
            "turnout: --workers needs distributed\n  to fix  pip install distributed\n",
        ),
        ("matplotlib", ["--plot", "x.png"], "turnout: this needs matplotlib\n  to fix  pip install matplotlib\n"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(module, args, message, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # how Python marks a module that must not be imported
    done = run("demo", *args)
    assert (done.exit_code, done.stderr, done.stdout) == (1, message, "")
