"""Functions for neural networks under PyTorch's names: `turnout.nn.functional`."""

from turnout_aten.nn import functional as functional

__all__ = ["functional"]
__dir__ = __all__.copy
