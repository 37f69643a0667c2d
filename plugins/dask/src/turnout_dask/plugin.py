"""Activation: registers the backend, its kernels, and the host fallback for operators whose result depends on the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from turnout.operators import tensors_in
from turnout.plugins import hookimpl
from turnout_aten.backend.functional_rows import register_functional_kernels
from turnout_aten.backend.host_fallback import host
from turnout_aten.tensor.tensor import Tensor
from turnout_dask.backend import DaskBackend
from turnout_dask.kernels import kernels
from turnout_dask.whole import check_size

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register device `dask`."""
    backend = DaskBackend(lambda name: options[name])
    library.backend(backend)
    library.on_undo(backend.scheduling.close)
    register_functional_kernels(library, backend, kernels(backend))
    library.fallback(backend.name, limited(backend))


def limited(backend: DaskBackend) -> Callable[..., Any]:
    """The host fallback, for tensors of a limited size."""
    run = host("cpu")

    @wraps(run)
    def run_on_host(op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
        size = sum(t.nbytes for t in tensors_in(args) if isinstance(t, Tensor))
        check_size(op.qualified_name, size, backend.bytes_of("host_limit"))
        return run(op, ks, args)

    return run_on_host
