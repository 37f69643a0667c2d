"""Random numbers in one step, where composed ones take up to six: those written into an array, and what dropout keeps."""

from __future__ import annotations

from typing import Any

from turnout.devices import device
from turnout_aten.tensor.random import default_generator
from turnout_cuda.floats import kind
from turnout_cuda.programs import name_of

Table = dict[str, Any]


def kernels(backend: Any) -> Table:
    """The rows of this module: they draw from the generators of the backend's devices, or from those that they are given."""
    xp = backend.xp

    def serves(array: Any) -> bool:
        return bool(array.size) and kind(array) is not None and array.flags.c_contiguous

    def draw(kernel: str, arrays: tuple[Any, ...], rest: tuple[float, ...], generator: Any = None, words: int = 1) -> None:
        """Start a kernel that takes so many words for each element of the first array."""
        first = arrays[0]
        where = device(backend.device_type, first.device.id)
        source = default_generator(where) if generator is None else generator
        seed, offset = source.reserve(words * first.size)
        offsets = tuple([offset + i * first.size for i in range(words)])
        backend.start_drawing(kernel, name_of(first), arrays, first.size, where, seed, offsets, rest)

    def native_dropout(input: Any, p: float, train: Any) -> Any:
        if train is False or not 0 <= p < 1 or not serves(input):
            return NotImplemented
        made, kept = xp.empty(input.shape, input.dtype), xp.empty(input.shape, "bool")
        draw("random_dropout", (input, made, kept), (float(1 - p), float(1 / (1 - p))))
        return made, kept

    def uniform_(self: Any, from_: float, to: float, generator: Any) -> Any:
        if not from_ <= to or not serves(self):
            return NotImplemented
        return draw("random_uniform", (self,), (float(to - from_), float(from_)), generator)

    def normal_(self: Any, mean: float, std: float, generator: Any) -> Any:
        if not std >= 0 or not serves(self):
            return NotImplemented
        return draw("random_normal", (self,), (float(std), float(mean)), generator, 2)

    def bernoulli_(self: Any, p: float, generator: Any) -> Any:
        if not 0 <= p <= 1 or not serves(self):
            return NotImplemented
        return draw("random_bernoulli", (self,), (float(p),), generator)

    return {"native_dropout": native_dropout, "uniform_": uniform_, "normal_": normal_, "bernoulli_.float": bernoulli_}
