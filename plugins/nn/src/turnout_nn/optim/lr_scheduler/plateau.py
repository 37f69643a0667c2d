"""A scheduler that looks at a metric."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.optim.lr_scheduler.scheduler import LRScheduler, check_one_of, checked, for_groups, rates_of, write_rate

if TYPE_CHECKING:
    from turnout import Tensor
    from turnout_nn.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies by `factor` when a metric has not become better for `patience` epochs.

    Arguments:
        mode: "min" or "max": whether a smaller metric is better or a larger one
        factor: the factor, less than 1
        patience: after how many epochs without a better metric it waits no more
        threshold: by how much a metric has to be better
        threshold_mode: "rel", by a share of the best, or "abs"
        cooldown: for how many epochs it then does nothing
        min_lr: the least learning rate, or one for each group
        eps: a smaller change is not made
    """

    def __init__(
        self, optimizer: Optimizer, mode: Literal["min", "max"] = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: Literal["rel", "abs"] = "rel", cooldown: int = 0,
        min_lr: list[float] | float = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ArgumentError(f"ReduceLROnPlateau: factor must be less than 1, got {factor:g}")
        for name, value, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode, ("rel", "abs"))):
            check_one_of(self, name, value, known)
        self.optimizer = checked(self, optimizer)
        self.factor = factor
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = for_groups(self, "min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.last_epoch = 0
        self._last_lr = rates_of(optimizer, "lr")
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: float | Tensor, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of an epoch.

        Arguments:
            metrics: the metric, a number or a tensor of one element
            epoch: another epoch than the next; PyTorch's old form, which warns
        """
        if epoch is not None:
            errors.warn(errors.old_epoch(self, "metrics"))
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        metric = float(metrics)
        if self._is_better(metric):
            self.best = metric
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = rates_of(self.optimizer, "lr")

    @property
    def in_cooldown(self) -> bool:
        """Whether it does nothing, because it did something lately."""
        return self.cooldown_counter > 0

    def _is_better(self, metric: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            return sign * metric > sign * self.best * (1.0 + sign * self.threshold)
        return sign * metric > sign * self.best + self.threshold

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                wrong = errors.not_for_groups(self, "min_lr", len(self.min_lrs), len(groups))
                raise ArgumentError(f"{wrong}\n  to fix  add a number to `min_lrs` when a group is added")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                write_rate(group, new)


describe(globals())
