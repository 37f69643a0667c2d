"""Activation: one kernel at the key OpenCL. Gradient, shapes and batching rule are those of turnout-myops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.plugins import hookimpl
from turnout_aten.plugin_api import device, register_kernels
from turnout_myops_opencl.swish import kernel

if TYPE_CHECKING:
    from turnout.plugins import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the kernel in the group of the plugin, with which it is undone."""
    register_kernels(library, device("opencl").backend, {"swish": kernel}, namespace="myops")
