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
    missing = {
        (i, a, j, b) for i, j in itertools.combinations(range(len(factors)), 2) for a in factors[i] for b in factors[j]
    }
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
    rows = pairwise(
        factors * 2,
        lambda row: any(d is not None for d in row[:count]) and any(d is not None for d in row[count:]),
    )
    return [(row[:count], row[count:]) for row in rows]


class Call:
    """One sample of a case, as a function of its tensors alone."""

    def __init__(self, case: OperatorCase, sample: Sample, dtype: str) -> None:
        self.op = REGISTRY.find(f"aten::{case.op}")
        self.sample = sample
        self.dtype = dtype
        self.tolerance = case.tolerance
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


def flat(value: Any) -> list[Any]:
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def compare(found: Any, loops: list[Any], tolerance: float) -> None:
    columns = list(zip(*[flat(loop) for loop in loops], strict=True))
    assert len(columns) == len(flat(found))
    for one, expected in zip(flat(found), columns, strict=True):
        assert one.dtype is expected[0].dtype
        assert one.device == expected[0].device
        assert close(np, one.cpu().numpy(), np.stack([e.cpu().numpy() for e in expected]), tolerance)


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
            check(call, mix, "cpu")


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
    if is_refused(call.op, any(t.dtype is turnout.bool and d is not None for t, d in zip(batches, mix, strict=True))):
        assert "depends on values" in str(raised(lambda: mapped(*batches)))
        return
    try:
        loops = [call(*call.example(batches, mix, i)) for i in range(SIZE)]
    except ShapeError:  # view: not every layout can be seen in another shape
        assert isinstance(raised(lambda: mapped(*batches)), ShapeError)
        return
    compare(mapped(*batches), loops, call.tolerance)


@pytest.mark.parametrize("device", ["opencl", "cuda"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_vmap_on_other_devices_gives_what_the_loop_there_gives(
    case: OperatorCase, device: str, need_device: Callable[[str], None]
) -> None:
    need_device(device)
    for call in calls(case):
        found = mixes(case.op, call.tensors)
        for mix in found[:: max(len(found) // 4, 1)]:
            check(call, mix, device)


def wrong_for(op: Any, condition: Callable[..., bool]) -> turnout.library.Library:
    """The operator's own rule, which adds 1 to the result where the arguments are so."""
    from turnout_batched.kernels import decide

    turnout.vmap(turnout.sin)(turnout.ones(2))
    right = decide(op)[0]
    library = turnout.library.Library("aten", "IMPL")
    library.impl(
        op.qualified_name.removeprefix("aten::"),
        lambda *args: right(0, *args) + 1 if condition(*args) else right(0, *args),
        "Batched",
    )
    return library


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("sin", lambda x: x.array.bdim == x.ndim > 0),
        ("mv", lambda m, v: not hasattr(v.array, "bdim")),
        ("mv", lambda m, v: not hasattr(m.array, "bdim")),
        ("index_select", lambda x, dim, index: not hasattr(index.array, "bdim")),
        ("where.self", lambda c, x, y: hasattr(c.array, "bdim") and c.array.bdim == 1 and not hasattr(y.array, "bdim")),
        ("mul.Tensor", lambda x, y: y.ndim == 0 and hasattr(y.array, "bdim")),
    ],
)  # fmt: skip
def test_the_suite_notices_a_rule_that_is_wrong_for_one_mix(name: str, condition: Any) -> None:
    case = next(c for c in CASES if c.op == name)
    with wrong_for(REGISTRY.find(f"aten::{name}"), condition), pytest.raises(AssertionError):
        test_vmap_gives_what_the_loop_gives(case)
    test_vmap_gives_what_the_loop_gives(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_two_levels_give_what_two_loops_give(case: OperatorCase) -> None:
    for call in itertools.islice(calls(case), 2):
        if is_refused(call.op, any(t.dtype == "bool" for t in call.tensors)):
            continue
        for outer, inner in levels(case.op, call.tensors):
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
    from turnout_batched.kernels import decide

    turnout.vmap(turnout.sin)(turnout.ones(2))
    looping = [
        op.qualified_name
        for op in REGISTRY.operators.values()
        if op.namespace == "aten" and op.is_defined and any(str(a.type).startswith("Tensor") for a in op.schema.arguments)
        and decide(op)[1] == "loop"
    ]  # fmt: skip
    assert looping == []


def test_every_row_of_the_tables_names_an_operator() -> None:
    from turnout_batched.rules import DECOMPOSED, REFUSED, RULES

    rows = [*RULES, *DECOMPOSED, *REFUSED]
    assert [row for row in rows if not REGISTRY.find(f"aten::{row}").is_defined] == []
    assert len(rows) == len(set(rows))


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
            or case.op == "one_hot"
            or is_refused(call.op, any(t.dtype == "bool" for t in call.tensors))
        ):
            continue
        mix = tuple(None if case.op in SHARED and t is call.tensors[-1] else 0 for t in call.tensors)
        batches = call.batches(mix)
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            expected = [t.dtype for t in flat(call(*call.example(batches, mix, 0)))]
            found = turnout.vmap(call, mix, randomness=call.randomness)(*batches)
        assert [t.dtype for t in flat(found)] == expected
