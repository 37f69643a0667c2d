"""Operators that are aliases of others.

An alias calls the packet of the original operator, which chooses the overload. So it is differentiated, batched and traced as the
original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.tensor.tensor import Tensor


def same_as(name: str) -> Callable[..., Any]:
    """The kernel of an alias of the standard operator `name`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        packet = REGISTRY.packet("aten", name)
        assert packet is not None
        return packet(*args, **kwargs)

    return call


absolute = same_as("abs")
absolute_ = same_as("abs_")
arccos = same_as("acos")
arccos_ = same_as("acos_")
arccosh = same_as("acosh")
arccosh_ = same_as("acosh_")
arcsin = same_as("asin")
arcsin_ = same_as("asin_")
arcsinh = same_as("asinh")
arcsinh_ = same_as("asinh_")
arctan = same_as("atan")
arctan2 = same_as("atan2")
arctan2_ = same_as("atan2_")
arctan_ = same_as("atan_")
arctanh = same_as("atanh")
arctanh_ = same_as("atanh_")
bitwise_and = same_as("bitwise_and")
bitwise_and_ = same_as("bitwise_and_")
bitwise_left_shift = same_as("bitwise_left_shift")
bitwise_left_shift_ = same_as("bitwise_left_shift_")
bitwise_or = same_as("bitwise_or")
bitwise_or_ = same_as("bitwise_or_")
bitwise_right_shift = same_as("bitwise_right_shift")
bitwise_right_shift_ = same_as("bitwise_right_shift_")
bitwise_xor = same_as("bitwise_xor")
bitwise_xor_ = same_as("bitwise_xor_")
clip = same_as("clamp")
clip_ = same_as("clamp_")
divide = same_as("div")
divide_ = same_as("div_")
fix = same_as("trunc")
fix_ = same_as("trunc_")
greater = same_as("gt")
greater_ = same_as("gt_")
greater_equal = same_as("ge")
greater_equal_ = same_as("ge_")
less = same_as("lt")
less_ = same_as("lt_")
less_equal = same_as("le")
less_equal_ = same_as("le_")
multiply = same_as("mul")
multiply_ = same_as("mul_")
negative = same_as("neg")
negative_ = same_as("neg_")
not_equal = same_as("ne")
not_equal_ = same_as("ne_")
special_digamma = same_as("digamma")
special_erf = same_as("erf")
special_erfc = same_as("erfc")
special_erfinv = same_as("erfinv")
special_exp2 = same_as("exp2")
special_expit = same_as("sigmoid")
special_expm1 = same_as("expm1")
special_gammainc = same_as("igamma")
special_gammaincc = same_as("igammac")
special_gammaln = same_as("lgamma")
special_i0 = same_as("i0")
special_log1p = same_as("log1p")
special_logit = same_as("logit")
special_multigammaln = same_as("mvlgamma")
special_polygamma = same_as("polygamma")
special_psi = same_as("digamma")
special_sinc = same_as("sinc")
special_xlogy = same_as("xlogy")
subtract = same_as("sub")
subtract_ = same_as("sub_")
true_divide = same_as("div")
true_divide_ = same_as("div_")


def special_round(self: Tensor, *, decimals: int = 0, out: Any = None) -> Any:
    """round, with a default for `decimals`."""
    return _round(self, decimals=decimals) if out is None else _round(self, decimals=decimals, out=out)


_round = same_as("round")
