"""`QuantizedTensor`: codes in int8 memory that stand for the values `(code - zero_point) * scale`.

The tensor has the key Quantized of its backend, so its operators come to the kernels of this package and never to those that
would take the codes for the values. Views share the memory of the codes.
"""

from __future__ import annotations

from typing import Any, NoReturn

import turnout
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import Tensor, as_subclass, with_key, without_key

KEY = "Quantized"
LOWEST, HIGHEST = -128, 127


class QuantizedTensor(Tensor):
    """A tensor whose elements stand for `(code - zero_point) * scale`. Make one with `turnout.quantized.quantize`.

    scale       a positive float
    zero_point  the code of the value 0, from -128 to 127
    """

    __slots__ = ("scale", "zero_point")

    scale: float
    zero_point: int

    @property
    def codes(self) -> Tensor:
        """The int8 codes as a plain tensor over the same memory."""
        return without_key(self, KEY)

    def dequantize(self) -> Tensor:
        """The values as a float32 tensor."""
        made: Tensor = turnout.ops.quantized.dequantize(self)
        return made

    # What reads the memory itself, without an operator, would see the codes.

    def item(self) -> Any:
        """The value of a tensor with one element."""
        return self.dequantize().item()

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self.dequantize().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Not possible without a copy unless `force` is true: NumPy has no such elements."""
        if not force:
            raise ArgumentError("numpy: a quantized tensor cannot share its values; call dequantize() first, or use force=True")
        return self.dequantize().numpy(force=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.dequantize().__array__(dtype)

    def __dlpack__(self, **options: Any) -> NoReturn:
        raise ArgumentError("__dlpack__: a quantized tensor cannot share its values; call dequantize() first")

    def __repr__(self) -> str:
        values = repr(self.dequantize()).removeprefix("tensor(").removesuffix(")").replace("\n", "\n   ")
        return f"quantized({values}, scale={self.scale:.6g}, zero_point={self.zero_point})"


def of_codes(codes: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """The quantized tensor over the memory of int8 codes."""
    made: QuantizedTensor = as_subclass(with_key(codes, KEY), QuantizedTensor)
    made.scale = scale
    made.zero_point = zero_point
    return made


def encode(x: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """Round values to the nearest codes; those outside of the range become the lowest or highest one."""
    if not x.is_floating_point():
        raise ArgumentError(f"quantize: expected floating-point values, got {x.dtype.name}")
    if not 0 < scale < float("inf"):
        raise ArgumentError(f"quantize: the scale is a positive number, got {scale!r}")
    if not LOWEST <= zero_point <= HIGHEST:
        raise ArgumentError(f"quantize: the zero point is a code from {LOWEST} to {HIGHEST}, got {zero_point}")
    codes = (x / scale).round().add(zero_point).clamp(LOWEST, HIGHEST).to(turnout.int8)
    return of_codes(codes, scale, zero_point)


def decode(q: QuantizedTensor) -> Tensor:
    """The values of the codes, in float32."""
    return (q.codes.to(turnout.float32) - q.zero_point) * q.scale


def fitting(x: Tensor) -> tuple[float, int]:
    """The scale and zero point whose range has all values of `x`, and 0, which must have a code."""
    if not x.numel():
        return 1.0, 0
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    if not high - low < float("inf"):
        raise ArgumentError(f"quantize: no scale fits values from {low} to {high}")
    scale = (high - low) / (HIGHEST - LOWEST) or 1.0
    return scale, max(LOWEST, min(HIGHEST, round(LOWEST - low / scale)))
