"""Random draws from distributions, composed of uniform or normal numbers. Tests check their moments and quantiles.

Two-byte floats and integers are drawn in float32 or float64 and then converted.
"""

from __future__ import annotations

from math import log1p, pi
from typing import TYPE_CHECKING, Any

from turnout.dtypes import BOOL, COMPLEX, FLOAT, DType, float64, get_default_dtype
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds, is_checked
from turnout_aten.composites.random import drawn_normal, drawn_uniform, where_to_draw
from turnout_aten.dtypes import WIDE
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast
from turnout_aten.shapes.promotion import result_type
from turnout_aten.tensor.levels import of_all_examples
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.random import Generator


def _positive_uniform(self: Tensor, generator: Generator | None) -> Tensor:
    """Uniform numbers in (0, 1], so that the logarithm is finite."""
    return aten.rsub__Scalar(drawn_uniform(self.shape, WIDE[self.dtype], self.device, generator), 1.0)


def _floating(name: str, self: Tensor) -> None:
    if self.dtype.category != FLOAT:
        raise DTypeError(f"{name}: a continuous distribution needs a floating-point tensor, got {self.dtype.name}")


# ---- continuous


def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Exponential with rate lambd: -ln u / lambd."""
    _floating("exponential_", self)
    if not lambd > 0:
        raise ArgumentError(texts.not_positive("exponential_", "lambd", lambd))
    drawn = aten.neg(aten.log(_positive_uniform(self, generator)))
    aten.copy_(self, aten.div__Scalar(drawn, lambd))
    return self


def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Cauchy: median + sigma tan(pi (u - 1/2)), the tangent as sine over cosine."""
    _floating("cauchy_", self)
    if not sigma > 0:
        raise ArgumentError(texts.not_positive("cauchy_", "sigma", sigma))
    angle = aten.mul__Scalar(aten.sub__Scalar(_positive_uniform(self, generator), 0.5), pi)
    drawn = aten.div__Tensor(aten.sin(angle), aten.cos(angle))
    aten.copy_(self, aten.add__Scalar(aten.mul__Scalar(drawn, sigma), median))
    return self


def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """exp of normal numbers with that mean and standard deviation."""
    _floating("log_normal_", self)
    if not std > 0:
        raise ArgumentError(texts.not_positive("log_normal_", "std", std))
    drawn = drawn_normal(self.shape, WIDE[self.dtype], self.device, generator)
    aten.copy_(self, aten.exp(aten.add__Scalar(aten.mul__Scalar(drawn, std), mean)))
    return self


# ---- normal, with tensors for mean and deviation


def normal_functional(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """A tensor of normal numbers, like self."""
    return aten.normal_(aten.empty_like(self), mean, std, generator=generator)


def normal(mean: Any, std: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers with a separate mean and standard deviation for each. Both broadcast."""
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    for value in given:
        if value.dtype.category < FLOAT:
            raise DTypeError(f"normal: mean and std must be floating-point, got {value.dtype.name}")
    shape: tuple[int, ...] = ()
    for value in given:
        shape = broadcast(shape, value.shape)
    if not isinstance(std, Tensor):
        _check_std(std)
    elif std.dtype.category == COMPLEX:
        raise DTypeError(f"normal: std must be real, got {std.dtype.name}")
    elif is_checked(std) and not holds(_not_below_0(std)):
        raise ArgumentError("normal: std must not be negative")
    dtype = result_type(mean, std) if len(given) > 1 else given[0].dtype
    drawn: Any = drawn_normal(shape, dtype, given[0].device, generator)
    drawn = aten.mul__Tensor(drawn, std) if isinstance(std, Tensor) else aten.mul__Scalar(drawn, std)
    return aten.add__Tensor(drawn, mean) if isinstance(mean, Tensor) else aten.add__Scalar(drawn, mean)


def _not_below_0(std: Tensor) -> Tensor:
    return _made(aten.logical_not(aten.lt__Scalar(of_all_examples(std), 0)))


def normal_float_float(
    mean: float, std: float, size: Sequence[int], *, generator: Generator | None = None, dtype: DType | None = None,
    layout: Any = None, device: Any = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """Normal numbers with one mean and standard deviation."""
    _check_std(std)
    drawn = drawn_normal(size, dtype or get_default_dtype(), where_to_draw(device, generator), generator)
    made: Tensor = aten.add__Scalar(aten.mul__Scalar(drawn, std), mean)
    return made.pin_memory() if pin_memory else made


def _check_std(std: float) -> None:
    if not std >= 0:
        raise ArgumentError(texts.negative("normal", "std", std))


# ---- integers


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """The number of trials up to the first success: 1 + floor(ln u / ln(1 - p))."""
    if not 0 < p < 1:
        raise ArgumentError(texts.no_probability("geometric_", "p", p))
    if self.dtype.category in (BOOL, COMPLEX):
        raise DTypeError(f"geometric_: needs an integer or floating-point tensor, got {self.dtype.name}")
    failures = aten.floor(aten.div__Scalar(aten.log(_positive_uniform(self, generator)), log1p(-p)))
    aten.copy_(self, aten.add__Scalar(failures, 1))
    return self


def multinomial(self: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """Random indices. The last dim holds their weights, which need not add up to 1.

    Without replacement, takes the largest values of weight / exponential number: Efraimidis and Spirakis, "Weighted random
    sampling with a reservoir" (2006). With replacement, searches for uniform numbers in the running sum.
    """
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.no_probabilities("multinomial", self.dtype))
    if self.ndim not in (1, 2):
        raise ShapeError(f"multinomial: probabilities must have 1 or 2 dimensions, got shape {list(self.shape)}")
    categories = self.shape[-1]
    if num_samples <= 0:
        raise ArgumentError(texts.not_positive("multinomial", "num_samples", num_samples))
    if not replacement and num_samples > categories:
        raise ArgumentError(f"multinomial: {num_samples} samples of {categories} categories need replacement")
    _check_probabilities(self)
    wide = aten.to__dtype(self, WIDE[self.dtype])
    if not replacement:
        race = aten.exponential_(aten.empty_like(wide), generator=generator)
        # 0 / 0 cannot win; a race is never 0 where ln u is not.
        scores = aten.div__Tensor(wide, aten.clamp(race, 1e-30))
        return aten.topk(scores, num_samples)[1]
    sums = aten.cumsum(wide, -1)
    total = aten.slice__Tensor(sums, -1, -1, None, 1)
    u = drawn_uniform((*self.shape[:-1], num_samples), wide.dtype, self.device, generator)
    passed = aten.le__Tensor(aten.unsqueeze(sums, -2), aten.unsqueeze(aten.mul__Tensor(u, total), -1))
    # Rounding must not select an index after the last category with a nonzero weight.
    last = aten.sum__dim_IntList(aten.lt__Tensor(sums, total), [-1], True)
    return _made(aten.minimum(aten.sum__dim_IntList(passed, [-1]), last))


def _made(tensor: Any) -> Tensor:
    return tensor


def _check_probabilities(self: Tensor) -> None:
    self = of_all_examples(self)
    if not is_checked(self):
        return
    good = aten.logical_and(aten.ge__Scalar(self, 0), aten.lt__Scalar(self, float("inf")))
    if not holds(good):
        raise ArgumentError("multinomial: a probability is negative, infinite or nan")
    if not holds(aten.gt__Scalar(aten.sum__dim_IntList(self, [-1]), 0)):
        raise ArgumentError("multinomial: probabilities must not all be 0")


def poisson(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with a separate rate for each, by inversion: the first k whose cumulative probability exceeds u.

    Starts where the lower tail has a probability below 1e-30, and ends equally far above the largest rate.
    """
    _floating("poisson", self)
    if not self.device.backend.has_values or not self.numel():
        return aten.empty_like(self)
    if not holds(aten.ge__Scalar(of_all_examples(self), 0)):
        raise ArgumentError("poisson: rates must not be negative")
    rate = aten.to__dtype(self, float64)
    spread = aten.mul__Scalar(aten.sqrt(rate), 12.0)
    first = aten.clamp(aten.floor(aten.sub__Tensor(rate, spread)), 0)
    last = of_all_examples(aten.sub__Tensor(aten.add__Tensor(rate, spread), first))
    steps = int(aten._local_scalar_dense(aten.max(last))) + 40
    u = drawn_uniform(self.shape, float64, self.device, generator)
    # exp(first ln(rate) - rate - ln first!), with 0 ln 0 = 0.
    powers = aten.mul__Tensor(first, aten.log(aten.clamp(rate, 1e-300)))
    chance = aten.exp(aten.sub__Tensor(aten.sub__Tensor(powers, rate), _log_factorial(first)))
    k, below = first, chance
    drawn = first
    for _ in range(steps):
        drawn = aten.add__Tensor(drawn, aten.gt__Tensor(u, below))
        k = aten.add__Scalar(k, 1)
        chance = aten.mul__Tensor(chance, aten.div__Tensor(rate, k))
        below = aten.add__Tensor(below, chance)
    return aten.to__dtype(drawn, self.dtype)


def _log_factorial(n: Tensor) -> Tensor:
    """ln n!, by Stirling's series for n + 9 (its fourth term is below 1e-10) minus the logarithms in between."""
    x = aten.add__Scalar(n, 9.0)
    product = aten.ones_like(x)
    for i in range(1, 9):
        product = aten.mul__Tensor(product, aten.add__Scalar(n, float(i)))
    inverse = aten.reciprocal(x)
    square = aten.mul__Tensor(inverse, inverse)
    series = aten.add__Scalar(aten.mul__Scalar(square, -1 / 360), 1 / 12)
    series = aten.add__Tensor(series, aten.mul__Scalar(aten.mul__Tensor(square, square), 1 / 1260))
    logs = aten.mul__Tensor(aten.sub__Scalar(x, 0.5), aten.log(x))
    stirling = aten.add__Scalar(
        aten.add__Tensor(aten.sub__Tensor(logs, x), aten.mul__Tensor(series, inverse)), 0.9189385332046727
    )
    return aten.sub__Tensor(stirling, aten.log(product))
