"""Faults of fake kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import turnout
from faults.model import Spec
from faults.mutators.facts import FAKE, Facts, Rule, mapped
from faults.mutators.kernels import accepts_changed, in_column_major, with_first
from turnout import Tensor

# ---- shapes without data


def fake_mutants(spec: Spec, facts: Facts) -> Rule:
    if spec.fake is None or not facts.results or spec.tags == ("dynamic_output_shape",):
        return
    fake = spec.fake

    def after(change: Callable[[Tensor], Any]) -> Spec:
        @functools.wraps(fake)
        def changed(*args: Any, **kwargs: Any) -> Any:
            return mapped(fake(*args, **kwargs), change)

        return spec.but(fake=changed)

    def some(which: slice) -> Spec:
        return spec.but(fake=functools.wraps(fake)(lambda *a, **k: (made := fake(*a, **k)) and type(made)(list(made)[which])))

    def raising(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("by accident")

    if facts.fresh:
        for dtype in (turnout.float16, turnout.float32, turnout.int8, turnout.complex64):
            if all(t.dtype is not dtype for t in facts.results):
                yield f"fake gives {dtype.name}", FAKE, after(lambda t, d=dtype: t.to(d))
        only = facts.results[0].dtype
        if spec.name not in ("ramp", "counts", "as_dtype", "near") and len({t.dtype for t in facts.results}) == 1:
            yield f"fake gives {only.name} always", FAKE, after(lambda t, d=only: t.to(d))
        yield "fake gives one dim more", FAKE, after(lambda t: t.unsqueeze(0).clone())
        yield "fake gives one dim more at the end", FAKE, after(lambda t: t.unsqueeze(-1).clone())
        for dim in range(max(t.ndim for t in facts.results)):
            for how, change in (
                (f"fake gives a longer dim {dim}", lambda t, d: turnout.cat([t, t.narrow(d, 0, 1)], d) if t.shape[d] else t),
                (f"fake drops dim {dim}", lambda t, d: t.select(d, 0).clone() if t.shape[d] else t),
                (f"fake gives half of dim {dim}", lambda t, d: t.narrow(d, 0, t.shape[d] // 2).clone()),
            ):
                yield how, FAKE, after(lambda t, d=dim, change=change: change(t, d) if t.ndim > d else t)
        if any(t.ndim == 2 and min(t.shape) > 1 for t in facts.results):
            yield "fake gives other strides", FAKE, after(in_column_major)
            yield "fake swaps dims", FAKE, after(lambda t: t.transpose(0, 1).contiguous() if t.ndim == 2 else t)
        yield "fake is on the cpu", FAKE, after(lambda t: turnout.empty(t.shape, dtype=t.dtype, device="cpu"))
        shapes = [tuple(t.shape) for t in facts.results]
        if len(set(shapes)) == 1 and shapes[0] and spec.name not in ("counts",) and facts.tensors:
            yield "fake gives one shape always", FAKE, after(lambda t, s=shapes[0]: t.new_empty(s))
        if facts.tensors and any(t.ndim for t in facts.results) and accepts_changed(spec, lambda t: t.reshape((-1,))[0]):
            yield "fake gives a dim for 0 dims", FAKE, after(lambda t: t if t.ndim else t.new_empty((1,)))
        if len(facts.results) > 1:
            differ = len({(t.dtype, tuple(t.shape)) for t in facts.results}) > 1
            yield "fake gives fewer results", FAKE, some(slice(1))
            yield (
                "fake gives the results in reverse",
                FAKE,
                (some(slice(None, None, -1)) if differ else after(lambda t: t.unsqueeze(0).clone())),
            )
        for name in facts.read:
            if tuple(facts.tensors[name].shape) == shapes[0] and facts.tensors[name].dtype is facts.results[0].dtype:
                yield f"fake returns {name}", FAKE, _given(spec, facts, lambda r, g, n=name: with_first(r, g[n]))
    yield "fake raises", FAKE, spec.but(fake=functools.wraps(fake)(raising))
    if facts.tensors:
        first = next(iter(facts.tensors))
        yield "fake reads a value", FAKE, _given(spec, facts, lambda r, g: (g[first].sum().item(), r)[1])


def _given(spec: Spec, facts: Facts, change: Callable[[Any, dict[str, Any]], Any]) -> Spec:
    """The operator whose fake kernel gives what `change` makes of its result and of the arguments by name."""
    names, fake = [a.name for a in facts.schema.positional], spec.fake
    assert fake is not None

    @functools.wraps(fake)
    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(fake(*args, **kwargs), {**dict(zip(names, args, strict=False)), **kwargs})

    return spec.but(fake=changed)
