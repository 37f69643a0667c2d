"""The backends of examples/, installed with pip and held to the kit."""

from __future__ import annotations

from pathlib import Path

from installed import Environment
from pages import ROOT, tracked

from turnout_cli.new_plugin import rendered

EXAMPLES = ROOT / "examples"
SAMPLE = "test_backend_device or test_backend_plugin or mul or neg"  # cpu runs the rest, whose cases make no difference
ROW_MAJOR = "test_backend_device or test_backend_plugin or (gives_what_cpu_gives and row-major)"


def code_lines(name: str) -> int:
    """The lines of an example's package that are not empty."""
    files = sorted((EXAMPLES / name / "src").rglob("*.py"))
    return sum(bool(line.strip()) for file in files for line in file.read_text(encoding="utf-8").splitlines())


def prove(folder: Path, name: str, *arguments: str) -> str:
    """What the kit prints about an example that is installed in an environment of its own; the run must end well."""
    environment = Environment(folder)
    environment.install(name, folder=EXAMPLES)
    arguments = ("-q", "--pyargs", "turnout_conformance", f"--turnout-backend={name}", *arguments)
    done = environment.run(f"import pytest; raise SystemExit(pytest.main({list(arguments)!r}))")
    assert done.returncode == 0, done.stdout
    assert f"turnout: kernels of {name} ran for" in done.stdout
    return done.stdout


def test_the_kit_proves_loopback_without_expected_failures(tmp_path):
    assert "failed" not in prove(tmp_path, "loopback", "-k", SAMPLE)


def test_the_kit_proves_torchlike_but_for_the_dtypes_that_it_does_not_have(tmp_path):
    failures = f"--turnout-expected-failures={EXAMPLES / 'torchlike' / 'expected_failures.txt'}"
    assert "4 xfailed" in prove(tmp_path, "torchlike", "-k", ROW_MAJOR, failures)


def test_loopback_is_what_new_plugin_writes():
    files = [name.removeprefix("examples/loopback/") for name in tracked(("examples/loopback",))]
    assert sorted(files) == list(rendered("loopback", "backend"))
    for path, text in rendered("loopback", "backend").items():
        if path != "README.md":
            assert (EXAMPLES / "loopback" / path).read_text(encoding="utf-8") == text, path


def test_loopback_has_less_than_100_lines():
    assert 50 < code_lines("loopback") < 100


def test_the_expected_failures_of_torchlike_are_what_its_readme_says():
    lines = (EXAMPLES / "torchlike" / "expected_failures.txt").read_text(encoding="utf-8").splitlines()
    reasons = [line.partition("  #")[2] for line in lines if not line.startswith("#")]
    other_dtype = [reason for reason in reasons if "retyped" in reason]
    no_complex = [reason for reason in reasons if "retyped" not in reason and "torchlike has no complex" in reason]
    assert (len(reasons), len(no_complex), len(other_dtype)) == (35, 26, 9)
