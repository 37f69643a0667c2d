"""Operator cases under vmap with drawn shapes, dtypes and numbers, next to the loop: operands whose ranks and dtypes differ, of
equal lengths, batched or not.

What the function refuses for an example, vmap refuses; otherwise both give the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.errors import TurnoutError
from turnout_conformance.batches import BY_MEMORY, SHARED, SIZE, Call, Loop, Mix, is_mapped, is_refused, tensors_of
from turnout_conformance.cases import CASES, OperatorCase, Sample, T
from turnout_conformance.comparing import Raised, form, outcome

Shape = tuple[int, ...]
DTYPES = ("float64", "float32", "float16", "int64", "int8", "bool")


def drawn_shapes(random: Random, shapes: list[Shape]) -> list[Shape]:
    """Often all lengths are equal, and often some tensors, or all of them, have a dim more or less."""
    side = random.randint(1, 3)
    if random.random() < 0.5:
        shapes = [tuple([side if n else 0 for n in shape]) for shape in shapes]
    changes: list[Callable[[Shape], Shape]] = [
        lambda s: s, lambda s: s, lambda s: s[1:], lambda s: s[:-1], lambda s: (random.choice([1, side, *s[:1]]), *s),
        lambda s: (SIZE, *s), lambda s: (*s, side),
    ]  # fmt: skip
    if random.random() < 0.3:
        change = random.choice(changes)
        return [change(shape) for shape in shapes]
    return [random.choice(changes)(shape) for shape in shapes]


def changed(value: Any, shapes: list[Shape], dtype: str, random: Random) -> Any:
    """The arguments of a sample with its tensors in these shapes: the same numbers, as often as there is room. Now and then a
    tensor has another dtype, or a number another value."""
    if isinstance(value, T):
        shape, own = shapes.pop(0), value.dtype
        if own is None and random.random() < 0.05:
            own = random.choice(DTYPES)
        data = np.array(value.data)
        if np.dtype(own or dtype).kind in "biu":
            data = np.nan_to_num(data.real)
        elif np.dtype(own or dtype).kind == "f":
            data = data.real
        return T(np.resize(data.astype(own or dtype), math.prod(shape)).reshape(shape), own)
    if isinstance(value, (list, tuple)):
        return type(value)([changed(each, shapes, dtype, random) for each in value])
    if isinstance(value, dict):
        return {name: changed(each, shapes, dtype, random) for name, each in value.items()}
    if isinstance(value, (int, float)) and not isinstance(value, bool) and random.random() < 0.1:
        return random.choice([0, 1, 2, -1, 0.5, 1.5, 300])
    return value


def drawn_call(random: Random, case: OperatorCase) -> tuple[Call, Mix, int]:
    """A call, the dim along which each of its tensors is batched, and the number of examples."""
    sample = random.choice(case.samples)
    dtype = random.choice(case.dtypes if random.random() < 0.8 else DTYPES)
    shapes = drawn_shapes(random, [np.shape(t.data) for t in tensors_of([list(sample.args), sample.kwargs])])
    call = Call(case, Sample(*changed((sample.args, sample.kwargs), list(shapes), dtype, random)), dtype)
    if any(examples[0].dtype == np.float16 for examples in call.examples):
        call.tolerance = max(call.tolerance, 4e-3)  # several roundings to eleven bits
    size = random.choice([1, 2, SIZE, SIZE])
    call.examples = [examples[:size] for examples in call.examples]
    mix = [random.choice([None, *range(-len(shape) - 1, len(shape) + 1)]) for shape in shapes]
    inplace = form(call.op, "inplace") if random.random() < 0.3 else None
    if inplace is not None:
        call.op = inplace
    if inplace is not None or mix == [None] * len(mix):
        mix[0] = 0
    return call, tuple(mix), size


def problem(seed: int) -> str:
    """What goes wrong in a call; "" if nothing does."""
    random = Random(seed)
    call, mix, size = drawn_call(random, random.choice(OF_SEVERAL if random.random() < 0.7 else MAPPED))
    loop = [outcome(call, *call.example(call.batches(mix), mix, i)) for i in range(size)]
    found = outcome(turnout.vmap(call, mix), *call.batches(mix))
    shapes = ", ".join(f"{list(e[0].shape)} at {d}" for e, d in zip(call.examples, mix, strict=True))
    about = f"seed {seed}: {call.op.qualified_name} of {call.dtype} {shapes}, {size} examples, {call.sample}"
    errors = [each for each in loop if isinstance(each, Raised)]
    if isinstance(found, Raised):
        if errors and issubclass(found.kind, TurnoutError):
            return ""
        return f"{about}\n  vmap raises {found}\n  the function {errors[0] if errors else 'does not'}"
    if errors:
        return f"{about}\n  vmap gives {[t.shape for t in found]}\n  the function raises {errors[0]}"
    try:
        call.compare(found, Loop(loop, (size,), call.vectors))
    except AssertionError:
        return f"{about}\n  vmap gives {found}\n  the function {loop}"
    return ""


def is_tried(case: OperatorCase) -> bool:
    """Whether examples in any shapes have one result, of a shape that does not depend on values."""
    call = Call(case, case.samples[0], case.dtypes[0])
    left_out = case.op in SHARED or case.op in BY_MEMORY or call.randomness != "error" or is_refused(call.op, True)
    return is_mapped(call) and not left_out


MAPPED = [case for case in CASES if is_tried(case)]
OF_SEVERAL = [c for c in MAPPED if any(len(tensors_of([list(s.args), s.kwargs])) > 1 for s in c.samples)]


@pytest.mark.parametrize("part", range(4))
def test_vmap_of_drawn_shapes_gives_what_the_loop_gives_or_refuses_what_it_refuses(
    part: int, seeds: Callable[..., range]
) -> None:
    found = [problem(seed) for seed in [*seeds(40, many=10000)][part::4]]
    assert [each for each in found if each] == []
