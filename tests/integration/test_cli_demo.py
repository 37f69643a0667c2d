"""`turnout demo`: it learns, it repeats itself, and it says what it needs."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from installed import Environment

import turnout
from turnout_cli.main import turnout as command


def run(*args):
    return CliRunner().invoke(command, ["demo", *map(str, args)])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The whole demo, as data."""
    plot = tmp_path_factory.mktemp("plot") / "demo.png"
    done = run("--json", "--plot", plot)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_classifier_reaches_96_percent_on_digits_it_has_not_seen(found):
    assert found["model"] == "mlp"
    assert found["accuracy"] >= 0.96
    assert found["training_images"] + found["held_out_images"] == 1797
    assert found["losses"][-1] < 0.05 < found["losses"][0]
    assert sum(map(sum, found["confusion"])) == found["held_out_images"]


def test_the_convolutional_network_reaches_97_percent_and_is_counted_and_explained():
    done = run("--json", "--model", "cnn")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
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


def test_mixed_precision_learns_as_well_and_is_explained():
    found = json.loads(run("--json", "--amp", "bf16").stdout)
    assert found["amp"] == "bfloat16"
    assert found["accuracy"] >= 0.96
    assert "\n-> AutocastCPU  autocast to lower precision" in found["explanation"]
    assert ("AutocastCPU", "autocast to float32") in {(row["key"], row["kernel"]) for row in found["calls"]}


def test_the_convolutional_network_learns_as_well_in_mixed_precision():
    found = json.loads(run("--json", "--model", "cnn", "--amp", "bf16", "--epochs", "10").stdout)
    assert found["amp"] == "bfloat16"
    assert found["accuracy"] >= 0.97
    assert "\n-> AutocastCPU  autocast to lower precision" in found["explanation"]


def test_float16_is_trained_with_a_scaler():
    found = json.loads(run("--json", "--amp", "fp16", "--epochs", "10").stdout)
    assert found["amp"] == "float16"
    assert found["accuracy"] >= 0.94
    assert "autocast to lower precision" in found["explanation"]


@pytest.mark.parametrize("amp", [[], ["--amp", "bf16"]], ids=["float32", "bf16"])
def test_a_device_with_its_own_memory_learns_as_well_and_asks_the_host_for_nothing(need_device, amp):
    need_device("opencl")
    found = json.loads(run("--json", "--device", "opencl", *amp).stdout)
    assert found["device"] == "opencl:0"
    assert found["accuracy"] >= 0.96
    assert found["hosted"] == []


def test_a_device_with_its_own_memory_trains_the_convolutional_network(need_device):
    need_device("opencl")
    found = json.loads(run("--json", "--device", "opencl", "--model", "cnn", "--epochs", "10").stdout)
    assert found["device"] == "opencl:0"
    assert found["accuracy"] >= 0.97


@pytest.mark.filterwarnings("ignore:Creating scratch directories")  # as Dask says on a busy machine
def test_a_cluster_of_processes_learns_what_cpu_learns(need_device):
    need_device("dask")
    pytest.importorskip("distributed")
    done = run("--json", "--device", "dask", "--workers", "2", "--epochs", "1")
    assert done.exit_code == 0, done.output
    assert re.search(r"Dask's dashboard: http://127\.0\.0\.1:\d+/status", done.stderr)
    found, expected = json.loads(done.stdout), json.loads(run("--json", "--epochs", "1").stdout)
    assert (found["device"], found["workers"], expected["workers"]) == ("dask", 2, None)
    assert found["losses"] == pytest.approx(expected["losses"], rel=1e-4)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.005)
    assert found["hosted"] == []


def test_the_threads_of_this_process_learn_what_cpu_learns_on_dask(need_device):
    need_device("dask")
    found, expected = (json.loads(run("--json", "--epochs", "1", "--device", device).stdout) for device in ("dask", "cpu"))
    assert found["losses"] == pytest.approx(expected["losses"], rel=1e-4)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.005)


def test_workers_are_refused_on_a_device_that_has_none():
    done = run("--device", "cpu", "--workers", "2")
    assert done.exit_code == 1
    assert done.stderr == "turnout: --workers is for --device dask, and the device is cpu\n"


def test_what_ran_on_the_host_is_counted_and_shown(need_device, monkeypatch):
    need_device("opencl")
    from turnout_cli import digits

    plain = digits.Perceptron.__call__

    def with_a_detour(self, images):
        images.to(turnout.complex64).exp()
        return plain(self, images)

    monkeypatch.setattr(digits.Perceptron, "__call__", with_a_detour)
    text = run("--device", "opencl", "--epochs", "1").stdout
    assert "what had no kernel there: it ran on another device, and its results were copied back" in text
    assert "aten::exp.out  opencl  cpu" in text


def test_the_plot_is_a_picture(found):
    with open(found["plot"], "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_a_seed_gives_the_same_result_and_another_seed_another():
    one, same, other = (json.loads(run("--json", "--epochs", 2, "--seed", s).stdout) for s in (1, 1, 2))
    assert one["losses"] == same["losses"]
    assert one["confusion"] == same["confusion"]
    assert one["losses"] != other["losses"]


def test_the_text_ends_with_accuracy_loss_and_time_per_step():
    done = run("--epochs", 2)
    assert done.exit_code == 0, done.output
    accuracy, loss, time = done.stdout.splitlines()[-3:]
    assert accuracy.startswith("accuracy       ")
    assert accuracy.endswith(" % of 360 held-out digits")
    assert loss.endswith(" in the last of 2")
    assert time.startswith("time per step  ")
    assert time.endswith(" ms (median of 46 on cpu)")


@pytest.mark.parametrize(
    ("module", "args", "message"),
    [
        ("sklearn", [], "turnout: this needs scikit-learn\n  to fix  pip install 'turnout-cli[demo]'\n"),
        (
            "distributed",
            ["--device", "dask", "--workers", "2"],
            "turnout: --workers needs distributed\n  to fix  pip install 'turnout-dask[distributed]'\n",
        ),
        ("matplotlib", ["--plot", "x.png"], "turnout: this needs matplotlib\n  to fix  pip install 'turnout-cli[plot]'\n"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(tmp_path, module, args, message):
    # None in sys.modules is how Python marks a module that must not be imported.
    done = Environment(tmp_path).run(
        f"import sys; sys.modules[{module!r}] = None; sys.argv[1:] = ['demo', *{args!r}]\n"
        "from turnout_cli.main import main; main()"
    )
    assert done.returncode == 1
    assert done.stderr == message
    assert done.stdout == ""


def test_an_unknown_device_is_a_short_error():
    done = run("--device", "nowhere")
    assert done.exit_code == 1
    assert done.stderr.startswith("turnout: ")
    assert "nowhere" in done.stderr
