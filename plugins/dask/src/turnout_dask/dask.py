"""`turnout.dask`: tensors from Dask's arrays and back, chunks, and when they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any

import dask.array as da
import numpy as np
from dask import base

from turnout.config.effects import effect
from turnout.devices import device
from turnout.dtypes import DType, float32
from turnout.errors import ArgumentError, PluginError
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_dask import errors
from turnout_dask.steps import changes
from turnout_dask.whole import calls, reset_calls

__all__ = [
    "array_of",
    "calls_on_whole_arrays",
    "chunks",
    "client",
    "compute",
    "from_array",
    "from_delayed",
    "from_zarr",
    "persist",
    "rechunk",
    "reset_calls_on_whole_arrays",
    "step",
    "visualize",
]
__dir__ = __all__.copy


def from_array(x: Any, chunks: Any = "auto") -> Tensor:
    """A tensor on `dask` of a Dask array, a NumPy array, or anything with `shape`, `dtype` and slices, such as a file of Zarr.

    Nothing is read before it is needed. An array must not be written while the tensor is used.

    Arguments:
        x: the array
        chunks: as `dask.array.from_array` takes them; those of a Dask array are kept if this is "auto"
    """
    effect("turnout.dask.from_array()")
    given = isinstance(x, da.Array)
    return _adopted((x if chunks == "auto" else x.rechunk(chunks)) if given else da.from_array(x, chunks=chunks), "from_array")


def from_zarr(url: Any, component: str | None = None, chunks: Any = None, **options: Any) -> Tensor:
    """A tensor on `dask` of an array that Zarr stored, in the chunks of the file. Nothing is read before it is needed.

    Raises PluginError where zarr is not installed.

    Arguments:
        url: the folder or address, or an array of Zarr
        component: the path of the array in a group
        chunks: other chunks than those of the file, as `dask.array.from_zarr` takes them
        options: options of `dask.array.from_zarr`
    """
    effect("turnout.dask.from_zarr()")
    if find_spec("zarr") is None:
        raise PluginError(errors.not_installed("from_zarr", "zarr"))
    return _adopted(da.from_zarr(url, component, chunks=chunks, **options), "from_zarr")


def from_delayed(value: Any, shape: Sequence[int], dtype: DType = float32) -> Tensor:
    """A tensor on `dask` of one chunk, which a delayed function or a future gives as an array. `turnout.cat` makes one of many.

    What the function gives is checked when it is computed: DaskError for another shape or dtype.

    Arguments:
        value: what `dask.delayed(function)(...)` returned, or a `distributed.Future`
        shape: the shape of the array
        dtype: the type of its elements
    """
    effect("turnout.dask.from_delayed()")
    native = _backend().native_dtype(dtype)
    array = da.from_delayed(value, tuple(shape), dtype=native)
    meta = np.empty((0,) * array.ndim, native)
    return _adopted(array.map_blocks(_checked, array.shape, native, dtype=native, meta=meta), "from_delayed")


def _checked(block: Any, shape: tuple[int, ...], native: Any) -> Any:
    """A delayed value that is an array as it was said to be."""
    block = np.asarray(block)
    found, said = (f"{dtype} {list(lengths)}" for dtype, lengths in ((block.dtype, block.shape), (native, shape)))
    if found != said:
        raise errors.DaskError(errors.other_chunk(found, said))
    return block


def _backend() -> Any:
    place: Any = device("dask")
    return place.backend


def _adopted(array: da.Array, function: str) -> Tensor:
    """A tensor of a Dask array."""
    adopted = _backend().adopt(array)
    if adopted is None:
        raise ArgumentError(f"{function}: no tensor can have dtype {array.dtype} and shape {array.shape}")
    return wrap(adopted, device("dask"))


def array_of(tensor: Tensor) -> da.Array:
    """The Dask array with the elements that a tensor has now.

    Arguments:
        tensor: a tensor on `dask`
    """
    effect("turnout.dask.array_of()")
    if tensor.device.type != "dask":
        raise ArgumentError(f"expected a tensor on dask, got one on {tensor.device}")
    return tensor.array.value()


def chunks(tensor: Tensor) -> tuple[tuple[int, ...], ...]:
    """The lengths of the chunks along each dim.

    Arguments:
        tensor: a tensor on `dask`
    """
    return array_of(tensor).chunks


def rechunk(tensor: Tensor, chunks: Any) -> Tensor:
    """Cut a tensor into other chunks, in place: its elements, its version and its history stay. Returns it.

    Arguments:
        tensor: a tensor on `dask`
        chunks: as `dask.array.Array.rechunk` takes them
    """
    tensor.array.write(array_of(tensor).rechunk(chunks))
    return tensor


def persist(*tensors: Tensor) -> None:
    """Compute tensors now and keep the results as chunks where they were computed. What is made of them later starts there.

    Arguments:
        tensors: tensors on `dask`
    """
    for tensor, kept in zip(tensors, _backend().scheduling.persist([array_of(t) for t in tensors]), strict=True):
        tensor.array.write(kept)


def step() -> AbstractContextManager[None]:
    """For each turn of a loop: at the end of the block, what it made or wrote and is still in use is computed and kept in chunks.

    So the graph of the next turn starts from numbers: parameters, gradients and losses are computed together, each once. On a
    cluster the block does not wait for the workers. What the block leaves behind in names takes memory: a function that a turn
    calls leaves nothing but what it returns. If the block raises, nothing is computed. Each thread has its own steps.
    """
    effect("turnout.dask.step()")
    return _step()


@contextmanager
def _step() -> Iterator[None]:
    with changes() as changed:
        yield
    memories = [memory for memory in changed if memory.is_made]
    for memory, kept in zip(memories, _backend().scheduling.persist([m.value() for m in memories]), strict=True):
        memory.replace(kept)


def compute(*tensors: Tensor) -> Any:
    """Copies of tensors on `cpu`, computed together, so that what they share is computed once. One tensor for one argument.

    Arguments:
        tensors: tensors on `dask`
    """
    effect("turnout.dask.compute()")
    place: Any = device("cpu")
    arrays = _backend().scheduling.compute([array_of(t) for t in tensors])
    made = [wrap(place.backend.adopt(np.array(a, order="C")), place) for a in arrays]
    return made[0] if len(made) == 1 else tuple(made)


def client() -> Any:
    """The `distributed.Client` through which tensors are computed; None where the threads of this process do it.

    It has the address of Dask's dashboard, `client().dashboard_link`.
    """
    effect("turnout.dask.client()")
    return _backend().scheduling.client()


def visualize(*tensors: Tensor, filename: str | None = None, **options: Any) -> Any:
    """Draw the graph of tasks, as `dask.visualize` does; it needs Graphviz.

    Arguments:
        tensors: tensors on `dask`
        filename: the file, without a suffix
        options: options of `dask.visualize`
    """
    return base.visualize(*map(array_of, tensors), filename=filename, **options)


def calls_on_whole_arrays() -> dict[str, int]:
    """Operator -> how often it ran as one task, which needs all of its arrays in one place, since the last reset."""
    effect("turnout.dask.calls_on_whole_arrays()")
    return calls()


def reset_calls_on_whole_arrays() -> None:
    """Forget which operators ran on whole arrays."""
    effect("turnout.dask.reset_calls_on_whole_arrays()")
    reset_calls()
