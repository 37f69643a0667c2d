"""Window functions and frequencies, against SciPy; frames of signals; approximations of low rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import refused
from turnout.errors import ArgumentError, CallError, ShapeError

windows = turnout.signal.windows
INT = turnout.int64
PLAIN = ("bartlett", "blackman", "cosine", "hamming", "hann", "nuttall")
SHAPED: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in PLAIN),
    ("exponential", {"tau": 2.0}),
    ("gaussian", {"std": 1.5}),
    ("kaiser", {"beta": 5.0}),
    ("general_hamming", {"alpha": 0.7}),
    ("general_cosine", {"a": [0.5, 0.3, 0.2]}),
]


@pytest.mark.parametrize("sym", [True, False], ids=["symmetric", "periodic"])
@pytest.mark.parametrize(("name", "shape"), SHAPED, ids=[name for name, _ in SHAPED])
def test_windows_are_scipys(name: str, shape: dict[str, Any], sym: bool) -> None:
    import scipy.signal.windows as reference  # here, for it takes 45 MiB: every worker collects this module, one runs it

    for M in (0, 1, 2, 7, 8):
        found = getattr(windows, name)(M, sym=sym, dtype=turnout.float64, **shape)
        given = {"tau": 2.0, "center": None} if name == "exponential" else shape
        expected = getattr(reference, name)(M, sym=sym, **given)
        assert np.allclose(found.numpy(), expected, atol=1e-12), M


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_window_factories_are_the_same_windows(name: str, periodic: bool) -> None:
    found = getattr(turnout, f"{name}_window")(9, periodic)
    expected = getattr(windows, name)(9, sym=not periodic)
    assert found.dtype is turnout.float32
    assert turnout.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: windows.hann(4, dtype=INT), ArgumentError, "hann: dtype must be float32 or float64, got int64"),
        (lambda: windows.gaussian(4, std=0), ArgumentError, "gaussian: std must be positive, got 0"),
        (lambda: windows.exponential(4, center=1.0), ArgumentError, "exponential: center must be None for symmetric windows"),
        (lambda: windows.general_cosine(4, a=1), CallError, "general_cosine: a must be a list or tuple of numbers, got int"),
        (lambda: windows.cosine(4, colour=1), CallError, "cosine: got an unexpected keyword argument 'colour'"),
    ],
)  # fmt: skip
def test_windows_say_what_they_do_not_take(call: Any, error: type[Exception], text: str) -> None:
    assert refused(error, call) == text


@pytest.mark.parametrize("n", [1, 4, 7])
def test_frequencies_are_numpys(n: int) -> None:
    assert np.allclose(turnout.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5))
    assert np.allclose(turnout.fft.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 5, 5)])
def test_an_approximation_of_the_matrix_rank_is_the_matrix(shape: tuple[int, ...]) -> None:
    turnout.manual_seed(0)
    *batch, m, n = shape
    x = turnout.randn(*batch, m, 2) @ turnout.randn(*batch, 2, n)
    U, S, V = turnout.svd_lowrank(x, q=3)
    assert turnout.allclose((U * S.unsqueeze(-2)) @ V.transpose(-2, -1), x, atol=1e-5)
    centred = x - x.mean((-2,), True)
    U, S, V = turnout.pca_lowrank(x, q=3)
    assert turnout.allclose((U * S.unsqueeze(-2)) @ V.transpose(-2, -1), centred, atol=1e-5)


def test_einsum_takes_labels_as_numbers() -> None:
    x, y = turnout.randn(2, 3), turnout.randn(3, 4)
    assert turnout.equal(turnout.einsum(x, [0, 1], y, [1, 2], [2, 0]), turnout.einsum("ij,jk->ki", x, y))


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        ("ij,jk", "einsum: 'ij,jk' is for 2 operands, got 1"),
        ("i", "einsum: 'i' of 'i' does not fit an operand of 2 dimensions"),
        ("ii", "einsum: 'i' of 'ii' has two lengths in one operand, 2 and 3"),
        ("i$", "einsum: '$' in 'i$' is not a label; use letters, and one '...' per operand"),
    ],
)
def test_einsum_says_what_does_not_fit(equation: str, text: str) -> None:
    assert refused(ShapeError, lambda: turnout.einsum(equation, turnout.ones(2, 3))) == text


def test_frames_are_centred_by_the_method_as_by_the_function() -> None:
    signal = turnout.arange(16.0)
    framed = signal.stft(4, return_complex=True)
    assert framed.tolist() == turnout.stft(signal, 4, return_complex=True).tolist()
    assert framed.shape == (3, 17)
    assert signal.stft(4, center=False, return_complex=True).shape == (3, 13)
