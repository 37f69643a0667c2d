"""Elementwise functions: operators with the standard's signatures and promotion.

# differs from the standard: special values of complex functions are those of PyTorch. expm1 of infinities and NaN has NaN
# where the standard names a part (expm1(-inf + inf j) is -1 + 0j there), and tanh(inf + y j) for a large finite y has the
# sign of the imaginary zero that the C library gives.
"""

from __future__ import annotations

from turnout.dtypes import COMPLEX, INT
from turnout.errors import DTypeError
from turnout_array_api.namespace.promotion import as_array, common, pair
from turnout_aten.generated import functions as fn
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_array_api.namespace.promotion import Number

    Operand = Tensor | Number
    Real = Tensor | bool | int | float


_UNARY = """`turnout.{operator}` of each element.

Arguments:
    x: an array

Example:
    >>> x = turnout.tensor([{example}])
    >>> turnout.array_api.{name}(x) == turnout.{operator}(x)
    tensor([True])
"""
_BINARY = """`turnout.{operator}` of the elements of two arrays, or of an array and a Python number.

Arguments:
    x1: the first operand
    x2: the second operand, whose shape is broadcast with that of `x1`

Example:
    >>> x = turnout.tensor([{example}])
    >>> turnout.array_api.{name}(x, x) == turnout.{operator}(x, x)
    tensor([True])
"""


def _unary(name: str, operator: str = "", example: str = "1.0") -> Callable[[Tensor], Tensor]:
    operator = operator or name

    def function(x: Tensor, /) -> Tensor:
        return getattr(fn, operator)(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _UNARY.format(name=name, operator=operator, example=example)
    return function


def _binary(name: str, operator: str = "", example: str = "2.0") -> Callable[[Operand, Operand], Tensor]:
    operator = operator or name

    def function(x1: Operand, x2: Operand, /) -> Tensor:
        return getattr(fn, operator)(*pair(name, x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _BINARY.format(name=name, operator=operator, example=example)
    return function


abs = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atanh = _unary("atanh")
bitwise_invert = _unary("bitwise_invert", "bitwise_not", "1")
ceil = _unary("ceil")
conj = _unary("conj", example="1j")
cos = _unary("cos")
cosh = _unary("cosh")
exp = _unary("exp")
expm1 = _unary("expm1")
floor = _unary("floor")
imag = _unary("imag", example="1j")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
log = _unary("log")
log10 = _unary("log10")
log1p = _unary("log1p")
log2 = _unary("log2")
logical_not = _unary("logical_not")
negative = _unary("negative")
positive = _unary("positive")
real = _unary("real")
reciprocal = _unary("reciprocal")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
tan = _unary("tan")
tanh = _unary("tanh")
trunc = _unary("trunc")

add = _binary("add")
atan2 = _binary("atan2")
bitwise_and = _binary("bitwise_and", example="2")
bitwise_left_shift = _binary("bitwise_left_shift", example="2")
bitwise_or = _binary("bitwise_or", example="2")
bitwise_right_shift = _binary("bitwise_right_shift", example="2")
bitwise_xor = _binary("bitwise_xor", example="2")
copysign = _binary("copysign")
divide = _binary("divide", "div")
equal = _binary("equal", "eq")
floor_divide = _binary("floor_divide")
greater = _binary("greater", "gt")
greater_equal = _binary("greater_equal", "ge")
hypot = _binary("hypot")
less = _binary("less", "lt")
less_equal = _binary("less_equal", "le")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply", "mul")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal", "ne")
pow = _binary("pow")
remainder = _binary("remainder")
subtract = _binary("subtract", "sub")


def round(x: Tensor, /) -> Tensor:
    """Each element rounded to the nearest integer, halves to the even one; both parts of a complex number.

    Arguments:
        x: an array

    Example:
        >>> turnout.array_api.round(turnout.tensor([0.5, 1.5]))
        tensor([0., 2.])
    """
    if x.dtype.category != COMPLEX:
        return fn.round(x)
    return fn.complex(fn.round(fn.real(x)), fn.round(fn.imag(x)))


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 for negative, zero and positive elements; x / abs(x) for complex ones. NaN stays NaN, unlike in `sgn`.

    Arguments:
        x: an array

    Example:
        >>> turnout.array_api.sign(turnout.tensor([-2.0, 0.0]))
        tensor([-1.,  0.])
    """
    found = fn.sgn(x)
    return found if x.dtype.category <= INT else fn.where(fn.isnan(x), x, found)


def clip(x: Tensor, /, min: Real | None = None, max: Real | None = None) -> Tensor:
    """Each element limited to the bounds, in the dtype of x. NaN stays NaN, and a NaN bound gives NaN.

    Raises DTypeError for bounds that do not fit in the dtype of x.

    Arguments:
        x: an array
        min: the lower limit
        max: the upper limit

    Example:
        >>> turnout.array_api.clip(turnout.tensor([-2, 5]), 0, 3)
        tensor([0, 3])
    """
    dtype = common("clip", x, *[bound for bound in (min, max) if bound is not None])
    if dtype is not x.dtype:
        raise DTypeError(f"clip: the result has the dtype of x, {x.dtype.name}, but a bound needs {dtype.name}; convert one")
    low, high = [None if bound is None else as_array(bound, dtype, x) for bound in (min, max)]
    return fn.clone(x) if low is None and high is None else fn.clamp(x, low, high)
