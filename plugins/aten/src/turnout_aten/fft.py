"""`turnout.fft`: discrete Fourier transforms.

The operators of python_module fft, without the prefix `fft_`. A function defined here replaces the operator of that name.
"""

from turnout_aten.functions.lookup import functions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.generated.fft import *  # noqa: F403 - the types of the functions that `functions_of` finds

__getattr__, __dir__ = functions_of(globals(), "turnout.fft")
