"""What convolutions, pooling, padding and resampling say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_convolutions_refuse = refused("""
F.conv1d(ones(1, 1, 4), ones(1, 1, 2), padding="full")
    ArgumentError: conv1d: padding must be 'valid', 'same' or numbers, got 'full'
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), stride=[1, 2], padding="same")
    ArgumentError: conv2d: padding='same' needs stride 1, got [1, 2]
aten.convolution_backward(ones(1, 1, 4), ones(1, 1, 4, 4), ones(1, 1, 2, 2), None, [1], [0], [1], False, [0], 1, [True, True,
        True])
    ShapeError: convolution_backward: 'grad_output' must have shape [1, 1, 3, 3], got [1, 1, 4]
aten.convolution_backward(ones(1, 4), ones(1, 4), ones(1, 2), None, [1], [0], [1], False, [0], 1, [True, True, True])
    ShapeError: convolution_backward: 'input' [N, C, ...] and 'weight' must have the same number of dims, at least 3; got shapes
        [1, 4] and [1, 2]
aten.convolution_backward(ones(1, 1, 4), ones(1, 1, 4), ones(1, 1, 2), None, [1], [0], [1], False, [0], 1, [True, True, True])
    ShapeError: convolution_backward: 'grad_output' must have shape [1, 1, 3], got [1, 1, 4]
aten.convolution_backward(ones(1, 1, 3), ones(1, 1, 4), ones(1, 1, 2), None, [0], [0], [1], False, [0], 1, [True, True, True])
    ShapeError: convolution_backward: 'stride' must be at least 1, got [0]
F.conv1d(ones(1, 1, 4), ones(1, 1, 2), stride=2, padding="same")
    ArgumentError: conv1d: padding='same' needs stride 1, got [2]
F.conv1d(ones(4), ones(1, 1, 2))
    ShapeError: conv1d: 'input' must have 2 or 3 dimensions, got shape [4]
F.conv2d(ones(1, 4, 4), ones(1, 1, 2), padding="same")
    ShapeError: conv2d: 'weight' must have 4 dimensions, got shape [1, 1, 2]
""")

test_what_pooling_refuses = refused("""
F.max_pool1d(ones(2), 2)
    ShapeError: max_pool1d: 'self' must have 2 or 3 dimensions, none but the batch empty; got shape [2]
F.avg_pool1d(ones(1, 2, 3, 4), 2)
    ShapeError: avg_pool1d: 'self' must have 2 or 3 dimensions, none but the batch empty; got shape [1, 2, 3, 4]
F.adaptive_max_pool2d(ones(4, 4), 2)
    ArgumentError: adaptive_max_pool2d: 'input' must have at least 3 dimensions, got shape [4, 4]
F.adaptive_avg_pool1d(ones(2), 2)
    ShapeError: adaptive_avg_pool1d: 'self' must have 2 or 3 dimensions, none but the batch empty; got shape [2]
F.max_pool1d(ones(1, 4), [2, 2])
    ShapeError: max_pool1d: 'kernel_size' must be one number, got [2, 2]
F.avg_pool1d(ones(1, 4), [2, 2])
    ShapeError: avg_pool1d: 'kernel_size' must be one number, got [2, 2]
F.avg_pool1d(ones(1, 4), 2, [1, 1])
    ShapeError: avg_pool1d: 'stride' must be one number, got [1, 1]
F.adaptive_max_pool1d(ones(1, 4), [2, 2])
    ShapeError: adaptive_max_pool1d: 'output_size' must be one number, got [2, 2]
turnout.adaptive_avg_pool1d(ones(1, 4), [2, 2])
    ShapeError: adaptive_avg_pool1d: 'output_size' must be one number, got [2, 2]
aten.max_pool2d_with_indices_backward(ones(1, 1, 1), ones(1, 2, 2), [2, 2], [2, 2], [0, 0], [1, 1], False, zeros(1, 1, 2,
        dtype=int64))
    ShapeError: max_pool2d_with_indices_backward: 'grad_output' of shape [1, 1, 1] and 'indices' of shape [1, 1, 2] must be one
        shape and fit 'self' of shape [1, 2, 2]
aten.max_pool2d_with_indices_backward(ones(1, 1, 1, dtype=float64), ones(1, 2, 2), [2, 2], [2, 2], [0, 0], [1, 1], False, zeros(1,
        1, 1, dtype=int64))
    DTypeError: max_pool2d_with_indices_backward: 'grad_output' must have dtype float32, got float64
turnout.ops.aten.adaptive_avg_pool2d(ones(1, 4, 4), [2])
    ShapeError: adaptive_avg_pool2d: 'output_size' must be 2 numbers, got [2]
aten.adaptive_avg_pool3d(ones(1, 4, 4, 4), [2, 2])
    ShapeError: adaptive_avg_pool3d: 'output_size' must be 3 numbers, got [2, 2]
F.adaptive_avg_pool2d(ones(1, 4, 4), [2, 2, 2])
    ShapeError: adaptive_avg_pool2d: 'output_size' must be 2 numbers, got [2, 2, 2]
aten.max_unpool3d(ones(1, 1, 1, 1), zeros(1, 1, 1, 1, dtype=int64), [2, 2, 2], [2], [0, 0, 0])
    ShapeError: max_unpool3d: 'stride' must be 3 numbers, got [2]
aten.max_unpool3d(ones(1, 1, 1, 1), zeros(1, 1, 1, 1, dtype=int64), [2, 2, 2], [2, 2, 2], [0])
    ShapeError: max_unpool3d: 'padding' must be 3 numbers, got [0]
aten.max_unpool3d(ones(1, 1, 1, 1), zeros(1, 1, 1, 1, dtype=int64), [2, 2, 2], [2, 0, 2], [0, 0, 0])
    ShapeError: max_unpool3d: 'stride' must be positive, got [2, 0, 2]
aten.max_unpool2d(ones(1, 1, 1), zeros(1, 1, 1), [2, 2])
    DTypeError: max_unpool2d: 'indices' must be int64, got float32
F.max_unpool2d(ones(1, 1, 1), zeros(1, 1, 1), 2)
    DTypeError: max_unpool2d: 'indices' must be int64, got float32
aten.max_unpool2d(ones(1, 1, 1), zeros(1, 1, 1, dtype=int64), [2])
    ShapeError: max_unpool2d: 'output_size' must be 2 numbers, got [2]
aten.max_unpool2d(ones(1, 1, 1), zeros(1, 1, 2, dtype=int64), [2, 2])
    ShapeError: max_unpool2d: 'indices' must have the shape of 'self', [1, 1, 1], got [1, 1, 2]
aten.max_unpool2d(ones(1, 1, 1), tensor([[[9]]]), [2, 2])
    DimError: max_unpool2d: 'indices' holds a number that is out of range; output_size [2, 2] has 4 places
F.max_unpool2d(ones(1, 1, 1), tensor([[[9]]]), 2)
    DimError: max_unpool2d: 'indices' holds a number that is out of range; output_size [2, 2] has 4 places
""")

test_what_padding_refuses = refused("""
aten.reflection_pad1d(ones(2, 2), [1])
    ShapeError: reflection_pad1d: 'padding' must be 2 numbers, got [1]
aten.replication_pad2d(ones(2, 2), [1, 1])
    ShapeError: replication_pad2d: 'padding' must be 4 numbers, got [1, 1]
aten.reflection_pad1d(ones(2), [1, 1])
    ShapeError: reflection_pad1d: 'self' must have 2 or 3 dimensions, none but the batch empty; got shape [2]
aten.reflection_pad1d(ones(2, 0), [1, 1])
    ShapeError: reflection_pad1d: 'self' must have 2 or 3 dimensions, none but the batch empty; got shape [2, 0]
aten.replication_pad1d(ones(2, 2), [-1, -1])
    ShapeError: replication_pad1d: dim -1 of length 2 cannot be padded by -1 and -1
aten.reflection_pad1d(ones(2, 2), [2, 0])
    ShapeError: reflection_pad1d: padding 2 and 0 must be less than 2, the length of dim -1
F.pad(ones(1, 2), [1, 1, 1, 1], mode="circular")
    ArgumentError: pad: mode 'circular' pads the last 1 to 3 dims of tensors with one or two more, got 'pad' [1, 1, 1, 1] for 2
        dimensions
aten._pad_circular(ones(2), [1, 1])
    ShapeError: pad: 'pad' [1, 1] does not fit a tensor of 1 dimensions
aten._pad_circular(ones(1, 2), [1])
    ShapeError: pad: 'pad' [1] does not fit a tensor of 2 dimensions
F.pad(ones(1, 2), [3, 0], mode="circular")
    ShapeError: pad: circular padding 3 and 0 wraps more than once around dim -1 of length 2
F.pad(ones(1, 2), [-2, -1], mode="circular")
    ShapeError: pad: dim -1 of length 2 cannot be padded by -2 and -1
F.pad(ones(1, 2), [1, 1], mode="reflect", value=1.0)
    ArgumentError: pad: mode 'reflect' does not accept a value, got 1.0
F.pad(ones(2), [1, 1], mode="reflect")
    ArgumentError: pad: mode 'reflect' pads the last 1 to 3 dims of tensors with one or two more, got 'pad' [1, 1] for 1
        dimensions
F.pad(ones(1, 2), [1, 1], mode="wrap")
    ModeError: pad: mode must be one of constant, reflect, replicate, circular, got 'wrap'
F.pad(ones(2), [1])
    ShapeError: pad: 'pad' must hold two numbers for each of at most 1 dims, got [1]
F.pad(ones(1, 2), [1, 1], mode="wrap", value=1.0)
    ModeError: pad: mode must be one of constant, reflect, replicate, circular, got 'wrap'
""")

test_what_interpolation_refuses = refused("""
aten.upsample_nearest2d.vec(ones(1, 1, 2, 2), [2, 2], [1.0, 1.0])
    ArgumentError: upsample: give one of output_size and scale_factors
aten.upsample_bilinear2d.vec(ones(1, 1, 2, 2), None, False, None)
    ArgumentError: upsample: give one of output_size and scale_factors
aten.upsample_nearest2d.vec(ones(1, 1, 2, 2), None, [2.0])
    ShapeError: upsample: scale_factors must be 2 numbers, got [2.0]
aten.upsample_nearest1d.vec(ones(1, 1, 2), None, [inf])
    ArgumentError: upsample: scale_factors must be finite, got [inf]
""")

test_what_grid_sampling_refuses = refused("""
turnout.grid_sampler(ones(2, 2), ones(2, 2), 0, 0, False)
    ShapeError: grid_sampler: 'input' must have 4 or 5 dimensions, got shape [2, 2]
F.grid_sample(ones(1, 1, 2), ones(1, 2, 2, 2), align_corners=False)
    ShapeError: grid_sampler: 'input' must have 4 or 5 dimensions, got shape [1, 1, 2]
F.grid_sample(ones(1, 1, 2, 2), ones(2, 2, 2, 2), align_corners=False)
    ShapeError: grid_sampler_2d: 'input' [N, C, ...] and 'grid' [N, ..., 2] do not fit, got shapes [1, 1, 2, 2] and [2, 2, 2, 2]
F.grid_sample(ones(1, 1, 2, 2), ones(1, 2, 2, 3), align_corners=False)
    ShapeError: grid_sampler_2d: 'input' [N, C, ...] and 'grid' [N, ..., 2] do not fit, got shapes [1, 1, 2, 2] and [1, 2, 2, 3]
F.grid_sample(ones(1, 1, 2, 2, 2), ones(1, 2, 2, 2, 2), align_corners=False)
    ShapeError: grid_sampler_3d: 'input' [N, C, ...] and 'grid' [N, ..., 3] do not fit, got shapes [1, 1, 2, 2, 2] and [1, 2, 2,
        2, 2]
F.grid_sample(ones(1, 1, 2, 2), ones(1, 2, 2, 2, dtype=float64), align_corners=False)
    DTypeError: grid_sampler_2d: 'input' and 'grid' must have one dtype, got float32 and float64
F.grid_sample(ones(1, 1, 2, 2, dtype=int64), ones(1, 2, 2, 2, dtype=int64), align_corners=False)
    DTypeError: grid_sampler: grid_sampler_2d is not defined for int64 tensors
turnout.grid_sampler(ones(1, 1, 2, 2), ones(1, 2, 2, 2), 3, 0, False)
    ArgumentError: grid_sampler_2d: interpolation mode 3 with padding mode 0 is not available
turnout.grid_sampler(ones(1, 1, 2, 2), ones(1, 2, 2, 2), 0, 3, False)
    ArgumentError: grid_sampler_2d: interpolation mode 0 with padding mode 3 is not available
F.grid_sample(ones(1, 1, 2, 2, 2), ones(1, 2, 2, 2, 3), mode="bicubic", align_corners=False)
    ArgumentError: grid_sampler_3d: interpolation mode 2 with padding mode 0 is not available
turnout.affine_grid_generator(ones(1, 2, 3), [1, 1, 2], False)
    ShapeError: affine_grid_generator: 'theta' must be [N, 2, 3] for a size [N, C, H, W], or [N, 3, 4] for [N, C, D, H, W]; got
        shape [1, 2, 3] and size [1, 1, 2]
turnout.pixel_shuffle(ones(2, 2), 2)
    ShapeError: pixel_shuffle: 'self' must have at least 3 dimensions, got shape [2, 2]
turnout.pixel_shuffle(ones(4, 2, 2), 0)
    ShapeError: pixel_shuffle: the factor must be positive, got 0
turnout.pixel_shuffle(ones(3, 2, 2), 2)
    ShapeError: pixel_shuffle: the number of channels, 3, must be a multiple of 4, the square of the factor
turnout.pixel_unshuffle(ones(1, 2, 3), 2)
    ShapeError: pixel_unshuffle: height 2 and width 3 must be multiples of the factor, 2
turnout.pixel_unshuffle(ones(1, 2), 2)
    ShapeError: pixel_unshuffle: 'self' must have at least 3 dimensions, got shape [1, 2]
turnout.pixel_unshuffle(ones(1, 2, 2), -1)
    ShapeError: pixel_unshuffle: the factor must be positive, got -1
turnout.channel_shuffle(ones(4, 2), 2)
    ShapeError: channel_shuffle: 'self' must have at least 3 dimensions, got shape [4, 2]
turnout.channel_shuffle(ones(1, 4, 2), 3)
    ShapeError: channel_shuffle: the number of channels, 4, must be a multiple of the number of groups, 3
turnout.channel_shuffle(ones(1, 4, 2), 0)
    ShapeError: channel_shuffle: groups must be positive, got 0
""")
