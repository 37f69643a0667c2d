"""Every operator case on the cpu device against PyTorch's operator of the same name: values, shapes, dtypes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from cases_in_both import OPEN, results  # noqa: E402

from turnout_conformance.cases import CASES, close  # noqa: E402


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_shapes_and_dtypes_are_those_of_torch(case):
    for dtype in case.dtypes:
        for given, found, expected in results(case, dtype):
            assert [f.shape for f in found] == [tuple(e.shape) for e in expected], (dtype, given)
            for i, (e, f) in enumerate(zip(expected, found, strict=True)):
                if i not in OPEN.get(case.op, ()):
                    right = close(numpy, f.numpy(), e.resolve_conj().numpy(), case.tolerance)
                    assert right, (dtype, given, f.tolist(), e.tolist())
