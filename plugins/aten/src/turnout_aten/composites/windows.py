"""Window functions as factories: hann, hamming, blackman, bartlett and kaiser, symmetric or periodic.

A periodic window of length n is the symmetric one of length n + 1 without its last value. Computed in the result's dtype,
two-byte floats in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, get_default_dtype
from turnout.errors import DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.conversions import converted
from turnout_aten.dtypes import WIDE
from turnout_aten.errors import arguments as texts

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def _window(name: str, length: int, periodic: bool, shape: Callable[[Tensor, int], Tensor], options: dict[str, Any]) -> Tensor:
    """`shape(positions, last position)` for the positions of the symmetric window."""
    dtype = options.pop("dtype", None) or get_default_dtype()
    if dtype.category != FLOAT:
        raise DTypeError(f"{name}: a window needs a floating-point dtype, got {dtype.name}")
    if length < 0:
        raise ShapeError(texts.negative(name, "window_length", length))
    if length < 2:
        return aten.ones((length,), dtype=dtype, **options)
    computed = WIDE[dtype]
    last = length if periodic else length - 1
    pin_memory = options.pop("pin_memory", None)
    made = converted(shape(aten.arange(length, dtype=computed, **options), last), dtype)
    return made.pin_memory() if pin_memory else made


def cosines(*weights: float) -> Callable[[Any, int], Any]:
    """The sum of (-1)^k weights[k] cos(2 pi k n / last)."""

    def shape(n: Tensor, last: int) -> Tensor:
        terms = [
            aten.mul__Scalar(aten.cos(aten.mul__Scalar(n, 2 * pi * k / last)), -weight if k % 2 else weight)
            for k, weight in enumerate(weights)
        ]
        made: Tensor = terms[0]
        for term in terms[1:]:
            made = aten.add__Tensor(made, term)
        return made

    return shape


def triangle(n: Tensor, last: int) -> Tensor:
    """1 - |2 n / last - 1|."""
    return aten.rsub__Scalar(aten.abs(aten.sub__Scalar(aten.mul__Scalar(n, 2.0 / last), 1)), 1)


def kaiser(beta: float) -> Callable[[Any, int], Any]:
    """I0(beta sqrt(1 - (2 n / last - 1)^2)) / I0(beta)."""

    def shape(n: Tensor, last: int) -> Tensor:
        x = aten.sub__Scalar(aten.mul__Scalar(n, 2.0 / last), 1)
        inside = aten.clamp(aten.rsub__Scalar(aten.mul__Tensor(x, x), 1), 0)
        peak = aten.i0(aten.new_full(n, (), beta))
        return aten.div__Tensor(aten.i0(aten.mul__Scalar(aten.sqrt(inside), beta)), peak)

    return shape


def hann_window(window_length: int, **options: Any) -> Tensor:
    """A periodic Hann window."""
    return hann_window_periodic(window_length, True, **options)


def hann_window_periodic(window_length: int, periodic: bool, **options: Any) -> Tensor:
    """A Hann window."""
    return _window("hann_window", window_length, periodic, cosines(0.5, 0.5), options)


def hamming_window(window_length: int, **options: Any) -> Tensor:
    """A periodic Hamming window."""
    return hamming_window_periodic(window_length, True, **options)


def hamming_window_periodic(window_length: int, periodic: bool, **options: Any) -> Tensor:
    """A Hamming window."""
    return hamming_window_periodic_alpha(window_length, periodic, 0.54, **options)


def hamming_window_periodic_alpha(window_length: int, periodic: bool, alpha: float, **options: Any) -> Tensor:
    """alpha - 0.46 cos."""
    return hamming_window_periodic_alpha_beta(window_length, periodic, alpha, 0.46, **options)


def hamming_window_periodic_alpha_beta(window_length: int, periodic: bool, alpha: float, beta: float, **options: Any) -> Tensor:
    """alpha - beta cos."""
    return _window("hamming_window", window_length, periodic, cosines(alpha, beta), options)


def blackman_window(window_length: int, **options: Any) -> Tensor:
    """A periodic Blackman window."""
    return blackman_window_periodic(window_length, True, **options)


def blackman_window_periodic(window_length: int, periodic: bool, **options: Any) -> Tensor:
    """A Blackman window."""
    return _window("blackman_window", window_length, periodic, cosines(0.42, 0.5, 0.08), options)


def bartlett_window(window_length: int, **options: Any) -> Tensor:
    """A periodic triangle."""
    return bartlett_window_periodic(window_length, True, **options)


def bartlett_window_periodic(window_length: int, periodic: bool, **options: Any) -> Tensor:
    """A triangle."""
    return _window("bartlett_window", window_length, periodic, triangle, options)


def kaiser_window(window_length: int, **options: Any) -> Tensor:
    """A periodic Kaiser window of beta 12."""
    return kaiser_window_periodic(window_length, True, **options)


def kaiser_window_periodic(window_length: int, periodic: bool, **options: Any) -> Tensor:
    """A Kaiser window of beta 12."""
    return kaiser_window_beta(window_length, periodic, 12.0, **options)


def kaiser_window_beta(window_length: int, periodic: bool, beta: float, **options: Any) -> Tensor:
    """A Kaiser window."""
    return _window("kaiser_window", window_length, periodic, kaiser(beta), options)
