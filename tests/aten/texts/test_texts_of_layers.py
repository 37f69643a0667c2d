"""What activations, attention, normalisation, dropout, recurrent layers and embeddings say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_what_activations_refuse = refused("""
turnout.prelu(ones(2), ones(1, dtype=float64))
    DTypeError: prelu: self and weight must have one dtype, got float32 and float64
turnout.prelu(ones(2), ones(2, 2))
    ShapeError: prelu: weight must have at most one dimension, got shape [2, 2]
turnout.prelu(tensor(1.0), ones(2))
    ShapeError: prelu: weight must have one element for a 0-dim tensor, got 2
turnout.prelu(ones(2, 3), ones(2))
    ShapeError: prelu: 2 slopes for 3 channels of a tensor of shape [2, 3]
turnout.prelu(ones(4), ones(4))
    ShapeError: prelu: 4 slopes for 1 channels of a tensor of shape [4]
F.celu(ones(2), 0)
    ArgumentError: celu: alpha must not be 0
aten.elu_backward(ones(2), -1.0, 1.0, 1.0, True, ones(2))
    ArgumentError: elu_backward: alpha must not be negative where the result is given, got -1.0
aten.leaky_relu_backward(ones(2), ones(2), -0.1, True)
    ArgumentError: leaky_relu_backward: negative_slope must not be negative where the result is given, got -0.1
F.logsigmoid(ones(2, dtype=int64))
    DTypeError: log_sigmoid_forward: log_sigmoid is not defined for int64 tensors
F.rrelu(ones(2), 0.5, 0.1)
    ArgumentError: rrelu: lower must not be greater than upper, got 0.5 and 0.1
F.rrelu(ones(2, dtype=int64))
    DTypeError: rrelu is not defined for int64 tensors
aten.glu_backward(tensor(1.0), tensor(1.0), 0)
    ShapeError: glu_backward: needs at least one dimension, got a 0-dim tensor
aten.glu_backward(ones(1), ones(3), 0)
    ShapeError: glu_backward: the length along dim 0 must be even, got 3 of shape [3]
aten.glu_backward(ones(2, 2), ones(4), 0)
    ShapeError: glu_backward: 'grad_output' of shape [2, 2] does not expand to [2]
""")

test_what_attention_refuses = refused("""
F.scaled_dot_product_attention(ones(2), ones(2), ones(2))
    ShapeError: scaled_dot_product_attention: 'query' must have at least 2 dimensions, got shape [2]
F.scaled_dot_product_attention(ones(2, 2), ones(2, 2, dtype=float64), ones(2, 2))
    DTypeError: scaled_dot_product_attention: query, key and value must have one floating-point dtype, got float32, float64 and
        float32
F.scaled_dot_product_attention(ones(2, 2, dtype=int64), ones(2, 2, dtype=int64), ones(2, 2, dtype=int64))
    DTypeError: scaled_dot_product_attention: query, key and value must have one floating-point dtype, got int64, int64 and int64
F.scaled_dot_product_attention(ones(2, 2), ones(2, 2), ones(2, 2), attn_mask=ones(2, 2), is_causal=True)
    ArgumentError: scaled_dot_product_attention: give attn_mask or is_causal, not both
F.scaled_dot_product_attention(ones(2, 2), ones(2, 2), ones(2, 2), attn_mask=ones(2, 2, dtype=int64))
    DTypeError: scaled_dot_product_attention: 'attn_mask' must be bool or float32, got int64
F.scaled_dot_product_attention(ones(1, 3, 2, 2), ones(1, 2, 2, 2), ones(1, 2, 2, 2), enable_gqa=True)
    ShapeError: scaled_dot_product_attention: 3 heads of the query cannot share 2 of key and value evenly
F.scaled_dot_product_attention(ones(2, 2), ones(1, 2, 2), ones(1, 2, 2), enable_gqa=True)
    DimError: scaled_dot_product_attention: enable_gqa needs tensors of at least 3 dimensions, got [2, 3, 3]
F.scaled_dot_product_attention(ones(1, 3, 2, 2), ones(1, 0, 2, 2), ones(1, 0, 2, 2), enable_gqa=True)
    ShapeError: scaled_dot_product_attention: 3 heads of the query cannot share 0 of key and value evenly
F.scaled_dot_product_attention(ones(2, 2), ones(2, 2), ones(2, 2), dropout_p=2.0)
    ArgumentError: dropout: p must lie between 0 and 1, got 2.0
aten._scaled_dot_product_flash_attention_for_cpu(ones(1, 1, 2, 2), ones(1, 1, 2, 2), ones(1, 1, 2, 2), 0.5)
    ArgumentError: _scaled_dot_product_flash_attention_for_cpu: expected dropout_p=0, got 0.5
aten._scaled_dot_product_flash_attention_for_cpu(ones(2, 2), ones(1, 1, 2, 2), ones(1, 1, 2, 2))
    ShapeError: _scaled_dot_product_flash_attention_for_cpu: 'query' must have 4 dimensions, got shape [2, 2]
""")

test_what_normalisation_refuses = refused("""
F.group_norm(ones(2), 1)
    ShapeError: group_norm: 'input' must be [N, C, ...], got shape [2]
F.batch_norm(ones(2), ones(2), ones(2))
    ShapeError: native_batch_norm: 'input' must be [N, C, ...], got shape [2]
aten.native_batch_norm(ones(2), None, None, None, None, True, 0.1, 1e-5)
    ShapeError: native_batch_norm: 'input' must be [N, C, ...], got shape [2]
F.batch_norm(ones(2, 3), ones(2), ones(3))
    ShapeError: native_batch_norm: 'running_mean' must have shape [3] for 'input' of shape [2, 3], got [2]
F.batch_norm(ones(2, 3), None, None, ones(2), training=True)
    ShapeError: native_batch_norm: 'weight' must have shape [3] for 'input' of shape [2, 3], got [2]
turnout.native_batch_norm(ones(2, 3), None, None, None, None, False, 0.1, 1e-5)
    ArgumentError: native_batch_norm: without training, running_mean and running_var must be given
turnout.batch_norm(ones(2, 3), None, None, None, None, False, 0.1, 1e-5, False)
    ArgumentError: native_batch_norm: without training, running_mean and running_var must be given
F.batch_norm(ones(2, 3), None, None)
    ArgumentError: native_batch_norm: without training, running_mean and running_var must be given
turnout.instance_norm(ones(2, 3, 4), None, None, None, None, False, 0.1, 1e-5, False)
    ArgumentError: instance_norm: without use_input_stats, running_mean and running_var must be given
F.instance_norm(ones(2, 3, 4), use_input_stats=False)
    ArgumentError: instance_norm: without use_input_stats, running_mean and running_var must be given
F.instance_norm(ones(2, 3, 4), ones(2), ones(3), use_input_stats=False)
    ShapeError: instance_norm: 'running_mean' must have shape [3] for 'input' of shape [2, 3, 4], got [2]
ones(2).trace()
    ShapeError: trace: expected a matrix, got shape [2]
turnout.native_batch_norm(ones(2, 3, dtype=int64), None, None, None, None, True, 0.1, 1e-5)
    DTypeError: native_batch_norm is not defined for int64 tensors
""")

test_what_layers_refuse = refused("""
turnout.feature_dropout(ones(2), 0.5, True)
    ShapeError: feature_dropout: 'input' must be [N, C, ...], got shape [2]
F.feature_alpha_dropout(ones(2), 0.5, True)
    ShapeError: feature_alpha_dropout: 'input' must be [N, C, ...], got shape [2]
turnout.dropout(ones(2), 2.0, True)
    ArgumentError: dropout: p must lie between 0 and 1, got 2.0
F.bilinear(ones(2, 3), ones(3, 3), ones(1, 3, 3))
    ShapeError: bilinear: the inputs must have one shape up to the last dim, got [2, 3] and [3, 3]
F.bilinear(ones(2, 3), ones(2, 3), ones(1, 3, 2))
    ShapeError: bilinear: 'weight' of shape [1, 3, 2] does not fit inputs of shapes [2, 3] and [2, 3]
F.bilinear(ones(2, 3), ones(2, 3), ones(3, 3))
    ShapeError: bilinear: 'weight' of shape [3, 3] does not fit inputs of shapes [2, 3] and [2, 3]
F.bilinear(ones(2, 3), ones(2, 3), ones(1, 3, 3), ones(2))
    ShapeError: bilinear: 'bias' must have shape [1], got [2]
""")

test_what_recurrent_layers_refuse = refused("""
turnout.lstm_cell(ones(1, 2), (ones(1, 2), ones(1, 2)), ones(8, 3), ones(8, 2))
    ShapeError: lstm_cell: 'input' [1, 2] and 'hx' [1, 2] do not fit weights [8, 3] and [8, 2]
turnout.gru_cell(ones(1, 2), ones(1, 2), ones(6, 2), ones(6, 3))
    ShapeError: gru_cell: 'input' [1, 2] and 'hx' [1, 2] do not fit weights [6, 2] and [6, 3]
turnout.rnn_tanh_cell(ones(1, 2), ones(2, 2), ones(2, 2), ones(2, 2))
    ShapeError: rnn_tanh_cell: 'input' [1, 2] and 'hx' [2, 2] must have one batch size
turnout.gru_cell(ones(1, 2), ones(1, 2), ones(5, 2), ones(5, 2))
    ShapeError: gru_cell: weights must have 6 rows, got shapes [5, 2] and [5, 2]
turnout.lstm_cell(ones(1, 2), [ones(1, 2)], ones(8, 2), ones(8, 2))
    ShapeError: lstm_cell: 'hx' must be (hidden, cell), got 1 tensors
turnout.lstm(ones(1, 1, 2), [ones(1, 1, 2), ones(1, 1, 2)], [ones(8, 2)], False, 1, 0.0, False, False, False)
    ShapeError: lstm: num_layers=1 needs 2 parameters, got 1
turnout.gru(ones(0, 1, 2), ones(1, 1, 2), [ones(6, 2), ones(6, 2)], False, 1, 0.0, False, False, False)
    ShapeError: gru: the sequence must not be empty, got 'input' of shape [0, 1, 2]
turnout.lstm(ones(1, 1, 2), [ones(1, 1, 2)], [ones(8, 2), ones(8, 2)], False, 1, 0.0, False, False, False)
    ShapeError: lstm: 'hx' must be (hidden, cell), got 1 tensors
turnout.rnn_relu(ones(1, 1, 2), ones(1, 1, 2), [ones(2, 2)], True, 1, 0.0, False, False, False)
    ShapeError: rnn_relu: num_layers=1 needs 4 parameters, got 1
turnout.gru_cell(ones(1, 2), ones(1, 2), ones(6, 2), ones(5, 2))
    ShapeError: gru_cell: weights must have 6 rows, got shapes [6, 2] and [5, 2]
turnout.gru(ones(2, 1, 2), ones(2, 1, 2), [ones(6, 2), ones(6, 2)], False, 1, 0.0, False, False, False)
    ShapeError: gru: 'hx' must hold 1 states, got shape [2, 1, 2]
turnout.lstm_cell(ones(1, 2), (ones(1, 2), ones(2, 2)), ones(8, 2), ones(8, 2))
    ShapeError: lstm_cell: both tensors of 'hx' must have one shape, got [1, 2] and [2, 2]
turnout.lstm(ones(2, 1, 2), [ones(1, 1, 2), ones(2, 1, 2)], [ones(8, 2), ones(8, 2)], False, 1, 0.0, False, False, False)
    ShapeError: lstm: 'hx' must hold 1 states, got shape [2, 1, 2]
""")

test_what_embeddings_refuse = refused("""
F.embedding(tensor([0]), ones(3))
    ShapeError: embedding: 'weight' must have 2 dimensions, got shape [3]
F.embedding(ones(2), ones(3, 2))
    DTypeError: embedding: indices must be int64 or int32, got float32
turnout.embedding(ones(2, 2, 2), tensor([0]))
    ShapeError: embedding: 'weight' must have 2 dimensions, got shape [2, 2, 2]
F.embedding_bag(tensor([0, 1]), ones(3), tensor([0]))
    ShapeError: embedding_bag: 'weight' must have 2 dimensions, got shape [3]
F.embedding_bag(ones(2), ones(3, 2), tensor([0]))
    DTypeError: embedding_bag: indices must be int64 or int32, got float32
F.embedding_bag(tensor([0, 1]), ones(3, 2), tensor([0]), padding_idx=3)
    ArgumentError: embedding_bag: padding_idx must be one of 3 rows, got 3
aten.embedding_bag.padding_idx(ones(3, 2), tensor([0, 1]), tensor([0]), False, 0, False, None, False, 3)
    ArgumentError: embedding_bag: padding_idx must be one of 3 rows, got 3
turnout.embedding_bag(ones(3, 2), tensor([[0, 1]]), tensor([0]))
    ShapeError: embedding_bag: indices and offsets must have one dimension, got shapes [1, 2] and [1]
F.embedding_bag(tensor([0, 1]), ones(3, 2), ones(1))
    DTypeError: embedding_bag: offsets must be int64 or int32, got float32
turnout.embedding_bag(ones(3, 2), tensor([0, 1]), ones(1))
    DTypeError: embedding_bag: offsets must be int64 or int32, got float32
F.embedding_bag(tensor([0, 1]), ones(3, 2), tensor([], dtype=int64), include_last_offset=True)
    ShapeError: embedding_bag: with include_last_offset, offsets must hold at least one number
turnout.embedding_bag(ones(3, 2), tensor([0, 1]), tensor([0]), mode=3)
    ArgumentError: embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got 3
turnout.embedding_bag(ones(3, 2), tensor([0, 1]), tensor([0]), mode=1, per_sample_weights=ones(2))
    ArgumentError: embedding_bag: per_sample_weights need mode 0 (sum), got 1
turnout.embedding_bag(ones(3, 2), tensor([0, 1]), tensor([0]), per_sample_weights=ones(3))
    ShapeError: embedding_bag: per_sample_weights must have the shape of the indices, [2], got [3]
turnout.embedding_bag(ones(3, 2), tensor([0, 1]), tensor([1]))
    DimError: embedding_bag: the first offset must be 0 and none greater than 2, the number of indices
turnout.embedding_bag(ones(3, 2), tensor([0, 1]), tensor([0, 5]))
    DimError: embedding_bag: the first offset must be 0 and none greater than 2, the number of indices
""")
