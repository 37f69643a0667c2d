"""What views and new tensors say about a shape that does not fit."""

from __future__ import annotations

from rows import refused

test_a_view_is_refused = refused("""
ones(2, 3).view(4, 2)
    ShapeError: view: shape [4, 2] does not hold 6 elements
ones(2, 3).view(-1, -1)
    ShapeError: view: shape [-1, -1]: only one length can be -1
ones(2, 3).view(-2, 3)
    ShapeError: view: shape [-2, 3]: -2 is not a length
ones(2, 3).t().view(6)
    ShapeError: view: shape [6] needs a copy of shape [3, 2] with strides [1, 3]; use reshape
ones(2, 3).expand(2, 4)
    ShapeError: expand: shape [2, 3] does not expand to [2, 4]: 3 against 4 at dim 1
ones(2, 3).permute(0)
    ShapeError: permute: [0] must name each of the 2 dimensions of shape [2, 3]
ones(2, 3).transpose(0, 2)
    DimError: transpose: dim 2 is out of range for a tensor of 2 dimensions, which takes -2 to 1
ones(2, 3).select(1, 3)
    DimError: select: index 3 is out of range for dim 1 of length 3
aten.slice(ones(2, 3), 0, None, None, -1)
    ShapeError: slice: step must be positive, got -1
ones(2, 3).narrow(1, 2, 2)
    ShapeError: narrow: start 2 and length 2 reach outside dim 1 of length 3
ones(2, 3).unfold(1, 4, 1)
    ShapeError: unfold: size must be 0 to 3, the length of dim 1, got 4
ones(2, 3).as_strided([3], [3], 0)
    ShapeError: as_strided: size [3], stride [3] and offset 0 reach element 6 of a storage with 6
turnout.split_with_sizes(ones(2, 3), [1, 1], 1)
    ShapeError: split_with_sizes: sizes [1, 1] must add up to 3, the length of dim 1, and not be negative
ones(4, 2).t().view(float64)
    ShapeError: view: as float64, elements of 4 bytes as 8: the last stride must be 1, got 2; make the tensor contiguous
ones(2, 0).view(-1, 0)
    ShapeError: view: shape [-1, 0]: -1 can be any length when another one is 0
ones(2, 3).expand(3)
    ShapeError: expand: shape [2, 3] has more dimensions than the requested [3]
ones(3).expand(-1, 3)
    ShapeError: expand: [-1, 3]: a new dimension needs a length, got -1 at dim 0
ones(2, 2, 2).t()
    ShapeError: t: takes at most 2 dimensions, got shape [2, 2, 2]; use transpose or permute
turnout.select(tensor(1.0), 0, 0)
    DimError: select: a 0-dim tensor has no dimension to select from
aten.slice(tensor(1.0), 0, 0, 1)
    DimError: slice: a 0-dim tensor has no dimension to slice
turnout.diagonal(ones(2, 2), 0, 1, -1)
    ShapeError: diagonal: dim1 and dim2 must be different dimensions, got 1 and -1
turnout.as_strided(ones(4), (2, 2), (1,))
    ShapeError: as_strided: size [2, 2] and stride [1] must be equally long
turnout.unbind(tensor(1.0))
    DimError: unbind: a 0-dim tensor has no dimension to unbind
turnout.split(tensor(1.0), 1)
    ShapeError: split: a 0-dim tensor has no dimension to split
turnout.split_with_sizes(tensor(1.0), [1])
    ShapeError: split_with_sizes: a 0-dim tensor has no dimension to split
turnout.array_api.reshape(ones(2, 3).t(), (6,), copy=False)
    ArgumentError: reshape: shape [6] needs a copy of a tensor of shape [3, 2] and strides [1, 3], which copy=False forbids
turnout.array_api.reshape(ones(2, 3).t(), (5,), copy=False)
    ShapeError: reshape: shape [5] does not hold 6 elements
turnout.broadcast_shapes((2, -1), (3,))
    ShapeError: broadcast_shapes: shape [2, -1] has a negative length
zeros(2, layout="sparse_coo")
    ArgumentError: layout must be turnout.strided, got 'sparse_coo'
ones(2).clone(memory_format="rows")
    ArgumentError: clone: memory_format must be contiguous_format, preserve_format, channels_last or channels_last_3d, got 'rows'
ones(2).is_contiguous(memory_format="preserve_format")
    ArgumentError: is_contiguous: 'preserve_format' is not a memory format that a tensor can have
turnout.empty_permuted((2, 3), (0, 0))
    ShapeError: empty_permuted: physical_layout [0, 0] must name each of the 2 dimensions once
turnout.empty_strided((2, 3), (1,))
    ShapeError: empty_strided: size [2, 3] and stride [1] must be equally long
turnout.constant_pad_nd(ones(2), [1, 1], 1j)
    DTypeError: constant_pad_nd: a complex number cannot be written into a float32 tensor
turnout.constant_pad_nd(ones(2), [-3, 0])
    ShapeError: constant_pad_nd: dim 0 of length 2 cannot be padded by -3 and 0
turnout.constant_pad_nd(ones(2), [1, 1, 1], 0)
    ShapeError: constant_pad_nd: 'pad' must hold two numbers for each of at most 1 dims, got [1, 1, 1]
tensor(1.0).view(float64)
    ShapeError: view: as float64, elements of 4 bytes as 8: a 0-dim tensor has no dimension whose length could change
ones(2, 3).view(float64)
    ShapeError: view: as float64, elements of 4 bytes as 8: the last length, the offset and the other strides must be multiples of
        2, got shape [2, 3], offset 0, strides [3, 1]
ones(5)[1:].view(float64)
    ShapeError: view: as float64, elements of 4 bytes as 8: the last length, the offset and the other strides must be multiples of
        2, got shape [4], offset 1, strides [1]
turnout.view_as_complex(ones(4, 2).t()[:, :2])
    ShapeError: view_as_complex: the last stride must be 1, the offset and the other strides even, got strides [1, 2] and
        offset 0; make the tensor contiguous
turnout.unravel_index(tensor([6]), (2, 3))
    ShapeError: unravel_index: an index is outside shape [2, 3]
empty(2, 3, memory_format=turnout.channels_last)
    ArgumentError: channels_last needs 4 dimensions, got shape [2, 3]
turnout.tril(ones(2))
    ShapeError: tril: 'self' must have at least 2 dimensions, got shape [2]
aten.unfold_backward(ones(2), [3], 0, 2, 1)
    ShapeError: unfold_backward: grad_in has 1 dim, expected 2: those of the input, and the window
ones(2).H
    ShapeError: H needs 2 dimensions, this tensor has shape [2]; use mH
""")
