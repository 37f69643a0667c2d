"""What reductions say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_a_reduction_is_refused = refused("""
turnout.mean(ones(2, dtype=int64), 0)
    DTypeError: mean: the result cannot have dtype int64; pass dtype=turnout.float32 or convert it
turnout.mean(ones(2), 0, dtype=int64)
    DTypeError: mean: the result cannot have dtype int64; pass a float or complex dtype
turnout.argmax(tensor([True]))
    DTypeError: argmax: not defined for bool tensors; convert to an integer dtype first
turnout.argmin(tensor([1j]))
    DTypeError: argmin: not defined for complex64 tensors, which have no order
turnout.amax(tensor([1j]), 0)
    DTypeError: amax: not defined for complex64 tensors, which have no order
turnout.max(empty(0))
    ShapeError: max: a tensor of shape [0] has no element to choose
turnout.aminmax(tensor([1j]))
    DTypeError: aminmax: not defined for complex64 tensors, which have no order
turnout.var(ones(2, dtype=int64))
    DTypeError: var: expected a floating-point or complex tensor, got int64
turnout.std(ones(2), correction=1j)
    DTypeError: std: correction must be a real number, got 1j
empty([1] * 65, device="meta").sum([0])
    ShapeError: sum: reductions take tensors of up to 64 dimensions, got 65
turnout.linalg.vector_norm(ones(2, dtype=int64))
    DTypeError: linalg.vector_norm: expected a floating-point or complex tensor, got int64
turnout.linalg.vector_norm(ones(2), dtype=complex64)
    DTypeError: linalg.vector_norm: dtype must be real and hold all of float32, got complex64
turnout.linalg.vector_norm(ones(2, dtype=float64), dtype=float32)
    DTypeError: linalg.vector_norm: dtype must be real and hold all of float64, got float32
turnout.linalg.vector_norm(ones(2), 2j)
    DTypeError: linalg.vector_norm: ord must be a real number, got 2j
turnout.linalg.vector_norm(ones(2, 0), -1, 1)
    DimError: linalg.vector_norm: cannot choose an element from dim 1 of shape [2, 0], which has length 0
turnout.norm(ones(2), p="inf")
    ArgumentError: norm: p must be a number, 'fro' or 'nuc', got 'inf'
turnout.logcumsumexp(ones(2, dtype=int64), 0)
    DTypeError: logcumsumexp: expected a floating-point or complex tensor, got int64
turnout.cummax(tensor([1j]), 0)
    DTypeError: cummax: not defined for complex64 tensors, which have no order
turnout.median(tensor([True]), 0)
    DTypeError: median is not defined for bool tensors
turnout.median(tensor([1j]), 0)
    DTypeError: median: not defined for complex64 tensors, which have no order
turnout.kthvalue(tensor([True]), 1)
    DTypeError: kthvalue is not defined for bool tensors
turnout.bincount(tensor([1.0]))
    ArgumentError: bincount: needs integers in one dimension, got float32 of shape [1]
turnout.bincount(tensor([1, 2]), weights=ones(3))
    ArgumentError: bincount: weights must have shape [2], got [3]
turnout.bincount(tensor([1, 2]), minlength=-1)
    ArgumentError: bincount: minlength must not be negative, got -1
turnout.bincount(tensor([-1]))
    ArgumentError: bincount: values must not be negative, got -1
turnout.masked.sum(ones(2), mask=ones(2))
    DTypeError: masked: the mask must be a bool tensor, got float32
turnout.masked.sum(ones(2), mask=tensor([[True, False]]))
    ShapeError: masked: a mask of shape [1, 2] has more dims than the input of shape [2]
turnout.masked.mean(tensor([True]))
    DTypeError: masked.mean is not defined for bool tensors
turnout.masked.median(tensor([1]), 0)
    DTypeError: masked.median needs a float tensor, got int64
""")
