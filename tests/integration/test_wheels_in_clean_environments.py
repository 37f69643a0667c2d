"""Each wheel, installed from files alone into an environment that holds nothing else.

`make wheels` builds dist/ and downloads .venv/wheelhouse; these tests install from the two with no index.
"""

from __future__ import annotations

import email
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace

import pytest
from pages import Reader, blocks, shell_commands, tracked
from workspace import ROOT, Distribution, distributions

import turnout

pytestmark = pytest.mark.wheels

DIST = ROOT / "dist"
WHEELHOUSE = ROOT / ".venv" / "wheelhouse"

EVERYTHING = ("turnout[all,demo]", "turnout-autograd[svg]")

# Nothing of the caller's environment: no pip configuration, no PYTHONPATH.
BARE = {"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "HOME": os.devnull}

# Extension modules; the tree has those of the interpreter that it was set up with.
COMPILED = tuple(EXTENSION_SUFFIXES)


PLACES = ["--no-index", "--find-links", str(DIST), "--find-links", str(WHEELHOUSE)]


class Environment:
    """A virtual environment with the given requirements in it, and a way to run programs there."""

    def __init__(self, folder: Path, requirements: list[str]) -> None:
        self.folder = folder
        self.bin = folder / "env" / "bin"
        if self.bin.exists():
            return
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True, env=BARE)
        # Compiling all of NumPy takes longer than the rest, and few of its modules are imported.
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "-q", "--no-compile", *PLACES]
        run = subprocess.run([*pip, *requirements], env=BARE, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment; what it wrote to stderr is in the report when it fails."""
        command = (str(self.bin / command[0]), *command[1:])
        return subprocess.run(command, cwd=self.folder, env=BARE, capture_output=True, text=True)

    def python(self, program: str) -> str:
        """Run a program, which must succeed and warn about nothing, and return what it printed."""
        run = self.run("python", "-W", "error", "-c", program)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def error(self, program: str) -> str:
        """Run a program, which must end in an error of turnout, and return the error's text."""
        report = f"""
import turnout
try:
    {program}
except turnout.TurnoutError as error:
    print(error)
else:
    raise SystemExit("no error")
"""
        return self.python(report)


@pytest.fixture(scope="session")
def environment(once: Callable[..., Path]) -> Callable[..., Environment]:
    """Make the environment with these requirements, once for all workers."""

    def make(*requirements: str) -> Environment:
        name = re.sub(r"\W+", "-", "-".join(["clean", *requirements]))
        return Environment(once(name, lambda folder: Environment(folder, list(requirements))), [])

    return make


def installed(one: Environment) -> set[str]:
    program = "from importlib.metadata import distributions as d; print(*{x.name.lower() for x in d()})"
    return set(one.python(program).split())


def wheel_of(name: str) -> Path:
    """The wheel of a distribution for the running interpreter: a release has others beside it."""
    here = f"-cp311-abi3-*{platform.machine()}", f"-cp3{sys.version_info.minor}-*{platform.machine()}", "-py3-none-any"
    (found,) = {path for end in here for path in DIST.glob(f"{name.replace('-', '_')}-[0-9]*{end}.whl")}
    return found


@pytest.mark.parametrize("one", distributions(), ids=lambda one: one.name)
def test_the_sdist_holds_what_git_tracks_and_what_the_build_makes(one: Distribution):
    def files(*options: str) -> set[str]:
        done = subprocess.run(["git", "ls-files", *options], cwd=one.folder, capture_output=True, text=True, check=True)
        return set(done.stdout.splitlines())

    (path,) = DIST.glob(f"{one.name.replace('-', '_')}-*.tar.gz")
    with tarfile.open(path) as archive:
        held = {member.name.partition("/")[2] for member in archive if member.isfile()}
    held = {file for file in held if ".egg-info/" not in file} - {"PKG-INFO"}
    assert held >= files("--cached", "--others", "--exclude-standard")
    made = held - files("--cached", "--others", "--exclude-standard")
    assert made <= files("--others", "--ignored", "--exclude-standard")
    assert not [file for file in made if file.endswith((".pyc", *COMPILED))]


@pytest.mark.parametrize("name", ["turnout", *(one.name for one in distributions())])
def test_the_metadata_of_a_wheel_is_what_an_index_shows(name: str):
    with zipfile.ZipFile(wheel_of(name)) as archive:
        (file,) = (file for file in archive.namelist() if file.endswith(".dist-info/METADATA"))
        fields = email.message_from_bytes(archive.read(file))
    said = [fields["License-Expression"], fields["License-File"], fields["Description-Content-Type"], fields["Requires-Python"]]
    assert said == ["Apache-2.0", "LICENSE", "text/markdown", ">=3.11"]
    assert fields["Version"] == turnout.__version__
    assert "Typing :: Typed" in fields.get_all("Classifier", [])
    assert not [text for text in fields.get_all("Requires-Dist", []) if "@" in text]  # folders of a clone


@pytest.mark.parametrize("one", distributions(), ids=lambda one: one.name)
def test_the_wheel_holds_the_package_as_it_is_in_the_tree(one: Distribution):
    wheel = wheel_of(one.name)
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    package = {name: data for name, data in held.items() if name.startswith(one.module + "/") and not name.endswith(COMPILED)}
    tree = {
        path.relative_to(one.source.parent).as_posix(): path.read_bytes()
        for path in one.source.rglob("*")
        if path.is_file() and not {"__pycache__", "native"} & {*path.parts} and not path.name.endswith((".c", *COMPILED))
    }
    assert package == tree
    rest = {name.partition("/")[0] for name in held.keys() - package.keys() if not name.endswith(COMPILED)}
    assert rest == {"-".join(wheel.name.split("-")[:2]) + ".dist-info"}
    (licence,) = (data for name, data in held.items() if name.endswith("LICENSE"))
    assert licence == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("one", distributions(), ids=lambda one: one.name)
def test_each_distribution_installs_alone_and_imports(one: Distribution, environment):
    alone = environment(one.name)
    # A package of stubs has no module to import; the import system still finds its folder.
    locate = f"from importlib.util import find_spec as f; print(*f({one.module!r}).submodule_search_locations)"
    program = locate if one.is_stubs else f"import {one.module}; print({one.module}.__file__)"
    assert alone.folder in Path(alone.python(program).strip()).parents
    assert (
        "no broken requirements"
        in subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(alone.bin / "python"), "check"],
            env=BARE,
            capture_output=True,
            text=True,
        ).stdout.lower()
    )


def test_core_alone_has_no_numpy_and_dispatches_plain_functions(environment):
    core = environment("turnout-core")
    assert "numpy" not in installed(core)
    assert not any(name.startswith("turnout-") and name != "turnout-core" for name in installed(core))
    program = """
import turnout
from turnout.library import Library
library = Library("clean", "DEF")
library.define("twice(int n) -> int")
library.impl("twice", lambda n: 2 * n, "CompositeExplicitAutograd")
print(turnout.ops.clean.twice(21))
"""
    assert core.python(program) == "42\n"


CPU = ("turnout-core", "turnout-cpu")
# The packages of an environment, what is asked there, and the package that the error names.
NAMED = [
    (("turnout-core",), "turnout.ones(2)", "turnout-aten"),
    (("turnout-core",), "from turnout import autograd", "turnout-autograd"),
    (("turnout-aten",), "turnout.ones(2)", "turnout-cpu"),
    (CPU, "turnout.ones(2, requires_grad=True)", "turnout-autograd"),
    (CPU, "turnout.ones(2, device='meta')", "turnout-meta"),
    (CPU, "with turnout.autocast('cpu'): turnout.ones(2, 2) @ turnout.ones(2, 2)", "turnout-autocast"),
    (CPU, "turnout.trace(lambda x: x + 1)(turnout.ones(2))", "turnout-tracer"),
]


@pytest.mark.parametrize(("packages", "asked", "named"), NAMED)
def test_an_environment_names_the_package_to_install(environment, packages, asked, named):
    assert f"pip install {named}" in environment(*packages).error(asked)


def test_core_and_cpu_compute(environment):
    assert environment(*CPU).python("import turnout; print((turnout.ones(2) + 1).tolist())") == "[2.0, 2.0]\n"


def test_cpu_alone_answers_for_cuda_and_names_the_packages_of_other_public_names(environment):
    cpu = environment("turnout-core", "turnout-cpu")
    program = "import turnout; turnout.cuda.manual_seed(1); print(turnout.cuda.is_available(), turnout.cuda.device_count())"
    assert cpu.python(program) == "False 0\n"
    assert "pip install turnout-cuda" in cpu.error("turnout.cuda.Stream()")
    assert "pip install turnout-cuda" in cpu.error("from turnout.cuda import Stream")
    stft = "turnout.stft(turnout.ones(8), 4, center=False, return_complex=True)"
    assert cpu.python(f"import turnout; print(tuple({stft}.shape), turnout.asarray([1.0]).tolist())") == "(3, 5) [1.0]\n"


# Distribution -> what needs it, and a use of it with what that prints.
NAMESPACES = {
    "array-api": ("turnout.ones(2).__array_namespace__()", "turnout.array_api.add(turnout.ones(2), 1).tolist()", "[2.0, 2.0]\n"),
    "masked": ("from turnout.masked import sum", "turnout.masked.sum(turnout.ones(2)).tolist()", "2.0\n"),
    "signal": ("turnout.signal.windows.hann(3)", "turnout.signal.windows.hann(3).tolist()", "[0.0, 1.0, 0.0]\n"),
}


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_namespace_is_a_package_of_its_own(environment, name):
    asked, used, printed = NAMESPACES[name]
    assert f"pip install turnout-{name}" in environment(*CPU).error(asked)
    assert environment("turnout-cpu", f"turnout-{name}").python(f"import turnout; print({used})") == printed


def test_core_cpu_and_autograd_differentiate(environment):
    both = environment("turnout[cpu,autograd,cli]")
    program = """
import turnout
x = turnout.tensor([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
"""
    assert both.python(program) == "[2.0, 4.0]\n"


def test_everything_installs_through_the_extra_and_works_together(environment):
    everything = environment(*EVERYTHING)
    assert {one.name for one in distributions()} - {"turnout-conformance"} <= installed(everything)
    program = """
import turnout
x = turnout.ones(2, 3, device="meta")
print(tuple((x + x).shape))
x = turnout.ones(3, requires_grad=True)
x.exp().sum().backward()
print(tuple(x.grad.shape))
"""
    assert everything.python(program) == "(2, 3)\n(3,)\n"
    run = everything.run("turnout", "plugins")
    assert run.returncode == 0, run.stderr
    assert all(name in run.stdout for name in ("autograd", "cpu", "meta"))


# Distribution -> a use of it. Nothing asks for turnout-kernels and turnout-speed, which make others faster.
USES = {
    "turnout-aten": "turnout.ones(2)", "turnout-cpu": "turnout.ones(2)", "turnout-arrays": "turnout.ones(2)",
    "turnout-autograd": "turnout.ones(2, requires_grad=True)", "turnout-meta": "turnout.ones(2, device='meta')",
    "turnout-autocast": "turnout.autocast('cpu').__enter__(); turnout.ones(2, 2) @ turnout.ones(2, 2)",
    "turnout-batched": "turnout.vmap(turnout.exp)(turnout.ones(2))", "turnout-tracer": "turnout.trace(turnout.exp)",
    "turnout-functionalize": "turnout.func.functionalize(turnout.exp)(turnout.ones(2))", "turnout-nn": "turnout.nn.Linear(1, 1)",
    "turnout-masked": "turnout.masked.sum(turnout.ones(2))", "turnout-signal": "turnout.signal.windows.hann(3)",
    "turnout-array-api": "turnout.ones(2).__array_namespace__()", "turnout-opcheck": "turnout.library.opcheck",
    "turnout-dask": "turnout.ones(2, device='dask')", "turnout-export": "turnout.export",
}  # fmt: skip
COMMAND = re.compile(r"pip install [^`\n]+")


@pytest.mark.parametrize("part", range(4))
def test_the_remedy_for_a_plugin_that_was_uninstalled_can_be_typed_and_works(part, tmp_path):
    everything = Environment(tmp_path, ["turnout[all]"])
    pip = [sys.executable, "-m", "pip", "--python", str(everything.bin / "python")]

    def typed(*words: str) -> None:
        done = subprocess.run([*pip, *words], env=BARE, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"

    for name, use in list(USES.items())[part::4]:
        typed("uninstall", "-q", "-y", name)
        remedies = COMMAND.findall(everything.error(use))
        assert f"pip install {name}" in remedies, (name, remedies)
        if name == "turnout-aten":  # which most need, so that they are blocked
            doctor = everything.run("turnout", "doctor")
            assert f"pip install {name}" in doctor.stdout, doctor.stdout + doctor.stderr
            remedies += COMMAND.findall(doctor.stdout)
        for remedy in dict.fromkeys(remedies):
            command, *words = shlex.split(remedy.rstrip("."))
            if words[1].startswith("turnout"):  # others are those of devices that are not there
                assert command == "pip"
                typed(*words, "-q", "--no-compile", *PLACES)
        everything.python(f"import turnout; {use}")


def test_a_clone_installs_by_the_extras_of_its_root(tmp_path):
    for file in tracked(("core", "plugins", "tools", "LICENSE", "README.md", "pyproject.toml", "setup.cfg", "setup.py")):
        (tmp_path / "clone" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / "clone" / file)
    cpu = Environment(tmp_path, [f"{tmp_path / 'clone'}[cpu]"])
    assert cpu.python("import turnout; print((turnout.ones(2) + 1).tolist())") == "[2.0, 2.0]\n"
    assert f"pip install {tmp_path / 'clone' / 'plugins' / 'autograd'}" in cpu.error("turnout.ones(2, requires_grad=True)")


class Installed(Reader):
    """A reader who has the packages from an index: what a page installs of a clone is there, and other folders are built."""

    def __init__(self, folder: Path, environment: Environment) -> None:
        self.environment = SimpleNamespace(python=environment.bin / "python")
        self.python = str(environment.bin / "python")
        self.clone = folder
        for file in tracked(("examples",)):
            (self.clone / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.clone / file)
        pip, script = f'"{sys.executable}" -m pip', environment.bin / "pip"
        build = f'{pip} wheel -q -w wheels "$folder" && {pip} --python "{self.python}" install -q wheels/*.whl'
        lines = ['shift; for folder in "$@"; do case "$folder" in', f"./acme|./examples/*) {build} ;;", "esac; done"]
        script.write_text("\n".join(["#!/bin/sh -e", *lines, ""]))
        script.chmod(0o755)


def test_every_program_of_the_readme_works_where_the_packages_come_from_an_index(environment, tmp_path):
    readme = ROOT / "README.md"
    commands = [command for block in blocks(readme) if block.kind == "sh" for command in shell_commands(block)]
    made = {command: "" for command in commands if command.startswith(("make ", "git ", "cd ", ". "))}
    Installed(tmp_path, environment(*EVERYTHING)).follow(readme, made)


def test_the_kit_alone_proves_a_backend(environment):
    kit = environment("turnout-conformance")
    run = kit.run("pytest", "-q", "--pyargs", "turnout_conformance", "--turnout-backend=cpu", "-k", "relu or plugin")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "turnout: kernels of cpu ran for" in run.stdout


@pytest.mark.parametrize("kind", ["backend", "backend --functional", "functionality", "operators"])
def test_a_new_plugin_builds_installs_type_checks_and_passes_its_tests(kind, environment, tmp_path):
    written = environment("turnout-cli").run(
        "turnout", "new-plugin", "my_chip", "--kind", *kind.split(), "--folder", str(tmp_path / "my_chip")
    )
    assert written.returncode == 0, written.stderr
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--no-build-isolation", "--no-deps", "-w", str(tmp_path)]
    built = subprocess.run([*build, str(tmp_path / "my_chip")], env=BARE, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("turnout_my_chip-0.1.0-*.whl")
    project = tomllib.loads((tmp_path / "my_chip" / "pyproject.toml").read_text("utf-8"))["project"]
    # The checkers are those of this environment: no wheel of this repository needs them.
    tests = [text for text in project["optional-dependencies"]["test"] if text not in ("mypy", "ruff")]
    chip = Environment(tmp_path, [str(wheel), *tests])
    proved = chip.run("pytest", "-q", "--rootdir", str(tmp_path / "my_chip"), "-c", str(tmp_path / "my_chip" / "pyproject.toml"))
    assert proved.returncode == 0, proved.stdout + proved.stderr
    for check in (
        ("mypy", "--strict", "--python-executable", str(chip.bin / "python")),
        ("ruff", "check"),
        ("ruff", "format", "--check"),
    ):
        done = subprocess.run([sys.executable, "-m", *check], cwd=tmp_path / "my_chip", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_compiled_call_path_is_found_by_being_installed_and_works_without_its_extension_module(environment):
    wheel = wheel_of("turnout-speed")
    both = environment("turnout[cpu,speed]")
    shown = "import turnout; x = turnout.ones(2); print((x + x).tolist(), type(turnout.Tensor.__add__).__name__)"
    with zipfile.ZipFile(wheel) as archive:
        compiled = any(name.endswith(COMPILED) for name in archive.namelist())
    assert both.python(shown) == f"[2.0, 2.0] {'Call' if compiled else 'function'}\n"
    assert both.python(f"import sys; sys.modules['turnout_speed._calls'] = None; {shown}") == "[2.0, 2.0] function\n"


def test_compiled_kernels_are_found_by_being_installed_and_nothing_needs_them(environment):
    wheel = wheel_of("turnout-kernels")
    both = environment("turnout[cpu,kernels]")
    program = """
import turnout
from turnout.explanation import explain
x = turnout.linspace(-2, 2, 100)
print(f"{turnout.nn.functional.gelu(x).sum().item():.3f}", explain("gelu", x).chosen.distribution)
"""
    with zipfile.ZipFile(wheel) as archive:
        compiled = any(name.endswith(COMPILED) for name in archive.namelist())
    value = both.python(program).split()[0]
    assert both.python(program) == f"{value} {'turnout-kernels' if compiled else 'turnout-cpu'}\n"
    without = (
        "import warnings; warnings.simplefilter('ignore'); import sys; sys.modules['turnout_kernels._native'] = None" + program
    )
    assert both.python(without) == f"{value} turnout-cpu\n"
