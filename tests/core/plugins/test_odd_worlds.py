"""Odd worlds in which plugins may find themselves: what is said of each, and that a plugin beside them works."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest
from installed_folder import ACTIVATION, FUNCTIONALITY, LIBRARY, LIBRARY_ACTIVATION, MANIFEST, Site

import turnout
from outcomes import refused
from turnout import config, plugins
from turnout.errors import ConfigError, ManifestError, PluginError
from turnout.keys import KEYS
from turnout.plugins import providers


def odd(**words: Any) -> Callable[[Site], object]:
    """A plugin "odd" with these words of `Site.plugin`."""
    return lambda site: site.plugin("odd", **words)


def rewritten(change: Callable[[bytes], bytes], file: str = "fake_odd/plugin.toml") -> Callable[[Site], object]:
    """The plugin "odd" with a file that was changed after it was installed."""

    def build(site: Site) -> None:
        site.plugin("odd")
        path = site.folder / file
        path.write_bytes(change(path.read_bytes()))

    return build


def zipped(modules: dict[str, str] | None = None, without: str = "") -> Callable[[Site], object]:
    """The plugin "odd" in a zip file on sys.path."""

    def build(site: Site) -> None:
        inner = Site(site.folder.parent / "zipped")
        inner.plugin("odd", modules=modules)
        with ZipFile(site.folder / "odd.zip", "w") as file:
            for path in inner.folder.rglob("*"):
                if path.is_file() and path.name != without:
                    file.write(path, path.relative_to(inner.folder))
        sys.path.append(str(site.folder / "odd.zip"))

    return build


def frozen(name: str = "odd", **words: Any) -> Callable[[Site], object]:
    """The plugin without metadata, which the program names after other plugins were found."""

    def build(site: Site) -> None:
        site.plugin(name, distribution="fake-odd", **words)
        shutil.rmtree(site.folder / "fake_odd-0.1.dist-info")
        plugins.all_plugins()
        for _ in range(2):
            plugins.register("fake_odd:plugin.toml")

    return build


def options(count: int) -> Callable[[Site], object]:
    return odd(tables="".join(f'[option.x{i}]\ntype = "int"\ndefault = 1\nhelp = "x"\n' for i in range(count)))


KNOWING = '[[provides.key]]\nname = "Knowing"\nafter = "Autograd"'
SAW = '\n[provides.names]\n"fake_{}.tools" = ["saw"]\n'
KNOWN = ACTIVATION + '    library.register("functionality:Knowing")\n'
ENTRIES = "dist_odd-0.1.dist-info/entry_points.txt"
PALS = (("odd", "pal"), ("pal", "odd"))
FAILED = "failed: the manifest of dist-odd 0.1 is not accepted\n  file  {site}/fake_odd/plugin.toml\n  "
TELL = "\n  | upgrade dist-odd, or tell its authors"
NESTED = "why  tables and lists nest more than 32 deep"

# World -> how it is built, and what is said of the plugins that are not simply discovered.
# fmt: off
WORLDS: dict[str, tuple[Callable[[Site], object], str]] = {
    "manifest, large": (
        rewritten(lambda text: text + b"#" * (256 << 10)), "odd (dist-odd): " + FAILED + "why  it is larger than 256 KB" + TELL),
    "manifest, brackets": (
        odd(top="x = " + "[" * 100_000), "odd (dist-odd): " + FAILED + NESTED + " (at line 6)" + TELL),
    "manifest, a long dotted key": (
        odd(top=".".join("a" * 100_000) + " = 1"), "odd (dist-odd): " + FAILED + NESTED + " (at line 6)" + TELL),
    "manifest, a long quoted key": (
        odd(top=".".join(['"\u2028"'] * 40_000) + " = 1"), "odd (dist-odd): " + FAILED + NESTED + " (at line 6)" + TELL),
    "manifest, tables in keys": (odd(
        top="[a." + "b." * 20 + "c]\nx.y.z = " + "{a.b.c = " * 4 + "1" + "}" * 4), "odd (dist-odd): " + FAILED + NESTED + TELL),
    "manifest, 32 brackets": (odd(top="summary = " + "[" * 32 + "]" * 32), "odd (dist-odd): " + FAILED +
        "line 6  summary: expected a string, got [[...]]" + TELL),
    "manifest, brackets in texts": (odd(top='summary = """' + "[" * 99 + "." * 99 + '"""'), ""),
    "manifest, not UTF-8": (rewritten(lambda text: b"\xff" + text), "odd (dist-odd): " + FAILED +
        "why  'utf-8' codec can't decode byte 0xff in position 0: invalid start byte" + TELL),
    "manifest, 500 options": (options(500), ""),
    "manifest, too many options": (options(3000), "odd (dist-odd): " + FAILED +
        "line 1  option: 3,000 options; a manifest has at most 500" + TELL),
    "entry points, not UTF-8": (rewritten(lambda text: text + b"# \xe9\n", ENTRIES), "dist-odd (dist-odd): failed: "
        "the manifest of dist-odd 0.1 is not accepted\n  file  {site}/" + ENTRIES + "\n"
        "  why  'utf-8' codec can't decode byte 0xe9 in position 47: invalid continuation byte" + TELL),
    "taken: the name of a known plugin": (
        lambda site: site.plugin("known", distribution="newcomer"),
        ("known (newcomer): blocked: the plugin known is that of fake-known, which is installed\n"
        '  | choose it: [plugins.choose] known = "newcomer"')),
    "taken: a known device": (
        odd(manifest=MANIFEST.replace('device = "{name}"', 'device = "known"')),
        ("odd (dist-odd): blocked: the device known is that of fake-known, which is installed\n"
        '  | choose it: [plugins.choose] known = "dist-odd"')),
    "taken: a known key, and a circle through known plugins": (
        odd(manifest=FUNCTIONALITY, top='requires_plugins = ["known"]', tables=KNOWING.replace("Autograd", "Dense")),
        ("odd (dist-odd): blocked: the functionality Knowing is that of fake-known, which is installed\n"
        '  | choose it: [plugins.choose] Knowing = "dist-odd"')),
    "taken: a known public name": (odd(tables=SAW.format("odd")), ""),
    "taken: a key of core, by a backend": (odd(backend="Tracer"), "odd (dist-odd): " + FAILED +
        "provides.backend  its key Tracer is the key of others too" + TELL),
    "taken: a key of a known backend": (odd(manifest=FUNCTIONALITY, tables=KNOWING.replace("Knowing", "AutogradKnown")),
        "odd (dist-odd): " + FAILED + "provides.key  its key AutogradKnown is the key of others too" + TELL),
    "taken: the name of another": (
        lambda site: [site.plugin("new", distribution=f"{name}-new") for name in ("one", "two")],
        "\n".join(f"new ({name}-new): conflict: one-new 0.1 and two-new 0.1 have a plugin of this name\n"
                  f'  | choose one: [plugins.choose] new = "{name}-new"' for name in ("one", "two"))),
    "taken: the backend of another": (
        lambda site: [site.plugin(name, backend="Both") for name in ("one", "two")],
        "\n".join(f"{name} (dist-{name}): conflict: the backend Both is provided by one and two\n"
                  f'  | choose one: [plugins.choose] Both = "dist-{name}"' for name in ("one", "two"))),
    "zipped": (zipped(), ""),
    "zipped, with a compiled module": (zipped({"fast.so": ""}), ("odd (dist-odd): unavailable: fake_odd/fast.so is compiled, and "
        "Python imports no compiled module from a zip file ({site}/odd.zip/fake_odd/plugin.toml)\n"
        "  | install dist-odd into a folder of sys.path")),
    "zipped, without its manifest": (zipped(without="plugin.toml"), "odd (dist-odd): failed: "
        "the manifest of dist-odd 0.1 is not among its files\n  entry  odd = fake_odd:plugin.toml in the group turnout.plugins\n"
        "  looked  the files that the distribution recorded\n  to fix  ship the manifest with the package "
        "(setuptools: [tool.setuptools.package-data])" + TELL),
    "frozen": (frozen(), ""),
    "frozen, with a wrong manifest": (frozen(top="x = 1"), "odd (fake-odd): " + FAILED.replace("dist-odd 0.1", "fake-odd") +
        "line 6  x: unknown field" + TELL.replace("dist", "fake")),
    "frozen, of a known name": (frozen("known"),
        ("known (fake-odd): blocked: the plugin known is that of fake-known, which is installed\n"
        '  | choose it: [plugins.choose] known = "fake-odd"')),
    "double": (rewritten(lambda text: text + b"odd = fake_odd:plugin.toml\n", ENTRIES), "odd (dist-odd): failed: "
        "the manifest of dist-odd 0.1 is not accepted\n  file  entry_points.txt\n  turnout.plugins  odd: it is there twice"
        + TELL),
    "entry point of code": (rewritten(lambda text: text.replace(b"plugin.toml", b"Plugin"), ENTRIES), "odd (dist-odd): failed: "
        "the manifest of dist-odd 0.1 is not accepted\n  file  entry_points.txt\n"
        "  turnout.plugins  odd: expected 'package:plugin.toml', got 'fake_odd:Plugin'" + TELL),
    "manifest, not TOML": (rewritten(lambda text: text.replace(b'odd"', b"odd", 1)), "odd (dist-odd): " + FAILED +
        "why  Illegal character '\\n' (at line 1, column 12)" + TELL),
    "API, newer minor": (rewritten(lambda text: text.replace(b"1.0", b"1.1") + b"\nnew = 1"), ("odd (dist-odd): incompatible: "
        "it was built for plugin-API 1.1; this turnout-core has 1.0\n  | upgrade dist-odd and turnout-core")),
    "API, older major": (rewritten(lambda text: text.replace(b"1.0", b"0.9")), ("odd (dist-odd): incompatible: "
        "it was built for plugin-API 0.9; this turnout-core has 1.0\n  | upgrade dist-odd and turnout-core")),
    "requires what is not there": (odd(top='requires_plugins = ["gone"]'), ("odd (dist-odd): blocked: "
        "it requires the plugin gone, which is not installed\n  | install the package that has the plugin gone")),
    "requires each other": (
        lambda site: [site.plugin(name, top=f'requires_plugins = ["{other}"]') for name, other in PALS],
        "\n".join(f"{name} (dist-{name}): failed: plugins require each other: {name} -> {other} -> {name}\n  | tell their authors"
                  for name, other in PALS)),
}
# fmt: on


def said(site: Site) -> str:
    """The plugins of which there is something to say."""
    lines = []
    for record in plugins.all_plugins():
        if record.reason:
            text = f"{record.name} ({record.distribution}): {record.state}: {record.reason}\n  | {record.remedy}"
            lines.append(re.sub(r"(?<=\S)  +", "  ", text.replace(str(site.folder), "{site}")))
    return "\n".join(lines)


@pytest.fixture
def known(site, monkeypatch):
    """The plugin "known" of a distribution that core's data file names, and one of operators."""
    row = {"distribution": "fake-known", "devices": ["known"], "backends": ["Known"], "functionalities": ["Knowing"]}
    row |= {"namespaces": [], "public": ["saw"], "lowest_device": ""}
    monkeypatch.setattr(providers, "data", lambda: {"known": row})
    words = {"tables": KNOWING + SAW.format("known"), "activation": KNOWN, "modules": {"tools.py": "saw = 'known'"}}
    site.plugin("known", distribution="fake-known", **words)
    site.plugin("words", manifest=LIBRARY, activation=LIBRARY_ACTIVATION)
    return site


@pytest.mark.parametrize("world", WORLDS)
def test_each_world_is_told_and_plugins_beside_it_work(known, world):
    build, expected = WORLDS[world]
    build(known)
    assert said(known) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plugins.require_device("known")
        plugins.require_functionality("Knowing")
        assert plugins.require_namespace("words")
        assert turnout.saw == "known"
        if not expected:
            plugins.require_device("odd")
    names = [row.name for row in KEYS.functionalities]
    assert names.index("Knowing") == names.index("Autograd") + 1
    active = [r.name for r in plugins.all_plugins() if r.state == "active"]
    assert active == ["known", *(["odd"] if not expected else []), "words"]


def test_a_choice_gives_a_device_to_one_distribution_and_disables_the_others(known):
    WORLDS["taken: a known device"][0](known)
    config.set({"plugins.choose.known": "dist-odd"})
    assert said(known) == (
        "known (fake-known): disabled: plugins.choose.known is 'dist-odd' (turnout.config.set)\n"
        "  | set plugins.choose.known to 'fake-known'"
    )
    text = "the configuration is not accepted; the one before it stays in force\n  turnout.config.set  "
    text += "plugins.choose.known: expected a distribution that provides it (fake-known, dist-odd), got 'dist-words'"
    assert refused(ConfigError, config.set, {"plugins.choose.known": "dist-words"}) == text


DEFINES = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.define("both::f(Tensor x) -> Tensor")
"""


@pytest.mark.parametrize("first", ["one", "two"])
def test_an_operator_that_two_define_is_a_conflict_whichever_is_activated_first(registering, first):
    for name in ("one", "two"):
        registering.plugin(name, manifest=LIBRARY.replace('["{name}"]', '["both"]'), activation=DEFINES)
    assert plugins.activate(first).state == "active"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused(PluginError, plugins.require_namespace, "both")
    why = "conflict: the operator both::f is defined by one and two\n  | name one of them in plugins.disable"
    assert said(registering) == f"one (dist-one): {why}\ntwo (dist-two): {why}"
    config.set({"plugins.disable": ["two"]})
    assert plugins.require_namespace("both")
    assert [r.state for r in plugins.all_plugins()] == ["active", "disabled"]


def upgraded(site: Site) -> None:
    """ "odd" 0.1 is active, and 0.2 is installed in its place, with a device of another name."""
    path = site.plugin("odd")
    plugins.activate("odd")
    for file in (path, path.with_name("plugin.py")):
        file.write_text(file.read_text().replace("Odd", "Later").replace('device = "odd"', 'device = "later"'))
    (site.folder / "dist_odd-0.1.dist-info").rename(site.folder / "dist_odd-0.2.dist-info")
    for name in ("METADATA", "RECORD"):
        file = site.folder / "dist_odd-0.2.dist-info" / name
        file.write_text(file.read_text().replace("0.1", "0.2"))
    plugins.reset_discovery()


def uninstalled(site: Site) -> None:
    upgraded(site)
    shutil.rmtree(site.folder / "dist_odd-0.2.dist-info")
    plugins.reset_discovery()


def extended(site: Site) -> None:
    """What is active has a compiled module."""
    site.plugin("odd")
    plugins.activate("odd")
    sys.modules["fake_odd.fast"] = module = ModuleType("fake_odd.fast")
    module.__loader__ = ExtensionFileLoader("fake_odd.fast", "fast.so")


REFUSED = "the plugin odd cannot be loaded again in this process\n  why  {}\n  to fix  restart"
# World -> how it comes about, what is said of it, and what reloading says or leaves to be said.
LIVES = {
    "upgraded": (upgraded, 'odd (dist-odd 0.1): active, 0.2 is installed | restart, or turnout.plugins.reload("odd")', ""),
    "uninstalled": (
        uninstalled,
        "odd (dist-odd 0.1): active, it is not installed any more | restart",
        "the plugin odd: no installed plugin provides it and no package is known to\n  installed  known, words",
    ),
    "compiled": (extended, "", REFUSED.format("fake_odd.fast is compiled, and a process loads a compiled module once")),
    "required": (
        lambda site: [
            upgraded(site),
            site.plugin("user", top='requires_plugins = ["odd"]'),
            plugins.reset_discovery(),
            plugins.activate("user"),
        ],
        'odd (dist-odd 0.1): active, 0.2 is installed | restart, or turnout.plugins.reload("odd")',
        (
            "the plugin odd cannot be deactivated while others that need it are active\n  needed by  user\n"
            "  to fix  turnout.plugins.deactivate('odd', with_dependents=True)"
        ),
    ),
}


@pytest.mark.parametrize("world", LIVES)
def test_what_runs_is_named_and_used_until_it_is_loaded_again(known, world):
    build, expected, reloaded = LIVES[world]
    build(known)
    assert "\n".join(f"{r.line()} | {r.remedy}" for r in plugins.all_plugins() if r.reason) == expected
    module = sys.modules["fake_odd.plugin"]
    plugins.require_device("odd")
    try:
        text = ""
        assert plugins.reload("odd").state == "active"
    except PluginError as error:
        text = re.sub(r"(?<=\S)  +", "  ", str(error))
    assert text == reloaded
    if not text:
        assert said(known) == ""
        assert sys.modules["fake_odd.plugin"] is not module
        assert "device:later" in next(r.provides for r in plugins.all_plugins() if r.name == "odd")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("nothing", "nothing\n  turnout.plugins  expected 'package:plugin.toml'"),
        ("turnout:away.toml", f"turnout:away.toml\n  why   there is no file {turnout.__path__[0]}/away.toml"),
        ("no_such:plugin.toml", "no_such:plugin.toml\n  why   there is no package no_such with files"),
    ],
)
def test_what_cannot_be_registered_is_told(value, why):
    said = refused(ManifestError, plugins.register, value)
    assert " ".join(said.split()) == " ".join(f"the manifest of a plugin to register is not accepted\n  file {why}".split())
