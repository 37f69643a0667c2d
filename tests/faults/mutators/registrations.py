"""Faults of batching rules, of kernels that disagree, of schemas and of composites."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import turnout
from faults.model import COMPOSITE, DEFAULT, Spec
from faults.mutators.facts import BACKENDS, BATCHING, COMPLIANCE, REPLAY, SCHEMA, Facts, Rule, mapped
from faults.mutators.kernels import accepts_changed, kernel_around, other_values, wrapped_kernel

# ---- batches


def batching_mutants(spec: Spec, facts: Facts) -> Rule:
    if spec.vmap is None:
        return
    rule = spec.vmap

    def changed(change: Callable[[Any, Any], Any]) -> Spec:
        @functools.wraps(rule)
        def batched(info: Any, dims: Any, *args: Any) -> Any:
            return change(*rule(info, dims, *args))

        return spec.but(vmap=batched)

    yield "batching of other values", BATCHING, changed(lambda r, d: (r + 1, d))
    yield "batching of doubled values", BATCHING, changed(lambda r, d: (r * 2, d))
    yield "batching of another dtype", BATCHING, changed(lambda r, d: (r.to(turnout.float32), d))
    yield "batching without a batch", BATCHING, changed(lambda r, d: (r.select(d, 0), None))
    yield "batching in reverse", BATCHING, changed(lambda r, d: (r.flip((d,)), d))
    yield "batching that returns no dim", BATCHING, changed(lambda r, d: r)
    yield "batching with one dim more", BATCHING, changed(lambda r, d: (r.unsqueeze(-1), d))
    yield "batching of one example", BATCHING, changed(lambda r, d: (r.select(d, 0).unsqueeze(d).expand(tuple(r.shape)), d))

    @functools.wraps(rule)
    def at_front(info: Any, dims: Any, *args: Any) -> Any:
        return rule(info, tuple([0 if d is not None else None for d in dims]), *args)

    yield "batching at the front only", BATCHING, spec.but(vmap=at_front)

    @functools.wraps(rule)
    def raising(info: Any, dims: Any, *args: Any) -> Any:
        raise KeyError("by accident")

    yield "batching that fails", BATCHING, spec.but(vmap=raising)


# ---- kernels that disagree


def backend_mutants(spec: Spec, facts: Facts) -> Rule:
    if spec.key != DEFAULT or not facts.fresh or spec.kernels or spec.tags or spec.checked or not facts.tensors:
        return
    kernel = spec.kernel

    def beside(after: Any) -> Spec:
        return spec.but(kernels={"CPU": wrapped_kernel(spec, kernel, None, after)})

    yield "cpu gives other values", BACKENDS, beside(lambda r, g: mapped(r, other_values))
    yield "cpu gives another dtype", BACKENDS, beside(lambda r, g: mapped(r, lambda t: t.to(turnout.float16)))
    yield "cpu gives one dim more", BACKENDS, beside(lambda r, g: mapped(r, lambda t: t.unsqueeze(0).clone()))
    name = next(iter(facts.tensors))
    if facts.tensors[name].ndim and accepts_changed(spec, lambda t: t.narrow(0, 0, 1) if t.ndim else t):
        alone = beside(lambda r, g: mapped(r, other_values) if g[name].ndim and g[name].shape[0] == 1 else r)
        yield "cpu gives other values for one element", BACKENDS, alone
    spread = facts.tensors[name].numel() > 1
    gaps = beside(lambda r, g: r if spread and g[name].is_contiguous() else mapped(r, other_values))
    yield "cpu gives other values for gaps in memory", BACKENDS, gaps

    def fails(result: Any, given: dict[str, Any]) -> Any:
        raise KeyError("by accident")

    yield "cpu fails", BACKENDS, beside(fails)


# ---- schemas


def schema_mutants(spec: Spec, facts: Facts) -> Rule:
    text = spec.schema
    plain = spec.but(backward=None, setup=None, vmap=None)
    for mark in ("a", "b"):
        if f"({mark}!)" in text:
            yield f"no mark of the write {mark}", SCHEMA, spec.but(schema=text.replace(f"({mark}!)", ""))
    if "(a)" in text and spec.key != COMPOSITE:
        yield "no mark of the view", SCHEMA, spec.but(schema=text.replace("(a -> *)", "").replace("(a)", "")).but(key=spec.key)
    if spec.checked or spec.arrays:
        return
    for name in facts.read:
        if f"Tensor {name}" in text:
            marked = text.replace(f"Tensor {name}", f"Tensor(z!) {name}", 1)
            yield f"a mark of a write of {name}", SCHEMA, plain.but(schema=marked)
            if text.endswith("-> Tensor") and facts.fresh:
                viewed = text.replace(f"Tensor {name}", f"Tensor(z) {name}", 1).removesuffix("Tensor") + "Tensor(z)"
                yield f"a mark of a view of {name}", SCHEMA, plain.but(schema=viewed)
    if text.endswith("-> Tensor"):
        yield "a second result in the schema", SCHEMA, plain.but(schema=text.removesuffix("Tensor") + "(Tensor, Tensor)")
        yield "a list in the schema", SCHEMA, plain.but(schema=text + "[]")
        yield "a number in the schema", SCHEMA, plain.but(schema=text.removesuffix("Tensor") + "int")


# ---- composites


def composite_mutants(spec: Spec, facts: Facts) -> Rule:
    if spec.key != COMPOSITE or not facts.fresh:
        return

    def detached(given: dict[str, Any]) -> None:
        given["x"] = given["x"].detach()

    def numpied(given: dict[str, Any]) -> None:
        given["x"] = turnout.from_numpy(given["x"].detach().numpy().copy())

    yield "detaches its input", COMPLIANCE, kernel_around(spec, detached)

    def after(change: Callable[[Any, Any], Any]) -> Spec:
        return kernel_around(spec, None, lambda r, g: change(r, g["x"]))

    yield (
        "makes an array of its result",
        COMPLIANCE,
        after(lambda r, x: turnout.from_numpy(np.array(r.detach().numpy(), order="C"))),
    )
    yield "copies its input through an array", COMPLIANCE, kernel_around(spec, numpied)
    yield "bakes in a number", REPLAY, after(lambda r, x: r * float(x.detach().sum().item()) if x.numel() else r)
    yield "branches on a value", REPLAY, after(lambda r, x: r * 2 if x.numel() and x.detach().sum().item() > 0 else r)
