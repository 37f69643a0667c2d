"""Fourier transforms and short-time ones."""

from __future__ import annotations

from typing import Any

from turnout_aten.composites.fourier import NORMS
from turnout_conformance.cases.model import OperatorCase, S, row, some

X, REAL = some(2, 4), some(3, 4, seed=3)
COMPLEX = ("float32", "float64", "complex128")
SPECTRUM = ("complex64", "complex128")
SCALING = ("backward", "ortho", "forward")
INVERSE = ("forward", "ortho", "backward")


def one(name: str) -> Any:
    """NumPy's function of one dim."""
    return lambda np, x, n=None, dim=-1, norm=None: getattr(np.fft, name)(x, n, dim, norm)


def several(name: str, default: Any = None) -> Any:
    """NumPy's function of several dims."""

    def reference(np: Any, x: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        axes = dim if dim is not None else range(x.ndim)[-len(s) :] if s is not None else range(x.ndim)
        lengths = [x.shape[d] for d in axes] if s is None and name not in ("irfftn",) else s
        return getattr(np.fft, name)(x, lengths, tuple(axes), norm)

    return reference


def hermitian(default: Any, inverse: bool) -> Any:
    """hfftn and ihfftn: the real transforms of the conjugate, in the other direction."""
    turned = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}

    def reference(np: Any, x: Any, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        axes = tuple(range(x.ndim) if dim is None else dim)
        if inverse:
            return np.conj(np.fft.rfftn(x, s, axes, turned[norm]))
        return np.fft.irfftn(np.conj(x), s, axes, turned[norm])

    return reference


def frames(np: Any, x: Any, n_fft: int, hop: int, window: Any) -> Any:
    weights = np.ones(n_fft) if window is None else window
    return np.stack([x[..., i : i + n_fft] * weights for i in range(0, x.shape[-1] - n_fft + 1, hop)], -2)


def spectrogram(
    np: Any, x: Any, n_fft: int, hop_length: int, window: Any = None, normalized: bool = False, return_complex: bool = True
) -> Any:
    made = np.swapaxes(np.fft.rfft(frames(np, x, n_fft, hop_length, window)), -1, -2)
    made = made / np.sqrt(n_fft) if normalized else made
    return made if return_complex else np.stack([made.real, made.imag], -1)


def centred(
    np: Any, x: Any, n_fft: int, hop_length: int, window: Any = None, pad_mode: str = "reflect", return_complex: bool = True
) -> Any:
    around = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
    return spectrogram(np, np.pad(x, around, pad_mode), n_fft, hop_length, window)


def signal(np: Any, x: Any, n_fft: int, hop_length: int, center: bool = True, length: Any = None) -> Any:
    parts = np.fft.irfft(np.swapaxes(x, -1, -2), n_fft)
    total = n_fft + hop_length * (parts.shape[-2] - 1)
    made, times = np.zeros((*x.shape[:-2], total)), np.zeros(total)
    for i in range(parts.shape[-2]):
        made[..., i * hop_length : i * hop_length + n_fft] += parts[..., i, :]
        times[i * hop_length : i * hop_length + n_fft] += 1
    start = n_fft // 2 if center else 0
    return (made / times)[..., start : start + length if length else total - start]


SPECTRA = some(3, 4)
# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("fft_fft", (S(X), S(X, 3, 0, "ortho"), *[S(X, 5, norm=norm) for norm in NORMS]), one("fft"), COMPLEX),
    row("fft_ifft", (S(X), *[S(X, 3, 0, norm) for norm in NORMS]), one("ifft"), COMPLEX),
    row("fft_rfft", (S(X), S(X, 5), S(X, 3, 0, "ortho")), one("rfft")),
    row("fft_irfft", (S(X), S(X, 5), S(X, 3, 0, "ortho")), one("irfft"), SPECTRUM),
    row("fft_hfft", (S(X), S(X, 5), S(X, 3, 0, "ortho")), one("hfft"), SPECTRUM),
    row("fft_ihfft", (S(X), S(X, 5), S(X, 3, 0, "ortho")), one("ihfft")),
    row("fft_fftn", (S(X), S(X, [3], [0]), S(X, [5], norm="ortho")), several("fftn"), COMPLEX),
    row("fft_ifftn", (S(X), S(X, [3], [0])), several("ifftn"), COMPLEX),
    row("fft_rfftn", (S(X), S(X, [3, 3], [1, 0], "forward")), several("rfftn")),
    row("fft_irfftn", (S(X), S(X, [3, 5], [0, 1], "ortho")), several("irfftn"), SPECTRUM),
    row("fft_hfftn", (S(X), S(X, [3, 5], [0, 1], "ortho")), hermitian(None, False), SPECTRUM),
    row("fft_ihfftn", (S(X), S(X, dim=[1, 0], norm="forward")), hermitian(None, True)),
    row("fft_fft2", S(X), several("fftn", (-2, -1))),
    row("fft_ifft2", S(X), several("ifftn", (-2, -1))),
    row("fft_rfft2", S(X), several("rfftn", (-2, -1))),
    row("fft_irfft2", S(X), several("irfftn", (-2, -1)), SPECTRUM),
    row("fft_hfft2", S(X), hermitian((-2, -1), False), SPECTRUM),
    row("fft_ihfft2", S(X), hermitian((-2, -1), True)),
    row("fft_fftshift", (S(REAL), S(REAL, [0])), lambda np, x, d=None: np.fft.fftshift(x, d)),
    row("fft_ifftshift", (S(REAL), S(REAL, [0])), lambda np, x, d=None: np.fft.ifftshift(x, d)),
    row("_fft_r2c", (S(X, [1], 0, True), S(X, [0, 1], 1, False)), lambda np, x, d, scale, onesided: (np.fft.rfftn if onesided else np.fft.fftn)(x, axes=tuple(d), norm=SCALING[scale])),
    row("_fft_c2r", (S(X, [1], 2, 6), S(X, [0, 1], 1, 7)), lambda np, x, d, scale, last: np.fft.irfftn(x, (*(x.shape[i] for i in d[:-1]), last), tuple(d), INVERSE[scale]), SPECTRUM),
    row("_fft_c2c", (S(X, [1], 0, True), S(X, [0, 1], 2, False)), lambda np, x, d, scale, forward: np.fft.fftn(x, axes=tuple(d), norm=SCALING[scale]) if forward else np.fft.ifftn(x, axes=tuple(d), norm=INVERSE[scale]), SPECTRUM),
    row("stft", (S(some(2, 8), 4, hop_length=2, return_complex=True), S(some(8), 4, hop_length=1, window=some(4, seed=3), normalized=True, return_complex=False)), spectrogram),
    row("stft.center", (S(some(2, 8), 4, hop_length=2, return_complex=True), S(some(8), 4, hop_length=1, window=some(4, seed=3), pad_mode="constant", return_complex=True)), centred),
    row("istft", (S(SPECTRA, 4, hop_length=2), S(SPECTRA, 4, hop_length=2, center=False, length=6)), signal, SPECTRUM),
)
# fmt: on
