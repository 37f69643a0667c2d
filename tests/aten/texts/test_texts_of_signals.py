"""What transforms of signals say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_fourier_transforms_refuse = refused("""
turnout.fft.fft(ones(2), norm="both")
    ArgumentError: fft.fft: norm must be one of backward, forward, ortho, got 'both'
turnout.fft.fftn(ones(2, 2), norm="both")
    ArgumentError: fft.fftn: norm must be one of backward, forward, ortho, got 'both'
turnout.fft.rfft2(ones(2, 2), norm="both")
    ArgumentError: fft.rfftn: norm must be one of backward, forward, ortho, got 'both'
turnout.fft.irfft(ones(2), norm="both")
    ArgumentError: fft.irfft: norm must be one of backward, forward, ortho, got 'both'
turnout.fft.hfft2(ones(2, 2), norm="both")
    ArgumentError: fft.hfftn: norm must be one of backward, forward, ortho, got 'both'
turnout.fft.fft(ones(4, dtype=float16))
    DTypeError: fft: not implemented for float16; convert to float32
turnout.fft.fft(ones(4, dtype=turnout.bfloat16))
    DTypeError: fft: not implemented for bfloat16; convert to float32
turnout.fft.rfft(ones(2, dtype=complex64))
    DTypeError: fft.rfft: expected a real tensor, got complex64
turnout.fft.ihfft(ones(2, dtype=complex64))
    DTypeError: fft.ihfft: expected a real tensor, got complex64
turnout.fft.rfftn(ones(2, dtype=complex64))
    DTypeError: fft.rfftn: expected a real tensor, got complex64
turnout.fft.fftn(ones(2, 2), s=[2], dim=[0, 1])
    ShapeError: fft.fftn: s and dim must have the same length, got [2] and [0, 1]
turnout.fft.fftn(ones(2, 2), s=[2, 2, 2])
    ShapeError: fft.fftn: s [2, 2, 2] has more lengths than the tensor of shape [2, 2] has dimensions
turnout.fft.fftn(ones(2, 2), dim=[0, 0])
    ShapeError: fft.fftn: a dimension occurs twice in [0, 0]
turnout.fft.fft2(ones(2, 2), dim=[1, -1])
    ShapeError: fft.fftn: a dimension occurs twice in [1, -1]
turnout.fft.fft(tensor(1.0))
    DimError: fft.fft: needs at least one dimension, got a 0-dim tensor
turnout.fft.irfft(tensor(1.0))
    DimError: fft.irfft: needs at least one dimension, got a 0-dim tensor
turnout.fft.rfft(tensor(1.0))
    DimError: fft.rfft: needs at least one dimension, got a 0-dim tensor
turnout.fft.rfftn(ones(2, 2), dim=[])
    ShapeError: fft.rfftn: at least one dimension must be transformed
turnout.fft.rfftn(tensor(1.0))
    ShapeError: fft.rfftn: at least one dimension must be transformed
turnout.fft.irfftn(ones(2, 2), dim=[])
    ShapeError: fft.irfftn: at least one dimension must be transformed
turnout.fft.irfft(ones(1))
    ShapeError: fft.irfft: the result would have 0 elements; give its length
turnout.fft.irfft2(ones(2, 1))
    ShapeError: fft.irfftn: the result would have 0 elements; give its length
turnout.fft.hfft(ones(1))
    ShapeError: fft.hfft: the result would have 0 elements; give its length
turnout.fft.fft(ones(2), n=0)
    ShapeError: fft.fft: cannot transform 0 elements
turnout.fft.fft(ones(0))
    ShapeError: fft.fft: cannot transform 0 elements
turnout.fft.rfft(ones(2), n=-2)
    ShapeError: fft.rfft: cannot transform -2 elements
turnout.fft.irfft(ones(2), n=0)
    ShapeError: fft.irfft: cannot transform 0 elements
turnout.fft.fftfreq(-2)
    ShapeError: fft.fftfreq: n must not be negative, got -2
turnout.fft.fftfreq(4, dtype=int64)
    DTypeError: fft: frequencies need a floating-point or complex dtype, got int64
turnout.fft.fftshift(tensor(1.0), dim=0)
    DimError: fft: dim 0 cannot be shifted, because the tensor has no dimensions
""")

test_what_spectrograms_refuse = refused("""
turnout.stft(ones(8), 4, hop_length=0, return_complex=True)
    ShapeError: stft: hop_length must be positive, got 0
turnout.stft(ones(8), 4, win_length=5, return_complex=True)
    ShapeError: stft: win_length must lie between 1 and n_fft 4, got 5
turnout.stft(ones(8), 4, win_length=0, return_complex=True)
    ShapeError: stft: win_length must lie between 1 and n_fft 4, got 0
turnout.stft(ones(8), 4, window=ones(3), return_complex=True)
    ShapeError: stft: 'window' must have shape [4], got [3]
turnout.stft(arange(8), 4, return_complex=True)
    DTypeError: stft: expected a floating-point or complex tensor, got int64
turnout.stft(ones(1, 1, 8), 4, return_complex=True)
    ShapeError: stft: expected a signal or a batch of them, got shape [1, 1, 8]
turnout.stft(ones(8), 4)
    ArgumentError: stft: a real signal needs return_complex: True for complex results, False for separate parts
turnout.stft(ones(8), 4, return_complex=True, align_to_window=True)
    ArgumentError: stft: align_to_window is only for center=False
aten.stft.center(ones(8), 4, return_complex=True, align_to_window=True)
    ArgumentError: stft: align_to_window is only for center=False
turnout.stft(ones(8), 9, center=False, return_complex=True)
    ShapeError: stft: n_fft must lie between 1 and the signal's length 8, got 9
turnout.stft(ones(8), 20, return_complex=True)
    ShapeError: reflection_pad1d: padding 10 and 10 must be less than 8, the length of dim -1
turnout.stft(ones(8), 0, return_complex=True)
    ShapeError: stft: n_fft must lie between 1 and the signal's length 8, got 0
turnout.stft(ones(8, dtype=complex64), 4, onesided=True)
    ArgumentError: stft: onesided needs a real signal and a real window
turnout.stft(ones(8), 4, window=ones(4, dtype=complex64), onesided=True)
    ArgumentError: stft: onesided needs a real signal and a real window
turnout.stft(ones(8), 4, pad_mode="wrap", return_complex=True)
    ModeError: pad: mode must be one of constant, reflect, replicate, circular, got 'wrap'
turnout.istft(ones(3, 4), 4)
    DTypeError: istft: expected a complex tensor, got float32
turnout.istft(ones(3, dtype=complex64), 4)
    ShapeError: istft: expected a nonempty spectrogram or a batch of them, got shape [3]
turnout.istft(ones(3, 0, dtype=complex64), 4)
    ShapeError: istft: expected a nonempty spectrogram or a batch of them, got shape [3, 0]
turnout.istft(ones(3, 4, dtype=complex64), 4, hop_length=-1)
    ShapeError: istft: hop_length must be positive, got -1
turnout.istft(ones(3, 4, dtype=complex64), 4, win_length=5)
    ShapeError: istft: win_length must lie between 1 and n_fft 4, got 5
turnout.istft(ones(3, 4, dtype=complex64), 4, hop_length=4, win_length=3)
    ShapeError: istft: hop_length 4 must not be greater than win_length 3
turnout.istft(ones(3, 4, dtype=complex64), 4, hop_length=5, win_length=4)
    ShapeError: istft: hop_length 5 must not be greater than win_length 4
turnout.istft(ones(2, 4, dtype=complex64), 4)
    ShapeError: istft: n_fft 4 needs 3 frequencies, got shape [2, 4]
turnout.istft(ones(4, 4, dtype=complex64), 4, onesided=True)
    ShapeError: istft: n_fft 4 needs 3 frequencies, got shape [4, 4]
turnout.istft(ones(3, 4, dtype=complex64), 4, return_complex=True)
    ArgumentError: istft: a complex signal needs onesided=False
turnout.istft(ones(4, 4, dtype=complex64), 4, window=ones(4, dtype=complex64))
    ArgumentError: istft: a complex window needs return_complex=True
turnout.istft(ones(3, 4, dtype=complex64), 4, window=ones(3))
    ShapeError: istft: 'window' must have shape [4], got [3]
turnout.istft(ones(3, 4, dtype=complex64), 4, window=zeros(4))
    ShapeError: istft: some samples are not covered by any window; use a wider window or a smaller hop
turnout.istft(ones(3, 4, dtype=complex64), 4, length=-1)
    ArgumentError: istft: length must be positive, got -1
turnout.istft(ones(3, 4, dtype=complex64), 4, length=0)
    ArgumentError: istft: length must be positive, got 0
""")
