"""`turnout.optim.lr_scheduler`: learning rates that change while a model is trained.

`scheduler.step()` after each epoch, or after each step, sets "lr" of the optimiser's groups. A scheduler that multiplies the
learning rate which it finds can be chained with others; it says by what, in `_factor`.
"""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from turnout import Tensor
from turnout.errors import ArgumentError, CallError
from turnout_aten.plugin_api import describe
from turnout_nn.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Rates = list[float | Tensor]
    OfEpoch = Callable[[int], float]

__all__ = [
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "SequentialLR",
    "CosineAnnealingLR", "ChainedScheduler", "ReduceLROnPlateau", "CyclicLR", "CosineAnnealingWarmRestarts", "OneCycleLR",
    "PolynomialLR", "LRScheduler",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class LRScheduler:
    """The base class of schedulers. A class of yours defines `get_lr`, the learning rates of the epoch `self.last_epoch`.

    Making a scheduler sets the learning rates of its first epoch. Raises CallError for what is no optimiser, and ArgumentError,
    which is a KeyError too, where training goes on at an epoch but the groups do not have the "initial_lr" of its start.
    """

    optimizer: Optimizer
    base_lrs: Rates
    last_epoch: int
    _last_lr: Rates
    _step_count: int
    _is_initial = False  # whether `get_lr` is called for the first epoch
    _functions: ClassVar[tuple[str, ...]] = ()  # attributes that hold functions, of which states keep the attributes
    _inner: ClassVar[tuple[str, ...]] = ()  # attributes that hold schedulers

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(self, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise _NoStart(
                    f"{type(self).__name__}: group {i} has no 'initial_lr', from which epoch {last_epoch} could go on\n"
                    "  to fix  load the optimiser's state first, or leave out last_epoch"
                )
        self.base_lrs = _of_groups(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            del self._is_initial

    def get_lr(self) -> Rates:
        """The learning rates of the groups in the epoch `last_epoch`. `step` calls it; use `get_last_lr` to look."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def get_last_lr(self) -> Rates:
        """The learning rates that were set last, one for each group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch, after the optimiser's step.

        Arguments:
            epoch: another epoch than the next; PyTorch's old form, which warns
        """
        if self._step_count == 1 and not self.optimizer._has_stepped:
            warnings.warn(
                f"{type(self).__name__}.step() is called before optimizer.step(), so the first learning rate is never used",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(
                f"{type(self).__name__}.step: epoch is PyTorch's old form; call step() once for each epoch", stacklevel=2
            )
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set(self.get_lr() if closed is None else closed())

    def _set(self, rates: Rates) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            _write(group, rate)
        self._last_lr = _of_groups(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs. Of a function, only the attributes of an object that can be called are in it."""
        state = {key: value for key, value in self.__dict__.items() if key != "optimizer"}
        for key in self._inner:
            state[key] = [scheduler.state_dict() for scheduler in state[key]]
        for key in self._functions:
            held = state[key]
            state[key] = [_attributes(f) for f in held] if isinstance(held, list) else _attributes(held)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where another scheduler was.

        Arguments:
            state_dict: what `state_dict()` of a scheduler of this class returned
        """
        own = (*self._inner, *self._functions)
        self.__dict__.update({key: value for key, value in state_dict.items() if key not in own})
        for key in self._inner:
            for scheduler, state in zip(getattr(self, key), state_dict[key], strict=True):
                scheduler.load_state_dict(state)
        for key in self._functions:
            held, states = getattr(self, key), state_dict[key]
            for function, state in zip(held, states, strict=True) if isinstance(held, list) else [(held, states)]:
                if state is not None:
                    function.__dict__.update(state)


class _NoStart(ArgumentError, KeyError):
    """A schedule goes on, and where it started is not known."""

    __str__ = Exception.__str__


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
        self.lr_lambdas = _for_groups(self, "lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(LRScheduler):
    """The last learning rate times a function of the epoch."""

    _functions = ("lr_lambdas",)

    def __init__(self, optimizer: Optimizer, lr_lambda: OfEpoch | list[OfEpoch], last_epoch: int = -1) -> None:
        self.lr_lambdas = _for_groups(self, "lr_lambda", optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise CallError(f"MultiplicativeLR: lr_lambda must be a function, got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self._is_initial:
            return _of_groups(self.optimizer, "lr")
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
            return _of_groups(self.optimizer, "lr")
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        now, before = (1 + math.cos(math.pi * e / self.T_max) for e in (epoch, epoch - 1))
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # `before` is 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [group["lr"] + (rate - low) * rise for rate, group in zip(self.base_lrs, groups, strict=True)]
        return [now / before * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self) -> Rates:
        return [_cosine(rate, self.eta_min, self.last_epoch / self.T_max) for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Goes along half a cosine to `eta_min`, and starts again, each time for `T_mult` times as long.

    Arguments:
        T_0: the epochs of the first period
        T_mult: how much longer each period is than the one before
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"CosineAnnealingWarmRestarts: {name} must be an integer above 0, got {value!r}")
        if not isinstance(eta_min, (int, float)):
            raise ArgumentError(f"CosineAnnealingWarmRestarts: eta_min must be a number, got {eta_min!r}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        return [_cosine(rate, self.eta_min, self.T_cur / self.T_i) for rate in self.base_lrs]

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
            _write(group, group["initial_lr"])
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
        self._last_lr = _of_groups(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Set the learning rates of the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _of_groups(self.optimizer, "lr")


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
            _check_one_of(self, name, value, known)
        self.optimizer = _checked(self, optimizer)
        self.factor = factor
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _for_groups(self, "min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.last_epoch = 0
        self._last_lr = _of_groups(optimizer, "lr")
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of an epoch.

        Arguments:
            metrics: the metric, a number or a tensor of one element
            epoch: another epoch than the next; PyTorch's old form, which warns
        """
        if epoch is not None:
            warnings.warn(
                "ReduceLROnPlateau.step: epoch is PyTorch's old form; call step(metrics) once for each epoch", stacklevel=2
            )
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
        self._last_lr = _of_groups(self.optimizer, "lr")

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
                raise ArgumentError(
                    f"ReduceLROnPlateau: min_lr has {len(self.min_lrs)} numbers, and the optimiser has {len(groups)} groups\n"
                    "  to fix  add a number to `min_lrs` when a group is added"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _write(group, new)


class _WithMomentum(LRScheduler):
    """Sets the momentum too: "momentum" of a group, or the first of its "betas"."""

    cycle_momentum: bool

    def _start_momentum(self, optimizer: Optimizer, base: Any, largest: Any, last_epoch: int) -> None:
        _checked(self, optimizer)
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ArgumentError(f"{type(self).__name__}: cycle_momentum=True needs an optimiser with momentum or betas")
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = _for_groups(self, "base_momentum", optimizer, base)
        self.max_momentums = _for_groups(self, "max_momentum", optimizer, largest)
        if last_epoch == -1:
            for group, high, low in zip(optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """Goes up and down between two learning rates; the momentum goes the other way (Smith, 2017).

    Arguments:
        base_lr: the lower learning rate, or one for each group
        max_lr: the upper learning rate, or one for each group
        step_size_up: steps on the way up
        step_size_down: steps on the way down; None: as many
        mode: "triangular", "triangular2", half as high each time, or "exp_range", lower by `gamma` in each step
        gamma: the factor of "exp_range"
        scale_fn: how high, in place of a mode
        scale_mode: what `scale_fn` is called with: the number of the "cycle", or of the step, "iterations"
        base_momentum: the lower momentum
        max_momentum: the upper momentum
        last_epoch: the step before the first, where training goes on; -1 where it begins
    """

    _functions = ("_scale_fn_custom",)

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float], step_size_up: int = 2000,
        step_size_down: int | None = None, mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle", cycle_momentum: bool = True, base_momentum: float = 0.8,
        max_momentum: float = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        lower = _for_groups(self, "base_lr", _checked(self, optimizer), base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, lower, strict=True):
                _write(group, rate)
        self.max_lrs = _for_groups(self, "max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        if scale_fn is None:
            _check_one_of(self, "mode", mode, ("triangular", "triangular2", "exp_range"))
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lower

    def scale_fn(self, x: float) -> float:
        """How high a cycle, or a step, goes: a share of the way."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma**x)

    def get_lr(self) -> Rates:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        height = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


class OneCycleLR(_WithMomentum):
    """Goes up once and then down, far below where it began; the momentum goes the other way (Smith and Topin, 2018).

    Arguments:
        max_lr: the largest learning rate, or one for each group
        total_steps: how many steps; None: `epochs` times `steps_per_epoch`
        epochs: how many epochs
        steps_per_epoch: how many steps in each
        pct_start: the share of steps on the way up
        anneal_strategy: "cos" or "linear"
        base_momentum: the lower momentum, or one for each group
        max_momentum: the upper momentum, or one for each group
        div_factor: the largest learning rate over the first
        final_div_factor: the first learning rate over the last
        three_phase: whether the way down passes the first learning rate at a time of its own
        last_epoch: the step before the first, where training goes on; -1 where it begins
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True, base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _checked(self, optimizer)
        given = (
            {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        )
        if None in given.values():
            raise ArgumentError("OneCycleLR: either total_steps or both epochs and steps_per_epoch are needed")
        for name, value in given.items():
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"OneCycleLR: {name} must be an integer above 0, got {value!r}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ArgumentError(f"OneCycleLR: pct_start must be a float between 0 and 1, got {pct_start!r}")
        _check_one_of(self, "anneal_strategy", anneal_strategy, ("cos", "linear"))
        self.total_steps = math.prod(given.values())  # type: ignore[arg-type]
        self._anneal_func_type = anneal_strategy
        top = pct_start * self.total_steps - 1
        # Where a phase ends, and between which entries of a group the learning rate and the momentum then are.
        # fmt: off
        self._phases: list[tuple[float, str, str, str, str]] = [
            (top, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
            *([(2 * top, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
               (self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")] if three_phase else
              [(self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]),
        ]
        # fmt: on
        for group, rate in zip(optimizer.param_groups, _for_groups(self, "max_lr", optimizer, max_lr), strict=True):
            if last_epoch == -1:
                group["initial_lr"], group["max_lr"] = rate / div_factor, rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentError(f"OneCycleLR: step {step} is after the last of total_steps, {self.total_steps}")
        place = next((i for i, phase in enumerate(self._phases) if step <= phase[0]), len(self._phases) - 1)
        end, first, last, first_momentum, last_momentum = self._phases[place]
        start = self._phases[place - 1][0] if place else 0.0
        share = (step - start) / (end - start)
        go = _cosine if self._anneal_func_type == "cos" else _straight
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, go(group[first_momentum], group[last_momentum], share))
        return [go(group[first], group[last], share) for group in self.optimizer.param_groups]


def _cosine(start: Any, end: Any, share: float) -> Any:
    """From start to end along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _straight(start: Any, end: Any, share: float) -> Any:
    return start + (end - start) * share


def _checked(scheduler: object, optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise CallError(f"{type(scheduler).__name__}: optimizer must be an Optimizer, got {type(optimizer).__name__}")
    return optimizer


def _check_one_of(scheduler: object, name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise ArgumentError(f"{type(scheduler).__name__}: {name} must be one of {', '.join(map(repr, known))}, got {value!r}")


def _for_groups(scheduler: object, name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group: the same for all, or those of a list."""
    groups = len(_checked(scheduler, optimizer).param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copy(value) for _ in range(groups)]
    if len(value) != groups:
        raise ArgumentError(f"{type(scheduler).__name__}: {name} has {len(value)} values, and the optimiser has {groups} groups")
    return [_copy(each) for each in value]


def _of_groups(optimizer: Optimizer, key: str) -> Rates:
    return [_copy(group[key]) for group in optimizer.param_groups]


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _write(group: dict[str, Any], rate: Any) -> None:
    """Set the learning rate of a group; a tensor keeps its place."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate.reshape(()) if isinstance(rate, Tensor) else rate)
    else:
        group["lr"] = rate


def _attributes(function: Any) -> dict[str, Any] | None:
    """The attributes of an object that can be called; None for a function, which a state does not keep."""
    return None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()


def _flat(schedulers: Iterable[LRScheduler]) -> Iterable[LRScheduler]:
    """The schedulers, and those inside them in their place."""
    for scheduler in schedulers:
        yield from _flat(scheduler._schedulers) if isinstance(scheduler, _Composed) else [scheduler]


describe(
    globals(),
    optimizer="whose learning rates it sets",
    last_epoch="the epoch before the first, where training goes on; -1 where it begins",
    lr_lambda="a function, or one for each group",
    gamma="the factor",
    total_iters="in how many epochs",
    eta_min="the least learning rate",
    schedulers="the schedulers, in order",
    cycle_momentum="whether the momentum is set too",
)
