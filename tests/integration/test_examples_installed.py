"""The examples as somebody installs them: their own tests, the kit, their READMEs, and what all of them must have."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from installed import Environment
from pages import blocks, broken_links
from workspace import ROOT, imported, modules, required_name

EXAMPLES = ("profiler", "quantized", "myops", "myops_opencl")
each = pytest.mark.parametrize("name", EXAMPLES)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment in which pip installed all of them, from copies."""
    environment = Environment(tmp_path_factory.mktemp("examples"))
    environment.install(*EXAMPLES, folder=ROOT / "examples")
    return environment


def pytest_in(environment: Environment, *args: str) -> subprocess.CompletedProcess[str]:
    """pytest in the environment, in a folder without a configuration of ours; warnings are errors."""
    code = f"import pytest; raise SystemExit(pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:xdist', *{args!r}]))"
    return environment.run(code)


@each
def test_its_own_tests_pass(shop, name):
    done = pytest_in(shop, "-W", "error", str(shop.folder / "sources" / name / "tests"))
    assert done.returncode == 0, done.stdout


def test_the_kit_proves_the_profiler(shop):
    chosen = "relu or sort or mm or svd or state or deactivation or order or thread or itself or explain"
    done = pytest_in(shop, "--pyargs", "turnout_conformance", "--turnout-key=Profiler", "-k", chosen)
    assert done.returncode == 0, done.stdout
    [line] = [line for line in done.stdout.splitlines() if line.startswith("turnout: kernels of Profiler ran for ")]
    assert int(line.split()[-2]) > 20


@each
def test_the_programs_of_its_readme_run(shop, name):
    if name == "myops_opencl" and not shop.answer(
        "from turnout_opencl.devices import found_devices; print(len(found_devices()))"
    ):
        pytest.skip("there is no OpenCL device")
    programs = [block.text for block in blocks(ROOT / "examples" / name / "README.md") if block.kind == "python"]
    assert programs
    for program in programs:
        done = shop.run(program, flags=("-W", "error"))
        assert done.returncode == 0, done.stderr


def test_the_kernel_of_a_second_package_is_found_where_the_first_is_used(shop):
    code = """
import json
import turnout
op = turnout.ops.myops.swish.default
print(json.dumps({key: op.table()[key].kernel.origin for key in ("CPU", "Meta", "OpenCL", "AutogradCPU") if key in op.table()}))
"""
    found = shop.answer(code)
    assert found.pop("OpenCL", "turnout-myops-opencl 0.1.0") == "turnout-myops-opencl 0.1.0"  # without a driver: nothing
    assert found == dict.fromkeys(("CPU", "Meta", "AutogradCPU"), "turnout-myops 0.1.0")


def test_all_of_them_work_in_one_program(shop):
    """Quantized tensors, an operator of another package and gradients, under the profiler."""
    code = """
import json
import turnout
q = turnout.quantized.quantize(turnout.tensor([[1.0, -2.0], [3.0, 0.5]]))
w = turnout.ones(2, 2, requires_grad=True)
with turnout.profiler.profile() as found:
    turnout.ops.myops.swish(w @ q).sum().backward()
print(json.dumps([sorted(row.operator for row in found.rows() if row.operator in ("aten::mm", "myops::swish")), w.grad.shape]))
"""
    assert shop.answer(code) == [["aten::mm", "myops::swish"], [2, 2]]


# ---- what each of them is


def read(name: str) -> tuple[Path, dict, dict]:
    """The folder of an example's package, its pyproject.toml and its manifest."""
    folder = ROOT / "examples" / name
    source = folder / "src" / f"turnout_{name}"
    return source, tomllib.loads((folder / "pyproject.toml").read_text()), tomllib.loads((source / "plugin.toml").read_text())


@each
def test_it_is_a_whole_distribution(name):
    source, project, manifest = read(name)
    folder = ROOT / "examples" / name
    distribution = f"turnout-{name.replace('_', '-')}"
    assert (project["project"]["name"], manifest["distribution"], manifest["name"]) == (distribution, distribution, name)
    assert project["project"]["entry-points"]["turnout.plugins"] == {name: f"turnout_{name}:plugin.toml"}
    for path in (source / "py.typed", folder / "README.md", *folder.glob("tests/test_*.py")):
        assert path.is_file()
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert broken_links(folder / "README.md") == []


@each
def test_it_depends_on_what_it_imports_and_uses_public_names_only(name):
    source, project, _ = read(name)
    depends = {required_name(text).replace("-", "_") for text in project["project"]["dependencies"]}
    for module, tree in modules(source):
        for node in ast.walk(tree):
            for path in imported(module, node):
                top = path.partition(".")[0]
                known = sys.stdlib_module_names | depends | {f"turnout_{name}", "turnout"}
                assert top in known, f"{module} imports {path}"
                assert path.startswith(f"turnout_{name}.") or not re.search(r"\._(?!_)", path), f"{module} imports {path}"


def test_the_readme_of_the_profiler_lists_its_options():
    text = (ROOT / "examples/profiler/README.md").read_text()
    for option, fields in read("profiler")[2]["option"].items():
        default = '""' if fields["default"] == "" else str(fields["default"]).lower()
        assert re.search(rf"^\| `plugin.profiler.{option}` \| `\"?{re.escape(default)}\"?` \|", text, re.MULTILINE), option
