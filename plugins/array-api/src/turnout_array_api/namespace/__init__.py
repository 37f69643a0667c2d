"""`turnout.array_api`: a namespace that follows the Python array API standard, version 2025.12.

`x.__array_namespace__()` is this module, for code that takes arrays of any library. Its functions are written with
Turnout's own, so devices, gradients and transforms work through them. `linalg` and `fft` are the standard's extensions.

A tensor is the standard's array object, except where PyTorch differs:
# differs from the standard: `x.size` is a method, as in PyTorch; `turnout.array_api` never uses it.
# differs from the standard: operators (x + y) promote as in PyTorch; functions (add(x, y)) as in the standard.
Source: https://data-apis.org/array-api/2025.12/
"""
# ruff: noqa: I001 - the names of each module are laid out in rows

from __future__ import annotations

import math

from turnout_array_api.namespace import fft as fft
from turnout_array_api.namespace import linalg as linalg
from turnout_array_api.namespace.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)  # fmt: skip
from turnout_array_api.namespace.data_types import astype, can_cast, finfo, iinfo, isdtype, result_type
from turnout_array_api.namespace.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
)  # fmt: skip
from turnout_array_api.namespace.inspection import __array_namespace_info__
from turnout_array_api.namespace.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from turnout_array_api.namespace.manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)  # fmt: skip
from turnout_array_api.namespace.searching import (
    argmax,
    argmin,
    argsort,
    count_nonzero,
    isin,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)  # fmt: skip
from turnout_array_api.namespace.statistical import (
    all,
    any,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)  # fmt: skip
from turnout.dtypes import bool_ as bool
from turnout.dtypes import (
    complex64, complex128, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
)  # fmt: skip

__array_api_version__ = "2025.12"

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "abs", "acos", "acosh", "add", "all", "any", "arange", "argmax",
    "argmin", "argsort", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "can_cast", "ceil", "clip", "complex128", "complex64", "concat", "conj", "copysign", "cos", "cosh",
    "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "divide", "e", "empty", "empty_like", "equal", "exp",
    "expand_dims", "expm1", "eye", "fft", "finfo", "flip", "float32", "float64", "floor", "floor_divide", "from_dlpack", "full",
    "full_like", "greater", "greater_equal", "hypot", "iinfo", "imag", "inf", "int16", "int32", "int64", "int8", "isdtype",
    "isfinite", "isin", "isinf", "isnan", "less", "less_equal", "linalg", "linspace", "log", "log10", "log1p", "log2",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum",
    "mean", "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis", "nextafter", "nonzero",
    "not_equal", "ones", "ones_like", "permute_dims", "pi", "positive", "pow", "prod", "real", "reciprocal", "remainder",
    "repeat", "reshape", "result_type", "roll", "round", "searchsorted", "sign", "signbit", "sin", "sinh", "sort", "sqrt",
    "square", "squeeze", "stack", "std", "subtract", "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile",
    "tril", "triu", "trunc", "uint16", "uint32", "uint64", "uint8", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unstack", "var", "vecdot", "where", "zeros", "zeros_like",
]  # fmt: skip
__dir__ = __all__.copy
