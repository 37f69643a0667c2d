"""Recurrent layers and cells.

A layer holds the parameters of all its layers and directions in the order of the operators (`weight_ih_l0`, `weight_hh_l0`,
`bias_ih_l0`, ...). Sequences of one length go to one operator. A `PackedSequence` is run in pieces with the same number of
sequences, as is a layer with a projection, which no operator has.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from turnout.nn import functional

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import check_count, describe
from turnout_nn import errors
from turnout_nn.descriptions import described
from turnout_nn.module import Module
from turnout_nn.modules.linear import fill_uniform
from turnout_nn.parameters import Parameter, empty_parameter
from turnout_nn.utils.rnn import PackedSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    State = tuple[Tensor, ...]

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

# mode -> how many gates it has, each of hidden_size rows of the weights
GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class RNNBase(Module):
    """What RNN, LSTM and GRU have in common.

    Arguments:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU"
        proj_size: the length of the projected state of an LSTM; 0 for none

    Raises:
        ArgumentError: an argument that there is no layer for.

    Example:
        >>> turnout.nn.RNNBase("GRU", 4, 3).weight_ih_l0.shape
        turnout.Size([9, 4])
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if mode not in GATES:
            raise ArgumentError(f"{name}: mode must be one of {', '.join(GATES)}, got {mode!r}")
        for what, size in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            check_count(name, what, size)
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ArgumentError(errors.no_probability(name, "dropout", dropout))
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(f"{name}: proj_size must be in [0, {hidden_size}), less than hidden_size, got {proj_size}")
        if proj_size and mode != "LSTM":
            raise ArgumentError(f"{name}: proj_size needs an LSTM, got mode {mode!r}")
        if dropout > 0 and num_layers == 1:
            errors.warn(f"{name}: dropout={dropout} has no effect with one layer: none follows the last")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows, out = GATES[mode] * hidden_size, proj_size or hidden_size
        self._names: list[tuple[str, ...]] = []  # the parameters of each layer and direction
        for layer in range(num_layers):
            width = out * self._directions if layer else input_size
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
            for suffix in ("", "_reverse")[: self._directions]:
                for kind, shape in shapes.items():
                    setattr(self, f"{kind}_l{layer}{suffix}", empty_parameter(shape, device, dtype))
                self._names.append(tuple(f"{kind}_l{layer}{suffix}" for kind in shapes))
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def reset_parameters(self) -> None:
        """Draw all parameters from the uniform distribution in ±1/sqrt(hidden_size)."""
        fill_uniform(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need not lie in one block of memory."""

    def extra_repr(self) -> str:
        """The sizes, and what is not the default."""
        return described(
            self, "input_size", "hidden_size", proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0.0,
            bidirectional=False,
        )  # fmt: skip

    def forward(self, input: Any, hx: Any = None) -> Any:
        """(outputs, final state); see the class for their shapes.

        Arguments:
            input: a sequence, a batch of sequences, or a `PackedSequence`
            hx: the initial state; None for zeros
        """
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.ndim not in (2, 3):
            raise ShapeError(f"{type(self).__name__}: the input must have 2 or 3 dimensions, got shape {list(input.shape)}")
        single = input.ndim == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        state = self._state(x, x.shape[1], hx, single)
        outputs, ends = self._layers(x, state, None) if self.proj_size else self._operator(x, state)
        if single:
            return outputs.squeeze(1), self._given(tuple(end.squeeze(1) for end in ends))
        return outputs.transpose(0, 1) if self.batch_first else outputs, self._given(ends)

    def _given(self, state: State) -> Any:
        """A state as the caller has it: one tensor, or (hidden, cell) for an LSTM."""
        return state if self.mode == "LSTM" else state[0]

    def _state(self, x: Tensor, batch: int, hx: Any, single: bool) -> State:
        """The initial state, [layers * directions, batch, length] each. Raises ShapeError for one that does not fit."""
        name, count = type(self).__name__, self.num_layers * self._directions
        if x.shape[-1] != self.input_size:
            raise ShapeError(f"{name}: input_size is {self.input_size}, and the input has vectors of length {x.shape[-1]}")
        lengths = {"hidden": self.proj_size or self.hidden_size} | ({"cell": self.hidden_size} if self.mode == "LSTM" else {})
        if hx is None:
            return tuple(turnout.zeros(count, batch, n, dtype=x.dtype, device=x.device) for n in lengths.values())
        given = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
        if len(given) != len(lengths):
            raise ShapeError(f"{name}: the state must be {len(lengths)} tensors ({', '.join(lengths)}), got {len(given)}")
        for (what, length), tensor in zip(lengths.items(), given, strict=True):
            wanted = [count, length] if single else [count, batch, length]
            if list(tensor.shape) != wanted:
                raise ShapeError(f"{name}: the {what} state must have shape {wanted}, got {list(tensor.shape)}")
        return tuple(tensor.unsqueeze(1) for tensor in given) if single else given

    def _operator(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """All layers by one call."""
        parameters = [parameter for each in self.all_weights for parameter in each]
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, False)
        outputs, *ends = self._call(x, state, parameters, *options)
        return outputs, tuple(ends)

    def _call(self, x: Tensor, state: State, parameters: Sequence[Tensor], *options: Any) -> tuple[Tensor, ...]:
        function: Any = getattr(turnout, self.mode.lower())  # the operator has the name of the mode
        return function(x, state if self.mode == "LSTM" else state[0], parameters, *options)

    # ---- layer by layer

    def _packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, sizes, order, places = input
        counts = sizes.tolist()
        if hx is not None and order is not None:
            given = hx if isinstance(hx, (tuple, list)) else (hx,)
            hx = tuple(each.index_select(1, order) for each in given)
        outputs, ends = self._layers(data, self._state(data, counts[0], hx, single=False), counts)
        if places is not None:
            ends = tuple(end.index_select(1, places) for end in ends)
        return PackedSequence(outputs, sizes, order, places), self._given(ends)

    def _layers(self, x: Tensor, state: State, counts: list[int] | None) -> tuple[Tensor, State]:
        """Outputs and final states for [T, N, features], or for packed data with the number of sequences in each step."""
        ends: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self._directions):
                at = layer * self._directions + direction
                own, parameters = tuple(each[at] for each in state), self.all_weights[at]
                if counts is None:
                    made, end = self._piece(x, own, parameters, backwards=direction == 1)
                else:
                    made, end = self._pieces(x, own, parameters, counts, backwards=direction == 1)
                outputs.append(made)
                ends.append(end)
            x = outputs[0] if len(outputs) == 1 else turnout.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = functional.dropout(x, self.dropout, self.training)
        return x, tuple(turnout.stack(parts) for parts in zip(*ends, strict=True))

    def _pieces(
        self, data: Tensor, state: State, parameters: Sequence[Tensor], counts: list[int], backwards: bool
    ) -> tuple[Tensor, State]:
        """One layer in one direction on packed data: a piece for each run of steps with the same number of sequences.

        Forwards, the states of sequences that have ended leave; backwards, those that begin join.
        """
        runs = [(count, len(list(group))) for count, group in groupby(counts)]
        pieces = list(data.split([count * steps for count, steps in runs]))
        made: list[Tensor] = []
        ended: list[State] = []
        now: State = tuple(each[:0] for each in state) if backwards else state
        for (count, steps), piece in list(zip(runs, pieces, strict=True))[:: -1 if backwards else 1]:
            if backwards:
                now = tuple(turnout.cat([a, each[a.shape[0] : count]]) for a, each in zip(now, state, strict=True))
            elif count < now[0].shape[0]:
                ended.append(tuple(each[count:] for each in now))
                now = tuple(each[:count] for each in now)
            outputs, now = self._piece(piece.reshape((steps, count, -1)), now, parameters, backwards)
            made.append(outputs.reshape((steps * count, -1)))
        ended.append(now)
        return turnout.cat(made[:: -1 if backwards else 1]), tuple(turnout.cat(parts[::-1]) for parts in zip(*ended, strict=True))

    def _piece(self, x: Tensor, state: State, parameters: Sequence[Tensor], backwards: bool) -> tuple[Tensor, State]:
        """One layer in one direction on [T, N, features], from and to states [N, length]."""
        x = x.flip(0) if backwards else x
        if self.proj_size:
            outputs, state = _projected(x, state, parameters)
        else:
            before = tuple(each.unsqueeze(0) for each in state)
            outputs, *after = self._call(x, before, parameters, self.bias, 1, 0.0, False, False, False)
            state = tuple(each.squeeze(0) for each in after)
        return outputs.flip(0) if backwards else outputs, state


def _projected(x: Tensor, state: State, parameters: Sequence[Tensor]) -> tuple[Tensor, State]:
    """An LSTM whose hidden state is projected, Sak et al. (2014)."""
    w_ih, w_hh, *biases, w_hr = parameters
    b_ih, b_hh = biases or (None, None)
    hidden, cell = state
    outputs = []
    for gates in functional.linear(x, w_ih, b_ih).unbind(0):
        i, f, g, o = (gates + functional.linear(hidden, w_hh, b_hh)).chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = functional.linear(o.sigmoid() * cell.tanh(), w_hr)
        outputs.append(hidden)
    return turnout.stack(outputs), (hidden, cell)


class RNN(RNNBase):
    """The recurrent layer of Elman (1990): h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or relu in place of tanh.

    Takes a sequence [T, input_size], a batch [T, N, input_size] ([N, T, input_size] with `batch_first`) or a `PackedSequence`,
    and a state [layers * directions, N, hidden_size]. Returns the states of the last layer at all steps, and the final state. The
    parameters are uniform in ±1/sqrt(hidden_size).

    Raises:
        ArgumentError: an argument that there is no layer for.

    Example:
        >>> outputs, end = turnout.nn.RNN(4, 3)(turnout.zeros(5, 2, 4))
        >>> outputs.shape, end.shape
        (turnout.Size([5, 2, 3]), turnout.Size([1, 2, 3]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        _check_nonlinearity(self, nonlinearity)
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory, Hochreiter and Schmidhuber (1997), with forget gates. The gates are in, forget, cell, out.

    Takes a sequence [T, input_size], a batch [T, N, input_size] ([N, T, input_size] with `batch_first`) or a `PackedSequence`,
    and (hidden, cell), each [layers * directions, N, hidden_size]; hidden has `proj_size` in place of hidden_size if that is
    given. Returns the hidden states of the last layer at all steps, and the final (hidden, cell). The parameters are uniform in
    ±1/sqrt(hidden_size).

    Arguments:
        hidden_size: the length of the cell state
        proj_size: the length to which the hidden state is projected; 0 for none

    Raises:
        ArgumentError: an argument that there is no layer for.

    Example:
        >>> outputs, (hidden, cell) = turnout.nn.LSTM(4, 3, bidirectional=True)(turnout.zeros(5, 2, 4))
        >>> outputs.shape, cell.shape
        (turnout.Size([5, 2, 6]), turnout.Size([2, 2, 3]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        )


class GRU(RNNBase):
    """Gated recurrent units, Cho et al. (2014). The gates are reset, update, new.

    Takes a sequence [T, input_size], a batch [T, N, input_size] ([N, T, input_size] with `batch_first`) or a `PackedSequence`,
    and a state [layers * directions, N, hidden_size]. Returns the states of the last layer at all steps, and the final state. The
    parameters are uniform in ±1/sqrt(hidden_size).

    Raises:
        ArgumentError: an argument that there is no layer for.

    Example:
        >>> outputs, end = turnout.nn.GRU(4, 3, batch_first=True)(turnout.zeros(2, 5, 4))
        >>> outputs.shape, end.shape
        (turnout.Size([2, 5, 3]), turnout.Size([1, 2, 3]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype
        )


# ---- cells


class RNNCellBase(Module):
    """What RNNCell, LSTMCell and GRUCell have in common.

    Arguments:
        input_size: the length of an input
        num_chunks: the number of gates

    Example:
        >>> turnout.nn.RNNCellBase(4, 3, True, num_chunks=2).weight_ih.shape
        turnout.Size([6, 4])
    """

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = empty_parameter((rows, input_size), device, dtype)
        self.weight_hh = empty_parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters from the uniform distribution in ±1/sqrt(hidden_size)."""
        fill_uniform(self, self.hidden_size)

    def extra_repr(self) -> str:
        """The sizes, and what is not the default."""
        return described(self, "input_size", "hidden_size", bias=True)

    def _step(self, function: Any, input: Tensor, hx: Any, parts: int) -> Any:
        """The cell's operator on a batch; a single input [input_size] is a batch of one."""
        name, given = type(self).__name__, (*hx,) if isinstance(hx, (tuple, list)) else (hx,) * parts
        for what, tensor in (("input", input), *(("state", each) for each in given if each is not None)):
            if tensor.ndim not in (1, 2):
                raise ShapeError(f"{name}: the {what} must have 1 or 2 dimensions, got shape {list(tensor.shape)}")
        single = input.ndim == 1
        x = input.unsqueeze(0) if single else input
        if hx is None:
            zeros = turnout.zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)
            state = [zeros] * parts
        else:
            state = [each.unsqueeze(0) for each in given] if single else list(given)
        if x.shape[-1] != self.input_size or any(list(each.shape) != [x.shape[0], self.hidden_size] for each in state):
            raise ShapeError(
                f"{name}({self.extra_repr()}): an input [N, {self.input_size}] and states [N, {self.hidden_size}] are wanted, "
                f"got {list(x.shape)} and {', '.join(str(list(each.shape)) for each in state)}"
            )
        made = function(x, state if parts > 1 else state[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not single:
            return made
        return made.squeeze(0) if parts == 1 else tuple(each.squeeze(0) for each in made)


class RNNCell(RNNCellBase):
    """One step of `RNN`: tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh.

    Takes an input [N, input_size] or [input_size] and a state [N, hidden_size] or [hidden_size].

    Arguments:
        input_size: the length of an input

    Example:
        >>> turnout.nn.RNNCell(4, 3)(turnout.zeros(2, 4)).shape
        turnout.Size([2, 3])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        _check_nonlinearity(self, nonlinearity)
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state.

        Arguments:
            input: the input
            hx: the state; None for zeros
        """
        return self._step(turnout.rnn_tanh_cell if self.nonlinearity == "tanh" else turnout.rnn_relu_cell, input, hx, 1)

    def extra_repr(self) -> str:
        """The sizes, and what is not the default."""
        return described(self, "input_size", "hidden_size", bias=True, nonlinearity="tanh")


class LSTMCell(RNNCellBase):
    """One step of `LSTM`.

    Takes an input [N, input_size] or [input_size] and (hidden, cell), each [N, hidden_size] or [hidden_size].

    Arguments:
        input_size: the length of an input

    Example:
        >>> hidden, cell = turnout.nn.LSTMCell(4, 3)(turnout.zeros(2, 4))
        >>> hidden.shape
        turnout.Size([2, 3])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next (hidden, cell).

        Arguments:
            input: the input
            hx: (hidden, cell); None for zeros
        """
        hidden, cell = self._step(turnout.lstm_cell, input, hx, 2)
        return hidden, cell


class GRUCell(RNNCellBase):
    """One step of `GRU`.

    Takes an input [N, input_size] or [input_size] and a state [N, hidden_size] or [hidden_size].

    Arguments:
        input_size: the length of an input

    Example:
        >>> turnout.nn.GRUCell(4, 3)(turnout.zeros(4), turnout.zeros(3)).shape
        turnout.Size([3])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state.

        Arguments:
            input: the input
            hx: the state; None for zeros
        """
        return self._step(turnout.gru_cell, input, hx, 1)


def _check_nonlinearity(module: Module, nonlinearity: str) -> None:
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError(f"{type(module).__name__}: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")


describe(
    globals(),
    input_size="the length of the vectors of a sequence",
    hidden_size="the length of the state",
    num_layers="the number of layers, each of which reads the outputs of the one below",
    bias="whether there are biases",
    batch_first="whether the batch is the first dimension of inputs and outputs",
    dropout="the probability to drop an output of a layer but the last in training",
    bidirectional="whether a second direction reads the sequence backwards",
    device="where the parameters are",
    dtype="their dtype",
    nonlinearity='"tanh" or "relu"',
)
