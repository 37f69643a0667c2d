"""What a manifest may say, and the full text of what is said about one that says something else."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from turnout import plugins
from turnout.errors import ManifestError, PluginError
from turnout.plugins.manifest import Engine, Manifest, Need, Option

FULL = """\
name = "alpha"
distribution = "Dist_Alpha"
kind = "backend"
api = "1.0"
module = "fake_alpha.plugin"
summary = "the first letter"
requires_plugins = ["beta"]

[provides]
namespaces = ["letters"]

[[provides.backend]]
name = "Alpha"
device = "alpha"

[[provides.key]]
name = "Autograd"

[[provides.key]]
name = "Profiler"
prefix = "Profiler"
after = "Autograd"

[[provides.engine]]
name = "letterpress"
module = "fake_alpha.press"
devices = ["alpha"]

[[needs]]
module = "sys"
install = "it is there"

[option.fraction]
type = "float"
default = 1
help = "how much"
min = 0
max = 1.5

[option.mode]
type = "str"
default = "fast"
help = "which way"
choices = ["fast", "exact"]
trusted = true
"""


def plain(text):
    return text.replace("{", "{{").replace("}", "}}")


def error_of(site, text):
    path = site.plugin("alpha", manifest=plain(text))
    [record] = plugins.all_plugins()
    assert record.state == "failed"
    assert isinstance(record.error, ManifestError)
    return record.reason.replace(str(path), "plugin.toml")


def test_everything_a_manifest_says_is_in_its_value(site):
    path = site.plugin("alpha", manifest=FULL)
    [record] = plugins.all_plugins()
    assert record.manifest._replace(backends=(), keys=()) == Manifest(
        path=str(path),
        name="alpha",
        distribution="dist-alpha",
        kind="backend",
        api=(1, 0),
        module="fake_alpha.plugin",
        summary="the first letter",
        requires_plugins=("beta",),
        namespaces=("letters",),
        engines=(Engine("letterpress", "fake_alpha.press", ("alpha",)),),
        needs=(Need("sys", "it is there"),),
        options={
            "fraction": Option("float", 1.0, "how much", min=0.0, max=1.5),
            "mode": Option("str", "fast", "which way", ("fast", "exact"), True),
        },
    )
    assert [(b.name, b.device, b.rank, b.functional_only, b.dataless) for b in record.manifest.backends] == [
        ("Alpha", "alpha", "", False, False)
    ]
    assert [(k.name, k.prefix, k.before, k.after, k.passes) for k in record.manifest.keys] == [
        ("Autograd", None, (), (), "never"),
        ("Profiler", "Profiler", (), ("Autograd",), "never"),
    ]


def test_all_problems_of_a_manifest_are_reported_together_by_line(site):
    text = """\
name = "omega"
distribution = "other-package"
kind = "device"
api = "1"
modul = "fake_alpha.plugin"

[[provides.backend]]
name = "alpha"

[[provides.key]]
name = "Profiler"

[[provides.key]]
name = "Autograd"
before = "Tracer"

[option.fraction]
type = "float"
default = "half"
help = "how much"

[option.Mode]
type = "string"
default = ""
help = "which way"
"""
    assert error_of(site, text) == (
        "the manifest of dist-alpha 0.1 is not accepted\n"
        "  file     plugin.toml\n"
        "  missing  module is required: the module that is imported to activate it\n"
        "  line 1   name: expected 'alpha', the name of the entry point, got 'omega'\n"
        "  line 2   distribution: expected 'dist-alpha', which holds this file, got 'other-package'\n"
        "  line 3   kind: expected one of backend, functionality, library, replacement, got 'device'\n"
        "  line 4   api: expected 'MAJOR.MINOR', the plugin-API it needs, got '1'\n"
        "  line 5   modul: unknown field; did you mean module?\n"
        "  line 7   provides.backend.device is required: the device string, such as 'cuda'\n"
        "  line 8   provides.backend.name: expected a name such as 'CUDA', got 'alpha'\n"
        "  line 10  provides.key: Profiler is new and needs its place: before or after one that is always there\n"
        "  line 13  provides.key: Autograd is a standard functionality, whose row core has: name it alone\n"
        "  line 19  option.fraction.default: expected a number, got 'half'\n"
        "  line 22  option.Mode: expected a name of lower case letters, digits and single underscores, a letter first\n"
        "  line 23  option.Mode.type: expected one of bool, int, float, str, strings, got 'string'"
    )


@pytest.mark.parametrize(
    ("line", "replacement", "row"),
    [
        (
            'module = "fake_alpha.plugin"',
            'module = "os.path"',
            "line 5  module: expected a module of fake_alpha, got 'os.path'",
        ),
        ('module = "fake_alpha.plugin"', "module = 3", "line 5  module: expected a module, got 3"),
        ('module = "fake_alpha.plugin"', 'module = ""', "line 5  module: expected a module, got ''"),
        ('kind = "backend"', "", "missing  kind is required: one of backend, functionality, library, replacement"),
        ('["beta"]', '"beta"', "line 7  requires_plugins: expected a list of strings, got 'beta'"),
        ('["beta"]', '["beta", "beta"]', "line 7  requires_plugins: 'beta' is there twice"),
        ('["letters"]', '["a-b"]', "line 10  provides.namespaces: 'a-b' is not a name"),
        (
            'choices = ["fast", "exact"]',
            'choices = ["slow"]',
            "line 42  option.mode.default: expected one of 'slow', got 'fast'",
        ),
        ('choices = ["fast", "exact"]', "choices = [1]", "line 44  option.mode.choices: expected a string, got 1"),
        ("trusted = true", "trusted = 1", "line 45  option.mode.trusted: expected true or false, got 1"),
        ("min = 0", "min = 2", "line 35  option.fraction.default: expected a number from 2.0 to 1.5, got 1"),
        ("min = 0", 'min = "0"', "line 37  option.fraction.min: expected a number, got '0'"),
        ("max = 1.5", "max = true", "line 38  option.fraction.max: expected a number, got true"),
        ("trusted = true", "max = 3", "line 45  option.mode.max: options of the type str have no bounds"),
        ('name = "letterpress"', "", "line 24  provides.engine.name is required: the engine, such as 'xla'"),
        ('"fake_alpha.press"', '"os.path"', "line 26  provides.engine.module: expected a module of fake_alpha, got 'os.path'"),
        ('devices = ["alpha"]', 'devices = ["A"]', "line 27  provides.engine.devices: 'A' is not a name"),
        ('["alpha"]\n\n', '["alpha"]\n\n[[provides.engine]]\nname = "letterpress"\nmodule = "fake_alpha"\n\n',
         "line 30  provides.engine.name: 'letterpress' is there twice"),
        ('install = "it is there"', "", "line 29  needs.install is required: the command that installs it"),
    ],
)  # fmt: skip
def test_each_wrong_field_is_named_with_what_was_expected(site, line, replacement, row):
    assert line in FULL
    place, _, text = row.partition("  ")
    assert error_of(site, FULL.replace(line, replacement)) == (
        f"the manifest of dist-alpha 0.1 is not accepted\n  {'file':{len(place)}}  plugin.toml\n  {place}  {text}"
    )


def test_a_kind_needs_what_it_is_about(site):
    text = FULL.replace('kind = "backend"', 'kind = "library"').replace('namespaces = ["letters"]', "")
    text = text.replace(text[text.index("[[provides.engine]]") : text.index("[[needs]]")], "")
    needed = "provides.namespaces, names, modules, members or engine"
    assert error_of(site, text).splitlines()[2] == f"  line 3  kind: a library needs {needed}"


def test_asking_for_the_device_of_a_broken_manifest_shows_the_problem(site):
    site.plugin("alpha", manifest=plain(FULL.replace('module = "fake_alpha.plugin"', "")))
    with pytest.raises(PluginError) as error:
        plugins.require_device("alpha")
    assert isinstance(error.value.__cause__, ManifestError)
    assert str(error.value).startswith(
        "device 'alpha': the plugin alpha has failed\n  why     the manifest of dist-alpha 0.1 is not accepted\n"
    )


def test_the_build_makes_the_file_of_known_packages_from_the_manifests_of_the_workspace(tmp_path):
    folder = tmp_path / "plugins/alpha/src/fake_alpha"
    folder.mkdir(parents=True)
    public = '[provides.names]\n"fake_alpha.tools" = ["hammer", "anvil"]\n\n'
    public += '[provides.members.nn.names]\n"fake_alpha.layers" = ["Beam"]\n\n[[provides.backend]]'
    text = FULL.replace("[[provides.backend]]", public).replace('device = "alpha"', 'device = "alpha"\nrank = "lowest"')
    (folder / "plugin.toml").write_text(text.replace("Dist_Alpha", "turnout-alpha"))
    for name, needs in (("plugins/alpha", ["turnout-beta[fast]>=0.1", "numpy>=2"]), ("tools/beta", ["turnout-core>=0.1"])):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "pyproject.toml").write_text(f"[project]\ndependencies = {needs}\n")
    (tmp_path / "tools/beta/src/beta").mkdir(parents=True)
    (tmp_path / "tools/beta/src/beta/plugin.toml").write_text('name = "beta"\ndistribution = "turnout-beta"\n')
    found = _setup()["known_packages"](tmp_path)
    assert found.pop("beta")["folders"] == {"turnout-beta": "tools/beta"}
    assert found == {
        "alpha": {
            "distribution": "turnout-alpha",
            "folders": {"turnout-beta": "tools/beta", "turnout-alpha": "plugins/alpha"},
            "devices": ["alpha"],
            "backends": ["Alpha"],
            "functionalities": ["Autograd", "Profiler"],
            "namespaces": ["letters"],
            "public": ["anvil", "hammer"],
            "members": ["nn.Beam"],
            "names_unread": False,
            "lowest_device": "alpha",
        }
    }


def _setup():
    """What core's setup.py defines."""
    return runpy.run_path(str(Path(__file__).resolve().parents[3] / "core/setup.py"))
