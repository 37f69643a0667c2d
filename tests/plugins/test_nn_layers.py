"""Layers of `turnout.nn.functional`: what is random, what writes, what chooses between operators."""

from __future__ import annotations

import pytest

import turnout
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
