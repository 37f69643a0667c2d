"""Layers of `turnout.nn.functional`: what is random, what writes, what chooses between operators."""

from __future__ import annotations

import pytest

import turnout
from turnout import nn
from turnout_aten.nn import functional as F


def test_dropout_of_channels_drops_whole_channels():
    turnout.manual_seed(0)
    for function, shape in ((F.dropout1d, (8, 16, 5)), (F.dropout2d, (8, 16, 2, 3)), (F.dropout3d, (8, 16, 2, 2, 2))):
        made = function(turnout.ones(shape), 0.25).reshape((128, -1))
        assert (made == made[:, :1]).all().item()
        assert {round(v, 4) for v in made[:, 0].tolist()} == {0.0, 1.3333}
        assert 0.1 < (made[:, 0] == 0).float().mean().item() < 0.4


def test_alpha_dropout_keeps_mean_and_variance():
    turnout.manual_seed(0)
    x = turnout.randn(20000)
    made = F.alpha_dropout(x, 0.3, training=True)
    assert abs(made.mean().item()) < 0.05
    assert abs(made.var().item() - 1) < 0.05
    assert F.alpha_dropout(x, 0.3) is x
    channels = F.feature_alpha_dropout(turnout.zeros(4, 50, 3), 0.5, training=True)
    assert (channels == channels[:, :, :1]).all().item()


def test_dropout_in_place_writes_into_its_input():
    x = turnout.ones(100)
    assert F.dropout(x, 1.0, inplace=True) is x
    assert x.sum().item() == 0


def test_instance_norm_moves_the_running_statistics_by_their_mean_over_images():
    mean, var = turnout.zeros(1), turnout.ones(1)
    F.instance_norm(turnout.tensor([[[0.0, 2.0]], [[4.0, 6.0]]]), mean, var, momentum=1.0)
    assert mean.tolist() == [3.0]
    assert var.tolist() == [2.0]


def test_fractional_pooling_draws_its_windows():
    turnout.manual_seed(0)
    x = turnout.arange(121.0).reshape(1, 1, 11, 11)
    made = [F.fractional_max_pool2d(x, 2, output_ratio=0.5).tolist() for _ in range(8)]
    assert any(m != made[0] for m in made)
    values, indices = F.fractional_max_pool2d(x, 2, output_size=5, return_indices=True)
    assert values.flatten().tolist() == indices.flatten().tolist()


def test_embedding_with_max_norm_scales_the_rows_that_are_named():
    weight = turnout.tensor([[3.0, 4.0], [3.0, 4.0]])
    assert F.embedding(turnout.tensor([1]), weight, max_norm=1.0)[0].tolist() == pytest.approx([0.6, 0.8])
    assert weight[0].tolist() == [3.0, 4.0]


def test_attention_in_heads_returns_weights_that_add_up_to_one():
    x, w = turnout.randn(3, 2, 4), turnout.randn(12, 4)
    args = (x, x, x, 4, 2, w, turnout.zeros(12), None, None, False, 0.0, turnout.eye(4), None)
    output, weights = F.multi_head_attention_forward(*args)
    assert output.shape == (3, 2, 4)
    assert weights.sum(-1).flatten().tolist() == pytest.approx([1.0] * 6)
    alone, nothing = F.multi_head_attention_forward(*args, need_weights=False)
    assert nothing is None
    assert alone.flatten().tolist() == pytest.approx(output.flatten().tolist(), abs=1e-5)


# What a batch goes through, and the shape of one element.
OF_BATCHES = {
    "attention": (lambda x: nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)[0], (3, 4)),
    "attention without weights": (
        lambda x: nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x, need_weights=False)[0],
        (3, 4),
    ),
    "encoder": (lambda x: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(x), (3, 4)),
    "decoder": (lambda x: nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)(x, x), (3, 4)),
    "recurrent": (lambda x: nn.LSTM(4, 3, bidirectional=True, batch_first=True)(x)[0], (3, 4)),
    "cell": (lambda x: nn.GRUCell(4, 3)(x), (4,)),
    "linear": (lambda x: nn.Linear(4, 3)(x), (2, 4)),
    "bilinear": (lambda x: nn.Bilinear(4, 4, 3)(x, x), (4,)),
    "convolution": (lambda x: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular")(x), (2, 4, 4)),
    "transposed convolution": (lambda x: nn.ConvTranspose2d(2, 3, 2)(x), (2, 4, 4)),
    "pooling": (lambda x: nn.AdaptiveMaxPool2d(2)(nn.AvgPool2d(2)(x)), (2, 4, 4)),
    "interpolation": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (2, 4, 4)),
    "normalisation": (lambda x: nn.LayerNorm(4)(nn.GroupNorm(1, 2)(x)), (2, 4, 4)),
    "embedding": (lambda x: nn.EmbeddingBag(3, 2)(x.long()), (4,)),
    "unfolding": (lambda x: nn.Fold((4, 4), 2)(nn.Unfold(2)(x)), (2, 4, 4)),
    "softmax": (lambda x: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2], div_value=2.0).log_prob(x), (4,)),
}


@pytest.mark.parametrize("name", OF_BATCHES)
def test_layers_take_empty_batches(name):
    layer, shape = OF_BATCHES[name]
    x = turnout.zeros(0, *shape, requires_grad=True)
    made = layer(x)
    assert made.shape == (0, *layer(turnout.zeros(1, *shape)).shape[1:])
    if made.requires_grad and name != "embedding":
        made.sum().backward()
        assert x.grad.shape == x.shape


def test_the_mean_of_no_losses_is_nan():
    nothing = turnout.zeros(0, 3)
    for target in (nothing, turnout.zeros(0, dtype=turnout.int64)):
        for smoothing in (0.0, 0.1):
            assert F.cross_entropy(nothing, target, label_smoothing=smoothing).isnan()
