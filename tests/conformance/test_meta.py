"""Every operator case on `meta`: what cpu computes and what meta promises must have the same shapes, dtypes and strides.

On meta the shape function answers, on cpu often a kernel that does not ask it: what the one refuses, the other must refuse.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.dtypes import dtype_named
from turnout.errors import NoDataError
from turnout.registry import REGISTRY
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import ABOUT_STRIDES, CASES, OperatorCase

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


# ---- refusals


def misfits(case: OperatorCase) -> Iterator[tuple[str, Any, Any]]:
    """Samples with one tensor, or all, of another dtype, with a dim more or less, or shorter: what was done, and the call."""
    changes: dict[str, Callable[[turnout.Tensor], turnout.Tensor]] = {
        name: lambda t, name=name: t.to(dtype=dtype_named(name)) for name in ("bool", "int64", "complex128")
    }
    changes["a dim more"] = lambda t: t.unsqueeze(0)
    changes["a dim less"] = lambda t: t[0] if t.numel() and t.dim() else t
    changes["shorter"] = lambda t: t[1:] if t.dim() else t
    for args, kwargs in operator_cases.calls(case, case.dtypes[0], on_cpu):
        count = len([t for t in flat([*args, *kwargs.values()]) if isinstance(t, turnout.Tensor)])
        for which in (None, *range(count if count > 1 else 0)):
            for name, change in changes.items():
                place = itertools.count()
                changed = [
                    each(value, lambda t, c=change, w=which, p=place: c(t) if w in (None, next(p)) else t)
                    for value in (args, kwargs)
                ]
                yield f"{name} of {'all' if which is None else which}", *changed


def each(value: Any, change: Callable[[turnout.Tensor], Any]) -> Any:
    """An argument with its tensors changed."""
    if isinstance(value, turnout.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: each(v, change) for name, v in value.items()}
    return type(value)(each(v, change) for v in value) if isinstance(value, (tuple, list)) else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [c for c in CASES if c.op not in ABOUT_STRIDES], ids=str)
def test_cpu_refuses_what_meta_refuses(case: OperatorCase) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    accepted = []
    for name, args, kwargs in misfits(case):
        try:
            op(*each(args, moved), **each(kwargs, moved))
        except NoDataError:
            continue
        except Exception as error:  # noqa: BLE001 - any refusal
            with contextlib.suppress(Exception):
                op(*args, **kwargs)
                accepted.append(f"{name}: {error}")
    assert not accepted
