"""Calls under vmap: one sample of a case as a function of batches, and what the loop over the examples gives."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import turnout
from turnout.dtypes import bool_
from turnout.errors import ShapeError
from turnout.registry import REGISTRY
from turnout_conformance.cases import OperatorCase, Sample, T, Vectors, build, close
from turnout_conformance.comparing import flat, numbers

SIZE = 3
MIXES = 32
# Their results have shapes that depend on values only where a mask does.
MASKED = ("index.Tensor", "masked_select")
# Their last tensor is asked for its numbers, so it must be the same for all examples.
SHARED = ("narrow.Tensor", "tensor_split.tensor_indices_or_sections", "repeat_interleave.self_Tensor")
BY_MEMORY = ("as_strided", "as_strided_copy")


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


def choices(tensor: T) -> list[int | None]:
    """The in_dims that a batch of such examples can have."""
    return [d for d in (0, 1, -1, None) if d is None or d < 1 or np.ndim(tensor.data)]


def mixes(op: str, tensors: list[T]) -> list[tuple[int | None, ...]]:
    """in_dims for the tensors of a call: all combinations for two tensors, else enough for all pairs of choices."""
    if op in BY_MEMORY:  # the loop's examples have storages of their own only where the batch is in front
        return [(0,)]
    factors = [choices(t) for t in tensors]
    if op in SHARED:
        factors[-1] = [None]
    if len(tensors) <= 2:
        return [mix for mix in itertools.product(*factors) if any(d is not None for d in mix)]
    return pairwise(factors, lambda mix: any(d is not None for d in mix))


def pairwise(factors: list[list[Any]], allowed: Callable[[Any], bool]) -> list[tuple[Any, ...]]:
    """Up to `MIXES` rows, one choice of each factor; any two choices of two factors meet in a row. Each time the same."""
    draw = random.Random(len(factors))
    missing = {(i, a, j, b) for i, j in itertools.combinations(range(len(factors)), 2) for a in factors[i] for b in factors[j]}
    rows: list[tuple[Any, ...]] = []
    while missing and len(rows) < MIXES:
        i, a, j, b = min(missing, key=repr)
        tries = [tuple(draw.choice(f) for f in factors) for _ in range(40)]
        tries = [row for row in ((*r[:i], a, *r[i + 1 : j], b, *r[j + 1 :]) for r in tries) if allowed(row)]
        if not tries:
            missing.remove((i, a, j, b))
            continue
        best = max(tries, key=lambda row: len(missing & met(row)))
        rows.append(best)
        missing -= met(best)
    return rows


def met(row: tuple[Any, ...]) -> set[tuple[int, Any, int, Any]]:
    """The pairs of choices in a row."""
    return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}


def levels(op: str, tensors: list[T]) -> list[tuple[Any, Any]]:
    """(outer, inner) in_dims of two nested vmaps: pairs of choices over all tensors and both levels."""
    if op in BY_MEMORY:
        return [((0,), (0,))]
    count = len(tensors)
    factors = [choices(t) for t in tensors]
    if op in SHARED:
        factors[-1] = [None]
    rows = pairwise(factors * 2, lambda row: any(d is not None for d in row[:count]) and any(d is not None for d in row[count:]))
    return [(row[:count], row[count:]) for row in rows]


class Call:
    """One sample of a case, as a function of its tensors alone."""

    def __init__(self, case: OperatorCase, sample: Sample, dtype: str) -> None:
        self.op = REGISTRY.find(f"aten::{case.op}")
        self.sample = sample
        self.dtype = dtype
        self.tolerance = case.tolerance
        self.vectors = case.vectors
        # The samples of random operators give one result whatever is drawn.
        self.randomness = "same" if "nondeterministic_seeded" in self.op.tags or "dropout" in case.op else "error"
        self.tensors = tensors_of([list(sample.args), sample.kwargs])
        self.examples = [examples_of(t, dtype) for t in self.tensors]

    def __call__(self, *tensors: turnout.Tensor) -> Any:
        rest = iter(tensors)
        args, kwargs = build([list(self.sample.args), self.sample.kwargs], self.dtype, lambda data, dtype: next(rest))
        return self.op(*args, **kwargs)

    def batches(self, mix: tuple[int | None, ...], device: str = "cpu") -> list[turnout.Tensor]:
        return [
            turnout.from_numpy(np.stack(examples, d) if d is not None else examples[0].copy()).to(device)
            for examples, d in zip(self.examples, mix, strict=True)
        ]

    def example(self, batches: list[turnout.Tensor], mix: tuple[int | None, ...], i: int) -> list[turnout.Tensor]:
        found = [x if d is None else x.select(d, i) for x, d in zip(batches, mix, strict=True)]
        # as_strided sees an example as if it had a storage of its own, with the strides that it has in the batch.
        return [x.clone() for x in found] if self.op.name.startswith("as_strided") else found


def compare(found: Any, loops: list[Any], tolerance: float, vectors: Vectors = ()) -> None:
    columns = list(zip(*[flat(loop) for loop in loops], strict=True))
    assert len(columns) == len(flat(found))
    for one, expected in zip(flat(found), columns, strict=True):
        assert one.dtype is expected[0].dtype
        assert one.device == expected[0].device
    apart = [np.stack(arrays) for arrays in zip(*[numbers(flat(loop), vectors) for loop in loops], strict=True)]
    for values, wanted in zip(numbers(flat(found), vectors), apart, strict=True):
        assert close(np, values, wanted, tolerance)


def calls(case: OperatorCase) -> Iterator[Call]:
    for dtype in case.dtypes:
        for sample in case.samples:
            call = Call(case, sample, dtype)
            if is_mapped(call):
                yield call


def is_mapped(call: Call) -> bool:
    """Whether vmap is tried: without a number of classes, one_hot has to look for the largest index."""
    return bool(call.tensors) and (call.op.name != "one_hot" or len(call.sample.args) == 2)


def raised(function: Callable[[], Any]) -> Exception | None:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - whatever the loop raises
        return error
    return None


def is_refused(op: Any, masks: bool) -> bool:
    """Whether the shape of a result depends on values; `masks` says that there is a mask for each example."""
    if op.qualified_name.removeprefix("aten::") in MASKED:
        return masks
    if op.name in ("one_hot", "nonzero_numpy"):  # samples of one_hot without a number of classes are left out
        return bool(op.name == "nonzero_numpy")
    return "dynamic_output_shape" in op.tags and op.name != "linalg_lstsq"  # all samples of it have full rank


def check(call: Call, mix: tuple[int | None, ...], device: str) -> None:
    """vmap next to the loop over the examples, on one device."""
    batches = call.batches(mix, device)
    mapped = turnout.vmap(call, mix, randomness=call.randomness)
    if is_refused(call.op, any(t.dtype is bool_ and d is not None for t, d in zip(batches, mix, strict=True))):
        assert "depends on values" in str(raised(lambda: mapped(*batches)))
        return
    try:
        loops = [call(*call.example(batches, mix, i)) for i in range(SIZE)]
    except ShapeError:  # view: not every layout can be seen in another shape
        assert isinstance(raised(lambda: mapped(*batches)), ShapeError)
        return
    compare(mapped(*batches), loops, call.tolerance, call.vectors)
