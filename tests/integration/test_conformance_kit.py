"""turnout-conformance notices backends, functionalities and plugins with one mistake each, and runs that prove nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import mutant_backends
import mutant_functionalities
import pytest
from installed import clean
from packages_on_path import write_package
from pages import ROOT, pages

import turnout
from turnout_conformance import expected
from turnout_conformance.choosing import Candidate, Choice, chosen
from turnout_conformance.observing import KINDS
from turnout_conformance.plugin import Session, pytest_addoption

HERE = Path(__file__).parent


class Run(NamedTuple):
    """A run of the kit in a process of its own: its exit status, its output, and the tests that failed."""

    status: int
    output: str
    failed: dict[str, str]


def run_kit(folder: Path, *options: str, mutants: bool = False, path: Iterable[Path] = ()) -> Run:
    """Run it in a folder on a few operators; `mutants` are the backends of `mutant_backends`."""
    written = folder / "written.txt"
    loaded = ["-p", "few_cases", *(["-p", "mutant_backends"] if mutants else [])]
    command = [sys.executable, "-m", "pytest", *loaded, "--pyargs", "turnout_conformance"]
    done = subprocess.run(
        [*command, "-q", "--tb=line", f"--turnout-write-expected-failures={written}", *options],
        cwd=folder, env=clean(PYTHONPATH=os.pathsep.join([*map(str, path), str(HERE)])), capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    return Run(done.returncode, done.stdout + done.stderr, expected.read(written) if written.exists() else {})


# ---- options


def test_the_table_of_options_has_each_with_its_value_and_says_which_may_be_repeated() -> None:
    options: dict[str, dict[str, Any]] = {}
    group = SimpleNamespace(addoption=lambda name, **fields: options.update({name: fields}))
    pytest_addoption(SimpleNamespace(getgroup=lambda *names: group))  # type: ignore[arg-type]
    stated = {}
    for name, fields in options.items():
        value = fields.get("metavar") or "|".join(each for each in fields["choices"] if each != fields["default"])
        stated[f"{name} {value}"] = fields.get("action") == "append"
    rows = re.findall(r"^\| `(--.*?)` \| (.*) \|$", (ROOT / "tools/conformance/README.md").read_text("utf-8"), re.MULTILINE)
    assert {row: said.endswith("; may be repeated") for row, said in rows} == stated
    for page in pages():
        assert set(re.findall(r"--turnout-[a-z-]+", page.read_text("utf-8"))) <= options.keys(), page


# ---- backends

DEVICES = (mutant_backends.SANE, *mutant_backends.MUTANTS)
EACH_DEVICE = [f"--turnout-backend={device}" for device in DEVICES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kit")


@pytest.fixture(scope="module")
def of_backends(folder: Path) -> Run:
    """The kit on all mutants and the backend that is right."""
    found = run_kit(folder, *EACH_DEVICE, f"--turnout-report={folder / 'report.html'}", mutants=True)
    assert found.failed, found.output
    return found


@pytest.mark.parametrize("device", mutant_backends.MUTANTS)
def test_a_backend_with_a_mistake_fails(of_backends: Run, device: str) -> None:
    noticed = {mutant_backends.names(device, test) for test in mutant_backends.MUTANTS[device].noticed}
    assert noticed - set(of_backends.failed) == set()


def test_a_backend_without_a_mistake_passes_all_of_these_tests(of_backends: Run) -> None:
    assert [name for name in of_backends.failed if f"[{mutant_backends.SANE}" in name] == []
    assert of_backends.status == pytest.ExitCode.TESTS_FAILED


FEW = DEVICES[:3]
FAILING = {mutant_backends.names(d, test) for d in FEW[1:] for test in mutant_backends.MUTANTS[d].noticed}
EACH_OF_FEW = [f"--turnout-backend={device}" for device in FEW]


def test_workers_write_the_failures_that_the_next_run_expects(folder: Path) -> None:
    spread = run_kit(folder, *EACH_OF_FEW, "-n", "2", mutants=True)
    assert spread.status == pytest.ExitCode.TESTS_FAILED
    assert spread.failed.keys() == FAILING
    assert "no kernel" not in spread.output

    file = folder / "expected.txt"
    expected.write(file, spread.failed)
    again = run_kit(folder, *EACH_OF_FEW, f"--turnout-expected-failures={file}", mutants=True)
    assert again.status == pytest.ExitCode.OK, again.output
    assert again.failed.keys() == FAILING


def expecting(folder: Path, test: str, reason: str) -> tuple[Path, Run]:
    """A run on the right backend that expects one failure, and the file that says so."""
    file = folder / "one.txt"
    expected.write(file, {test: reason})
    return file, run_kit(folder, "--turnout-backend=sane", f"--turnout-expected-failures={file}", mutants=True)


def test_an_expected_failure_that_passes_is_a_failure(folder: Path) -> None:
    passing = mutant_backends.names("sane", f"{mutant_backends.GIVES}[exp-row-major]")
    _, found = expecting(folder, passing, "it was broken once")
    assert found.status == pytest.ExitCode.TESTS_FAILED
    assert "[XPASS(strict)] it was broken once" in found.output
    assert found.failed == {}


def test_an_expected_failure_of_a_test_that_is_not_there_is_an_error(folder: Path) -> None:
    absent = f"{mutant_backends.GIVES}[sane-explode-row-major]"
    file, found = expecting(folder, absent, "")
    assert found.status == pytest.ExitCode.USAGE_ERROR
    assert found.output.strip().splitlines()[-3:] == [
        f"ERROR: {file} expects failures of tests that are not there:",
        f"  {absent}",
        "  to fix  take these lines out",
    ]


def test_the_report_says_how_each_operator_is_served(of_backends: Run, folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    sections = {section.partition(" ")[0]: section for section in page.split("<h2>")[1:]}
    assert set(sections) == set(DEVICES)
    rows = {row.partition("</tr>")[0] for row in sections["wrong_value"].split("<tr ")[1:]}
    exp = next(row for row in rows if ">aten::exp<" in row)
    assert exp.startswith('class="bad"')
    assert "<td>own kernel<td>" in exp
    assert "test_operator_gives_what_cpu_gives: failed" in exp
    assert any(">aten::relu6<" in row and "<td>composite<td>" in row for row in rows)
    assert any("<td>host fallback<td>" in row for row in rows)


def test_the_colours_of_the_report_are_those_of_kinds_that_there_are() -> None:
    style = files("turnout_conformance").joinpath("report.html").read_text(encoding="utf-8").partition("<style>")[2]
    classes = set(re.findall(r"\.([a-z-]+) td", style.partition("</style>")[0])) - {"bad"}
    assert {"own-kernel", "missing"} < classes <= {kind.replace(" ", "-") for kind in KINDS}


def test_memory_is_given_back_after_each_operator_and_after_each_other_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def item(op: str) -> Any:
        params = {"turnout_device": "cpu", **({"case": op} if op else {})}
        return SimpleNamespace(name=f"test[{op}]", callspec=SimpleNamespace(params=params))

    options = {"--turnout-backend": ["cpu"], "--turnout-level": "full", "--turnout-sample": 1.0}
    session = Session(SimpleNamespace(getoption=options.get))  # type: ignore[arg-type]
    ops = ["", "", "exp", "exp", "log", "", "log"]
    given: list[bool] = []
    monkeypatch.setattr(type(turnout.ones(1).device.backend), "empty_cache", lambda self: given.append(True))
    counts = []
    for each, following in pairwise([*map(item, ops), None]):
        session.pytest_runtest_teardown(each, following)
        counts.append(len(given))
    assert counts == [1, 2, 2, 3, 4, 5, 6]


def test_a_run_in_which_no_kernel_ran_is_a_failure(folder: Path) -> None:
    found = run_kit(folder, "--turnout-backend=idle", "-k", "gives_what_cpu_gives and exp-row", mutants=True)
    assert "1 passed" in found.output
    assert "turnout: no kernel of idle ran, so nothing is proved" in found.output
    assert found.status == pytest.ExitCode.TESTS_FAILED


def test_a_device_that_is_missing_proves_nothing_and_is_a_failure_where_it_is_required(folder: Path) -> None:
    asked = ("--turnout-backend=nowhere", "-k", "gives_what_cpu_gives and exp-row")
    skipped = run_kit(folder, *asked, mutants=True)
    assert "1 skipped" in skipped.output
    assert skipped.status == pytest.ExitCode.TESTS_FAILED
    required = run_kit(folder, *asked, "--require-backend=nowhere", mutants=True)
    assert "no device nowhere: device 'nowhere': there is no such device" in required.output
    assert required.status == pytest.ExitCode.TESTS_FAILED


def test_a_sample_depends_on_names_alone_and_has_a_test_of_each_operator() -> None:
    arrangements = ("row-major", "spread", "column-major")
    tests = [
        Candidate(f"test_{kind}[{op}-{way}]", "acme", op, kind, frozenset(["case", way]))
        for kind in ("operator_gives_what_cpu_gives", "vmap")
        for op in map(str, range(100))
        for way in arrangements
    ]
    tests += [Candidate("test_plugin[acme]", "acme", "", "test_plugin", frozenset())]
    taken = [chosen(tests, Choice(share=share)) for share in (0.01, 0.1, 0.5, 1.0)]
    assert all(fewer <= more for fewer, more in pairwise(taken))
    assert taken[1] == chosen(reversed(tests), Choice(share=0.1))
    assert 100 <= len(taken[0]) < len(taken[1]) < 200 < len(taken[2]) < 400 < len(taken[3]) == len(tests)
    for found in taken:
        assert {test.op for test in tests if test.name in found} == {test.op for test in tests}


def test_a_whole_run_writes_a_badge_and_a_part_of_one_says_why_not(folder: Path) -> None:
    asked = ("--turnout-backend=sane", f"--turnout-badge={folder / 'badge.json'}")
    part = run_kit(folder, *asked, "--turnout-level=quick", "--turnout-sample=0.5", mutants=True)
    assert part.status == pytest.ExitCode.OK, part.output
    assert re.search(r"turnout: kernels of sane ran for \d+ operators \(level quick, a sample of 0\.5\)", part.output)
    assert "turnout: no badge: it takes a whole run, and this was level quick, a sample of 0.5" in part.output
    left_out = run_kit(folder, *asked, "-k", "exp", mutants=True)
    assert re.search(r"turnout: no badge: it takes a whole run, and \d+ tests were left out", left_out.output)
    assert not (folder / "badge.json").exists()
    whole = run_kit(folder, *asked, "-n", "2", mutants=True)
    badge = json.loads((folder / "badge.json").read_text(encoding="utf-8"))
    assert list(badge) == ["format", "date", "turnout-core", "turnout-conformance", "proved"]
    [proved] = badge["proved"]
    assert (proved["name"], proved["key"], proved["distribution"]) == ("sane", "Sane", "")
    assert f"{proved['tests']['passed']} passed" in whole.output
    assert f"turnout: kernels of sane ran for {proved['operators']} operators" in whole.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--turnout-sample=0"], "argument --turnout-sample: expected a number above 0 and up to 1, got '0'"),
        (["--turnout-option=autocast.nosuch=1"], "plugin.autocast.nosuch: the plugin autocast has no option 'nosuch'"),
        (["--turnout-option=autocast.dtype=3"], "plugin.autocast.dtype: expected"),
    ],
)
def test_options_that_cannot_be_are_errors(folder: Path, options: list[str], said: str) -> None:
    found = run_kit(folder, "--turnout-backend=sane", "-k", "exp-row", *options, mutants=True)
    assert found.status != pytest.ExitCode.OK
    assert said in found.output


def test_a_run_that_is_told_nothing_says_what_to_tell_it(folder: Path) -> None:
    found = run_kit(folder)
    assert found.status == pytest.ExitCode.USAGE_ERROR
    assert found.output.strip().splitlines()[-2:] == [
        "ERROR: turnout-conformance was not told what to prove",
        "  to fix  pytest --pyargs turnout_conformance --turnout-backend=DEVICE, --turnout-key=KEY or --turnout-engine=NAME",
    ]


# ---- plugins of backends

BACKEND = """
import numpy
import turnout_arrays
from turnout.plugins import hookimpl
from turnout.registry import Registrations
from turnout_aten.kernels.tables import register_kernels


class {name}(turnout_arrays.ArrayBackend):
    name = "{name}"
    device_type = "{device}"


@hookimpl
def turnout_activate(library, options):
    made = {name}(numpy)
    library.backend(made)
    register_kernels(library, made, turnout_arrays.kernels(numpy))
"""
MANIFEST = """
kind = "backend"
requires_plugins = ["aten"]

[[provides.backend]]
name = "{name}"
device = "{device}"
"""
NAMED = "test_the_manifest_names_the_backend_and_what_it_registers"
NEEDED = "test_the_manifest_names_the_plugins_that_are_needed"
THERE = "test_the_names_options_and_version_of_the_manifest_are_there"
TAKEN_BACK = "test_deactivation_takes_everything_back_and_the_next_use_brings_it_again"
# device -> (what is added to the manifest, what is added to the code, the test that notices)
PLUGINS = {
    "honest": ("", "", ""),
    "meddling": ("", '    library.impl("aten::exp", "Meta", lambda self: self.clone())', NAMED),
    "secretive": ("", "    from turnout import plugins; plugins.activate('autocast')", NEEDED),
    "boasting": ('[provides.names]\n"boasting_x" = ["not_there"]\n', "", THERE),
    "staying": (
        "",
        '    Registrations("staying", distribution="staying-x", version="1.0").impl("aten::relu6", "Staying", lambda self: self)',
        TAKEN_BACK,
    ),
}


def test_a_plugin_whose_manifest_lies_or_that_leaves_something_behind_fails(folder: Path) -> None:
    place = folder / "plugins"
    place.mkdir()
    for device, (manifest, code, _) in PLUGINS.items():
        words = {"name": device.title(), "device": device}
        write_package(place, device, MANIFEST.format(**words) + manifest, BACKEND.format(**words) + code + "\n")
    options = [f"--turnout-backend={device}" for device in PLUGINS]
    found = run_kit(folder, *options, "-k", "test_backend_plugin", path=[place])
    assert set(found.failed) == {f"{test}[{device}]" for device, (_, _, test) in PLUGINS.items() if test}, found.output


# ---- functionalities


@pytest.fixture(scope="module")
def of_functionalities(folder: Path) -> Run:
    """The kit on the functionality that is right, and on all mutants what notices one of them."""
    place = folder / "functionalities"
    place.mkdir()
    keys = mutant_functionalities.write_packages(place)
    options = [f"--turnout-key={key}" for key in keys]
    found = run_kit(folder, *options, "-k", f"{mutant_functionalities.RIGHT_KEY} or exp or sort or -t] or state", path=[place])
    assert found.failed, found.output
    return found


@pytest.mark.parametrize("key", mutant_functionalities.MUTANTS)
def test_a_functionality_with_a_mistake_fails(of_functionalities: Run, key: str) -> None:
    noticed = {mutant_backends.names(key, test) for test in mutant_functionalities.MUTANTS[key].noticed}
    assert noticed - set(of_functionalities.failed) == set()


def test_a_functionality_without_a_mistake_passes(of_functionalities: Run) -> None:
    assert [name for name in of_functionalities.failed if f"[{mutant_functionalities.RIGHT_KEY}" in name] == []


def test_operators_that_a_functionality_says_it_changes_may_change(of_functionalities: Run, folder: Path) -> None:
    options = ("--turnout-key=ChangingTheValue", "--turnout-key-changes=exp*", "-k", "exp")
    found = run_kit(folder, *options, path=[folder / "functionalities"])
    assert found.status == pytest.ExitCode.OK, found.output
    dropped = ("--turnout-key=DroppingTheResult", "--turnout-key-changes=*", "-k", "passes and exp")
    found = run_kit(folder, *dropped, path=[folder / "functionalities"])
    assert found.status == pytest.ExitCode.TESTS_FAILED
