"""Results that the operator leaves open, by position: they are compared by dtype and shape.

Signs of singular vectors; the factors that a determinant comes from, which may be of the transposed matrix; what is in the
factor of a matrix that has none.
"""

OPEN: dict[str, tuple[int, ...]] = {
    "linalg_svd": (0, 2),
    "_linalg_det": (1,),
    "_linalg_slogdet": (2,),
    "linalg_cholesky_ex": (0,),
}
