"""What pooling says about a call that it refuses."""

from __future__ import annotations

from rows import refused

test_pooling_is_refused = refused("""
F.max_pool2d(ones(4, 4), 2)
    ShapeError: max_pool2d: 'self' must have 3 or 4 dimensions, none but the batch empty; got shape [4, 4]
F.max_pool2d(ones(1, 4, 4), 2, padding=2)
    ShapeError: max_pool2d: padding [2, 2] must be at most half of what the kernel covers, [2, 2]
F.max_pool2d(ones(1, 9, 9), 2, padding=3, dilation=3)
    ShapeError: max_pool2d: padding [3, 3] must be at most half of what the kernel covers, [4, 4]
F.avg_pool2d(ones(1, 4, 4), 2, divisor_override=0)
    ArgumentError: avg_pool2d: divisor_override must not be 0
aten.avg_pool2d_backward(ones(1, 3, 3), ones(1, 4, 4), [2, 2], [2, 2], [0, 0], False, True, None)
    ShapeError: avg_pool2d_backward: 'grad_output' must have shape [1, 2, 2], got [1, 3, 3]
aten.avg_pool2d_backward(ones(1, 2, 2, dtype=float64), ones(1, 4, 4), [2, 2], [2, 2], [0, 0], False, True, None)
    DTypeError: avg_pool2d_backward: 'grad_output' must have dtype float32, got float64
F.adaptive_avg_pool2d(ones(1, 4, 4, dtype=int64), 2)
    DTypeError: adaptive_avg_pool2d is not defined for int64 tensors
F.adaptive_avg_pool2d(ones(1, 4, 4), (2, 2, 2))
    ShapeError: adaptive_avg_pool2d: 'output_size' must be 2 numbers, got [2, 2, 2]
F.adaptive_avg_pool3d(ones(1, 4, 4, 4, dtype=int64), 2)
    DTypeError: adaptive_avg_pool3d is not defined for int64 tensors
F.adaptive_max_pool2d(ones(1, 4, 4), (2, 2, 2))
    ShapeError: adaptive_max_pool2d: 'output_size' must be 2 numbers, got [2, 2, 2]
aten.fractional_max_pool2d(ones(1, 4, 4), [2, 2], [2, 2], ones(1, 1, 2, dtype=float64))
    DTypeError: fractional_max_pool2d: 'self' and 'random_samples' must have one floating-point dtype, got float32 and float64
aten.fractional_max_pool2d(ones(1, 4, 4), [2, 2], [4, 4], ones(1, 1, 2))
    ShapeError: fractional_max_pool2d: windows of [2, 2] for an output of [4, 4] do not fit 'self' of shape [1, 4, 4]
aten.fractional_max_pool2d(ones(1, 4, 4), [2, 2], [2, 2], ones(1, 2, 2))
    ShapeError: fractional_max_pool2d: 'random_samples' must have shape [1, 1, 2], got [1, 2, 2]
F.max_unpool1d(ones(1, 1, 2), tensor([[[1, 3]]]), 2, output_size=(7,))
    ShapeError: max_unpool1d: output_size [7] must lie within one stride of [4]
""")
