"""Plugins as pip installs them: found, configured, edited in place, and gone when they are uninstalled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installed import FIXTURES, Environment, clean

STATES = """
from turnout import plugins
rows = [(r.name, r.distribution, r.state, r.reason, r.remedy) for r in plugins.all_plugins()]
found = [row for row in rows if row[1].startswith("fixture-")]
"""
GREET = "import turnout; found = turnout.ops.letters.greet('you')"


def test_a_project_file_switches_a_plugin_off_and_sets_an_option(working, tmp_path):
    (tmp_path / "turnout.toml").write_text('[plugin.letters]\nending = "?"\n')
    assert working.answer(GREET, cwd=tmp_path) == "hello you?"
    (tmp_path / "turnout.toml").write_text('[plugins]\ndisable = ["letters"]\n')
    done = working.run(GREET, cwd=tmp_path)
    assert "DisabledError: the operators letters::*: the plugin letters is disabled" in done.stderr
    assert f"plugins.disable names letters ({tmp_path / 'turnout.toml'}:2)" in done.stderr


@pytest.mark.parametrize("layout", ["src", "flat"])
def test_an_editable_install_is_found_and_edited_without_reinstalling_and_gone_when_it_is_uninstalled(layout, tmp_path):
    environment = Environment(tmp_path)
    source = tmp_path / "sources" / "letters"
    if layout == "flat":
        write_flat(source)
    environment.install("letters", editable=True)
    assert bool(list(environment.packages().glob("__editable__*finder.py"))) == (layout == "flat")
    # Builds in the folder leave the distribution a second time, on sys.path where the install is a path. Nothing changes.
    left = [sys.executable, "-c", "import setuptools; setuptools.setup()", "-q", "egg_info"]
    subprocess.run(left, cwd=source, env=clean(), check=True)
    [info] = source.rglob("fixture_letters.egg-info")
    assert "letters" in (info / "entry_points.txt").read_text()
    [row] = environment.answer(STATES)
    assert row[:3] == ["letters", "fixture-letters", "discovered"]
    assert environment.answer(GREET) == "hello you!"
    [manifest] = source.rglob("plugin.toml")
    manifest.write_text(manifest.read_text().replace('"!"', '"."'))
    assert environment.answer(GREET) == "hello you."
    shutil.rmtree(info)
    environment.pip("uninstall", "--quiet", "-y", "fixture-letters")
    assert environment.answer(STATES) == []
    assert "UnknownOperatorError" in environment.run(GREET).stderr


def write_flat(source: Path) -> None:
    """The fixture with its package beside pyproject.toml: setuptools then installs an import finder, not a path."""
    shutil.copytree(FIXTURES / "letters", source, ignore=shutil.ignore_patterns("*.egg-info", "build"))
    (source / "src" / "fixture_letters").rename(source / "fixture_letters")
    (source / "src").rmdir()
    project = (source / "pyproject.toml").read_text()
    project = project.replace(".packages.find]", "]").replace('where = ["src"]', 'packages = ["fixture_letters"]')
    (source / "pyproject.toml").write_text(project)


def test_a_stray_package_in_the_working_directory_cannot_stand_in(working, tmp_path):
    stray = tmp_path / "stray" / "fixture_letters"
    stray.mkdir(parents=True)
    (stray / "__init__.py").write_text("raise SystemExit('the stray was imported')")
    (stray / "plugin.toml").write_text('name = "letters"\n')
    rows = {row[0]: row[1:3] for row in working.answer(STATES, cwd=stray.parent)}
    assert rows["letters"] == ["fixture-letters", "discovered"]
    done = working.run(GREET, cwd=stray.parent)
    assert "the package fixture_letters that would be imported is not the one of the plugin" in done.stderr
    assert "the stray was imported" not in done.stderr


def test_a_plugin_built_for_an_older_minor_works_with_a_newer_core(working):
    assert working.answer(f"from turnout import plugins\nplugins.PLUGIN_API = '1.9'\n{GREET}") == "hello you!"


COUNTS = """
import turnout
from turnout import plugins
{before}
from fixture_counter import counting
with counting() as counts:
    {calls}
{calls}
found = dict(counts)
"""


def test_a_functionality_from_outside_wraps_every_operator_while_it_is_included(working):
    calls = "turnout.ops.letters.greet('you')"
    code = COUNTS.format(before=calls, calls=calls)
    assert working.answer(code) == {"letters::greet": 1}
    assert working.answer(code.replace(calls, f"{calls}; {calls}")) == {"letters::greet": 2}


def test_a_functionality_from_outside_stands_where_its_manifest_says(working):
    code = """
from turnout import plugins
from turnout.keys import KEYS
plugins.require_functionality("CallCounter")
names = [f.name for f in KEYS.functionalities]
plugins.deactivate("counter")
found = [names[names.index("Autograd") + 1], "CallCounter" in [f.name for f in KEYS.functionalities]]
"""
    assert working.answer(code) == ["CallCounter", True]  # the row stays: what is installed decides
