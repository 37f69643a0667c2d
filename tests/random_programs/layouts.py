"""Calls of operator cases whose tensors lie in memory in other ways, for suites that compare how results lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

import turnout
from turnout_aten.generated.groups import STRUCTURED
from turnout_conformance.cases import ABOUT_STRIDES, CASES, OperatorCase, S, Sample, T, build

# What a library makes of memory: (NumPy array of one dim, shape, strides in elements) -> tensor.
Make = Callable[[Any, tuple[int, ...], tuple[int, ...]], Any]


def moved(x: Any, order: tuple[int, ...]) -> Any:
    """The same elements with dims that lie in memory in an order, slowest first."""
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def sliced(x: Any, order: tuple[int, ...]) -> Any:
    """Every second element of twice as much memory."""
    view = np.zeros([2 * x.shape[d] for d in order], x.dtype)[(slice(None, None, 2),) * x.ndim].transpose(np.argsort(order))
    view[...] = x
    return view


def expanded(x: Any, dim: int) -> Any:
    """The first element of a dim, repeated."""
    return np.broadcast_to(np.ascontiguousarray(x.take([0], dim)), x.shape)


# A layout of an array; None where it has none such.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x,
    "channels_last": lambda x: moved(x, (0, *range(2, x.ndim), 1)) if x.ndim in (4, 5) else None,
    "transposed": lambda x: moved(x, tuple(reversed(range(x.ndim)))) if x.ndim > 1 else None,
    "first two exchanged": lambda x: moved(x, (1, 0, *range(2, x.ndim))) if x.ndim > 2 else None,
    "sliced": lambda x: sliced(x, tuple(range(x.ndim))) if x.ndim else None,
    "sliced and transposed": lambda x: sliced(x, tuple(reversed(range(x.ndim)))) if x.ndim > 1 else None,
    "expanded along the first dim": lambda x: expanded(x, 0) if x.ndim > 1 and x.size else None,
    "expanded along the second dim": lambda x: expanded(x, 1) if x.ndim > 1 and x.size else None,
    "expanded along the last dim": lambda x: expanded(x, x.ndim - 1) if x.ndim > 2 and x.size else None,
}
# The layouts of the first, the second, ... tensor of a call; the last one is that of all others.
PLANS = (
    *((name,) for name in LAYOUTS),
    *((name, "contiguous") for name in LAYOUTS if name != "contiguous"),
    *(("contiguous", name) for name in ("channels_last", "transposed", "first two exchanged")),
    ("channels_last", "transposed"),
)
POINTWISE = {
    v for served, _, _, family in STRUCTURED.values() if family in ("pointwise", "elementary", "activations") for v in served
}


@dataclass(frozen=True)
class Combination:
    """An operator case's sample with the layouts of its tensors."""

    case: OperatorCase
    sample: Sample
    layouts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.case.op}, {', '.join(self.layouts)}"

    def arguments(self, make: Make) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the call in a library. A tensor of too few dims for its layout is contiguous."""
        count, dtype = iter(range(1000)), self.case.dtypes[0]
        each = partial(self._tensor, make, count)
        return build(list(self.sample.args), dtype, each), build(self.sample.kwargs, dtype, each)

    def _tensor(self, make: Make, count: Iterator[int], data: Any, dtype: str) -> Any:
        array = np.array(data, dtype, order="C")
        laid = LAYOUTS[self.layouts[min(next(count), len(self.layouts) - 1)]](array)
        array = array if laid is None else laid
        strides = tuple(s // array.itemsize for s in array.strides)
        size = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) if array.size else 0
        return make(np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,)).copy(), array.shape, strides)


def as_images(value: Any) -> Any:
    """A sample of a pointwise operator with images in place of its matrices."""
    if isinstance(value, T) and np.shape(value.data) == (2, 3):
        return T(np.resize(value.data, (2, 3, 4, 5)).tolist(), value.dtype)
    return [as_images(v) for v in value] if isinstance(value, list) else value


def of_images(case: OperatorCase) -> list[Sample]:
    """More samples of a pointwise operator."""
    return [S(*as_images(list(s.args)), **s.kwargs) for s in case.samples[:2]] if f"aten::{case.op}" in POINTWISE else []


@cache
def _applies(name: str, ndim: int) -> bool:
    return LAYOUTS[name](np.empty((1,) * ndim)) is not None


def _distinct(sample: Sample) -> Iterator[tuple[str, ...]]:
    """The plans in which some tensor of a sample does not lie row by row, and the plan in which all do."""
    ndims: list[int] = []
    build([list(sample.args), sample.kwargs], "float64", lambda data, dtype: ndims.append(np.ndim(data)))
    for plan in PLANS:
        names = [plan[min(i, len(plan) - 1)] for i in range(len(ndims))]
        if plan == ("contiguous",) or any(n != "contiguous" and _applies(n, d) for n, d in zip(names, ndims, strict=True)):
            yield plan


@cache
def combinations() -> tuple[Combination, ...]:
    """All of them, in the order of the cases."""
    return tuple(
        Combination(case, sample, layouts)
        for case in CASES
        if case.op not in ABOUT_STRIDES and case.dtypes[0] in np.sctypeDict
        for sample in (*case.samples, *of_images(case))
        for layouts in _distinct(sample)
    )  # fmt: skip


def chosen(seeds: range) -> Iterator[Combination]:
    """Combinations that are spread evenly over all of them, another one for each seed."""
    every = combinations()
    for seed in seeds:
        yield every[int(seed * 0.6180339887498949 % 1 * len(every))]


def here(memory: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> turnout.Tensor:
    """A tensor of Turnout on cpu."""
    return turnout.as_strided(turnout.from_numpy(memory), shape, strides)
