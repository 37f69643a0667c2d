"""The rows of raw kernels, put together from the modules of each family. Where cuDNN is installed, its own go over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout_aten.kernels.rows import table_of
from turnout_cuda import (
    attention,
    biased_products,
    direct_convolutions,
    foreach,
    images,
    indexing,
    losses,
    matrix_products,
    normalisation,
    optimisers,
    pointwise,
    pooling,
    random,
    reductions,
    scattering,
    selection,
    softmax,
    sorting,
    statistics,
)
from turnout_cuda.backend import CUDABackend
from turnout_cuda.programs import Programs

# Rows that do nothing but launch kernels: plans start what these would.
FAMILIES = (
    direct_convolutions, foreach, images, indexing, losses, normalisation, optimisers, pointwise, pooling, reductions, scattering,
    softmax, sorting, statistics,
)  # fmt: skip
# Others -> what their rows are made with.
_OTHERS: dict[Any, Callable[[CUDABackend], tuple[Any, ...]]] = {
    attention: lambda backend: (backend.xp,),
    biased_products: lambda backend: (backend.xp.products,),
    matrix_products: lambda backend: (backend.xp.products,),
    random: lambda backend: (backend,),
    selection: lambda backend: (backend.xp,),
}


def kernels(backend: CUDABackend) -> dict[str, Any]:
    """Operator -> function. A row that returns NotImplemented leaves the call to the kernel below."""
    given = dict.fromkeys(FAMILIES, (backend.xp, backend.xp.programs)) | {each: of(backend) for each, of in _OTHERS.items()}
    return table_of(given, lambda family: family.kernels(*given[family]))


def launches(xp: Any, programs: Programs) -> dict[str, Any]:
    """The same for those that only launch."""
    return table_of(FAMILIES, lambda family: family.kernels(xp, programs))
