"""`turnout.fft`: discrete Fourier transforms.

The operators of python_module fft, without the `fft_` of their names, and functions beside them written in Python.
A function defined here stands in for the operator of that name. Add its name to `__all__`.
"""

from __future__ import annotations

from turnout_aten.generated import fft as _generated
from turnout_aten.generated.fft import *  # noqa: F403 - a module of public functions with its own __all__

__all__ = [*_generated.__all__]
