"""How often a call runs the kernel that serves it: once, whatever dtype and shape an output has that the call is given."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import turnout
from outcomes import flat
from turnout.dtypes import dtype_named
from turnout.registry import REGISTRY, Registrations
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.tables import register_kernels
from turnout_conformance import cases
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import of_each_kind
from turnout_cpu.backend import CPUBackend
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import Pool

RUNS: Counter[str] = Counter()


class Counting(CPUBackend):
    """The cpu, whose kernels count their runs."""

    name = "Counting"
    device_type = "counting"


def counted(name: str) -> Callable[[str, Callable[..., Any]], Callable[..., Any]]:
    def around(word: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(*args: Any) -> Any:
            RUNS[name] += 1
            return fn(*args)

        kernel.__name__ = getattr(fn, "__name__", word)
        return kernel

    return around


@pytest.fixture(scope="module", autouse=True)
def counting() -> Iterator[None]:
    turnout.ones(1)
    rows = kernels(Pool(lambda: 1))
    with Registrations("counting") as library:
        backend = Counting()
        library.backend(backend)
        table = {n: r.through(counted(n)) if isinstance(r, Row) else counted(n)("kernel", r) for n, r in rows.items()}
        register_kernels(library, backend, table)
        yield


def runs(call: Callable[[], Any]) -> dict[str, int]:
    """The runs of the third call, after what the first ones set up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # outputs are resized
        for _ in range(3):
            RUNS.clear()
            call()
    return dict(RUNS)


WIDER = {
    "bool": "int64", "int32": "int64", "int64": "float32", "float16": "float32", "float32": "float64", "float64": "complex128",
}  # fmt: skip


def empty(*shape: int, dtype: Any) -> Any:
    return turnout.empty(shape, dtype=dtype, device="counting")


OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "as the result": lambda r: empty(*r.shape, dtype=r.dtype),
    "of a wider dtype": lambda r: empty(*r.shape, dtype=dtype_named(WIDER.get(r.dtype.name, r.dtype.name))),
    "empty": lambda r: empty(0, dtype=r.dtype),
    "with gaps": lambda r: empty(*r.shape, 2, dtype=r.dtype)[..., 0],
    "of another shape": lambda r: empty(7, *r.shape, dtype=r.dtype),
}


def tensor(data: Any, dtype: str) -> Any:
    return turnout.tensor(data, dtype=dtype_named(dtype), device="counting")


def calls_of(case: OperatorCase, dtype: str) -> list[Any]:
    return list(cases.calls(case, dtype, tensor))


def out_variant(op: Any) -> Any:
    """The overload of the same arguments that writes outputs, or None."""
    wanted = [(a.name, str(a.type)) for a in op.schema.arguments]
    for each in REGISTRY.packet(op.namespace, op.name) or ():
        outs = {a.name for a in each.schema.out_arguments}
        if outs and [(a.name, str(a.type)) for a in each.schema.arguments if a.name not in outs] == wanted:
            return each
    return None


def serves(call: Callable[[], Any]) -> Any:
    """What a call returns; None where these arguments are refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except (turnout.TurnoutError, NotImplementedError):
        return None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_call_with_an_output_runs_no_kernel_more_often_than_one_without(case: OperatorCase) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    out = None if op.schema.out_arguments else out_variant(op)
    if out is None:
        return
    names = [a.name for a in out.schema.out_arguments]
    for dtype in {*of_each_kind(case, "cpu"), "float32", "int64"}:
        made = serves(partial(calls_of, case, dtype))  # the data may not fit in the dtype
        for args, kwargs in (made or [])[:1]:
            results = [r for r in flat(serves(partial(op, *args, **kwargs))) if isinstance(r, turnout.Tensor)]
            if len(results) != len(names):
                continue
            plain = runs(partial(op, *args, **kwargs))
            for form, output in OUTPUTS.items():

                def call(args: Any = args, kwargs: Any = kwargs, output: Any = output, results: Any = results) -> Any:
                    return out(*args, **kwargs, **{n: output(r) for n, r in zip(names, results, strict=True)})

                if serves(call) is not None:
                    found = runs(call)
                    twice = [name for name, count in found.items() if count > max(1, plain.get(name, 0))]
                    assert not twice or sum(found.values()) <= sum(plain.values()), (form, dtype, found, plain)


# Functions of floats, which make floats of whole numbers.
FLOATING = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "deg2rad", "erfc", "erfinv", "exp", "exp2", "expm1", "i0",
    "lgamma", "log", "log10", "log1p", "log2", "rad2deg", "reciprocal", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "sqrt", "tan",
    "tanh",
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32"])
def test_functions_of_floats_run_once_for_every_dtype(dtype: str) -> None:
    x = turnout.ones(3, dtype=dtype_named(dtype), device="counting")
    calls: dict[str, Callable[[], Any]] = {name: partial(getattr(turnout, name), x) for name in FLOATING}
    calls |= {"div": lambda: x / x, "copysign": lambda: turnout.copysign(x, x), "atan2": lambda: turnout.atan2(x, x)}
    assert {name: sum(runs(call).values()) for name, call in calls.items()} == dict.fromkeys(calls, 1)
