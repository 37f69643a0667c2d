"""Dropout in one step: what is kept is drawn, and multiplied, where the composed one takes six."""

from __future__ import annotations

from typing import Any

from turnout.devices import device
from turnout_aten.tensor.random import default_generator
from turnout_cuda.floats import kind
from turnout_cuda.programs import name_of

Table = dict[str, Any]


def kernels(backend: Any) -> Table:
    """The rows of this module: they draw from the generators of the backend's devices."""
    xp = backend.xp

    def native_dropout(input: Any, p: float, train: Any) -> Any:
        if train is False or not 0 <= p < 1 or not input.size or kind(input) is None or not input.flags.c_contiguous:
            return NotImplemented
        where = device(backend.device_type, input.device.id)
        seed, offset = default_generator(where).reserve(input.size)
        made, kept = xp.empty(input.shape, input.dtype), xp.empty(input.shape, "bool")
        rates = float(1 - p), float(1 / (1 - p))
        backend.start_drawing("random_dropout", name_of(input), (input, made, kept), input.size, where, seed, (offset,), rates)
        return made, kept

    return {"native_dropout": native_dropout}
