"""Schedulers that are made of others."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from turnout.errors import ArgumentError, CallError
from turnout_aten.plugin_api import describe
from turnout_nn.optim.lr_scheduler.plateau import ReduceLROnPlateau
from turnout_nn.optim.lr_scheduler.scheduler import LRScheduler, rates_of, write_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from turnout_nn.optim.optimizer import Optimizer


class _Composed(LRScheduler):
    """Several schedulers of one optimiser."""

    _inner = ("_schedulers",)

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> Optimizer:
        name = type(self).__name__
        if not schedulers:
            raise ArgumentError(f"{name}: schedulers is empty")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise CallError(f"{name}: schedulers[{i}] must be a scheduler, got {type(scheduler).__name__}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ArgumentError(f"{name}: schedulers[{i}] is a ReduceLROnPlateau, whose step() needs a metric")
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not optimizer:
                raise ArgumentError(f"{name}: schedulers[{i}] belongs to another optimiser")
        self._schedulers = schedulers
        return optimizer


class SequentialLR(_Composed):
    """One scheduler after the other: each of the milestones is the epoch at which the next one begins.

    Arguments:
        optimizer: whose learning rates they set
        milestones: one epoch fewer than schedulers
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1) -> None:
        self.optimizer = self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} milestones, got {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            write_rate(group, group["initial_lr"])
        for scheduler in _flat(schedulers):  # each has begun when it was made
            if hasattr(scheduler, "last_epoch"):
                scheduler.last_epoch -= 1
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Set the learning rates of the next epoch."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedulers in each epoch, one after the other.

    Arguments:
        optimizer: whose learning rates they set; None: that of the first
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.optimizer = self._take(schedulers, optimizer)
        self._last_lr = rates_of(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Set the learning rates of the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates_of(self.optimizer, "lr")


def _flat(schedulers: Iterable[LRScheduler]) -> Iterable[LRScheduler]:
    """The schedulers, and those inside them in their place."""
    for scheduler in schedulers:
        yield from _flat(scheduler._schedulers) if isinstance(scheduler, _Composed) else [scheduler]


describe(globals(), schedulers="the schedulers, in order")
