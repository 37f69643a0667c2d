"""The examples as somebody installs them: their own tests, the kit, their READMEs, and what all of them must have."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import blocks, broken_links, tracked
from workspace import ROOT, modules, required_name

from turnout_cli.new_plugin import rendered

FOLDER = ROOT / "examples"
BACKENDS = ("loopback", "torchlike")
PLUGINS = ("profiler", "quantized", "myops", "myops_opencl")
PROGRAMS = ("dask_programs", "gpt", "serving")
EXAMPLES = (*BACKENDS, *PLUGINS, *PROGRAMS)
each = pytest.mark.parametrize("name", EXAMPLES)


# ---- installed


def own_tests(environment, *names: str) -> None:
    environment.pytest("-W", "error", *(str(environment.folder / "sources" / name / "tests") for name in names))


def test_their_own_tests_pass(examples):
    own_tests(examples, *PLUGINS, "gpt", "serving")


def test_the_programs_for_dask_pass_their_own_tests(examples, need_device):
    need_device("dask")
    pytest.importorskip("distributed")
    own_tests(examples, "dask_programs")


def test_the_kit_proves_the_profiler(examples):
    chosen = "relu or sort or mm or svd or state or deactivation or order or thread or itself or explain"
    printed = examples.kit("--turnout-key=Profiler", "-k", chosen)
    [line] = [line for line in printed.splitlines() if line.startswith("turnout: kernels of Profiler ran for ")]
    assert int(line.split()[-2]) > 20


def test_the_kit_proves_torchlike_but_for_the_dtypes_that_it_does_not_have(examples):
    failures = f"--turnout-expected-failures={FOLDER / 'torchlike' / 'expected_failures.txt'}"
    of_its_own = "neg or mul or stft or dtype or as_complex"  # kernels, and what is expected to fail; cpu runs the others
    chosen = f"test_backend_device or test_backend_plugin or (gives_what_cpu_gives and row-major and ({of_its_own}))"
    printed = examples.kit("--turnout-backend=torchlike", "-k", chosen, failures)
    assert "4 xfailed" in printed
    assert "turnout: kernels of torchlike ran for" in printed


@pytest.mark.parametrize("name", PLUGINS)
def test_the_programs_of_its_readme_run(examples, name, need_device):
    if name == "myops_opencl":
        need_device("opencl")
    programs = [block.text for block in blocks(FOLDER / name / "README.md") if block.kind == "python"]
    assert programs
    for program in programs:
        done = examples.run(program, flags=("-W", "error"))
        assert done.returncode == 0, done.stderr


def test_the_kernel_of_a_second_package_is_found_where_the_first_is_used(examples):
    code = """
import turnout
op = turnout.ops.myops.swish.default
found = {key: op.table()[key].kernel.origin for key in ("CPU", "Meta", "OpenCL", "AutogradCPU") if key in op.table()}
"""
    found = examples.answer(code)
    assert found.pop("OpenCL", "turnout-myops-opencl 0.1.0") == "turnout-myops-opencl 0.1.0"  # without a driver: nothing
    assert found == dict.fromkeys(("CPU", "Meta", "AutogradCPU"), "turnout-myops 0.1.0")


def test_all_of_them_work_in_one_program(examples):
    """Quantized tensors, an operator of another package and gradients, under the profiler."""
    code = """
import turnout
q = turnout.quantized.quantize(turnout.tensor([[1.0, -2.0], [3.0, 0.5]]))
w = turnout.ones(2, 2, requires_grad=True)
with turnout.profiler.profile() as profile:
    turnout.ops.myops.swish(w @ q).sum().backward()
names = ("aten::mm", "myops::swish")
found = [sorted(row.operator for row in profile.rows() if row.operator in names), w.grad.shape]
"""
    assert examples.answer(code) == [["aten::mm", "myops::swish"], [2, 2]]


# ---- what each of them is


def package(name: str) -> tuple[Path, dict[str, Any]]:
    """The folder of an example's package, and its project."""
    folder = FOLDER / name
    return folder / "src" / f"turnout_{name}", tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def manifest(name: str) -> dict[str, Any]:
    return tomllib.loads((package(name)[0] / "plugin.toml").read_text())


@each
def test_it_is_a_whole_distribution(name):
    source, project = package(name)
    folder = FOLDER / name
    readme = folder / "README.md"
    assert project["name"] == f"turnout-{name.replace('_', '-')}"
    for path in (source / "py.typed", readme, *folder.glob("tests/test_*.py")):
        assert path.is_file()
    assert broken_links(readme) == []
    if name not in BACKENDS:  # which are what `new-plugin` writes, and its licence is for the author to choose
        assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    if name not in PROGRAMS:
        assert (manifest(name)["distribution"], manifest(name)["name"]) == (project["name"], name)
        assert project["entry-points"]["turnout.plugins"] == {name: f"turnout_{name}:plugin.toml"}
    for command, target in project.get("scripts", {}).items():
        assert command in readme.read_text(encoding="utf-8")
        assert (source / f"{target.partition(':')[0].rpartition('.')[2]}.py").is_file()


@each
def test_it_depends_on_what_it_imports_and_uses_public_names_only(name):
    source, project = package(name)
    known = sys.stdlib_module_names | {required_name(text).replace("-", "_") for text in project["dependencies"]}
    known |= {source.name, "turnout", *(("dask", "distributed") if name == "dask_programs" else ())}  # of turnout-dask
    for module, path in ((module, path) for module, read in modules(source).items() for _, path in read.imports):
        assert path.partition(".")[0] in known, f"{module} imports {path}"
        assert path.startswith(f"{source.name}.") or not re.search(r"\._(?!_)", path), f"{module} imports {path}"


def test_loopback_is_what_new_plugin_writes():
    files = [path.removeprefix("examples/loopback/") for path in tracked(("examples/loopback",))]
    assert sorted(files) == list(rendered("loopback", "backend"))
    for path, text in rendered("loopback", "backend").items():
        if path != "README.md":
            assert (FOLDER / "loopback" / path).read_text(encoding="utf-8") == text, path


def test_loopback_has_less_than_100_lines():
    files = sorted((FOLDER / "loopback" / "src").rglob("*.py"))
    assert 50 < sum(bool(line.strip()) for file in files for line in file.read_text(encoding="utf-8").splitlines()) < 100


def test_torchlike_is_expected_to_fail_for_the_reasons_that_its_readme_names():
    lines = (FOLDER / "torchlike" / "expected_failures.txt").read_text(encoding="utf-8").splitlines()
    readme = (FOLDER / "torchlike" / "README.md").read_text(encoding="utf-8")
    said = re.findall(r"`(\w+)`", readme.partition("The kit passes but for the tests")[2])
    found = [
        next((word for word in said if f".{word}:" in line or line.endswith(f"torchlike has no {word} tensors")), line)
        for line in lines
        if not line.startswith("#")
    ]
    assert {*found} == {*said}
    assert found.count("retyped") < len(found) / 2


def test_the_readme_of_quantized_names_the_operators_that_have_rules():
    said = re.findall(
        r"`(\w+)`", (FOLDER / "quantized" / "README.md").read_text("utf-8").partition(" have rules.")[0].rpartition("\n- ")[2]
    )
    rules = re.findall(r'^    "aten::([a-z]\w*)', (package("quantized")[0] / "kernels.py").read_text("utf-8"), re.MULTILINE)
    assert sorted({*said} - {"linear"}) == sorted(rules)  # which is made of addmm


def test_the_readme_of_the_profiler_lists_its_options():
    text = (FOLDER / "profiler" / "README.md").read_text()
    for option, fields in manifest("profiler")["option"].items():
        default = '""' if fields["default"] == "" else str(fields["default"]).lower()
        assert re.search(rf"^\| `plugin.profiler.{option}` \| `\"?{re.escape(default)}\"?` \|", text, re.MULTILINE), option
