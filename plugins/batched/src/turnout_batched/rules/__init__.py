"""The table: what batches each operator. Start at `RULES`; `alignment` says what a rule is.

Three kinds of rows: RULES, functions of values and batch dims; DECOMPOSED, functions of the examples' tensors; REFUSED, what vmap
cannot do. Standard operators without a row have the rule of their class (`classes`), or decompose by their own kernel where that
is written in operators; in-place and out variants use what their functional operator has.
"""

from __future__ import annotations

from typing import Any

from turnout_batched.rules import decompositions, images, indexing, linear_algebra, matrix_products, reductions, views
from turnout_batched.rules.pointwise import choice, loss, loss_of_one_shape, masking, pointwise, several, unary, writing

_MADE_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like")
_MADE_NEW = ("new_empty", "new_zeros", "new_ones", "new_full")

_FACTORED = (
    "linalg_cholesky_ex", "lu_unpack", "_linalg_svd", "_linalg_eigh", "linalg_qr", "linalg_lu_factor_ex",
    "linalg_ldl_factor_ex", "linalg_eig", "geqrf", "linalg_matrix_exp", "_linalg_det", "_linalg_slogdet", "linalg_inv_ex",
)  # fmt: skip
_POOLS = (
    "max_pool{}d_with_indices", "avg_pool{}d", "avg_pool{}d_backward", "_adaptive_avg_pool{}d",
    "_adaptive_avg_pool{}d_backward", "adaptive_max_pool{}d",
)  # fmt: skip
_UPSAMPLED = {
    1: ("upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d"),
    2: (
        "upsample_nearest2d", "_upsample_nearest_exact2d", "upsample_bilinear2d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa",
    ),
    3: ("upsample_nearest3d", "_upsample_nearest_exact3d", "upsample_trilinear3d"),
}  # fmt: skip
_IMAGES = {
    **{name.format(n): images.folded(n + 2) for n in (2, 3) for name in _POOLS},
    **{name: images.folded(n + 2, alone=False) for n, names in _UPSAMPLED.items() for name in names},
    **{f"{name}_backward": images.folded(n + 2, alone=False, sizes_at=2) for n, names in _UPSAMPLED.items() for name in names},
}

# fmt: off
RULES: dict[str, Any] = {
    # pointwise, where `classes` does not say it
    "rsub.Tensor": pointwise,
    "floor_divide": pointwise,
    "floor_divide.Scalar": unary,
    "fill.Scalar": unary,
    "where.self": choice,
    "where.ScalarSelf": choice,
    "where.ScalarOther": choice,
    "where.Scalar": unary,
    "masked_fill.Scalar": masking,
    "log_sigmoid_forward": several,
    "binary_cross_entropy": loss_of_one_shape,
    "binary_cross_entropy_with_logits": loss,
    # reductions
    "sum": reductions.sum_all,
    "mean": reductions.mean_all,
    "prod": reductions.prod_all,
    "max": reductions.max_all,
    "median": reductions.median_all,
    "nanmedian": reductions.nanmedian_all,
    "min": reductions.min_all,
    "any": reductions.any_all,
    "all": reductions.all_all,
    "_assert_async": reductions.asserted,
    "_assert_async.msg": reductions.asserted,
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "glu"), reductions.along_dim),
    "_softmax": reductions.along_dim,
    "_log_softmax": reductions.along_dim,
    "_softmax_backward_data": reductions.softmax_backward,
    "_log_softmax_backward_data": reductions.softmax_backward,
    "topk": reductions.topk,
    "sort.stable": reductions.sort,
    "flip": reductions.flip,
    "tril": reductions.triangle,
    "triu": reductions.triangle,
    # matrix products
    "matmul": matrix_products.matmul,
    "mm": matrix_products.mm,
    "bmm": matrix_products.bmm,
    "mv": matrix_products.mv,
    "dot": matrix_products.dot,
    "addmm": matrix_products.addmm,
    "addmv": matrix_products.addmv,
    "baddbmm": matrix_products.baddbmm,
    # linear algebra
    **dict.fromkeys(_FACTORED, linear_algebra.stacked),
    "linalg_solve_triangular": linear_algebra.solved("linalg_solve_triangular.out", 2, 2),
    "linalg_ldl_solve": linear_algebra.solved("linalg_ldl_solve.out", 2, 1, 2),
    "linalg_cross": linear_algebra.cross,
    "linalg_pinv.atol_rtol_tensor": linear_algebra.pseudo_inverse,
    "linalg_lstsq": linear_algebra.least_squares,
    **dict.fromkeys(("_fft_r2c", "_fft_c2r", "_fft_c2c"), linear_algebra.fourier),
    # views and copies
    "view": views.resized,
    "view.dtype": views.of_dtype,
    "view_as_real": views.with_last_dim,
    "view_as_complex": views.trailing,
    "view_as_real_copy": views.trailing,
    "view_as_complex_copy": views.trailing,
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
    "select_backward": views.scattered(1),
    "slice_backward": views.scattered(0),
    "unfold_backward": views.unfold_backward,
    "diagonal_backward": views.diagonal_backward,
    "select_scatter": views.select_scatter,
    "slice_scatter": views.slice_scatter,
    "diagonal_scatter": views.diagonal_scatter,
    "as_strided_scatter": views.as_strided_scatter,
    "unsafe_split.Tensor": views.parts,
    "unsafe_split_with_sizes": views.parts,
    # indices
    "gather": indexing.gather,
    "scatter.src": indexing.beside,
    "scatter.value": indexing.beside,
    "scatter_add": indexing.beside,
    "scatter_reduce.two": indexing.beside,
    "searchsorted.Tensor": indexing.searchsorted,
    "searchsorted.Scalar": indexing.searchsorted,
    "nonzero_static": views.one_by_one,
    "index_select": indexing.index_select,
    "index_add": indexing.index_add,
    "index.Tensor": indexing.index,
    "index_put": indexing.index_put,
    # images
    "convolution": images.convolution,
    "fractional_max_pool2d": images.fractional(2),
    "fractional_max_pool3d": images.fractional(3),
    "native_layer_norm": images.layer_norm,
    "native_group_norm": images.group_norm,
    "constant_pad_nd": views.padding,
    "ctc_loss.Tensor": images.ctc_loss,
    "im2col": images.folded(4),
    "col2im": images.folded(3),
    **_IMAGES,
    # in place: what is not pointwise writes the functional result into self
    "copy_": writing,
    "fill_.Scalar": writing,
    "zero_": writing,
    "masked_fill_.Scalar": writing,
}

DECOMPOSED: dict[str, Any] = {
    "fill.Tensor": decompositions.fill,
    "vdot": decompositions.vdot,
    "mse_loss": decompositions.mse_loss,
    "mse_loss_backward": decompositions.mse_loss_backward,
    "nll_loss_forward": decompositions.nll_loss_forward,
    "nll_loss_backward": decompositions.nll_loss_backward,
}

# operator -> why it cannot be done for each example
REFUSED: dict[str, str] = {
    "_local_scalar_dense": "one number is asked for",
    "as_strided_": "an example has no memory of its own",
}
# fmt: on
