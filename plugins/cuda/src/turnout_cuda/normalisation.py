"""Layer, group, RMS and batch normalisation and their gradients.

Parameters and statistics are converted to the dtype that is computed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from turnout.dtypes import dtype_named
from turnout_aten.dtypes import EPSILON
from turnout_aten.shapes.normalisation import row_length
from turnout_cuda.floats import Kernels, computed, kind
from turnout_cuda.programs import DTYPES, Programs, name_of

Table = dict[str, Any]
_ROWS = 8  # rows that a block of `parameters_of_columns` reads at a time
_PARTS = 64  # into which the rows are split at most


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    return _Rows(xp, programs).table() | _Batches(xp, programs).table()


def _floats(*arrays: Any) -> bool:
    return all(array is None or name_of(array) in DTYPES for array in arrays)


class _Rows(Kernels):
    """Normalisation of rows."""

    def table(self) -> Table:
        """Operator -> function."""
        return {
            "native_layer_norm.out": self.layer_norm,
            "native_layer_norm_backward": self.layer_norm_backward,
            "native_group_norm.out": self.group_norm,
            "native_group_norm_backward": self.group_norm_backward,
            "rms_norm": self.rms_norm,
        }

    def run(
        self, input: Any, weight: Any, bias: Any, eps: float, rows: int, places: tuple[int, int, int, int], out: Any,
        rms: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Normalise into a contiguous output. Returns mean and reciprocal deviation; `places` begins with the length."""
        dtype = name_of(input)
        wide = computed(dtype)
        mean, rstd = self.xp.empty(rows, wide), self.xp.empty(rows, wide)
        scale, has_scale = self.arrays.parameter(weight, wide, mean)
        shift, has_shift = self.arrays.parameter(bias, wide, mean)
        args = (
            self.arrays.packed(input), scale, shift, out, mean, rstd, rows, *places, has_scale, has_shift, int(rms), float(eps),
        )  # fmt: skip
        self.programs.over_rows("normalise", dtype, rows, places[0], args)
        return mean, rstd

    def normalise(
        self, input: Any, weight: Any, bias: Any, eps: float, places: tuple[int, int, int, int], out: Any, mean: Any, rstd: Any
    ) -> Any:
        """`run` into outputs of any dtype and layout: one mean and one deviation for each row."""
        if kind(input) is None or not input.size or not _floats(weight, bias):
            return NotImplemented
        made = self.arrays.target(out, input.dtype)
        found = self.run(input, weight, bias, eps, mean.size, places, made)
        for value, target in zip((made, *found), (out, mean, rstd), strict=True):
            self.arrays.deliver(value, target)
        return None

    def layer_norm(
        self, input: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float, out: Any, mean: Any, rstd: Any
    ) -> Any:
        length = prod(normalized_shape)
        return self.normalise(input, weight, bias, eps, (length, 1, length, 1), out, mean, rstd)

    def group_norm(
        self, input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float, out: Any, mean: Any,
        rstd: Any,
    ) -> Any:  # fmt: skip
        channels = C // group
        return self.normalise(input, weight, bias, eps, (channels * HxW, HxW, channels, group), out, mean, rstd)

    def rms_norm(self, input: Any, normalized_shape: Sequence[int], weight: Any, eps: float | None) -> Any:
        length = row_length(input, normalized_shape, weight)
        served = length and input.flags.c_contiguous and kind(input) is not None
        if not served or (weight is not None and kind(input, weight) is None):
            return NotImplemented
        made = self.xp.empty(input.shape, input.dtype)
        eps = EPSILON[dtype_named(computed(name_of(input)))] if eps is None else eps
        self.run(input, weight, None, eps, input.size // length, (length, 1, length, 1), made, rms=True)
        return made

    # ---- gradients

    def of_input(
        self, grad: Any, input: Any, weight: Any, mean: Any, rstd: Any, rows: int, places: tuple[int, int, int, int]
    ) -> Any:
        """The gradient of the input; mean and rstd are in the dtype that is computed in."""
        made = self.xp.empty(input.shape, input.dtype)
        scale, has_scale = self.arrays.parameter(weight, computed(name_of(input)), mean)
        args = (grad, input, scale, mean, rstd, made, rows, *places, has_scale)
        self.programs.over_rows("normalise_backward", name_of(input), rows, places[0], args)
        return made

    def layer_norm_backward(
        self, grad_out: Any, input: Any, normalized_shape: Sequence[int], mean: Any, rstd: Any, weight: Any, bias: Any,
        output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        dtype = kind(input, grad_out)
        shape = tuple(normalized_shape)
        fits = input.size and grad_out.shape == input.shape and input.shape[input.ndim - len(shape) :] == shape
        if dtype is None or not fits or not _floats(mean, rstd, weight, bias) or not _whole(input, grad_out):
            return NotImplemented
        length = prod(shape)
        rows, wide = input.size // length, computed(dtype)
        if mean.size != rows or rstd.size != rows:
            return NotImplemented
        middle, factor = self.arrays.packed(mean, wide), self.arrays.packed(rstd, wide)
        found: list[Any] = [None, None, None]
        if output_mask[0]:
            found[0] = self.of_input(grad_out, input, weight, middle, factor, rows, (length, 1, length, 1))
        wanted = [at for at, p in ((1, weight), (2, bias)) if output_mask[at] and p is not None]
        if wanted:
            parts = max(1, min(rows // (4 * _ROWS), _PARTS))
            sums = self.xp.empty((2, parts, length), wide)
            args = (grad_out, input, middle, factor, sums[0], sums[1], rows, length)
            self.programs.start("parameters_of_columns", dtype, (-(-length // 32), parts), (32, _ROWS), args)
            for at in wanted:
                parameter = weight if at == 1 else bias
                total = sums[at - 1].sum(0) if parts > 1 else sums[at - 1]
                found[at] = total.reshape(parameter.shape).astype(parameter.dtype)
        return tuple(found)

    def group_norm_backward(
        self, grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int, group: int,
        output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        dtype = kind(input, grad_out)
        fits = input.size and input.size == N * C * HxW and grad_out.shape == input.shape and mean.size == rstd.size == N * group
        if dtype is None or not fits or not _floats(mean, rstd, weight) or not _whole(input, grad_out):
            return NotImplemented
        wide, channels = computed(dtype), C // group
        middle, factor = self.arrays.packed(mean, wide), self.arrays.packed(rstd, wide)
        found: list[Any] = [None, None, None]
        if output_mask[0]:
            places = (channels * HxW, HxW, channels, group)
            found[0] = self.of_input(grad_out, input, weight, middle, factor, N * group, places)
        if output_mask[1] or output_mask[2]:
            sums = self.xp.empty((2, C), wide)
            args = (grad_out, input, middle, factor, sums[0], sums[1], N, C, HxW, group, channels)
            self.programs.over_groups("parameters_of_channels", dtype, C, N * HxW, args, most=1024)
            kept = grad_out.dtype if weight is None else weight.dtype
            found[1:] = [sums[at].astype(kept) if output_mask[at + 1] else None for at in (0, 1)]
        return tuple(found)


def _whole(*arrays: Any) -> bool:
    """Whether all are contiguous: what results otherwise look like in memory is up to the kernels below."""
    return all(array.flags.c_contiguous for array in arrays)


class _Batches(Kernels):
    """Normalisation of channels over a batch."""

    def table(self) -> Table:
        """Operator -> function."""
        return {
            "_native_batch_norm_legit.no_stats": self.no_stats,
            "_native_batch_norm_legit_functional": self.functional,
            "_native_batch_norm_legit_no_training": self.no_training,
            "native_batch_norm_backward": self.backward,
        }

    def serves(self, input: Any, *parameters: Any) -> bool:
        """Whether the arrays are what the kernels take."""
        fits = input.ndim >= 2 and input.size and kind(input) is not None and _whole(input) and _floats(*parameters)
        return bool(fits) and all(p is None or p.shape == input.shape[1:2] for p in parameters)

    def training(
        self, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
    ) -> tuple[Any, ...]:
        """(result, mean, reciprocal deviation, new running mean, new running variance), the last two None without old ones."""
        dtype = name_of(input)
        wide, (images, channels) = computed(dtype), input.shape[:2]
        area = prod(input.shape[2:])
        sums = self.xp.empty((4, channels), wide)
        old_mean, has_running = self.arrays.parameter(running_mean, wide, sums[0])
        old_var, _ = self.arrays.parameter(running_var, wide, sums[0])
        args = (
            input,
            sums[0],
            sums[1],
            old_mean,
            old_var,
            sums[2],
            sums[3],
            images,
            channels,
            area,
            has_running,
            float(momentum),
        )
        self.programs.over_groups("channel_statistics", dtype, channels, images * area, args, most=1024)
        factor = self.factor(sums[1], eps)
        made = self.normalised(input, sums[0], factor, weight, bias)
        kept = input.dtype if weight is None else weight.dtype
        moved = [
            None if old is None else new.astype(old.dtype)
            for old, new in ((running_mean, sums[2]), (running_var, sums[3]))
        ]  # fmt: skip
        return made, sums[0].astype(kept), factor.astype(kept), *moved

    def factor(self, variance: Any, eps: float) -> Any:
        """1 / sqrt(variance + eps), of few elements."""
        return 1 / self.xp.sqrt(variance + variance.dtype.type(eps))

    def normalised(self, input: Any, mean: Any, factor: Any, weight: Any, bias: Any) -> Any:
        """(input - mean) * factor * weight + bias"""
        dtype, made = name_of(input), self.xp.empty(input.shape, input.dtype)
        wide = computed(dtype)
        scale, has_scale = self.arrays.parameter(weight, wide, mean)
        shift, has_shift = self.arrays.parameter(bias, wide, mean)
        sizes = (input.size, input.shape[1], prod(input.shape[2:]))
        args = (input, mean, factor, scale, shift, made, *sizes, has_scale, has_shift)
        self.programs.over_elements("batch_normalise", dtype, input.size, args, packed=True)
        return made

    def no_stats(self, input: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
        if not training or not self.serves(input, weight, bias):
            return NotImplemented
        return self.training(input, weight, bias, None, None, momentum, eps)[:3]

    def functional(
        self, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
    ) -> Any:
        if not training or not self.serves(input, weight, bias, running_mean, running_var):
            return NotImplemented
        return self.training(input, weight, bias, running_mean, running_var, momentum, eps)

    def no_training(
        self, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
    ) -> Any:
        if not self.serves(input, weight, bias, running_mean, running_var):
            return NotImplemented
        wide = computed(name_of(input))
        mean, factor = self.arrays.packed(running_mean, wide), self.factor(self.arrays.packed(running_var, wide), eps)
        none = (self.xp.empty(0, input.dtype), self.xp.empty(0, input.dtype))
        return self.normalised(input, mean, factor, weight, bias), *none

    def backward(
        self, grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_invstd: Any,
        train: bool, eps: float, output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        mean, spread = (save_mean, save_invstd) if train else (running_mean, running_var)
        if mean is None or spread is None or kind(input, grad_out) is None or grad_out.shape != input.shape:
            return NotImplemented
        if not self.serves(input, weight, mean, spread) or not _whole(grad_out):
            return NotImplemented
        dtype, (images, channels), area = name_of(input), input.shape[:2], prod(input.shape[2:])
        wide = computed(dtype)
        middle, spread = self.arrays.packed(mean, wide), self.arrays.packed(spread, wide)
        factor = spread if train else self.factor(spread, eps)
        sums = self.xp.empty((2, channels), wide)
        if train or output_mask[1] or output_mask[2]:
            args = (grad_out, input, middle, factor, sums[0], sums[1], images, channels, area, 0, 1)
            self.programs.over_groups("parameters_of_channels", dtype, channels, images * area, args, most=1024)
        made = None
        if output_mask[0]:
            made = self.xp.empty(input.shape, input.dtype)
            scale, has_scale = self.arrays.parameter(weight, wide, middle)
            arrays = (grad_out, input, middle, factor, scale, sums[0], sums[1], made)
            ints = (input.size, channels, area, has_scale, int(bool(train)))
            self.programs.over_elements("batch_normalise_backward", dtype, input.size, (*arrays, *ints))
        kept = input.dtype if weight is None else weight.dtype
        return made, *[sums[at].astype(kept) if output_mask[at + 1] else None for at in (0, 1)]
