"""Integers of every width: where PyTorch computes an operator case in them, Turnout gives the same dtypes and values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cases_in_both import OPEN, dtype_of, in_torch  # noqa: E402
from op_db.bridge import mapped  # noqa: E402

import turnout  # noqa: E402
from outcomes import flat  # noqa: E402
from turnout.registry import find_operator  # noqa: E402
from turnout_conformance.cases import CASES, OperatorCase, calls  # noqa: E402

WIDTHS = ("int8", "int16", "int32", "int64", "uint8")
# differs from torch: operator -> why.
DIFFERS = {
    "clamp": "a bound below 0 is below every uint8; PyTorch takes it modulo 256",
    "clamp_min": "as clamp",
    "nanmedian.dim": "which of two equal elements is named is open",
    "affine_grid_generator": "theta must be floating-point",
    "avg_pool2d_backward": "gradients are floating-point",
    "avg_pool3d_backward": "gradients are floating-point",
    "embedding_dense_backward": "gradients are floating-point",
    "mse_loss_backward": "gradients are floating-point",
    "lu_unpack": "factors are floating-point",
}  # fmt: skip


def numbers(data: Any, dtype: str) -> Any:
    """The same tensor for both libraries: fractions are cut off, and what is too large wraps."""
    array = np.asarray(data)
    if dtype in WIDTHS and array.dtype.kind in "fc":
        array = np.trunc(np.nan_to_num(array.real, posinf=9, neginf=-9) * 3)
    return torch.tensor(array.astype(np.int64) if dtype in WIDTHS else array).to(getattr(torch, dtype))


@pytest.mark.parametrize("case", [c for c in CASES if c.op not in DIFFERS and "upsample" not in c.op], ids=str)
def test_dtypes_and_values_are_those_of_torch(case: OperatorCase) -> None:
    name, _, overload = case.op.partition(".")
    theirs, ours = getattr(getattr(torch.ops.aten, name), overload or "default"), find_operator(f"aten::{case.op}")
    if "nondeterministic_seeded" in ours.tags or "empty" in name:
        return
    for dtype in WIDTHS:
        given = calls(case, dtype, numbers)
        own = calls(case, dtype, lambda data, kind: turnout.from_numpy(numbers(data, kind).numpy().copy()))
        for (args, kwargs), (own_args, own_kwargs) in zip(given, own, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    expected = flat(theirs(*mapped(args, in_torch), **mapped(kwargs, in_torch)))
                except (RuntimeError, IndexError, TypeError):  # not for these numbers
                    continue
            found = flat(ours(*own_args, **own_kwargs))
            assert [f.dtype.name for f in found] == list(map(dtype_of, expected)), (dtype, own_args)
            for i, (f, e) in enumerate(zip(found, expected, strict=True)):
                if i not in OPEN.get(case.op, ()):
                    assert np.allclose(f.numpy(), e.resolve_conj().numpy(), rtol=2e-3, atol=1e-4, equal_nan=True), (
                        dtype,
                        own_args,
                    )
