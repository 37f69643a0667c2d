"""Tools for modules and their parameters: `turnout.nn.utils`.

`rnn` has sequences of different lengths, `parametrize` and `parametrizations` compute parameters from others.
"""

from turnout_nn.utils import parametrizations, parametrize, rnn
from turnout_nn.utils.construction import skip_init
from turnout_nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from turnout_nn.utils.gradients import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from turnout_nn.utils.normalisation import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from turnout_nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
__dir__ = __all__.copy
