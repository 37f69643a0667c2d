"""`turnout.quantized`: `quantize` and `dequantize`, and the class of quantized tensors."""

from __future__ import annotations

import turnout
from turnout_aten.plugin_api import Tensor
from turnout_quantized.tensors import QuantizedTensor, fitting

__all__ = ["QuantizedTensor", "dequantize", "quantize"]


def quantize(x: Tensor, scale: float | None = None, zero_point: int = 0) -> QuantizedTensor:
    """Quantize floating-point values to int8. Without a scale, both numbers are chosen so that the range has all values."""
    if scale is None:
        scale, zero_point = fitting(x.detach())
    made: QuantizedTensor = turnout.ops.quantized.quantize(x, scale, zero_point)
    return made


def dequantize(q: Tensor) -> Tensor:
    """The values of a quantized tensor in float32."""
    made: Tensor = turnout.ops.quantized.dequantize(q)
    return made
