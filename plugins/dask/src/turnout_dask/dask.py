"""`turnout.dask`: tensors from Dask's arrays and back, chunks, and when they are computed."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import base

from turnout.devices import device
from turnout.errors import ArgumentError
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_dask.whole import calls, reset_calls

__all__ = [
    "array_of",
    "calls_on_whole_arrays",
    "chunks",
    "compute",
    "from_array",
    "persist",
    "rechunk",
    "reset_calls_on_whole_arrays",
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
    place: Any = device("dask")
    given = isinstance(x, da.Array)
    array = (x if chunks == "auto" else x.rechunk(chunks)) if given else da.from_array(x, chunks=chunks)
    adopted = place.backend.adopt(array)
    if adopted is None:
        raise ArgumentError(f"from_array: no tensor can have dtype {array.dtype} and shape {array.shape}")
    return wrap(adopted, place)


def array_of(tensor: Tensor) -> da.Array:
    """The Dask array with the elements that a tensor has now.

    Arguments:
        tensor: a tensor on `dask`
    """
    if tensor.device.type != "dask":
        raise ArgumentError(f"expected a tensor on dask, got one on {tensor.device}")
    found: da.Array = tensor.array.value()
    return found


def chunks(tensor: Tensor) -> tuple[tuple[int, ...], ...]:
    """The lengths of the chunks along each dim.

    Arguments:
        tensor: a tensor on `dask`
    """
    found: tuple[tuple[int, ...], ...] = array_of(tensor).chunks
    return found


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
    for tensor, kept in zip(tensors, base.persist(*map(array_of, tensors)), strict=True):
        tensor.array.write(kept)


def compute(*tensors: Tensor) -> Any:
    """Copies of tensors on `cpu`, computed together, so that what they share is computed once. One tensor for one argument.

    Arguments:
        tensors: tensors on `dask`
    """
    place: Any = device("cpu")
    made = [wrap(place.backend.adopt(np.array(a, order="C")), place) for a in base.compute(*map(array_of, tensors))]
    return made[0] if len(made) == 1 else tuple(made)


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
    return calls()


def reset_calls_on_whole_arrays() -> None:
    """Forget which operators ran on whole arrays."""
    reset_calls()
