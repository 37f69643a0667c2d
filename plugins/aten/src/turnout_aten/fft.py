"""`turnout.fft`: discrete Fourier transforms.

The operators of python_module fft, without the `fft_` of their names. A function defined here stands in for the operator
of that name.
"""

from __future__ import annotations

from turnout_aten.functions.lookup import functions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.generated.fft import *  # noqa: F403 - what `functions_of` finds, with its types

__getattr__, __dir__ = functions_of(globals(), "turnout.fft")
