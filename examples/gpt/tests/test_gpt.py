"""The program learns, goes on from its file, and samples characters of its text, on each device and in mixed precision."""

import json
import os
import subprocess
import sys
import warnings

import pytest

import turnout
from turnout_gpt import program
from turnout_gpt.model import GPT, Sizes, sample
from turnout_gpt.text import Text

SMALL = ["--layers", "1", "--width", "32", "--heads", "2", "--context", "16", "--batch", "8", "--characters", "20"]


def losses(text):
    line = next(line for line in text.splitlines() if line.startswith("loss "))
    return [float(word) for word in line.replace(",", " ").split() if word[0].isdigit()][:2]


def test_it_learns_and_goes_on_from_its_file(tmp_path, capsys):
    file = str(tmp_path / "weights.safetensors")
    program.main([*SMALL, "--steps", "30", "--rate", "0.01", "--save", file])
    first, last = losses(capsys.readouterr().out)
    assert last < first - 0.5
    program.main([*SMALL, "--steps", "3", "--topic", "lambda", "--load", file])
    assert losses(capsys.readouterr().out)[0] < first - 0.5


@pytest.mark.parametrize(("engine", "needs"), [("eager", "turnout_tracer"), ("xla", "jax")])
def test_compiled_steps_are_those_of_eager_ones(engine, needs, tmp_path, capsys):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    file, steps = tmp_path / "times.svg", [*SMALL, "--steps", "6", "--rate", "0.01"]
    program.main(steps)
    expected = losses(capsys.readouterr().out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what runs eagerly warns
        program.main([*steps, "--compile", engine, "--times", str(file)])
    assert losses(capsys.readouterr().out) == pytest.approx(expected, abs=2e-3)
    assert "<svg" in file.read_text("utf-8")


@pytest.fixture
def opencl():
    """Skip the test where no OpenCL device is found."""
    devices = pytest.importorskip("turnout_opencl.devices", reason="pyopencl is not installed")
    if not devices.found_devices():
        pytest.skip("there is no OpenCL device")


@pytest.fixture(params=["opencl", "dask"])
def device(request):
    """Another device than cpu. The test is skipped where there is none."""
    if request.param == "opencl":
        request.getfixturevalue("opencl")
    else:
        pytest.importorskip("turnout_dask", reason="turnout-dask is not installed")
    return request.param


def test_another_device_computes_what_cpu_computes(device):
    turnout.manual_seed(0)
    model = GPT(Sizes(20, context=8, layers=2, heads=2, width=16))
    tokens, targets = turnout.randint(0, 20, (2, 4, 8)).unbind()
    found = {}
    for place in ("cpu", device):
        own = GPT(model.sizes)
        own.load_state_dict(model.state_dict())
        own.to(place)
        optimiser = turnout.optim.AdamW(own.parameters(), lr=1e-2)
        found[place] = []
        for _ in range(3):
            optimiser.zero_grad()
            loss = turnout.nn.functional.cross_entropy(own(tokens.to(place)).flatten(0, 1), targets.to(place).flatten())
            loss.backward()
            optimiser.step()
            found[place].append(loss.item())
    assert found[device] == pytest.approx(found["cpu"], rel=1e-4)
    assert found["cpu"][-1] < found["cpu"][0]


def test_a_file_is_fine_tuned_on_another_device(opencl, tmp_path, capsys):
    first, last = (str(tmp_path / name) for name in ("first.safetensors", "last.safetensors"))
    program.main([*SMALL, "--steps", "30", "--rate", "0.01", "--save", first])
    untrained, _ = losses(capsys.readouterr().out)
    tuned = [*SMALL, "--topic", "lambda", "--steps", "40", "--rate", "0.005", "--load", first, "--save", last]
    program.main([*tuned, "--device", "opencl"])
    begun, ended = losses(capsys.readouterr().out)
    assert ended < begun < untrained - 0.5
    before, after = (turnout.nn.load_safetensors(file) for file in (first, last))
    assert before.keys() == after.keys()
    assert all(value.device.type == "cpu" and not value.equal(before[name]) for name, value in after.items())


PROGRAM = """
import json, sys
import turnout
from turnout_gpt import program
from turnout_gpt.model import GPT, Sizes
device, *args = sys.argv[1:]
program.main([*args, "--device", device])
model = GPT(Sizes(10, context=8, layers=1, heads=2, width=16)).to(device)
logits = model(turnout.zeros(1, 8, dtype=turnout.int64, device=device))
print(json.dumps([str(logits.dtype), str(model.wte.weight.dtype)]))
"""


@pytest.mark.parametrize(("place", "key", "lower"), [("cpu", "AutocastCPU", "bfloat16"), ("opencl", "AutocastOpenCL", "float16")])
def test_a_file_of_settings_switches_on_mixed_precision(place, key, lower, tmp_path, request):
    if place == "opencl":
        request.getfixturevalue("opencl")
    (tmp_path / "turnout.toml").write_text(f'[keys]\nenable = ["{key}"]\n')
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TURNOUT_")}
    command = [sys.executable, "-c", PROGRAM, place, *SMALL, "--steps", "30", "--rate", "0.01"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    begun, ended = losses(done.stdout)
    assert ended < begun - 0.5
    assert json.loads(done.stdout.splitlines()[-1]) == [f"turnout.{lower}", "turnout.float32"]


def test_each_prediction_depends_on_what_is_before_it_alone():
    turnout.manual_seed(0)
    model = GPT(Sizes(10, context=8, layers=2, heads=2, width=16))
    tokens = turnout.randint(0, 10, (1, 8))
    changed = tokens.clone()
    changed[0, 5:] = 0
    assert turnout.allclose(model(tokens)[:, :5], model(changed)[:, :5], atol=1e-6)
    assert len(sample(model, [1], 12)) == 12


def test_characters_are_numbers_and_back():
    text = Text("lambda")
    assert text.decode(text.encode("lambda")) == "lambda"
    tokens, targets = text.batch(3, 5)
    assert tokens[:, 1:].equal(targets[:, :-1])
