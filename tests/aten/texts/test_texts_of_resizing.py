"""What resizing says about a call that it refuses."""

from __future__ import annotations

from rows import refused

test_resizing_is_refused = refused("""
aten.upsample_nearest2d(ones(1, 1, 2, 2), [3])
    ShapeError: upsample_nearest2d: 'output_size' must be 2 numbers, got [3]
aten.upsample_nearest1d(ones(1, 1, 2), [3, 3])
    ShapeError: upsample_nearest1d: 'output_size' must be one number, got [3, 3]
aten.upsample_nearest2d(ones(2, 2), [3, 3])
    ShapeError: upsample_nearest2d: 'self' must have 4 dimensions, none but the batch empty; got shape [2, 2]
aten.upsample_nearest2d(ones(1, 1, 2, 2), [0, 3])
    ShapeError: upsample_nearest2d: 'output_size' must be positive, got [0, 3]
aten.upsample_nearest2d(ones(1, 1, 2, 2, dtype=int64), [3, 3])
    DTypeError: upsample_nearest2d: not defined for int64 tensors
aten.upsample_nearest2d_backward(ones(1, 1, 2, 2), [3, 3], [1, 1, 2, 2])
    ShapeError: upsample_nearest2d_backward: 'grad_output' must have shape [1, 1, 3, 3] for an input of [1, 1, 2, 2], got [1, 1,
        2, 2]
F.interpolate(ones(1, 1, 4), size=2, recompute_scale_factor=True)
    ArgumentError: interpolate: recompute_scale_factor needs scale_factor
F.interpolate(ones(1, 1, 4), size=2, mode="linear", antialias=True)
    ArgumentError: interpolate: antialias needs mode bilinear, bicubic or lanczos and 4 dimensions, got 'linear' and 3
F.interpolate(ones(1, 1, 4), size=2, mode="cubic")
    ModeError: interpolate: mode must be one of nearest, nearest-exact, linear, bilinear, bicubic, trilinear, area, lanczos,
        got 'cubic'
F.interpolate(ones(1, 1, 4), size=2, mode="lanczos")
    ModeError: interpolate: mode 'lanczos' does not resize 3 dimensions
F.interpolate(ones(1, 1, 4), size=2, mode="nearest", align_corners=True)
    ArgumentError: interpolate: mode 'nearest' takes no align_corners; linear, bilinear, bicubic and trilinear do
F.interpolate(ones(1, 1, 4), size=(2, 2))
    ArgumentError: interpolate: 'size' must be one number for 'input' of shape [1, 1, 4], got [2, 2]
F.interpolate(ones(1, 1, 4, 4), scale_factor=(2.0, 2.0, 2.0))
    ArgumentError: interpolate: 'scale_factor' must be one number or 2 for 'input' of shape [1, 1, 4, 4], got [2.0, 2.0, 2.0]
F.affine_grid(ones(1, 2, 3, dtype=int64), (1, 1, 2, 2))
    ArgumentError: affine_grid: 'theta' must be floating-point, got int64
F.affine_grid(ones(1, 2, 2), (1, 1, 2, 2))
    ArgumentError: affine_grid: 'theta' of shape [1, 2, 2] does not fit size [1, 1, 2, 2]
F.affine_grid(ones(1, 2, 3), (1, 1, 0, 2))
    ArgumentError: affine_grid: size must be positive, got [1, 1, 0, 2]
""")
