"""What random operators say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_distributions_refuse = refused("""
ones(1).random_(5, 3)
    ArgumentError: random_: from must be less than to, got 5 and 3
ones(2).cauchy_(0.0, 0.0)
    ArgumentError: cauchy_: sigma must be positive, got 0.0
ones(2, dtype=int64).cauchy_()
    DTypeError: cauchy_: a continuous distribution needs a floating-point tensor, got int64
ones(2).log_normal_(1.0, 0.0)
    ArgumentError: log_normal_: std must be positive, got 0.0
turnout.normal(arange(2), 1.0)
    DTypeError: normal: mean and std must be floating-point, got int64
turnout.normal(0.0, ones(2, dtype=complex64))
    DTypeError: normal: std must be real, got complex64
turnout.normal(0.0, tensor([1.0, -1.0]))
    ArgumentError: normal: std must not be negative
turnout.normal(ones(2), -1.0)
    ArgumentError: normal: std must not be negative, got -1.0
turnout.normal(0.0, -1.0, [2])
    ArgumentError: normal: std must not be negative, got -1.0
ones(2).geometric_(1.0)
    ArgumentError: geometric_: p must lie between 0 and 1, got 1.0
ones(2).exponential_(0.0)
    ArgumentError: exponential_: lambd must be positive, got 0.0
ones(2, dtype=complex64).geometric_(0.5)
    DTypeError: geometric_: needs an integer or floating-point tensor, got complex64
turnout.multinomial(arange(3), 1)
    DTypeError: multinomial: probabilities must be floating-point, got int64
turnout.multinomial(ones(2, 2, 2), 1)
    ShapeError: multinomial: probabilities must have 1 or 2 dimensions, got shape [2, 2, 2]
turnout.multinomial(ones(3), 0)
    ArgumentError: multinomial: num_samples must be positive, got 0
turnout.multinomial(ones(3), 4)
    ArgumentError: multinomial: 4 samples of 3 categories need replacement
turnout.multinomial(tensor([-1.0, 1.0]), 1)
    ArgumentError: multinomial: a probability is negative, infinite or nan
turnout.multinomial(zeros(3), 1)
    ArgumentError: multinomial: probabilities must not all be 0
turnout.multinomial(ones(0), 1)
    ArgumentError: multinomial: 1 samples of 0 categories need replacement
turnout.multinomial(tensor([inf, 1.0]), 1)
    ArgumentError: multinomial: a probability is negative, infinite or nan
turnout.poisson(tensor([-1.0]))
    ArgumentError: poisson: rates must not be negative
""")

test_what_random_operators_refuse = refused("""
ones(2, dtype=int64).uniform_()
    DTypeError: uniform_: random numbers of a continuous distribution need a floating-point dtype, got int64
turnout.rand(2, dtype=int64)
    DTypeError: rand: random numbers of a continuous distribution need a floating-point dtype, got int64
turnout.randn(2, dtype=int64)
    DTypeError: randn: random numbers of a continuous distribution need a floating-point dtype, got int64
ones(2, dtype=int64).normal_()
    DTypeError: normal_: random numbers of a continuous distribution need a floating-point dtype, got int64
turnout.rand_like(ones(2, dtype=int64))
    DTypeError: rand_like: random numbers of a continuous distribution need a floating-point dtype, got int64
turnout.randn_like(ones(2, dtype=int64))
    DTypeError: randn_like: random numbers of a continuous distribution need a floating-point dtype, got int64
turnout.randint_like(ones(2), ones(2, dtype=int64))
    ShapeError: randint_like: 'high' must be one number, got shape [2]
turnout.randint_like(ones(2), tensor(0))
    ArgumentError: randint_like: low must be less than high, got 0 and 0
turnout.randint(16777217, 16777218, (2,), dtype=float32)
    ArgumentError: randint: no number of float32 lies in the range
ones(2).random_(16777217, 16777218)
    ArgumentError: random_: no number of float32 lies in the range
turnout.randint(3, 3, (2,))
    ArgumentError: randint: low must be less than high, got 3 and 3
turnout.randint(0, 300, (2,), dtype=uint8)
    RangeError: randint: argument 'high - 1' is 299, which does not fit in uint8 (0 to 255); choose another number or a wider
        dtype
turnout.randperm(-1)
    ShapeError: randperm: n must not be negative, got -1
turnout.randperm(300, dtype=uint8)
    RangeError: randperm: argument 'n - 1' is 299, which does not fit in uint8 (0 to 255); choose another number or a wider dtype
ones(2).uniform_(2.0, 1.0)
    ArgumentError: uniform_: 'from' must not be greater than 'to', got 2.0 and 1.0
ones(2).normal_(0.0, -1.0)
    ArgumentError: normal_: std must not be negative, got -1.0
ones(2).bernoulli_(2.0)
    ArgumentError: bernoulli: p must lie between 0 and 1, got 2.0
ones(2).bernoulli_(ones(2, dtype=int64))
    DTypeError: bernoulli_: probabilities must be floating-point, got int64
turnout.bernoulli(ones(2, dtype=int64))
    DTypeError: bernoulli: probabilities must be floating-point, got int64
turnout.bernoulli(tensor([2.0]))
    ArgumentError: bernoulli: probabilities must lie between 0 and 1
turnout.bernoulli(ones(2), 2.0)
    ArgumentError: bernoulli: p must lie between 0 and 1, got 2.0
turnout.rand(2, -1)
    ShapeError: rand: shape [2, -1] has a negative length
aten.rand([-1])
    ShapeError: rand: shape [-1] has a negative length
""")
