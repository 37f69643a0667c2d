"""Schedulers that go along half a cosine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn.optim.lr_scheduler.scheduler import LRScheduler, check_counts, cosine, rates_of

if TYPE_CHECKING:
    from turnout_nn.optim.lr_scheduler.scheduler import Rates
    from turnout_nn.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Goes along half a cosine from the first learning rate to `eta_min`, and back (Loshchilov and Hutter, 2017).

    Arguments:
        T_max: the epochs of half a period
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        groups, epoch, low = self.optimizer.param_groups, self.last_epoch, self.eta_min
        if self._is_initial:
            return rates_of(self.optimizer, "lr")
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        now, before = (1 + math.cos(math.pi * e / self.T_max) for e in (epoch, epoch - 1))
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # `before` is 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [group["lr"] + (rate - low) * rise for rate, group in zip(self.base_lrs, groups, strict=True)]
        return [now / before * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self) -> Rates:
        return [cosine(rate, self.eta_min, self.last_epoch / self.T_max) for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Goes along half a cosine to `eta_min`, and starts again, each time for `T_mult` times as long.

    Arguments:
        T_0: the epochs of the first period
        T_mult: how much longer each period is than the one before
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        check_counts(self, T_0=T_0, T_mult=T_mult)
        if not isinstance(eta_min, (int, float)):
            raise ArgumentError(f"CosineAnnealingWarmRestarts: eta_min must be a number, got {eta_min!r}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        return [cosine(rate, self.eta_min, self.T_cur / self.T_i) for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next epoch.

        Arguments:
            epoch: where training is, in epochs; it may be between two of them
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ArgumentError(f"CosineAnnealingWarmRestarts.step: epoch must be at least 0, got {epoch}")
            periods = 0  # that are over
            if epoch >= self.T_0:
                done = epoch / self.T_0
                periods = int(done) if self.T_mult == 1 else int(math.log(done * (self.T_mult - 1) + 1, self.T_mult))
            over = periods if self.T_mult == 1 else (self.T_mult**periods - 1) / (self.T_mult - 1)
            self.T_cur = epoch - self.T_0 * over
            self.T_i = self.T_0 * self.T_mult**periods
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())


describe(globals(), eta_min="the least learning rate")
