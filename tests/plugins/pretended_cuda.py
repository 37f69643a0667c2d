"""The CUDA backend over the stand-in for CuPy, as a device of its own, so that the tests also run where CUDA is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import cublas_stand_in
import cupy_stand_in

import turnout
from turnout.registry import Registrations
from turnout_cuda import plugin
from turnout_cuda.backend import CUDABackend
from turnout_cuda.module import CuPyModule


class Pretended(CUDABackend):
    """The backend under another name."""

    name = "PRETENDED"
    device_type = "pretended"


@contextlib.contextmanager
def pretended(
    kind: type[CUDABackend] = Pretended, cudnn: Any = None, precision: Callable[[], str] = lambda: "highest"
) -> Iterator[Any]:
    """Two devices `pretended`; with `CUDABackend` they are devices `cuda`, where there is none."""
    turnout.ones(1)  # the operators are defined when the first of them is used
    cupy = cupy_stand_in.Module()
    xp = CuPyModule(cupy, cupy_stand_in.errstate, precision, lambda _: (cublas_stand_in, cublas_stand_in))
    with Registrations("pretended") as library:
        made = kind(cupy, xp)
        plugin.register(library, made, cudnn=cudnn)
        yield made
