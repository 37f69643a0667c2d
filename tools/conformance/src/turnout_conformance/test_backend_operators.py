"""Every operator case on the device, against cpu: values, shapes, dtypes, layouts, errors, and the functionalities above.

What cpu gives is compared with NumPy by the repository's own tests. What it raises, the device must raise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import turnout
from turnout.dtypes import bool_, dtype_named
from turnout.operators import Operator
from turnout.operators.values import flat
from turnout_conformance import batches
from turnout_conformance.cases import ABOUT_STRIDES, CASES, FAMILIES, OperatorCase, Sample
from turnout_conformance.comparing import Raised, check, facts, find, form, gradients, on_meta, outcome, promised, shown, tensors
from turnout_conformance.making import (
    LAYOUTS,
    Make,
    arguments,
    dtypes_of,
    leaf,
    of_each_kind,
    one_memory,
    row_major,
    samples,
    samples_of_kinds,
    spread,
)
from turnout_conformance.replays import call_of, check_replays, gradients_of

# A kernel that refuses what its operator accepts is slow, not wrong; here it is a failure.
pytestmark = pytest.mark.filterwarnings("error::turnout.errors.KernelWarning")
each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])


def nonempty(found: Iterator[tuple[Sample, str]], device: str) -> Iterator[tuple[Sample, str]]:
    """The samples; the test is skipped if there are none."""
    left = list(found)
    if not left:
        pytest.skip(f"{device} has no tensors of these dtypes")
    return iter(left)


def few(case: OperatorCase, device: str) -> Iterator[tuple[Sample, str]]:
    """The samples in one dtype of each kind, for what does not depend on the width."""
    return nonempty(samples(case, device, of_each_kind(case, device)), device)


def fitting(case: OperatorCase, device: str, only: tuple[str, ...]) -> Iterator[tuple[Sample, str]]:
    """The samples in some dtypes whose results the device can hold."""
    return nonempty((each for each in samples(case, device, only) if representable(case, *each, device)), device)


def both(sample: Sample, dtype: str, make: Callable[[str], Make], device: str) -> tuple[Any, Any]:
    """(args, kwargs) on the device and on cpu."""
    return arguments(sample, dtype, make(device)), arguments(sample, dtype, make("cpu"))


# ---- the forms of an operator


@pytest.mark.parametrize("arrangement", LAYOUTS)
@each_case
def test_operator_gives_what_cpu_gives(case: OperatorCase, turnout_device: str, arrangement: str) -> None:
    if arrangement != "row-major" and case.op in ABOUT_STRIDES:
        return
    op = find(case.op)
    every, kinds = arrangement == "row-major", of_each_kind(case, turnout_device)
    for sample, dtype in nonempty(samples_of_kinds(case, turnout_device), turnout_device) if every else few(case, turnout_device):
        (args, kwargs), (cpu_args, cpu_kwargs) = both(sample, dtype, LAYOUTS[arrangement], turnout_device)
        if not every and all(is_plain(t) for t in tensors([*args, *kwargs.values()])):
            continue  # the call of another test
        inputs = shown([*cpu_args, *cpu_kwargs.values()])
        found = outcome(op, *args, **kwargs)
        expected = outcome(op, *cpu_args, **cpu_kwargs)
        check(found, expected, turnout_device, case.tolerance, layouts=arrangement != "spread", vectors=case.vectors)
        assert inputs == shown([*args, *kwargs.values()]), "a functional operator changed its input"
        if every and not isinstance(found, Raised) and not isinstance(expected, Raised):
            promise = promised(op, args, kwargs)
            assert promise in (None, facts(found)), f"{turnout_device} gave {facts(found)}, and meta says {promise}"
            if dtype in kinds and not op.schema.is_view and shares_memory(op, found, args, kwargs, inputs):
                assert shares_memory(op, expected, cpu_args, cpu_kwargs, inputs), "a result shares memory with another tensor"


SEARCHING = ("special", "large")


@pytest.mark.parametrize("case", [case for case in CASES if not case.sets.keys().isdisjoint(SEARCHING)], ids=str)
def test_special_values_and_large_arrays_give_what_cpu_gives(case: OperatorCase, turnout_device: str) -> None:
    """Infinities and NaN in each operand, and more elements than one block of a kernel has: in no sample of the others."""
    op = find(case.op)
    calls: list[tuple[Sample, str]] = []
    for each in (each for name in SEARCHING for each in case.sets.get(name, ())):
        held = [dtype for dtype in ("float32", *each.dtypes) if dtype in each.dtypes and dtype in dtypes_of(turnout_device)]
        calls += [(sample, dtype) for sample in each.samples[:1] for dtype in held[:1]]
    for sample, dtype in nonempty(iter(calls), turnout_device):
        (args, kwargs), (cpu_args, cpu_kwargs) = both(sample, dtype, row_major, turnout_device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found, expected = outcome(op, *args, **kwargs), outcome(op, *cpu_args, **cpu_kwargs)
        check(found, expected, turnout_device, case.tolerance, layouts=False, vectors=case.vectors)


def is_plain(tensor: turnout.Tensor) -> bool:
    """Whether the tensor is what it is in row-major order: it has one dim at most, and no gaps."""
    return tensor.ndim == 0 or (tensor.ndim == 1 and tensor.stride() == (1,))


def shares_memory(op: Operator, results: list[Any], args: Any, kwargs: Any, inputs: str) -> bool:
    """Whether writing into the results changes the inputs, which `inputs` shows, or the next call changes the results."""
    written = [t for t in tensors(results) if t.numel() and 0 not in t.stride()]
    for result in written:
        result.fill_(7)
    if inputs != shown([*args, *kwargs.values()]):
        return True
    op(*args, **kwargs)
    return shown(written) != shown([turnout.full(t.shape, 7, dtype=t.dtype, device="cpu") for t in written])


@each_case
def test_in_place_form_writes_what_cpu_writes(case: OperatorCase, turnout_device: str) -> None:
    inplace = form(find(case.op), "inplace")
    if inplace is None:
        return
    for sample, dtype in few(case, turnout_device):
        for make in (row_major, spread, one_memory):
            (args, kwargs), (cpu_args, cpu_kwargs) = both(sample, dtype, make, turnout_device)
            before = shown([*cpu_args[1:], *cpu_kwargs.values()])
            found = outcome(inplace, *args, **kwargs)
            expected = outcome(inplace, *cpu_args, **cpu_kwargs)
            check(found, expected, turnout_device, case.tolerance, layouts=False)
            assert before == shown([*args[1:], *kwargs.values()]), "it changed another argument than self"
            if isinstance(found, Raised):
                assert shown(args[0]) == shown(cpu_args[0]), "it raised, and changed self"
            else:
                assert found[0] is args[0]
                assert args[0].version() == cpu_args[0].version(), "the version is stale"


def spoiled(like: turnout.Tensor, device: str) -> turnout.Tensor:
    """An output on the device that holds nothing of the result yet."""
    wrong = like.logical_not() if like.dtype is bool_ else turnout.full_like(like, 77)
    return wrong.contiguous().to(device)


@each_case
def test_out_form_fills_what_it_is_given(case: OperatorCase, turnout_device: str) -> None:
    op = find(case.op)
    out = form(op, "out")
    if out is None:
        return
    names = [a.name for a in out.schema.out_arguments]
    for sample, dtype in few(case, turnout_device):
        (args, kwargs), (cpu_args, cpu_kwargs) = both(sample, dtype, row_major, turnout_device)
        expected = outcome(op, *cpu_args, **cpu_kwargs)
        if isinstance(expected, Raised) or {t.dtype.name for t in tensors(expected)} - dtypes_of(turnout_device):
            continue
        for empty in (True, False):
            given = [
                turnout.empty(0, dtype=e.dtype, device=turnout_device) if empty else spoiled(e, turnout_device) for e in expected
            ]
            returned = flat(out(*args, **kwargs, **dict(zip(names, given, strict=True))))
            assert all(r is g for r, g in zip(returned, given, strict=True))
            # An output keeps its own layout.
            check(given, expected, turnout_device, case.tolerance, layouts=False, vectors=case.vectors)


# ---- the functionalities above


def precise(case: OperatorCase, device: str) -> str:
    """The dtype in which gradients of a case are compared."""
    if not any(name.startswith("float") for name in case.dtypes):
        return "complex128"
    return "float64" if "float64" in dtypes_of(device) else "float32"


@pytest.mark.parametrize("case", [c for c in CASES if c.differentiable and "float64" in c.dtypes], ids=str)
def test_gradients_are_those_of_cpu(case: OperatorCase, turnout_device: str) -> None:
    op = find(case.op)
    for sample, dtype in nonempty(samples(case, turnout_device, (precise(case, turnout_device),)), turnout_device):
        (args, kwargs), (cpu_args, cpu_kwargs) = both(sample, dtype, leaf, turnout_device)
        found = outcome(gradients, op, args, kwargs, case.vectors)
        expected = outcome(gradients, op, cpu_args, cpu_kwargs, case.vectors)
        check(found, expected, turnout_device, case.tolerance, layouts=False)


def representable(case: OperatorCase, sample: Sample, dtype: str, device: str) -> bool:
    """Whether the device has the dtypes of the call's results."""
    args, kwargs = arguments(sample, dtype, row_major("cpu"))
    results = outcome(find(case.op), *args, **kwargs)
    return {t.dtype.name for t in tensors(results)} <= dtypes_of(device)


@each_case
def test_vmap_gives_what_the_loop_gives(case: OperatorCase, turnout_device: str) -> None:
    calls = [batches.Call(case, *each) for each in fitting(case, turnout_device, of_each_kind(case, turnout_device))]
    for number, call in enumerate(filter(batches.is_mapped, calls)):
        found = batches.mixes(case.op, call.tensors)
        mixes = found[:: max(len(found) // 4, 1)]  # rules see no device: the first sample tries several, others one, in turn
        for mix in mixes if number == 0 else [mixes[number % len(mixes)]]:
            batches.check(call, mix, turnout_device)


@each_case
def test_a_replay_gives_what_the_operator_gives(case: OperatorCase, turnout_device: str) -> None:
    given = fitting(case, turnout_device, of_each_kind(case, turnout_device))
    check_replays(call_of(case), given, row_major(turnout_device))


@pytest.mark.parametrize("case", [c for c in CASES if c.differentiable and "float32" in c.dtypes], ids=str)
def test_a_replay_gives_the_gradients_of_the_operator(case: OperatorCase, turnout_device: str) -> None:
    check_replays(gradients_of(case), fitting(case, turnout_device, ("float32",)), leaf(turnout_device))


# ---- by families, since little of it depends on the operator


@each_family
def test_autocast_computes_in_the_dtypes_that_meta_says(family: ModuleType, turnout_device: str) -> None:
    lower = next((name for name in ("bfloat16", "float16") if name in dtypes_of(turnout_device)), None)
    if lower is None or turnout_device == "cpu":  # cpu has rules of its own: tests/plugins
        pytest.skip(f"{turnout_device} has no lower precision, or rules of its own")
    for case in family.CASES:
        if "float32" not in case.dtypes or not case.op.isidentifier():
            continue
        for sample, dtype in list(samples(case, turnout_device, ("float32",)))[:1]:
            args, kwargs = arguments(sample, dtype, row_major(turnout_device))
            assert_autocasts(find(case.op), args, kwargs, turnout_device, lower)


def assert_autocasts(op: Operator, args: Any, kwargs: Any, device: str, lower: str) -> None:
    """The dtypes of a call under autocast are those of meta, which has the same rules."""
    with turnout.autocast("meta", dtype=dtype_named(lower)):
        expected = outcome(op, *on_meta(args), **on_meta(kwargs))
    if isinstance(expected, Raised):
        return
    with turnout.autocast(device, dtype=dtype_named(lower)):
        found = outcome(op, *args, **kwargs)
    assert not isinstance(found, Raised), f"{op.qualified_name} under autocast: {found}"
    assert facts(found) == facts(expected), op.qualified_name


@each_family
def test_operators_refuse_what_cpu_refuses(family: ModuleType, turnout_device: str) -> None:
    for case in family.CASES:
        for sample, dtype in list(samples(case, turnout_device))[:1]:
            (args, kwargs), (cpu_args, cpu_kwargs) = both(sample, dtype, row_major, turnout_device)
            place = next((i for i, a in enumerate(args) if isinstance(a, turnout.Tensor) and a.dim()), None)
            if place is None or case.op in ABOUT_STRIDES:
                continue
            for change in (lambda t: t.unsqueeze(0), lambda t: t[1:]):
                mine = [change(a) if i == place else a for i, a in enumerate(args)]
                theirs = [change(a) if i == place else a for i, a in enumerate(cpu_args)]
                expected = outcome(find(case.op), *theirs, **cpu_kwargs)
                if isinstance(expected, Raised):
                    found = outcome(with_numbers, find(case.op), *mine, **kwargs)
                    check(found, expected, turnout_device, case.tolerance)


def with_numbers(op: Operator, *args: Any, **kwargs: Any) -> list[Any]:
    """The results of a call, with their numbers: a device that computes later notices a wrong index when they are read."""
    found = flat(op(*args, **kwargs))
    shown(found)
    return found


def test_the_kit_notices_a_wrong_result(turnout_device: str) -> None:
    x = turnout.tensor([1.0, 2.0], device="cpu")
    with pytest.raises(AssertionError):
        check([x.to(turnout_device).log1p()], [x.exp()], turnout_device, 1e-9)
