"""Rows of the recurrent layers: all steps of a layer and direction in one call, and the products of all inputs before it.

Calls that record a gradient stay composed of operators, as for every row over a composite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout_kernels.native import code, parts_of, run

# Bytes of a layer's weights, above which the products of BLAS are worth the operators around them
_MOST = 1 << 20
# Rows of the batch that one part takes at a time, and bytes of a vector, as in native/recurrent.h
_ROWS = 4
_VECTOR = 64


def lstm_input(
    input: Any, hx: Sequence[Any], params: Sequence[Any], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    if len(hx) != 2 or hx[0].shape != hx[1].shape:
        return NotImplemented
    return _layers(4, input, hx, params, has_biases, num_layers, dropout and train, bidirectional, batch_first)


def gru_input(
    input: Any, hx: Any, params: Sequence[Any], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    return _layers(3, input, (hx,), params, has_biases, num_layers, dropout and train, bidirectional, batch_first)


def _layers(
    gates: int, input: Any, hx: Sequence[Any], params: Sequence[Any], has_biases: bool, num_layers: int, drops: Any,
    bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """The output of the last layer, and the final states; NotImplemented for what only the composite computes or refuses."""
    directions, each = 2 if bidirectional else 1, 4 if has_biases else 2
    own = [params[at : at + each] for at in range(0, len(params), each)]
    x = input.swapaxes(0, 1) if batch_first and input.ndim == 3 else input
    if drops or len(own) != num_layers * directions or not _fit(gates, x, hx, own, directions, has_biases):
        return NotImplemented
    states = [np.array(state, order="C") for state in hx]  # they become the final states
    (steps, count, _), hidden = x.shape, hx[0].shape[2]
    for layer in range(num_layers):
        made = np.empty((steps, count, directions * hidden), x.dtype)
        for direction in range(directions):
            which = layer * directions + direction
            out = made[:, :, direction * hidden : (direction + 1) * hidden]
            _sequence(gates, x, out, [state[which] for state in states], own[which], backwards=direction == 1)
        x = made
    return (x.swapaxes(0, 1) if batch_first else x, *states)


def _fit(gates: int, x: Any, hx: Sequence[Any], own: Sequence[Sequence[Any]], directions: int, has_biases: bool) -> bool:
    """Whether all arrays have one dtype that is served, and the shapes that the layers need, and the weights are not large."""
    state = hx[0].shape
    if x.dtype.char not in "fd" or x.ndim != 3 or len(state) != 3 or not x.size or not own:
        return False
    (_, count, width), hidden = x.shape, state[2]
    if state != (len(own), count, hidden) or not hidden or hidden * hidden * gates * x.dtype.itemsize > _MOST:
        return False
    for which, arrays in enumerate(own):
        inputs = width if which < directions else directions * hidden
        shapes = [(gates * hidden, inputs), (gates * hidden, hidden), *[(gates * hidden,)] * (2 * has_biases)]
        if [a.shape for a in arrays] != shapes:
            return False
    return all(a.dtype == x.dtype for arrays in (hx, *own) for a in arrays)


def _sequence(gates: int, x: Any, out: Any, states: Sequence[Any], own: Sequence[Any], *, backwards: bool) -> None:
    """One layer in one direction: writes `out`, and the final states over the first ones."""
    (steps, count, width), hidden = x.shape, states[0].shape[1]
    wide, lanes = gates * hidden, _VECTOR // x.dtype.itemsize
    padded = -(-wide // lanes) * lanes
    weights, biases = np.zeros((hidden, padded), x.dtype), np.zeros(padded, x.dtype)
    weights[:, :wide] = own[1].T
    of_inputs = np.matmul(x.reshape(steps * count, width), own[0].T)
    if len(own) > 2:
        of_inputs += own[2]
        biases[:wide] = own[3]
    of_inputs = of_inputs.reshape(steps, count, wide)
    if backwards:
        of_inputs, out = of_inputs[::-1], out[::-1]
    parts = min(-(-count // _ROWS), parts_of(steps * count * hidden * wide // 8))
    sums = np.empty((parts, _ROWS, padded), x.dtype)
    outputs = (out, states[0], states[-1], sums)
    run("recurrent", outputs, (of_inputs, weights, biases), (code(x), gates == 4), parts=parts)


KERNELS: dict[str, Any] = {"lstm.input": lstm_input, "gru.input": gru_input}
