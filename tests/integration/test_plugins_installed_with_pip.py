"""Plugins as pip installs them, broken ones of every kind beside those that work."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from installed import FIXTURES, Environment

BROKEN = ("import_raises", "missing_dependency", "lying_manifest", "misspelt_manifest", "other_api", "twin_one", "twin_two")
STATES = """
import json
from turnout import plugins
rows = [(r.name, r.distribution, r.state, r.reason, r.remedy) for r in plugins.all_plugins()]
print(json.dumps([row for row in rows if row[1].startswith("fixture-")]))
"""


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """One environment with a plugin that works and all that do not."""
    environment = Environment(tmp_path_factory.mktemp("broken"))
    environment.install("letters", *BROKEN)
    return environment


@pytest.fixture
def alone(tmp_path) -> Environment:
    return Environment(tmp_path)


def test_every_broken_plugin_has_its_state_reason_and_remedy(broken):
    rows = {row[1]: tuple(row[2:]) for row in broken.answer(STATES)}
    manifest = broken.packages() / "fixture_misspelt_manifest" / "plugin.toml"
    twins = "fixture-twin-one 0.1 and fixture-twin-two 0.1 have a plugin of this name"
    other = "expected 'fixture-misspelt-manifest', which holds this file, got 'fixture-somebody-else'"
    assert rows == {
        "fixture-letters": ("discovered", "", ""),
        "fixture-import-raises": ("discovered", "", ""),
        "fixture-lying-manifest": ("discovered", "", ""),
        "fixture-missing-dependency": (
            "unavailable",
            "the module fixture_driver_that_nobody_has is not installed",
            "pip install fixture-driver",
        ),
        "fixture-misspelt-manifest": (
            "failed",
            (
                "the manifest of fixture-misspelt-manifest 0.1 is not accepted\n"
                f"  file     {manifest}\n"
                "  missing  module is required: the module that is imported to activate it\n"
                f"  line 2   distribution: {other}\n"
                "  line 5   modul: unknown field; did you mean module?"
            ),
            "upgrade fixture-misspelt-manifest, or tell its authors",
        ),
        "fixture-other-api": (
            "incompatible",
            "it was built for plugin-API 2.0; this turnout-core has 1.0",
            "pip install --upgrade fixture-other-api turnout-core",
        ),
        "fixture-twin-one": ("conflict", twins, 'choose one: [plugins.choose] twin = "fixture-twin-one"'),
        "fixture-twin-two": ("conflict", twins, 'choose one: [plugins.choose] twin = "fixture-twin-two"'),
    }


def test_importing_turnout_runs_no_plugin_and_says_nothing(broken):
    code = (
        "import sys, json, turnout\n"
        "print(json.dumps([m for m in sys.modules if m.startswith('fixture_') or m in ('numpy', 'pluggy')]))"
    )
    done = broken.run(code, flags=("-W", "error"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_the_plugin_that_works_works_beside_the_broken_ones_which_are_one_warning_each(broken):
    done = broken.run("import turnout; print(turnout.ops.letters.greet('you'), turnout.ops.letters.greet('me'))")
    assert (done.returncode, done.stdout) == (0, "hello you! hello me!\n"), done.stderr
    said = [line.partition("PluginWarning: ")[2] for line in done.stderr.splitlines()]
    warnings = [line for line in said if "fixture-" in line]
    twins = "conflict, fixture-twin-one 0.1 and fixture-twin-two 0.1 have a plugin of this name"
    misspelt = "fixture-misspelt-manifest 0.1"
    assert warnings == [
        f"misspelt ({misspelt}): failed, the manifest of {misspelt} is not accepted",
        "other_api (fixture-other-api 0.1): incompatible, it was built for plugin-API 2.0; this turnout-core has 1.0",
        f"twin (fixture-twin-one 0.1): {twins}",
        f"twin (fixture-twin-two 0.1): {twins}",
    ]


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        ("plugins.require_device('raising')", ["load_driver()", "RuntimeError: the driver is too old"]),
        ("plugins.require_device('lacking')", ["to fix  pip install fixture-driver"]),
        ("plugins.require_namespace('truths')", ["turnout.errors.ManifestError: what was registered is not what"]),
        ("plugins.require_device('misspelt')", ["line 5   modul: unknown field; did you mean module?"]),
        ("plugins.require_device('future')", ["why     it was built for plugin-API 2.0; this turnout-core has 1.0"]),
        ("plugins.activate('twin')", ['to fix  choose one: [plugins.choose] twin = "fixture-twin-one"']),
    ],
)
def test_asking_for_a_broken_plugin_shows_its_own_cause(broken, ask, expected):
    done = broken.run(f"import warnings; warnings.simplefilter('ignore')\nfrom turnout import plugins\n{ask}")
    assert done.returncode == 1
    assert "turnout.errors.PluginError: " in done.stderr
    for text in expected:
        assert text in done.stderr


def test_a_lying_plugin_leaves_nothing_behind(broken):
    code = """
import json, warnings
warnings.simplefilter("ignore")
from turnout import plugins
from turnout.registry import REGISTRY
before = sorted(REGISTRY.operators)
try:
    plugins.require_namespace("truths")
except ImportError:
    pass
print(json.dumps(sorted(set(REGISTRY.operators) ^ set(before))))
"""
    assert broken.answer(code) == []


def test_configuration_decides_between_two_distributions_of_one_plugin(broken, tmp_path):
    code = "import json, turnout; print(json.dumps(turnout.ops.twins.which()))"
    for which in ("one", "two"):
        (tmp_path / "turnout.toml").write_text(f'[plugins.choose]\ntwin = "fixture-twin-{which}"\n')
        assert broken.answer(code, cwd=tmp_path) == which


def test_a_project_file_switches_a_plugin_off_and_sets_an_option(broken, tmp_path):
    code = "import json, turnout; print(json.dumps(turnout.ops.letters.greet('you')))"
    (tmp_path / "turnout.toml").write_text('[plugin.letters]\nending = "?"\n')
    assert broken.answer(code, cwd=tmp_path) == "hello you?"
    (tmp_path / "turnout.toml").write_text('[plugins]\ndisable = ["letters"]\n')
    done = broken.run(code, cwd=tmp_path)
    assert "DisabledError: the operators letters::*: the plugin letters is disabled" in done.stderr
    assert f"plugins.disable names letters ({tmp_path / 'turnout.toml'}:2)" in done.stderr


@pytest.mark.parametrize("layout", ["src", "flat"])
def test_an_editable_install_is_found_and_edited_without_reinstalling(alone, layout):
    if layout == "src":
        alone.install("letters", editable=True)
    else:
        install_flat(alone)
        assert list(alone.packages().glob("__editable__*finder.py"))
    source = alone.folder / "sources" / "letters"
    [row] = alone.answer(STATES)
    assert row[:3] == ["letters", "fixture-letters", "discovered"]
    assert alone.answer("import json, turnout; print(json.dumps(turnout.ops.letters.greet('you')))") == "hello you!"
    [manifest] = source.rglob("plugin.toml")
    manifest.write_text(manifest.read_text().replace('"!"', '"."'))
    assert alone.answer("import json, turnout; print(json.dumps(turnout.ops.letters.greet('you')))") == "hello you."


def install_flat(environment: Environment) -> None:
    """The fixture with its package beside pyproject.toml: setuptools then installs an import finder, not a path."""
    source = environment.folder / "sources" / "letters"
    shutil.copytree(FIXTURES / "letters", source)
    (source / "src" / "fixture_letters").rename(source / "fixture_letters")
    (source / "src").rmdir()
    project = (source / "pyproject.toml").read_text()
    project = project.replace(".packages.find]", "]").replace('where = ["src"]', 'packages = ["fixture_letters"]')
    (source / "pyproject.toml").write_text(project)
    command = [sys.executable, "-m", "pip", "--python", str(environment.python), "install", "--quiet", "--no-index"]
    subprocess.run([*command, "--no-build-isolation", "--no-deps", "--editable", str(source)], check=True)


def test_a_stray_package_in_the_working_directory_cannot_stand_in(alone, tmp_path):
    alone.install("letters")
    stray = tmp_path / "stray" / "fixture_letters"
    stray.mkdir(parents=True)
    (stray / "__init__.py").write_text("raise SystemExit('the stray was imported')")
    (stray / "plugin.toml").write_text('name = "letters"\n')
    code = "import turnout; turnout.ops.letters.greet('you')"
    [row] = alone.answer(STATES, cwd=stray.parent)
    assert row[:3] == ["letters", "fixture-letters", "discovered"]
    done = alone.run(code, cwd=stray.parent)
    assert "the package fixture_letters that would be imported is not the one of the plugin" in done.stderr
    assert "the stray was imported" not in done.stderr


def test_a_plugin_built_for_an_older_minor_works_with_a_newer_core(alone):
    alone.install("letters")
    code = (
        "import json\nfrom turnout import plugins\nplugins.PLUGIN_API = '1.9'\nimport turnout\n"
        "print(json.dumps(turnout.ops.letters.greet('you')))"
    )
    assert alone.answer(code) == "hello you!"


def test_an_uninstalled_plugin_is_gone(alone):
    alone.install("letters")
    command = [sys.executable, "-m", "pip", "--python", str(alone.python), "uninstall", "--quiet", "-y"]
    subprocess.run([*command, "fixture-letters"], check=True)
    assert alone.answer(STATES) == []
    assert "UnknownOperatorError" in alone.run("import turnout; turnout.ops.letters.greet('you')").stderr


COUNTS = """
import json, turnout
from turnout import plugins
{before}
from fixture_counter import counting
with counting() as counts:
    {calls}
{calls}
print(json.dumps(counts))
"""


def test_a_functionality_from_outside_wraps_every_operator_while_it_is_included(alone):
    alone.install("letters", "counter")
    calls = "turnout.ops.letters.greet('you')"
    code = COUNTS.format(before=calls, calls=calls)
    assert alone.answer(code) == {"letters::greet": 1}
    assert alone.answer(code.replace(calls, f"{calls}; {calls}")) == {"letters::greet": 2}


def test_a_functionality_from_outside_stands_where_its_manifest_says(alone):
    alone.install("counter")
    code = """
import json
from turnout import plugins
from turnout.keys import KEYS
plugins.require_functionality("CallCounter")
names = [f.name for f in KEYS.functionalities]
plugins.deactivate("counter")
print(json.dumps([names[names.index("Autograd") + 1], "CallCounter" in [f.name for f in KEYS.functionalities]]))
"""
    assert alone.answer(code) == ["CallCounter", True]  # the row stays: what is installed decides
