"""Every operator case on the cpu device against PyTorch's operator of the same name: values, shapes, dtypes."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from freedoms import OPEN  # noqa: E402

import turnout  # noqa: E402
from turnout.registry import find_operator  # noqa: E402
from turnout_conformance.cases import CASES, calls, close  # noqa: E402


def to_torch(data, dtype):
    return torch.tensor(data, dtype=getattr(torch, dtype))


def to_turnout(data, dtype):
    return turnout.tensor(data, dtype=turnout.dtypes.dtype_named(dtype), device="cpu")


def in_torch(value):
    """An argument that is no tensor: dtypes are the libraries' own."""
    return getattr(torch, value.name) if isinstance(value, turnout.dtypes.DType) else value


def flat(result):
    return [r for part in result for r in flat(part)] if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_shapes_and_dtypes_are_those_of_torch(case):
    name, _, overload = case.op.partition(".")
    theirs = getattr(getattr(torch.ops.aten, name), overload or "default")
    ours = find_operator(f"aten::{case.op}")
    for dtype in case.dtypes:
        pairs = zip(calls(case, dtype, to_torch), calls(case, dtype, to_turnout), strict=True)
        for (args, kwargs), (own_args, own_kwargs) in pairs:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = flat(theirs(*map(in_torch, args), **{k: in_torch(v) for k, v in kwargs.items()}))
            found = flat(ours(*own_args, **own_kwargs))
            assert len(found) == len(expected)
            for i, (e, f) in enumerate(zip(expected, found, strict=True)):
                assert f.dtype.name == str(e.dtype).removeprefix("torch."), (dtype, args)
                assert f.shape == tuple(e.shape), (dtype, args)
                if i in OPEN.get(case.op, ()):
                    continue
                assert close(numpy, f.numpy(), e.resolve_conj().numpy(), case.tolerance), (dtype, args, f.tolist(), e.tolist())
