"""What the other functions of turnout.nn.functional say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_a_function_of_a_layer_is_refused = refused("""
F.gelu(ones(2), approximate="sin")
    ArgumentError: gelu: approximate must be 'none' or 'tanh', got 'sin'
F.hardtanh(ones(2, dtype=uint8), -1, 1)
    DTypeError: hardtanh: the limits of a uint8 tensor must not be negative, got -1 and 1
F.glu(tensor(1.0))
    ShapeError: glu: needs at least one dimension, got a 0-dim tensor
F.softmax(ones(2, dtype=int64), 0)
    DTypeError: softmax is not defined for int64 tensors; pass dtype= a floating-point one
aten._softmax(ones(2), 0, True)
    DTypeError: softmax: half_to_float takes float16 tensors, got float32
aten._log_softmax(ones(2), 0, True)
    DTypeError: softmax: half_to_float takes float16 tensors, got float32
aten._softmax_backward_data(ones(2), ones(3), 0, float32)
    ShapeError: softmax_backward_data: grad_output of shape [2] must have the shape of output, [3]
aten.nll_loss_forward(ones(2, 3, 4), ones(2, dtype=int64), None, 1, -100)
    ShapeError: nll_loss: 'self' must be [N, C] or [C], got shape [2, 3, 4]
F.nll_loss(ones(2, 3, dtype=int64), ones(2, dtype=int64))
    DTypeError: nll_loss: needs a float tensor, got int64
F.nll_loss(ones(2, 3), ones(2))
    DTypeError: nll_loss: 'target' must hold class indices in int64 or uint8, got float32
F.nll_loss(ones(2, 3), ones(2, dtype=int64), weight=ones(2))
    ShapeError: nll_loss: 'weight' must be one number per class, [3], got [2]
F.nll_loss(ones(2, 3), ones(2, dtype=int64), weight=ones(3, dtype=float64))
    DTypeError: nll_loss: 'weight' must have dtype float32, got float64
aten.nll_loss_backward(ones(3), ones(2, 3), ones(2, dtype=int64), None, 0, -100, ones(()))
    ShapeError: nll_loss_backward: 'grad_output' must have shape [2], got [3]
aten.nll_loss_backward(ones(2), ones(2, 3), ones(2, dtype=int64), None, 1, -100, ones(()))
    ShapeError: nll_loss_backward: 'grad_output' must have one element, got shape [2]
aten.nll_loss_backward(ones(()), ones(2, 3), ones(2, dtype=int64), None, 1, -100, ones(2))
    ShapeError: nll_loss_backward: 'total_weight' must have one element, got shape [2]
aten.mse_loss(ones(2), ones(2), 3)
    ArgumentError: mse_loss: reduction must be 0 (none), 1 (mean) or 2 (sum), got 3
F.mse_loss(ones(2, dtype=int64), ones(2, dtype=int64))
    DTypeError: mse_loss is not defined for int64 tensors
F.layer_norm(ones(2, 3), [2])
    ShapeError: native_layer_norm: normalized_shape [2] must be the last dims of shape [2, 3]
F.layer_norm(ones(2, 3), [3], weight=ones(2))
    ShapeError: native_layer_norm: 'weight' must have shape [3], got [2]
F.layer_norm(ones(2, 3), [3], weight=ones(3, dtype=float64))
    DTypeError: native_layer_norm: parameters must have the dtype of the input, float32, got float64
aten.native_group_norm(ones(2, 4), None, None, 2, 4, 2, 2, 1e-5)
    ShapeError: native_group_norm: 'input' of shape [2, 4] must have 2 x 4 x 2 elements
F.group_norm(ones(2, 4), 3)
    ShapeError: group_norm: the number of channels, 4, must be a multiple of the number of groups, 3
F.group_norm(ones(2, 4), 2, weight=ones(2))
    ShapeError: group_norm: 'weight' must have shape [4], got [2]
F.local_response_norm(ones(2, 3), 2)
    ArgumentError: local_response_norm: 'input' must have at least 3 dimensions, got 2
F.embedding(tensor([0]), ones(3, 2), padding_idx=3)
    ArgumentError: embedding: padding_idx must name one of 3 rows, got 3
F.embedding_bag(tensor([[0]]), ones(3, 2), mode="min")
    ArgumentError: embedding_bag: mode must be one of sum, mean, max, got 'min'
F.embedding_bag(tensor([[0]]), ones(3, 2), per_sample_weights=ones(2), mode="sum")
    ArgumentError: embedding_bag: per_sample_weights must have the shape of input, [1, 1], got [2]
F.embedding_bag(tensor([[0]]), ones(3, 2), per_sample_weights=ones(1, 1))
    ArgumentError: embedding_bag: per_sample_weights need mode 'sum', got 'mean'
F.embedding_bag(tensor([[0]]), ones(3, 2), offsets=tensor([0]))
    ArgumentError: embedding_bag: a 2-dim input has one bag per row; omit offsets
F.embedding_bag(tensor(0), ones(3, 2))
    ArgumentError: embedding_bag: input must have 1 or 2 dimensions, got shape []
F.embedding_bag(tensor([0]), ones(3, 2))
    ArgumentError: embedding_bag: a 1-dim input needs offsets of one dimension
F.multi_head_attention_forward(*[ones(1, 1, 2)] * 3, 2, 1, None, None, None, None, False, 0.0, ones(2, 2), None)
    ArgumentError: multi_head_attention_forward: the weights of the input projection are missing
F.multi_head_attention_forward(*[ones(1, 1, 2)] * 3, 3, 1, ones(6, 2), None, None, None, False, 0.0, ones(2, 2), None)
    ArgumentError: multi_head_attention_forward: 'query' must have width 3, got 2
F.multi_head_attention_forward(*[ones(1, 1, 3)] * 3, 3, 2, ones(9, 3), None, None, None, False, 0.0, ones(3, 3), None)
    ArgumentError: multi_head_attention_forward: the width 3 must be a multiple of the 2 heads
F.multi_head_attention_forward(*[ones(1, 1, 2)] * 3, 2, 1, ones(6, 2), None, None, None, False, 0.0, ones(2, 2), None,
        is_causal=True)
    ArgumentError: multi_head_attention_forward: is_causal needs the mask in attn_mask as well
F.linear_cross_entropy(ones(2, 3, 4), ones(5, 2, 4), tensor([0, 1]))
    ArgumentError: linear_cross_entropy: a weight of 3 dimensions takes 'input' [N, in], got [2, 3, 4]
F.linear_cross_entropy(ones(2, 3), ones(4, 3), ones(2, 4), ignore_index=0)
    ArgumentError: linear_cross_entropy: ignore_index needs targets that are class indices, not probabilities
F.multi_margin_loss(ones(2, 3), tensor([0, 1]), p=3)
    ArgumentError: multi_margin_loss: p must be 1 or 2, got 3
F.binary_cross_entropy(ones(2), ones(3))
    ArgumentError: binary_cross_entropy: 'target' must have the shape of 'input', [2], got [3]
F.gaussian_nll_loss(ones(2), ones(2), ones(3))
    ArgumentError: gaussian_nll_loss: 'var' of shape [3] does not fit 'input' of shape [2]
F.gaussian_nll_loss(ones(2), ones(2), -1.0)
    ArgumentError: gaussian_nll_loss: var must not be negative, got -1.0
F.gaussian_nll_loss(ones(2), ones(2), -ones(2))
    ArgumentError: gaussian_nll_loss: 'var' must not have negative elements
F.triplet_margin_loss(ones(1, 2), ones(1, 2), ones(1, 2), margin=0)
    ArgumentError: triplet_margin_loss: margin must be positive, got 0
F.triplet_margin_with_distance_loss(ones(1, 2), ones(1, 2), ones(1, 2), margin=0)
    ArgumentError: triplet_margin_with_distance_loss: margin must be positive, got 0
F.triplet_margin_with_distance_loss(ones(1, 2), ones(1, 2), ones(2))
    ShapeError: triplet_margin_with_distance_loss: all tensors must have equally many dimensions, got shapes [1, 2], [1, 2] and
        [2]
F.instance_norm(ones(2, 3, 1))
    ArgumentError: instance_norm: more than one element per channel is needed in training, got shape [2, 3, 1]
F.binary_cross_entropy_with_logits(ones(2), ones(3))
    ArgumentError: binary_cross_entropy_with_logits: 'target' must have the shape of 'input', [2], got [3]
""")
