"""Random numbers, computed by operators from a backend's random bits. They do not depend on the backend or on other threads."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, DType, float32, float64, get_default_dtype, int64
from turnout.errors import ArgumentError, DTypeError, RangeError, ShapeError
from turnout.keys import KEYS
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds, is_checked
from turnout_aten.dtypes import LARGEST, PRECISION, WIDE, int_range
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.tensors import does_not_fit
from turnout_aten.kernels.factories import strides_as
from turnout_aten.shapes.extents import numel
from turnout_aten.tensor.devices import place
from turnout_aten.tensor.random import SPAN, WORD, Generator, default_generator
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.devices import TensorDevice

_BATCHED = KEYS.bit("Batched")  # inside vmap a value differs between examples


def _reserved(shape: Sequence[int], device: TensorDevice, generator: Generator | None) -> tuple[tuple[int, ...], int, int]:
    """(shape, seed, offset) of random words for a tensor of this shape."""
    source = default_generator(device) if generator is None else generator
    shape = tuple(shape)
    for length in shape:
        if length < 0:
            raise ShapeError(texts.negative_length("", shape))
    return shape, *source.reserve(numel(shape))


def _words(place: tuple[tuple[int, ...], int, int], device: TensorDevice) -> Tensor:
    """An int64 tensor of 64 random bits each, which `_reserved` has reserved."""
    words = wrap(device.backend.random_bits(*place, device), device)
    return aten._to_copy(words, dtype=int64)


def _bits(place: tuple[tuple[int, ...], int, int], device: TensorDevice) -> Tensor:
    """The same of 63 random bits."""
    return aten.bitwise_and__Scalar(_words(place, device), (1 << 63) - 1)


def drawn_uniform(shape: Sequence[int], dtype: DType, device: TensorDevice, generator: Generator | None) -> Tensor:
    """Uniform numbers in [0, 1), multiples of the dtype's precision. For complex dtypes, both parts are uniform."""
    if dtype.category == COMPLEX:
        return _as_complex(drawn_uniform((*shape, 2), dtype.to_real(), device, generator), dtype)
    if dtype not in PRECISION:
        raise DTypeError(f"random numbers of a continuous distribution need a floating-point dtype, got {dtype.name}")
    return _uniform(_reserved(shape, device, generator), dtype, device)


def _uniform(words: tuple[tuple[int, ...], int, int], dtype: DType, device: TensorDevice) -> Tensor:
    """`drawn_uniform` from words that are reserved."""
    array = device.backend.uniform(*words, dtype, device)
    if array is not None:
        return wrap(array, device)
    precision = PRECISION[dtype]
    low = aten.bitwise_and__Scalar(_words(words, device), (1 << precision) - 1)
    return aten.mul__Scalar(aten._to_copy(low, dtype=dtype), 2.0**-precision)


def drawn_normal(shape: Sequence[int], dtype: DType, device: TensorDevice, generator: Generator | None) -> Tensor:
    """Standard normal numbers (Box and Muller, 1958): sqrt(-2 ln u) cos(2 pi v). Complex parts have variance 1/2."""
    if dtype.category == COMPLEX:
        parts = drawn_normal((*shape, 2), dtype.to_real(), device, generator)
        return _as_complex(aten.mul__Scalar(parts, sqrt(0.5)), dtype)
    if dtype not in PRECISION:
        raise DTypeError(f"random numbers of a continuous distribution need a floating-point dtype, got {dtype.name}")
    computed = WIDE[dtype]
    (_, *shape), seed, offset = _reserved((2, *shape), device, generator)
    for wanted in dict.fromkeys((dtype, computed)):
        array = device.backend.normal(tuple(shape), seed, offset, wanted, device)
        if array is not None:
            made = wrap(array, device)
            break
    else:
        u = _uniform((tuple(shape), seed, offset), computed, device)
        v = _uniform((tuple(shape), seed, offset + numel(shape) & WORD), computed, device)
        # 1 - u lies in (0, 1], where the logarithm is finite.
        radius = aten.sqrt(aten.mul__Scalar(aten.log(aten.rsub__Scalar(u, 1.0)), -2.0))
        made = aten.mul__Tensor(radius, aten.cos(aten.mul__Scalar(v, 2 * pi)))
    return made if wanted is dtype else aten._to_copy(made, dtype=dtype)


def _as_complex(parts: Tensor, dtype: DType) -> Tensor:
    """A complex tensor from real and imaginary parts in the last dim."""
    return aten.squeeze__dim(aten.view__dtype(parts, dtype), -1)


def where_to_draw(device: Device | None, generator: Generator | None) -> TensorDevice:
    return generator.device if device is None and generator is not None else place(device)


def rand(
    size: Sequence[int], *, generator: Generator | None = None, dtype: DType | None = None, layout: Any = None,
    device: Device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """Uniform in [0, 1)."""
    made = drawn_uniform(size, dtype or get_default_dtype(), where_to_draw(device, generator), generator)
    return made.pin_memory() if pin_memory else made


def randn(
    size: Sequence[int], *, generator: Generator | None = None, dtype: DType | None = None, layout: Any = None,
    device: Device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """Standard normal."""
    made = drawn_normal(size, dtype or get_default_dtype(), where_to_draw(device, generator), generator)
    return made.pin_memory() if pin_memory else made


def _like(
    draw: Any, self: Tensor, generator: Generator | None, dtype: DType | None, device: Device | None, memory_format: Any
) -> Tensor:
    """Numbers with the shape and layout of self."""
    drawn = draw(self.shape, dtype or self.dtype, self.device if device is None else place(device, self), generator)
    return _laid_out(drawn, self, memory_format)


def _laid_out(drawn: Tensor, like: Tensor, memory_format: Any) -> Tensor:
    """Row-major numbers in the layout of another tensor."""
    if strides_as(memory_format, like.shape, like) is None:
        return drawn
    made: Tensor = aten.empty_like(like, dtype=drawn.dtype, device=drawn.device, memory_format=memory_format)
    return _copied(made, drawn)


def _copied(target: Tensor, source: Tensor) -> Tensor:
    return aten.copy_(target, source)


def rand_like(
    self: Tensor, *, generator: Generator | None = None, dtype: DType | None = None, layout: Any = None,
    device: Device | None = None, pin_memory: bool | None = None, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Uniform in [0, 1), in self's shape, dtype and device."""
    made = _like(drawn_uniform, self, generator, dtype, device, memory_format)
    return made.pin_memory() if pin_memory else made


def randn_like(
    self: Tensor, *, generator: Generator | None = None, dtype: DType | None = None, layout: Any = None,
    device: Device | None = None, pin_memory: bool | None = None, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Standard normal, in self's shape, dtype and device."""
    made = _like(drawn_normal, self, generator, dtype, device, memory_format)
    return made.pin_memory() if pin_memory else made


def randint(high: int, size: Sequence[int], **options: Any) -> Tensor:
    """Integers from 0 to high - 1."""
    return randint_low(0, high, size, **options)


def randint_low(
    low: int, high: int, size: Sequence[int], *, generator: Generator | None = None, dtype: DType | None = int64,
    layout: Any = None, device: Device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """Integers from low to high - 1, which the dtype must hold."""
    made = _integers("randint", size, low, high, dtype or int64, where_to_draw(device, generator), generator)
    return made.pin_memory() if pin_memory else made


def randint_like(self: Tensor, high: Any, **options: Any) -> Tensor:
    """Integers from 0 to high - 1 in self's shape, dtype and device; `high` may be a 0-dim tensor."""
    if isinstance(high, Tensor):
        if high.numel() != 1:
            raise ShapeError(f"randint_like: 'high' must be one number, got shape {list(high.shape)}")
        high = int(aten._local_scalar_dense(high))
    return randint_like_low(self, 0, high, **options)


def randint_like_low(
    self: Tensor, low: int, high: int, *, generator: Generator | None = None, dtype: DType | None = None,
    layout: Any = None, device: Device | None = None, pin_memory: bool | None = None, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Integers from low to high - 1 in self's shape, dtype and device."""
    where = self.device if device is None else place(device, self)
    drawn = _integers("randint_like", self.shape, low, high, dtype or self.dtype, where, generator)
    made = _laid_out(drawn, self, memory_format)
    return made.pin_memory() if pin_memory else made


def _integers(
    name: str, shape: Sequence[int], low: int, high: int, dtype: DType, device: TensorDevice,
    generator: Generator | None,
) -> Tensor:  # fmt: skip
    """Uniform integers from low to high - 1 in a dtype. Raises RangeError for bounds that it does not hold."""
    first, end = ("from", "to") if name == "random_" else ("low", "high")
    if low >= high:
        raise ArgumentError(f"{name}: {first} must be less than {end}, got {low} and {high}")
    least, most = _whole_range(dtype)
    for argument, value in ((first, low), (f"{end} - 1", high - 1)):
        if not least <= value <= most:
            raise RangeError(does_not_fit(name, argument, value, dtype.name, least, most))
    precision = PRECISION.get(dtype.to_real())
    if precision is not None:
        # The nearest numbers of the dtype inside the range; what is drawn between them is rounded to no number beyond.
        low, high = -_rounded_down(-low, precision), _rounded_down(high - 1, precision) + 1
        if low >= high:
            raise ArgumentError(f"{name}: no number of {dtype.name} lies in the range")
    span = high - low
    words = _reserved(shape, device, generator)
    array = device.backend.integers(*words, low, span, device) if span <= SPAN else None
    if array is not None:
        made = wrap(array, device)
    elif span <= SPAN:
        made = aten.add__Scalar(aten.remainder__Scalar(_bits(words, device), span), low)
    else:
        made = aten.add__Scalar(_scaled(_words(words, device), span), low)
    return made if dtype is int64 else aten._to_copy(made, dtype=dtype)


def _whole_range(dtype: DType) -> tuple[int, int]:
    """The smallest and largest integer that random numbers of a dtype may be."""
    if dtype.category == BOOL:
        return 0, 1
    if dtype.category == INT:
        return int_range(dtype)
    limit = min(int(LARGEST[dtype.to_real()]), (1 << 63) - 1)
    return -limit - (limit == (1 << 63) - 1), limit


def _rounded_down(value: int, precision: int) -> int:
    """The largest integer of so many significant bits that is not above `value`."""
    spare = max(abs(value).bit_length() - precision, 0)
    return value >> spare << spare


def _scaled(words: Tensor, span: int) -> Tensor:
    """floor(words * span / 2**64), words taken as unsigned, in pieces of 32 bits.

    So the integers that come up more often than others are spread over the range; those of a remainder are its first ones.
    """
    if span == 1 << 64:
        return words
    low_half = (1 << 32) - 1
    high, low = _upper_half(words), aten.bitwise_and__Scalar(words, low_half)
    span_high, span_low = span >> 32, span & low_half
    carried = _upper_half(aten.mul__Scalar(low, span_low))
    first = aten.add__Tensor(aten.mul__Scalar(high, span_low), carried)
    middle = aten.add__Tensor(aten.mul__Scalar(low, span_high), aten.bitwise_and__Scalar(first, low_half))
    return aten.add__Tensor(aten.add__Tensor(aten.mul__Scalar(high, span_high), _upper_half(first)), _upper_half(middle))


def _upper_half(words: Tensor) -> Tensor:
    """The upper 32 of 64 bits."""
    return aten.bitwise_and__Scalar(aten.bitwise_right_shift__Tensor_Scalar(words, 32), (1 << 32) - 1)


def randperm(
    n: int, *, generator: Generator | None = None, dtype: DType | None = int64, layout: Any = None,
    device: Device | None = None, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """A random permutation of 0 to n - 1: the indices that sort n random words."""
    if n < 0:
        raise ShapeError(texts.negative("randperm", "n", n))
    wanted = dtype or int64
    precision = PRECISION.get(wanted.to_real())
    most = 1 << precision if precision else _whole_range(wanted)[1]
    if n - 1 > most:
        raise RangeError(does_not_fit("randperm", "n - 1", n - 1, wanted.name, 0, most))
    where = where_to_draw(device, generator)
    words = _reserved((n,), where, generator)
    made: Tensor = aten.argsort__stable(_bits(words, where), stable=True)
    made = made if dtype in (None, int64) else aten._to_copy(made, dtype=dtype)
    return made.pin_memory() if pin_memory else made


def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Uniform in [from, to)."""
    if from_ > to:
        raise ArgumentError(f"uniform_: 'from' must not be greater than 'to', got {from_} and {to}")
    drawn = drawn_uniform(self.shape, self.dtype, self.device, generator)
    aten.copy_(self, aten.add__Scalar(aten.mul__Scalar(drawn, to - from_), from_))
    return self


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers with that mean and standard deviation."""
    if std < 0:
        raise ArgumentError(texts.negative("normal_", "std", std))
    drawn = drawn_normal(self.shape, self.dtype, self.device, generator)
    aten.copy_(self, aten.add__Scalar(aten.mul__Scalar(drawn, std), mean))
    return self


def random_from_(self: Tensor, from_: int, to: int | None, *, generator: Generator | None = None) -> Tensor:
    """Integers from `from` to `to` - 1; without `to`, up to the largest integer below which the dtype holds all."""
    if to is None:
        precision = PRECISION.get(self.dtype.to_real())
        to = (1 << precision if precision else _whole_range(self.dtype)[1]) + 1
    aten.copy_(self, _integers("random_", self.shape, from_, to, self.dtype, self.device, generator))
    return self


def random_to_(self: Tensor, to: int, *, generator: Generator | None = None) -> Tensor:
    """Integers from 0 to `to` - 1."""
    return random_from_(self, 0, to, generator=generator)


def random_(self: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Integers from 0 to the largest one of the dtype, or the largest below which a floating-point dtype holds all."""
    return random_from_(self, 0, None, generator=generator)


def bernoulli_Tensor_(self: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability in `p` (which broadcasts), else 0."""
    if p.dtype.category != FLOAT:
        raise DTypeError(texts.no_probabilities("bernoulli_", p.dtype))
    _check_chances(p)
    drawn = drawn_uniform(self.shape, WIDE[p.dtype], self.device, generator)
    aten.copy_(self, aten.lt__Tensor(drawn, p))
    return self


def _check_chances(p: Tensor) -> None:
    """Raise ShapeError for probabilities outside 0 to 1, if the values can be read."""
    if p.keys & _BATCHED or not is_checked(p):
        return
    if not holds(aten.logical_and(aten.ge__Scalar(p, 0), aten.le__Scalar(p, 1))):
        raise ArgumentError("bernoulli: probabilities must lie between 0 and 1")


def bernoulli(self: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability in each element of self, else 0. The dtype is that of self."""
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.no_probabilities("bernoulli", self.dtype))
    _check_chances(self)
    drawn = drawn_uniform(self.shape, self.dtype, self.device, generator)
    made: Tensor = aten._to_copy(aten.lt__Tensor(drawn, self), dtype=self.dtype)
    return _laid_out(made, self, None)


def bernoulli_p(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """1 with probability p, else 0. Shape and dtype are those of self."""
    if not 0 <= p <= 1:
        raise ArgumentError(texts.no_probability("bernoulli", "p", p))
    drawn = drawn_uniform(self.shape, float32 if self.dtype is not float64 else float64, self.device, generator)
    return aten._to_copy(aten.lt__Scalar(drawn, p), dtype=self.dtype)


def bernoulli_float_(self: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """bernoulli with one probability, written into self."""
    aten.copy_(self, bernoulli_p(self, p, generator=generator))
    return self
