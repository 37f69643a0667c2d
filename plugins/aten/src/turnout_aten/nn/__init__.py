"""Functions for neural networks under PyTorch's names: `turnout.nn.functional`."""

from __future__ import annotations

from turnout.errors.layout import near
from turnout_aten.nn import functional

__all__ = ["functional"]
__dir__ = __all__.copy

TYPE_CHECKING = False
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what there is instead of the modules that PyTorch has here."""
        text = f"module 'turnout.nn' has no attribute {name!r}"
        if name[:1].isupper() or name in ("init", "utils", "parameter", "modules"):
            text += "; it has functions in turnout.nn.functional and no modules: docs/train.md shows layers made of tensors"
        raise AttributeError(text + near(name, __all__))
