"""What products of matrices and vectors say about a call that they refuse."""

from __future__ import annotations

from rows import refused

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
