"""Schedulers that multiply: the first learning rate, or the one that they find, so that they can be chained with others."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from turnout.errors import ArgumentError, CallError
from turnout_aten.plugin_api import describe
from turnout_nn.optim.lr_scheduler.scheduler import LRScheduler, for_groups, rates_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnout_nn.optim.lr_scheduler.scheduler import Rates
    from turnout_nn.optim.optimizer import Optimizer

    OfEpoch = Callable[[int], float]


class _Multiplied(LRScheduler):
    """Multiplies the learning rates that it finds."""

    def _factor(self) -> float:
        """By what the learning rates of the epoch before are multiplied in the epoch `last_epoch`."""
        raise NotImplementedError

    def get_lr(self) -> Rates:
        factor = self._factor()
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class LambdaLR(LRScheduler):
    """The first learning rate times a function of the epoch."""

    _functions = ("lr_lambdas",)

    def __init__(self, optimizer: Optimizer, lr_lambda: OfEpoch | list[OfEpoch], last_epoch: int = -1) -> None:
        self.lr_lambdas = for_groups(self, "lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(LRScheduler):
    """The last learning rate times a function of the epoch."""

    _functions = ("lr_lambdas",)

    def __init__(self, optimizer: Optimizer, lr_lambda: OfEpoch | list[OfEpoch], last_epoch: int = -1) -> None:
        self.lr_lambdas = for_groups(self, "lr_lambda", optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise CallError(f"MultiplicativeLR: lr_lambda must be a function, got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self._is_initial:
            return rates_of(self.optimizer, "lr")
        groups = self.optimizer.param_groups
        return [group["lr"] * function(self.last_epoch) for function, group in zip(self.lr_lambdas, groups, strict=True)]


class StepLR(_Multiplied):
    """Multiplies by `gamma` every `step_size` epochs.

    Arguments:
        step_size: how many epochs
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0

    def _get_closed_form_lr(self) -> Rates:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(_Multiplied):
    """Multiplies by `gamma` at each of the milestones.

    Arguments:
        milestones: the epochs
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        if not hasattr(milestones, "__iter__") and not hasattr(milestones, "__getitem__"):
            raise CallError(f"MultiStepLR: milestones must be an iterable of epochs, got {type(milestones).__name__}")
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return float(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(_Multiplied):
    """A smaller learning rate for the first epochs.

    Arguments:
        factor: by what it is smaller, between 0 and 1
        total_iters: for how many epochs
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1.0:
            raise ArgumentError(f"ConstantLR: factor must be between 0 and 1, got {factor:g}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def _get_closed_form_lr(self) -> Rates:
        return [rate if self.last_epoch >= self.total_iters else rate * self.factor for rate in self.base_lrs]


class LinearLR(_Multiplied):
    """A factor that goes from one to another in the first epochs.

    Arguments:
        start_factor: the first factor, above 0 and at most 1
        end_factor: the last, between 0 and 1
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 < start_factor <= 1.0:
            raise ArgumentError(f"LinearLR: start_factor must be above 0 and at most 1, got {start_factor:g}")
        if not 0 <= end_factor <= 1.0:
            raise ArgumentError(f"LinearLR: end_factor must be between 0 and 1, got {end_factor:g}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        way = self.end_factor - self.start_factor
        return 1.0 + way / (self.total_iters * self.start_factor + (self.last_epoch - 1) * way)

    def _get_closed_form_lr(self) -> Rates:
        way = (self.end_factor - self.start_factor) * min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * (self.start_factor + way) for rate in self.base_lrs]


class ExponentialLR(_Multiplied):
    """Multiplies by `gamma` each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _get_closed_form_lr(self) -> Rates:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]


class PolynomialLR(_Multiplied):
    """Goes to 0 along a power of the epochs that are left.

    Arguments:
        power: the power
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        now, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return float((now / before) ** self.power)

    def _get_closed_form_lr(self) -> Rates:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]


describe(globals(), lr_lambda="a function, or one for each group", gamma="the factor", total_iters="in how many epochs")
