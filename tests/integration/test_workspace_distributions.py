"""What the distributions promise each other: versions, dependencies, licence, pins."""

from __future__ import annotations

import configparser
import re
import runpy
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from pages import tracked
from workspace import ROOT, Distribution, distributions, modules, read, required_name

import turnout
from turnout_cli.new_plugin import KINDS

EVERY = distributions()
WORKSPACE = read(ROOT)
NAMES = {one.name for one in EVERY}

# Between plugins only where declared here. All but core need the tensors and operators of turnout-aten.
TENSORS = {"turnout-aten", "turnout-core"}
ARROWS = {
    "turnout-core": set(),
    "turnout-aten": {"turnout-core"},
    "turnout-array-api": TENSORS,
    "turnout-arrays": TENSORS,
    "turnout-autocast": TENSORS,
    "turnout-autograd": TENSORS,
    "turnout-batched": TENSORS,
    "turnout-cli": {*TENSORS, "turnout-autocast", "turnout-autograd", "turnout-cpu", "turnout-nn"},
    "turnout-conformance": {
        *TENSORS,
        "turnout-autocast",
        "turnout-autograd",
        "turnout-batched",
        "turnout-cpu",
        "turnout-meta",
        "turnout-tracer",
    },
    "turnout-cpu": {*TENSORS, "turnout-arrays"},
    "turnout-cuda": {*TENSORS, "turnout-arrays", "turnout-cpu"},
    "turnout-dask": {*TENSORS, "turnout-arrays", "turnout-cpu"},
    "turnout-export": {*TENSORS, "turnout-tracer"},
    "turnout-functionalize": {*TENSORS, "turnout-meta"},
    "turnout-jax": {*TENSORS, "turnout-arrays", "turnout-cpu"},
    "turnout-kernels": {*TENSORS, "turnout-arrays", "turnout-cpu"},
    "turnout-masked": TENSORS,
    "turnout-meta": TENSORS,
    "turnout-nn": {*TENSORS, "turnout-autograd"},
    "turnout-opcheck": TENSORS,
    "turnout-opencl": {*TENSORS, "turnout-arrays", "turnout-cpu"},
    "turnout-signal": TENSORS,
    "turnout-speed": TENSORS,
    "turnout-stubs": {"turnout-core"},
    "turnout-tracer": TENSORS,
}

# A distribution -> the module that it is imported by, where that is not its name.
MODULES = {"cupy-cuda12x": "cupy", "cupy-cuda13x": "cupy", "pyyaml": "yaml"}

# Plugins that a distribution depends on and its plugin does not require: they are activated by what asks for them.
ASKED_FOR = {
    ("turnout-cuda", "cpu"), ("turnout-opencl", "cpu"),  # the device that `fallback = "host"` runs on
    ("turnout-speed", "aten"),  # what is replaced is there before the replacement is asked for
    ("turnout-export", "tracer"),  # which every function of it asks for
    ("turnout-kernels", "cpu"),  # whose activation activates what adds kernels to it
}  # fmt: skip

each = pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)


def inside(one: Distribution) -> set[str]:
    return {name for name in map(required_name, one.requirements()) if name.startswith("turnout")}


COMMON = configparser.ConfigParser()
COMMON.read(ROOT / "setup.cfg", "utf-8")


@pytest.mark.parametrize("one", [WORKSPACE, *EVERY], ids=lambda one: one.name)
def test_each_distribution_can_be_published(one: Distribution):
    """What they share stands in one file; a version stands nowhere else, but in the pins of turnout-speed."""
    assert one.project["dynamic"] == ["version", "classifiers", "urls"]
    assert (one.folder / "setup.cfg").resolve() == ROOT / "setup.cfg"
    assert (one.folder / "LICENSE").resolve() == ROOT / "LICENSE"
    fields = {"readme": "README.md", "license": "Apache-2.0", "license-files": ["LICENSE"], "requires-python": ">=3.11"}
    assert fields.items() <= one.project.items()
    assert one.project["description"]
    if one != WORKSPACE:
        assert not [path for path in one.source.rglob("*.py") if "\n__version__ = " in path.read_text("utf-8")]


def found(file: str | Path, pattern: str) -> list[str]:
    return re.findall(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_files_of_the_build_name_the_pythons_of_the_classifiers():
    pythons = found("setup.cfg", r"^    Programming Language :: Python :: (3\.\d+)$")
    assert len(pythons) > 3
    assert [f"cp{each.replace('.', '')}-*" for each in pythons] == found(".ci/cibuildwheel.toml", r'^build = "(.*)"')[0].split()
    assert found("docs/release.md", r'PYTHONS="(.*?)"') == [" ".join(f"python{each}" for each in pythons)]
    for page, pattern in (("README.md", "Python {} to {}"), ("docs/compatibility.md", "All tests run on {} to {}")):
        assert found(page, pattern.format(r"(3\.\d+)", r"(3\.\d+)\.")) == [(pythons[0], pythons[-1])]


def test_files_of_the_build_name_the_lowest_python():
    lowest = found("setup.cfg", r"^    Programming Language :: Python :: (3\.\d+)$")[0]
    minor = int(lowest.removeprefix("3."))
    assert WORKSPACE.project["requires-python"] == f">={lowest}"
    assert found("pyproject.toml", r'^python_version = "(.*)"|^target-version = "(.*)"') == [(lowest, ""), ("", f"py3{minor}")]
    assert found("plugins/kernels/setup.py", r'"(0x[0-9a-f]+)"|"(cp\d+)"') == [(f"0x03{minor:02x}0000", ""), ("", f"cp3{minor}")]
    assert set(found(".github/workflows/publish.yml", r'python-version: "(.*)"')) == {lowest}
    assert found("Makefile", rf"\(3, {minor}\)|needs Python {re.escape(lowest)} ") == [f"(3, {minor})", f"needs Python {lowest} "]
    templates = "tools/cli/src/turnout_cli/templates/shared"
    projects = [f"{templates}/pyproject.toml.template", *ROOT.glob("examples/*/pyproject.toml")]
    workflows = [f"{templates}/dot-github/workflows/test.yml.template", *ROOT.glob("examples/*/.github/workflows/*.yml")]
    assert [found(file, r'^requires-python = ">=(.*)"') for file in projects] == [[lowest]] * len(projects)
    assert [found(file, r'python-version: "(.*)"') for file in workflows] == [[lowest]] * len(workflows)


def test_all_workflows_use_the_same_versions_of_an_action():
    """Also those that pages show and `turnout new-plugin` writes."""
    files = [file for file in tracked((".github", "docs", "examples", "tools")) if file.endswith((".md", ".yml", ".template"))]
    used = [each for file in files for each in found(file, r"^ *- uses: ([\w./-]+)@(\S+)")]
    assert len(used) > 12
    assert len(set(used)) == len({action for action, _ in used}), sorted(set(used))


def test_all_that_need_numpy_need_the_same():
    files = ["tools/cli/src/turnout_cli/new_plugin.py", *ROOT.glob("*/*/pyproject.toml")]
    named = [each for file in files for each in found(file, r'"numpy>=(.*?)"')]
    assert len(named) > 15
    for page in ("docs/compatibility.md", "docs/plugin-api.md"):
        named += found(page, r"\b(2\.\d+) or later")
    assert set(named) == {named[0]}


def test_pages_name_the_lowest_python():
    lowest = WORKSPACE.project["requires-python"].removeprefix(">=")
    pages = [path.relative_to(ROOT).as_posix() for pattern in ("*.md", "docs/*.md") for path in sorted(ROOT.glob(pattern))]
    said = {page: versions for page in pages if (versions := found(page, r"\b(3\.\d+) or later"))}
    assert said.keys() > {"CONTRIBUTING.md", "README.md", "docs/install.md", "docs/plugin-api.md"}
    assert said == {page: [lowest] for page in said}


def test_builds_look_for_manifests_in_all_folders_of_distributions():
    folders = {one.folder.parent.name for one in EVERY if one.folder.parent != ROOT}
    for build in ("core/setup.py", "tools/stubs/setup.py"):
        [places] = found(build, r"^PLACES = \((.*)\)")
        assert {*re.findall(r'"(.*?)"', places)} == folders
    [local] = found("Makefile", r"^LOCAL  := .*(\$\(wildcard .*)")
    assert {*re.findall(r"(\w+)/\*/pyproject", local)} == folders


def test_what_publishes_builds_the_distributions_with_extension_modules():
    compiled = {path.parent.name for path in ROOT.glob("*/*/setup.py") if "ext_modules=" in path.read_text("utf-8")}
    (listed,) = found(".github/workflows/publish.yml", r"^        package: \[(.*)\]")
    native = runpy.run_path(str(ROOT / ".ci" / "packages.py"))["NATIVE"]
    assert {*listed.split(", ")} == {name.removeprefix("turnout_") for name in native} == compiled


def test_files_of_the_build_name_one_c_library_and_the_same_processors():
    build = runpy.run_path(str(ROOT / ".ci" / "packages.py"))
    glibc = "{}.{}".format(*build["GLIBC"])
    images = dict(found(".ci/cibuildwheel.toml", r'^manylinux-(\w+)-image = "(.*)"'))
    named = {"manylinux2014": "manylinux_2_17"}  # an earlier name of the standard, which the images of this one still have
    assert images.keys() == {*build["MACHINES"]}
    assert {named.get(image, image) for image in images.values()} == {f"manylinux_{glibc.replace('.', '_')}"}
    assert found(".ci/cibuildwheel.toml", r'linux]\narchs = \["(.*)"\]') == ['", "'.join(build["MACHINES"])]
    assert found("docs/release.md", r"\bglibc (\d+\.\d+)") == [glibc]


def test_what_publishes_sets_up_what_the_makefile_does():
    installed = found(".github/workflows/publish.yml", r"pip install (-c constraints.txt pip .*)$")
    assert installed == found("Makefile", r"\$\(PIP\) install -q (-c constraints.txt pip .*)$")


def test_core_says_the_version_that_all_have_and_that_turnout_speed_is_pinned_to():
    assert turnout.__version__ == COMMON["metadata"]["version"]
    speed = next(one for one in EVERY if one.name == "turnout-speed")  # which reads what these two do not promise to keep
    assert {f"{name}=={turnout.__version__}" for name in TENSORS} <= set(speed.project["dependencies"])


def test_the_root_distribution_has_no_code_and_names_only_known_distributions():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert settings == {"packages": [], "py-modules": []}
    assert inside(WORKSPACE) <= NAMES


def test_in_a_clone_the_root_requires_folders_for_all_that_its_requirements_need():
    from_folders = runpy.run_path(str(ROOT / "setup.py"))["from_folders"]
    assert from_folders(["turnout-core>=0.1", "elsewhere"]) == [f"turnout-core @ {(ROOT / 'core').as_uri()}"]
    required = dict(text.split(" @ ") for text in from_folders(["turnout-cli[demo]>=0.1"]))
    assert required.pop("turnout-cli[demo]") == (ROOT / "tools" / "cli").as_uri()
    assert required.keys() == ARROWS["turnout-cli"] | ARROWS["turnout-cpu"]


def test_the_extra_all_names_every_plugin_and_tool():
    # What the others depend on, and what only authors of plugins need: pytest loads it in every run.
    libraries = {"turnout-core", "turnout-arrays", "turnout-conformance"}
    extras = WORKSPACE.project["optional-dependencies"]
    assert {required_name(text) for text in extras["all"]} == NAMES - libraries
    # What else an extra of their own installs, `all` leaves out; the comment above it says why.
    assert [text for text in extras["all"] if [text] not in extras.values()] == [
        "turnout-dask>=0.1", "turnout-jax>=0.1", "turnout-opcheck>=0.1",
    ]  # fmt: skip


def test_dependencies_are_the_declared_arrows():
    assert {one.name: inside(one) for one in EVERY} == ARROWS


def test_core_depends_on_pluggy_and_importlib_metadata_only():
    core = next(one for one in EVERY if one.name == "turnout-core")
    assert {required_name(text) for text in core.project["dependencies"]} == {"importlib-metadata", "pluggy"}


@each
def test_code_imports_only_distributions_it_depends_on(one: Distribution):
    allowed = {name.replace("-", "_") for name in inside(one)} | {one.module, "turnout"}
    found = {(module, name.partition(".")[0]) for module, read in modules(one.source).items() for _, name in read.imports}
    assert [(module, top) for module, top in found if top.startswith("turnout") and top not in allowed] == []


@each
def test_each_distribution_has_the_name_of_its_folder_and_ships_a_readme_and_the_manifest_of_its_plugin(one: Distribution):
    assert one.folder.name == one.name.removeprefix("turnout-")
    for path in (
        one.source / ("__init__.pyi" if one.is_stubs else "__init__.py"),
        one.source / "py.typed",
        one.folder / "README.md",
    ):
        assert path.exists()
    plugins = one.project.get("entry-points", {}).get("turnout.plugins", {})
    assert bool(plugins) == bool(manifest(one))
    for name, value in plugins.items():
        assert (one.name, value) == (f"turnout-{name.replace('_', '-')}", f"{one.module}:plugin.toml")
        assert manifest(one)["distribution"] == one.name
        assert "version" not in manifest(one)  # each thing is said once


def manifest(one: Distribution) -> dict[str, Any]:
    """The manifest of a distribution with a plugin, else {}."""
    path = one.source / "plugin.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


PLUGINS = {one.name: manifest(one)["name"] for one in EVERY if manifest(one)}


def module_of(requirement: str) -> str:
    name = required_name(requirement)
    return MODULES.get(name, name.replace("-", "_"))


@each
def test_a_plugin_needs_the_modules_that_its_distribution_depends_on(one: Distribution):
    """What only an extra installs may be needed too: the package alone cannot know which (CUDA 12 or 13)."""
    if not manifest(one):
        return
    needs = {need["module"] for need in manifest(one).get("needs", [])}
    always = [text for text in one.project["dependencies"] if required_name(text) not in {"turnout-core", *PLUGINS}]
    extras = {module_of(text) for texts in one.project.get("optional-dependencies", {}).values() for text in texts}
    assert {module_of(text) for text in always} <= needs
    assert needs - {module_of(text) for text in always} <= extras


@each
def test_a_plugin_requires_the_plugins_that_its_distribution_depends_on(one: Distribution):
    if not manifest(one):
        return
    depends = {PLUGINS[name] for name in map(required_name, one.project["dependencies"]) if name in PLUGINS}
    later = {plugin for name, plugin in ASKED_FOR if name == one.name}
    assert set(manifest(one).get("requires_plugins", [])) == depends - later
    assert later <= depends


def test_remedies_that_install_a_package_of_ours_come_from_core_which_knows_whether_a_clone_has_it():
    wrong = re.compile(r"pip install .*turnout[-\[].*")
    files = [path for one in EVERY for path in sorted(one.source.rglob("*.py"))]
    assert [found for path in files for found in wrong.findall(path.read_text("utf-8"))] == []
    needs = [need for one in EVERY for need in manifest(one).get("needs", [])]  # core writes the command for a module of ours
    assert [need for need in needs if wrong.match(need["install"]) and not need["module"].startswith("turnout_")] == []


def pins() -> Iterator[tuple[str, str]]:
    """Each line of constraints.txt that pins something, with the heading above it."""
    heading = ""
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        heading = line[2:] if line.startswith("# ") else heading
        if line and not line.startswith("#"):
            yield line, heading


def test_every_requirement_is_pinned():
    pinned: dict[str, list[str]] = {}
    for line, _ in pins():
        pin, _, marker = line.partition("; python_version ")
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9.]+(?:b[0-9]+|\.post[0-9]+)?", pin), line
        pinned.setdefault(required_name(pin), []).append(marker)
    for name, markers in pinned.items():
        parted = [marker.removeprefix(sign) for marker, sign in zip(markers, ("< ", ">= "), strict=False)]
        assert markers == [""] or (len(markers) == 2 and parted == ['"3.15"'] * 2), name
    asked = {required_name(text) for one in EVERY for text in one.requirements()}
    lines = " ".join(found("Makefile", r"^TOOLS +:= (.*)$") + found("Makefile", r"install -q .*-c constraints\.txt (.*)$"))
    tools = {required_name(word.strip('"')) for word in lines.split() if re.match(r'"?[A-Za-z][^=]+$', word)}
    assert len(tools) > 20
    assert (asked | tools) - NAMES <= pinned.keys()


def test_a_pin_is_a_version_that_is_asked_for_and_stands_below_what_asks():
    """Headings such as `turnout-dask[distributed,zarr]`, and those of what several distributions or tools need."""
    asked = [(one.name, "", text) for one in EVERY for text in (*one.project.get("dependencies", ()), *build_of(one))]
    asked += [
        (one.name, extra, t) for one in EVERY for extra, ts in one.project.get("optional-dependencies", {}).items() for t in ts
    ]
    wanted = [(name, extra, Requirement(text)) for name, extra, text in asked if required_name(text) not in NAMES]
    compared = 0
    for line, heading in pins():
        pin = Requirement(line)
        (version,) = (each.version for each in pin.specifier)
        of_pin = [(name, extra, each) for name, extra, each in wanted if required_name(each.name) == required_name(pin.name)]
        compared += len(of_pin)
        assert [str(each) for _, _, each in of_pin if version not in each.specifier] == [], line
        above = {name: {"", *extras.split(",")} for name, extras in re.findall(r"(turnout-\w+)\[([\w,]+)\]", heading)}
        assert not of_pin or not above or any(extra in above.get(name, ()) for name, extra, _ in of_pin), line
    assert compared > len(EVERY)


def build_of(one: Distribution) -> list[str]:
    """What building a distribution requires."""
    required: list[str] = tomllib.loads((one.folder / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    return required


def test_all_ask_for_the_same_versions_of_what_is_not_ours():
    """Of setuptools, the examples ask for less: they have no licence expression."""
    versions: dict[str, set[str]] = {}
    for kind in KINDS.values():  # what a new plugin asks for
        for text in (*kind.dependencies, *kind.test_dependencies):
            if required_name(text) not in NAMES and ">" in text:
                versions.setdefault(required_name(text), set()).add(re.sub(r"^[\w.-]+", "", text))
    assert versions.keys() == {"ml-dtypes", "numpy", "pytest"}
    for path in sorted(
        path for folder in (".", "core", "plugins/*", "tools/*", "examples/*") for path in ROOT.glob(f"{folder}/pyproject.toml")
    ):
        build = tomllib.loads(path.read_text("utf-8"))["build-system"]["requires"]
        for text in (*build, *read(path.parent).requirements()):
            if required_name(text) not in {*NAMES, "setuptools"}:
                versions.setdefault(required_name(text), set()).add(re.sub(r"^[\w.-]+(?:\[.*?\])?", "", text))
    assert len(versions) > 10
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_a_new_plugin_is_built_by_what_builds_those_here_and_runs_on_their_pythons():
    template = (ROOT / "tools/cli/src/turnout_cli/templates/shared/pyproject.toml.template").read_text("utf-8")
    aten = (ROOT / "plugins/cpu/pyproject.toml").read_text("utf-8")
    for pattern in (r"^requires = (.*)$", r"^requires-python = (.*)$"):
        (said,), (wanted,) = (re.findall(pattern, text, re.MULTILINE) for text in (template, aten))
        assert said == wanted


# Extras that `make setup` does not install -> why.
NOT_SET_UP = {
    "plugins/cuda": ("cuda12x cuda13x cudnn", "they are for a GPU"),
    "plugins/jax": ("cpu", "JAX is large; its tests are skipped without it"),
    "plugins/opcheck": ("pytest", "it is among the tools"),
}


def test_the_makefile_installs_each_extra_but_those_with_a_reason():
    extras = {
        (one.folder.relative_to(ROOT).as_posix(), name) for one in EVERY for name in one.project.get("optional-dependencies", {})
    }
    left_out = {(folder, name) for folder, (names, _) in NOT_SET_UP.items() for name in names.split()}
    assert left_out < extras
    lines = found("Makefile", r"^(EXTRAS|INDEX)_(\S+) := \[(.*)\]$")
    named = {(table, folder, name) for table, folder, names in lines for name in names.split(",")}
    set_up, for_wheels = ({each[1:] for each in named if each[0] == table} for table in ("EXTRAS", "INDEX"))
    assert set_up == extras - left_out
    assert for_wheels < set_up


# What a set-up and `make codegen` make of sources -> the sources.
BUILT_FROM = {
    "install": (
        "pyproject.toml",
        *(f":(glob)**/{name}" for name in ("src/*/plugin.toml", "setup.py", "src/**/*.c", "src/**/*.h")),
    ),
    "generated": ("core/src/*.py", "plugins/*/src/*.py", "plugins/*/src/*.yaml", "tools/*/src/*.py"),
}


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
@pytest.mark.parametrize(("stamp", "sources"), BUILT_FROM.items())
def test_what_a_build_reads_asks_for_another_one_and_what_it_makes_does_not(stamp, sources):
    # Make's exit status is 1 where something is to be made, that of git check-ignore where git ignores none of the files.
    run = subprocess.run(["make", "-pnq", "setup"], cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.search(rf"^\.venv/\.stamp-{stamp}: ([^|\n]*)", run.stdout, re.MULTILINE)
    assert found, run.stderr
    files = [name for name in found[1].split() if not name.startswith(".venv/")]
    ignored = subprocess.run(["git", "check-ignore", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ignored.returncode, ignored.stdout) == (1, ""), ignored.stderr
    read = subprocess.run(
        ["git", "ls-files", *sources, ":!tests", ":!examples"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(read) > 20
    asking = {(ROOT / name).resolve() for name in files}  # some headers are links to those of another distribution
    assert [name for name in read if (ROOT / name).exists() and (ROOT / name).resolve() not in asking] == []


def test_mypy_reads_every_distribution_with_code():
    examples = [read(path.parent) for path in sorted(ROOT.glob("examples/*/pyproject.toml"))]
    code = [*(one for one in EVERY if not one.is_stubs), *examples]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    assert set(settings["packages"]) == {one.module for one in code}
    paths = {f"$MYPY_CONFIG_FILE_DIR/{one.folder.relative_to(ROOT)}/src" for one in code}
    assert set(settings["mypy_path"]) == paths


MANIFESTS = sorted(ROOT.glob("*/*/src/*/plugin.toml"))


def test_every_option_that_is_a_number_has_bounds_below_and_above() -> None:
    numbers = []
    for path in MANIFESTS:
        for name, option in tomllib.loads(path.read_text()).get("option", {}).items():
            if option["type"] in ("int", "float"):
                numbers.append(f"{path.parent.name}: {name}")
                assert option["min"] <= option["default"] <= option["max"], numbers[-1]
    assert {"turnout_cpu: threads", "turnout_dask: timeout", "turnout_profiler: rows"} <= set(numbers)
