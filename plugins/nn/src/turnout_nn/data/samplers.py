"""Samplers: the order in which the samples of a data set are read."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import turnout
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import check_count
from turnout_nn import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Sized

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """An order of samples. A class of yours defines `__iter__`, which gives indices, and `__len__` where it is known."""

    def __iter__(self) -> Iterator[T]:
        raise errors.undefined(self, "__iter__")


class SequentialSampler(Sampler[int]):
    """All samples in their order.

    Arguments:
        data_source: the data set
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples in random order, each once, or drawn with replacement.

    Arguments:
        data_source: the data set
        replacement: whether a sample may be drawn twice
        num_samples: how many are drawn; None: as many as there are
        generator: where the random numbers come from
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        check_count("RandomSampler", "num_samples", num_samples, or_none=True)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many samples are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, left = len(self.data_source), self.num_samples
        while left > 0:
            if self.replacement:
                drawn = turnout.randint(size, (min(left, 1024),), dtype=turnout.int64, generator=self.generator).tolist()
            else:
                drawn = turnout.randperm(size, generator=self.generator).tolist()[:left]
            left -= len(drawn)
            yield from drawn
            if not drawn:
                return

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Arguments:
        indices: the indices
        generator: where the random numbers come from
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in turnout.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices that are drawn by weights.

    Arguments:
        weights: how likely each index is, not summing to 1 by need
        num_samples: how many are drawn
        replacement: whether an index may be drawn twice
        generator: where the random numbers come from
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        check_count("WeightedRandomSampler", "num_samples", num_samples)
        self.weights = turnout.as_tensor(weights, dtype=turnout.float64)
        if self.weights.dim() != 1:
            raise ArgumentError(f"WeightedRandomSampler: weights must be a vector, got shape {list(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = turnout.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of the indices that another sampler gives.

    Arguments:
        sampler: the sampler
        batch_size: how many indices a list has
        drop_last: whether a last list that has fewer is left out
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        check_count("BatchSampler", "batch_size", batch_size)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        return batches_of(len(self.sampler), self.batch_size, self.drop_last)  # type: ignore[arg-type]


def batches_of(size: int, batch_size: int, drop_last: bool) -> int:
    """How many batches so many samples are."""
    return size // batch_size if drop_last else -(-size // batch_size)
