"""What an operator case is, and the data that samples are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int64")
BITS = ("int64", "bool")
Vectors = tuple[tuple[int, int], ...]
Reference = Callable[..., Any]

# Operators that see strides, not elements alone: they refuse some layouts, whichever the device.
ABOUT_STRIDES = (
    "as_strided", "as_strided_copy", "as_strided_scatter", "_reshape_alias", "_reshape_alias_copy", "view", "view_as",
    "view_as_complex", "view_copy", "view.dtype", "view_copy.dtype",
)  # fmt: skip


@dataclass(frozen=True)
class T:
    """A tensor of a sample: nested lists and a dtype name, None for the dtype under test."""

    data: Any
    dtype: str | None = None


@dataclass(frozen=True)
class Drawn:
    """A tensor of a sample with so many elements that NumPy draws them, when the sample is built: the same ones each time.

    shape     its shape
    dtype     the name of a fixed dtype, None for the dtype under test
    low, high the numbers lie between them, those of unsigned integers above 0; a bool is true where a number is above their mean
    seed      another one gives other numbers
    step      they are multiples of it, so that many are equal; 0.0 for any numbers
    marked    (place in row-major order, number) of elements that are not drawn
    """

    shape: tuple[int, ...]
    dtype: str | None = None
    low: float = -3.0
    high: float = 3.0
    seed: int = 1
    step: float = 0.0
    marked: tuple[tuple[int, Any], ...] = ()

    @lru_cache(maxsize=8)  # noqa: B019 - those of one sample, which is built several times
    def data(self, dtype: str) -> Any:
        """The array of NumPy that a tensor of this dtype is made of, which nobody may write into."""
        import numpy as np

        random = np.random.default_rng(self.seed)
        kind = "bool" if dtype == "bool" else "u" if dtype[0] == "u" else dtype[0]
        made: Any = random.uniform(max(self.low, 0.0) if kind == "u" else self.low, self.high, self.shape)
        if kind == "c":
            made = made + 1j * random.uniform(self.low, self.high, self.shape)
        if self.step or kind in "ui":
            made = np.round(made / (self.step or 1.0)) * (self.step or 1.0)
        if kind == "bool":
            made = made > (self.low + self.high) / 2
        elif kind in "ui":
            made = made.astype(np.int64)
        for place, number in self.marked:
            made.reshape(-1)[place] = number
        return made


@dataclass(frozen=True)
class Seen:
    """A tensor of a sample that is seen through a view: `Seen(Drawn((9, 14)), lambda x: x[:, ::2])`."""

    tensor: T | Drawn | Seen
    view: Callable[[Any], Any]


class DTypeUnderTest:
    """Stands for the dtype that a tensor without one of its own has, where an operator takes a dtype."""


UNDER_TEST = DTypeUnderTest()


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SampleSet:
    """Samples of an operator that stand for one purpose: special values, large arrays.

    samples    calls; their results are compared with those of cpu in float64
    dtypes     the names that tensors without a dtype of their own are tried in
    tolerance  None where each number of a result is rounded on its own, and its error counted in units in the last place.
               Otherwise the error relative to the largest number of the result, in those of `accuracy.TOLERANCES`
    in_turn    in how many of the dtypes each sample is tried, in turn; 0 for all
    wide       whether floats of 64 bits are expected; False where a step depends on rounding, and cpu's own dtype is
    """

    samples: Sequence[Sample]
    dtypes: tuple[str, ...]
    tolerance: float | None = None
    in_turn: int = 0
    wide: bool = True

    def calls(self) -> Iterator[tuple[Sample, str]]:
        """Each sample with the dtypes in which it is tried."""
        for i, sample in enumerate(self.samples):
            first = i * self.in_turn % len(self.dtypes)
            for dtype in (self.dtypes * 2)[first : first + (self.in_turn or len(self.dtypes))]:
                yield sample, dtype


@dataclass(frozen=True)
class OperatorCase:
    """One operator.

    op              name and overload, without namespace: "add.Tensor"
    samples         its calls
    reference       (numpy, *args, **kwargs) -> array, number or tuple of them
    dtypes          the names that `T(data)` is tried in
    tolerance       relative and absolute, for float64; float32 gets a fixed wider one
    differentiable  whether gradients with respect to floating tensors are checked; an output that is not floating has none
    sets            further samples by the name of their set, for those who ask for them: see `sets`
    vectors         results of which only directions are determined: (position, axis that counts the vectors). A factor of
                    modulus 1 of each is anybody's choice; vectors of the same number share it, rows (axis -2) conjugated
    """

    op: str
    samples: tuple[Sample, ...]
    reference: Reference
    dtypes: tuple[str, ...] = FLOATS
    tolerance: float = 1e-9
    differentiable: bool = True
    vectors: Vectors = ()
    sets: Mapping[str, tuple[SampleSet, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.op


def build(value: Any, dtype: str, make: Callable[[Any, str], Any]) -> Any:
    """A sample's value with `make(data, dtype name)` in place of each T and Drawn, inside lists and dicts too."""
    if isinstance(value, T):
        return make(value.data, value.dtype or dtype)
    if isinstance(value, Drawn):
        return make(value.data(value.dtype or dtype), value.dtype or dtype)
    if isinstance(value, Seen):
        return value.view(build(value.tensor, dtype, make))
    if isinstance(value, DTypeUnderTest):
        return make([], dtype).dtype
    if isinstance(value, list):
        return [build(v, dtype, make) for v in value]
    if isinstance(value, dict):
        return {k: build(v, dtype, make) for k, v in value.items()}
    return value


def calls(case: OperatorCase, dtype: str, make: Callable[[Any, str], Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of every sample, built."""
    for sample in case.samples:
        yield tuple(build(a, dtype, make) for a in sample.args), build(sample.kwargs, dtype, make)


def close(numpy: Any, found: Any, expected: Any, tolerance: float) -> bool:
    """Whether two arrays agree; float32 and lower within 1e-5, float64 within the case's tolerance; nan equals nan."""
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    if found.shape != expected.shape:
        return False
    wide = found.dtype in (numpy.float64, numpy.complex128)
    limit = tolerance if wide else max(tolerance, 2e-5)
    return bool(numpy.allclose(found, expected, rtol=limit, atol=limit, equal_nan=True))


# ---- data


def values(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 1) -> Any:
    """Nested lists of distinct numbers, spread over [low, high] in an irregular order, none of them near 0."""
    count = 1
    for n in shape:
        count *= n
    step = 7919 * seed
    flat = [low + (high - low) * ((step * (i + 1)) % 1009) / 1009 for i in range(count)]
    return nested([v if abs(v) > 0.05 else v + 0.1 for v in flat], shape)


def whole(*shape: int, low: int = 0, high: int = 9, seed: int = 1) -> Any:
    """Nested lists of integers from low to high - 1."""
    count = 1
    for n in shape:
        count *= n
    return nested([low + (7919 * seed * (i + 1)) % 1009 % (high - low) for i in range(count)], shape)


def nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as nested ones."""
    if not shape:
        return flat[0]
    size = len(flat) // shape[0] if shape[0] else 0
    return [nested(flat[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def S(*args: Any, **kwargs: Any) -> Sample:
    """A sample."""
    return Sample(args, kwargs)


def some(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 1) -> T:
    """A tensor of such `values`."""
    return T(values(*shape, low=low, high=high, seed=seed))


def row(op: str, samples: Sample | tuple[Sample, ...], reference: Reference | str, *dtypes, **rest) -> OperatorCase:
    """The case of an operator, from the fields of `OperatorCase`: one sample without a tuple, NumPy's function by its name."""
    if isinstance(samples, Sample):
        samples = (samples,)
    if isinstance(reference, str):
        name = attrgetter(reference)
        return OperatorCase(op, samples, lambda np, *args, **kwargs: name(np)(*args, **kwargs), *dtypes, **rest)
    return OperatorCase(op, samples, reference, *dtypes, **rest)


def one(low: float = -2.0, high: float = 2.0) -> tuple[Sample, ...]:
    """Samples of one tensor: two dims, none, empty."""
    return (S(some(2, 3, low=low, high=high)), S(some(low=low, high=high)), S(T([])))


def two(low: float = -2.0, high: float = 2.0, *rest: Any, **kwargs: Any) -> tuple[Sample, ...]:
    """Samples of two tensors: equal shapes, broadcast both ways, one without dims, empty."""
    a: dict[str, Any] = {"low": low, "high": high, "seed": 1}
    b: dict[str, Any] = {"low": low, "high": high, "seed": 3}
    return (
        S(some(2, 3, **a), some(2, 3, **b), *rest, **kwargs),
        S(some(2, 1, **a), some(3, **b), *rest, **kwargs),
        S(some(2, **a), some(**b), *rest, **kwargs),
        S(T([]), T([]), *rest, **kwargs),
    )


M = some(2, 3)
POSITIVE: dict[str, Any] = {"low": 0.1, "high": 3.0}
INDEX = T([1, 0, 1], "int64")
