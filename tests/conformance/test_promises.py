"""What `meta` and a fake promise of every operator case is what cpu computes: the same shapes, dtypes and strides.

For them the shape function answers, on cpu often a kernel that does not ask it: what the one refuses, the other must refuse.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import turnout
from turnout.dtypes import dtype_named
from turnout.errors import NoDataError
from turnout.operators import Operator
from turnout.operators.values import flat
from turnout_conformance.cases import ABOUT_STRIDES, CASES, OperatorCase
from turnout_conformance.comparing import about, each, find, layout, on_meta, tensors
from turnout_conformance.making import arguments, column_major, row_major, samples, samples_of_kinds


def of_meta(op: Operator, args: Any, kwargs: Any) -> list[Any]:
    promised = flat(op(*on_meta(args), **on_meta(kwargs)))
    assert all(p.is_meta for p in promised)
    return promised


def of_a_fake(op: Operator, args: Any, kwargs: Any) -> list[Any]:
    mode = turnout.FakeMode()
    no_values, named = each(args, mode.from_tensor), each(kwargs, mode.from_tensor)
    with mode:
        promised = flat(op(*no_values, **named))
    assert all(p.fake_mode is mode and p.device.type == "cpu" for p in tensors(promised))
    return promised


# The operators whose result has another structure for other values. Nothing is promised of them: some call raises.
NEEDS_VALUES = {"linalg_lstsq", "narrow.Tensor", "one_hot", "tensor_split.tensor_indices_or_sections"}
# Operators to which PyTorch does not give the tag `dynamic_output_shape`: they read a number, or call an operator that has it.
UNTAGGED = {"narrow.Tensor", "tensor_split.tensor_indices_or_sections", "nonzero_numpy"}
PROMISES = {"meta": of_meta, "a fake": of_a_fake}


def settled(promised: Any, computed: Any) -> None:
    """Tell a mode the real value of each symbol, which its bounds must contain."""
    for size, real in zip(promised.shape, computed.shape, strict=True):
        if isinstance(size, turnout.SymInt) and not isinstance(size.expression.value, int):
            low, high = size.bounds
            assert low <= real <= high
            turnout.check(size == real)


def facts(value: Any) -> Any:
    """What is promised of a result; of a number, its class."""
    if not isinstance(value, turnout.Tensor):
        return type(value)
    return tuple(map(int, value.shape)), value.dtype, list(map(int, layout(value)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_meta_and_a_fake_promise_what_cpu_computes(case: OperatorCase) -> None:
    op = find(case.op)
    refused = dict.fromkeys(PROMISES, False)
    for make in (row_major,) if case.op in ABOUT_STRIDES else (row_major, column_major):
        for sample, dtype in samples_of_kinds(case, "cpu"):
            args, kwargs = arguments(sample, dtype, make("cpu"))
            computed = flat(op(*args, **kwargs))
            for name, promise in PROMISES.items():
                with about(name, dtype, make.__name__):
                    try:
                        promised = promise(op, args, kwargs)
                    except NoDataError:
                        refused[name] = True
                        continue
                    for p, c in zip(promised, computed, strict=True):
                        if isinstance(p, turnout.Tensor):
                            settled(p, c)
                    assert [facts(p) for p in promised] == [facts(c) for c in computed]
    sized_by_values = turnout.Tag.dynamic_output_shape in op.tags or case.op in UNTAGGED  # a fake has symbols for their sizes
    assert refused == {"meta": sized_by_values, "a fake": case.op in NEEDS_VALUES}


# ---- refusals


def misfits(case: OperatorCase) -> Iterator[tuple[str, Any, Any]]:
    """Samples with one tensor, or all, of another dtype, with a dim more or less, or shorter: what was done, and the call."""
    changes: dict[str, Callable[[turnout.Tensor], turnout.Tensor]] = {
        name: lambda t, name=name: t.to(dtype=dtype_named(name)) for name in ("bool", "int64", "complex128")
    }
    changes["a dim more"] = lambda t: t.unsqueeze(0)
    changes["a dim less"] = lambda t: t[0] if t.numel() and t.dim() else t
    changes["shorter"] = lambda t: t[1:] if t.dim() else t
    for sample, dtype in samples(case, "cpu", case.dtypes[:1]):
        given = arguments(sample, dtype, row_major("cpu"))
        count = len(tensors(given))
        for which in (None, *range(count if count > 1 else 0)):
            for name, change in changes.items():
                place = itertools.count()
                changed = each(given, lambda t, c=change, w=which, p=place: c(t) if w in (None, next(p)) else t)
                yield f"{name} of {'all' if which is None else which}", *changed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [c for c in CASES if c.op not in ABOUT_STRIDES], ids=str)
def test_cpu_refuses_what_meta_refuses(case: OperatorCase) -> None:
    op = find(case.op)
    accepted = []
    for name, args, kwargs in misfits(case):
        try:
            op(*on_meta(args), **on_meta(kwargs))
        except NoDataError:
            continue
        except Exception as error:  # noqa: BLE001 - any refusal
            with contextlib.suppress(Exception):
                op(*args, **kwargs)
                accepted.append(f"{name}: {error}")
    assert not accepted
