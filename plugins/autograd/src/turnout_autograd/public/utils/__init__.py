"""`turnout.utils`: `turnout.utils.checkpoint`, where PyTorch has it."""

from __future__ import annotations

from turnout_autograd.public.utils import checkpoint

__all__ = ["checkpoint"]
__dir__ = __all__.copy
