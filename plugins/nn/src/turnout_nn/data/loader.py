"""`DataLoader`: batches of a data set, read here or by worker processes."""

from __future__ import annotations

from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import turnout
from turnout.errors import ArgumentError, DeviceError
from turnout_aten.plugin_api import check_count
from turnout_nn import errors
from turnout_nn.data.batches import default_collate, default_convert, pinned
from turnout_nn.data.datasets import Dataset, IterableDataset
from turnout_nn.data.samplers import BatchSampler, RandomSampler, SequentialSampler, batches_of
from turnout_nn.data.workers import Sign, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T", covariant=True)
# What samplers are made from at the start, so that a change would have no effect.
_FIXED = ("batch_sampler", "batch_size", "dataset", "drop_last", "persistent_workers", "sampler")


class DataLoader(Generic[T]):
    """Batches of a data set, anew in each loop over it.

    With workers, the processes read ahead; batches come in the order of the sampler, and each worker has a seed of its own, which
    comes from `generator`. Batches are sent through pipes.

    # differs from torch: `DataLoader` copies the tensors of workers; they are not in shared memory.

    Arguments:
        dataset: an object with samples at indices, or an `IterableDataset`
        batch_size: how many samples a batch has; None: each sample is given as it is
        shuffle: whether the order is random in each loop
        sampler: indices, in place of an order
        batch_sampler: lists of indices, in place of batches
        num_workers: how many processes read; 0: this one does
        collate_fn: what makes a batch of a list of samples
        pin_memory: whether batches are in page-locked memory, from which a device copies faster
        drop_last: whether a last batch that has fewer samples is left out
        timeout: after how many seconds without an answer of a worker it is an error; 0: never
        worker_init_fn: called in each worker with its number
        multiprocessing_context: how workers are started: "fork", "spawn", "forkserver", or a context
        generator: where random orders and the seeds of workers come from
        prefetch_factor: how many batches a worker reads ahead; None: 2
        persistent_workers: whether workers stay between loops
        pin_memory_device: accepted; memory is page-locked for the device that reads it
        in_order: whether batches come in the order of the sampler, or as they are ready

    Example:
        >>> data = turnout.utils.data.TensorDataset(turnout.arange(5), turnout.arange(5) * 10)
        >>> for numbers, tens in turnout.utils.data.DataLoader(data, batch_size=2, drop_last=True):
        ...     print(numbers, tens)
        tensor([0, 1]) tensor([ 0, 10])
        tensor([2, 3]) tensor([20, 30])
    """

    def __init__(
        self, dataset: Dataset[T] | Iterable[T], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None, batch_sampler: Iterable[list[Any]] | None = None, num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None, generator: Any = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        is_iterable = isinstance(dataset, IterableDataset)
        for wrong, text in (
            (num_workers < 0, f"num_workers must be at least 0, got {num_workers}"),
            (timeout < 0, f"timeout must be at least 0, got {timeout}"),
            (num_workers == 0 and prefetch_factor is not None, "prefetch_factor needs num_workers above 0"),
            (prefetch_factor is not None and prefetch_factor < 1, f"prefetch_factor must be above 0, got {prefetch_factor}"),
            (num_workers == 0 and persistent_workers, "persistent_workers=True needs num_workers above 0"),
            (is_iterable and shuffle, "shuffle=True needs a data set with samples at indices"),
            (is_iterable and not (sampler is None and batch_sampler is None), "an IterableDataset takes no sampler"),
            (sampler is not None and shuffle, "sampler and shuffle=True exclude each other"),
            (
                batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last),
                "batch_sampler excludes batch_size, shuffle, sampler and drop_last",
            ),
            (batch_size is None and drop_last, "drop_last=True needs a batch_size"),
            (num_workers == 0 and multiprocessing_context is not None, "multiprocessing_context needs num_workers above 0"),
        ):
            if wrong:
                raise ArgumentError(f"DataLoader: {text}")
        check_count("DataLoader", "batch_size", batch_size, or_none=True)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.drop_last = drop_last
        self.batch_size = None if batch_sampler is not None else batch_size
        if sampler is None and not is_iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)  # type: ignore[arg-type]
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and not is_iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._is_batched() else default_convert)
        self._workers: Workers | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_workers" in self.__dict__:
            raise ArgumentError(f"DataLoader: {name} cannot be set once there is a loader; make another one")
        object.__setattr__(self, name, value)

    def _is_batched(self) -> bool:
        return self.batch_sampler is not None or self.batch_size is not None

    def _reader(self) -> Any:
        """A function that makes what reads samples, as the loader is set now."""
        if isinstance(self.dataset, IterableDataset):
            return partial(_ReadNext, self.dataset, self.collate_fn, self.batch_size, self.drop_last)
        return partial(_ReadAt, self.dataset, self.collate_fn, self._is_batched(), self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self.timeout and not self.num_workers:
            raise ArgumentError("DataLoader: timeout needs num_workers above 0")
        seed = int(turnout.randint(2**62, (), dtype=turnout.int64, generator=self.generator))
        tasks: Iterator[Any] = repeat(None) if isinstance(self.dataset, IterableDataset) else iter(self._order())
        batches = self._from_workers(tasks, seed) if self.num_workers else self._here(tasks)
        return _pinned(batches) if self.pin_memory else batches

    def _order(self) -> Iterable[Any]:
        order = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert order is not None
        return order

    def _here(self, tasks: Iterator[Any]) -> Iterator[Any]:
        read = self._reader()()
        for task in tasks:
            batch = read(task)
            if batch is Sign.END:
                return
            yield batch

    def _from_workers(self, tasks: Iterator[Any], seed: int) -> Iterator[Any]:
        workers = self._workers
        if workers is None:
            workers = Workers(
                self.num_workers,
                self.dataset,
                self._reader(),
                seed,
                self.worker_init_fn,
                self.multiprocessing_context,
                self.timeout,
            )
            if self.persistent_workers:
                self._workers = workers
        try:
            yield from workers.batches(tasks, self.prefetch_factor or 2, self.in_order)
        except Exception:
            self._workers = None
            workers.close()
            raise
        finally:
            if self._workers is None:
                workers.close()

    def __len__(self) -> int:
        """How many batches there are. Raises TypeError where the data set or the sampler has no length."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self._order())  # type: ignore[arg-type]
        size = len(self.dataset)  # type: ignore[arg-type]
        return size if self.batch_size is None else batches_of(size, self.batch_size, self.drop_last)


def _pinned(batches: Iterator[Any]) -> Iterator[Any]:
    """Batches in page-locked memory; as they are where no device reads it, as in PyTorch."""
    for batch in batches:
        try:
            copy = pinned(batch)
        except DeviceError as error:
            errors.warn(f"DataLoader: batches are not in page-locked memory: {str(error).splitlines()[0]}")
            yield batch
            yield from batches
        else:
            yield copy


class _ReadAt:
    """Reads the samples at indices."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], is_batched: bool, drop_last: bool) -> None:
        self.dataset, self.collate, self.is_batched = dataset, collate, is_batched

    def __call__(self, indices: Any) -> Any:
        if not self.is_batched:
            return self.collate(self.dataset[indices])
        if hasattr(self.dataset, "__getitems__"):
            return self.collate(self.dataset.__getitems__(indices))
        return self.collate([self.dataset[i] for i in indices])


class _ReadNext:
    """Reads the next samples. Gives `Sign.END` where none is left."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], size: int | None, drop_last: bool) -> None:
        self.samples = iter(dataset)
        self.collate, self.size, self.drop_last = collate, size, drop_last

    def __call__(self, indices: Any) -> Any:
        if self.size is None:
            for sample in self.samples:
                return self.collate(sample)
            return Sign.END
        samples = list(islice(self.samples, self.size))
        if not samples or (self.drop_last and len(samples) < self.size):
            return Sign.END
        return self.collate(samples)
