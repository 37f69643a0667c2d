"""Recurrent cells, and the layers that apply a cell along a sequence.

Each layer and direction has the parameters w_ih, w_hh and, with biases, b_ih, b_hh. One list holds the parameters of all layers;
the two directions of a layer are adjacent. A state is [layers * directions, N, hidden].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import ShapeError
from turnout_aten import operators as aten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.tensor.tensor import Tensor

    State = tuple[Tensor, ...]
    Step = Callable[[Tensor, State, Tensor, Any], State]


def _check(name: str, input: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, gates: int) -> None:
    if input.shape[-1:] != w_ih.shape[1:] or hidden.shape[-1:] != w_hh.shape[1:]:
        raise ShapeError(
            f"{name}: 'input' {list(input.shape)} and 'hx' {list(hidden.shape)} do not fit weights {list(w_ih.shape)} and "
            f"{list(w_hh.shape)}"
        )
    if input.shape[:-1] != hidden.shape[:-1]:
        raise ShapeError(f"{name}: 'input' {list(input.shape)} and 'hx' {list(hidden.shape)} must have one batch size")
    rows = gates * hidden.shape[-1]
    if w_ih.shape[0] != rows or w_hh.shape[0] != rows:
        raise ShapeError(f"{name}: weights must have {rows} rows, got shapes {list(w_ih.shape)} and {list(w_hh.shape)}")


# One step from the products of the input with its weights, the state, and the weights and biases of the state.


def _tanh_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Any) -> State:
    return (aten.tanh(aten.add__Tensor(gates, aten.linear(state[0], w_hh, b_hh))),)


def _relu_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Any) -> State:
    return (aten.relu(aten.add__Tensor(gates, aten.linear(state[0], w_hh, b_hh))),)


def _lstm_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Any) -> State:
    hidden, cell = state
    i, f, g, o = aten.chunk(aten.add__Tensor(gates, aten.linear(hidden, w_hh, b_hh)), 4, -1)
    kept = aten.mul__Tensor(aten.sigmoid(f), cell)
    cell = aten.add__Tensor(kept, aten.mul__Tensor(aten.sigmoid(i), aten.tanh(g)))
    return aten.mul__Tensor(aten.sigmoid(o), aten.tanh(cell)), cell


def _gru_step(gates: Tensor, state: State, w_hh: Tensor, b_hh: Any) -> State:
    (hidden,) = state
    i_r, i_z, i_n = aten.chunk(gates, 3, -1)
    h_r, h_z, h_n = aten.chunk(aten.linear(hidden, w_hh, b_hh), 3, -1)
    reset = aten.sigmoid(aten.add__Tensor(i_r, h_r))
    update = aten.sigmoid(aten.add__Tensor(i_z, h_z))
    new = aten.tanh(aten.add__Tensor(i_n, aten.mul__Tensor(reset, h_n)))
    return (aten.add__Tensor(aten.mul__Tensor(aten.sub__Tensor(hidden, new), update), new),)


# The name of the cell, the step, and how many gates it has
TANH, RELU = ("rnn_tanh_cell", _tanh_step, 1), ("rnn_relu_cell", _relu_step, 1)
LSTM, GRU = ("lstm_cell", _lstm_step, 4), ("gru_cell", _gru_step, 3)


def _cell(
    kind: tuple[str, Step, int], input: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> State:
    name, step, gates = kind
    _check(name, input, state[0], w_ih, w_hh, gates)
    return step(aten.linear(input, w_ih, b_ih), state, w_hh, b_hh)


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """tanh(w_ih x + b_ih + w_hh h + b_hh)"""
    return _cell(TANH, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """relu(w_ih x + b_ih + w_hh h + b_hh)"""
    return _cell(RELU, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(hidden, cell) of Hochreiter and Schmidhuber (1997) with forget gates. The gates are in, forget, cell, out."""
    if len(hx) != 2:
        raise ShapeError(f"lstm_cell: 'hx' must be (hidden, cell), got {len(hx)} tensors")
    if hx[0].shape != hx[1].shape:
        raise ShapeError(f"lstm_cell: both tensors of 'hx' must have one shape, got {list(hx[0].shape)} and {list(hx[1].shape)}")
    hidden, cell = _cell(LSTM, input, tuple(hx), w_ih, w_hh, b_ih, b_hh)
    return hidden, cell


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """The cell of Cho et al. (2014). The gates are reset, update, new."""
    return _cell(GRU, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def _layers(
    name: str, kind: tuple[str, Step, int], input: Tensor, hx: State, params: Sequence[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, State]:  # fmt: skip
    """(outputs of the last layer, final states) for [T, N, features], or for [N, T, features] if `batch_first`.

    The inputs of all steps are multiplied with their weights at once.

    # differs from torch: `lstm` refuses cell states of more layers than it has; PyTorch ignores the additional ones.
    """
    each, directions = 4 if has_biases else 2, 2 if bidirectional else 1
    if len(params) != each * num_layers * directions:
        raise ShapeError(f"{name}: num_layers={num_layers} needs {each * num_layers * directions} parameters, got {len(params)}")
    for given in hx:
        if given.shape[0] != num_layers * directions:
            raise ShapeError(f"{name}: 'hx' must hold {num_layers * directions} states, got shape {list(given.shape)}")
    if not aten.unbind__int(input, 1 if batch_first else 0):
        raise ShapeError(f"{name}: the sequence must not be empty, got 'input' of shape {list(input.shape)}")
    x = aten.transpose__int(input, 0, 1) if batch_first else input
    ends: list[State] = []
    for layer in range(num_layers):
        last = layer == num_layers - 1
        outputs = []
        for direction in range(directions):
            which = layer * directions + direction
            state: State = tuple(aten.select__int(h, 0, which) for h in hx)
            made, end = _sequence(kind, x, state, params[each * which : each * which + each], backwards=direction == 1)
            outputs.append(aten.stack(made))
            ends.append(end)
        x = outputs[0] if directions == 1 else aten.cat(outputs, -1)
        if dropout and train and not last:
            x = aten.dropout(x, dropout, True)
    x = aten.transpose__int(x, 0, 1) if batch_first else x
    return x, tuple(aten.stack(parts) for parts in zip(*ends, strict=True))


def _sequence(
    kind: tuple[str, Step, int], x: Tensor, state: State, own: Sequence[Tensor], *, backwards: bool
) -> tuple[list[Tensor], State]:
    """The output of each step of one layer in one direction, in the order of the sequence, and the final state."""
    name, step, gates = kind
    w_ih, w_hh = own[:2]
    b_ih, b_hh = own[2:] or (None, None)
    _check(name, aten.select__int(x, 0, 0), state[0], w_ih, w_hh, gates)
    of_inputs = aten.unbind__int(aten.linear(x, w_ih, b_ih))
    made = []
    for each in reversed(of_inputs) if backwards else of_inputs:
        state = step(each, state, w_hh, b_hh)
        made.append(state[0])
    return made[::-1] if backwards else made, state


def lstm_input(
    input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(output, hidden, cell)"""
    if len(hx) != 2:
        raise ShapeError(f"lstm: 'hx' must be (hidden, cell), got {len(hx)} tensors")
    # differs from torch: an LSTM under `autocast` on `cpu` gives the dtype of its states, as a GRU does in both. PyTorch gives
    # bfloat16 where oneDNN computes the layer, and the dtype of the states where oneDNN is switched off.
    output, (hidden, cell) = _layers(
        "lstm", LSTM, input, tuple(hx), params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )
    return output, hidden, cell


def _of_one_state(name: str, cell: Any) -> Any:
    """The kernel of a layer with one state: (output, hidden)."""

    def layers(
        input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        output, (hidden,) = _layers(
            name, cell, input, (hx,), params, has_biases, num_layers, dropout, train, bidirectional, batch_first
        )
        return output, hidden

    return layers


gru_input = _of_one_state("gru", GRU)
rnn_tanh_input = _of_one_state("rnn_tanh", TANH)
rnn_relu_input = _of_one_state("rnn_relu", RELU)
