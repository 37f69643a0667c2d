"""Every operator case on devices with memory of their own, against cpu: values, shapes, dtypes, layouts, errors, gradients.

What cpu gives is compared with NumPy in `test_forward`. A device that is not there is skipped with the reason, and a failure
where `--require-backend` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import operator_cases
import turnout
from operator_cases import ABOUT_STRIDES, CASES, OperatorCase
from turnout import autograd
from turnout.dtypes import dtype_named
from turnout.operators import Operator
from turnout.registry import REGISTRY

DEVICES = ("opencl", "cuda")

Make = Callable[[Any, str], turnout.Tensor]
each_case = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, need_device: Callable[[str], None]) -> str:
    need_device(request.param)
    name: str = request.param
    return name


# ---- the same tensors in several layouts


def row_major(device: str) -> Make:
    return lambda data, dtype: turnout.tensor(data, dtype=dtype_named(dtype)).to(device)


def column_major(device: str) -> Make:
    def make(data: Any, dtype: str) -> turnout.Tensor:
        plain = turnout.from_numpy(np.array(data, dtype))
        order = list(reversed(range(plain.ndim)))
        return plain.permute(order).contiguous().to(device).permute(order)

    return make


def spread(device: str) -> Make:
    """Every second element of twice as much memory, the dims reversed."""

    def make(data: Any, dtype: str) -> turnout.Tensor:
        plain = turnout.from_numpy(np.array(data, dtype))
        order = list(reversed(range(plain.ndim)))
        room = turnout.zeros([2 * n for n in reversed(plain.shape)], dtype=plain.dtype, device=device)
        view = room[(..., *(slice(None, None, 2) for _ in plain.shape))].permute(order)
        return view.copy_(plain.to(device))

    return make


LAYOUTS = {"row-major": row_major, "column-major": column_major, "spread": spread}


# ---- comparing


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def outcome(call: Callable[[], Any]) -> Any:
    """The results as a list, or the class of the error."""
    try:
        return flat(call())
    except Exception as error:  # noqa: BLE001 - whichever cpu raises, the other device must raise
        return type(error)


def layout(tensor: turnout.Tensor) -> list[int]:
    return [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1] if tensor.numel() > 1 else []


def check(case: OperatorCase, device: str, found: Any, expected: Any, *, layouts: bool = True) -> None:
    if isinstance(expected, type) or isinstance(found, type):
        assert found == expected
        return
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        if not isinstance(want, turnout.Tensor):
            assert got == want
            continue
        assert (got.device.type, got.dtype, got.shape) == (device, want.dtype, want.shape)
        if layouts:
            assert layout(got) == layout(want)
        assert operator_cases.close(np, got.cpu().numpy(), want.numpy(), case.tolerance), f"got {got}, expected {want}"


def pairs(case: OperatorCase, dtype: str, make: Callable[[str], Make], device: str) -> Iterator[tuple[Any, Any]]:
    """(args, kwargs) of each sample on the device and on cpu."""
    here, there = operator_cases.calls(case, dtype, make(device)), operator_cases.calls(case, dtype, make("cpu"))
    return zip(here, there, strict=True)


def find(name: str) -> Operator:
    return REGISTRY.find(f"aten::{name}")


def form(op: Operator, kind: str) -> Operator | None:
    """The in-place or out form of a functional operator: same arguments, other kind."""
    wanted = [(a.name, a.type.canonical) for a in op.schema.arguments]
    for name in (op.name, f"{op.name}_"):
        for other in REGISTRY.packet("aten", name) or ():
            outs = {a.name for a in other.schema.out_arguments}
            theirs = [(a.name, a.type.canonical) for a in other.schema.arguments if a.name not in outs]
            if other.schema.kind == kind and theirs == wanted:
                return other
    return None


# ---- the tests


@pytest.mark.parametrize("arrangement", LAYOUTS)
@each_case
def test_operator_gives_what_cpu_gives(case: OperatorCase, device: str, arrangement: str) -> None:
    if arrangement != "row-major" and case.op in ABOUT_STRIDES:
        return
    op = find(case.op)
    for dtype in case.dtypes:
        for (args, kwargs), (cpu_args, cpu_kwargs) in pairs(case, dtype, LAYOUTS[arrangement], device):
            before = [t.tolist() for t in flat([*args, *kwargs.values()]) if isinstance(t, turnout.Tensor)]
            found = outcome(lambda a=args, k=kwargs: op(*a, **k))
            expected = outcome(lambda a=cpu_args, k=cpu_kwargs: op(*a, **k))
            check(case, device, found, expected, layouts=arrangement != "spread")
            after = [t.tolist() for t in flat([*args, *kwargs.values()]) if isinstance(t, turnout.Tensor)]
            assert str(before) == str(after), "a functional operator changed its input"


@each_case
def test_in_place_form_writes_what_cpu_writes(case: OperatorCase, device: str) -> None:
    inplace = form(find(case.op), "inplace")
    if inplace is None:
        return
    for dtype in case.dtypes:
        for make in (row_major, spread):
            for (args, kwargs), (cpu_args, cpu_kwargs) in pairs(case, dtype, make, device):
                found = outcome(lambda a=args, k=kwargs: inplace(*a, **k))
                expected = outcome(lambda a=cpu_args, k=cpu_kwargs: inplace(*a, **k))
                check(case, device, found, expected, layouts=False)
                if not isinstance(found, type):
                    assert found[0] is args[0]
                    assert args[0].version() == cpu_args[0].version()


@each_case
def test_out_form_fills_what_it_is_given(case: OperatorCase, device: str) -> None:
    op = find(case.op)
    out = form(op, "out")
    if out is None:
        return
    names = [a.name for a in out.schema.out_arguments]
    lists = any(a.type.canonical.endswith("[]") for a in out.schema.out_arguments)
    for dtype in case.dtypes:
        for (args, kwargs), (cpu_args, cpu_kwargs) in pairs(case, dtype, row_major, device):
            expected = outcome(lambda a=cpu_args, k=cpu_kwargs: op(*a, **k))
            if isinstance(expected, type):
                continue
            for shape in ((0,), None):
                given = [
                    turnout.empty(e.shape if shape is None else shape, dtype=e.dtype, device=device) for e in expected
                ]
                outputs = [given] if lists else given
                returned = out(*args, **kwargs, **dict(zip(names, outputs, strict=True)))
                # The out forms of operators that return lists return nothing.
                assert returned is None or all(r is g for r, g in zip(flat(returned), given, strict=True))
                check(case, device, given, expected, layouts=False)  # an output keeps its own


def gradients(op: Operator, args: Any, kwargs: Any) -> list[Any]:
    """The gradients of the sum of all outputs, of every leaf that requires one; None for those that have none."""
    leaves = [t for t in flat([*args, *kwargs.values()]) if isinstance(t, turnout.Tensor) and t.requires_grad]
    outputs = [t for t in flat(op(*args, **kwargs)) if isinstance(t, turnout.Tensor) and t.requires_grad]
    if not leaves or not outputs:
        return []
    return list(autograd.grad(outputs, leaves, [turnout.ones_like(t) for t in outputs], allow_unused=True))


def leaf(device: str) -> Make:
    def make(data: Any, dtype: str) -> turnout.Tensor:
        made = row_major(device)(data, dtype)
        return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made

    return make


@pytest.mark.parametrize("case", [c for c in CASES if c.differentiable and "float64" in c.dtypes], ids=str)
def test_gradients_are_those_of_cpu(case: OperatorCase, device: str) -> None:
    op = find(case.op)
    dtype = "float64" if any(d.startswith("float") for d in case.dtypes) else "complex128"
    for (args, kwargs), (cpu_args, cpu_kwargs) in pairs(case, dtype, leaf, device):
        found = outcome(lambda a=args, k=kwargs: gradients(op, a, k))
        expected = outcome(lambda a=cpu_args, k=cpu_kwargs: gradients(op, a, k))
        check(case, device, found, expected, layouts=False)


def test_the_suite_notices_a_wrong_result(device: str) -> None:
    case = next(c for c in CASES if c.op == "exp")
    x = turnout.tensor([1.0, 2.0])
    with pytest.raises(AssertionError):
        check(case, device, [x.to(device).log1p()], [x.exp()])
