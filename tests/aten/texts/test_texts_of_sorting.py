"""What sorting and searching say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_a_search_is_refused = refused("""
turnout.topk(tensor([True]), 1)
    DTypeError: topk is not defined for bool tensors
turnout.searchsorted(ones(2), ones(2, dtype=complex64))
    DTypeError: searchsorted is not defined for complex64 tensors, which have no order
turnout.searchsorted(ones(2, 3), ones(3, 3))
    ShapeError: searchsorted: the sequences' shape [2, 3] and the values' shape [3, 3] must be equal apart from the last dim
turnout.searchsorted(ones(2), ones(2), side="left", right=True)
    ArgumentError: searchsorted: side='left' contradicts right=True
turnout.searchsorted(ones(2), ones(2), sorter=tensor([0]))
    ShapeError: searchsorted: sorter must have shape [2], got [1]
turnout.searchsorted(ones(2), ones(2), sorter=tensor([0, 1], dtype=int32))
    DTypeError: searchsorted: sorter must have dtype int64, got int32
turnout.searchsorted(ones(2), ones(2), sorter=tensor([0, 2]))
    DimError: searchsorted: sorter has an index out of bounds for 2 elements
turnout.searchsorted(zeros(1).expand(2**31), ones(2), out_int32=True)
    ShapeError: searchsorted: positions up to 2147483648 do not fit in int32
turnout.nonzero_static(ones(2), size=-1)
    ArgumentError: nonzero_static: size must not be negative, got -1
turnout.searchsorted(tensor(1.0), ones(2))
    ShapeError: searchsorted: the sequence must have at least one dimension
""")
