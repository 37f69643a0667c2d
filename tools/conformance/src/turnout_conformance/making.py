"""Tensors on the device that is proved: the same values in several layouts, and the dtypes that a device has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import turnout
from turnout.dtypes import DTYPES, dtype_named
from turnout.errors import DTypeError
from turnout_conformance.cases import Drawn, OperatorCase, Sample, Seen, T, build

Make = Callable[[Any, str], turnout.Tensor]


def row_major(device: str) -> Make:
    """Contiguous tensors."""
    return lambda data, dtype: turnout.tensor(data, dtype=dtype_named(dtype), device="cpu").to(device)


def column_major(device: str) -> Make:
    """Dense tensors with the dims in reverse order."""

    def make(data: Any, dtype: str) -> turnout.Tensor:
        plain = turnout.from_numpy(np.array(data, dtype))
        order = list(reversed(range(plain.ndim)))
        return plain.permute(order).contiguous().to(device).permute(order)

    return make


def one_memory(device: str) -> Make:
    """Parts of one memory for each dtype, next to each other."""
    rooms: dict[str, tuple[turnout.Tensor, int]] = {}

    def make(data: Any, dtype: str) -> turnout.Tensor:
        plain = row_major("cpu")(data, dtype)
        room, at = rooms.get(dtype, (None, 0))
        if room is None or at + plain.numel() > room.numel():
            room, at = turnout.zeros(max(plain.numel(), 1 << 10), dtype=plain.dtype, device=device), 0
        rooms[dtype] = room, at + plain.numel()
        return room[at : at + plain.numel()].view(plain.shape).copy_(plain.to(device))

    return make


def spread(device: str) -> Make:
    """Every second element of twice as much memory, the dims in reverse order."""

    def make(data: Any, dtype: str) -> turnout.Tensor:
        plain = turnout.from_numpy(np.array(data, dtype))
        order = list(reversed(range(plain.ndim)))
        room = turnout.zeros([2 * n for n in reversed(plain.shape)], dtype=plain.dtype, device=device)
        view = room[(..., *(slice(None, None, 2) for _ in plain.shape))].permute(order)
        return view.copy_(plain.to(device))

    return make


LAYOUTS: dict[str, Callable[[str], Make]] = {"row-major": row_major, "column-major": column_major, "spread": spread}


def leaf(device: str) -> Make:
    """Contiguous tensors; floating and complex ones require a gradient."""

    def make(data: Any, dtype: str) -> turnout.Tensor:
        made = row_major(device)(data, dtype)
        return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made

    return make


# ---- what a device has


@cache
def dtypes_of(device: str) -> frozenset[str]:
    """The dtypes that tensors on a device can have; it must refuse the others with a DTypeError."""
    found = set()
    for name in DTYPES:
        try:
            turnout.zeros(1, dtype=dtype_named(name), device="cpu").to(device)
        except DTypeError:
            continue
        found.add(name)
    return frozenset(found)


def dtypes_in(value: Any, dtype: str) -> set[str]:
    """The dtypes of a sample's tensors."""
    while isinstance(value, Seen):
        value = value.tensor
    if isinstance(value, (T, Drawn)):
        return {value.dtype or dtype}
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return set()
    return {name for each in value for name in dtypes_in(each, dtype)}


def samples(case: OperatorCase, device: str, only: tuple[str, ...] | None = None) -> Iterator[tuple[Sample, str]]:
    """The samples of a case with each of its dtypes, without those of dtypes that the device has not."""
    held = dtypes_of(device)
    for dtype in case.dtypes if only is None else only:
        for sample in case.samples:
            if dtypes_in([sample.args, sample.kwargs], dtype) <= held:
                yield sample, dtype


def of_each_kind(case: OperatorCase, device: str) -> tuple[str, ...]:
    """The widest dtype of each kind that a device has: a float, an integer, a complex one, bool. Strides, outputs, rules of vmap
    and traces do not depend on the width."""
    widest = sorted(dtypes_of(device).intersection(case.dtypes), key=lambda name: dtype_named(name).itemsize)
    return tuple({dtype_named(name).category: name for name in widest}.values())


def samples_of_kinds(case: OperatorCase, device: str) -> Iterator[tuple[Sample, str]]:
    """All samples in one dtype of each kind, and the first one in the others."""
    kinds, first = of_each_kind(case, device), case.samples[0]
    yield from ((sample, dtype) for sample, dtype in samples(case, device) if dtype in kinds or sample is first)


def arguments(sample: Sample, dtype: str, make: Make) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, made anew."""
    return build(list(sample.args), dtype, make), build(sample.kwargs, dtype, make)
