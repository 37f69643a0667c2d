"""The table: what batches each operator. Start at `RULES`; `alignment` says what a rule is.

Three kinds of rows: RULES, functions of values and batch dims; DECOMPOSED, functions of the examples' tensors, named or, for
`KERNEL`, the operator's own kernel that is written in operators; REFUSED, what vmap cannot do. Operators with a
CompositeImplicitAutograd kernel and no row decompose by it; the other in-place and out variants use the rows of the functional
operator.
"""

from __future__ import annotations

from typing import Any

from turnout_batched.rules import decompositions, indexing, products, reductions, views
from turnout_batched.rules.pointwise import choice, masking, pointwise, unary, writing

KERNEL = object()

_UNARY = (
    "abs", "neg", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "reciprocal", "floor", "ceil",
    "round", "trunc", "sign", "relu", "erf", "gelu", "logical_not", "bitwise_not", "isnan", "add.Scalar", "sub.Scalar",
    "mul.Scalar", "div.Scalar", "div.Scalar_mode", "rsub.Scalar", "floor_divide.Scalar", "remainder.Scalar", "pow.Tensor_Scalar",
    "eq.Scalar", "ne.Scalar", "lt.Scalar", "le.Scalar", "gt.Scalar", "ge.Scalar", "bitwise_and.Scalar", "bitwise_or.Scalar",
    "bitwise_xor.Scalar", "clamp", "fill.Scalar",
)  # fmt: skip
_POINTWISE = (
    "add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "div.Tensor_mode", "rsub.Tensor", "floor_divide", "remainder.Tensor",
    "remainder.Scalar_Tensor", "pow.Tensor_Tensor", "pow.Scalar", "maximum", "minimum", "atan2", "eq.Tensor", "ne.Tensor",
    "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor", "logical_and", "logical_or", "logical_xor", "bitwise_and.Tensor",
    "bitwise_and.Scalar_Tensor", "bitwise_or.Tensor", "bitwise_or.Scalar_Tensor", "bitwise_xor.Tensor",
    "bitwise_xor.Scalar_Tensor", "clamp.Tensor", "lerp.Scalar", "addcmul", "threshold_backward", "sigmoid_backward",
    "tanh_backward", "gelu_backward",
)  # fmt: skip
_MADE_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like")
_MADE_NEW = ("new_empty", "new_zeros", "new_ones", "new_full")

# fmt: off
RULES: dict[str, Any] = {
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(_POINTWISE, pointwise),
    "where.self": choice,
    "where.ScalarSelf": choice,
    "where.ScalarOther": choice,
    "where.Scalar": unary,
    "masked_fill.Scalar": masking,
    # reductions
    "sum": reductions.sum_all,
    "sum.dim_IntList": reductions.sum_dims,
    "mean": reductions.mean_all,
    "mean.dim": reductions.mean_dims,
    "prod": reductions.prod_all,
    "prod.dim_int": reductions.prod_dim,
    "amax": reductions.over_dims,
    "amin": reductions.over_dims,
    "max": reductions.max_all,
    "min": reductions.min_all,
    "max.dim": reductions.over_one_dim,
    "min.dim": reductions.over_one_dim,
    "argmax": reductions.position,
    "argmin": reductions.position,
    "any": reductions.any_all,
    "all": reductions.all_all,
    "any.dim": reductions.over_one_dim,
    "all.dim": reductions.over_one_dim,
    "any.dims": reductions.over_dims,
    "all.dims": reductions.over_dims,
    "var.correction": reductions.spread,
    "std.correction": reductions.spread,
    "logsumexp": reductions.over_dims,
    "cumsum": reductions.running,
    "cumprod": reductions.running,
    "logcumsumexp": reductions.along_dim,
    "cummax": reductions.running_extreme,
    "cummin": reductions.running_extreme,
    "aminmax": reductions.aminmax,
    "linalg_vector_norm": reductions.vector_norm,
    "median.dim": reductions.over_one_dim,
    "nanmedian.dim": reductions.over_one_dim,
    "mode": reductions.over_one_dim,
    "kthvalue": reductions.kthvalue,
    "searchsorted.Tensor": reductions.searchsorted,
    "searchsorted.Scalar": reductions.searchsorted,
    "nonzero_static": reductions.nonzero_static,
    "_softmax": reductions.along_dim,
    "_log_softmax": reductions.along_dim,
    "_softmax_backward_data": reductions.softmax_backward,
    "_log_softmax_backward_data": reductions.softmax_backward,
    "topk": reductions.topk,
    "sort.stable": reductions.sort,
    "flip": reductions.flip,
    "tril": reductions.triangle,
    "triu": reductions.triangle,
    # products
    "mm": products.mm,
    "bmm": products.bmm,
    "mv": products.mv,
    "dot": products.dot,
    "addmm": products.addmm,
    # views and copies
    "view": views.resized,
    "reshape": views.resized,
    "_unsafe_view": views.resized,
    "transpose.int": views.transpose,
    "t": views.t,
    "permute": views.permute,
    "expand": views.expand,
    "squeeze": views.squeeze,
    "squeeze.dim": views.squeeze_dim,
    "squeeze.dims": views.squeeze_dims,
    "unsqueeze": views.unsqueeze,
    "select.int": views.select,
    "slice.Tensor": views.slice_,
    "diagonal": views.diagonal,
    "unfold": views.unfold,
    "alias": views.the_same,
    "detach": views.the_same,
    "as_strided": views.as_strided,
    "split.Tensor": views.parts,
    "split_with_sizes": views.parts,
    "unbind.int": views.unbind,
    "repeat": views.repeat,
    "clone": views.clone,
    "contiguous": views.contiguous,
    "cat": views.cat,
    "_to_copy": views.to_copy,
    **dict.fromkeys(_MADE_LIKE, views.like),
    **dict.fromkeys(_MADE_NEW, views.new),
    "new_empty_strided": views.new_empty_strided,
    "select_backward": views.scattered,
    "slice_backward": views.scattered,
    "unfold_backward": views.scattered,
    "diagonal_backward": views.diagonal_backward,
    # indices
    "gather": indexing.gather,
    "scatter.src": indexing.beside,
    "scatter.value": indexing.beside,
    "scatter_add": indexing.beside,
    "index_select": indexing.index_select,
    "index_add": indexing.index_add,
    "index.Tensor": indexing.index,
    "index_put": indexing.index_put,
    # in place: what is not pointwise writes the functional result into self
    "copy_": writing,
    "fill_.Scalar": writing,
    "zero_": writing,
    "masked_fill_.Scalar": writing,
}

DECOMPOSED: dict[str, Any] = {
    "fill.Tensor": decompositions.fill,
    "segment_reduce": decompositions.segment_reduce,
    "mse_loss": decompositions.mse_loss,
    "mse_loss_backward": decompositions.mse_loss_backward,
    "nll_loss_forward": decompositions.nll_loss_forward,
    "nll_loss_backward": decompositions.nll_loss_backward,
    **dict.fromkeys((
        "median", "nanmedian", "fill_.Tensor", "masked_fill.Tensor", "masked_fill_.Tensor", "native_dropout", "native_dropout_backward", "rand_like",
        "randn_like", "uniform_", "normal_", "random_.from", "bernoulli", "bernoulli.p", "bernoulli_.float", "zero", "uniform",
        "random.from", "_to_copy.out", "arange.start_out", "linspace.out", "zeros.out", "ones.out", "full.out", "eye.out",
        "eye.m_out", "scalar_tensor.out", "rand.out", "rand.generator_out", "randn.out", "randn.generator_out", "randint.out",
    ), KERNEL),
}

# operator -> why it cannot be done for each example
REFUSED: dict[str, str] = {
    **dict.fromkeys(("nonzero", "bincount", "_unique2", "unique_dim", "unique_consecutive"), "the shape of its result depends on values"),
    "_local_scalar_dense": "one number is asked for",
    "resize_": "the memory of all examples would change its size",
}
# fmt: on
