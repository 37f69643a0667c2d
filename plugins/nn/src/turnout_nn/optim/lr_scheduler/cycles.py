"""Schedulers that go up and down, and set the momentum, too, which goes the other way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn.optim.lr_scheduler.scheduler import (
    ANNEALING,
    LRScheduler,
    check_counts,
    check_one_of,
    checked,
    for_groups,
    write_rate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_nn.optim.lr_scheduler.scheduler import Rates
    from turnout_nn.optim.optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """Sets the momentum too: "momentum" of a group, or the first of its "betas"."""

    cycle_momentum: bool

    def _start_momentum(self, optimizer: Optimizer, base: Any, largest: Any, last_epoch: int) -> None:
        checked(self, optimizer)
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ArgumentError(f"{type(self).__name__}: cycle_momentum=True needs an optimiser with momentum or betas")
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = for_groups(self, "base_momentum", optimizer, base)
        self.max_momentums = for_groups(self, "max_momentum", optimizer, largest)
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
        lower = for_groups(self, "base_lr", checked(self, optimizer), base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, lower, strict=True):
                write_rate(group, rate)
        self.max_lrs = for_groups(self, "max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        if scale_fn is None:
            check_one_of(self, "mode", mode, ("triangular", "triangular2", "exp_range"))
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
        checked(self, optimizer)
        given = (
            {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        )
        if None in given.values():
            raise ArgumentError("OneCycleLR: either total_steps or both epochs and steps_per_epoch are needed")
        check_counts(self, **given)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ArgumentError(f"OneCycleLR: pct_start must be a float between 0 and 1, got {pct_start!r}")
        check_one_of(self, "anneal_strategy", anneal_strategy, ANNEALING)
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
        for group, rate in zip(optimizer.param_groups, for_groups(self, "max_lr", optimizer, max_lr), strict=True):
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
        go = ANNEALING[self._anneal_func_type]
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, go(group[first_momentum], group[last_momentum], share))
        return [go(group[first], group[last], share) for group in self.optimizer.param_groups]


describe(globals(), cycle_momentum="whether the momentum is set too")
