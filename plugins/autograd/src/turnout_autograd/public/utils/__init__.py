"""`turnout.utils`: `turnout.utils.checkpoint`, where PyTorch has it."""

from turnout_autograd.public.utils import checkpoint

__all__ = ["checkpoint"]
__dir__ = __all__.copy
