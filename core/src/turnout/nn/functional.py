"""`turnout.nn.functional`: functions for neural networks under PyTorch's names.

Operators stand here as they are; what PyTorch writes in Python around them is in the modules beside this one, one per concern.
"""

from __future__ import annotations

from turnout.generated.functions import (
    adaptive_avg_pool1d,
    avg_pool1d,
    bilinear,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    cosine_similarity,
    log_softmax,
    pairwise_distance,
    pdist,
    pixel_shuffle,
    pixel_unshuffle,
    sigmoid,
    softmax,
    tanh,
)
from turnout.generated.nn_functional import avg_pool2d, avg_pool3d, gelu, linear, one_hot, scaled_dot_product_attention
from turnout.nn import activations as _activations
from turnout.nn import images as _images
from turnout.nn import layers as _layers
from turnout.nn import losses as _losses
from turnout.nn import normalisation as _normalisation
from turnout.nn import pooling as _pooling
from turnout.nn.activations import *  # noqa: F403 - a module of public functions with its own __all__
from turnout.nn.images import *  # noqa: F403 - a module of public functions with its own __all__
from turnout.nn.layers import *  # noqa: F403 - a module of public functions with its own __all__
from turnout.nn.losses import *  # noqa: F403 - a module of public functions with its own __all__
from turnout.nn.normalisation import *  # noqa: F403 - a module of public functions with its own __all__
from turnout.nn.pooling import *  # noqa: F403 - a module of public functions with its own __all__

__all__ = [
    *_activations.__all__,
    *_images.__all__,
    *_layers.__all__,
    *_losses.__all__,
    *_normalisation.__all__,
    *_pooling.__all__,
    "adaptive_avg_pool1d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "bilinear",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "gelu",
    "linear",
    "log_softmax",
    "one_hot",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "scaled_dot_product_attention",
    "sigmoid",
    "softmax",
    "tanh",
]
