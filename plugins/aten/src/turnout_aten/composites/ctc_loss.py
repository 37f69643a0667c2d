"""The loss of connectionist temporal classification: Graves et al. (2006), in logarithms, all images of a batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, INT, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.value_losses import reduced
from turnout_aten.shapes.losses import MEAN, NONE, check_reduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

# The logarithm of 0: finite, so that differences of two are 0 and gradients stay finite.
_LOW = -1e30


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Sequence[int], target_lengths: Sequence[int], blank: int = 0,
    reduction: int = MEAN, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """The negative log-probability of the targets, over all alignments with the input that insert blanks."""
    # differs from torch: the gradient of `ctc_loss` is that of the function that it computes, for any input. PyTorch's is right
    # only above `log_softmax`.
    check_reduction("ctc_loss", reduction)
    single = log_probs.ndim == 2
    logs = aten.unsqueeze(log_probs, 1) if single else log_probs
    _check(logs, targets, input_lengths, target_lengths, blank)
    n, longest = logs.shape[1], max(target_lengths, default=0)
    padded = _rows(targets, target_lengths, n, longest)
    losses = aten.neg(_log_likelihood(logs, padded, input_lengths, target_lengths, blank))
    impossible = aten.gt__Scalar(losses, -_LOW / 2)
    losses = aten.masked_fill__Scalar(losses, impossible, 0.0 if zero_infinity else float("inf"))
    if reduction == MEAN:
        lengths = _like(logs, [max(length, 1) for length in target_lengths])
        losses = aten.div__Tensor(losses, lengths)
    if reduction == NONE and single:
        return aten.squeeze__dim(losses, 0)
    return reduced(losses, reduction)


def ctc_loss_tensor(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    reduction: int = MEAN, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """ctc_loss with lengths in tensors, whose values are read."""
    lengths: list[Any] = []
    for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if given.dtype.category != INT:
            raise DTypeError(f"ctc_loss: '{name}' must hold integers, got {given.dtype.name}")
        found = given.tolist()
        lengths.append(found if isinstance(found, list) else [found])
    return aten.ctc_loss__IntList(log_probs, targets, *lengths, blank, reduction, zero_infinity)


def _check(logs: Tensor, targets: Tensor, input_lengths: Sequence[int], target_lengths: Sequence[int], blank: int) -> None:
    if logs.ndim != 3:
        raise ShapeError(f"ctc_loss: 'log_probs' must be [T, N, C] or [T, C], got shape {list(logs.shape)}")
    if logs.dtype.category != FLOAT or targets.dtype.category != INT:
        raise DTypeError(
            f"ctc_loss: expected floating-point log_probs and integer targets, got {logs.dtype.name} and {targets.dtype.name}"
        )
    steps, n, classes = logs.shape
    if not 0 <= blank < classes:
        raise ArgumentError(f"ctc_loss: blank must be one of the {classes} classes, got {blank}")
    if len(input_lengths) != n or len(target_lengths) != n:
        raise ShapeError(
            f"ctc_loss: expected one length for each of {n} examples, got {len(input_lengths)} and {len(target_lengths)}"
        )
    if any(not 0 <= length <= steps for length in input_lengths) or any(length < 0 for length in target_lengths):
        raise ArgumentError(
            f"ctc_loss: input lengths must lie between 0 and {steps} and target lengths must not be negative, got "
            f"{list(input_lengths)} and {list(target_lengths)}"
        )
    room = targets.shape[-1] if targets.ndim == 2 else targets.numel() - sum(target_lengths) + max(target_lengths, default=0)
    if targets.ndim > 2 or max(target_lengths, default=0) > room or (targets.ndim == 2 and targets.shape[0] != n):
        raise ShapeError(
            f"ctc_loss: 'targets' of shape {list(targets.shape)} does not fit a batch of {n} with targets of lengths "
            f"{list(target_lengths)}"
        )


def _like(logs: Tensor, numbers: Sequence[int]) -> Tensor:
    """Numbers as a tensor on the same device."""
    parts = [aten.new_full(logs, (1,), number) for number in numbers]
    return aten.cat(parts) if parts else aten.new_empty(logs, (0,))


def _rows(targets: Tensor, lengths: Sequence[int], n: int, longest: int) -> Tensor:
    """Targets as [N, longest] in int64; elements after the end of a target are unspecified."""
    whole = aten.to__dtype(targets, int64)
    if whole.ndim == 2:
        return aten.slice__Tensor(whole, 1, 0, longest, 1)
    rows, start = [], 0
    for length in lengths:
        row = aten.slice__Tensor(whole, 0, start, start + length, 1)
        rows.append(aten.constant_pad_nd(row, (0, longest - length)))
        start += length
    return aten.stack(rows) if rows else aten.new_empty(whole, (n, longest))


def _log_likelihood(
    logs: Tensor, targets: Tensor, input_lengths: Sequence[int], target_lengths: Sequence[int], blank: int
) -> Tensor:
    """[N]: the forward variable at the end, by the states blank, target 1, blank, ..., blank."""
    n, longest = targets.shape
    states = 2 * longest + 1
    blanks = aten.new_full(targets, (n, longest), blank)
    pairs = aten.reshape(aten.stack([blanks, targets], 2), (n, 2 * longest))
    path = aten.cat([pairs, aten.new_full(targets, (n, 1), blank)], 1)
    emitted = aten.gather(logs, 2, aten.expand(aten.unsqueeze(path, 0), (logs.shape[0], n, states)))
    # A state can also be reached from two states before it, if that has another label.
    before = aten.slice__Tensor(path, 1, 0, max(states - 2, 0), 1)
    later = aten.slice__Tensor(path, 1, min(2, states), states, 1)
    other = aten.logical_and(aten.ne__Scalar(later, blank), aten.ne__Tensor(later, before))
    skips = aten.to__dtype(aten.constant_pad_nd(aten.to__dtype(other, int64), (min(2, states), 0)), other.dtype)
    at = aten.arange(states, device=logs.device)
    start = aten.unsqueeze(aten.lt__Scalar(at, 2), 0)
    zero_steps = aten.where__Scalar(aten.eq__Scalar(at, 0), 0.0, _LOW)
    alpha = aten.expand(aten.unsqueeze(aten.to__dtype(zero_steps, logs.dtype), 0), (n, states))
    ends = _like(logs, input_lengths)
    for step in range(logs.shape[0]):
        here = aten.select__int(emitted, 0, step)
        if step == 0:
            following = aten.where__ScalarOther(start, here, _LOW)
        else:
            following = aten.add__Tensor(_reached(alpha, skips), here)
        running = aten.unsqueeze(aten.gt__Scalar(ends, step), 1)
        alpha = aten.where__self(running, following, alpha)
    last = aten.mul__Scalar(aten.to__dtype(_like(logs, target_lengths), int64), 2)
    final = aten.gather(alpha, 1, aten.unsqueeze(last, 1))
    previous = aten.gather(alpha, 1, aten.unsqueeze(aten.clamp(aten.sub__Scalar(last, 1), 0), 1))
    previous = aten.masked_fill__Scalar(previous, aten.unsqueeze(aten.eq__Scalar(last, 0), 1), _LOW)
    return aten.squeeze__dim(_log_sum([final, previous]), 1)


def _reached(alpha: Tensor, skips: Tensor) -> Tensor:
    """The log of the sum over the states from which each state can be reached."""
    states = alpha.shape[1]

    def shifted(by: int) -> Tensor:
        kept = aten.slice__Tensor(alpha, 1, 0, max(states - by, 0), 1)
        return aten.constant_pad_nd(kept, (min(by, states), 0), _LOW)

    return _log_sum([alpha, shifted(1), aten.where__ScalarOther(skips, shifted(2), _LOW)])


def _log_sum(parts: list[Tensor]) -> Tensor:
    largest = aten.detach(parts[0])
    for part in parts[1:]:
        largest = aten.maximum(largest, aten.detach(part))
    total: Any = None
    for part in parts:
        power = aten.exp(aten.sub__Tensor(part, largest))
        total = power if total is None else aten.add__Tensor(total, power)
    return aten.add__Tensor(aten.log(total), largest)
