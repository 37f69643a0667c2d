"""Layers over sequences, losses, initial values and `nn.utils`: what they refuse, and what they promise."""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import turnout
import turnout_nn
from outcomes import refused
from turnout import nn
from turnout.errors import ArgumentError, CallError, ModeError, ShapeError
from turnout_aten.composites import padding

rnn, init, utils = nn.utils.rnn, nn.init, nn.utils
x = turnout.ones


WITHOUT_STATISTICS = nn.BatchNorm1d(1, track_running_stats=False).eval()


def normed() -> Any:
    return utils.parametrizations.weight_norm(nn.Linear(2, 2))


# (error, the call, the whole text)
# fmt: off
REFUSED: list[tuple[type[Exception], Any, str]] = [
    (ArgumentError, lambda: init.calculate_gain("sine"),
        ("calculate_gain: nonlinearity must be one of linear, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, "
         "conv_transpose3d, sigmoid, tanh, relu, selu, leaky_relu, got 'sine'")),
    (ArgumentError, lambda: init.calculate_gain("leaky_relu", True),
        "calculate_gain: the negative slope must be a number, got True"),
    (ShapeError, lambda: init.xavier_normal_(x(2)),
        "nn.init: fan_in and fan_out need a tensor of at least 2 dimensions, got shape [2]"),
    (ArgumentError, lambda: init.kaiming_normal_(x(2, 2), mode="fan"), "nn.init: mode must be 'fan_in' or 'fan_out', got 'fan'"),
    (ShapeError, lambda: init.eye_(x(2)), "eye_: the tensor must have 2 dimensions, got shape [2]"),
    (ShapeError, lambda: init.dirac_(x(2, 2)), "dirac_: the tensor must have 3 to 5 dimensions, got shape [2, 2]"),
    (ArgumentError, lambda: init.dirac_(x(3, 2, 2), 2), "dirac_: groups must divide the 3 output channels, got 2"),
    (ShapeError, lambda: init.orthogonal_(x(2)), "orthogonal_: the tensor must have at least 2 dimensions, got shape [2]"),
    (ArgumentError, lambda: nn.Embedding(-1, 2), "Embedding: sizes must not be negative, got -1 and 2"),
    (ArgumentError, lambda: nn.EmbeddingBag(3, 2, padding_idx=3), "EmbeddingBag: padding_idx must name one of 3 rows, got 3"),
    (ShapeError, lambda: nn.Embedding(3, 2, _weight=x(2, 2)), "Embedding: the weight must have shape [3, 2], got [2, 2]"),
    (ShapeError, lambda: nn.Embedding.from_pretrained(x(2)), "Embedding: embeddings must be a matrix, got shape [2]"),
    (ArgumentError, lambda: nn.RNNBase("CRU", 2, 2), "RNNBase: mode must be one of RNN_TANH, RNN_RELU, LSTM, GRU, got 'CRU'"),
    (ArgumentError, lambda: nn.GRU(2, 0), "GRU: hidden_size must be an integer above 0, got 0"),
    (ArgumentError, lambda: nn.GRU(2, 2, dropout=2), "GRU: dropout must be from 0 to 1, got 2"),
    (ArgumentError, lambda: nn.LSTM(2, 2, proj_size=2), "LSTM: proj_size must be in [0, 2), less than hidden_size, got 2"),
    (ArgumentError, lambda: nn.RNNBase("GRU", 2, 2, proj_size=1), "RNNBase: proj_size needs an LSTM, got mode 'GRU'"),
    (ArgumentError, lambda: nn.RNN(2, 2, nonlinearity="sine"), "RNN: nonlinearity must be 'tanh' or 'relu', got 'sine'"),
    (ShapeError, lambda: nn.RNN(2, 3)(x(2)), "RNN: the input must have 2 or 3 dimensions, got shape [2]"),
    (ShapeError, lambda: nn.RNN(2, 3)(x(4, 3)), "RNN: input_size is 2, and the input has vectors of length 3"),
    (ShapeError, lambda: nn.LSTM(2, 3)(x(4, 2), x(1, 3)), "LSTM: the state must be 2 tensors (hidden, cell), got 1"),
    (ShapeError, lambda: nn.LSTM(2, 3)(x(4, 1, 2), (x(1, 1, 3), x(1, 2, 3))),
        "LSTM: the cell state must have shape [1, 1, 3], got [1, 2, 3]"),
    (ShapeError, lambda: nn.GRUCell(2, 3)(x(1, 1, 2)), "GRUCell: the input must have 1 or 2 dimensions, got shape [1, 1, 2]"),
    (ShapeError, lambda: nn.GRUCell(2, 3)(x(1, 2), x(1, 4)),
        "GRUCell(2, 3): an input [N, 2] and states [N, 3] are wanted, got [1, 2] and [1, 4]"),
    (ShapeError, lambda: nn.MultiheadAttention(4, 2)(x(4), x(4), x(4)),
        ("multi_head_attention_forward: 'query', 'key' and 'value' must all have 2 dimensions, or all 3; "
         "got shapes [4], [4] and [4]")),
    (ShapeError, lambda: nn.Transformer(4, 2, 1, 1, 8)(x(4), x(3, 4)),
        "Transformer: src and tgt must both have 2 dimensions, or both 3; got shapes [4] and [3, 4]"),
    (ShapeError, lambda: nn.ConvTranspose1d(1, 1, 1)(x(3), [3]),
        "ConvTranspose1d: expected an input of 2 or 3 dimensions, got [3]"),
    (ShapeError, lambda: nn.LazyLinear(2)(x(())), "LazyLinear: expected an input of 1 or more dimensions, got []"),
    (ArgumentError, lambda: nn.MultiheadAttention(4, 3), "MultiheadAttention: num_heads must divide embed_dim, got 3 and 4"),
    (ArgumentError, lambda: nn.TransformerEncoderLayer(4, 2, 8, activation="tanh"),
        "transformer layers: activation must be 'relu', 'gelu' or a function, got 'tanh'"),
    (ShapeError, lambda: nn.Transformer(4, 2, 1, 1, 8)(x(3, 1, 4), x(3, 2, 4)),
        "Transformer: src and tgt have batches of 1 and 2"),
    (ShapeError, lambda: nn.Transformer(4, 2, 1, 1, 8)(x(3, 4), x(3, 5)),
        "Transformer: tgt must have vectors of length 4, got 5"),
    (ShapeError, lambda: nn.LinearCrossEntropyLoss(2, 3, weight=x(2)),
        "LinearCrossEntropyLoss: weight must have shape [3], got [2]"),
    (ArgumentError, lambda: nn.LinearCrossEntropyLoss(2, 3, label_smoothing=2),
        "LinearCrossEntropyLoss: label_smoothing must be from 0 to 1, got 2"),
    (ArgumentError, lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 3, [2, 1]),
        "AdaptiveLogSoftmaxWithLoss: cutoffs must be increasing ints from 1 to 2, got [2, 1]"),
    (ArgumentError, lambda: nn.AdaptiveLogSoftmaxWithLoss(2, 3, [1]),
        ("AdaptiveLogSoftmaxWithLoss: the projection of cluster 0 would have the length 0: in_features=2 is too small, or "
         "div_value=4.0 too large")),
    (ShapeError, lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 3, [1])(x(2, 4), turnout.tensor([1])),
        "AdaptiveLogSoftmaxWithLoss: there must be one target for each input, got shapes [2, 4] and [1]"),
    (ArgumentError, lambda: rnn.PackedSequence(x(2)),
        "PackedSequence: batch_sizes is missing; pack_sequence and pack_padded_sequence make it"),
    (ArgumentError, lambda: rnn.PackedSequence(x(2), turnout.ones(2, device="meta")),
        "PackedSequence: batch_sizes must be on the cpu, got meta"),
    (ArgumentError, lambda: rnn.pack_padded_sequence(x(2, 2), [1]),
        "pack_padded_sequence: there must be one length for each of 2 sequences, got 1"),
    (ArgumentError, lambda: rnn.pack_padded_sequence(x(2, 2), [3, 1]),
        "pack_padded_sequence: lengths must be from 1 to 2, the steps of the input, got [3, 1]"),
    (ArgumentError, lambda: rnn.pack_padded_sequence(x(2, 2), [1, 2]),
        "pack_padded_sequence: lengths must not increase, got [1, 2]\n  to fix  pass enforce_sorted=False, which sorts them"),
    (ArgumentError, lambda: rnn.pad_packed_sequence(rnn.pack_sequence([x(2)]), total_length=1),
        "pad_packed_sequence: total_length must be at least 2, the longest length, got 1"),
    (ArgumentError, lambda: rnn.pad_sequence([]), "pad_sequence: sequences must be one or more tensors"),
    (ArgumentError, lambda: rnn.pad_sequence([x(2)], padding_side="top"),
        "pad_sequence: padding_side must be 'left' or 'right', got 'top'"),
    (ShapeError, lambda: rnn.unpad_sequence(x(2, 3), turnout.tensor([2, 1])),
        "unpad_sequence: there must be one length for each of 3 sequences, got 2"),
    (CallError, lambda: utils.skip_init(int), "skip_init: expected the class of a module, got <class 'int'>"),
    (CallError, lambda: utils.skip_init(nn.ReLU), "skip_init: the constructor of ReLU does not take 'device'"),
    (CallError, lambda: utils.vector_to_parameters([1.0], [x(2)]), "vector_to_parameters: vec must be a tensor, got list"),
    (ShapeError, lambda: utils.vector_to_parameters(x(1), [x(2)]),
        "vector_to_parameters: the parameters have 2 elements, and the vector 1"),
    (ArgumentError, lambda: utils.get_total_norm([x(1) / 0], error_if_nonfinite=True),
        ("the norm of order 2.0 of the gradients is inf, so they cannot be scaled\n  to fix  pass "
         "error_if_nonfinite=False to scale them all the same")),
    (ArgumentError, lambda: utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1)),
        "fuse_conv_bn_eval: both modules must be in eval mode\n  to fix  call eval() on them"),
    (ArgumentError, lambda: utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1).eval(), WITHOUT_STATISTICS),
        "fuse_conv_bn_eval: the norm has no running statistics; make it with track_running_stats=True"),
    (ArgumentError, lambda: utils.fuse_linear_bn_eval(nn.Linear(2, 3), nn.BatchNorm1d(2)),
        "fuse_linear_bn_eval: the norm must have 1 or 3 features, got 2"),
    (ArgumentError, lambda: utils.weight_norm(nn.Linear(2, 2), "w"), "weight_norm: Linear has no parameter 'w'"),
    (ArgumentError, lambda: utils.spectral_norm(utils.weight_norm(nn.Linear(2, 2))),
        "spectral_norm: 'weight' of Linear is computed by weight_norm already"),
    (ArgumentError, lambda: utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0),
        "spectral_norm: n_power_iterations must be an integer above 0, got 0"),
    (ArgumentError, lambda: utils.remove_weight_norm(nn.Linear(2, 2)),
        "remove_weight_norm: Linear has no weight_norm of 'weight'"),
    (ArgumentError, lambda: utils.parametrizations.spectral_norm(nn.ReLU()),
        "spectral_norm: ReLU has no parameter or buffer 'weight'"),
    (ArgumentError, lambda: utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0),
        "spectral_norm: n_power_iterations must be an integer above 0, got 0"),
    (ArgumentError, lambda: utils.parametrizations.orthogonal(nn.ReLU()), "orthogonal: ReLU has no parameter or buffer 'weight'"),
    (ModeError,
        lambda: setattr(utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.ReLU()), "weight", x(2, 2)),
        ("a tensor with the parametrization ReLU cannot be assigned: it has no right_inverse\n"
         "  to fix  write one, or assign to what it computes the tensor from, module.parametrizations.NAME.original")),
    (ShapeError, lambda: utils.parametrizations.orthogonal(nn.Linear(2, 2), "bias"),
        "orthogonal: the weight must have at least 2 dimensions, got shape [2]"),
    (ArgumentError, lambda: utils.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="qr"),
        "orthogonal: orthogonal_map must be one of matrix_exp, cayley, householder, got 'qr'"),
    (ArgumentError, lambda: utils.parametrize.register_parametrization(nn.ReLU(), "weight", nn.ReLU()),
        "register_parametrization: ReLU has no parameter or buffer 'weight'"),
    (ShapeError, lambda: utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Flatten(0)),
        "a parametrization must keep the shape [2, 2], got [4]\n  to fix  pass unsafe=True to allow another one"),
    (ArgumentError, lambda: utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled()),
        ("a parametrization must keep the dtype turnout.float32, got turnout.float64\n"
         "  to fix  pass unsafe=True to allow another one")),
    (ArgumentError, lambda: utils.parametrize.remove_parametrizations(nn.Linear(2, 2), "weight"),
        "remove_parametrizations: Linear has no parametrization of 'weight'"),
    (ArgumentError, lambda: utils.parametrize.remove_parametrizations(normed(), "weight", False),
        ("remove_parametrizations: 'weight' is computed from 2 tensors, so there is no original to return to\n  to fix  "
         "pass leave_parametrized=True")),
    (ArgumentError, lambda: utils.parametrize.transfer_parametrizations_and_params(nn.Linear(2, 2), nn.Linear(2, 2), "bias"),
        "transfer_parametrizations_and_params: Linear has no parametrization of 'bias'"),
]
# fmt: on


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.double()


@pytest.mark.parametrize(
    ("error", "call", "text"), REFUSED, ids=lambda value: value.partition("\n")[0] if isinstance(value, str) else ""
)
def test_what_a_layer_refuses_says_what_it_takes(error: type[Exception], call: Any, text: str) -> None:
    assert refused(error, call) == text


F = nn.functional


def test_no_module_repeats_what_a_function_says_of_an_argument() -> None:
    """The docstring of a function describes the arguments of the module that calls it, too."""
    line = re.compile(r"^    (\w+)(?: \(.*?\))?: (.+)$", re.MULTILINE)
    by_functions = {found for name in dir(F) for found in line.findall(getattr(F, name).__doc__ or "")}
    assert ("swap", "whether the distance of `positive` and `negative` counts if it is smaller") in by_functions
    assert "    swap: whether the distance of" in nn.TripletMarginLoss.__doc__
    sources = [path.read_text("utf-8") for path in Path(turnout_nn.__file__).parent.glob("modules/*.py")]
    of_classes = {found for source in sources for found in re.findall(r"^        (\w+): (.+)$", source, re.MULTILINE)}
    of_families = {found for source in sources for found in re.findall(r"""\b(\w+)=["'](.+?)["'][,)]""", source)}
    assert ("num_embeddings", "the number of vectors") in of_classes
    assert ("num_features", "the number of channels") in of_families
    assert (of_classes | of_families) & by_functions == set()


SHARES = (-0.01, 0.0, 1.0, 1.01, math.nan)
PADDED = {"zeros": "constant"}  # what a module calls it: the word of `pad`
# What a module refuses when it is made, and the functions that it calls, in words of their own: the two, and values for both.
RULES: dict[str, tuple[Any, Any, Any]] = {
    "p": (nn.Dropout, lambda p: F.dropout(x(2), p), SHARES),
    "dropout": (lambda p: nn.GRU(2, 2, 2, dropout=p), lambda p: F.dropout(x(2), p), SHARES),
    "label_smoothing": (
        lambda share: nn.LinearCrossEntropyLoss(2, 3, label_smoothing=share),
        lambda share: F.linear_cross_entropy(x(1, 2), x(3, 2), turnout.tensor([0]), label_smoothing=share),
        SHARES,
    ),
    "padding": (
        lambda given: nn.Conv1d(1, 1, 3, *given),
        lambda given: F.conv1d(x(1, 1, 9), x(1, 1, 3), None, *given),
        [(stride, padding) for stride in (1, 2) for padding in ("same", "valid", "full", "")],
    ),
    "padding_mode": (
        lambda mode: nn.Conv1d(1, 1, 3, padding=1, padding_mode=mode),
        lambda mode: F.pad(x(1, 1, 9), (1, 1), PADDED.get(mode, mode)),
        (*PADDED, *{*padding.MODES} - {*PADDED.values()}, "reflection", "symmetric", "edge", ""),
    ),
    "groups": (
        lambda groups: nn.Conv1d(4, 6, 1, groups=groups),
        lambda groups: F.conv1d(x(1, 4, 9), x(6, 4 // (groups or 1), 1), groups=groups),
        (0, 1, 2, 3, 4, 6, 12),
    ),
    "groups of the transposed": (
        lambda groups: nn.ConvTranspose1d(6, 6, 1, groups=groups),
        lambda groups: F.conv_transpose1d(x(1, 6, 9), x(6, 6 // (groups or 1), 1), groups=groups),
        (0, 1, 2, 3, 4, 6, 12),
    ),
    "num_groups": (lambda groups: nn.GroupNorm(groups, 6), lambda groups: F.group_norm(x(1, 6, 2), groups), (-1, 0, 1, 4, 6, 12)),
}


def takes(call: Any, value: Any) -> bool:
    try:
        call(value)
    except turnout.TurnoutError:
        return False
    return True


@pytest.mark.parametrize("rule", RULES)
def test_a_module_takes_what_its_function_takes(rule: str) -> None:
    module, function, values = RULES[rule]
    taken = [value for value in values if takes(function, value)]
    assert 0 < len(taken) < len(values)
    assert [value for value in values if takes(module, value)] == taken


def test_a_module_has_the_defaults_of_its_function() -> None:
    """Their names are the same but for `_`, and for the count of dims, which `batch_norm` does not have."""
    functions = {name.replace("_", ""): getattr(F, name) for name in dir(F)}
    functions |= {"bceloss": F.binary_cross_entropy, "bcewithlogitsloss": F.binary_cross_entropy_with_logits}
    compared = 0
    for name in dir(nn):
        own = name.lower().removeprefix("lazy")
        function = functions.get(own) or functions.get(re.sub(r"\dd$", "", own))
        if not function or not isinstance(getattr(nn, name), type):
            continue
        said = inspect.signature(getattr(nn, name)).parameters
        for parameter in inspect.signature(function).parameters.values():
            default = parameter.default
            if parameter.name not in said or default is parameter.empty:
                continue
            given = said[parameter.name].default
            if isinstance(default, list):  # one number for all dims; [] is the default of a stride
                given = [] if given is None else [given] * max(len(default), 1)
            elif parameter.name == "bias":  # whether there is one, or which
                given = None if given is True else given
            assert given == default, f"{name}: {parameter.name}"
            compared += 1
    assert compared > 240


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).T

    def right_inverse(self, x: Any) -> Any:
        return x.triu()


class Halved(nn.Module):
    def forward(self, x: Any) -> Any:
        return x / 2

    def right_inverse(self, x: Any) -> Any:
        return 2 * x


def test_parametrizations_are_applied_one_after_the_other_and_inverted_by_an_assignment() -> None:
    parametrize = utils.parametrize
    layer = nn.Linear(2, 2, bias=False)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert layer.parametrizations.weight.original is weight  # an optimiser still has it
    parametrize.register_parametrization(layer, "weight", Halved())
    layer.weight = turnout.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert weight.tolist() == [[2.0, 4.0], [0.0, 8.0]]
    assert layer(turnout.tensor([1.0, 0.0])).tolist() == [1.0, 2.0]
    assert (type(layer).__name__, isinstance(layer, nn.Linear)) == ("ParametrizedLinear", True)
    assert "weight" in dir(layer)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other) is type(layer)
        assert other.weight.tolist() == layer.weight.tolist()
        other.weight = turnout.zeros(2, 2)
        assert layer.weight.tolist() == [[1.0, 2.0], [2.0, 4.0]]
    with parametrize.cached():
        assert layer.weight is layer.weight
        layer.weight = turnout.eye(2)
        assert layer.weight.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert layer.weight is not layer.weight
    parametrize.remove_parametrizations(layer, "weight")
    assert (type(layer), layer.weight is weight, parametrize.is_parametrized(layer)) == (nn.Linear, True, False)
    assert weight.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_block_with_a_cache_ends_where_an_error_leaves_it() -> None:
    layer = utils.parametrizations.weight_norm(nn.Linear(2, 2))
    with pytest.raises(KeyError), utils.parametrize.cached():
        raise KeyError
    assert layer.weight is not layer.weight


def test_a_layer_that_is_made_without_its_values_is_on_its_device() -> None:
    layer = utils.skip_init(nn.Linear, 2, 3, dtype=turnout.float64)
    assert (layer.weight.device.type, layer.weight.dtype, layer.weight.requires_grad) == ("cpu", turnout.float64, True)


def test_an_lstm_whose_projection_takes_the_first_elements_computes_as_one_without_it() -> None:
    """The module writes the step of a projected LSTM itself; that of the other is the operator's."""
    projected, plain = (nn.LSTM(2, 4, dtype=turnout.float64, proj_size=size) for size in (3, 0))
    state = projected.state_dict()
    state["weight_hr_l0"].copy_(turnout.eye(3, 4))
    plain.load_state_dict({n: F.pad(w, (0, 1)) if n == "weight_hh_l0" else w for n, w in state.items() if n != "weight_hr_l0"})
    given = turnout.randn(5, 1, 2, dtype=turnout.float64)
    hidden, cell = turnout.randn(2, 1, 1, 4, dtype=turnout.float64)
    outputs, (last, after) = projected(given, (hidden[..., :3], cell))
    expected, (expected_last, expected_after) = plain(given, (hidden, cell))
    turnout.testing.assert_close((outputs, last, after), (expected[..., :3], expected_last[..., :3], expected_after))


def test_dropout_of_one_recurrent_layer_warns() -> None:
    with pytest.warns(UserWarning, match=r"^GRU: dropout=0.5 has no effect with one layer: none follows the last$"):
        nn.GRU(2, 2, dropout=0.5)


def test_initial_values_of_nothing_warn() -> None:
    with pytest.warns(UserWarning, match=r"^nn.init: a tensor without elements has nothing to initialise$"):
        init.kaiming_uniform_(x(0, 2))


def test_initial_values_come_from_the_generator_and_are_not_recorded() -> None:
    for name in ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "kaiming_normal_", "orthogonal_"):
        weights = [turnout.empty(3, 4, requires_grad=True) for _ in range(2)]
        for weight in weights:
            getattr(init, name)(weight, generator=turnout.Generator().manual_seed(3))
        assert weights[0].tolist() == weights[1].tolist()
        assert weights[0].is_leaf


def test_vectors_of_parameters_go_there_and_back() -> None:
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    other = nn.Linear(2, 3)
    utils.vector_to_parameters(vector, other.parameters())
    assert turnout.equal(other.weight, layer.weight)
    assert turnout.equal(other.bias, layer.bias)


def test_a_row_for_padding_is_zero_and_is_not_trained() -> None:
    table = nn.Embedding(3, 2, padding_idx=-1)
    table(turnout.tensor([0, 2])).sum().backward()
    assert table.weight[2].tolist() == [0.0, 0.0]
    assert table.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    assert not nn.Embedding.from_pretrained(x(3, 2)).weight.requires_grad


def test_adaptive_softmax_predicts_the_class_of_the_largest_probability() -> None:
    turnout.manual_seed(0)
    softmax, inputs = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0), turnout.randn(5, 8)
    probabilities = softmax.log_prob(inputs)
    assert probabilities.exp().sum(1).tolist() == pytest.approx([1.0] * 5, abs=1e-5)
    target = softmax.predict(inputs)
    output, loss = softmax(inputs, target)
    assert output.tolist() == pytest.approx(probabilities.amax(1).tolist(), abs=1e-6)
    assert loss.item() == pytest.approx(-output.mean().item())


def test_a_causal_mask_hides_what_comes_later() -> None:
    turnout.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    mask, inputs = nn.Transformer.generate_square_subsequent_mask(4), turnout.randn(4, 1, 8)
    changed = inputs.clone()
    changed[3] += 1
    for causal in (False, True):
        assert turnout.allclose(layer(inputs, mask, is_causal=causal)[:3], layer(changed, mask, is_causal=causal)[:3], atol=1e-6)


# The first of these that a class takes makes a module of it.
MADE_WITH: list[tuple[Any, ...]] = [(), (2,), (2, 2), (2, 2, 2), (4, 2)]
MADE: dict[str, Any] = {
    "RNNBase": lambda: nn.RNNBase("GRU", 2, 2),
    "AdaptiveLogSoftmaxWithLoss": lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 4, [1]),
    "Transformer": lambda: nn.Transformer(4, 2, 1, 1, 8),
    "TransformerDecoder": lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1),
    "TransformerDecoderLayer": lambda: nn.TransformerDecoderLayer(4, 2, 8),
    "TransformerEncoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8),
}
MODULES = [each for each in (getattr(nn, name) for name in dir(nn)) if isinstance(each, type) and issubclass(each, nn.Module)]
SHAPES = [
    (),
    (0,),
    (1,),
    (2,),
    (4,),
    (2, 2),
    (0, 4),
    (2, 0),
    (2, 2, 4),
    (1, 2, 0),
    (2, 2, 2, 2),
    (1, 1, 4, 4),
    (2,) * 5,
    (1,) * 6,
]


def made(name: str) -> Any:
    for given in () if name in MADE else MADE_WITH:
        with contextlib.suppress(Exception):
            return getattr(nn, name)(*given).eval()
    return MADE[name]().eval()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [each.__name__ for each in MODULES if each.forward is not nn.Module.forward])
def test_inputs_of_any_dims_are_computed_or_refused_in_words(name: str) -> None:
    found = []
    module = made(name)
    for shape in SHAPES:
        for dtype in (turnout.float32, turnout.int64):
            one, sized = turnout.ones(shape, dtype=dtype), [(turnout.ones(shape), [3])] if "ConvTranspose" in name else []
            for inputs in [(one,), (one, one), (one, turnout.ones(2, 2)), (one, one, one), *sized]:
                try:
                    (made(name) if "Lazy" in name else module)(*inputs)
                except turnout.errors.TurnoutError:
                    pass
                except TypeError as error:  # another number of arguments
                    if "argument" not in str(error):
                        found.append((inputs, error))
                except Exception as error:  # noqa: BLE001 - nothing else may come
                    found.append((inputs, error))
    assert not found, f"{name}: {found[:3]}"


# ---- arguments of a wrong kind

# Positional arguments with which constructors work, tried in turn.
WORKING = ((), (2,), (2, 2), (4, 2, 2), (4, 2, 2, 2), (4, 8, [2]), (nn.Linear(2, 2), 2), (nn.TransformerEncoderLayer(4, 2), 1))
WORKING += ((nn.TransformerDecoderLayer(4, 2), 1), (2, 1), ("RNN_TANH", 2, 2))
# What the constructor of a container says of what it is given, which is named as a module or a pair.
OF_CONTENTS = {"ModuleDict", "ModuleList", "ParameterDict", "ParameterList"}


def _first_line(cls, **arguments):
    """What is wrong, or "" for a value that nothing asks."""
    try:
        cls(**arguments)
    except (turnout.TurnoutError, ValueError) as error:
        return str(error).partition("\n")[0]
    return ""


CONSTRUCTED = [each.__name__ for each in MODULES if each.__name__ not in OF_CONTENTS]


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_an_argument_of_a_wrong_kind_is_named_by_the_module_it_was_given_to(name):
    cls = getattr(nn, name)
    parameters = [each for each in inspect.signature(cls).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    needed = [each.name for each in parameters if each.default is each.empty]
    for given in WORKING:
        working = dict(zip(needed, given, strict=False))
        try:
            cls(**working)
        except (TypeError, ValueError, RuntimeError, AttributeError):
            continue
        break
    else:
        assert name.startswith("FractionalMaxPool")  # which need one of two sizes
        working["output_size"] = 1
    for parameter in parameters:
        for wrong in (object(), *["a"] * ("str" not in str(parameter.annotation))):
            text = _first_line(cls, **{**working, parameter.name: wrong})
            if text and not text.startswith("device 'a': "):
                assert parameter.name.strip("_") in text, (parameter, text)
                assert "::" not in text or parameter.name in ("device", "dtype"), (parameter, text)


def test_texts_of_arguments_of_a_wrong_kind_of_modules():
    texts = {
        lambda: nn.Linear("a", 1): "Linear: argument 'in_features' must be an int, got str 'a'",
        lambda: nn.LazyLinear(2.5): "LazyLinear: argument 'out_features' must be an int, got float 2.5",
        lambda: nn.Conv2d(2, 2, (1, "a")): "Conv2d: argument 'kernel_size' must be an int or a tuple of ints, got tuple (1, 'a')",
        lambda: nn.Transformer("a"): "Transformer: argument 'd_model' must be an int, got str 'a'",
        lambda: nn.TransformerEncoder(2, 1): "TransformerEncoder: argument 'encoder_layer' must be a Module, got int 2",
        lambda: turnout.optim.SGD([x(2)]).step(3): "SGD.step: closure must be callable, got int",
        lambda: turnout.optim.LBFGS([x(2)]).step(3): "LBFGS.step: closure must be callable, got int",
        lambda: nn.ReLU().named_modules("x").__next__(): "named_modules: argument 'memo' must be a set or None, got str 'x'",
    }
    assert {call: refused(CallError, call) for call in texts} == texts
    text = "ConcatDataset: index 3 is outside of 2 samples"
    assert refused(IndexError, lambda: turnout.utils.data.ConcatDataset([[1, 2]])[3]) == text
