"""docs/add-a-backend.md, followed as it is written; and its package computes every operator case as the cpu does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pages import ROOT, Reader

PAGE = ROOT / "docs" / "add-a-backend.md"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Someone with Turnout installed, outside of the repository."""
    reader = Reader(tmp_path_factory.mktemp("abacus"), trees=())
    reader.command("turnout", f'"{reader.python}" -m turnout_cli')
    for _ in reader.follow(PAGE):
        pass
    return reader


def test_the_package_of_the_page_is_built_and_every_program_prints_what_it_says(reader):
    assert sorted(path.name for path in (reader.clone / "abacus" / "turnout_abacus").iterdir()) == [
        "__init__.py", "arrays.py", "backend.py", "kernels.py", "plugin.toml",
    ]  # fmt: skip


CASES = """
import json, sys
import numpy

sys.path.append({tests!r})
import turnout
from turnout_conformance.cases import CASES, build, close

HELD = ("float32", "float64", "int32", "int64", "uint8", "bool")
found = {{"run": 0, "wrong": []}}


class NotHeld(Exception):
    pass


def results(case, sample, dtype, device):
    def make(data, dtype):
        if dtype not in HELD:
            raise NotHeld
        return turnout.tensor(data, dtype=getattr(turnout, dtype), device=device)

    packet, _, overload = case.op.partition(".")
    op = getattr(getattr(turnout.ops.aten, packet), overload or "default")
    args, kwargs = build([list(sample.args), sample.kwargs], dtype, make)
    return flat(op(*args, **kwargs), device)


def flat(result, device):
    if isinstance(result, (list, tuple)):
        return [each for part in result for each in flat(part, device)]
    if not isinstance(result, turnout.Tensor):
        return [result]
    assert result.device.type == device
    return [result.to("cpu").numpy()]


def same(a, b, tolerance):
    return a == b if not isinstance(a, numpy.ndarray) else a.dtype == b.dtype and close(numpy, a, b, tolerance)


for case, dtype, sample in ((c, d, s) for c in CASES for d in c.dtypes for s in c.samples):
    try:
        here, there = results(case, sample, dtype, "cpu"), results(case, sample, dtype, "abacus")
        if len(here) != len(there) or not all(same(a, b, case.tolerance) for a, b in zip(here, there)):
            found["wrong"].append(f"{{case.op}} {{dtype}}: another result")
        found["run"] += 1
    except NotHeld:
        pass
    except Exception as error:
        if "abacus has no complex" not in str(error) and not str(error).startswith("AbacusBackend.retyped: "):
            found["wrong"].append(f"{{case.op}} {{dtype}}: {{type(error).__name__}}: {{error}}")
print(json.dumps(found))
"""


def test_it_computes_every_operator_case_that_it_has_the_dtypes_for_as_the_cpu_does(reader):
    code = CASES.format(tests=str(Path(__file__).resolve().parents[1]))
    done = reader.run([reader.python, "-c", code])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["run"] > 2000
