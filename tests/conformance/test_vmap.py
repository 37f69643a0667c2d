"""Every operator case under vmap: what the loop over the examples gives, whichever arguments are batched along whichever dim."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import turnout
from operator_cases import CASES, OperatorCase, Sample, T, build, close
from turnout.errors import ShapeError
from turnout.registry import REGISTRY

SIZE = 3
MIXES = 32
# vmap cannot give results whose shapes depend on values.
REFUSED = {"nonzero", "nonzero_numpy", "argwhere", "bincount", "_unique2", "unique_dim", "unique_consecutive"}
# Their samples give one result whatever is drawn.
RANDOMNESS = {"dropout": "same", "native_dropout": "same"}


def tensors_of(value: Any) -> list[T]:
    """The tensors of a sample, in order."""
    if isinstance(value, T):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for v in value for t in tensors_of(v)]


def examples_of(tensor: T, dtype: str) -> list[np.ndarray]:
    """The tensor's data, and the same numbers in other orders: whatever holds for the values holds for all examples."""
    first = np.array(tensor.data, tensor.dtype or dtype)
    return [np.roll(first.reshape(-1), i).reshape(first.shape) for i in range(SIZE)]


def mixes(op: str, tensors: list[T]) -> list[tuple[int | None, ...]]:
    """in_dims for the tensors of a call: all of them for two tensors, else some, each time the same."""
    if op == "as_strided":
        return [(0,)]
    choices = [[d for d in (0, 1, -1, None) if d is None or d < 1 or np.ndim(t.data)] for t in tensors]
    every = [mix for mix in itertools.product(*choices) if any(d is not None for d in mix)]
    if len(tensors) <= 2 or len(every) <= MIXES:
        return every
    return random.Random(len(every)).sample(every, MIXES)


class Call:
    """One sample of a case, as a function of its tensors alone."""

    def __init__(self, case: OperatorCase, sample: Sample, dtype: str) -> None:
        self.op = REGISTRY.find(f"aten::{case.op}")
        self.sample = sample
        self.dtype = dtype
        self.tensors = tensors_of([list(sample.args), sample.kwargs])
        self.examples = [examples_of(t, dtype) for t in self.tensors]

    def __call__(self, *tensors: turnout.Tensor) -> Any:
        rest = iter(tensors)
        args, kwargs = build([list(self.sample.args), self.sample.kwargs], self.dtype, lambda data, dtype: next(rest))
        return self.op(*args, **kwargs)

    def batches(self, mix: tuple[int | None, ...]) -> list[turnout.Tensor]:
        return [
            turnout.from_numpy(np.stack(examples, d) if d is not None else examples[0].copy())
            for examples, d in zip(self.examples, mix, strict=True)
        ]

    def example(self, batches: list[turnout.Tensor], mix: tuple[int | None, ...], i: int) -> list[turnout.Tensor]:
        found = [x if d is None else x.select(d, i) for x, d in zip(batches, mix, strict=True)]
        # as_strided sees an example as if it had a storage of its own, with the strides that it has in the batch.
        return [x.clone() for x in found] if self.op.name == "as_strided" else found


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def compare(found: Any, loops: list[Any], tolerance: float) -> None:
    columns = list(zip(*[flat(loop) for loop in loops], strict=True))
    assert len(columns) == len(flat(found))
    for one, expected in zip(flat(found), columns, strict=True):
        assert one.dtype is expected[0].dtype
        assert close(np, one.numpy(), np.stack([e.numpy() for e in expected]), tolerance)


def calls(case: OperatorCase) -> Iterator[Call]:
    for dtype in case.dtypes:
        for sample in case.samples:
            call = Call(case, sample, dtype)
            # Without a number of classes, one_hot has to look for the largest index.
            if call.tensors and (case.op != "one_hot" or len(sample.args) == 2):
                yield call


def raised(function: Callable[[], Any]) -> Exception | None:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - whatever the loop raises
        return error
    return None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_vmap_gives_what_the_loop_gives(case: OperatorCase) -> None:
    for call in calls(case):
        for mix in mixes(case.op, call.tensors):
            batches = call.batches(mix)
            mapped = turnout.vmap(call, mix, randomness=RANDOMNESS.get(case.op, "error"))
            masks = any(t.dtype is turnout.bool and d is not None for t, d in zip(batches, mix, strict=True))
            if case.op in REFUSED or (case.op in ("index.Tensor", "masked_select") and masks):
                error = raised(lambda: mapped(*batches))  # noqa: B023
                assert "depends on values" in str(error)
                continue
            try:
                loops = [call(*call.example(batches, mix, i)) for i in range(SIZE)]
            except ShapeError:  # view: not every layout can be seen in another shape
                assert isinstance(raised(lambda: mapped(*batches)), ShapeError)  # noqa: B023
                continue
            compare(mapped(*batches), loops, case.tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_two_levels_give_what_two_loops_give(case: OperatorCase) -> None:
    for call in itertools.islice(calls(case), 2):
        if case.op in REFUSED or (
            case.op in ("index.Tensor", "masked_select") and any(t.dtype == "bool" for t in call.tensors)
        ):
            continue
        both = list(itertools.product(mixes(case.op, call.tensors), repeat=2))
        for outer, inner in random.Random(1).sample(both, min(len(both), MIXES)):
            given = [nested(*each) for each in zip(call.examples, outer, inner, strict=True)]
            mapped = turnout.vmap(turnout.vmap(call, inner, randomness="same"), outer, randomness="same")
            try:
                loops = [
                    [call(*call.example(row, inner, j)) for j in range(SIZE)]
                    for row in [call.example(given, outer, i) for i in range(2)]
                ]
            except ShapeError:
                assert isinstance(raised(lambda: mapped(*given)), ShapeError)  # noqa: B023
                continue
            found = flat(mapped(*given))
            for k, one in enumerate(found):
                expected = [[flat(each)[k].numpy() for each in row] for row in loops]
                assert close(np, one.numpy(), np.stack([np.stack(row) for row in expected]), case.tolerance)


def nested(examples: list[np.ndarray], outer: int | None, inner: int | None) -> turnout.Tensor:
    """Two levels of batch: the inner one put into the example, the outer one into that."""
    made = [examples[i] if inner is None else np.stack(np.roll(examples, i, 0), inner) for i in range(2)]
    return turnout.from_numpy(np.array(made[0] if outer is None else np.stack(made, outer)))


def test_no_standard_operator_runs_as_a_loop() -> None:
    from turnout_batched.kernels import _decide

    turnout.vmap(turnout.sin)(turnout.ones(2))
    looping = [
        op.qualified_name
        for op in REGISTRY.operators.values()
        if op.namespace == "aten" and op.is_defined and any(str(a.type).startswith("Tensor") for a in op.schema.arguments)
        and _decide(op)[1] == "loop"
    ]  # fmt: skip
    assert looping == []


def test_no_case_warned_of_a_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert turnout.vmap(turnout.cumsum, (0, None))(turnout.ones(2, 3), 0).shape == (2, 3)


@pytest.mark.parametrize("case", [c for c in CASES if "float32" in c.dtypes], ids=str)
def test_under_autocast_vmap_computes_in_the_dtypes_of_the_loop(case: OperatorCase) -> None:
    for sample in case.samples:
        call = Call(case, sample, "float32")
        if (
            not call.tensors
            or case.op in (*REFUSED, "one_hot")
            or (case.op in ("index.Tensor", "masked_select") and any(t.dtype == "bool" for t in call.tensors))
        ):
            continue
        mix = (0,) * len(call.tensors)
        batches = call.batches(mix)
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            expected = [t.dtype for t in flat(call(*call.example(batches, mix, 0)))]
            found = turnout.vmap(call, mix, randomness=RANDOMNESS.get(case.op, "error"))(*batches)
        assert [t.dtype for t in flat(found)] == expected
