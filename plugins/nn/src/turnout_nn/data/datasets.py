"""Data sets: objects with samples at indices, and objects that give one sample after the other."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, CallError, DimError
from turnout_nn import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """A data set with samples at indices. A class of yours defines `__getitem__`, and `__len__` where samplers need it.

    One that defines `__getitems__`, from a list of indices to a list of samples, is asked for a batch at once.
    """

    def __getitem__(self, index: Any) -> T:
        raise errors.undefined(self, "__getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """A data set that gives one sample after the other. A class of yours defines `__iter__`.

    Each worker has a copy; `get_worker_info` tells it which part is its own.
    """

    def __iter__(self) -> Iterator[T]:
        raise errors.undefined(self, "__iter__")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])  # type: ignore[list-item]


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors along their first dim: a sample is a tuple of what each has at an index.

    Arguments:
        tensors: tensors of one length
    """

    def __init__(self, *tensors: Tensor) -> None:
        lengths = [tensor.shape[0] for tensor in tensors]
        if len(set(lengths)) > 1:
            raise ArgumentError(f"TensorDataset: tensors must have one length, got {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Data sets side by side: a sample is a tuple, or a dict, of what each has at an index.

    Arguments:
        args: data sets of one length, or
        kwargs: data sets of one length by name
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ArgumentError("StackDataset: expected either data sets or data sets by name")
        self.datasets = args or kwargs
        for each in args or kwargs.values():
            if not hasattr(each, "__len__"):
                raise CallError(f"StackDataset: a data set must have a length, got {type(each).__name__}")
        lengths = [len(each) for each in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ArgumentError(f"StackDataset: data sets must have one length, got {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple([each[index] for each in self.datasets])

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Data sets one after the other.

    Arguments:
        datasets: data sets with samples at indices
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(each, IterableDataset) for each in self.datasets):
            raise ArgumentError("ConcatDataset: expected data sets with samples at indices; ChainDataset takes iterable ones")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise DimError(f"ConcatDataset: index {index} is outside of {len(self)} samples")
        which = bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Iterable data sets one after the other.

    Arguments:
        datasets: iterable data sets
    """

    def __init__(self, datasets: Iterable[IterableDataset[Any]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise ArgumentError(f"ChainDataset: expected iterable data sets, got {type(dataset).__name__}")
            yield from dataset

    def __len__(self) -> int:
        return sum([len(dataset) for dataset in self.datasets])  # type: ignore[arg-type, misc]


class Subset(Dataset[T]):
    """Some samples of a data set.

    Arguments:
        dataset: the data set
        indices: which samples
    """

    def __init__(self, dataset: Dataset[T] | Sequence[T], indices: Sequence[int]) -> None:
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset[T] | Sequence[T], lengths: Sequence[int | float], generator: Any = None) -> list[Subset[T]]:
    """Parts of a data set with samples drawn at random, each sample in one part.

    Raises ArgumentError for lengths that do not sum to the data set's, and shares that do not sum to 1.

    Arguments:
        dataset: the data set
        lengths: how many samples each part has, or which share of them
        generator: where the random numbers come from

    Example:
        >>> parts = turnout.utils.data.random_split(range(10), [0.7, 0.3])
        >>> [len(part) for part in parts]
        [7, 3]
    """
    size = len(dataset)  # type: ignore[arg-type]
    if lengths and math.isclose(sum(lengths), 1) and all(0 <= share <= 1 for share in lengths):
        lengths = [math.floor(size * share) for share in lengths]
        for i in range(size - sum(lengths)):  # type: ignore[arg-type]
            lengths[i % len(lengths)] += 1
    if sum(lengths) != size:
        raise ArgumentError(f"random_split: lengths must sum to {size} samples, or to 1 as shares, got {list(lengths)}")
    order = turnout.randperm(size, generator=generator).tolist()
    ends = list(accumulate(map(int, lengths)))
    return [Subset(dataset, order[end - int(length) : end]) for end, length in zip(ends, lengths, strict=True)]
