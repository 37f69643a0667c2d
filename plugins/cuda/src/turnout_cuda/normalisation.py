"""Layer, group, RMS and batch normalisation and their gradients.

Rows are normalised in one launch: parameters are read in the input's dtype, or in that which is computed in. The gradient of the
input is one launch, those of parameters are two: sums over parts of the rows, and their sum. Few rows are one part, where one is
enough unless it rounds. For batches, parameters and statistics are converted to the dtype that is computed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from turnout.dtypes import dtype_named
from turnout_aten.shapes.normalisation import RMS_EPS, check_rows, fits_groups
from turnout_cuda.floats import MISSING, OWN, WIDE, Kernels, computed, kind
from turnout_cuda.programs import DTYPES, Programs, name_of

Table = dict[str, Any]
_ROWS = 8  # rows that a block of `parameters_of_columns` reads at a time, as in kernels/normalisation.cu
_PARTS = 64  # into which the rows are split at most


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    return _Rows(xp, programs).table() | _Batches(xp, programs).table()


def gradients(xp: Any, programs: Programs) -> Table:
    """The row of the operator that is the gradient of `rms_norm`."""
    return {"rms_norm_backward": _Rows(xp, programs).rms_norm_backward}


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

    def read(self, x: Any, *given: Any) -> tuple[Any, ...]:
        """Arrays as kernels read or write them: those in the dtype that is computed in, those in the dtype of `x`, and which of
        the two are meant. What is in neither dtype is converted; None is missing."""
        own = name_of(x)
        wide = computed(own)
        nothing, others = (x if own == wide else self.xp.empty(0, wide),) * len(given), (x,) * len(given)
        if given[0] is None:
            return *nothing, *others, MISSING
        if own != wide and all(name_of(each) == own for each in given):
            return *nothing, *[self.arrays.packed(each) for each in given], OWN
        return *[self.arrays.packed(each, wide) for each in given], *others, WIDE

    def run(
        self, input: Any, weight: Any, bias: Any, eps: float, places: tuple[int, int, int, int], out: Any, mean: Any, rstd: Any
    ) -> None:
        """Normalise into contiguous outputs, with mean and reciprocal deviation; without them, the mean that is subtracted is 0.
        `places` begins with the length."""
        x, rows, rms = self.arrays.packed(input), input.size // places[0], mean is None
        arrays = (x, *self.read(x, weight), *self.read(x, bias), out, *self.read(x, mean, rstd))
        args = (*arrays, rows, *places, int(rms), float(eps))
        self.programs.over_rows("normalise", name_of(input), rows, places[0], args)

    def normalise(
        self, input: Any, weight: Any, bias: Any, eps: float, places: tuple[int, int, int, int], out: Any, mean: Any, rstd: Any
    ) -> Any:
        """`run` into outputs of any dtype and layout: one mean and one deviation for each row."""
        if kind(input) is None or not input.size or not _floats(weight, bias):
            return NotImplemented
        outs = (out, mean, rstd)
        wide = input.dtype if mean.dtype == rstd.dtype == input.dtype else self.xp.dtype(computed(name_of(input)))
        made = [self.arrays.target(each, dtype) for each, dtype in zip(outs, (input.dtype, wide, wide), strict=True)]
        self.run(input, weight, bias, eps, places, *made)
        for value, target in zip(made, outs, strict=True):
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
        check_rows("rms_norm", input, normalized_shape, weight)
        served = input.size and input.flags.c_contiguous and kind(input) is not None
        if not served or (weight is not None and kind(input, weight) is None):
            return NotImplemented
        length = prod(normalized_shape)
        made = self.xp.empty(input.shape, input.dtype)
        least = RMS_EPS[dtype_named(name_of(input))] if eps is None else eps
        self.run(input, weight, None, least, (length, 1, length, 1), made, None, None)
        return made

    # ---- gradients

    def of_input(
        self, grad: Any, input: Any, weight: Any, mean: Any, rstd: Any, rows: int, places: tuple[int, int, int, int]
    ) -> Any:
        """The gradient of the input."""
        made = self.xp.empty(input.shape, input.dtype)
        args = (grad, input, *self.read(input, weight), *self.read(input, mean, rstd), made, rows, *places)
        self.programs.over_rows("normalise_backward", name_of(input), rows, places[0], args)
        return made

    def layer_norm_backward(
        self, grad_out: Any, input: Any, normalized_shape: Sequence[int], mean: Any, rstd: Any, weight: Any, bias: Any,
        output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        length, rows = prod(normalized_shape), mean.size
        fits = input.size and grad_out.shape == input.shape and rows * length == input.size and rstd.size == rows
        if not fits or kind(input, grad_out) is None or not _floats(mean, rstd, weight, bias):
            return NotImplemented
        grad_out, input = self.arrays.packed(grad_out), self.arrays.packed(input)
        made = None
        if output_mask[0]:
            made = self.of_input(grad_out, input, weight, mean, rstd, rows, (length, 1, length, 1))
        scale, shift = (p if mask else None for p, mask in zip((weight, bias), output_mask[1:], strict=True))
        return made, *self.of_columns(grad_out, input, self.read(input, mean, rstd), length, scale, shift)

    def rms_norm_backward(
        self, grad: Any, input: Any, normalized_shape: Sequence[int], weight: Any, eps: float, output_mask: Sequence[bool]
    ) -> Any:
        check_rows("rms_norm_backward", input, normalized_shape, weight)
        dtype = kind(grad, input, input if weight is None else weight)
        if dtype is None or not input.size or grad.shape != input.shape:
            return NotImplemented
        grad, x, length = self.arrays.packed(grad), self.arrays.packed(input), prod(normalized_shape)
        rows, wanted = x.size // length, bool(output_mask[0])
        rstd = self.xp.empty(rows, computed(dtype))
        made = self.xp.empty(x.shape, x.dtype) if wanted else x
        args = (grad, x, *self.read(x, weight), rstd, made, rows, length, int(wanted), float(eps))
        self.programs.over_rows("rms_backward", dtype, rows, length, args)
        moments = (rstd, rstd, x, x, MISSING)
        scale, _ = self.of_columns(grad, x, moments, length, weight if output_mask[1] else None, None)
        return made if wanted else None, scale

    def of_columns(self, grad: Any, input: Any, moments: tuple[Any, ...], length: int, weight: Any, bias: Any) -> list[Any]:
        """The gradients of scale and shift, None where they are None."""
        wanted, rows, dtype, wide = (weight, bias), input.size // length, name_of(input), computed(name_of(input))
        names = {name_of(each) for each in wanted if each is not None}
        if not names:
            return [None, None]
        parts = max(1, min(rows // (4 * _ROWS), _PARTS))
        own = names.pop() if len(names) == 1 else wide
        own = own if computed(own) == wide else wide

        def room(parts: int, dtype: str) -> list[Any]:
            return [self.xp.empty((parts, length) if parts > 1 or p is None else p.shape, dtype) for p in wanted]

        sums = room(parts, wide)
        args = (grad, input, *moments, *sums, rows, length)
        self.programs.start("parameters_of_columns", dtype, (-(-length // 32), parts), (32, _ROWS), args)
        made = sums
        if parts > 1 or own != wide:
            made = room(1, own)
            args = (*sums, *made, length, parts, sum(bit for bit, p in zip((1, 2), wanted, strict=True) if p is not None))
            self.programs.over_elements("parameters_total", own, length, args)
        pairs = zip(made, wanted, strict=True)
        return [None if p is None else total if total.dtype == p.dtype else total.astype(p.dtype) for total, p in pairs]

    def group_norm_backward(
        self, grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int, group: int,
        output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        dtype = kind(input, grad_out)
        fits = fits_groups(input, grad_out, mean, rstd, N, C, HxW, group)
        if dtype is None or not fits or not _floats(mean, rstd, weight) or not _whole(input, grad_out):
            return NotImplemented
        wide, channels = computed(dtype), C // group
        middle, factor = self.arrays.packed(mean, wide), self.arrays.packed(rstd, wide)
        found: list[Any] = [None, None, None]
        if output_mask[0]:
            places = (channels * HxW, HxW, channels, group)
            found[0] = self.of_input(grad_out, input, weight, mean, rstd, N * group, places)
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
        if input.ndim < 2 or not input.size or kind(input) is None or not input.flags.c_contiguous:
            return False
        channels = input.shape[1:2]
        return not [p for p in parameters if p is not None and (p.shape != channels or name_of(p) not in DTYPES)]

    def training(
        self, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
    ) -> tuple[Any, ...]:
        """(result, mean, reciprocal deviation, new running mean, new running variance), the last two None without old ones."""
        dtype = name_of(input)
        wide, (images, channels) = computed(dtype), input.shape[:2]
        area = prod(input.shape[2:])
        count = images * area
        parts, size, threads = self.programs.held(count)
        mean, factor = self.xp.empty(channels, wide), self.xp.empty(channels, wide)
        old_mean, has_running = self.arrays.parameter(running_mean, wide, mean)
        old_var, _ = self.arrays.parameter(running_var, wide, mean)
        moved = [self.xp.empty(channels, wide) if has_running else mean for _ in range(2)]
        sums = self.xp.empty((channels, parts, 2), wide) if parts > 1 else mean
        given = (mean, factor, old_mean, old_var, *moved, has_running, float(momentum), float(eps))
        args = (input, sums, *given, images, channels, area, parts)
        self.programs.start("channel_statistics", dtype, (channels * parts,), (threads,), args)
        if parts > 1:
            self.programs.over_groups("channel_total", dtype, channels, parts, (sums, *given, count, size, parts))
        made = self.normalised(input, mean, factor, weight, bias)
        kept = name_of(input if weight is None else weight)
        pairs = zip((running_mean, running_var), moved, strict=True)
        new = [None if old is None else self.arrays.packed(each, name_of(old)) for old, each in pairs]
        return made, self.arrays.packed(mean, kept), self.arrays.packed(factor, kept), *new

    def normalised(self, input: Any, mean: Any, spread: Any, weight: Any, bias: Any, eps: float | None = None) -> Any:
        """(input - mean) * factor * weight + bias, where `spread` has the factors, or variances with `eps`."""
        dtype, made = name_of(input), self.xp.empty(input.shape, input.dtype)
        wide = computed(dtype)
        scale, has_scale = self.arrays.parameter(weight, wide, mean)
        shift, has_shift = self.arrays.parameter(bias, wide, mean)
        sizes = (input.size, input.shape[1], prod(input.shape[2:]))
        of_variance = (0, 0.0) if eps is None else (1, float(eps))
        args = (input, mean, spread, scale, shift, made, *sizes, has_scale, has_shift, *of_variance)
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
        mean, variance = self.arrays.packed(running_mean, wide), self.arrays.packed(running_var, wide)
        none = (self.xp.empty(0, input.dtype), self.xp.empty(0, input.dtype))
        return self.normalised(input, mean, variance, weight, bias, eps), *none

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
        factor = spread if train else 1 / self.xp.sqrt(spread + spread.dtype.type(eps))
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
