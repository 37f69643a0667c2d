"""What losses say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_class_losses_refuse = refused("""
F.nll_loss(tensor(1.0), tensor(0))
    ShapeError: nll_loss: 'self' must have a dimension of classes, got a 0-dim tensor
aten.nll_loss_nd(tensor(1.0), tensor(0))
    ShapeError: nll_loss: 'self' must have a dimension of classes, got a 0-dim tensor
F.nll_loss(ones(2, 3, 4), ones(2, 5, dtype=int64))
    ShapeError: nll_loss: 'target' must have shape [2, 4] for 'self' of shape [2, 3, 4], got [2, 5]
aten.nll_loss2d(ones(2, 3), tensor([0, 1]))
    ShapeError: nll_loss2d: 'self' [N, C, H, W] and 'target' [N, H, W] are expected, got shapes [2, 3] and [2]
F.cross_entropy(ones(2, 3), tensor([0, 1]), label_smoothing=1.5)
    ArgumentError: cross_entropy_loss: label_smoothing must lie between 0.0 and 1.0, got 1.5
F.cross_entropy(tensor(1.0), tensor(0))
    ShapeError: cross_entropy_loss: 'self' must have a dimension of classes, got a 0-dim tensor
F.cross_entropy(ones(2, 3), ones(3, dtype=int64))
    ShapeError: cross_entropy_loss: 'target' of shape [3] and dtype int64 does not fit 'self' of shape [2, 3]
F.cross_entropy(ones(2, 3), ones(2, 2))
    ShapeError: cross_entropy_loss: 'target' of shape [2, 2] and dtype float32 does not fit 'self' of shape [2, 3]
F.cross_entropy(ones(2, 3), ones(2, 3), ones(2))
    ShapeError: cross_entropy_loss: 'weight' must be one number per class, [3], got [2]
""")

test_what_ctc_loss_refuses = refused("""
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2]]), tensor([3.0]), tensor([2]))
    DTypeError: ctc_loss: 'input_lengths' must hold integers, got float32
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2]]), tensor([3]), tensor([2.0]))
    DTypeError: ctc_loss: 'target_lengths' must hold integers, got float32
F.ctc_loss(ones(3), tensor([[1, 2]]), [3], [2])
    ShapeError: ctc_loss: 'log_probs' must be [T, N, C] or [T, C], got shape [3]
F.ctc_loss(ones(3, 1, 4, dtype=int64), tensor([[1, 2]]), [3], [2])
    DTypeError: ctc_loss: expected floating-point log_probs and integer targets, got int64 and int64
F.ctc_loss(ones(3, 1, 4), tensor([[1.0, 2]]), [3], [2])
    DTypeError: ctc_loss: expected floating-point log_probs and integer targets, got float32 and float32
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2]]), [3], [2], blank=4)
    ArgumentError: ctc_loss: blank must be one of the 4 classes, got 4
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2]]), [3], [2, 2])
    ShapeError: ctc_loss: expected one length for each of 1 examples, got 1 and 2
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2]]), [5], [2])
    ArgumentError: ctc_loss: input lengths must lie between 0 and 3 and target lengths must not be negative, got [5] and [2]
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2]]), [3], [-2])
    ArgumentError: ctc_loss: input lengths must lie between 0 and 3 and target lengths must not be negative, got [3] and [-2]
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2]]), [3], [3])
    ShapeError: ctc_loss: 'targets' of shape [1, 2] does not fit a batch of 1 with targets of lengths [3]
F.ctc_loss(ones(3, 1, 4), tensor([[1, 2], [1, 2]]), [3], [2])
    ShapeError: ctc_loss: 'targets' of shape [2, 2] does not fit a batch of 1 with targets of lengths [2]
F.ctc_loss(ones(3, 2, 4), tensor([1, 2]), [3, 3], [2, 1])
    ShapeError: ctc_loss: 'targets' of shape [2] does not fit a batch of 2 with targets of lengths [2, 1]
""")

test_what_value_losses_refuse = refused("""
F.smooth_l1_loss(ones(2), ones(2), beta=-1.0)
    ArgumentError: smooth_l1_loss: beta must not be negative, got -1.0
F.huber_loss(ones(2), ones(2), delta=0.0)
    ArgumentError: huber_loss: delta must be positive, got 0.0
F.binary_cross_entropy(ones(2, dtype=int64), ones(2, dtype=int64))
    DTypeError: binary_cross_entropy is not defined for int64 tensors
F.binary_cross_entropy(ones(2), ones(2, dtype=float64))
    DTypeError: binary_cross_entropy: 'target' must have dtype float32, got float64
aten.binary_cross_entropy(ones(2), ones(3))
    ShapeError: binary_cross_entropy: 'target' must have the shape of 'self', [2], got [3]
F.margin_ranking_loss(ones(2), ones(2), ones(2, 1))
    ShapeError: margin_ranking_loss: all tensors must have equally many dimensions, got shapes [2], [2] and [2, 1]
F.cosine_embedding_loss(ones(2), ones(2), ones(2))
    ShapeError: cosine_embedding_loss: 'target' must have shape [] or [N], and the inputs one dimension more; got shapes [2], [2]
        and [2]
F.cosine_embedding_loss(ones(2, 2), ones(2, 2), ones(2, 2))
    ShapeError: cosine_embedding_loss: 'target' must have shape [] or [N], and the inputs one dimension more; got shapes [2, 2],
        [2, 2] and [2, 2]
F.triplet_margin_loss(ones(2), ones(2), ones(2, 1))
    ShapeError: triplet_margin_loss: all tensors must have equally many dimensions, got shapes [2], [2] and [2, 1]
aten.multi_margin_loss(ones(2, 3), tensor([0, 1]), 3)
    ArgumentError: multi_margin_loss: p must be 1 or 2, got 3
F.multi_margin_loss(ones(2, 3), tensor([0, 1, 2]))
    ShapeError: multi_margin_loss: 'target' of shape [3] does not fit 'self' of shape [2, 3]
F.multi_margin_loss(ones(2, 3), tensor([0, 1]), weight=ones(2))
    ArgumentError: multi_margin_loss: 'weight' must have shape [3], got [2]
F.multi_margin_loss(ones(2, 3), ones(2))
    DTypeError: multi_margin_loss: 'target' must be int64, got float32
F.multilabel_margin_loss(ones(2, 3), tensor([0, 1]))
    ShapeError: multilabel_margin_loss: 'self' [N, C] or [C] and 'target' must have one shape, got [2, 3] and [2]
F.multilabel_margin_loss(ones(2), ones(2))
    DTypeError: multilabel_margin_loss: 'target' must be int64, got float32
F.cosine_similarity(arange(2), arange(2), 0)
    DTypeError: cosine_similarity: floating-point tensors are expected, got int64 and int64
F.binary_cross_entropy_with_logits(ones(2, dtype=int64), ones(2, dtype=int64))
    DTypeError: binary_cross_entropy_with_logits is not defined for int64 tensors
""")
