"""Where manifests are found: only in what their distribution recorded, installed in any way."""

from __future__ import annotations

import json
import os
import sys
import zipfile

import pytest
from importlib_metadata import PathDistribution
from installed_folder import ACTIVATION, MANIFEST, Site

from outcomes import refused
from turnout import plugins
from turnout.errors import DeviceError, PluginError
from turnout.plugins.distributions import named, version_of

ENTRY = "alpha = fake_alpha:plugin.toml"


def words(name="alpha"):
    return {"name": name, "distribution": f"dist-{name}", "package": f"fake_{name}", "backend": "Alpha", "top": "", "tables": ""}


def write_package(folder):
    package = folder / "fake_alpha"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "plugin.toml").write_text(MANIFEST.format(**words()))
    (package / "plugin.py").write_text(ACTIVATION.format(**words()))
    return package / "plugin.toml"


def only_record():
    [record] = plugins.all_plugins()
    return record


def test_a_stray_module_in_front_cannot_lend_its_manifest_or_its_code(site, tmp_path, monkeypatch):
    path = site.plugin("alpha")
    stray = write_package(tmp_path / "stray")
    stray.with_name("plugin.py").write_text("raise SystemExit('the stray was imported')")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "stray"), *sys.path])
    assert only_record().path == str(path)
    with pytest.raises(PluginError) as error:
        plugins.activate("alpha")
    assert str(error.value.__cause__) == (
        "the package fake_alpha that would be imported is not the one of the plugin\n"
        f"  installed  {path.parent}\n"
        f"  imported   {stray.parent}\n"
        "  to fix     remove or rename the other one; see sys.path"
    )
    assert "fake_alpha" not in sys.modules


def test_a_manifest_beside_the_metadata_that_was_not_recorded_is_not_read(site):
    write_package(site.folder)
    site.distribution("dist-alpha", files={}, entry_points=ENTRY)
    assert only_record().state == "failed"


def test_a_distribution_without_a_record_is_looked_up_beside_its_metadata(site):
    write_package(site.folder)
    site.distribution("dist-alpha", files={}, entry_points=ENTRY, record=False)
    assert only_record().path == str(site.folder / "fake_alpha/plugin.toml")


def test_an_editable_install_is_found_through_its_own_path_file(site, tmp_path, monkeypatch):
    path = write_package(tmp_path / "project/src")
    site.distribution("dist-alpha", files={"__editable__.dist_alpha.pth": f"{path.parents[1]}\n"}, entry_points=ENTRY)
    monkeypatch.setattr(sys, "path", [*sys.path, str(path.parents[1])])
    assert only_record().path == str(path)
    assert plugins.activate("alpha").state == "active"


def test_the_path_file_of_another_distribution_does_not_count(site, tmp_path):
    path = write_package(tmp_path / "project/src")
    site.distribution("dist-other", files={"other.pth": f"{path.parents[1]}\n"})
    site.distribution("dist-alpha", files={}, entry_points=ENTRY)
    assert only_record().state == "failed"


def test_an_editable_install_is_found_through_the_table_of_its_import_finder(site, tmp_path):
    path = write_package(tmp_path / "project/python")
    finder = f"raise SystemExit('it was run')\nMAPPING: dict[str, str] = {{'fake_alpha': {str(path.parent)!r}}}\n"
    files = {
        "__editable___dist_alpha_0_1_finder.py": finder,
        "__editable__.dist_alpha.pth": "import __editable___dist_alpha_0_1_finder\n",
    }
    site.distribution("dist-alpha", files=files, entry_points=ENTRY)
    assert only_record().path == str(path)


def test_an_editable_install_of_another_build_tool_is_found_by_its_project(site, tmp_path):
    path = write_package(tmp_path / "my project/src")
    direct = {"dir_info": {"editable": True}, "url": (tmp_path / "my project").as_uri()}
    site.distribution("dist-alpha", files={}, entry_points=ENTRY, extra={"direct_url.json": json.dumps(direct)})
    assert only_record().path == str(path)


def test_the_first_of_two_copies_of_a_distribution_is_the_one(site, tmp_path, monkeypatch):
    path = site.plugin("alpha")
    import shutil

    shutil.copytree(site.folder, tmp_path / "older")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "older")])
    assert only_record().path == str(path)


@pytest.fixture
def left_by_a_build(tmp_path, monkeypatch):
    """A folder of sources on sys.path, as an editable install puts it there, with what setuptools leaves beside a package."""
    folder = write_package(tmp_path / "tree/src").parents[1]
    info = folder / "dist_alpha.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: dist-alpha\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[turnout.plugins]\n{ENTRY}\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])


def test_what_a_build_left_among_the_sources_is_not_installed_in_these_tests(left_by_a_build, site):
    assert plugins.all_plugins() == []
    path = site.plugin("alpha")
    plugins.reset_discovery()
    assert only_record().path == str(path)


FOLDERS = ("dist_alpha.egg-info", "dist_alpha-0.1.egg-info", "dist_alpha-0.1-py3.11.egg-info", "dist_alpha-0.1.dist-info")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_distribution_is_found_by_its_name_however_its_records_are_called(folder, tmp_path, monkeypatch):
    records = tmp_path / folder
    records.mkdir()
    (records / ("METADATA" if folder.endswith("dist-info") else "PKG-INFO")).write_text("Name: dist-alpha\nVersion: 0.1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert next(named("Dist.Alpha")).locate_file("") == str(tmp_path)
    assert version_of("dist-alpha") == "0.1"


def test_a_version_is_looked_for_until_it_is_found(tmp_path, monkeypatch):
    for folder, version in (("first", "1"), ("second", "2")):
        records = tmp_path / folder / "dist_alpha-0.dist-info"
        records.mkdir(parents=True)
        (records / "METADATA").write_text(f"Name: dist-alpha\nVersion: {version}\n")
    listed = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda place: listed.append(place) or listdir(place))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    assert version_of("dist-alpha") == "1"
    assert listed == [str(tmp_path / "first")]


def test_half_written_metadata_of_others_is_passed_over(site):
    site.plugin("alpha")
    (site.folder / "half-1.0.dist-info").mkdir()
    (site.folder / "half-1.0.dist-info/entry_points.txt").write_text("[turnout.plugins\n")
    assert only_record().name == "alpha"


def test_an_unknown_device_names_what_is_installed_and_what_was_meant(site):
    site.plugin("alpha")
    assert refused(DeviceError, plugins.require_device, "alfa") == (
        "device 'alfa': there is no such device; did you mean 'alpha'?\n  installed  alpha"
    )


def test_an_unknown_plugin_and_functionality_are_errors(site):
    site.plugin("alpha")
    assert refused(PluginError, plugins.activate, "alfa") == (
        "the plugin alfa: no installed plugin provides it and no package is known to; did you mean alpha?\n  installed  alpha"
    )
    assert refused(PluginError, plugins.require_functionality, "Nowhere") == (
        "functionality Nowhere: no installed plugin provides it and no package is known to\n  installed  none"
    )
    assert plugins.require_namespace("nowhere") is False


def test_what_a_known_package_provides_names_the_package(site, monkeypatch):
    from turnout.plugins import providers

    row = {
        "distribution": "turnout-omega",
        "devices": ["omega"],
        "backends": ["Omega"],
        "functionalities": ["Ending"],
        "namespaces": ["endings"],
    }
    monkeypatch.setattr(providers, "data", lambda: {"omega": row})
    for ask, what in (
        (lambda: plugins.require_device("omega"), "device 'omega'"),
        (lambda: plugins.require_functionality("Ending"), "Ending"),
        (lambda: plugins.require_namespace("endings"), "the operators endings::*"),
        (lambda: plugins.activate("omega"), "the plugin omega"),
    ):
        assert refused(PluginError, ask) == f"{what}: no installed plugin provides it\n  to fix  pip install turnout-omega"
    for kind, name in (("device", "omega"), ("functionality", "Ending"), ("namespace", "endings"), ("plugin", "omega")):
        assert plugins.remedy_for(kind, name, activate=False) == "pip install turnout-omega"
    assert plugins.remedy_for("device", "nowhere", activate=False) == ""


def test_packages_installed_later_are_found_after_a_reset(site):
    assert plugins.all_plugins() == []
    site.plugin("alpha")
    assert plugins.all_plugins() == []
    plugins.reset_discovery()
    assert only_record().state == "discovered"


# ---- places that are not folders


def installed_elsewhere(folder, monkeypatch):
    """A finder of another package, which alone knows a distribution in a folder that is not on sys.path."""

    class Finder:
        def find_spec(self, *args):
            return None

        def find_distributions(self, context):
            yield from (PathDistribution(path) for path in folder.glob("*.dist-info"))

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])


def test_the_distributions_that_a_finder_of_another_package_knows_are_found(site, tmp_path, monkeypatch):
    other = tmp_path / "elsewhere"
    other.mkdir()
    Site(other).plugin("alpha")
    assert plugins.all_plugins() == []
    plugins.reset_discovery()
    installed_elsewhere(other, monkeypatch)
    site.plugin("beta")
    assert [record.name for record in plugins.all_plugins()] == ["alpha", "beta"]
    assert version_of("Dist_Alpha") == version_of("dist-beta") != ""


def put_into_zip(folder, path):
    with zipfile.ZipFile(path, "w") as file:
        for each in sorted(folder.rglob("*")):
            file.write(each, each.relative_to(folder))
    return str(path)


@pytest.mark.parametrize("first", ["folder", "zip"])
def test_of_a_folder_and_a_zip_file_with_one_distribution_the_first_on_the_path_counts(site, tmp_path, monkeypatch, first):
    (tmp_path / "zipped").mkdir()
    Site(tmp_path / "zipped").plugin("alpha")
    zipped = put_into_zip(tmp_path / "zipped", tmp_path / "zipped.zip")
    site.plugin("alpha")
    monkeypatch.setattr(sys, "path", [zipped, *sys.path] if first == "zip" else [*sys.path, zipped])
    assert (zipped in only_record().path) is (first == "zip")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_headers_end_where_the_description_begins(site, ends):
    site.plugin("alpha")
    [metadata] = site.folder.glob("*.dist-info/METADATA")
    lines = ["Metadata-Version: 2.1", "Name: dist-alpha", "Version: 7.1", "", "Version: of the text"]
    metadata.write_bytes(ends.join(lines).encode())
    assert only_record().version == "7.1"
    assert version_of("dist-alpha") == "7.1"
