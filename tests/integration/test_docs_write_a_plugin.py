"""docs/write-a-backend.md, docs/write-a-functionality.md and docs/compile.md, followed; and the kit proves what they make."""

from __future__ import annotations

import inspect
import os
import re
import zipfile

import pytest
from pages import ROOT, Reader, blocks, broken_links, tracked

import turnout
from turnout_aten.plugin_api import TensorBackend

BACKEND = ROOT / "docs" / "write-a-backend.md"
FUNCTIONALITY = ROOT / "docs" / "write-a-functionality.md"
COMPILE = ROOT / "docs" / "compile.md"
EXAMPLE = "examples/torchlike"
KIT = "pytest -q --pyargs turnout_conformance --turnout-engine=scribe --turnout-engine-close=1e-5"
PROGRAMS = "random_programs and (scribe-0 or scribe-6)"  # 75 of 500, which notice both faults
FEW = f"{KIT} -k '({PROGRAMS}) or (not random_programs and (add or mul or tanh))'"
# The whole kit takes minutes.
INSTEAD = {COMPILE: {"pip install ./plugins/tracer ./plugins/functionalize ./plugins/meta ./plugins/autograd": "", KIT: FEW}}
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the commands of the pages are for a POSIX shell")


@pytest.mark.parametrize("page", [BACKEND, FUNCTIONALITY, COMPILE], ids=lambda page: page.stem)
def test_the_package_of_the_page_is_built_and_every_program_prints_what_it_says(page, tmp_path):
    reader = Reader(tmp_path)  # with Turnout installed, outside of the repository
    reader.follow(page, INSTEAD.get(page))
    made = {
        BACKEND: torchlike_is_the_example,
        FUNCTIONALITY: the_wheel_of_ledger_is_whole_and_proved,
        COMPILE: the_kit_notices_faults_of_scribe,
    }
    made[page](reader)


def cells(title: str) -> list[list[str]]:
    """The rows of the table under a heading of the page for backends: the code of each cell, by columns."""
    section = re.split(r"^##+ ", BACKEND.read_text("utf-8").partition(f" {title}\n")[2], flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[" ".join(re.findall(r"`(.*?)`", cell)) for cell in line.split(" | ")] for line in lines if "`" in line]


def test_the_page_has_the_methods_of_a_backend_with_their_parameters():
    written = {}
    for name, parameters in re.findall(r"(\w+)\((.*?)\)", " ".join(row[0] for row in cells("The backend"))):
        written[name] = [each.partition("=")[0] for each in parameters.split(", ") if each]
    assert written == {name: [*inspect.signature(getattr(TensorBackend, name)).parameters][1:] for name in written}
    source = inspect.getsource(inspect.getmodule(TensorBackend))
    assert set(re.findall(r'raise missing\(self, "(\w+)"\)', source)) <= written.keys()


def test_the_rows_that_matter_first_are_of_operators_and_as_many_as_the_page_says():
    rows = [name for row in cells("Which rows matter first") for name in row[1].split()]
    assert f"and all {len(rows)} serve" in BACKEND.read_text("utf-8")
    assert len({*rows}) == len(rows)
    for row in rows:
        packet, _, overload = row.partition(".")
        assert getattr(getattr(turnout.ops.aten, packet), overload)


def torchlike_is_the_example(reader: Reader) -> None:
    """All files but the README, and the expected failures, of which the page writes a part."""
    made = reader.done([reader.python, "-c", "import turnout_torchlike; print(turnout_torchlike.__file__)"])
    assert str(reader.environment.packages()) in made
    for name in tracked((EXAMPLE,)):
        path = name.removeprefix("examples/")
        if not path.endswith(("README.md", "expected_failures.txt")):
            text = (reader.clone / path).read_text(encoding="utf-8")
            assert text.removeprefix(f"# {path}\n") == (ROOT / name).read_text(encoding="utf-8"), name


def the_wheel_of_ledger_is_whole_and_proved(reader: Reader) -> None:
    """It has its files and no other, keys have the order that the page says, and the kit proves it in its own context too."""
    [wheel] = (reader.clone / "dist").glob("*.whl")
    assert {name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name} == {
        "turnout_ledger/__init__.py",
        "turnout_ledger/counting.py",
        "turnout_ledger/plugin.toml",
    }
    assert broken_links(FUNCTIONALITY) == []
    [sentence] = re.findall(r"some of these keys are (.*), in this order", FUNCTIONALITY.read_text(encoding="utf-8"))
    named = re.findall(r"`(\w+)`", sentence)
    order = [line.split()[0] for line in reader.done("turnout keys --wide").splitlines()]
    assert len(named) == 5
    assert sorted(named, key=order.index) == named
    context = "--turnout-key=Ledger --turnout-key-context=Ledger=turnout_ledger.counting:counting"
    reader.done(f"pytest -q --pyargs turnout_conformance {context} -k 'mm or cumsum or relu'")


def test_the_files_of_the_page_about_backends_are_those_of_the_example_and_have_less_than_100_lines():
    files = {block.file: block.text.partition("\n")[2] for block in blocks(BACKEND) if block.file}
    assert files
    for path, text in files.items():
        if not path.endswith("expected_failures.txt"):
            assert text == (ROOT / "examples" / path).read_text(encoding="utf-8"), path
    assert 50 < sum(bool(line.strip()) for text in files.values() for line in text.splitlines()) < 100


def the_kit_notices_faults_of_scribe(reader: Reader) -> None:
    """A wrong row, and a result that is an input: the kit fails, where the engine of the page has passed."""
    engine = reader.environment.packages() / "turnout_scribe" / "engine.py"
    text = engine.read_text(encoding="utf-8")
    for right, wrong in (("np.tanh({0})", "np.exp({0})"), ("{0}.copy()", "{0}")):
        assert text.count(right) == 1
        engine.write_text(text.replace(right, wrong), encoding="utf-8")
        done = reader.run(f"{KIT} -x -k '({PROGRAMS}) or tanh'")
        assert done.returncode == 1, done.stdout
        assert "1 failed" in done.stdout


def test_the_engine_of_the_page_has_less_than_60_lines():
    files = {block.file: block.text for block in blocks(COMPILE) if block.file.startswith("scribe/turnout_scribe/")}
    lines = [line for path, text in files.items() if path.endswith(".py") for line in text.splitlines()[1:] if line.strip()]
    assert 40 < len(lines) < 60
