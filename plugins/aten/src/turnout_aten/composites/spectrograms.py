"""Short-time Fourier transforms: a signal is split into overlapping frames, which are windowed and transformed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.fourier import BY_N, NONE, ROOT

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

SMALLEST_ENVELOPE = 1e-11


def _frame(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    """The hop and window lengths, checked."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop <= 0:
        raise ShapeError(texts.not_positive(name, "hop_length", hop))
    if not 0 < width <= n_fft:
        raise ShapeError(f"{name}: win_length must lie between 1 and n_fft {n_fft}, got {width}")
    return hop, width


def _window(name: str, like: Tensor, window: Tensor | None, width: int, n_fft: int) -> Tensor:
    """The window padded with zeros on both sides to n_fft; ones if there is no window."""
    if window is not None and window.shape != (width,):
        raise ShapeError(texts.wrong_shape(name, "window", [width], window.shape))
    if window is None:
        # It is the same for all examples, so its values can be read inside vmap.
        window = aten.ones((width,), dtype=like.dtype.to_real(), device=like.device)
    left = (n_fft - width) // 2
    if width == n_fft:
        return window
    zeros = aten.new_zeros(window, (left,)), aten.new_zeros(window, (n_fft - width - left,))
    return aten.cat([zeros[0], window, zeros[1]], 0)


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Frames, from the start of the signal."""
    return stft_center(
        self, n_fft, hop_length, win_length, window, False, "constant", normalized, onesided, return_complex, align_to_window
    )


def stft_center(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """[..., frequency, frame] of signals [length] or [batch, length]; with `center`, frame t is around sample t * hop."""
    if self.dtype.category < FLOAT:
        raise DTypeError(texts.not_inexact("stft", self.dtype))
    if self.ndim not in (1, 2):
        raise ShapeError(f"stft: expected a signal or a batch of them, got shape {list(self.shape)}")
    complex_frames = self.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not complex_frames:
        raise ArgumentError("stft: a real signal needs return_complex: True for complex results, False for separate parts")
    if center and align_to_window is not None:
        raise ArgumentError("stft: align_to_window is only for center=False")
    signal = self if self.ndim == 2 else aten.unsqueeze(self, 0)
    width = n_fft if win_length is None else win_length
    if center:
        signal = _padded(signal, n_fft // 2, n_fft // 2, pad_mode)
    elif align_to_window:
        left = (n_fft - width) // 2
        signal = _padded(signal, left, n_fft - width - left, "constant")
    if not 0 < n_fft <= signal.shape[-1]:
        raise ShapeError(f"stft: n_fft must lie between 1 and the signal's length {signal.shape[-1]}, got {n_fft}")
    hop, width = _frame("stft", n_fft, hop_length, win_length)
    frames = aten.unfold(signal, -1, n_fft, hop)
    if window is not None or width != n_fft:
        frames = aten.mul__Tensor(frames, _window("stft", self, window, width, n_fft))
    scaling = ROOT if normalized else NONE
    one_sided = not complex_frames if onesided is None else onesided
    if one_sided and complex_frames:
        raise ArgumentError("stft: onesided needs a real signal and a real window")
    if complex_frames:
        made = aten._fft_c2c(frames, (2,), scaling, True)
    else:
        made = aten._fft_r2c(frames, (2,), scaling, one_sided)
    made = aten.transpose__int(made, 1, 2)
    result: Tensor = made if self.ndim == 2 else aten.squeeze__dim(made, 0)
    if return_complex is False:
        result = aten.view_as_real(result)
    return result


def _padded(signal: Tensor, left: int, right: int, mode: str) -> Tensor:
    return aten.squeeze__dim(aten.pad(aten.unsqueeze(signal, 0), (left, right), mode), 0)


def istft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of a spectrogram [..., frequency, frame]: the sum of the frames, divided by the sum of the squared windows."""
    if not self.dtype.is_complex:
        raise DTypeError(f"istft: expected a complex tensor, got {self.dtype.name}")
    if self.ndim not in (2, 3) or 0 in self.shape:
        raise ShapeError(f"istft: expected a nonempty spectrogram or a batch of them, got shape {list(self.shape)}")
    hop, width = _frame("istft", n_fft, hop_length, win_length)
    if hop > width:
        raise ShapeError(f"istft: hop_length {hop} must not be greater than win_length {width}")
    frequencies = self.shape[-2]
    one_sided = frequencies != n_fft if onesided is None else onesided
    if frequencies != (n_fft // 2 + 1 if one_sided else n_fft):
        wanted = n_fft // 2 + 1 if one_sided else n_fft
        raise ShapeError(f"istft: n_fft {n_fft} needs {wanted} frequencies, got shape {list(self.shape)}")
    if return_complex and one_sided:
        raise ArgumentError("istft: a complex signal needs onesided=False")
    if window is not None and window.dtype.is_complex and not return_complex:
        raise ArgumentError("istft: a complex window needs return_complex=True")
    if length is not None and length < 1:
        raise ArgumentError(texts.not_positive("istft", "length", length))
    spectra = self if self.ndim == 3 else aten.unsqueeze(self, 0)
    weights = _window("istft", self, window, width, n_fft)
    made = _overlapped(aten.transpose__int(spectra, 1, 2), weights, hop, normalized, one_sided, return_complex)
    total = made.shape[-1]
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start if center else total
    squares = aten.mul__Tensor(weights, weights)
    envelope = _added_up(aten.expand(squares, (1, spectra.shape[-1], n_fft)), hop)
    made, envelope = (aten.slice__Tensor(x, 1, start, min(end, total), 1) for x in (made, envelope))
    if _vanishes(envelope):
        raise ShapeError("istft: some samples are not covered by any window; use a wider window or a smaller hop")
    made = aten.div__Tensor(made, envelope)
    if end > total:
        made = aten.cat([made, aten.new_zeros(made, (made.shape[0], end - total))], 1)
    return made if self.ndim == 3 else aten.squeeze__dim(made, 0)


def _overlapped(spectra: Tensor, weights: Tensor, hop: int, normalized: bool, one_sided: bool, return_complex: bool) -> Tensor:
    """[batch, frame, frequency] as signals, before the division by the windows."""
    scaling = ROOT if normalized else BY_N
    n_fft = weights.shape[0]
    if return_complex:
        frames = aten._fft_c2c(spectra, (2,), scaling, False)
    else:
        half = spectra if one_sided else aten.slice__Tensor(spectra, 2, 0, n_fft // 2 + 1, 1)
        frames = aten._fft_c2r(half, (2,), scaling, n_fft)
    return _added_up(aten.mul__Tensor(frames, weights), hop)


def _added_up(frames: Tensor, hop: int) -> Tensor:
    """Frames [batch, frame, n] placed `hop` apart and summed."""
    batch, count, n = frames.shape
    return aten.unfold_backward(frames, (batch, n + hop * (count - 1)), 1, n, hop)


def _vanishes(envelope: Tensor) -> bool:
    from turnout.errors import NoDataError

    try:
        return not holds(aten.logical_not(aten.lt__Scalar(aten.amin(aten.abs(envelope)), SMALLEST_ENVELOPE)))
    except NoDataError:  # a device without data, such as meta
        return False
