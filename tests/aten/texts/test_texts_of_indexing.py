"""What indexing, gathering, scattering and joining say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_an_index_is_refused = refused("""
ones(2, 2, 3)[2]
    DimError: select: index 2 is out of range for dim 0 of length 2
ones(2, 2, 3)[0, 0, 0, 0]
    DimError: too many indices: 4 for a tensor of 3 dimensions
ones(2, 2, 3)[..., ...]
    DimError: an index can have only one ellipsis ('...')
ones(2, 2, 3)["a"]
    IndexKindError: an index consists of ints, slices, None, '...', bools, lists and integer or bool tensors; got str
ones(2, 2, 3)[1.5:]
    CallError: a slice takes integers, got float
ones(2, 2, 3)[[[0], [1, 0]],]
    DataError: a list used as an index must be rectangular: its inner lists must have the same length
ones(2, 2, 3)[tensor([True, False, True])]
    DimError: index: a mask of shape [3] does not fit shape [2, 2, 3] at dim 0
ones(2, 2, 3).__setitem__(0, [1, 2])
    CallError: x[index] = value: 'value' must be a number or a tensor, got list
ones(2, 2, 3).__setitem__([0], tensor([1.0, 2.0]))
    ShapeError: index_put: 'values' of shape [2] do not expand to [1, 2, 3]
ones(2)[ones(1)]
    IndexKindError: index: an index tensor must be an integer or bool one, got float32
ones(2)[["a"]]
    IndexKindError: a list used as an index must hold ints or bools, got ['a']
ones(2)[[2**70]]
    RangeError: an int of a list used as an index does not fit in int64, got [1180591620717411303424]
aten.index(ones(2), [tensor(True)])
    DimError: index: a 0-dim mask needs a separate dimension; use x[mask]
ones(3, 3)[[0, 1], [0, 1, 2]]
    DimError: index: index tensors of shapes [2], [3] do not broadcast
ones(0, 3)[[0]]
    DimError: index: cannot select from dim 0 of shape [0, 3], which has length 0
ones(3).index_put((tensor([0]),), ones(1, dtype=float64))
    DTypeError: index_put: 'values' must have dtype float32, got float64
turnout.gather(ones(3), 0, ones(1))
    DTypeError: gather: 'index' must be an int64 or int32 tensor, got float32
turnout.gather(ones(3), 0, ones(1, 1, dtype=int64))
    ShapeError: gather: 'index' of shape [1, 1] must have as many dimensions as 'self', [3]
turnout.gather(ones(2, 2), 0, ones(2, 3, dtype=int64))
    ShapeError: gather: 'index' of shape [2, 3] is longer than 'self', [2, 2], apart from dim 0
turnout.index_select(ones(3), 0, ones(1, 1, dtype=int64))
    DimError: index_select: 'index' must have one dimension, got shape [1, 1]
turnout.index_select(tensor(1.0), 0, ones(2, dtype=int64))
    DimError: index_select: 'index' must have one element for a 0-dim tensor, got shape [2]
turnout.scatter(ones(3), 0, tensor([0, 1]), ones(1))
    ShapeError: scatter: 'index' of shape [2] is longer than 'src', [1]
turnout.scatter(ones(3), 0, tensor([0, 1]), ones(2, 2))
    ShapeError: scatter: 'index' of shape [2] must have as many dimensions as 'src', [2, 2]
turnout.scatter(ones(3), 0, tensor([0, 1]), ones(2, dtype=float64))
    DTypeError: scatter: 'src' must have dtype float32, got float64
turnout.scatter_reduce(ones(3), 0, tensor([0]), ones(1), "median")
    ArgumentError: scatter_reduce: reduce must be one of sum, prod, mean, amax, amin, got 'median'
turnout.scatter_reduce(ones(3, dtype=complex64), 0, tensor([0]), ones(1, dtype=complex64), "amax")
    DTypeError: scatter_reduce: complex64 numbers have no order, which amax needs
turnout.index_add(ones(3), 0, tensor([0]), ones(1, dtype=float64))
    DTypeError: index_add: 'source' must have dtype float32, got float64
turnout.index_add(ones(3), 0, tensor([[0]]), ones(1))
    DimError: index_add: 'index' must have one dimension, got shape [1, 1]
turnout.index_add(ones(3), 0, tensor([0]), ones(2))
    ShapeError: index_add: 'source' must have shape [1], got [2]
turnout.cat([tensor(1.0), ones(2)])
    ShapeError: cat: tensors[0] has no dimension to join along; use stack
turnout.where(ones(2), 1.0, 2.0)
    DTypeError: where: condition must be a bool tensor, got float32
turnout.unravel_index(tensor([1.0]), (2, 3))
    DTypeError: unravel_index: 'indices' must be integers, got float32
turnout.unravel_index(tensor([1]), (2, -3))
    ShapeError: unravel_index: shape [2, -3] has a negative length
[1, 2, 3][tensor(1.0)]
    CallError: only a tensor of one integer can be used as an index, got a float32 tensor of shape []
len(tensor(1.0))
    CallError: len() of a 0-dim tensor
list(tensor(1.0))
    CallError: iteration over a 0-dim tensor
""")
