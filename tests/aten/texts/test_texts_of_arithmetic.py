"""What arithmetic and transforms say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_arithmetic_is_refused = refused("""
-tensor([True])
    DTypeError: neg is not defined for bool tensors; use ~x or logical_not
turnout.add(ones(2), ones(2), alpha=1j)
    DTypeError: add: a complex alpha needs a complex result, this one is float32
turnout.div(ones(2) * 1j, 2, rounding_mode="floor")
    DTypeError: div: rounded division is not defined for complex64 tensors
turnout.bitwise_and(ones(2), 1)
    DTypeError: bitwise_and: a bitwise operation is not defined for float32 tensors
turnout.div(ones(2), 2, rounding_mode="round")
    ArgumentError: div: rounding_mode must be None, 'trunc' or 'floor', got 'round'
aten._fft_r2c(ones(2, 0), [1], 0, True)
    ShapeError: fft: dim 1 of shape [2, 0] has no elements to transform
aten._fft_c2r(ones(2, 2, dtype=complex64), [1], 0, 0)
    ShapeError: fft: the result cannot have 0 elements along dim 1
""")
