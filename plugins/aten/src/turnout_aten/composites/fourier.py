"""Discrete Fourier transforms under their public names, in terms of the three that have kernels.

`norm` says which direction is scaled: "backward" (the default) scales the inverse by 1/n, "forward" the forward transform by 1/n,
"ortho" both by 1/sqrt(n). A Hermitian transform is the real transform in the other direction, of the conjugate.
"""

from __future__ import annotations

from math import copysign, inf
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, get_default_dtype
from turnout.errors import ArgumentError, DimError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.shapes.fourier import BY_N, NONE, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.tensor.tensor import Tensor

    Dims = Sequence[int] | None

# norm -> the number for kernels, in the forward and in the inverse direction.
SCALING = {None: (NONE, BY_N), "backward": (NONE, BY_N), "forward": (BY_N, NONE), "ortho": (ROOT, ROOT)}
NORMS = tuple(filter(None, SCALING))
FORWARD, INVERSE = 0, 1
LAST_TWO = (-2, -1)


def _scaling(name: str, norm: str | None, direction: int) -> int:
    if norm not in SCALING:
        raise ArgumentError(texts.not_one_of(name, "norm", NORMS, norm))
    return SCALING[norm][direction]


# ---- inputs


def _floating(self: Tensor) -> Tensor:
    return aten.to__dtype(self, get_default_dtype()) if self.dtype.category < FLOAT else self


def _complex(self: Tensor) -> Tensor:
    x = _floating(self)
    if x.dtype.is_complex:
        return x
    if x.dtype.itemsize == 2:
        raise DTypeError(texts.two_bytes("fft", x.dtype))
    return aten.to__dtype(x, x.dtype.to_complex())


def _real(name: str, self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        raise DTypeError(f"{name}: expected a real tensor, got {self.dtype.name}")
    return _floating(self)


def _dims(name: str, self: Tensor, s: Dims, dim: Dims) -> tuple[list[int], list[int]]:
    """The dims to transform, counted from 0, and the length of each after padding or truncation."""
    shape = self.shape
    if s is not None and dim is not None and len(s) != len(dim):
        raise ShapeError(f"{name}: s and dim must have the same length, got {list(s)} and {list(dim)}")
    if s is not None and len(s) > len(shape):
        raise ShapeError(f"{name}: s {list(s)} has more lengths than the tensor of shape {list(shape)} has dimensions")
    if dim is not None:
        dims = [wrap_dim(d, len(shape)) for d in dim]
        if len(set(dims)) != len(dims):
            raise ShapeError(texts.repeated_dim(name, dim))
    else:
        dims = list(range(len(shape) - (len(shape) if s is None else len(s)), len(shape)))
    lengths = [shape[d] for d in dims] if s is None else [shape[d] if n == -1 else n for d, n in zip(dims, s, strict=True)]
    for n in lengths:
        if n < 1:
            raise ShapeError(f"{name}: cannot transform {n} elements")
    return dims, lengths


def _resized(x: Tensor, dims: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Truncate each dim, or pad it with zeros, at the end."""
    for d, n in zip(dims, lengths, strict=True):
        have = x.shape[d]
        if n < have:
            x = aten.slice__Tensor(x, d, 0, n, 1)
        elif n > have:
            x = aten.cat([x, aten.new_zeros(x, (*x.shape[:d], n - have, *x.shape[d + 1 :]))], d)
    return x


def _one(name: str, self: Tensor, n: int | None, dim: int) -> tuple[list[int], list[int]]:
    if not self.ndim:
        raise DimError(texts.needs_a_dim(name))
    if n is not None and n < 1:  # in a list of lengths -1 stands for the length that there is
        raise ShapeError(f"{name}: cannot transform {n} elements")
    return _dims(name, self, None if n is None else (n,), (dim,))


# ---- the four kinds of transforms, for any dims


def _c2c(name: str, self: Tensor, dims: list[int], lengths: list[int], norm: str | None, direction: int) -> Tensor:
    x = _resized(_complex(self), dims, lengths)
    return aten._fft_c2c(x, dims, _scaling(name, norm, direction), direction == FORWARD)


def _r2c(name: str, self: Tensor, dims: list[int], lengths: list[int], norm: str | None, direction: int) -> Tensor:
    x = _resized(_real(name, self), dims, lengths)
    if not dims:
        raise ShapeError(f"{name}: at least one dimension must be transformed")
    scaling = _scaling(name, norm, direction)
    if direction == FORWARD:
        return aten._fft_r2c(x, dims, scaling, True)
    # Along the last dim first: the order of the steps decides how the result lies.
    made = aten.conj(aten._fft_r2c(x, dims[-1:], scaling, True))
    return aten._fft_c2c(made, dims[:-1], scaling, False) if len(dims) > 1 else made


def _c2r(name: str, self: Tensor, s: Dims, dim: Dims, norm: str | None, direction: int) -> Tensor:
    """The last length belongs to the result; only half of it is read from the input."""
    dims, lengths = _dims(name, self, s, dim)
    if not dims:
        raise ShapeError(f"{name}: at least one dimension must be transformed")
    given_last = s is not None and s[-1] != -1
    last = lengths[-1] if given_last else 2 * (lengths[-1] - 1)
    if last < 1:
        raise ShapeError(f"{name}: the result would have {last} elements; give its length")
    x = _resized(_complex(self), dims, [*lengths[:-1], last // 2 + 1])
    turned = aten.conj(x) if direction == FORWARD else x
    return aten._fft_c2r(turned, dims, _scaling(name, norm, direction), last)


# ---- the operators: fft and the inverse; r of real tensors; h of Hermitian-symmetric ones, of which half is given


def _along_one(kind: Callable[..., Tensor], name: str, direction: int) -> Callable[..., Tensor]:
    """The kernel along one dim, which is first truncated or padded to `n` elements; those of the result, if half is given."""

    def along(self: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        dims, lengths = _one(name, self, n, dim)
        if kind is _c2r:
            return _c2r(name, self, None if n is None else (n,), (dim,), norm, direction)
        return kind(name, self, dims, lengths, norm, direction)

    return along


def _along_many(kind: Callable[..., Tensor], name: str, direction: int) -> Callable[..., Tensor]:
    """The kernel along `dim`; by default as many last dims as `s` has lengths, or all dims. The last is that of half lines."""

    def along(self: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
        return kind(name, self, *((s, dim) if kind is _c2r else _dims(name, self, s, dim)), norm, direction)

    return along


def _along_two(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def along(self: Tensor, s: Dims = None, dim: Sequence[int] = LAST_TWO, norm: str | None = None) -> Tensor:
        return function(self, s, dim, norm)

    return along


fft = _along_one(_c2c, "fft.fft", FORWARD)
ifft = _along_one(_c2c, "fft.ifft", INVERSE)
rfft = _along_one(_r2c, "fft.rfft", FORWARD)
irfft = _along_one(_c2r, "fft.irfft", INVERSE)
hfft = _along_one(_c2r, "fft.hfft", FORWARD)
ihfft = _along_one(_r2c, "fft.ihfft", INVERSE)
fftn = _along_many(_c2c, "fft.fftn", FORWARD)
ifftn = _along_many(_c2c, "fft.ifftn", INVERSE)
rfftn = _along_many(_r2c, "fft.rfftn", FORWARD)
irfftn = _along_many(_c2r, "fft.irfftn", INVERSE)
hfftn = _along_many(_c2r, "fft.hfftn", FORWARD)
ihfftn = _along_many(_r2c, "fft.ihfftn", INVERSE)
fft2 = _along_two(fftn)
ifft2 = _along_two(ifftn)
rfft2 = _along_two(rfftn)
irfft2 = _along_two(irfftn)
hfft2 = _along_two(hfftn)
ihfft2 = _along_two(ihfftn)


# ---- frequencies


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of a transform of n samples with spacing d."""
    if n < 0:
        raise ShapeError(texts.negative("fft.fftfreq", "n", n))
    half, pin_memory = (n + 1) // 2, options.pop("pin_memory", None)
    positive = aten.arange(half, **_floats(options))
    negative = aten.arange__start(half - n, 0, **_floats(options))
    made: Tensor = aten.mul__Scalar(aten.cat([positive, negative], 0), _distance(n, d))
    return made.pin_memory() if pin_memory else made


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of rfft: the half of those of fft that rfft returns."""
    pin_memory = options.pop("pin_memory", None)
    made: Tensor = aten.mul__Scalar(aten.arange(n // 2 + 1, **_floats(options)), _distance(n, d))
    return made.pin_memory() if pin_memory else made


def _distance(n: int, d: float) -> float:
    """Between two frequencies: infinite if the samples cover no time."""
    covered = n * d
    return 1.0 / covered if covered else copysign(inf, covered)


def _floats(options: dict[str, Any]) -> dict[str, Any]:
    dtype = options.get("dtype") or get_default_dtype()
    if dtype.category < FLOAT:
        raise DTypeError(f"fft: frequencies need a floating-point or complex dtype, got {dtype.name}")
    return {**options, "dtype": dtype}


def _shifted(self: Tensor, dim: Dims, sign: int) -> Tensor:
    dims = list(range(self.ndim)) if dim is None else [wrap_dim(d, self.ndim) for d in dim]
    if dims and not self.ndim:
        raise DimError(f"fft: dim {dims[0]} cannot be shifted, because the tensor has no dimensions")
    shifts = [self.shape[d] // 2 if sign > 0 else (self.shape[d] + 1) // 2 for d in dims]
    return aten.roll(self, shifts, dims) if dims else aten.clone(self)


def fftshift(self: Tensor, dim: Dims = None) -> Tensor:
    """Frequency zero moved to the middle."""
    return _shifted(self, dim, 1)


def ifftshift(self: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of fftshift."""
    return _shifted(self, dim, -1)
