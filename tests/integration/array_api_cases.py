"""The expressions that `turnout.array_api` and array-api-strict are compared by, and the arrays that they name.

An expression calls functions of `xp`. `UNARY` and `BINARY` list element-wise functions, each with its arguments behind it.
"""

from __future__ import annotations

import array_api_strict
import numpy as np

ARRAYS = {
    "f": np.array([[0.5, -1.5, 2.5], [3.25, 0.0, -0.75]], np.float32),
    "g": np.array([[1.0, 2.0, -3.0], [0.5, 4.0, 1.0]], np.float64),
    "s": np.array([0.25, -0.5, 0.75], np.float32),  # within -1 and 1
    "p": np.array([1.5, 2.0, 30.0], np.float32),  # 1 or more
    "q": np.array([3.0, 1.0, 2.0, 1.0], np.float64),
    "odd": np.array([np.nan, np.inf, -np.inf, -0.0, 1.0], np.float32),
    "z": np.array([0.5 - 1.5j, 2.5 + 0.25j, -1 + 2j], np.complex64),
    "w": np.array([1 + 1j, -2j, 0.5], np.complex128),
    "i": np.array([[3, -1, 2], [0, 5, -4]], np.int64),
    "j": np.array([1, 2, 3], np.int32),
    "i8": np.array([100, -100, 7], np.int8),
    "u8": np.array([200, 100, 7], np.uint8),
    "u16": np.array([1, 2, 3], np.uint16),
    "u32": np.array([7, 2, 3], np.uint32),
    "u64": np.array([1, 2, 2**63], np.uint64),
    "b": np.array([True, False, True]),
    "f0": np.array(2.5, np.float64),
    "i0": np.array(3, np.int16),
    "none": np.zeros((0, 3), np.float32),
    "k": np.array([2, 0, 1], np.int64),
    "k2": np.array([[2, 0], [1, 1]], np.int64),
    "m": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float64),  # positive-definite
    "mm": np.stack([np.eye(2) * 2 + 1, np.array([[1.0, 2.0], [3.0, 4.0]])]).astype(np.float32),
    "h": np.array([[2.0, 1j], [-1j, 3.0]], np.complex128),  # Hermitian
    "cube": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
}  # fmt: skip

UNARY = """
abs     f i z i0 none u16     acos   s z   acosh p z      asin   s z    asinh f z       atan    f z      atanh s z
ceil    f i u8 odd            conj   z f i cos   f z      cosh   s z    exp   f z f0    expm1   s z      floor f i odd
imag    z                     isfinite odd z i            isinf  odd z i                isnan   odd z i  log   p z
log10   p z                   log1p  s z   log2  p z      logical_not b negative f i z  positive f z i   real  z f
reciprocal p z                round  f i z odd            sign   f i z odd u8           signbit odd      sin   f z
sinh    s z                   sqrt   p z   square f i z u8 tan   s z    tanh  f z       trunc   f i odd  bitwise_invert b i u8 u32
"""

BINARY = """
add      f,g f,2 i,j i8,u8 u16,i8 u32,j z,f 1.5,f f0,f i0,i z,1j none,1.0 u8,u16 u64,u8
subtract f,g 2,i u8,j z,w     multiply f,g i,2 z,w u32,2 i8,i0   divide f,g f,2 z,w f,f0
floor_divide f,g i,2 g,f0     remainder f,g i,3 i,i0             pow    p,2 i,2 2,p z,2 g,2.0 p,s
atan2    f,g f,1.0            copysign f,g odd,-1.0              hypot  f,g 1.0,f
logaddexp f,g f,0             nextafter f,f0 f,g                 maximum f,g i,2 odd,0.0 f,f0 u8,u16 0.5,f
minimum  f,g i,2 odd,0.0      equal f,g i,i0 z,w b,b z,0 b,True  not_equal f,g odd,odd u64,u8
less     f,g i,2 odd,0.0      less_equal f,g u8,i8               greater f,g 2,i      greater_equal f,g i,i0
logical_and b,b b,True        logical_or b,b b,False             logical_xor b,b
bitwise_and i,3 b,b u8,u16    bitwise_or i,j b,False u32,1       bitwise_xor i,j b,b  bitwise_left_shift i,2 j,j u8,1
bitwise_right_shift i,1 u16,u16 u8,u8
"""


def listed(table: str) -> list[str]:
    """The calls that a table of names and arguments stands for."""
    found: list[str] = []
    name = ""
    for word in table.split():
        if word in array_api_strict.__all__ and not found_argument(word):
            name = word
        else:
            found.append(f"xp.{name}({word})")
    return found


def found_argument(word: str) -> bool:
    return word.partition(",")[0] in ARRAYS


CASES = listed(UNARY) + listed(BINARY) + """
xp.clip(f, -1, 1)
xp.clip(f, min=0.0)
xp.clip(i, max=xp.asarray(2))
xp.clip(odd, -1.0, 1.0)
xp.clip(f)
xp.clip(u8, 50, 150)
xp.arange(3)
xp.arange(3.0, dtype=xp.float32)
xp.arange(5, 1, -2)
xp.arange(3, 1)
xp.arange(0, 2, step=0.5)
xp.arange(0, 4, dtype=xp.uint16)
xp.asarray(3)
xp.asarray([[1.5, 2], [3, 4]])
xp.asarray([True, False])
xp.asarray(2j)
xp.asarray([])
xp.asarray([1, 2], dtype=xp.uint8)
xp.asarray(f, copy=True)
xp.asarray(f, dtype=xp.float64)
xp.empty((2, 0), dtype=xp.int8)
xp.empty_like(none)
xp.eye(3)
xp.eye(2, 4, k=1, dtype=xp.int32)
xp.eye(3, k=-1)
xp.eye(0)
xp.from_dlpack(f)
xp.from_dlpack(i, copy=True)
xp.full(2, 7)
xp.full((2, 2), True)
xp.full((), 1.5)
xp.full((1,), 2j)
xp.full_like(f, 2)
xp.full_like(i, 3, dtype=xp.float32)
xp.linspace(0, 1, 5)
xp.linspace(1.0, 2.0, num=4, endpoint=False, dtype=xp.float32)
xp.linspace(0, 1, 0)
xp.linspace(2, 3, 1)
xp.meshgrid(j, j[:2])
xp.meshgrid(q, q, q, indexing='ij')
xp.meshgrid(f0, f0)
xp.meshgrid()
xp.eye(3, k=4)
xp.eye(3, k=-4)
xp.ones((2, 3))
xp.ones_like(u16)
xp.tril(m)
xp.tril(cube, k=1)
xp.triu(m, k=-1)
xp.triu(cube)
xp.zeros(3, dtype=xp.complex64)
xp.zeros_like(b)
xp.astype(f, xp.int32)
xp.astype(b, xp.float32)
xp.astype(f, xp.complex128, copy=False)
xp.astype(i, xp.bool)
xp.can_cast(xp.int8, xp.int16)
xp.can_cast(xp.int16, xp.int8)
xp.can_cast(xp.uint8, xp.int8)
xp.can_cast(xp.uint8, xp.int16)
xp.can_cast(xp.float32, xp.complex64)
xp.can_cast(xp.float64, xp.complex64)
xp.can_cast(xp.bool, xp.int8)
xp.can_cast(xp.uint64, xp.int64)
xp.can_cast(f, xp.float64)
xp.finfo(xp.float32)
xp.finfo(z)
xp.finfo(xp.float64)
xp.iinfo(xp.int8)
xp.iinfo(u64)
xp.isdtype(xp.int8, 'signed integer')
xp.isdtype(xp.uint8, 'signed integer')
xp.isdtype(xp.uint8, ('unsigned integer', 'bool'))
xp.isdtype(xp.bool, 'numeric')
xp.isdtype(xp.bool, 'unsigned integer')
xp.isdtype(xp.float32, 'real floating')
xp.isdtype(xp.complex64, 'complex floating')
xp.isdtype(xp.int32, 'integral')
xp.isdtype(xp.float32, xp.float32)
xp.result_type(xp.int8, xp.uint8)
xp.result_type(f, xp.float64)
xp.result_type(f, 1j)
xp.result_type(i8, u16, 1)
xp.result_type(f0, f)
xp.broadcast_arrays(f, s, f0)
xp.broadcast_shapes((2, 1), (3,), ())
xp.broadcast_to(s, (2, 3))
xp.concat([f, g])
xp.concat((i, i), axis=1)
xp.concat([f, s], axis=None)
xp.concat([f, none])
xp.concat([j, u8, xp.asarray([1], dtype=xp.int8)], axis=-1)
xp.expand_dims(f, 1)
xp.expand_dims(f0, axis=-1)
xp.expand_dims(f, axis=(0, -1))
f[::-1, :]
i[:, ::-2]
cube[0, -1:0:-1, :]
none[xp.asarray([], dtype=xp.bool)]
xp.flip(f)
xp.flip(f, axis=-1)
xp.flip(cube, axis=(0, 2))
xp.moveaxis(cube, 0, -1)
xp.moveaxis(cube, (0, 1), (1, 2))
xp.permute_dims(cube, (2, 0, 1))
xp.permute_dims(cube, axes=(-1, 0, 1))
xp.repeat(s, 2)
xp.repeat(f, k, axis=1)
xp.repeat(f, 2)
xp.reshape(f, (3, 2))
xp.reshape(f, (-1,), copy=True)
xp.reshape(f0, (1, 1), copy=False)
xp.roll(f, 1)
xp.roll(f, -1, axis=1)
xp.roll(f, (1, 2), axis=(0, 1))
xp.squeeze(xp.expand_dims(f, 1), 1)
xp.squeeze(xp.ones((1, 2, 1)), (0, -1))
xp.stack([f, g])
xp.stack((s, s), axis=-1)
xp.tile(s, (2, 2))
xp.tile(f, (2,))
xp.unstack(f)
xp.unstack(cube, axis=-1)
xp.argmax(f)
xp.argmax(f, axis=1, keepdims=True)
xp.argmax(odd)
xp.argmax(i0)
xp.argmin(i, axis=0)
xp.argmin(f, keepdims=True)
xp.count_nonzero(f)
xp.count_nonzero(i, axis=0)
xp.count_nonzero(b, keepdims=True)
xp.count_nonzero(cube, axis=(0, 2), keepdims=True)
xp.count_nonzero(i0)
xp.nonzero(f)
xp.nonzero(b)
xp.searchsorted(p, s)
xp.searchsorted(j, i)
xp.searchsorted(j, j, side='right')
xp.searchsorted(q, g, sorter=xp.argsort(q))
xp.searchsorted(j, 2)
xp.isin(i, j)
xp.isin(u8, 7)
xp.where(b, s, p)
xp.where(b, f, 0)
xp.where(b, 1.0, s)
xp.where(b, i, f0) if xp is turnout_namespace else xp.where(b, xp.astype(i, xp.float64), f0)
xp.take(s, k)
xp.take(f, k, axis=1)
xp.take(cube, k, axis=-2)
xp.take_along_axis(f, k2, axis=1)
xp.take_along_axis(f, k2)
xp.take_along_axis(s, k, axis=0)
xp.sort(f)
xp.sort(q, descending=True)
xp.sort(i, axis=0)
xp.sort(f, stable=False)
xp.sort(none)
xp.argsort(q)
xp.argsort(q, descending=True)
xp.argsort(i, axis=0)
xp.unique_all(q)
xp.unique_all(i)
xp.unique_counts(q)
xp.unique_inverse(xp.stack([q, q]))
xp.unique_values(i)
xp.unique_values(none)
xp.all(b)
xp.all(f, axis=1)
xp.all(none, axis=0)
xp.all(u8, axis=())
xp.all(none)
xp.any(b, keepdims=True)
xp.any(cube, axis=(0, 1))
xp.any(none)
xp.any(f0)
xp.max(f)
xp.max(f, axis=1, keepdims=True)
xp.max(cube, axis=(0, 2))
xp.max(odd)
xp.max(u64)
xp.min(i, axis=0)
xp.min(f0)
xp.min(f, axis=())
xp.sum(f)
xp.sum(u8)
xp.sum(i8, axis=0, keepdims=True)
xp.sum(u32, dtype=xp.float64)
xp.sum(f, axis=())
xp.sum(none, axis=0)
xp.sum(i0, axis=())
xp.sum(z)
xp.sum(cube, axis=(0, -1), keepdims=True)
xp.prod(f)
xp.prod(u8, dtype=xp.uint8)
xp.prod(u16)
xp.prod(cube, axis=(0, 2), keepdims=True)
xp.prod(none)
xp.prod(f, axis=())
xp.mean(f)
xp.mean(cube, axis=(0, 1), keepdims=True)
xp.mean(f0)
xp.mean(f, axis=())
xp.var(f)
xp.var(g, axis=1, correction=1)
xp.var(f, axis=(), correction=0.0)
xp.var(cube, axis=(0, 2), correction=0.5, keepdims=True)
xp.std(f)
xp.std(g, axis=0, correction=1.0, keepdims=True)
xp.cumulative_sum(s)
xp.cumulative_sum(f, axis=1, include_initial=True)
xp.cumulative_sum(u8)
xp.cumulative_sum(i8, dtype=xp.int8, include_initial=True)
xp.cumulative_prod(s, include_initial=True)
xp.cumulative_prod(i, axis=0)
xp.cumulative_prod(none, axis=0, include_initial=True)
xp.diff(f)
xp.diff(i, axis=0)
xp.diff(q, n=2)
xp.diff(j, prepend=xp.asarray([9], dtype=xp.int32), append=xp.asarray([5], dtype=xp.int32))
xp.matmul(m, m)
xp.matmul(f, s)
xp.matmul(mm, mm[0, ...])
xp.matmul(i, j)
xp.matmul(s, g[0, :])
xp.matrix_transpose(cube)
xp.tensordot(cube, cube, axes=3)
xp.tensordot(f, f, axes=((1,), (1,)))
xp.tensordot(s, g, axes=0)
xp.vecdot(f, g)
xp.vecdot(f, s)
xp.vecdot(z, w)
xp.vecdot(i, j)
xp.vecdot(m, m, axis=-2)
xp.linalg.cholesky(m)
xp.linalg.cholesky(h, upper=True)
xp.linalg.cross(f, s)
xp.linalg.cross(j, k)
xp.linalg.cross(m, m + 1, axis=-2)
xp.linalg.det(mm)
xp.linalg.diagonal(cube)
xp.linalg.diagonal(f, offset=1)
xp.linalg.diagonal(m, offset=-2)
xp.linalg.eigh(m).eigenvalues
xp.abs(xp.linalg.eigh(h).eigenvectors)
xp.linalg.eigvalsh(h)
xp.linalg.eigvals(mm)
xp.linalg.eig(m)
xp.linalg.inv(mm)
xp.linalg.matmul(m, m)
xp.linalg.matrix_norm(mm)
xp.linalg.matrix_norm(mm, ord='nuc')
xp.linalg.matrix_norm(m, ord=1, keepdims=True)
xp.linalg.matrix_norm(m, ord=-2)
xp.linalg.matrix_norm(h, ord=xp.inf)
xp.linalg.matrix_power(mm, 3)
xp.linalg.matrix_power(m, -2)
xp.linalg.matrix_power(m, 0)
xp.linalg.matrix_rank(mm)
xp.linalg.matrix_rank(m, rtol=0.9)
xp.linalg.matrix_rank(mm, rtol=xp.asarray([0.9, 0.0], dtype=xp.float32))
xp.linalg.matrix_transpose(m)
xp.linalg.outer(s, q)
xp.linalg.outer(s, z)
xp.linalg.pinv(f)
xp.linalg.pinv(mm, rtol=0.1)
xp.abs(xp.linalg.qr(f).Q)
xp.abs(xp.linalg.qr(g, mode='complete').R)
xp.matmul(*xp.linalg.qr(cube))
xp.linalg.slogdet(mm)
xp.linalg.solve(m, q[:3])
xp.linalg.solve(mm, mm)
xp.linalg.solve(mm, f[:, :2])
xp.linalg.solve(mm[0, ...], mm)
xp.linalg.svd(f).S
xp.abs(xp.linalg.svd(f, full_matrices=False).U)
xp.abs(xp.linalg.svd(g).Vh[:2, :])
xp.linalg.svdvals(cube)
xp.linalg.tensordot(f, s, axes=1)
xp.linalg.trace(cube)
xp.linalg.trace(i, offset=1)
xp.linalg.trace(xp.stack([u8, u8]))
xp.linalg.trace(f, dtype=xp.float64)
xp.linalg.vecdot(f, g)
xp.linalg.vector_norm(f)
xp.linalg.vector_norm(cube, axis=(0, 2), keepdims=True)
xp.linalg.vector_norm(z, ord=1)
xp.linalg.vector_norm(f, axis=0, ord=xp.inf)
xp.linalg.vector_norm(g, ord=-xp.inf, keepdims=True)
xp.linalg.vector_norm(f, axis=1, ord=0)
xp.linalg.vector_norm(f, axis=())
xp.linalg.vector_norm(f0)
xp.fft.fft(z)
xp.fft.fft(z, n=5, norm='ortho')
xp.fft.fft(xp.stack([z, z]), axis=0)
xp.fft.ifft(w)
xp.fft.ifft(w, n=2, norm='forward')
xp.fft.fftn(xp.stack([z, z]))
xp.fft.fftn(xp.stack([z, z]), s=(3, 2), axes=(0, 1))
xp.fft.ifftn(xp.stack([w, w]), axes=(0,))
xp.fft.rfft(g)
xp.fft.rfft(f, n=4, axis=0)
xp.fft.irfft(z)
xp.fft.irfft(w, n=3)
xp.fft.rfftn(f)
xp.fft.irfftn(xp.stack([z, z]), axes=(0, 1))
xp.fft.hfft(z)
xp.fft.ihfft(s)
xp.fft.fftfreq(5)
xp.fft.fftfreq(4, d=0.5, dtype=xp.float32)
xp.fft.rfftfreq(5, d=2.0)
xp.fft.fftshift(f)
xp.fft.fftshift(f, axes=1)
xp.fft.ifftshift(s)
xp.fft.ifftshift(f, axes=(0, 1))
""".strip().splitlines()  # fmt: skip
