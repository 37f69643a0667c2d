"""What statistics, histograms, distances and numerical gradients say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_histograms_refuse = refused("""
turnout.histc(ones(2), bins=0)
    ArgumentError: histc: bins must be positive, got 0
turnout.histc(ones(2), min=2, max=1)
    ArgumentError: histc: the range must be finite and in order, got 2 to 1
turnout.histc(ones(2), max=inf)
    ArgumentError: histc: the range must be finite and in order, got 0 to inf
turnout.histogramdd(ones(3, 2), [2])
    ShapeError: histogramdd: needs one number of bins for each of 2 columns, got [2]
turnout.histogramdd(ones(3, 2), [2, 2], range=[0.0, 1.0])
    ShapeError: histogram: 'range' must be 4 numbers, got 2
turnout.histogramdd(ones(3, 2), [2, 0])
    ArgumentError: histogram: bins must be positive, got 0
turnout.histogram(ones(3), 0)
    ArgumentError: histogram: bins must be positive, got 0
turnout.histogram(ones(3), 2, range=(1.0, 0.0))
    ArgumentError: histogram: the range must be finite and in order, got 1.0 to 0.0
turnout.histogram(ones(3), 2, range=(0.0, inf))
    ArgumentError: histogram: the range must be finite and in order, got 0.0 to inf
turnout.histogramdd(ones(3, 2), [2, 2], range=[0.0, 1.0, 1.0, 0.0])
    ArgumentError: histogram: the range must be finite and in order, got 1.0 to 0.0
turnout.histogram(ones(3), 2, range=(1.0,))
    ShapeError: histogram: 'range' must be 2 numbers, got 1
turnout.histogramdd(ones(3, 2, dtype=int64), [ones(2), ones(2)])
    DTypeError: histogram: needs a float tensor, got int64
turnout.histogramdd(ones(3, 2), [ones(2)])
    ShapeError: histogramdd: needs edges for each of 2 columns, got 1
turnout.histogramdd(ones(3), [ones(2)])
    ShapeError: histogramdd: 'self' must have at least 2 dimensions, got shape [3]
turnout.histogram(ones(3), ones(2, dtype=float64))
    DTypeError: histogram: the edges must have dtype float32, got float64
turnout.histogram(ones(3), ones(2, 2))
    ShapeError: histogram: the edges must have one dimension and an element, got shape [2, 2]
turnout.histogram(ones(3), ones(0))
    ShapeError: histogram: the edges must have one dimension and an element, got shape [0]
turnout.histogram(ones(3), 2, weight=ones(3, dtype=float64))
    DTypeError: histogram: 'weight' must have dtype float32, got float64
turnout.histogramdd(ones(3, 2), [2, 2], weight=ones(3, dtype=float64))
    DTypeError: histogram: 'weight' must have dtype float32, got float64
turnout.histogramdd(ones(3, 2), [2, 2], weight=ones(2))
    ShapeError: histogram: 'weight' must have shape [3], got [2]
turnout.histogram(ones(3), 2, weight=ones(2))
    ShapeError: histogram: 'weight' must have shape [3], got [2]
turnout.histogram(ones(3), tensor([0.0, 1.0]), weight=ones(2))
    ShapeError: histogram: 'weight' must have shape [3], got [2]
turnout.histogram(ones(3, dtype=int64), 2)
    DTypeError: histogram: needs a float tensor, got int64
turnout.histogram(ones(3, dtype=int64), tensor([0, 1]))
    DTypeError: histogram: needs a float tensor, got int64
turnout.histogramdd(ones(3, 2, dtype=int64), [2, 2])
    DTypeError: histogram: needs a float tensor, got int64
""")

test_what_norms_refuse = refused("""
turnout.frobenius_norm(ones(2, 2, 2), [0, 1, 2])
    ShapeError: frobenius_norm: takes at most 2 dims, got [0, 1, 2]
turnout.renorm(ones(2, 2), 0, 0, 1.0)
    ArgumentError: renorm: p must be a positive real number, got 0
turnout.renorm(ones(2, 2), 2, 0, -1.0)
    ArgumentError: renorm: maxnorm must be a real number of at least 0, got -1.0
turnout.renorm(ones(2, 2), 1j, 0, 1.0)
    ArgumentError: renorm: p must be a positive real number, got 1j
turnout.renorm(ones(2, 2), 2, 0, 1j)
    ArgumentError: renorm: maxnorm must be a real number of at least 0, got 1j
turnout.renorm(ones(2), 2, 0, 1.0)
    ShapeError: renorm: 'self' must have at least 2 dimensions, got shape [2]
turnout.cdist(ones(2), ones(2, 2))
    ShapeError: cdist: needs tensors of at least 2 dimensions with equal last ones, got shapes [2] and [2, 2]
turnout.cdist(ones(2, 3), ones(2, 2))
    ShapeError: cdist: needs tensors of at least 2 dimensions with equal last ones, got shapes [2, 3] and [2, 2]
turnout.cdist(ones(2, 2), ones(2, 2), p=-1.0)
    ArgumentError: cdist: p must not be negative, got -1.0
turnout.cdist(ones(2, 2, dtype=complex64), ones(2, 2, dtype=complex64))
    DTypeError: cdist: needs floating-point tensors, got complex64
turnout.cdist(ones(2, 2, dtype=int64), ones(2, 2, dtype=int64))
    DTypeError: cdist: needs floating-point tensors, got int64
aten.cdist(ones(2, 2), ones(2, 2), 2.0, 3)
    ArgumentError: cdist: compute_mode must be 0, 1 or 2, got 3
turnout.pdist(ones(2))
    ShapeError: pdist: 'self' must have 2 dimensions, got shape [2]
turnout.pdist(ones(2, 2), p=-1.0)
    ArgumentError: pdist: p must not be negative, got -1.0
turnout.pdist(ones(2, 2, dtype=complex64))
    DTypeError: pdist: needs floating-point tensors, got complex64
turnout.pdist(ones(2, 2, dtype=int64))
    DTypeError: pdist: needs floating-point tensors, got int64
""")

test_what_numerical_gradients_refuse = refused("""
turnout.gradient(ones(3), edge_order=3)
    ArgumentError: gradient: edge_order must be 1 or 2, got 3
turnout.gradient(ones(3, 3), spacing=[1.0, 2.0, 3.0])
    ShapeError: gradient: needs one spacing for each of 2 dims, got 3
turnout.gradient(ones(3, 3), spacing=[1.0, 2.0], dim=0)
    ShapeError: gradient: needs one spacing for each of 1 dims, got 2
turnout.gradient(ones(3, 3), dim=[0, 0])
    ShapeError: gradient: a dimension occurs twice in [0, 0]
turnout.gradient(ones(3, dtype=uint8))
    DTypeError: gradient: needs a signed dtype, got uint8
turnout.gradient(ones(3, dtype=turnout.bool))
    DTypeError: gradient: needs a signed dtype, got bool
turnout.gradient(ones(3), spacing=(ones(2),))
    ShapeError: gradient: the coordinates of dim 0 must have shape [3], got [2]
turnout.gradient(ones(3), spacing=(ones(3, 1),))
    ShapeError: gradient: the coordinates of dim 0 must have shape [3], got [3, 1]
turnout.gradient(ones(1))
    ShapeError: gradient: dim 0 must have at least 2 elements, got 1
turnout.gradient(ones(2), edge_order=2)
    ShapeError: gradient: dim 0 must have at least 3 elements, got 2
""")

test_what_quantiles_refuse = refused("""
turnout.quantile(ones(0), 0.5)
    ShapeError: quantile: 'self' must not be empty
turnout.nanquantile(ones(0), 0.5)
    ShapeError: nanquantile: 'self' must not be empty
turnout.quantile(ones(2), ones(1, 1))
    ShapeError: quantile: q must be a number or have one dimension, got shape [1, 1]
turnout.quantile(ones(2), ones(1, dtype=float64))
    DTypeError: quantile: q must have dtype float32, got float64
turnout.quantile(ones(2), 0.5, interpolation="cubic")
    ArgumentError: quantile: interpolation must be one of linear, lower, higher, midpoint, nearest, got 'cubic'
turnout.quantile(ones(2, dtype=int64), 0.5)
    DTypeError: quantile: 'self' must be float32 or float64, got int64
turnout.quantile(ones(2), 1.5)
    ArgumentError: quantile: q must lie between 0 and 1, got 1.5
turnout.quantile(ones(2), tensor([0.5, 1.5]))
    ArgumentError: quantile: every q must lie between 0 and 1
turnout.quantile(ones(2), tensor([-0.5]))
    ArgumentError: quantile: every q must lie between 0 and 1
turnout.nanquantile(ones(1), tensor([2.0]))
    ArgumentError: nanquantile: every q must lie between 0 and 1
""")

test_what_reductions_refuse = refused("""
turnout.nansum(ones(2, dtype=complex64))
    DTypeError: nansum is not defined for complex64 tensors
turnout.nanmean(ones(2, dtype=int64))
    DTypeError: nanmean: needs a float tensor, got int64
turnout.nanmean(ones(2, dtype=complex64))
    DTypeError: nanmean: needs a float tensor, got complex64
""")

test_what_sorting_refuses = refused("""
turnout.bucketize(ones(2), ones(2, 2))
    ShapeError: bucketize: boundaries must have one dimension, got shape [2, 2]
""")

test_what_statistics_refuse = refused("""
turnout.diff(tensor(1.0))
    ShapeError: diff: 'self' must have at least one dimension
turnout.diff(ones(3), n=-1)
    ArgumentError: diff: n must not be negative, got -1
turnout.diff(ones(3), prepend=ones(1, 1))
    ShapeError: diff: 'prepend' of shape [1, 1] must have shape [3] except in dim 0
turnout.diff(ones(2, 3), append=ones(3, 1))
    ShapeError: diff: 'append' of shape [3, 1] must have shape [2, 3] except in dim 1
turnout.trapezoid(ones(3, dtype=turnout.bool))
    DTypeError: trapezoid is not defined for bool tensors
turnout.trapezoid(ones(3), ones(3, dtype=turnout.bool))
    DTypeError: trapezoid is not defined for bool tensors
turnout.cumulative_trapezoid(ones(3), ones(2))
    ShapeError: cumulative_trapezoid: x must have as many points as y has along dim 0, got 2 and 3
turnout.trapezoid(ones(3), ones(2))
    ShapeError: trapezoid: x must have as many points as y has along dim 0, got 2 and 3
turnout.cov(ones(2, 3), fweights=ones(1, 3, dtype=int64))
    ShapeError: cov: fweights must have at most one dimension, got shape [1, 3]
turnout.cov(ones(2, 3), aweights=ones(2))
    ShapeError: cov: aweights must have one element for each of 3 observations, got 2
turnout.cov(ones(2, 3), fweights=ones(3))
    DTypeError: cov: fweights must be integers, got float32
turnout.cov(ones(2, 3), aweights=ones(3, dtype=int64))
    DTypeError: cov: aweights must be floats, got int64
turnout.cov(ones(2, 3), fweights=tensor([1, -1, 1]))
    ArgumentError: cov: fweights must not be negative
turnout.cov(ones(2, 2, 2))
    ShapeError: cov: 'self' must have at most 2 dimensions, got shape [2, 2, 2]
turnout.cov(ones(2, 2, dtype=turnout.bool))
    DTypeError: cov is not defined for bool tensors
turnout.corrcoef(ones(2, 2, 2))
    ShapeError: corrcoef: 'self' must have at most 2 dimensions, got shape [2, 2, 2]
turnout.corrcoef(ones(2, 2, dtype=turnout.bool))
    DTypeError: corrcoef: cov is not defined for bool tensors
""")
