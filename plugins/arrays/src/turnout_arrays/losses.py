"""Losses and their backward passes."""

from __future__ import annotations

from typing import Any

from turnout.errors import DimError
from turnout_arrays.indexing import along
from turnout_arrays.numbers import POSTPONING, store, widen
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.losses import MEAN, NONE
from turnout_aten.tensor.checks import are_postponed, note

Table = dict[str, Any]
# Up to this many elements, what counts is the number of calls, and a sum needs no care.
_FEW = 64


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return likelihood(xp) | squares(xp)


def likelihood(xp: Any) -> Table:
    """Negative log-likelihood of (N, C) or (C,) log-probabilities, with class weights and one target to ignore."""
    unsigned = xp.dtype("uint64")

    def all_count(self: Any, target: Any, weight: Any, ignore_index: int) -> bool:
        """Whether every row counts with weight 1: the usual case, which takes half the time."""
        classes = self.shape[-1]
        if weight is not None or len(self.shape) != 2 or not target.size or 0 <= ignore_index < classes:
            return False
        if xp.__class__ in POSTPONING and are_postponed():
            return False
        # As unsigned numbers, negative indices are too large, so one comparison suffices.
        return int(xp.maximum.reduce(target.view(unsigned) if target.dtype.kind == "i" else target)) < classes

    def chosen(self: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any, Any, Any]:
        """Rows as (N, C), the index of each row's target, its weight, and which rows count."""
        rows = self.reshape(1, -1) if len(self.shape) == 1 else self
        target = target.reshape(-1)
        counts = target != ignore_index
        wrong = counts & ((target < 0) | (target >= rows.shape[1]))
        if xp.__class__ in POSTPONING and are_postponed():
            note(xp.any(wrong).value())
        elif target.size and bool(xp.any(wrong)):
            raise DimError(texts.no_class("nll_loss", int(target[wrong][0]), rows.shape[1]))
        safe = xp.where(counts, target, 0).astype(xp.int64)
        weights = xp.ones(safe.shape, rows.dtype) if weight is None else weight[safe]
        places = along(xp, (rows.shape[0], 1), 1, safe.reshape(-1, 1))
        return rows, places, widen(xp, xp.where(counts, weights, xp.zeros((), weights.dtype))), counts

    def prepared(outs: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
        """For few rows that are reduced: what is picked lies at the target's place behind the start of its row."""
        if weight is not None or reduction == NONE or self.ndim != 2 or target.ndim != 1:
            return None
        (rows, classes), own = self.shape, getattr(self, "device", "").__class__ is str and self.flags.c_contiguous
        plain = own and self.dtype.char in "fd" and target.dtype.char == "l" and outs[0].dtype.name == self.dtype.name
        if not plain or not 0 < self.size <= _FEW or 0 <= ignore_index < classes or target.size != rows:
            return None
        starts, add = xp.arange(0, self.size, classes, target.dtype), xp.add.reduce

        def reduced(self: Any, target: Any, weight: Any, a: int, b: int, output: Any, total_weight: Any) -> None:
            places = target.tolist()
            if min(places) < 0 or max(places) >= classes:  # one is ignored, or wrong
                return forward(self, target, weight, a, b, output, total_weight)
            value = -add(self.take(starts + target))
            output.fill(value / rows if reduction == MEAN else value)
            total_weight.fill(rows)
            return None

        return reduced

    def forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, output: Any, total_weight: Any) -> None:
        if reduction != NONE and all_count(self, target, weight, ignore_index):
            count = target.size
            value = -xp.add.reduce(widen(xp, self[xp.arange(count), target]))
            store(xp, output, value / count if reduction == MEAN else value)
            total_weight.fill(count)
            return
        rows, places, weights, counts = chosen(self, target, weight, ignore_index)
        picked = widen(xp, rows[places].reshape(-1)) if rows.size else weights
        losses = xp.where(counts, -picked * weights, xp.zeros((), weights.dtype))
        total = xp.asarray(xp.add.reduce(weights))
        if reduction == NONE:
            store(xp, output, losses.reshape(output.shape))
            store(xp, total_weight, xp.zeros((), total_weight.dtype))
            return
        value = xp.asarray(xp.add.reduce(losses))
        store(xp, output, value / total if reduction == MEAN else value)
        store(xp, total_weight, total)

    def backward(
        grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any, out: Any
    ) -> Any:
        grad = widen(xp, grad_output)
        if reduction == MEAN:
            grad = grad / widen(xp, total_weight)
        if all_count(self, target, weight, ignore_index):
            out.fill(0)
            out[xp.arange(target.size), target] = -grad
            return out
        rows, places, weights, counts = chosen(self, target, weight, ignore_index)
        values = xp.zeros(rows.shape, weights.dtype)
        if rows.size:
            picked = xp.where(counts, -grad.reshape(-1) * weights, xp.zeros((), weights.dtype))
            values[places] = picked.reshape(-1, 1)
        return store(xp, out, values.reshape(self.shape))

    # fmt: off
    return {
        "nll_loss_forward.output":      Row(forward, quiet=True, prepares=prepared),
        "nll_loss_backward.grad_input": Row(backward, quiet=True),
    }
    # fmt: on


def squares(xp: Any) -> Table:
    """The squared error."""

    def mse_loss(self: Any, target: Any, reduction: int, out: Any) -> Any:
        distance = widen(xp, self) - widen(xp, target)
        values = xp.square(distance)
        if reduction == NONE:
            return store(xp, out, values)
        total = xp.add.reduce(values, None)
        if reduction == MEAN:
            total = xp.true_divide(total, values.size)
        return store(xp, out, total)

    def mse_loss_backward(grad_output: Any, self: Any, target: Any, reduction: int, out: Any) -> Any:
        distance = widen(xp, self) - widen(xp, target)
        factor = 2.0 / distance.size if reduction == MEAN and distance.size else 2.0
        return store(xp, out, factor * distance * widen(xp, grad_output))

    return {"mse_loss.out": Row(mse_loss, quiet=True), "mse_loss_backward.grad_input": Row(mse_loss_backward)}
