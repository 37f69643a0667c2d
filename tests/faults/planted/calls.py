"""Batches, autocast, kernels that disagree, inputs, determinism, defaults, threads, composites."""

from __future__ import annotations

import numpy as np

import turnout
from faults.correct import CORRECT, CUBE, like, of
from faults.model import given, values
from faults.planted.fault import (
    AUTOCAST,
    BACKENDS,
    BATCHING,
    COMPLIANCE,
    DEFAULTS,
    DETERMINISM,
    INPUTS,
    LATEST,
    ONE,
    SCHEMA,
    THREADS,
    TIMES,
    fault,
)

# ---- autocast


def own_cast(x, y):
    from turnout.state import exclude

    with exclude("AutocastCPU"):
        return turnout.ops.faults.autocast_scales(x.to(turnout.bfloat16), y.to(turnout.bfloat16)) * 2


def casts_nothing(x, y):
    from turnout.state import exclude

    with exclude("AutocastCPU"):
        return turnout.ops.faults.autocast_casts_one_input(x.to(turnout.bfloat16), y)


# ---- inputs that nobody sampled


def flat_memory(x):
    array = x.numpy() if x.storage is None else np.asarray(x.storage.array).reshape(-1)[: x.numel()]
    return of(np.array(array).reshape(tuple(x.shape)) * 2)


# ---- determinism


def seeding(x):
    turnout.manual_seed(0)
    return x * 2


def cached_by_shape(x):
    return of(LATEST.setdefault(("shape", tuple(x.shape), x.dtype), x.numpy() * 2))


# ---- defaults


def rows_vmap(info, in_dims, x, eps=1e-3):
    x = x.movedim(in_dims[0], 0)
    return x / (x.abs().sum(-1, keepdim=True) + eps), 0


# ---- threads


SCRATCH = np.zeros(64)


def through_scratch(x):
    a = x.numpy().reshape(-1)
    n = min(a.size, 64)
    SCRATCH[:n] = a[:n].real
    SCRATCH[:n] *= 2
    made = np.array(a * 2)
    made[:n] = SCRATCH[:n]
    return of(made.reshape(x.shape))


def through_a_global(x):
    LATEST["now"] = x.shape
    LATEST["values"] = x.numpy() * 2
    made = LATEST["values"]
    return of(made.copy())


# fmt: off
FAULTS = [
    # ---- batches
    fault("batching_with_the_wrong_dim", BATCHING, "vmap", CORRECT["total"], vmap=lambda info, dims, x: (x.sum(-1), 0)),
    fault("batching_of_other_values", BATCHING, "vmap", CUBE, vmap=lambda info, dims, x: (x * x, dims[0])),
    fault("batching_without_a_batch", BATCHING, "vmap", CUBE, vmap=lambda info, dims, x: ((x * x * x).select(dims[0], 0), None)),
    fault("batching_that_raises", BATCHING, "raised", CUBE, vmap=lambda info, dims, x: x * x * x),
    fault("batching_only_of_the_first", BATCHING, "vmap", CORRECT["outer"],
          vmap=lambda info, dims, x, y: (x.unsqueeze(2) * y.unsqueeze(1), 0)),
    fault("batching_of_another_dtype", BATCHING, "dtype", CUBE,
          vmap=lambda info, dims, x: ((x * x * x).to(turnout.float32), dims[0])),
    fault("batching_at_front_only", BATCHING, "vmap", CUBE, vmap=lambda info, dims, x: (x * x * x, 0)),
    # ---- autocast
    fault("autocast_scales", AUTOCAST, "autocast", CORRECT["product"], autocast=None, kernels={"AutocastCPU": own_cast}),
    fault("autocast_casts_one_input", AUTOCAST, "raised", CORRECT["product"], autocast=None,
          kernels={"AutocastCPU": casts_nothing}),
    fault("autocast_kernel_refuses_the_low_precision", AUTOCAST, "raised", CORRECT["product"],
          kernel=lambda x, y: turnout.ops.faults.no_such_operator(x) if x.dtype is turnout.bfloat16 else x @ y),
    # ---- kernels that disagree
    fault("cpu_differs_from_the_default", BACKENDS, "CPU", CORRECT["twice_served"], kernels={"CPU": lambda x: x * 2 + 1.5}),
    fault("cpu_gives_another_dtype", BACKENDS, "dtype", CORRECT["twice_served"],
          kernels={"CPU": lambda x: (x * 2 + 1).to(turnout.float32)}, fake=None),
    fault("cpu_gives_another_shape", BACKENDS, "shape", CORRECT["twice_served"],
          kernels={"CPU": lambda x: (x * 2 + 1).unsqueeze(0)}, fake=None),
    # ---- inputs that nobody sampled
    fault("reads_memory_in_row_major_order", INPUTS, "layout", ONE, kernel=flat_memory),
    fault("indexes_the_first_element", INPUTS, "0 dims", ONE, kernel=lambda x: x * 2 + 0 * x[0:1].sum() if x.ndim else 1 / 0),
    fault("divides_by_the_size", INPUTS, "empty", ONE, kernel=lambda x: x * (2 * (x.numel() // x.numel()))),
    fault("computes_in_float32", INPUTS, "float64", ONE, kernel=lambda x: (x.to(turnout.float32) * 2).to(x.dtype), fake=like),
    fault("refuses_gaps", INPUTS, "layout", ONE, kernel=lambda x: x * 2 if x.is_contiguous() else [][0]),
    # ---- determinism
    fault("draws_without_a_tag", DETERMINISM, "nondeterministic_seeded", ONE,
          kernel=lambda x: x + turnout.rand(x.shape, dtype=x.dtype)),
    fault("sets_the_seed", DETERMINISM, "nondeterministic_seeded", ONE, kernel=seeding),
    fault("counts_its_calls", DETERMINISM, "two calls", ONE, kernel=lambda x: x * next(TIMES)),
    fault("draws_from_another_source", DETERMINISM, "seed", CORRECT["noisy"],
          kernel=lambda x, scale=1.0: x + float(np.random.default_rng().random()) * scale, backward=None),
    fault("caches_by_shape", DETERMINISM, "other values", ONE, kernel=cached_by_shape),
    # ---- defaults
    # A kernel whose function has another default than the schema is refused when it is registered. Rules get all arguments too.
    fault("default_of_the_batching_rule_differs", DEFAULTS, "eps", CORRECT["normalised_rows"], vmap=rows_vmap),
    # ---- threads
    fault("computes_in_one_scratch_memory", THREADS, "thread", ONE, kernel=through_scratch, inputs=lambda: given(values(3))),
    fault("passes_values_through_a_global", THREADS, "thread", ONE, kernel=through_a_global),
    # ---- composites
    fault("composite_reads_arrays", COMPLIANCE, "made outside of operators", CORRECT["soft"],
          kernel=lambda x, slope=1.5: of(x.detach().numpy() * slope)),
    fault("composite_drops_the_gradient", COMPLIANCE, "does not require a gradient", CORRECT["soft"],
          kernel=lambda x, slope=1.5: (x.detach() * slope).sigmoid()),
    fault("composite_writes_its_input", SCHEMA, "writes x", CORRECT["soft"], kernel=lambda x, slope=1.5: x.mul_(slope) * 1),
]
# fmt: on
