"""What products, norms, decompositions and solvers of matrices say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_matrix_products_refuse = refused("""
turnout.matmul(ones(2, 2, 3), ones(2))
    ShapeError: matmul: shapes [2, 2, 3] and [2] do not match: 3 against 2
turnout.matmul(ones(2, 2, 3), ones(2, 3))
    ShapeError: matmul: shapes [2, 2, 3] and [2, 3] do not match: 3 against 2
turnout.matmul(ones(2, 2, 3), ones(2, 2, 3))
    ShapeError: matmul: shapes [2, 2, 3] and [2, 2, 3] do not match: 3 against 2
turnout.matmul(ones(3), ones(2, 2, 3))
    ShapeError: matmul: shapes [3] and [2, 2, 3] do not match: 3 against 2
turnout.matmul(tensor(1.0), ones(2))
    ShapeError: matmul: both operands need at least one dimension, got shapes [] and [2]
turnout.outer(ones(2, 2), ones(2))
    ShapeError: outer: both operands must have one dimension, got shapes [2, 2] and [2]
turnout.ger(ones(2, 2), ones(2))
    ShapeError: outer: both operands must have one dimension, got shapes [2, 2] and [2]
turnout.addbmm(ones(2, 2), ones(2, 2), ones(2, 2, 2))
    ShapeError: addbmm: batch1 and batch2 must have 3 dimensions, got shapes [2, 2] and [2, 2, 2]
turnout.addbmm(ones(2, 2), ones(2, 2, 2), ones(3, 2, 2))
    ShapeError: addbmm: shapes [2, 2, 2] and [3, 2, 2] do not match: 2 against 3
turnout.addbmm(ones(2, 2), ones(2, 2, 2), ones(2, 3, 2))
    ShapeError: addbmm: shapes [2, 2, 2] and [2, 3, 2] do not match: 2 against 3
turnout.addr(ones(2, 2), ones(2, 2), ones(2))
    ShapeError: addr: vec1 and vec2 must have one dimension, got shapes [2, 2] and [2]
turnout.addr(ones(3), ones(2), ones(2))
    ShapeError: addr: 'self' of shape [3] does not expand to the product's [2, 2]
turnout.chain_matmul(ones(2, 2), ones(2))
    ShapeError: chain_matmul: matrices[1] must have 2 dimensions, got shape [2]
aten.chain_matmul([])
    ShapeError: chain_matmul: needs at least one matrix
turnout.chain_matmul()
    ShapeError: chain_matmul: needs at least one matrix
turnout.linalg.multi_dot([ones(2, 2)])
    ShapeError: linalg.multi_dot: needs at least 2 tensors, got 1
turnout.linalg.multi_dot([ones(2, 2), ones(2), ones(2, 2)])
    ShapeError: linalg.multi_dot: tensors[1] has shape [2]; only the first and last tensor can be vectors
turnout.linalg.multi_dot([ones(2, 2), ones(2, 2, dtype=float64)])
    DTypeError: linalg.multi_dot: tensors must have one dtype, got float32 and float64
turnout.linalg.multi_dot([ones(2, 2), ones(3, 2)])
    ShapeError: linalg.multi_dot: shapes [2, 2] and [3, 2] do not match: 2 against 3
turnout.linalg.multi_dot([ones(2), ones(3, 2)])
    ShapeError: linalg.multi_dot: shapes [2] and [3, 2] do not match: 2 against 3
turnout.linalg.vecdot(arange(2), arange(2))
    DTypeError: linalg.vecdot: expected a floating-point or complex tensor, got int64
turnout.linalg.vecdot(ones(2), ones(2, dtype=float64))
    DTypeError: linalg.vecdot: x and y must have one dtype, got float32 and float64
turnout.tensordot(ones(2, 2), ones(2, 2), dims=([0], [0, 1]))
    ShapeError: tensordot: needs as many dims of self as of other, got [0] and [0, 1]
turnout.tensordot(ones(2), ones(2, dtype=float64), dims=1)
    DTypeError: tensordot: operands must have one dtype, got self float32, other float64
turnout.tensordot(ones(2), ones(3), dims=1)
    ShapeError: tensordot: dim 0 of self has length 2, dim 0 of other has 3
turnout.cross(ones(2), ones(2))
    ShapeError: cross: no dim of shape [2] has length 3
turnout.vander(ones(2, 2))
    ShapeError: vander: 'x' must have one dimension, got shape [2, 2]
turnout.vander(ones(2), -1)
    ShapeError: vander: N must not be negative, got -1
turnout.linalg.vander(ones(2), N=-1)
    ShapeError: linalg.vander: N must be greater than 1, got -1
turnout.linalg.vander(tensor(1.0))
    ShapeError: linalg.vander: N must be greater than 1, got 1
turnout.linalg.vander(ones(2), N=1)
    ShapeError: linalg.vander: N must be greater than 1, got 1
turnout.inner(ones(2, 2), ones(2, 3))
    ShapeError: inner: shapes [2, 2] and [2, 3] do not match: 2 against 3
ones(2).addr_(ones(2), ones(2))
    ShapeError: addr_: self of shape [2] cannot hold the result of shape [2, 2]
turnout.tensordot(tensor(1.0), ones(2), dims=([0], [0]))
    DimError: tensordot: self has no dimensions, got dims [0]
""")

test_what_einsum_refuses = refused("""
turnout.einsum("", [])
    ShapeError: einsum: needs at least one operand
aten.einsum("ij->", [])
    ShapeError: einsum: needs at least one operand
aten.einsum("ij,jk,kl->il", [ones(2, 2), ones(2, 2), ones(2, 2)], path=[0, 1])
    ShapeError: einsum: a path for 3 operands must have 4 positions, got 2
aten.einsum("ij,jk,kl->il", [ones(2, 2), ones(2, 2), ones(2, 2)], path=[0, 0, 0, 1])
    ShapeError: einsum: the path cannot contract operands 0 and 0 of 3
turnout.einsum("......->", ones(2, 2))
    ShapeError: einsum: '......->' has two ellipses for one operand
turnout.einsum("i1->", ones(2, 2))
    ShapeError: einsum: '1' in 'i1->' is not a label; use letters, and one '...' per operand
turnout.einsum("ij,jk->ik->i", ones(2, 2), ones(2, 2))
    ShapeError: einsum: '-' in 'ij,jk->ik->i' is not a label; use letters, and one '...' per operand
turnout.einsum("ij->k", ones(2, 2))
    ShapeError: einsum: the result of 'ij->k' has 'k' and no operand has it
turnout.einsum("ij->ii", ones(2, 2))
    ShapeError: einsum: the result of 'ij->ii' has 'i' twice
turnout.einsum("ij,jk->ik", ones(2, 2))
    ShapeError: einsum: 'ij,jk->ik' is for 2 operands, got 1
turnout.einsum("ijk->", ones(2, 2))
    ShapeError: einsum: 'ijk' of 'ijk->' does not fit an operand of 2 dimensions
turnout.einsum("ij,jk->ik", ones(2, 2), ones(3, 2))
    ShapeError: einsum: 'j' of 'ij,jk->ik' has two lengths, 2 and 3
turnout.einsum("ii->", ones(2, 3))
    ShapeError: einsum: 'i' of 'ii->' has two lengths in one operand, 2 and 3
""")

test_what_matrix_norms_refuse = refused("""
turnout.linalg.norm(ones(2, 2, 2), 2, dim=[0, 1, 2])
    ShapeError: linalg.norm: dim must name 1 or 2 dimensions, got [0, 1, 2]
turnout.linalg.norm(ones(2, 2), 2, dim=[])
    ShapeError: linalg.norm: dim must name 1 or 2 dimensions, got []
turnout.linalg.norm(ones(2, 2, 2), 2)
    ShapeError: linalg.norm: with ord and without dim, self must have 1 or 2 dimensions, got shape [2, 2, 2]
turnout.linalg.norm(tensor(1.0), 2)
    ShapeError: linalg.norm: with ord and without dim, self must have 1 or 2 dimensions, got shape []
turnout.linalg.norm(ones(2, 2, 2), "fro", dim=[0, 1, 2])
    ShapeError: linalg.norm: dim must name 1 or 2 dimensions, got [0, 1, 2]
turnout.linalg.norm(ones(2, 2, 2), "fro")
    ShapeError: linalg.norm: with ord and without dim, self must have 1 or 2 dimensions, got shape [2, 2, 2]
turnout.linalg.norm(ones(2, 2), "fro", dim=0)
    ShapeError: linalg.norm: order 'fro' needs two dimensions, got one
turnout.linalg.norm(ones(2), "nuc")
    ShapeError: linalg.norm: order 'nuc' needs two dimensions, got one
turnout.linalg.norm(ones(2, 2), "max")
    ArgumentError: linalg.matrix_norm: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 'max'
turnout.linalg.norm(ones(2, 2), 3)
    ArgumentError: linalg.matrix_norm: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 3
turnout.linalg.norm(ones(2, 2), 1j)
    ArgumentError: linalg.matrix_norm: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 1j
turnout.linalg.matrix_norm(ones(2, 2, 2), dim=[0, 1, 2])
    ShapeError: linalg.matrix_norm: dim must name two dimensions, got [0, 1, 2]
turnout.linalg.matrix_norm(ones(2, 2), dim=[0])
    ShapeError: linalg.matrix_norm: dim must name two dimensions, got [0]
turnout.linalg.matrix_norm(ones(2, 2), dim=[0, -2])
    ShapeError: linalg.matrix_norm: dim must name two different dimensions, got [0, -2]
turnout.linalg.matrix_norm(ones(2, 2), 3)
    ArgumentError: linalg.matrix_norm: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 3
turnout.linalg.matrix_norm(ones(2, 2), "max")
    ArgumentError: linalg.matrix_norm: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 'max'
turnout.nuclear_norm(ones(2))
    ShapeError: nuclear_norm: 'self' must have at least 2 dimensions, got shape [2]
turnout.nuclear_norm(ones(2, 2, 2), [0])
    ShapeError: linalg.matrix_norm: dim must name two dimensions, got [0]
turnout.nuclear_norm(ones(2, 2, 2), [0, 0])
    ShapeError: linalg.matrix_norm: dim must name two different dimensions, got [0, 0]
turnout.linalg.cond(ones(2, 2), 3)
    ArgumentError: linalg.cond: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 3
turnout.linalg.cond(ones(2, 2), "max")
    ArgumentError: linalg.cond: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 'max'
turnout.linalg.cond(ones(2, 2), 2j)
    ArgumentError: linalg.cond: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got 2j
""")

test_what_decompositions_refuse = refused("""
turnout.cholesky_solve(ones(2, 1), ones(3, 3))
    ShapeError: cholesky_solve: a factor of shape [3, 3] does not fit right sides of shape [2, 1]
turnout.linalg.lu_solve(ones(2, 2), tensor([1, 2], dtype=int32), ones(3, 1))
    ShapeError: linalg.lu_solve: shapes [2, 2] and [3, 1] do not match in A X = B
turnout.linalg.lu_solve(ones(2, 2), tensor([1, 2], dtype=int32), ones(1, 3), left=False)
    ShapeError: linalg.lu_solve: shapes [2, 2] and [1, 3] do not match in X A = B
turnout.linalg.householder_product(ones(3, 2), ones(2, 2))
    ShapeError: linalg.householder_product: tau of shape [2, 2] does not fit reflections of shape [3, 2]
turnout.ormqr(ones(3, 2), ones(2, 2), ones(3, 2))
    ShapeError: ormqr: tau of shape [2, 2] does not fit reflections of shape [3, 2]
turnout.linalg.householder_product(ones(3, 2), ones(3))
    ShapeError: linalg.householder_product: 3 reflections need at least 3 rows and columns, got shape [3, 2]
turnout.ormqr(ones(3, 2), ones(3), ones(3, 3))
    ShapeError: ormqr: 3 reflections need at least 3 rows and columns, got shape [3, 2]
turnout.linalg.householder_product(ones(2, 3), ones(2))
    ShapeError: linalg.householder_product: 'input' must have at least as many rows as columns, got shape [2, 3]
turnout.ormqr(ones(3, 2), ones(2), ones(4, 3))
    ShapeError: ormqr: reflections of shape [3, 2] do not fit a matrix of shape [4, 3]
""")

test_what_pseudo_inverses_refuse = refused("""
turnout.linalg.pinv(ones(2, 2), rtol=ones(1, dtype=complex64))
    DTypeError: linalg.pinv: 'rtol' must be real, got complex64
turnout.linalg.pinv(ones(2, 2), atol=ones(1, dtype=complex64))
    DTypeError: linalg.pinv: 'atol' must be real, got complex64
turnout.linalg.matrix_rank(ones(2, 2), atol=ones(1, dtype=complex64))
    DTypeError: linalg.matrix_rank: 'atol' must be real, got complex64
""")

test_what_solvers_refuse = refused("""
turnout.linalg.solve(ones(2, 2), ones(2), left=False)
    ShapeError: linalg.solve: with left=False, 'B' must hold matrices, got shape [2]
turnout.linalg.solve(ones(2, 2), ones(3, 1))
    ShapeError: linalg.solve: shapes [2, 2] and [3, 1] do not match in A X = B
turnout.linalg.solve(ones(2, 2), ones(1, 3), left=False)
    ShapeError: linalg.solve: shapes [2, 2] and [1, 3] do not match in X A = B
turnout.triangular_solve(ones(3, 1), ones(2, 2))
    ShapeError: triangular_solve: shapes [2, 2] and [3, 1] do not match in A X = self
turnout.linalg.lstsq(ones(2, 2), ones(2, 1), driver="svd")
    ArgumentError: linalg.lstsq: driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', got 'svd'
turnout.linalg.lstsq(ones(2, 2), ones(3, 1))
    ShapeError: linalg.lstsq: 'b' of shape [3, 1] does not fit 'self' of shape [2, 2]
turnout.linalg.tensorinv(ones(2, 2), ind=0)
    ShapeError: linalg.tensorinv: ind must be positive, got 0
turnout.linalg.tensorinv(ones(2, 3), ind=1)
    ShapeError: linalg.tensorinv: with ind=1, shape [2, 3] is [2] and [3], which must hold equally many elements
turnout.linalg.tensorsolve(ones(2, 3), ones(2))
    ShapeError: linalg.tensorsolve: shapes [2, 3] and [2] do not form a square system
turnout.linalg.matrix_power(ones(2), 2)
    ShapeError: linalg.matrix_power: expected batches of square matrices, got shape [2]
turnout.linalg.matrix_power(ones(2, 3), 2)
    ShapeError: linalg.matrix_power: expected batches of square matrices, got shape [2, 3]
turnout.matrix_power(ones(2, 3), 2)
    ShapeError: linalg.matrix_power: expected batches of square matrices, got shape [2, 3]
""")

test_a_product_is_refused = refused("""
turnout.mm(ones(2, 2), ones(2, 2, dtype=float64))
    DTypeError: mm: operands must have one dtype, got self float32, mat2 float64
turnout.addmm(ones(2, 2, dtype=float64), ones(2, 2), ones(2, 2))
    DTypeError: addmm: 'self' has dtype float64, the matrices have float32
turnout.addmm(ones(2, 2), ones(2, 2), ones(2, 2), alpha=1j)
    DTypeError: addmm: alpha must be real for a result of dtype float32, got 1j
turnout.addmm(ones(3, 2), ones(2, 2), ones(2, 2))
    ShapeError: addmm: 'self' of shape [3, 2] does not expand to the product's [2, 2]
turnout.linalg.cross(ones(3), ones(2, 3))
    ShapeError: linalg.cross: operands need equally many dimensions, got shapes [3] and [2, 3]
turnout.linalg.cross(ones(2), ones(2))
    ShapeError: linalg.cross: dim -1 must have length 3 in both operands, got shapes [2] and [2]
turnout.einsum("ij")
    ArgumentError: einsum: needs an equation and an operand, or an operand and its labels
turnout.einsum(ones(2, 2), ["i", "j"])
    ArgumentError: einsum: labels are Ellipsis and numbers from 0 to 51, got 'i'
turnout.cdist(ones(2, 2), ones(2, 2), compute_mode="fast")
    ArgumentError: cdist: compute_mode must be one of use_mm_for_euclid_dist_if_necessary, use_mm_for_euclid_dist,
        donot_use_mm_for_euclid_dist, got 'fast'
""")
