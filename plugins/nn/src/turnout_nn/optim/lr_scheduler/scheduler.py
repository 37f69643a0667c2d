"""The base class of schedulers, and what schedulers do with the groups of an optimiser."""

from __future__ import annotations

import math
import types
from typing import TYPE_CHECKING, Any, ClassVar

from turnout import Tensor
from turnout.errors import ArgumentError, CallError
from turnout_aten.plugin_api import check_count
from turnout_nn import errors
from turnout_nn.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Collection

    Rates = list[float | Tensor]


class LRScheduler:
    """The base class of schedulers. A class of yours defines `get_lr`, the learning rates of the epoch `self.last_epoch`.

    Making a scheduler sets the learning rates of its first epoch. Raises CallError for what is no optimiser, and ArgumentError,
    which is a KeyError too, where training goes on at an epoch but the groups do not have the "initial_lr" of its start.

    Arguments:
        optimizer: whose learning rates it sets
        last_epoch: the epoch before the first, where training goes on; -1 where it begins
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
        self.optimizer = checked(self, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise _NoStart(
                    f"{type(self).__name__}: group {i} has no 'initial_lr', from which epoch {last_epoch} could go on\n"
                    "  to fix  load the optimiser's state first, or leave out last_epoch"
                )
        self.base_lrs = rates_of(optimizer, "initial_lr")
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
        raise errors.undefined(self, "get_lr")

    def get_last_lr(self) -> Rates:
        """The learning rates that were set last, one for each group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch, after the optimiser's step.

        Arguments:
            epoch: another epoch than the next; PyTorch's old form, which warns
        """
        if self._step_count == 1 and not self.optimizer._has_stepped:
            errors.warn(
                f"{type(self).__name__}.step() is called before optimizer.step(), so the first learning rate is never used"
            )
        self._step_count += 1
        if epoch is not None:
            errors.warn(errors.old_epoch(self))
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set(self.get_lr() if closed is None else closed())

    def _set(self, rates: Rates) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            write_rate(group, rate)
        self._last_lr = rates_of(self.optimizer, "lr")

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


def checked(scheduler: object, optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise CallError(f"{type(scheduler).__name__}: optimizer must be an Optimizer, got {type(optimizer).__name__}")
    return optimizer


def check_counts(scheduler: object, **values: object) -> None:
    for name, value in values.items():
        check_count(type(scheduler).__name__, name, value)


def check_one_of(scheduler: object, name: str, value: object, known: Collection[str]) -> None:
    if value not in known:
        raise ArgumentError(f"{type(scheduler).__name__}: {name} must be one of {', '.join(map(repr, known))}, got {value!r}")


def for_groups(scheduler: object, name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group: the same for all, or those of a list."""
    groups = len(checked(scheduler, optimizer).param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copy(value) for _ in range(groups)]
    if len(value) != groups:
        raise ArgumentError(errors.not_for_groups(scheduler, name, len(value), groups))
    return [_copy(each) for each in value]


def rates_of(optimizer: Optimizer, key: str) -> Rates:
    return [_copy(group[key]) for group in optimizer.param_groups]


def write_rate(group: dict[str, Any], rate: Any) -> None:
    """Set the learning rate of a group; a tensor keeps its place."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate.reshape(()) if isinstance(rate, Tensor) else rate)
    else:
        group["lr"] = rate


def cosine(start: Any, end: Any, share: float) -> Any:
    """From start to end along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _straight(start: Any, end: Any, share: float) -> Any:
    return start + (end - start) * share


# anneal_strategy -> what is between the start and the end, at a share of the way
ANNEALING = {"cos": cosine, "linear": _straight}


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _attributes(function: Any) -> dict[str, Any] | None:
    """The attributes of an object that can be called; None for a function, which a state does not keep."""
    return None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()
