"""Activation: registers the backend, its kernels, and cpu for operators without one."""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from jax import monitoring

from turnout import config
from turnout.plugins import hookimpl
from turnout_aten.backend.functional_rows import register_functional_kernels, register_functional_over
from turnout_aten.backend.host_fallback import host
from turnout_jax import cache
from turnout_jax.backend import JaxBackend
from turnout_jax.kernels import kernels, over_composites

if TYPE_CHECKING:
    from turnout.registry import Registrations

OPTION = "plugin.jax.host_fallback"
CACHE = "plugin.jax.cache"


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register device `jax`."""
    backend = JaxBackend()
    library.backend(backend)
    monitoring.register_event_duration_secs_listener(backend.count)
    library.on_undo(lambda: _leave(backend))
    register_functional_kernels(library, backend, kernels())
    register_functional_over(library, backend, over_composites())
    library.fallback(backend.name, host("cpu", OPTION))
    keeping = ExitStack()

    def follow(changed: Set[str]) -> None:
        if CACHE in changed:
            keeping.close()
            if config.get(CACHE):
                cache.use(keeping)

    library.on_undo(keeping.close)
    library.on_undo(config.on_change(follow))
    follow({CACHE})


def _leave(backend: JaxBackend) -> None:
    """Listen to JAX no more. The program may have taken all listeners away; older versions of JAX never take one away."""
    leave = getattr(monitoring, "unregister_event_duration_listener", None)
    with suppress(AssertionError, ValueError):
        if leave is not None:
            leave(backend.count)
