"""PyTorch's Core ATen operators, called as operators: values, dtypes, shapes, and Meta's answer, in seven dtypes."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from op_db import bridge, core, judging, known  # noqa: E402

import turnout  # noqa: E402

RANDOM = {"bernoulli", "native_dropout", "normal_functional", "rand", "randn", "randint", "randperm", "uniform"}
SAME_TOLERANCE = {"bmm": "baddbmm"}  # PyTorch's tests widen that of complex64 for one of two that multiply the same way
EMPTY = {"empty.memory_format", "empty_strided", "resize_"}


def operator(name):
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default"), bridge._operator(base, overload or "default")


def test_every_core_operator_is_called():
    assert [n for n in core.operators() if not any(core.calls(n, dtype) for dtype in core.DTYPES)] == []


# The calls of a dtype are recorded once in each worker: dtype by dtype, so that a worker needs few.
@pytest.mark.parametrize("name", core.operators())
@pytest.mark.parametrize("dtype", core.DTYPES)
def test_a_core_operator_gives_what_torch_gives(name, dtype):
    known.confirm("core", name, dtype, verdict(name, dtype))


def verdict(name, dtype):
    """The first difference in words, or None; calls that PyTorch refuses say nothing."""
    theirs = operator(name)[0]
    for call in core.calls(name, dtype):
        args, kwargs = core.kept((call.args, call.kwargs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = theirs(*args, **kwargs)
            except (RuntimeError, NotImplementedError, TypeError):
                continue
            try:
                found = operator(name)[1](*bridge.here(call.args), **bridge.here(call.kwargs))
                meta = run_on_meta(name, call)
            except Exception as error:  # noqa: BLE001 - whatever it raises is the verdict
                return f"{call}: {judging.raised(error)}"
        difference = same(name, dtype, expected, found) or (meta is not None and agree(found, meta))
        if difference:
            return f"{call}: {difference}"
    return None


def run_on_meta(name, call):
    try:
        return operator(name)[1](*bridge.here(call.args, "meta"), **bridge.here(call.kwargs, "meta"))
    except turnout.errors.NoDataError:
        return None


class Named:
    """What `judging.compare` asks of an OpInfo."""

    def __init__(self, name):
        base = name.partition(".")[0]
        self.name = "randn" if base in RANDOM else "empty" if name in EMPTY else base
        names = (base, SAME_TOLERANCE.get(base))
        self.decorators = [d for info in judging.INFOS if info.aten_name in names for d in info.decorators]


def same(name, dtype, expected, found):
    return judging.compare(Named(name), getattr(torch, dtype), expected, found)


def agree(cpu, meta):
    for here, there in zip(bridge.tensors(cpu), bridge.tensors(meta), strict=True):
        if (here.shape, here.dtype) != (there.shape, there.dtype):
            return f"on meta {there.dtype} {tuple(there.shape)}, on cpu {here.dtype} {tuple(here.shape)}"
    return None
