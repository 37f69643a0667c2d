"""The extension fft: transforms along one axis (length `n`) or several (lengths `s`), and their frequencies.

`norm` places the factor 1/n: "backward" in the inverse transforms, "forward" in the forward ones, "ortho" half in each.
"""

from __future__ import annotations

from turnout_aten import fft as operators
from turnout_aten.functions.docstrings import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = __all__.copy


# The transforms of real numbers.
_REAL = ("rfft", "rfftn", "ihfft")

_ONE = """{what}, along an axis.

Arguments:
    x: an array
    n: the length to which it is cut or padded with zeros
    axis: the axis
    norm: "backward", "ortho" or "forward": which direction is scaled

Example:
    >>> x = turnout.ones(4, dtype=turnout.{dtype})
    >>> (turnout.array_api.fft.{name}(x) == turnout.fft.{name}(x)).all()
    tensor(True)
"""
_SEVERAL = """{what}, along several axes; the last of `s`, or all, for None.

Arguments:
    x: an array
    s: the lengths to which it is cut or padded with zeros
    axes: the axes
    norm: "backward", "ortho" or "forward": which direction is scaled

Example:
    >>> x = turnout.ones(4, 4, dtype=turnout.{dtype})
    >>> (turnout.array_api.fft.{name}(x) == turnout.fft.{name}(x)).all()
    tensor(True)
"""


def _along_one(name: str, what: str) -> Callable[..., Tensor]:
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return getattr(operators, name)(x, n, axis, norm)

    return _named(function, name, what, _ONE)


def _along_several(name: str, what: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Tensor:
        return getattr(operators, name)(x, s, axes, norm)

    return _named(function, name, what, _SEVERAL)


def _named(function: Callable[..., Tensor], name: str, what: str, about: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = about.format(name=name, what=what, dtype="float32" if name in _REAL else "complex64")
    return function


fft = _along_one("fft", "The transform")
ifft = _along_one("ifft", "The inverse of `fft`")
rfft = _along_one("rfft", "The first half of the transform of real numbers")
irfft = _along_one("irfft", "The inverse of `rfft`")
hfft = _along_one("hfft", "The transform, which is real, of numbers with Hermitian symmetry, from their first half")
ihfft = _along_one("ihfft", "The inverse of `hfft`")
fftn = _along_several("fftn", "The transform")
ifftn = _along_several("ifftn", "The inverse of `fftn`")
rfftn = _along_several("rfftn", "The transform of real numbers, the first half along the last axis")
irfftn = _along_several("irfftn", "The inverse of `rfftn`")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str | Device | None = None) -> Tensor:
    """The frequencies of `fft` of n samples at distances d.

    Example:
        >>> turnout.array_api.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return operators.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str | Device | None = None) -> Tensor:
    """The frequencies of `rfft` of n samples at distances d.

    Example:
        >>> turnout.array_api.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    return operators.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Frequency 0 moved to the middle of some axes; None means all axes.

    Example:
        >>> turnout.array_api.fft.fftshift(turnout.tensor([0, 1, -2, -1]))
        tensor([-2, -1,  0,  1])
    """
    return operators.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Example:
        >>> turnout.array_api.fft.ifftshift(turnout.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return operators.ifftshift(x, axes)


describe(
    globals(),
    n="the number of samples",
    d="their distance",
    dtype="the dtype, floating-point",
    device="the device",
    x="an array",
    axes="the axes",
)
