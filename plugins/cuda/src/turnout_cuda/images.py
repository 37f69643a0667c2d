"""Images in another size by nearest, linear or cubic interpolation, and the gradients. A thread has a result; in gradients, an
element of the image."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from turnout_arrays.images import CUBIC, EXACT, LINEAR, MODES, NEAREST, is_aligned, step_of
from turnout_cuda.floats import Arrays, computed, kind
from turnout_cuda.programs import NARROW, Programs, name_of

Table = dict[str, Any]
Ints = tuple[int, ...]

_KERNELS = {NEAREST: "resize_nearest", EXACT: "resize_nearest", LINEAR: "resize_linear", CUBIC: "resize_cubic"}
MOST = 1 << 28  # places along a dim are ints of 32 bits in kernels, and so are sums of a few of these numbers


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    arrays = Arrays(xp)

    def run(name: str, mode: str, source: Any, out: Any, image: Ints, results: Ints, rest: Sequence[Any]) -> Any:
        """Start a kernel; `image` and `results` are the lengths of the dims that are resized, `rest` what says how."""
        ndim = len(image)
        if kind(source) is None or not source.size or not out.size or max(*image, *results) >= MOST:
            return NotImplemented
        align = is_aligned(mode, rest)
        dtype = xp.dtype(computed(name_of(source))).type
        scaled = zip(image, results, rest[-ndim:], strict=True)
        steps = [float(step_of(dtype, length, count, align, scale)) for length, count, scale in scaled]
        if not all(map(isfinite, steps)):
            return NotImplemented
        shift = 0.0 if align or mode == NEAREST else 0.5
        given = arrays.packed(source)
        made = arrays.target(out, source.dtype)
        if not programs.apart(made, given):  # neighbours would be read after they were written
            made = xp.empty(out.shape, source.dtype)
        dims = [each for dim in zip(image, results, steps, strict=True) for each in dim]
        narrow = int(max(source.size, made.size) < NARROW)
        args = (given, made, made.size, narrow, ndim, shift, *(1, 1, 1.0) * (3 - ndim), *dims)
        programs.over_elements(name, name_of(source), made.size, args)
        return arrays.deliver(made, out)

    def forward(mode: str) -> Any:
        def kernel(self: Any, output_size: Any, *rest: Any) -> Any:
            *options, out = rest
            return run(_KERNELS[mode], mode, self, out, self.shape[2:], out.shape[2:], options)

        return kernel

    def backward(mode: str) -> Any:
        def kernel(grad_output: Any, output_size: Any, input_size: Any, *rest: Any) -> Any:
            *options, out = rest
            return run(f"{_KERNELS[mode]}_backward", mode, grad_output, out, out.shape[2:], grad_output.shape[2:], options)

        return kernel

    table: Table = {}
    for name, (mode, _) in MODES.items():
        if mode in _KERNELS:
            table[f"{name}.out"] = forward(mode)
            table[f"{name}_backward.grad_input"] = backward(mode)
    return table
