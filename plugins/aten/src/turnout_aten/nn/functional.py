"""`turnout.nn.functional`: functions for neural networks under PyTorch's names.

Operators are used as they are. The functions that PyTorch writes in Python are in the other modules of this package, one per
concern.
"""

# ruff: noqa: F403, F405 - modules of public functions with an `__all__` of their own, and the types of what `__getattr__` finds
from __future__ import annotations

from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated
from turnout_aten.nn import activations as _activations
from turnout_aten.nn import images as _images
from turnout_aten.nn import layers as _layers
from turnout_aten.nn import losses as _losses
from turnout_aten.nn import normalisation as _normalisation
from turnout_aten.nn import pooling as _pooling
from turnout_aten.nn.activations import *
from turnout_aten.nn.images import *
from turnout_aten.nn.layers import *
from turnout_aten.nn.losses import *
from turnout_aten.nn.normalisation import *
from turnout_aten.nn.pooling import *

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout_aten.generated.functions import *
    from turnout_aten.generated.nn_functional import *

__all__ = [
    "adaptive_avg_pool1d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "bilinear",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "elu_",
    "gelu",
    "hardtanh_",
    "leaky_relu_",
    "linear",
    "log_softmax",
    "one_hot",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "relu_",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu_",
    "sigmoid",
    "softmax",
    "tanh",
    "threshold_",
]
__all__ += _activations.__all__
__all__ += _images.__all__
__all__ += _layers.__all__
__all__ += _losses.__all__
__all__ += _normalisation.__all__
__all__ += _pooling.__all__


def __getattr__(name: str) -> Any:
    """An operator's function, made when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_generated, name, None) or getattr(_functions, name)
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return list(__all__)
