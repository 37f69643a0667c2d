"""`turnout.stft`, whose frames are centred unless a call says otherwise."""

from __future__ import annotations

from turnout.operators.tracebacks import shortening
from turnout_aten import operators as _operators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


@shortening
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

    Raises ShapeError for lengths that do not fit, DTypeError for integers.

    Arguments:
        input: the signal
        n_fft: the length of a frame
        hop_length: the distance of frames; a quarter of `n_fft` unless given
        win_length: the length of the window, in the middle of a frame; `n_fft` unless given
        window: the window; ones unless given
        center: whether the signal is padded so that frame t is around sample t * hop_length
        pad_mode: how it is padded; see `turnout.nn.functional.pad`
        normalized: whether results are scaled by 1 / sqrt(n_fft)
        onesided: whether the half that is the conjugate of the other is left out; so for real signals unless given
        return_complex: must be given for real signals: complex numbers, or real and imaginary parts in a last dim
        align_to_window: see PyTorch; only without `center`

    Example:
        >>> turnout.stft(turnout.tensor([1.0, 2.0, 3.0, 4.0]), 2, hop_length=2, center=False, return_complex=True)
        tensor([[ 3.+0.j,  7.+0.j],
                [-1.+0.j, -1.+0.j]])
    """
    return _operators.stft__center(
        input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window
    )
