"""The whole table, put together from the modules of each family.

A row computes in the dtypes that OpenCL C has; for others (complex) the same row runs on the host. Of complex64, some rows
compute here (`complexes`), and rows that only move elements move them as integers of their size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout.devices import Device, device
from turnout.dtypes import complex64, int64
from turnout_aten.backend.host_fallback import on_host
from turnout_aten.kernels.rows import Row, table_of
from turnout_opencl import (
    activations,
    complexes,
    convolutions,
    elementary,
    images,
    indexing,
    losses,
    matrix_products,
    normalisation,
    pointwise,
    pooling,
    reductions,
    scattering,
    softmax,
    sorting,
    special,
    statistics,
)
from turnout_opencl.arrays import ClArray
from turnout_opencl.backend import OpenCLBackend

OPTION = "plugin.opencl.host_fallback"  # read at each call that a kernel does not serve
FAMILIES = (
    pointwise, activations, elementary, special, reductions, statistics, matrix_products, softmax, losses, indexing, scattering,
    sorting, convolutions, pooling, images, normalisation,
)  # fmt: skip

# Rows that only move elements -> the arguments whose elements they move. The last argument is where they go.
_MOVING = {
    "index.Tensor_out": (0,), "index_put.out": (0, 2), "index_select.out": (0,), "gather.out": (0,), "scatter.src_out": (0, 3),
    "constant_pad_nd.out": (0, 2), "scatter.value_out": (0, 3),
    "where.self_out": (1, 2), "tril.out": (0,), "triu.out": (0,), "cat.out": (0,), "flip.out": (0,),
}  # fmt: skip


def kernels(backend: OpenCLBackend) -> dict[str, Any]:
    """Operator -> row. While the host is switched off, dtypes that have no kernel are a DTypeError."""
    table: dict[str, Any] = dict(sorting.PLAIN)
    for name, row in table_of(FAMILIES, lambda family: family.KERNELS).items():
        table[name] = Row(_by_dtype(name, row.fn, on_host(name, backend, _place, option=OPTION)), pointwise=row.pointwise)
    return table


def _by_dtype(name: str, fn: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` where the device computes in all dtypes of the call, else `other`."""

    of_pairs = complexes.KERNELS.get(name)

    def kernel(*args: Any) -> None:
        for value in args:
            for array in value if value.__class__ is list else (value,):
                if array.__class__ is ClArray and not array.place.supports(array.dtype):
                    moved = _as_integers(name, args)
                    if moved is not None:
                        fn(*moved)
                    elif of_pairs is not None and complexes.serves(args):
                        of_pairs(*args)
                    else:
                        other(*args)
                    return
        fn(*args)

    kernel.__wrapped__ = fn  # type: ignore[attr-defined]  # so that `explain` names the function that computes
    return kernel


def _as_integers(name: str, args: tuple[Any, ...]) -> list[Any] | None:
    """The arguments of a row that moves elements of complex64 only, with these as int64; None for any other call."""
    if name not in _MOVING or (name == "index_put.out" and args[3]):  # which adds
        return None
    given = list(args)
    seen: dict[int, ClArray] = {}  # what is the same array stays the same
    for at in (*_MOVING[name], len(given) - 1):
        value = given[at]
        if isinstance(value, (int, float, complex)):
            given[at] = complexes.bits(value)
            continue
        arrays = value if value.__class__ is list else [value]
        if any(array.__class__ is not ClArray or array.dtype is not complex64 for array in arrays):
            return None
        views = [
            seen.setdefault(id(a), ClArray(a.place, a.buffer, a.shape, int64, a.strides, a.offset)) for a in arrays
        ]  # fmt: skip
        given[at] = views if value.__class__ is list else views[0]
    return given


def _place(array: ClArray) -> Device:
    return device("opencl", array.place.index)
