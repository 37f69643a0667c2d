"""What operators that make, copy, read and write elements say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_copies_refuse = refused("""
aten.copy(ones(2), ones(3))
    ShapeError: copy: 'src' of shape [3] does not expand to [2]
ones(2).copy_(ones(3))
    ShapeError: copy_: 'src' of shape [3] does not expand to [2]
ones(2).fill_(ones(2))
    ShapeError: fill_: 'value' must be a number or a 0-dim tensor, got shape [2]
turnout.fill(ones(2), ones(2))
    ShapeError: fill: 'value' must be a number or a 0-dim tensor, got shape [2]
ones(2).masked_fill(tensor([True, False]), ones(2))
    ShapeError: masked_fill: 'value' must be a number or a 0-dim tensor, got shape [2]
ones(2).masked_fill(tensor([True, False]), 1j)
    DTypeError: masked_fill: a complex number cannot be written into a float32 tensor
ones(2).masked_fill_(tensor([True, False, True]), 1.0)
    ShapeError: masked_fill_: 'mask' of shape [3] does not expand to [2]
ones(2).resize_(-1, 2)
    ShapeError: resize_: shape [-1, 2] has a negative length
ones(2).fill_diagonal_(1.0)
    DimError: fill_diagonal_: needs at least 2 dimensions, got shape [2]
ones(2, 3, 4).fill_diagonal_(1.0)
    ShapeError: fill_diagonal_: all dimensions must have one length, got shape [2, 3, 4]
aten._local_scalar_dense(ones(2))
    ArgumentError: local_scalar_dense: expected a tensor with one element, got shape [2]; use tolist()
""")

test_what_factories_refuse = refused("""
turnout.arange(0, 2, 0)
    ArgumentError: arange: step must not be 0
turnout.arange(0, -2, 1)
    ArgumentError: arange: step 1 leads away from end: start is 0, end is -2
turnout.arange(inf)
    ArgumentError: arange: start, end and step must be finite, got 0, inf and 1
turnout.linspace(ones(1), 2, 3)
    ShapeError: linspace: start and end must be numbers or 0-dim tensors, got shape [1]
turnout.logspace(0, ones(2), 3)
    ShapeError: logspace: start and end must be numbers or 0-dim tensors, got shape [2]
turnout.linspace(0, 1j, 3, dtype=float32)
    DTypeError: linspace: a complex start or end needs a complex dtype, got float32
turnout.linspace(0, 1, -1)
    ShapeError: linspace: steps must not be negative, got -1
turnout.tril_indices(-1, 2)
    ShapeError: tril_indices: row and col must not be negative, got -1 and 2
turnout.triu_indices(2, -2)
    ShapeError: triu_indices: row and col must not be negative, got 2 and -2
turnout.hann_window(4, dtype=int64)
    DTypeError: hann_window: a window needs a floating-point dtype, got int64
turnout.hann_window(-1)
    ShapeError: hann_window: window_length must not be negative, got -1
""")

test_what_indexing_refuses = refused("""
turnout.masked_select(ones(2), ones(2))
    DTypeError: masked_select: 'mask' must be a bool tensor, got float32
turnout.take_along_dim(ones(2, 2), tensor([0]), 0)
    ShapeError: take_along_dim: 'indices' must have 2 dimensions, got shape [1]
turnout.take_along_dim(ones(2, 2), ones(2, 2), 0)
    DTypeError: take_along_dim: 'indices' must be an int64 tensor, got float32
turnout.take_along_dim(ones(2, 2), ones(2, 2))
    DTypeError: take_along_dim: 'indices' must be an int64 tensor, got float32
F.one_hot(ones(2))
    DTypeError: one_hot: class indices must be int64, got float32
F.one_hot(tensor([], dtype=int64))
    ShapeError: one_hot: num_classes must be given for an empty tensor
F.one_hot(tensor([-1]))
    ShapeError: one_hot: a class index is negative
F.one_hot(tensor([1]), 0)
    ShapeError: one_hot: num_classes must be positive or -1, got 0
F.one_hot(tensor([], dtype=int64), 0)
    ShapeError: one_hot: num_classes must be positive or -1, got 0
F.one_hot(tensor([], dtype=int64), -3)
    ShapeError: one_hot: num_classes must be positive or -1, got -3
turnout.take(ones(2), ones(1))
    DTypeError: take: 'index' must be an int64 tensor, got float32
turnout.take(ones(2), tensor([0], dtype=int32))
    DTypeError: take: 'index' must be an int64 tensor, got int32
turnout.take(ones(2), tensor([9]))
    DimError: index: index 9 is out of bounds for a dimension of size 2
turnout.take(ones(0), tensor([0]))
    DimError: take: cannot take elements from an empty tensor
aten._unsafe_masked_index(ones(2), tensor([True]), [tensor([0]), tensor([0])], 0)
    DimError: unsafe_masked_index: too many indices: 2 for a tensor of 1 dimensions
""")

test_what_scattering_refuses = refused("""
turnout.put(ones(2), ones(1), ones(1))
    DTypeError: put: 'index' must be an int64 tensor, got float32
ones(2).put_(tensor([0], dtype=int32), ones(1))
    DTypeError: put: 'index' must be an int64 tensor, got int32
ones(2).put_(tensor([0]), ones(1, dtype=float64))
    DTypeError: put: 'source' must have dtype float32, got float64
ones(2).put_(tensor([0, 1]), ones(1))
    ShapeError: put: 'index' has 2 elements, 'source' has 1; they must agree
ones(0).put_(tensor([0]), ones(1))
    DimError: put: cannot write elements into an empty tensor
turnout.index_copy(ones(2), 0, tensor([0], dtype=int32), ones(1))
    IndexKindError: index_copy: 'index' must be an int64 tensor, got int32
turnout.index_fill(ones(2), 0, ones(1), 1.0)
    IndexKindError: index_fill: 'index' must be an int64 tensor, got float32
turnout.index_copy(ones(2, 2), 0, tensor([[0]]), ones(1, 2))
    DimError: index_copy: 'index' must have one dimension, got shape [1, 1]
turnout.index_fill(ones(2), 0, tensor([[0]]), 1.0)
    DimError: index_fill: 'index' must have one dimension, got shape [1, 1]
turnout.index_fill(ones(2), 0, tensor([0]), ones(1))
    ShapeError: index_fill: 'value' must be a number or a 0-dim tensor, got shape [1]
turnout.index_copy(ones(2), 0, tensor([0, 1]), tensor(1.0))
    DimError: index_copy: a 0-dim 'source' needs an 'index' of one element, got 2
turnout.index_copy(ones(2, 2), 0, tensor([0]), ones(1, 3))
    ShapeError: index_copy: 'source' must have shape [1, 2], got [1, 3]
turnout.index_copy(ones(2, 2), 0, tensor([0]), ones(2, 2))
    DimError: index_copy: 'source' must have shape [1, 2], got [2, 2]
turnout.index_copy(ones(2, 2), 0, tensor([0]), ones(2))
    DimError: index_copy: 'source' must have 2 dimensions, got shape [2]
ones(2).masked_scatter_(tensor([True, False, True]), ones(2))
    ShapeError: masked_scatter_: 'mask' of shape [3] does not expand to [2]
turnout.masked_scatter(ones(2), ones(2), ones(2))
    DTypeError: masked_scatter: 'mask' must be a bool tensor, got float32
turnout.masked_scatter(ones(2), tensor([True, False]), ones(2, dtype=float64))
    DTypeError: masked_scatter: 'source' must have dtype float32, got float64
turnout.masked_scatter(ones(2), tensor([True, False]), ones(0))
    ShapeError: masked_scatter: 'mask' has more true elements than 'source' has elements: 0
turnout.masked_scatter(ones(2), tensor([True, True]), ones(1))
    ShapeError: masked_scatter: 'mask' has more true elements than 'source' has elements: 1
turnout.scatter(ones(2), 0, tensor([0]), ones(1), reduce="sum")
    ArgumentError: scatter: reduce must be one of add, multiply, got 'sum'
turnout.scatter(ones(2), 0, tensor([0]), 1.0, reduce="mean")
    ArgumentError: scatter: reduce must be one of add, multiply, got 'mean'
turnout.index_reduce(ones(2), 0, tensor([0]), ones(1), "sum")
    ArgumentError: index_reduce: reduce must be one of prod, mean, amax, amin, got 'sum'
turnout.index_reduce(ones(2), 0, tensor([0]), ones(2), "prod")
    ShapeError: index_reduce: 'source' must have shape [1], got [2]
turnout.index_reduce(ones(2, 2), 0, tensor([0]), ones(1, 3), "prod")
    ShapeError: index_reduce: 'source' must have shape [1, 2], got [1, 3]
turnout.index_reduce(ones(2), 0, ones(1), ones(1), "prod")
    DTypeError: index_reduce: 'index' must be an int32 or int64 tensor, got float32
turnout.index_reduce(ones(2), 0, tensor([[0]]), ones(1), "prod")
    DimError: index_reduce: 'index' must have one dimension, got shape [1, 1]
turnout.index_fill(ones(2), 0, tensor([0]), 1j)
    DTypeError: index_fill: a complex number cannot be written into a float32 tensor
turnout.index_fill(ones(2), 0, tensor([0]), tensor(1j))
    DTypeError: index_fill: a complex number cannot be written into a float32 tensor
turnout.index_copy(ones(2), 0, tensor([0]), ones(1, dtype=float64))
    DTypeError: index_copy: 'source' must have dtype float32, got float64
""")

test_what_segment_reductions_refuse = refused("""
turnout.segment_reduce(ones(2), "median", lengths=tensor([2]))
    ArgumentError: segment_reduce: reduce must be one of sum, mean, max, min, prod, got 'median'
turnout.segment_reduce(ones(2), "sum")
    ArgumentError: segment_reduce: give either lengths or offsets; indices are not supported
turnout.segment_reduce(ones(2), "sum", lengths=tensor([2]), offsets=tensor([0, 2]))
    ArgumentError: segment_reduce: give either lengths or offsets; indices are not supported
turnout.segment_reduce(ones(2), "sum", indices=tensor([0, 0]))
    ArgumentError: segment_reduce: give either lengths or offsets; indices are not supported
turnout.segment_reduce(ones(2, dtype=int64), "sum", lengths=tensor([2]))
    DTypeError: segment_reduce: needs a float tensor, got int64
turnout.segment_reduce(ones(2), "sum", lengths=tensor([[2]]))
    ShapeError: segment_reduce: lengths and offsets along dim 0 of [2] must have shape [segments], got [1, 1]
turnout.segment_reduce(ones(2, 2), "sum", lengths=tensor([[2]]), axis=1)
    ShapeError: segment_reduce: lengths and offsets along dim 1 of [2, 2] must have shape [2, segments], got [1, 1]
turnout.segment_reduce(ones(2), "sum", lengths=tensor([3, -1]))
    ArgumentError: segment_reduce: lengths must not be negative
turnout.segment_reduce(ones(2), "sum", lengths=tensor([3]))
    ShapeError: segment_reduce: the lengths must add up to 2, the length of the dim of data
turnout.segment_reduce(ones(2), "sum", lengths=tensor([2.0]))
    DTypeError: segment_reduce: lengths and offsets must be integers, got float32
""")

test_what_pointwise_operators_refuse = refused("""
turnout.positive(ones(2, dtype=turnout.bool))
    DTypeError: positive is not defined for bool tensors
turnout.imag(ones(2))
    DTypeError: imag is defined for complex tensors, this one is float32
turnout.isclose(ones(2), ones(2, dtype=float64))
    DTypeError: isclose: self and other must have one dtype, got float32 and float64
turnout.isclose(ones(2), ones(2), rtol=-1.0)
    ArgumentError: isclose: rtol and atol must not be negative, got -1.0 and 1e-08
ones(2, dtype=int64).ldexp_(ones(2))
    DTypeError: ldexp_: the result has dtype float32, which cannot be written into int64
turnout.is_nonzero(ones(2))
    ShapeError: is_nonzero: expected a tensor with one element, got shape [2]; use any() or all()
turnout.mvlgamma(ones(2), 0)
    ArgumentError: mvlgamma: p must be at least 1, got 0
turnout.mvlgamma(ones(2), 2**40)
    ArgumentError: mvlgamma: p must be at most 1000000, got 1099511627776
ones(2, dtype=int64).mvlgamma_(1)
    DTypeError: aten::mvlgamma_: the result has dtype float32, which cannot be written into int64
""")
