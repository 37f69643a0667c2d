"""Which dtype each operator runs in, per device type. Operators that are not here run in the dtype they are given.

Only functional operators are listed: an in-place or out variant has its result's dtype already. Membership is that of
PyTorch's lists: the short one of its CPU, and the one that all its accelerators share.
"""

from __future__ import annotations

LOWER = "lower precision"  # eligible tensors are cast to the context's dtype
FLOAT32 = "float32"  # eligible tensors are cast to float32
FLOAT32_RESULT = "float32 result"  # the operator's argument `dtype` is float32, unless it is given
PROMOTE = "promote"  # eligible tensors are cast to the widest dtype among them

# fmt: off
CPU = {
    "addmm": LOWER,
    "bmm": LOWER,
    "linear": LOWER,
    "matmul": LOWER,
    "mm": LOWER,

    "cross_entropy_loss": FLOAT32,
    "mse_loss": FLOAT32,
    "nll_loss": FLOAT32,
    "prod": FLOAT32,
    "prod.dim_int": FLOAT32,

    "cat": PROMOTE,
    "stack": PROMOTE,
}

ACCELERATOR = {
    "addmm": LOWER,
    "bmm": LOWER,
    "linear": LOWER,
    "matmul": LOWER,
    "mm": LOWER,
    "mv": LOWER,

    "exp": FLOAT32,
    "expm1": FLOAT32,
    "layer_norm": FLOAT32,
    "log": FLOAT32,
    "log1p": FLOAT32,
    "logsumexp": FLOAT32,
    "mse_loss": FLOAT32,
    "nll_loss": FLOAT32,
    "pow.Scalar": FLOAT32,
    "pow.Tensor_Scalar": FLOAT32,
    "pow.Tensor_Tensor": FLOAT32,
    "reciprocal": FLOAT32,
    "rsqrt": FLOAT32,

    "cumsum": FLOAT32_RESULT,
    "log_softmax.int": FLOAT32_RESULT,
    "prod": FLOAT32_RESULT,
    "prod.dim_int": FLOAT32_RESULT,
    "softmax.int": FLOAT32_RESULT,
    "sum": FLOAT32_RESULT,
    "sum.dim_IntList": FLOAT32_RESULT,

    "addcmul": PROMOTE,
    "atan2": PROMOTE,
    "dot": PROMOTE,
    "index_put": PROMOTE,
    "scatter_add": PROMOTE,
}
# fmt: on

RULES = {"cpu": CPU}
LOWER_DTYPES = {"cpu": "bfloat16"}
DEFAULT_LOWER_DTYPE = "float16"


def rules_of(device_type: str) -> dict[str, str]:
    """Operator without namespace -> policy. A device type that nobody listed is an accelerator."""
    return RULES.get(device_type, ACCELERATOR)


def lower_dtype_of(device_type: str) -> str:
    """The dtype of a context that names none."""
    return LOWER_DTYPES.get(device_type, DEFAULT_LOWER_DTYPE)
