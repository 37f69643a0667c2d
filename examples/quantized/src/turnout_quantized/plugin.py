"""Activation: two operators, and a fallback at the key of each backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.keys import KEYS
from turnout.plugins import hookimpl
from turnout_quantized.kernels import specialize
from turnout_quantized.tensors import KEY, encode

if TYPE_CHECKING:
    from turnout.plugins import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register everything. All installed backends have their keys already, whether they are active or not."""
    library.define("quantized::quantize(Tensor x, float scale, int zero_point) -> Tensor")
    library.impl("quantized::quantize", "CompositeExplicitAutograd", encode)
    library.define("quantized::dequantize(Tensor q) -> Tensor")
    for backend in KEYS.universe.backends:
        library.fallback(f"{KEY}{backend}", None, specialize=specialize, label="quantized")
