"""What decompositions and solvers of matrices say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_a_decomposition_is_refused = refused("""
turnout.linalg.qr(ones(2, 2, dtype=int64))
    DTypeError: linalg.qr: expected a floating-point or complex tensor, got int64
turnout.linalg.inv(ones(2, 2, dtype=float16))
    DTypeError: linalg.inv: not implemented for float16; convert to float32
turnout.linalg.inv(ones(2, 3))
    ShapeError: linalg.inv: 'A' must be batches of square matrices, got shape [2, 3]
turnout.lu_unpack(ones(2, 2), ones(2, dtype=int64))
    DTypeError: lu_unpack: 'LU_pivots' must be int32, got int64
turnout.lu_unpack(ones(2, 2), ones(3, dtype=int32))
    ShapeError: lu_unpack: 'LU_pivots' must have shape [2] for 'LU_data' of shape [2, 2], got [3]
turnout.linalg.ldl_solve(ones(2, 2), ones(2), ones(2, 1))
    DTypeError: linalg.ldl_solve: 'pivots' must be integers, got float32
turnout.linalg.ldl_solve(ones(2, 2), ones(3, dtype=int32), ones(2, 1))
    ShapeError: linalg.ldl_solve: 'pivots' must have shape [2], got [3]
turnout.linalg.ldl_solve(ones(2, 2), ones(2, dtype=int32), ones(3, 1))
    ShapeError: linalg.ldl_solve: 'LD' of shape [2, 2] and 'B' of shape [3, 1] do not match
turnout.linalg.svd(ones(2, 2), driver="gesvd")
    CallError: linalg.svd: 'driver' is only for CUDA tensors; omit it
turnout.linalg.eigh(ones(2, 2), UPLO="X")
    ArgumentError: linalg.eigh: UPLO must be 'L' or 'U', got 'X'
turnout.linalg.qr(ones(2, 2), mode="full")
    ArgumentError: linalg.qr: mode must be 'reduced', 'complete' or 'r', got 'full'
turnout.linalg.solve_triangular(ones(2, 2), ones(3, 1), upper=True)
    ShapeError: linalg.solve_triangular: shapes [2, 2] and [3, 1] do not match in A X = B
turnout.linalg.solve_triangular(ones(2, 2), ones(1, 3), upper=True, left=False)
    ShapeError: linalg.solve_triangular: shapes [2, 2] and [1, 3] do not match in X A = B
turnout.linalg.lu_factor(ones(2, 2), pivot=False)
    LinAlgError: linalg.lu_factor: LU without pivoting is not implemented on cpu; use pivot=True
turnout.linalg.qr(ones(3, 2, requires_grad=True), mode="complete")[1].sum().backward()
    GradientError: linalg.qr: mode 'complete' of a matrix with more rows than columns has no gradient; use 'reduced'
turnout.lu(turnout.eye(2), out=(turnout.eye(2),))
    ArgumentError: lu: out must hold 2 tensors, got 1
turnout.svd_lowrank(ones(3))
    ShapeError: svd_lowrank: expected matrices, got shape [3]
turnout.svd_lowrank(ones(3, 2), q=-1)
    ArgumentError: svd_lowrank: q must not be negative, got -1
turnout.pca_lowrank(ones(3, 2), q=3)
    ArgumentError: pca_lowrank: q must lie between 0 and 2, got 3
turnout.pca_lowrank(ones(3, 2), niter=-1)
    ArgumentError: pca_lowrank: niter must not be negative, got -1
turnout.pca_lowrank(ones(3))
    ShapeError: pca_lowrank: expected matrices, got shape [3]
turnout.linalg.qr(ones(2))
    ShapeError: linalg.qr: 'A' must have at least 2 dimensions, got shape [2]
turnout.linalg.lu_factor(zeros(2, 2))
    LinAlgError: linalg.lu_factor: the matrix is singular: diagonal element 1 of U is zero in the factor
turnout.linalg.ldl_factor(zeros(2, 2))
    LinAlgError: linalg.ldl_factor: the matrix is singular: diagonal element 1 of D is zero in the factor
turnout.linalg.eig(tensor([[nan]]))
    LinAlgError: linalg.eig: the input has infinite or NaN elements
""")
