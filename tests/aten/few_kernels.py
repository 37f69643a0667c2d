"""A backend over NumPy with few kernels: everything else on it is composed of them, with the methods of a backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import turnout
import turnout_arrays
from turnout.registry import Registrations
from turnout_aten.kernels.tables import register_kernels

# What composite kernels, indexing and the wrappers are tested with.
NAMES = (
    "add.out", "sub.out", "rsub.Tensor_out", "mul.out", "lt.Tensor_out", "gt.Tensor_out", "where.self_out",
    "remainder.Tensor_out", "bitwise_and.Tensor_out", "sum.out", "cumsum.out", "cat.out", "nonzero", "index.Tensor_out",
    "index_put.out",
)  # fmt: skip
KERNELS = {name: row for name, row in turnout_arrays.kernels(np).items() if name in NAMES}


class FewKernels(turnout_arrays.ArrayBackend):
    """The device "few"."""

    name = "Few"
    device_type = "few"
    wrapper_module = "turnout_arrays.wrapped"


@contextmanager
def registered() -> Iterator[FewKernels]:
    """The backend with its kernels, until the block ends."""
    backend = FewKernels(np)
    with Registrations("few-kernels-of-tests") as library:
        library.backend(backend)
        register_kernels(library, backend, KERNELS)
        yield backend


def made(data: Any, dtype: Any = None) -> turnout.Tensor:
    """A tensor on "few" from nested lists."""
    return turnout.tensor(data, dtype=dtype, device="few")


def lists(tensor: turnout.Tensor) -> Any:
    """A tensor's values as nested lists."""
    return tensor.tolist()
