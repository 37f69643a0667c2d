"""Activation: the fallbacks of Batched and BatchedMode, how tensors are lowered, and the service behind `turnout.vmap`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl
from turnout_aten.tensor.levels import install_lowering
from turnout_batched import kernels, levels, randomness, service

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register everything."""
    library.fallback("Batched", None, form=INTERNAL, specialize=kernels.specialize, label="vmap")
    library.fallback("BatchedMode", None, form=INTERNAL, specialize=randomness.specialize, label="randomness of vmap")
    library.on_undo(install_lowering(levels.lower, levels.raise_, levels.peel, levels.levels_of))
    library.service("Batched", service)
