"""Writes into memory that they also read: a copy reads everything first, an operator writes or refuses, on every device.

An output that overlaps an input, or repeats elements, is refused, or gets what another one would get.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from pretended_cuda import pretended

import turnout
from outcomes import as_array, flat
from turnout.errors import AliasError
from turnout.registry import find_operator
from turnout_aten.backend.overlap import Extent, share_bytes
from turnout_aten.declarations.tables import standard
from turnout_aten.generation.packets import same_inputs
from turnout_conformance.cases import CASES, OperatorCase, calls

# ---- what overlaps

ITEMS = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def extent(random: Random) -> Extent:
    """An array in 3,000 bytes."""
    while True:
        item = random.choice([*ITEMS])
        shape = tuple(random.randint(1, 5) for _ in range(random.randint(0, 4)))
        strides = tuple(random.randint(-30, 60) * random.choice([1, item]) for _ in shape)
        made = Extent(600 + random.randrange(200) * random.choice([1, item]), shape, strides, item)
        reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        if made.offset + sum(min(r, 0) for r in reach) >= 0 and made.offset + sum(max(r, 0) for r in reach) + item <= 3000:
            return made


def test_arrays_share_bytes_where_numpy_says_so(seeds: Callable[[int], range]) -> None:
    memory, shared = np.zeros(3000, "u1"), 0
    for seed in seeds(1000):
        pair = [extent(Random(f"{seed} {i}")) for i in range(2)]
        arrays = [np.ndarray(e.shape, ITEMS[e.itemsize], memory.data, e.offset, e.strides) for e in pair]
        expected = np.shares_memory(*arrays)
        assert share_bytes(*pair) is expected, (seed, pair)
        shared += expected
    assert shared


@pytest.mark.parametrize(("shape", "a", "b", "overlaps"), [
    ((3000, 3000), (3000, 1), (1, 3000), True),  # of any size, in a few steps
    ((3000, 1000), (6000, 2), (6000, 2), False),
    ((2, 3, 5, 7, 11, 13), (30030, 10010, 6006, 4290, 2730, 2310), (30031, 10009, 6005, 4291, 2729, 2311), True),
])  # fmt: skip
def test_large_arrays_and_hard_strides_are_decided(shape: Any, a: Any, b: Any, overlaps: bool) -> None:
    assert share_bytes(Extent(0, shape, a, 1), Extent(1, shape, b, 1)) is overlaps


def test_what_takes_too_many_steps_counts_as_overlap() -> None:
    primes = (10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079, 10091, 10093)
    assert share_bytes(Extent(0, (9,) * 10, primes, 1), Extent(150001, (1,), (1,), 1))


# ---- random programs

# Around the sizes from which devices work in pieces, with loops of their own, or compare layouts otherwise.
SIDES = (1, 2, 3, 8, 40, 101, 130, 270)
VIEWS: tuple[Callable[[Any, Random], Any], ...] = (
    lambda x, random: x.t(),
    lambda x, random: x[1:],
    lambda x, random: x[:-1],
    lambda x, random: x[:, 1:],
    lambda x, random: x[:, :-1],
    lambda x, random: x[::2],
    lambda x, random: x[:, 1::2],
    lambda x, random: x[random.randrange(max(x.shape[0], 1)) :][:1] if x.shape[0] else x,
    lambda x, random: x[:, :1],
    lambda x, random: x,
)
WRITES: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("copy_", lambda to, of: to.copy_(of)),
    ("setitem", lambda to, of: to.__setitem__(..., of)),
    ("add_", lambda to, of: to.add_(of, alpha=2)),
    ("mul_", lambda to, of: to.mul_(of)),
    ("out=", lambda to, of: turnout.maximum(of, of.new_full((), 3), out=to) if of.shape == to.shape else to.copy_(of)),
    ("where", lambda to, of: turnout.where(of > 5, of, of.new_full((), 1), out=to) if of.shape == to.shape else to.copy_(of)),
    ("masked_fill_", lambda to, of: to.masked_fill_(of > 4, 0)),
    ("clamp", lambda to, of: turnout.clamp(of, 1, 7, out=to) if of.shape == to.shape else to.copy_(of)),
    ("cumsum", lambda to, of: turnout.cumsum(of, 0, out=to) if of.shape == to.shape else to.copy_(of)),
    ("flip", lambda to, of: to.copy_(of.flip(0))),
    ("index_put_", lambda to, of: to.__setitem__(turnout.arange(to.shape[0] - 1, -1, -1, device=to.device), of)),
    ("index_copy_", lambda to, of: to.index_copy_(0, turnout.arange(to.shape[0], device=to.device), of.expand(to.shape))),
    ("lerp_", lambda to, of: to.lerp_(of.expand(to.shape), 0.5) if to.is_floating_point() else to.copy_(of)),
)
DTYPES = (turnout.float32, turnout.float64, turnout.int32, turnout.uint8, turnout.float16)


def problem(seed: int, device: str) -> str:
    """What goes wrong in a program; "" if nothing does."""
    random = Random(seed)
    dtype, side = random.choice(DTYPES), random.choice(SIDES)
    begin = (turnout.arange(side * side) % 11).to(dtype).reshape(side, side)
    ways = [[random.choice(VIEWS) for _ in range(random.randint(0, 2))] for _ in range(2)]
    draws = random.random()

    def views(x: Any) -> list[Any]:
        found = []
        for way in ways:
            view = x
            for step in way:
                view = step(view, Random(draws))
            found.append(view)
        target, source = found
        for dim in (0, 1):  # until the source can be written into the target
            if source.shape[dim] not in (1, target.shape[dim]):
                few = min(source.shape[dim], target.shape[dim])
                target, source = target.narrow(dim, 0, few), source.narrow(dim, 0, few)
        return [target, source]

    name, write = random.choice(WRITES)
    root, model = begin.to(device), begin.clone()
    target, source = views(root)
    plain, apart = views(model)
    write(plain, apart.clone())
    try:
        write(target, source)
    except AliasError:
        if name in ("copy_", "setitem"):
            return f"seed {seed}: {name} of {dtype} is refused"
        where = np.arange(side * side).reshape(side, side)
        first, second = (np.asarray(v.tolist()).ravel() for v in views(turnout.from_numpy(where)))
        if not np.intersect1d(first, second).size or (first.shape == second.shape and (first == second).all()):
            return f"seed {seed}: {name} of {dtype} at {side} x {side} is refused, though nothing overlaps"
        model = begin
    if root.tolist() != model.tolist():
        return f"seed {seed}: {name} of {dtype} at {side} x {side} wrote something else"
    return ""


@pytest.fixture(scope="module", params=["cpu", "opencl", "pretended"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each device that has memory of its own; `pretended` is the CUDA backend over a stand-in."""
    if request.param == "opencl":
        request.getfixturevalue("need_device")("opencl")
    if request.param != "pretended":
        yield request.param
        return
    with pretended():
        yield "pretended"


@pytest.mark.parametrize("part", range(4))
def test_a_write_gives_what_it_gives_from_a_copy_or_is_refused_where_it_overlaps(
    part: int, device: str, seeds: Callable[..., range]
) -> None:
    found = [problem(seed, device) for seed in [*seeds(120, many=2000)][part::4]]
    assert [each for each in found if each] == []


# ---- outputs of every operator


def output_form(case: OperatorCase) -> Any:
    """The declaration that writes the results of a case into tensors; None where there is none, or results are drawn or open."""
    base = standard().find(case.op.replace(".", "__"))
    for row in standard().overloads(case.op.partition(".")[0]):
        outputs = row.schema.out_arguments if row.schema.kind == "out" and same_inputs(base, row) else ()
        if outputs and not any(a.type.is_tensor_list for a in outputs) and "empty" not in case.op:
            return None if "nondeterministic_seeded" in find_operator(row.qualified_name).tags else row
    return None


WITH_OUTPUT = [(case, row) for case in CASES if (row := output_form(case)) is not None]


def wrong_output(seed: int, device: str) -> str:
    """What goes wrong where an output lies over an input, beside its beginning, or in one place; "" if nothing does."""
    random = Random(seed)
    (case, row), mode = random.choice(WITH_OUTPUT), random.choice(("same", "beside", "repeated"))
    dtype, draw, tensors, behind = random.choice(case.dtypes), random.random(), [], 0

    def make(data: Any, dtype: str) -> Any:
        made = turnout.tensor(data, dtype=turnout.dtypes.dtype_named(dtype)).to(device)
        root = turnout.cat([made.reshape(-1), made.new_zeros(behind)])
        tensors.append((root, root[: made.numel()].reshape(made.shape)))
        return tensors[-1][1]

    def arguments() -> tuple[Any, dict[str, Any]]:
        tensors.clear()
        args, kwargs = Random(draw).choice(list(calls(case, dtype, make)))
        return args, {name: value for name, value in kwargs.items() if name in {a.name for a in row.schema.arguments}}

    args, kwargs = arguments()
    expected = flat(find_operator(f"aten::{case.op}")(*args, **kwargs))
    if len(expected) != len(row.schema.out_arguments):
        return ""
    at, behind = random.randrange(len(expected)), 1 + max(e.numel() for e in expected)
    args, kwargs = arguments()
    like = expected[at]
    over = [
        (root, x) for root, x in tensors
        if x.dtype is like.dtype and x.numel() and like.numel() and (mode == "beside" or x.shape == like.shape)
    ]  # fmt: skip
    if mode != "repeated" and not over:
        return ""
    root, x = random.choice(over) if over else (None, None)
    output = (
        like.new_zeros(()).expand(like.shape) if mode == "repeated"
        else x if mode == "same" else root[1 : 1 + like.numel()].reshape(like.shape)
    )  # fmt: skip
    outputs = [output if i == at else e.new_zeros(e.shape) for i, e in enumerate(expected)]
    names = [a.name for a in row.schema.out_arguments]
    try:
        find_operator(row.qualified_name)(*args, **kwargs, **dict(zip(names, outputs, strict=True)))
    except AliasError:
        return ""
    found, wanted = as_array(output), as_array(like)
    if np.allclose(found, wanted, 1e-3, 1e-4, equal_nan=True):
        return ""
    return f"seed {seed}: {row.qualified_name} of {dtype}, {names[at]} {mode}: {found.tolist()}, expected {wanted.tolist()}"


def test_an_output_over_an_input_gets_what_another_one_gets_or_is_refused(device: str, seeds: Callable[..., range]) -> None:
    found = [wrong_output(seed, device) for seed in seeds(40 if device == "cpu" else 5, many=2000)]
    assert [each for each in found if each] == []
