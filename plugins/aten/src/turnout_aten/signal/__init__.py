"""Signals: window functions, and `stft`, which `turnout.stft` is."""

from __future__ import annotations

from turnout_aten import operators as _operators
from turnout_aten.signal import windows as windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def stft(
    input: Tensor,
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
    """The Fourier transforms of frames of a signal: [..., frequency, frame] for signals [length] or [batch, length].

    n_fft, hop_length      length of a frame, and from one to the next; a quarter of n_fft unless given
    win_length, window     the window, at most n_fft long, in the middle of a frame; ones unless given
    center, pad_mode       whether the signal is padded so that frame t is around sample t * hop_length
    normalized             scale by 1/sqrt(n_fft)
    onesided               leave out the half that is the conjugate of the other; so for real signals unless given
    return_complex         must be given for real signals: complex numbers, or real and imaginary parts in a last dim

    Raises ShapeError for lengths that do not fit, DTypeError for integers.
    """
    made: Tensor = _operators.stft__center(
        input,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        pad_mode,
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )
    return made
