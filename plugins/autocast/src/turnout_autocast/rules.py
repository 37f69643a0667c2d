"""Which dtype each operator runs in, per device type. Operators that are not here run in the dtype they are given.

Only functional operators are listed: an in-place or out variant has its result's dtype already. Membership is that of
PyTorch's lists: the one of its CPU, and the one that its accelerators share. An operator that does not exist yet is on its list
already: a list says nothing until the operator is called.
"""

from __future__ import annotations

LOWER = "lower precision"  # eligible tensors are cast to the context's dtype
FLOAT32 = "float32"  # eligible tensors are cast to float32
FLOAT32_RESULT = "float32 result"  # the operator's argument `dtype` is float32, unless it is given
FLOAT32_OVERLOAD = "float32 overload"  # the overload of OVERLOADS that takes a dtype runs, with float32
PROMOTE = "promote"  # eligible tensors are cast to the widest dtype among them
AS_GIVEN = "the dtypes given"  # nothing is cast, nor in the operators that it is composed of
COMPOSED = "composed"  # the operators that it is composed of run, each by its own rule; a kernel of its own does not
REFUSED = "refused"  # an error: it overflows in the lower precision, which the operator before it gives it


def _listed(policies: dict[str, str]) -> dict[str, str]:
    return {operator: policy for policy, operators in policies.items() for operator in operators.split()}


# fmt: off
CPU = _listed({
    LOWER: """
        _addmm_activation _convolution.deprecated _native_multi_head_attention addbmm addmm baddbmm bmm conv1d
        conv1d.padding conv2d conv2d.padding conv3d conv3d.padding conv_tbc conv_transpose1d conv_transpose2d.input
        conv_transpose3d.input linalg_vecdot linear matmul mkldnn_rnn_layer mm prelu
        scaled_dot_product_attention
    """,
    FLOAT32: """
        _grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy
        binary_cross_entropy_with_logits cdist cholesky cholesky_inverse cholesky_solve cosine_embedding_loss
        cross_entropy_loss ctc_loss.IntList ctc_loss.Tensor fake_quantize_per_tensor_affine fft_fft fft_fft2 fft_fftn
        fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn
        fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler grid_sampler_2d grid_sampler_3d hinge_embedding_loss
        huber_loss inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cond.p_str linalg_eig
        linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq
        linalg_matrix_rank linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor
        linalg_matrix_rank.tol_tensor linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve
        lu_solve margin_ranking_loss max_pool3d max_unpool2d max_unpool3d mse_loss multi_margin_loss multilabel_margin_loss
        multilabel_margin_loss_forward nanquantile nanquantile.scalar nll_loss nll_loss2d orgqr ormqr pinverse
        poisson_nll_loss polar prod prod.dim_int qr quantile quantile.scalar reflection_pad1d reflection_pad2d
        replication_pad1d replication_pad2d replication_pad3d smooth_l1_loss soft_margin_loss stft stft.center svd trace
        triangular_solve triplet_margin_loss view_as_complex
    """,
    PROMOTE: """
        cat index_copy stack
    """,
})

ACCELERATOR = _listed({
    LOWER: """
        _convolution _convolution.deprecated _scaled_dot_product_flash_attention _thnn_fused_gru_cell _thnn_fused_lstm_cell
        addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d
        conv_transpose2d.input conv_transpose3d.input convolution cudnn_convolution cudnn_convolution_transpose einsum
        gru_cell linalg_multi_dot linalg_vecdot linear lstm_cell matmul mm mv prelu rnn_relu_cell rnn_tanh_cell
        scaled_dot_product_attention
    """,
    FLOAT32: """
        _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
        _upsample_nearest_exact3d acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss
        cosine_similarity dist erfinv exp expm1 frobenius_norm.dim group_norm hinge_embedding_loss huber_loss kl_div l1_loss
        layer_norm log log10 log1p log2 logsumexp margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
        native_layer_norm nll_loss nll_loss2d nuclear_norm nuclear_norm.dim pdist poisson_nll_loss pow.Scalar
        pow.Tensor_Scalar pow.Tensor_Tensor reciprocal renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softplus
        tan triplet_margin_loss upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d
        upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    """,
    FLOAT32_RESULT: """
        cumprod cumsum linalg_matrix_norm linalg_matrix_norm.str_ord linalg_vector_norm log_softmax.int prod prod.dim_int
        softmax.int sum sum.dim_IntList
    """,
    FLOAT32_OVERLOAD: """
        norm.Scalar norm.ScalarOpt_dim
    """,
    PROMOTE: """
        addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot vdot
    """,
    REFUSED: """
        binary_cross_entropy
    """,
})
# fmt: on

# Operators on no list of PyTorch. Those that compute as given have a kernel there, and are composed of listed operators here. The
# others are composed of a listed operator there, and may have a kernel here; those that compose run without that kernel.
APART = {
    "convolution_backward": AS_GIVEN,
    "_scaled_dot_product_flash_attention_for_cpu": AS_GIVEN,
    "_scaled_dot_product_flash_attention_for_cpu_backward": AS_GIVEN,
    "linalg_matmul": LOWER,
    "lstm.input": COMPOSED,
    "gru.input": COMPOSED,
}

OVERLOADS = {"norm.Scalar": "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype"}
RULES = {"cpu": CPU}
LOWER_DTYPES = {"cpu": "bfloat16"}
DEFAULT_LOWER_DTYPE = "float16"


def policy_of(device_type: str, operator: str) -> str | None:
    """The policy of an operator, named without its namespace, or None. A device type that nobody listed is an accelerator."""
    return RULES.get(device_type, ACCELERATOR).get(operator) or APART.get(operator)


def lower_dtype_of(device_type: str) -> str:
    """The dtype of a context that names none."""
    return LOWER_DTYPES.get(device_type, DEFAULT_LOWER_DTYPE)
