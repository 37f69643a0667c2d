"""What operators that arrange, join, reshape and split tensors say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_arrangements_refuse = refused("""
turnout.meshgrid(ones(2), indexing="yx")
    ArgumentError: meshgrid: indexing must be "ij" or "xy", got 'yx'
turnout.meshgrid(indexing="ij")
    ShapeError: meshgrid: needs at least one tensor
turnout.meshgrid([], indexing="ij")
    ShapeError: meshgrid: needs at least one tensor
turnout.meshgrid(ones(2), ones(2, 2), indexing="ij")
    ShapeError: meshgrid: tensors[1] must have at most 1 dimension, got shape [2, 2]
turnout.meshgrid(ones(2), arange(2), indexing="ij")
    DTypeError: meshgrid: dtypes must be equal, got float32 and int64
turnout.cartesian_prod()
    ShapeError: cartesian_prod: needs at least one tensor
aten.cartesian_prod([])
    ShapeError: cartesian_prod: needs at least one tensor
turnout.cartesian_prod(ones(2), ones(2, 2))
    ShapeError: cartesian_prod: tensors[1] must have 1 dimension, got shape [2, 2]
turnout.cartesian_prod(ones(2), arange(2))
    DTypeError: cartesian_prod: dtypes must be equal, got float32 and int64
turnout.combinations(ones(2, 2))
    ShapeError: combinations: needs a tensor of 1 dimension, got shape [2, 2]
turnout.combinations(ones(2), -1)
    ArgumentError: combinations: r must not be negative, got -1
turnout.diag(ones(2, 2, 2))
    ShapeError: diag: needs a tensor of 1 or 2 dimensions, got shape [2, 2, 2]
turnout.diag(tensor(1.0))
    ShapeError: diag: needs a tensor of 1 or 2 dimensions, got shape []
turnout.diag_embed(ones(2), dim1=0, dim2=-2)
    ShapeError: diag_embed: dim1 and dim2 must differ, got 0 and -2 for 2 dimensions
turnout.diag_embed(tensor(1.0), dim1=0, dim2=0)
    ShapeError: diag_embed: dim1 and dim2 must differ, got 0 and 0 for 1 dimensions
turnout.roll(ones(2, 2), [1, 2], [0])
    ShapeError: roll: shifts [1, 2] and dims [0] must have the same length, at least 1
turnout.roll(ones(2, 2), [1, 2])
    ShapeError: roll: shifts [1, 2] and dims [] must have the same length, at least 1
turnout.roll(ones(2, 2), [])
    ShapeError: roll: shifts [] and dims [] must have the same length, at least 1
turnout.roll(ones(2, 2), [], [])
    ShapeError: roll: shifts [] and dims [] must have the same length, at least 1
turnout.roll(tensor(1.0), 1, 0)
    DimError: roll: dim 0 is out of range for a 0-dim tensor
turnout.roll(ones(3), 1, 4)
    DimError: roll: dim 4 is out of range for a tensor of 1 dimensions, which takes -1 to 0
turnout.rot90(ones(2, 2), 1, [0])
    ShapeError: rot90: dims must name two dimensions, got [0]
turnout.rot90(ones(2, 2), 1, [0, 0])
    ShapeError: rot90: dims [0, 0] name a dimension twice
turnout.rot90(ones(2), 1, [0, 1])
    ShapeError: rot90: needs at least 2 dimensions, got shape [2]
turnout.flipud(tensor(1.0))
    ShapeError: flipud: needs at least 1 dimension, got a 0-dim tensor
turnout.fliplr(ones(2))
    ShapeError: fliplr: needs at least 2 dimensions, got shape [2]
turnout.repeat_interleave(ones(2, 2, dtype=int64))
    ShapeError: repeat_interleave: 'repeats' must have 1 dimension, got shape [2, 2]
turnout.repeat_interleave(ones(2))
    DTypeError: repeat_interleave: 'repeats' must be int32 or int64, got float32
turnout.repeat_interleave(ones(2), ones(2))
    DTypeError: repeat_interleave: 'repeats' must be int32 or int64, got float32
turnout.repeat_interleave(ones(3), tensor([1, 2]), dim=0)
    ShapeError: repeat_interleave: 'repeats' must have one number or 3, the length of dim 0, got shape [2]
turnout.repeat_interleave(ones(3), tensor([[1, 2, 3]]), dim=0)
    ShapeError: repeat_interleave: 'repeats' must have one number or 3, the length of dim 0, got shape [1, 3]
turnout.repeat_interleave(ones(3), tensor([1, -2, 3]), dim=0)
    ArgumentError: repeat_interleave: repeats must not be negative
turnout.repeat_interleave(ones(3), -2)
    ArgumentError: repeat_interleave: repeats must not be negative, got -2
turnout.repeat_interleave(tensor([1, 2]), output_size=5)
    ShapeError: repeat_interleave: output_size is 5, but the result has length 3
turnout.repeat_interleave(ones(2), 2, output_size=5)
    ShapeError: repeat_interleave: output_size is 5, but the result has length 4
""")

test_what_joining_refuses = refused("""
aten._chunk_cat([ones(2)], 0, 0)
    ShapeError: _chunk_cat: num_chunks must be positive, got 0
aten._chunk_cat([ones(2), tensor(1.0)], 0, 2)
    ShapeError: _chunk_cat: a tensor of shape [] has no elements along dim 0
aten._chunk_cat([ones(2, 2), ones(2)], 1, 2)
    ShapeError: _chunk_cat: a tensor of shape [2] has no elements along dim 1
aten._chunk_cat([ones(2), ones(0)], 0, 2)
    ShapeError: _chunk_cat: a tensor of shape [0] has no elements along dim 0
aten._chunk_cat([ones(2, 2), ones(3, 2)], 1, 2)
    ShapeError: _chunk_cat: shapes [2, 2] and [3, 2] must be equal before dim 1
aten._chunk_cat([ones(2), ones(2, dtype=float64)], 0, 2)
    DTypeError: _chunk_cat: dtypes must be equal, got float32 and float64
aten._chunk_cat([], 0, 2)
    ShapeError: _chunk_cat: needs at least one tensor
turnout.block_diag(ones(2), ones(2, 2, 2))
    ShapeError: block_diag: tensors[1] must have at most 2 dimensions, got shape [2, 2, 2]
""")

test_what_reshaping_refuses = refused("""
turnout.flatten(ones(2, 2), 1, 0)
    ShapeError: flatten: start_dim 1 comes after end_dim 0
turnout.narrow(tensor(1.0), 0, 0, 1)
    ShapeError: narrow: needs at least one dimension, got a 0-dim tensor
turnout.narrow(ones(3), 0, 2, 2)
    ShapeError: narrow: start 2 and length 2 reach outside dim 0 of length 3
turnout.chunk(tensor(1.0), 2)
    ShapeError: chunk: needs at least one dimension, got a 0-dim tensor
turnout.chunk(ones(2), 0)
    ShapeError: chunk: chunks must be positive, got 0
turnout.unsafe_chunk(ones(2), -1)
    ShapeError: unsafe_chunk: chunks must be positive, got -1
turnout.stack([])
    ShapeError: stack: needs at least one tensor
turnout.stack([ones(2), ones(3)])
    ShapeError: stack: tensors[1] has shape [3], tensors[0] has [2]
ones(2, 2).repeat(2)
    ShapeError: repeat: needs a number of repeats for each dimension of shape [2, 2], got [2]
turnout.unflatten(tensor(1.0), 0, [1])
    DimError: unflatten: needs at least one dimension, got a 0-dim tensor
turnout.unflatten(ones(2), 0, [])
    ShapeError: unflatten: sizes must have at least one length
turnout.narrow(ones(3), 0, ones(1, dtype=int64), 1)
    DTypeError: narrow: 'start' must be a 0-dim integer tensor, got int64 [1]
turnout.narrow(ones(3), 0, tensor(1.0), 1)
    DTypeError: narrow: 'start' must be a 0-dim integer tensor, got float32 []
turnout.narrow(ones(3), 0, tensor(2), 2)
    ShapeError: narrow: start 2 and length 2 reach outside dim 0 of length 3
ones(2, 2).sum_to_size(3)
    ShapeError: sum_to_size: size [3] does not expand to shape [2, 2]
ones(2, 2).sum_to_size(2, 2, 2)
    ShapeError: sum_to_size: size [2, 2, 2] does not expand to shape [2, 2]
turnout.narrow(ones(3), 0, 5, 1)
    DimError: narrow: start 5 is out of range for dim 0 of length 3
turnout.movedim(ones(2, 2), [0, 1], [0])
    ShapeError: movedim: source [0, 1] and destination [0] must have the same length
ones(2).repeat(-1)
    ShapeError: repeat: repeats must not be negative, got [-1]
turnout.adjoint(ones(2))
    ShapeError: adjoint: needs at least 2 dimensions, got shape [2]
""")

test_what_splitting_refuses = refused("""
turnout.tensor_split(tensor(1.0), 2)
    ShapeError: tensor_split: needs at least one dimension, got a 0-dim tensor
turnout.tensor_split(ones(2), 0)
    ShapeError: tensor_split: the number of sections must be positive, got 0
turnout.tensor_split(tensor(1.0), [1])
    ShapeError: tensor_split: needs at least one dimension, got a 0-dim tensor
turnout.tensor_split(ones(2), tensor([1.0]))
    DTypeError: tensor_split: 'tensor_indices_or_sections' must be int64, got float32
turnout.tensor_split(ones(2), tensor([[1]]))
    ShapeError: tensor_split: 'tensor_indices_or_sections' must have at most 1 dimension, got shape [1, 1]
turnout.hsplit(tensor(1.0), 2)
    ShapeError: hsplit: needs at least 1 dimension, got shape []
turnout.vsplit(ones(2), 2)
    ShapeError: vsplit: needs at least 2 dimensions, got shape [2]
turnout.dsplit(ones(2, 2), [1])
    ShapeError: dsplit: needs at least 3 dimensions, got shape [2, 2]
turnout.hsplit(ones(3), 2)
    ShapeError: hsplit: the length 3 of dim 0 must be a multiple of the number of sections, 2
turnout.vsplit(ones(2, 2), 0)
    ShapeError: vsplit: the number of sections must be positive, got 0
""")

test_what_view_copies_refuse = refused("""
turnout.select_scatter(ones(2, 2), ones(3), 0, 0)
    ShapeError: select_scatter: 'src' must have shape [2], that of the elements it replaces; got [3]
turnout.slice_scatter(ones(3), ones(3), 0, 0, 2)
    ShapeError: slice_scatter: 'src' must have shape [2], that of the elements it replaces; got [3]
turnout.diagonal_scatter(ones(2, 2), ones(3))
    ShapeError: diagonal_scatter: 'src' must have shape [2], that of the elements it replaces; got [3]
turnout.as_strided_scatter(ones(3), ones(3), (2,), (1,))
    ShapeError: as_strided_scatter: 'src' must have shape [2], that of the elements it replaces; got [3]
turnout.slice_scatter(ones(3, 3), ones(2, 2), 0, 0, 2)
    ShapeError: slice_scatter: 'src' must have shape [2, 3], that of the elements it replaces; got [2, 2]
""")
