"""Calls under vmap: one sample of a case as a function of batches, and what the loop over the examples gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import turnout
from turnout.dtypes import bool_
from turnout.errors import ShapeError
from turnout.operators.values import flat
from turnout.registry import REGISTRY
from turnout_conformance.cases import ABOUT_STRIDES, OperatorCase, Sample, T, Vectors, build, close
from turnout_conformance.comparing import numbers
from turnout_conformance.making import of_each_kind, samples_of_kinds
from turnout_conformance.pairwise import pairwise

SIZE = 3
MIXES = 32
# Their results have shapes that depend on values only where a mask does.
MASKED = ("index.Tensor", "masked_select")
# Their last tensor is asked for its numbers, so it must be the same for all examples.
SHARED = ("narrow.Tensor", "tensor_split.tensor_indices_or_sections", "repeat_interleave.self_Tensor")
BY_MEMORY = ("as_strided", "as_strided_copy")
Mix = tuple[int | None, ...]  # in_dims


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


def choices(op: str, tensors: list[T]) -> tuple[tuple[int | None, ...], ...]:
    """The in_dims that batches of such examples can have, for each tensor."""
    found = [tuple(d for d in (0, 1, -1, None) if d is None or d < 1 or np.ndim(t.data)) for t in tensors]
    if op in SHARED:
        found[-1] = (None,)
    return tuple(found)


def mixes(op: str, tensors: list[T]) -> list[Mix]:
    """in_dims for the tensors of a call: all combinations for two tensors, else enough for all pairs of choices."""
    if op in BY_MEMORY:  # the loop's examples have storages of their own only where the batch is in front
        return [(0,)]
    factors = choices(op, tensors)
    if len(tensors) <= 2:
        return [mix for mix in itertools.product(*factors) if any(d is not None for d in mix)]
    return rows(factors, 1)


@cache
def rows(factors: tuple[tuple[int | None, ...], ...], levels: int) -> list[Mix]:
    """in_dims of several levels one after the other, in each of which there is a batch: enough for all pairs of choices, but at
    most `MIXES`."""
    count = len(factors) // levels

    def has_batches(row: Mix) -> bool:
        return all(row[at : at + count] != (None,) * count for at in range(0, len(row), count))

    return pairwise(*factors, allowed=has_batches, most=MIXES)


def tried(case: OperatorCase, call: Call) -> list[Mix]:
    """The in_dims that a call is tried with: all where its dtype stands for its kind, one where it is another width."""
    found = mixes(case.op, call.tensors)
    return found if call.dtype in of_each_kind(case, "cpu") else found[:1]


def levels(op: str, tensors: list[T]) -> list[tuple[Mix, Mix]]:
    """(outer, inner) in_dims of two nested vmaps: pairs of choices over all tensors and both levels."""
    if op in BY_MEMORY:
        return [((0,), (0,))]
    count = len(tensors)
    return [(row[:count], row[count:]) for row in rows(choices(op, tensors) * 2, 2)]


class Call:
    """One sample of a case, as a function of its tensors alone."""

    def __init__(self, case: OperatorCase, sample: Sample, dtype: str) -> None:
        self.op = REGISTRY.find(f"aten::{case.op}")
        self.sample = sample
        self.dtype = dtype
        self.tolerance = case.tolerance
        self.vectors = case.vectors
        # The samples of random operators give one result whatever is drawn.
        self.randomness = "same" if turnout.Tag.nondeterministic_seeded in self.op.tags or "dropout" in case.op else "error"
        self.tensors = tensors_of([list(sample.args), sample.kwargs])
        self.examples = [examples_of(t, dtype) for t in self.tensors]
        self.by_strides = case.op in ABOUT_STRIDES
        self._loops: dict[tuple[tuple[Any, ...], ...], Loop] = {}

    def __call__(self, *tensors: turnout.Tensor) -> Any:
        rest = iter(tensors)
        args, kwargs = build([list(self.sample.args), self.sample.kwargs], self.dtype, lambda data, dtype: next(rest))
        return self.op(*args, **kwargs)

    def batches(self, mix: Mix, device: str = "cpu") -> list[turnout.Tensor]:
        return [
            turnout.from_numpy(np.stack(examples, d) if d is not None else examples[0].copy()).to(device)
            for examples, d in zip(self.examples, mix, strict=True)
        ]

    def example(self, batches: list[turnout.Tensor], mix: Mix, i: int) -> list[turnout.Tensor]:
        found = [x if d is None else x.select(d, i) for x, d in zip(batches, mix, strict=True)]
        # as_strided sees an example as if it had a storage of its own, with the strides that it has in the batch.
        return [x.clone() for x in found] if self.op.name.startswith("as_strided") else found

    def once(self, mixes: tuple[Mix, ...], sizes: tuple[int, ...], loop: Callable[[], list[Any]]) -> Loop:
        """What a loop over the examples gives. It is run once for all mixes of the same examples, unless the operator sees where
        in memory a batch has its dim."""
        key = mixes if self.by_strides else tuple(tuple(d is None for d in mix) for mix in mixes)
        if key not in self._loops:
            self._loops[key] = Loop(loop(), sizes, self.vectors)
        return self._loops[key]

    def compare(self, found: Any, loop: Loop) -> None:
        """The results of vmap are those of a loop."""
        results = flat(found)
        assert len(results) == len(loop.first)
        for one, expected in zip(results, loop.first, strict=True):
            assert one.dtype is expected.dtype
            assert one.device == expected.device
        for values, wanted in zip(numbers(results, self.vectors), loop.values, strict=True):
            assert close(np, values, wanted, self.tolerance)


class Loop:
    """The results of all examples, of as many as `sizes` say in nested loops, and those of the first one."""

    def __init__(self, results: list[Any], sizes: tuple[int, ...], vectors: Vectors) -> None:
        self.first = flat(results[0])
        columns = zip(*[numbers(flat(each), vectors) for each in results], strict=True)
        self.values = [np.stack(arrays).reshape(sizes + arrays[0].shape) for arrays in columns]


def calls(case: OperatorCase) -> Iterator[Call]:
    """The calls of all samples in one dtype of each kind, and of the first one in the others."""
    for sample, dtype in samples_of_kinds(case, "cpu"):
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
    return turnout.Tag.dynamic_output_shape in op.tags and op.name != "linalg_lstsq"  # all samples of it have full rank


def check(call: Call, mix: Mix, device: str) -> None:
    """vmap next to the loop over the examples, on one device."""
    batches = call.batches(mix, device)
    mapped = turnout.vmap(call, mix, randomness=call.randomness)
    if is_refused(call.op, any(t.dtype is bool_ and d is not None for t, d in zip(batches, mix, strict=True))):
        assert "depends on values" in str(raised(lambda: mapped(*batches)))
        return
    try:
        loop = call.once((mix,), (SIZE,), lambda: [call(*call.example(batches, mix, i)) for i in range(SIZE)])
    except ShapeError:  # view: not every layout can be seen in another shape
        assert isinstance(raised(lambda: mapped(*batches)), ShapeError)
        return
    call.compare(mapped(*batches), loop)
