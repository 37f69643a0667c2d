"""The commands that print facts: what they say, as text and as JSON, and their exit codes."""

from __future__ import annotations

import json
import re
import traceback

import numpy as np
import pytest
from commands import facts, run, text
from workspace import ROOT

import turnout
from outcomes import printed
from turnout import plugins
from turnout.registry import Registrations
from turnout.table import SERVED_BY
from turnout_cli import arguments
from turnout_cli.main import COMMANDS, EXIT_CODES


def test_every_command_has_help_and_a_short_description():
    listed = text("--help").splitlines()
    for name in COMMANDS:
        [line] = [line for line in listed if line.startswith(f"  {name} ")]
        assert "..." not in line
        shown = text(name, "--help")
        assert "--traceback" in shown
        assert "--json" in shown


def test_plugins_lists_what_is_installed():
    records = {record["name"]: record for record in facts("plugins")}
    assert records["cpu"]["distribution"] == "turnout-cpu"
    assert "device:cpu" in records["cpu"]["provides"]
    assert "turnout-cpu" in text("plugins")


def test_doctor_finds_this_environment_healthy():
    assert text("doctor").endswith("healthy\n")
    found = facts("doctor")
    assert found["healthy"] is True
    # A plugin whose device is not on this machine (a GPU) is no fault of the environment.
    states = {plugin["name"]: plugin["state"] for plugin in found["plugins"]}
    assert set(states.values()) <= {"active", "unavailable"}
    assert all(states[name] == "active" for name in ("cpu", "meta", "autograd"))


def test_doctor_notes_an_untested_python_a_missing_compiler_and_a_newer_plugin_api(monkeypatch):
    assert facts("doctor")["notes"] == []
    monkeypatch.setattr("platform.python_version_tuple", lambda: ("3", "99", "0"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("turnout.plugins.PLUGIN_API", "1.7")
    monkeypatch.setenv("CC", "nowhere/cc -O2")
    notes = facts("doctor")["notes"]
    assert notes[:3] == [
        "Python 3.99 is not among the versions that are tested: 3.11, 3.12, 3.13, 3.14",
        "there is no C compiler (nowhere/cc): packages with C modules can be installed from wheels only",
        "the plugin array_api is for plugin-API 1.0, and 1.7 is here: it may do more",
    ]
    assert f"note: {notes[0]}\n" in text("doctor")
    assert text("doctor").endswith("healthy\n")


def test_help_and_the_version_have_their_short_spellings():
    assert run("help", "table").output == run("table", "--help").output
    assert run("help").output == run("--help").output
    assert run("-V").output == run("--version").output != ""


def test_table_names_kernel_reason_and_distribution_of_each_key():
    rows = {row["key"]: row for row in facts("table", "sin")["aten::sin"]}
    assert rows["CPU"]["reason"] == "kernel"
    assert rows["CPU"]["distribution"].startswith("turnout-cpu ")
    assert ".py:" in rows["CPU"]["source"]
    shown = text("table", "sin")
    assert shown.startswith("aten::sin(Tensor self) -> Tensor\n")
    assert "missing" not in shown
    assert "AutogradOther" in text("table", "sin", "--all")
    # Of a name, all overloads.
    assert {"aten::add.Tensor", "aten::add.out"} <= facts("table", "add").keys()


def test_explain_prints_what_the_function_prints():
    x = turnout.zeros(2, 3)
    assert text("explain", "mul", "float32[2,3]", "float32[2,3]@cpu") == f"{turnout.explain(turnout.mul, x, x)}\n"
    assert facts("explain", "mul", "ones(2,3)", "2")["operator"] == "aten::mul.Scalar"


def test_explain_takes_negative_numbers_keywords_and_lists():
    assert facts("explain", "add", "float32[2]", "-1.5")["operator"] == "aten::add.Scalar"
    found = facts("explain", "sum", "float32[2,3]", "[0,1]", "keepdim=true", "dtype=float64")
    assert [argument["value"] for argument in found["arguments"][1:3]] == ["list [0, 1]", "bool True"]
    assert facts("explain", "cat", "[float32[2],float32[3]]")["operator"] == "aten::cat"


@pytest.mark.parametrize("device", ["cpu", "npu2", "npu2:1"])
def test_the_name_of_a_device_needs_no_quotes(device):
    assert arguments.value(device) == device


def test_traceback_lets_the_error_through():
    done = run("explain", "ad", "--traceback")
    assert isinstance(done.exception, turnout.errors.UnknownOperatorError)
    done = run("--traceback", "explain", "ad")
    assert isinstance(done.exception, turnout.errors.UnknownOperatorError)
    done = run("--traceback", "explain", "sum", "float32[2]", "'x'")
    assert "choose" in [frame.name for frame in traceback.extract_tb(done.exception.__traceback__)]
    assert turnout.config.get("traceback") == "short"


def test_coverage_is_a_matrix_of_operators_and_keys():
    found = facts("coverage", "sin*")
    assert {"CPU", "Meta"} <= set(found["keys"])
    assert found["operators"]["aten::sin"]["CPU"]["reason"] == "kernel"
    shown = text("coverage", "sin*")
    assert shown.startswith("operator")
    assert "turnout-cpu" in shown
    assert "K kernel" in shown


def test_coverage_writes_a_page_that_holds_the_whole_matrix(tmp_path):
    page = tmp_path / "coverage.html"
    assert text("coverage", "sin*", "--html", page) == ""
    matrix = facts("coverage", "--html", page)
    html = page.read_text(encoding="utf-8")
    data = json.loads(html.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    assert data["keys"] == matrix["keys"]
    assert [row["name"] for row in data["rows"]] == list(matrix["operators"])
    kinds = {
        "kernel": "kernel",
        "autograd kernel": "kernel",
        "math kernel": "composite",
        "default backend kernel": "composite",
        "backend fallback": "fallback",
    }
    for row in data["rows"]:
        for key, cell in zip(data["keys"], row["cells"], strict=True):
            entry = matrix["operators"][row["name"]].get(key)
            if entry is None:
                assert cell == -1
            else:
                shown = data["entries"][cell]
                assert shown["kind"] == kinds[entry["reason"]]
                assert {n: entry[n] for n in ("kernel", "distribution", "source")}.items() <= shown.items()
    kinds = set(SERVED_BY.values())
    assert data["kinds"].keys() == kinds
    assert set(re.findall(r"\.(\w+) \{ color: var\(--\1\)", html)) == set(re.findall(r" --(\w+): #", html)) == kinds
    assert 'cell < 0 ? "missing"' in html
    assert "src=" not in html.partition("<script type")[0]  # nothing is loaded from elsewhere
    assert "http:" not in html.partition("<script type")[0]


def test_coverage_lists_what_is_missing_at_a_key():
    with Registrations("covered", distribution="covered-dist", version="1") as library:
        library.define("covered::half(Tensor x) -> Tensor")
        library.impl("half", "Meta", lambda x: x)
        assert list(facts("coverage", "covered::*", "--key", "CPU", "--missing")["operators"]) == ["covered::half"]
        assert facts("coverage", "covered::*", "--key", "Meta", "--missing", code=1)["operators"] == {}


def test_config_shows_values_with_their_origins():
    rows = {row["name"]: row for row in facts("config")}
    assert rows["default_device"]["value"] == ""
    assert rows["default_device"]["origin"] == "default"
    assert [row["name"] for row in facts("config", "strict")] == ["strict"]
    assert "default_device" in text("config")


def test_coverage_takes_the_name_of_a_packet_as_table_does_and_lists_only_what_its_cells_use():
    with Registrations("covered", distribution="covered-dist", version="1") as library:
        library.define("covered::half.first(Tensor x) -> Tensor")
        library.define("covered::half.second(Tensor x, int n) -> Tensor")
        library.impl("half.first", "CPU", lambda x: x)
        assert list(facts("coverage", "half")["operators"]) == ["covered::half.first", "covered::half.second"]
        lines = run("coverage", "covered::half", "--key", "CPU").output.splitlines()
        assert lines[-1] == "1 covered-dist 1"
        assert [line for line in lines if line[:2] == "1 "] == lines[-1:]
        assert run("coverage", "half.first", "--key", "CPU", "--missing").output == "no operator of 1 lacks a kernel for CPU\n"


# ---- keys


def test_keys_prints_a_table_of_all_keys_highest_first():
    lines = text("keys").splitlines()
    assert lines[0].split() == ["key", "state", "why", "provided", "by", "plugin"]
    names = [line.split()[0] for line in lines[1:]]
    assert names.index("AutogradCPU") < names.index("ADInplaceOrView") < names.index("CPU")


def test_keys_has_a_row_for_each_functionality_of_installed_plugins_in_a_fresh_process():
    program = "import sys; sys.argv[1:] = ['keys', '--json']; from turnout_cli.main import main; main()"
    found = {row["functionality"] for row in json.loads(printed(program))["keys"]}
    assert found >= {key.name for manifest in plugins.catalog().manifests for key in manifest.new_keys}


# ---- what scripts rely on

README = (ROOT / "tools/cli/README.md").read_text("utf-8")
SHAPES = json.loads(README.partition("```json\n")[2].partition("```")[0])
EXPORTED = ROOT / "tests/plugins/exported/core.pt2"
KINDS = {"text": str, "number": (int, float), "flag": bool, "any": object}


def misfits(shape, value, place="it"):
    """Where a value is not of the shape that the README gives."""
    if isinstance(shape, str):
        return [] if isinstance(value, KINDS[shape]) else [f"{place} is {value!r} and not {shape}"]
    if isinstance(shape, list):
        listed = isinstance(value, list)
        return [m for each in value for m in misfits(shape[0], each, f"{place}[]")] if listed else [f"{place} is no list"]
    if not isinstance(value, dict):
        return [f"{place} is no table"]
    (first, inside), *_ = shape.items()
    if first.isupper():
        return [m for name, each in value.items() for m in misfits(inside, each, f"{place}.{name}")]
    if shape.keys() != value.keys():
        return [f"{place} has {sorted(value)} and not {sorted(shape)}"]
    return [m for name in shape for m in misfits(shape[name], value[name], f"{place}.{name}")]


def test_json_has_the_shapes_of_the_readme(tmp_path):
    program, lock, other = tmp_path / "model.py", tmp_path / "a.lock", tmp_path / "b.lock"
    loss = "\n\ndef loss():\n    return turnout.ones(2, requires_grad=True).sum()\n"
    program.write_text(f"import turnout{loss}\n\ndef value():\n    return turnout.ones(2)\n")
    np.save(tmp_path / "x.npy", np.ones((4, 3), "float32"))
    lines = {
        "plugins": ["plugins"],
        "doctor": ["doctor"],
        "config": ["config"],
        "keys": ["keys"],
        "table": ["table", "exp"],
        "explain": ["explain", "add", "float32[2]:grad", "2"],
        "coverage": ["coverage", "exp"],
        "graph": ["graph", f"{program}:loss"],
        "graph --compile ENGINE": ["graph", f"{program}:value", "--compile", "eager"],
        "run": ["run", str(EXPORTED), "--input", str(tmp_path / "x.npy"), "--profile"],
        "lock -o FILE": ["lock", "-o", str(lock)],
        "demo": ["demo", "--epochs", "1"],
        "new-plugin": ["new-plugin", "acme_chip", "--kind", "backend", "--folder", str(tmp_path / "acme")],
        "verify": ["verify", str(ROOT / "plugins/cpu")],
        "completion": ["completion", "bash"],
    }
    for name, line in lines.items():
        found = facts(*line)
        assert found, name
        assert misfits(SHAPES[name], found) == [], name
    assert misfits(SHAPES["lock"], json.loads(lock.read_text())) == []  # what `lock --json` prints as well
    other.write_text(lock.read_text().replace("turnout-cpu 0.1.0", "turnout-cpu 0.0.9"))
    found = facts("diff", str(lock), str(other), code=1)
    assert found
    assert misfits(SHAPES["diff"], found) == []
    assert SHAPES.keys() == lines.keys() | {"diff", "lock"}
    assert {name.split()[0] for name in SHAPES} == COMMANDS.keys()


def test_a_value_of_another_shape_is_noticed():
    row = {"name": "strict", "value": False, "origin": "default", "help": ""}
    assert misfits(SHAPES["config"], [row]) == []
    assert misfits(SHAPES["config"], [{**row, "origin": 3}]) == ["it[].origin is 3 and not text"]
    assert misfits(SHAPES["config"], [{**row, "more": 3}]) != []
    assert misfits(SHAPES["config"], row) == ["it is no list"]


def test_exit_codes_are_said_in_the_same_words_by_the_help_the_readme_and_the_page():
    page = (ROOT / "docs/cli.md").read_text("utf-8")
    for said in (README, page, text("--help")):
        assert " ".join(EXIT_CODES.split()) in " ".join(said.split())


def test_no_plugin_is_said_and_is_exit_code_1(monkeypatch):
    monkeypatch.setattr("turnout.plugins.all_plugins", list)
    monkeypatch.setattr("turnout.plugins.remedy_for", lambda kind, name, activate: "pip install turnout-cpu")
    done = run("plugins")
    assert (done.exit_code, done.stdout) == (1, "no plugin is installed\n  to fix  pip install turnout-cpu\n")
    assert facts("plugins", code=1) == []


def test_plugins_shows_one_plugin_by_its_name():
    first, *rows = text("plugins", "cpu").splitlines()
    assert first.startswith("plugin cpu (turnout-cpu ")
    assert rows[0] == "  is        Tensors on the host, held by NumPy arrays"
    assert rows[1] == "  provides  backend:CPU, device:cpu"
    assert [record["name"] for record in facts("plugins", "cpu")] == ["cpu"]


# ---- what is wrong: exit code 2 for the line itself, 1 for what is not there, and a sentence

VALUE = " is not a value: write float32[2,3], float32[2,3]:grad@cpu, ones(2,3), a number, [1,2], true, none or 'text'"
WRONG = {
    "": (2, "Usage: turnout [OPTIONS] COMMAND [ARGS]..."),
    "nosuch": (2, "Error: there is no command 'nosuch'"),
    "plugin": (2, "Error: there is no command 'plugin'; did you mean plugins?"),
    "tabel add": (2, "Error: there is no command 'tabel'; did you mean table?"),
    "plugins --nosuch": (2, "Error: No such option '--nosuch'."),
    "plugins nosuch": (1, "turnout: no plugin nosuch is installed"),
    "plugins cpuu": (1, "turnout: no plugin cpuu is installed; did you mean cpu?"),
    "config nosuch": (1, "turnout: nosuch: there is no such setting"),
    "config strikt": (1, "turnout: strikt: there is no such setting; did you mean strict?"),
    "table nosuch": (1, "turnout: no operator nosuch; did you mean cosh?"),
    "table atn::exp": (1, "turnout: no operator atn::exp; did you mean aten::exp or aten::exp_ or aten::exp2?"),
    "explain nosuch": (1, "turnout: no operator nosuch; did you mean cosh?"),
    "explain ad": (1, "turnout: no operator ad; did you mean pad or rand or addr?"),
    "explain neg float32[2]@nowhere": (1, "turnout: device 'nowhere': there is no such device installed cpu, "),
    "explain exp float32[2]@cpuu": (1, "turnout: device 'cpuu': there is no such device; did you mean 'cpu'?"),
    "explain exp floot32[2]": (2, "'floot32[2]': 'floot32' is not a dtype; did you mean float32?"),
    "explain neg floof[2]": (2, "'floof[2]': 'floof' is not a dtype; turnout has float32, int64, bool and others"),
    "explain neg float32[2": (2, f"'float32[2'{VALUE}"),
    "explain neg __import__('os')": (2, f"\"__import__('os')\"{VALUE}"),
    "explain add float32[2] alpha=2 float32[2]": (2, "'float32[2]' stands after a keyword argument"),
    "coverage nosuch*": (1, "turnout: no operator matches 'nosuch*'"),
    "coverage nosuch* --json": (1, "turnout: no operator matches 'nosuch*'"),
    "coverage expp": (1, "turnout: no operator matches 'expp'; did you mean exp?"),
    "coverage sin* --key CPUU": (1, "turnout: unknown dispatch key 'CPUU'; did you mean CPU?"),
    "coverage add.Tensor --key CPU --missing": (1, "no operator of 1 lacks a kernel for CPU"),
    "graph nosuch.py": (2, "'nosuch.py' names no function: write FILE.py:FUNCTION"),
    "graph nosuch.py:loss": (1, "turnout: the file nosuch.py does not exist"),
    "run nosuch.pt2": (1, "turnout: the file nosuch.pt2 does not exist"),
    "diff nosuch.lock": (2, "turnout: the file nosuch.lock does not exist"),
    "verify nosuch": (1, "turnout: the file nosuch does not exist"),
    "help tabel": (2, "Error: there is no command 'tabel'; did you mean table?"),
    "completion tcsh": (2, "'tcsh' is not one of 'bash', 'zsh', 'fish'."),
    "demo --device cpu --workers 2": (1, "turnout: --workers is for --device dask, and the device is cpu"),
    "demo --modell cnn": (2, "Error: No such option '--modell'. Did you mean '--model'?"),
    "demo --device nosuch --epochs 1": (1, "turnout: device 'nosuch': there is no such device"),
}


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_a_sentence_without_a_traceback_and_names_what_is_nearly_right(line):
    done = run(*line.split())
    code, said = WRONG[line]
    shown = " ".join(done.output.split())
    assert done.exit_code == code
    assert shown.startswith(said) if said.startswith("turnout: ") else said in shown
    assert "Traceback" not in shown
