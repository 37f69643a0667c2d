"""Activation: registers device `meta`, and what serves fake tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl
from turnout_aten.kernels.tables import register_kernels
from turnout_meta.backend import MetaBackend
from turnout_meta.fakes import service, values
from turnout_meta.fakes.calls import LABEL, specialize
from turnout_meta.kernels import kernels

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the backend and its kernels, and the kernels, the fallback and the service of Fake."""
    backend = MetaBackend()
    library.backend(backend)
    register_kernels(library, backend, kernels())
    for name, kernel in values.kernels().items():
        library.impl(name, "Fake", kernel, form=INTERNAL, binder=service.bind_kernel)
    library.fallback("Fake", None, form=INTERNAL, specialize=specialize, label=LABEL)
    library.service("Fake", service)
