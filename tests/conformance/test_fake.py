"""Every operator case on fake tensors: they promise what the real call gives, in shape, strides, dtype and device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import turnout
from turnout.dtypes import dtype_named
from turnout.errors import NoDataError
from turnout.registry import REGISTRY
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import ABOUT_STRIDES, CASES, OperatorCase

LAYOUTS = [(case, dtype, "row-major") for case in CASES for dtype in case.dtypes]
LAYOUTS += [(case, dtype, "column-major") for case in CASES for dtype in case.dtypes if case.op not in ABOUT_STRIDES]

# The operators whose result has another structure for other values. Each must raise, and on `meta` too.
NEEDS_VALUES = {"linalg_lstsq", "narrow.Tensor", "one_hot", "tensor_split.tensor_indices_or_sections"}


def on_cpu(data: Any, dtype: str) -> turnout.Tensor:
    return turnout.tensor(data, dtype=dtype_named(dtype))


def transposed(data: Any, dtype: str) -> turnout.Tensor:
    """The same values in column-major order."""
    return turnout.from_numpy(np.array(data, dtype, order="F"))


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def settled(promised: Any, computed: Any) -> None:
    """Tell a mode the real value of each symbol, which its bounds must contain."""
    if isinstance(promised, turnout.Tensor):
        for size, real in zip(promised.shape, computed.shape, strict=True):
            if isinstance(size, turnout.SymInt) and not isinstance(size.expression.value, int):
                low, high = size.bounds
                assert low <= real <= high
                turnout.check(size == real)


def facts(value: Any) -> Any:
    """What a fake tensor promises of a result; of a number, its class. Strides of lengths 0 and 1 mean nothing."""
    if not isinstance(value, turnout.Tensor):
        return type(value)
    strides = tuple(int(s) for n, s in zip(value.shape, value.stride(), strict=True) if n > 1)
    return tuple(map(int, value.shape)), value.dtype, value.device, strides if int(value.numel()) > 1 else ()


@pytest.mark.parametrize(("case", "dtype", "layout"), LAYOUTS, ids=lambda v: getattr(v, "op", v))
def test_a_fake_call_promises_what_the_real_one_gives(case: OperatorCase, dtype: str, layout: str) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    make = on_cpu if layout == "row-major" else transposed
    mode = turnout.FakeMode()
    refused = set()
    real = operator_cases.calls(case, dtype, make)
    fake = operator_cases.calls(case, dtype, lambda d, t: mode.from_tensor(make(d, t)))
    for (args, kwargs), (no_values, named) in zip(real, fake, strict=True):
        computed = flat(op(*args, **kwargs))
        try:
            with mode:
                promised = flat(op(*no_values, **named))
        except NoDataError:
            assert case.op in NEEDS_VALUES
            refused.add(case.op)
            continue
        assert all(p.fake_mode is mode for p in promised if isinstance(p, turnout.Tensor))
        for p, c in zip(promised, computed, strict=True):
            settled(p, c)
        assert [facts(p) for p in promised] == [facts(c) for c in computed]
    assert case.op not in NEEDS_VALUES or refused
