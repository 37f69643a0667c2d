"""What convolutions, and windows as columns, say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_a_convolution_is_refused = refused("""
turnout.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), stride=(1, 1, 1))
    ShapeError: convolution: 'stride' must be one number or 2, got [1, 1, 1]
turnout.conv1d(ones(1, 1, 4), ones(1, 1, 2), stride=(1, 1))
    ShapeError: convolution: 'stride' must be one number, got [1, 1]
turnout.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2, 2))
    ShapeError: convolution: 'input' [N, C, ...] and 'weight' must have the same number of dims, at least 3; got shapes [1, 1, 4,
        4] and [1, 1, 2, 2, 2]
turnout.conv1d(ones(1, 1, 4), ones(1, 1, 2, dtype=float64))
    DTypeError: convolution: 'input', 'weight' and 'bias' must have one dtype, got float32 and float64
turnout.conv1d(ones(1, 1, 4), ones(1, 1, 2), ones(1, dtype=float64))
    DTypeError: convolution: 'input', 'weight' and 'bias' must have one dtype, got float32 and float64
turnout.conv_transpose1d(ones(1, 1, 4), ones(1, 1, 2), stride=1, output_padding=1)
    ShapeError: convolution: output_padding 1 must be smaller than stride 1 or dilation 1
turnout.conv1d(ones(1, 1, 4), ones(1, 1, 2), groups=0)
    ArgumentError: convolution: groups must be positive, got 0
turnout.conv1d(ones(1, 3, 4), ones(2, 1, 2), groups=3)
    ShapeError: convolution: groups 3 must divide the first dim of 'weight', got shape [2, 1, 2]
turnout.conv1d(ones(1, 1, 4), ones(1, 1, 2), ones(2))
    ShapeError: convolution: 'bias' must have shape [1], got [2]
F.unfold(ones(3, 4), 2)
    ShapeError: im2col: 'self' must have 3 or 4 dimensions, none but the batch empty; got shape [3, 4]
F.fold(ones(4), (3, 3), 2)
    ShapeError: col2im: 'self' must have 2 or 3 dimensions, none but the batch empty; got shape [4]
F.fold(ones(1, 4, 3), (3, 3), 2)
    ShapeError: col2im: 'self' of shape [1, 4, 3] must have 4 columns, and a multiple of 4 as rows
F.fold(ones(1, 4, 4), (3, 3, 3), 2)
    ArgumentError: fold: sizes are one number or two, got [3, 3, 3]
F.unfold(ones(1, 1, 4, 4), (2, 2, 2))
    ArgumentError: unfold: sizes are one number or two, got [2, 2, 2]
""")
