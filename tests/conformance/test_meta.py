"""Every operator case on `meta`: what cpu computes and what meta promises must have the same shapes, dtypes and strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import operator_cases
import turnout
from operator_cases import ABOUT_STRIDES, CASES, OperatorCase
from turnout.dtypes import dtype_named
from turnout.errors import NoDataError
from turnout.registry import REGISTRY

GRID = [pytest.param(case, dtype, id=f"{case.op}-{dtype}") for case in CASES for dtype in case.dtypes]
# Their results' shapes depend on values.
DATA_DEPENDENT = {
    "nonzero", "nonzero_numpy", "argwhere", "bincount", "_unique2", "unique_dim", "unique_consecutive", "masked_select",
    "one_hot", "index.Tensor", "narrow.Tensor", "repeat_interleave.Tensor",
    "tensor_split.tensor_indices_or_sections", "linalg_lstsq",
}  # fmt: skip


def on_cpu(data: Any, dtype: str) -> turnout.Tensor:
    return turnout.tensor(data, dtype=dtype_named(dtype))


def on_meta(data: Any, dtype: str) -> turnout.Tensor:
    return on_cpu(data, dtype).to(device="meta")


def transposed(data: Any, dtype: str) -> turnout.Tensor:
    """The same values in column-major order."""
    return turnout.from_numpy(np.array(data, dtype, order="F"))


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def facts(tensor: turnout.Tensor) -> tuple[Any, ...]:
    strides = tuple(s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1)
    return tensor.shape, tensor.dtype, strides if tensor.numel() > 1 else ()


LAYOUTS = [(*p.values, "row-major") for p in GRID]
LAYOUTS += [(*p.values, "column-major") for p in GRID if p.values[0].op not in ABOUT_STRIDES]


@pytest.mark.parametrize(("case", "dtype", "layout"), LAYOUTS, ids=lambda v: getattr(v, "op", v))
def test_meta_promises_what_cpu_computes(case: OperatorCase, dtype: str, layout: str) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    make = on_cpu if layout == "row-major" else transposed
    cpu = operator_cases.calls(case, dtype, make)
    meta = operator_cases.calls(case, dtype, lambda d, t: moved(make(d, t)))
    for (args, kwargs), (no_values, named) in zip(cpu, meta, strict=True):
        computed = flat(op(*args, **kwargs))
        try:
            promised = flat(op(*no_values, **named))
        except NoDataError:
            assert case.op in DATA_DEPENDENT
            continue
        assert all(p.is_meta for p in promised)
        assert [facts(p) for p in promised] == [facts(c) for c in computed]


def moved(tensor: turnout.Tensor) -> turnout.Tensor:
    """The tensor's shape, dtype and strides on meta."""
    return turnout.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
