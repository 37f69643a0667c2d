"""Window functions of M values: symmetric, or with `sym=False` periodic, which is one of M + 1 without its last value.

All take `sym`, `dtype` (float32 or float64), `device` and `requires_grad` as keywords, and raise ArgumentError for a negative M,
another dtype, or a shape parameter out of range.
"""

from __future__ import annotations

from math import pi, sqrt

from turnout.dtypes import float32, float64, get_default_dtype
from turnout.errors import ArgumentError, CallError
from turnout_aten.composites.windows import cosines
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.calls import unexpected_keyword
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor


def _window(name: str, M: int, sym: bool, options: dict[str, Any], shape: Callable[[Tensor, int], Tensor]) -> Tensor:
    """`shape(positions, number of the last position)` for positions from 0; one value is 1."""
    requires_grad = options.pop("requires_grad", False)
    layout = options.pop("layout", None)
    dtype = options.pop("dtype", None) or get_default_dtype()
    device = options.pop("device", None)
    if options:
        raise CallError(unexpected_keyword(name, next(iter(options))))
    if M < 0:
        raise ArgumentError(texts.negative(name, "M", M))
    if layout not in (None, "strided"):
        raise ArgumentError(texts.not_strided(name, layout))
    if dtype not in (float32, float64):
        raise ArgumentError(f"{name}: dtype must be float32 or float64, got {dtype.name}")
    if M < 2:
        made: Tensor = _functions.ones((M,), dtype=dtype, device=device)
    else:
        made = shape(_functions.arange(M, dtype=dtype, device=device), M - 1 if sym else M)
    return made.requires_grad_() if requires_grad else made


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-|n - center| / tau), around the middle unless `center` says otherwise, which symmetric windows do not allow.

    Arguments:
        center: the place of the largest element
        tau: the length over which it falls by the factor e

    Example:
        >>> turnout.signal.windows.exponential(5)
        tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    if tau <= 0:
        raise ArgumentError(texts.not_positive("exponential", "tau", tau))
    if sym and center is not None:
        raise ArgumentError("exponential: center must be None for symmetric windows")

    def shape(n: Tensor, last: int) -> Tensor:
        return (-(n - (last / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, sym, options, shape)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """sin(pi (n + 1/2) / M).

    Example:
        >>> turnout.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    return _window("cosine", M, sym, options, lambda n, last: ((n + 0.5) * (pi / (last + 1))).sin())


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-x^2 / (2 std^2)), x counted from the middle.

    Arguments:
        std: the standard deviation

    Example:
        >>> turnout.signal.windows.gaussian(5)
        tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    if std <= 0:
        raise ArgumentError(texts.not_positive("gaussian", "std", std))

    def shape(n: Tensor, last: int) -> Tensor:
        x = (n - last / 2) * (1 / (std * sqrt(2)))
        return (-(x * x)).exp()

    return _window("gaussian", M, sym, options, shape)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1.

    Arguments:
        beta: the shape: larger values make it narrower

    Example:
        >>> turnout.signal.windows.kaiser(5)
        tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01, 5.2773e-05])
    """
    if beta < 0:
        raise ArgumentError(texts.negative("kaiser", "beta", beta))

    def shape(n: Tensor, last: int) -> Tensor:
        x = n * (2 / last) - 1
        return _functions.i0((1 - x * x).clamp(0).sqrt() * beta) / _functions.i0(n.new_full((), beta))

    return _window("kaiser", M, sym, options, shape)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """The sum of (-1)^k a[k] cos(2 pi k n / last).

    Arguments:
        a: the factors of the cosines

    Example:
        >>> turnout.signal.windows.general_cosine(5, a=[0.5, 0.5])
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, (list, tuple)):
        raise CallError(f"general_cosine: a must be a list or tuple of numbers, got {type(a).__name__}")
    if not a:
        raise ArgumentError("general_cosine: a must not be empty")
    return _cosines("general_cosine", M, a, sym, options)


def _cosines(name: str, M: int, a: Sequence[float], sym: bool, options: dict[str, Any]) -> Tensor:
    return _window(name, M, sym, options, cosines(*a))


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi n / last).

    Arguments:
        alpha: the constant part

    Example:
        >>> turnout.signal.windows.general_hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return _cosines("general_hamming", M, [alpha, 1.0 - alpha], sym, options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with alpha 0.54.

    Example:
        >>> turnout.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return _cosines("hamming", M, [0.54, 1.0 - 0.54], sym, options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with alpha 0.5.

    Example:
        >>> turnout.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _cosines("hann", M, [0.5, 0.5], sym, options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine with 0.42, 0.5 and 0.08.

    Example:
        >>> turnout.signal.windows.blackman(5).shape
        turnout.Size([5])
    """
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine with four terms, which give small side lobes.

    Example:
        >>> turnout.signal.windows.nuttall(5).shape
        turnout.Size([5])
    """
    return _cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A triangle, 1 - |2 n / last - 1|.

    Example:
        >>> turnout.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", M, sym, options, lambda n, last: 1 - (n * (2 / last) - 1).abs())


__all__ = describe(
    globals(),
    M="the length of the window",
    sym="whether the window is symmetric; else it is one period, for transforms",
    options="`dtype`, `device` and the other options of `turnout.zeros`",
)
__dir__ = __all__.copy
