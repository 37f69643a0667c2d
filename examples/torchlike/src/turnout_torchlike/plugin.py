"""Activation: the backend, its kernels, and cpu for operators without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnout.plugins import Registrations, hookimpl
from turnout_aten.plugin_api import host, register_kernels

from turnout_torchlike.backend import TorchlikeBackend
from turnout_torchlike.kernels import KERNELS


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register everything through `library`, which takes it back when the plugin is deactivated."""
    backend = TorchlikeBackend()
    library.backend(backend)
    register_kernels(library, backend, KERNELS)
    library.fallback(backend.name, host("cpu", "plugin.torchlike.host_fallback"))
