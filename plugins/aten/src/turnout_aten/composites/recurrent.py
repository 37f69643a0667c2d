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
    Cell = Callable[..., State]


def _gates(input: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any) -> Tensor:
    made: Tensor = aten.add__Tensor(aten.linear(input, w_ih, b_ih), aten.linear(hidden, w_hh, b_hh))
    return made


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


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """tanh(w_ih x + b_ih + w_hh h + b_hh)"""
    _check("rnn_tanh_cell", input, hx, w_ih, w_hh, 1)
    made: Tensor = aten.tanh(_gates(input, hx, w_ih, w_hh, b_ih, b_hh))
    return made


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """relu(w_ih x + b_ih + w_hh h + b_hh)"""
    _check("rnn_relu_cell", input, hx, w_ih, w_hh, 1)
    made: Tensor = aten.relu(_gates(input, hx, w_ih, w_hh, b_ih, b_hh))
    return made


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(hidden, cell) of Hochreiter and Schmidhuber (1997) with forget gates. The gates are in, forget, cell, out."""
    if len(hx) != 2:
        raise ShapeError(f"lstm_cell: 'hx' must be (hidden, cell), got {len(hx)} tensors")
    if hx[0].shape != hx[1].shape:
        raise ShapeError(f"lstm_cell: both tensors of 'hx' must have one shape, got {list(hx[0].shape)} and {list(hx[1].shape)}")
    hidden, cell = hx
    _check("lstm_cell", input, hidden, w_ih, w_hh, 4)
    i, f, g, o = aten.chunk(_gates(input, hidden, w_ih, w_hh, b_ih, b_hh), 4, -1)
    kept = aten.mul__Tensor(aten.sigmoid(f), cell)
    cell = aten.add__Tensor(kept, aten.mul__Tensor(aten.sigmoid(i), aten.tanh(g)))
    return aten.mul__Tensor(aten.sigmoid(o), aten.tanh(cell)), cell


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """The cell of Cho et al. (2014). The gates are reset, update, new."""
    _check("gru_cell", input, hx, w_ih, w_hh, 3)
    i_r, i_z, i_n = aten.chunk(aten.linear(input, w_ih, b_ih), 3, -1)
    h_r, h_z, h_n = aten.chunk(aten.linear(hx, w_hh, b_hh), 3, -1)
    reset = aten.sigmoid(aten.add__Tensor(i_r, h_r))
    update = aten.sigmoid(aten.add__Tensor(i_z, h_z))
    new = aten.tanh(aten.add__Tensor(i_n, aten.mul__Tensor(reset, h_n)))
    made: Tensor = aten.add__Tensor(new, aten.mul__Tensor(update, aten.sub__Tensor(hx, new)))
    return made


def _single(cell: Callable[..., Tensor]) -> Cell:
    return lambda x, state, *parameters: (cell(x, state[0], *parameters),)


def _layers(
    name: str, cell: Cell, input: Tensor, hx: State, params: Sequence[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, State]:  # fmt: skip
    """(outputs of the last layer, final states) for [T, N, features], or for [N, T, features] if `batch_first`.

    # differs from torch: `lstm` refuses cell states of more layers than it has; PyTorch ignores the additional ones.
    """
    each, directions = 4 if has_biases else 2, 2 if bidirectional else 1
    if len(params) != each * num_layers * directions:
        raise ShapeError(f"{name}: num_layers={num_layers} needs {each * num_layers * directions} parameters, got {len(params)}")
    for given in hx:
        if given.shape[0] != num_layers * directions:
            raise ShapeError(f"{name}: 'hx' must hold {num_layers * directions} states, got shape {list(given.shape)}")
    steps = list(aten.unbind__int(input, 1 if batch_first else 0))
    ends: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            which = layer * directions + direction
            state: State = tuple(aten.select__int(h, 0, which) for h in hx)
            own = params[each * which : each * which + each]
            made = []
            for x in reversed(steps) if direction else steps:
                state = cell(x, state, *own)
                made.append(state[0])
            outputs.append(made[::-1] if direction else made)
            ends.append(state)
        steps = outputs[0] if directions == 1 else [aten.cat(pair, -1) for pair in zip(*outputs, strict=True)]
        if dropout and train and layer < num_layers - 1:
            steps = list(aten.unbind__int(aten.dropout(aten.stack(steps), dropout, True), 0))
    if not steps:
        raise ShapeError(f"{name}: the sequence must not be empty, got 'input' of shape {list(input.shape)}")
    last = tuple(aten.stack(parts) for parts in zip(*ends, strict=True))
    return aten.stack(steps, 1 if batch_first else 0), last


def lstm_input(
    input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(output, hidden, cell)"""
    if len(hx) != 2:
        raise ShapeError(f"lstm: 'hx' must be (hidden, cell), got {len(hx)} tensors")
    output, (hidden, cell) = _layers(
        "lstm", lstm_cell, input, tuple(hx), params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )
    return output, hidden, cell


def gru_input(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(output, hidden)"""
    output, (hidden,) = _layers(
        "gru", _single(gru_cell), input, (hx,), params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )
    return output, hidden


def rnn_tanh_input(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(output, hidden)"""
    output, (hidden,) = _layers(
        "rnn_tanh", _single(rnn_tanh_cell), input, (hx,), params, has_biases, num_layers, dropout, train, bidirectional,
        batch_first,
    )  # fmt: skip
    return output, hidden


def rnn_relu_input(
    input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(output, hidden)"""
    output, (hidden,) = _layers(
        "rnn_relu", _single(rnn_relu_cell), input, (hx,), params, has_biases, num_layers, dropout, train, bidirectional,
        batch_first,
    )  # fmt: skip
    return output, hidden
