"""Every compiled row, in any layout, dtype and size: what the kernel below it gives, and the same bits from all variants.

The calls are those of the set `anyhow` of turnout-conformance, some of them with each set of instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instruction_sets import available

import turnout
from turnout.registry import find_operator
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.binding import _bound, entry_below
from turnout_conformance.accuracy import differs, in_64_bits, widened
from turnout_conformance.cases import SETS
from turnout_conformance.cases.sets.limits import Limit
from turnout_conformance.comparing import tensors
from turnout_conformance.making import Make, arguments, row_major

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import few
from turnout_kernels.table import kernels

CALLS = SETS["anyhow"]
# Random numbers, whole layers and rows for few elements alone, which have tests of their own.
ELSEWHERE = {
    *few.KERNELS,
    "gru.input", "lstm.input", "native_dropout", "rand", "rand.generator", "randint", "randint.generator", "randint.low",
    "randint.low_generator", "randn", "randn.generator", "scaled_dot_product_attention",
}  # fmt: skip
# How near numbers are that are rounded on their own: near 0, an addition before decides.
LIMIT = Limit(8.0, floor=1.0, signs=False)


def variants(row: str) -> dict[str, list[Any]]:
    """Kind -> the operators that a row serves."""
    found: dict[str, list[Any]] = {}
    name = f"aten::{row}"
    for op, kind in STRUCTURED[name][0].items() if name in STRUCTURED else [(name, "functional")]:
        found.setdefault(kind, []).append(find_operator(op))
    return found


def matching(op: Any, others: list[Any]) -> Any:
    """The variant that takes the arguments of `op`; None if none does."""
    taken = [str(a.type) for a in op.schema.arguments]
    given = [[str(a.type).replace("(a!)", "") for a in o.schema.arguments if a not in o.schema.out_arguments] for o in others]
    return others[given.index(taken)] if taken in given else None


ROWS = [
    (row, name)
    for row in kernels()
    for op in variants(row)["functional"]
    if (name := op.qualified_name.removeprefix("aten::")) in CALLS
]


def below(op: Any) -> Any:
    """What serves the calls of an operator on cpu where turnout-kernels is not installed."""
    keys = turnout.ones(1).keys
    (kernel,) = [k for k in op.kernels["CPU"] if k.yields]
    call = _bound(op, entry_below(op, kernel, "CPU"), "CPU")
    return lambda *args, **kwargs: call(keys, *[tuple(a) if isinstance(a, list) else a for a in op.bind(args, kwargs)])


def misaligned(data: Any, dtype: str) -> turnout.Tensor:
    """A row-major tensor at an address that is no multiple of its element's size."""
    array = row_major("cpu")(data, dtype).numpy()
    made = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    made[...] = array
    return turnout.from_numpy(made)


def bits(found: Any) -> list[bytes]:
    """The bytes of results, with one nan for all: which one it is, is nobody's promise."""
    return [
        t.where(t == t, float("nan")).numpy().tobytes() if t.is_floating_point() else t.numpy().tobytes() for t in tensors(found)
    ]


def test_every_row_has_calls() -> None:
    assert {row for row, _ in ROWS} == kernels().keys() - ELSEWHERE


@pytest.mark.parametrize(("row", "name"), ROWS)
def test_all_variants_give_the_same_bits_from_the_first_call_on_and_what_the_kernel_below_gives(
    row: str, name: str, instructions: str
) -> None:
    op, of = find_operator(f"aten::{name}"), variants(row)
    out, inplace, without = matching(op, of.get("out", [])), matching(op, of.get("inplace", [])), below(op)
    some = CALLS[name][available().index(instructions) :: len(available())]
    for sample, dtype, tolerance in [(sample, dtype, each.tolerance) for each in some for sample, dtype in each.calls()]:

        def made_of(make: Make, call: Any = op, sample: Any = sample, dtype: str = dtype) -> list[turnout.Tensor]:
            args, kwargs = arguments(sample, dtype, make)
            return tensors(call(*args, **kwargs))

        made, exact = made_of(row_major("cpu")), made_of(widened, without)
        where, first = f"{name} {dtype} {sample}", bits(made)
        limit, other = LIMIT if tolerance is None else tolerance, made_of(misaligned)
        for found in (*zip(made, exact, strict=True), *(zip(other, exact, strict=True) if bits(other) != first else ())):
            said = differs(*map(in_64_bits, found), found[0].dtype.name, limit)
            assert not said, f"{where}: {said}"
        args, kwargs = arguments(sample, dtype, row_major("cpu"))
        assert bits(op(*args, **kwargs)) == first, f"{where}, second call"
        if out is not None:
            names = [a.name for a in out.schema.out_arguments]
            for outs in ([turnout.empty_like(t) for t in made], [turnout.stack([t, t], -1)[..., 0] for t in made]):
                written = out(*args, **kwargs, **dict(zip(names, outs, strict=True)))
                assert bits(written) == first, f"{where}, written into strides {outs[0].stride()}"
        if inplace is not None and 0 not in args[0].stride() and (args[0].shape, args[0].dtype) == (made[0].shape, made[0].dtype):
            assert bits(inplace(args[0], *args[1:], **kwargs)) == first, f"{where}, in place"
