"""docs/custom-operators.md, followed as it is written; and what it says about CI and CUDA, with stand-ins for both."""

from __future__ import annotations

import os
import re

import pytest
import yaml
from pages import ROOT, Reader, broken_links

PAGE = ROOT / "docs" / "custom-operators.md"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")

# `cupy` and `cupyx` of an environment without a GPU.
CUPY = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests" / "plugins")!r})
import cupy_stand_in
sys.modules["cupy"] = cupy_stand_in.Module()
"""
CUPYX = f"{CUPY}\nerrstate = cupy_stand_in.errstate\n"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, need_device) -> Reader:
    """Someone who has followed the page, with Turnout installed, outside of the repository."""
    need_device("opencl")
    reader = Reader(tmp_path_factory.mktemp("curves"))
    installation = "pip install ./plugins/opcheck ./plugins/autocast ./plugins/functionalize ./plugins/tracer ./plugins/cuda"
    reader.follow(PAGE, {installation: ""})
    return reader


ORIGINS = """
import turnout
table = turnout.ops.curves.soft_sign.default.table()
print({key: table[key].kernel.origin for key in ("CPU", "OpenCL", "Meta", "AutogradOpenCL")})
"""


def test_each_kernel_comes_from_the_package_that_has_it(reader):
    first, second = "turnout-curves 0.1.0", "turnout-curves-opencl 0.1.0"
    printed = reader.done([reader.python, "-c", ORIGINS])
    assert printed == f"{ {'CPU': first, 'OpenCL': second, 'Meta': first, 'AutogradOpenCL': first} }\n"
    assert broken_links(PAGE) == []


def test_the_page_says_how_a_subclass_has_fields_and_wraps_other_tensors():
    section = PAGE.read_text(encoding="utf-8").partition("\n## Tensors with fields of their own\n")[2].partition("\n## ")[0]
    assert "`_make_wrapper_subclass` is `as_subclass`" in section
    assert ".as_subclass(cls)" in section


def test_the_steps_of_ci_pass_and_check_the_operators(reader):
    workflow = yaml.safe_load((reader.clone / "curves/.github/workflows/check.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    assert len(steps) == 4
    for step in steps:
        printed = reader.done(f"cd curves && {step}")
    assert re.search(r"^opcheck: curves::mean_square .*, curves::soft_sign ", printed, re.MULTILINE), printed


# The errors of an unknown comparison and of a call without a fake kernel, in the order in which the page names them.
FAKE_ERRORS = """
import turnout
from turnout import Tensor, library


@library.custom_op("page::positive", mutates_args=())
def positive(x: Tensor) -> Tensor:
    return x[x > 0]


def fake(x):
    return x.new_empty(library.get_ctx().new_dynamic_size())


def refused():
    try:
        with turnout.FakeMode():
            bool(positive(turnout.ones(3)).shape[0] > 2)
    except turnout.errors.TurnoutError as error:
        return f"`turnout.errors.{type(error).__name__}`"


missing = refused()
positive.register_fake(fake)
print(refused(), missing)
"""


def test_the_page_names_the_errors_of_unknown_comparisons_and_missing_fake_kernels(reader):
    section = PAGE.read_text(encoding="utf-8").partition("## Sizes that depend on data\n")[2].partition("\n## ")[0]
    raised = reader.done([reader.python, "-c", FAKE_ERRORS]).split()
    assert re.findall(r"`turnout\.errors\.\w+`", section) == raised


def test_the_package_for_cuda_works_over_a_stand_in_for_cupy(reader):
    packages = reader.environment.packages()
    (packages / "cupy.py").write_text(CUPY)
    (packages / "cupyx.py").write_text(CUPYX)
    try:
        assert "2 passed" in reader.done("pytest -q -W error curves_cuda/tests")
        code = "import turnout; turnout.ops.curves.soft_sign(turnout.tensor([1, 2], device='cuda'))"
        refused = reader.run([reader.python, "-c", code])
        assert "DTypeError: soft_sign: cuda computes in floating-point types, got int64" in refused.stderr
    finally:
        (packages / "cupy.py").unlink()
        (packages / "cupyx.py").unlink()
