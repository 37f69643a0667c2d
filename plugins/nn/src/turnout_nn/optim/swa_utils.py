"""`turnout.optim.swa_utils`: models whose parameters are averages over the time of training, and their learning rates."""

from __future__ import annotations

from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, CallError
from turnout_nn.module import Module
from turnout_nn.optim.lr_scheduler.scheduler import ANNEALING, LRScheduler, check_one_of, checked, for_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from turnout_nn.optim.lr_scheduler.scheduler import Rates
    from turnout_nn.optim.optimizer import Optimizer

    Average = Callable[[Tensor, Tensor, Any], Tensor]
    Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]

__all__ = [
    "AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn", "get_swa_avg_fn",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The function (average, value, number of values) -> new average that forgets: the old average counts `decay`."""
    _check_decay(decay)

    def average(averaged: Tensor, current: Tensor, number: Any) -> Tensor:
        return averaged * decay + current * (1 - decay)

    return average


def get_swa_avg_fn() -> Average:
    """The function (average, value, number of values) -> new average in which all values count the same."""

    def average(averaged: Tensor, current: Tensor, number: Any) -> Tensor:
        return averaged + (current - averaged) / (number + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """`get_ema_avg_fn` for lists of tensors, of which the first are written."""
    return _for_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """`get_swa_avg_fn` for lists of tensors, of which the first are written."""
    return _for_lists(get_swa_avg_fn())


def _for_lists(average: Average) -> Averages:
    def averages(averaged: Sequence[Tensor], current: Sequence[Tensor], number: Any) -> None:
        with turnout.no_grad():
            for mean, value in zip(averaged, current, strict=True):
                mean.copy_(average(mean, value, number))

    return averages


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ArgumentError(f"get_ema_avg_fn: decay must be between 0 and 1, got {decay:g}")


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that the model had (Izmailov et al., 2018).

    `update_parameters(model)` takes the model's parameters into the average; the first call takes them as they are.

    Arguments:
        model: the model, which is copied
        device: where the averages are; None: where the parameters are
        avg_fn: the function of an average, a value and the number of values before; None: all count the same
        multi_avg_fn: the same for lists of tensors, of which the first are written
        use_buffers: whether buffers are averaged too, or copied
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Average | None = None, multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(model, Module):
            raise CallError(f"AveragedModel: model must be a Module, got {type(model).__name__}")
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: avg_fn and multi_avg_fn exclude each other")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", turnout.tensor(0, dtype=turnout.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The model with averaged parameters."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters into the average.

        Arguments:
            model: the model that is trained
        """
        number = int(self.n_averaged)
        averages = self.multi_avg_fn or _for_lists(self.avg_fn or get_swa_avg_fn())
        with turnout.no_grad():
            pairs = [(mean, value.detach().to(mean.device)) for mean, value in self._pairs(model)]
            if number == 0:
                for mean, value in pairs:
                    mean.copy_(value)
            else:
                groups: dict[Any, list[tuple[Tensor, Tensor]]] = {}
                for mean, value in pairs:
                    groups.setdefault((mean.device, mean.dtype), []).append((mean, value))
                for group in groups.values():
                    averages([mean for mean, _ in group], [value for _, value in group], number)
            if not self.use_buffers:
                for mean, value in zip(self.module.buffers(), model.buffers(), strict=True):
                    mean.copy_(value)
            self.n_averaged += 1

    def _pairs(self, model: Module) -> Iterable[tuple[Tensor, Tensor]]:
        of_both = [chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters() for m in (self.module, model)]
        return zip(*of_both, strict=True)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Set the running means and variances of a model's batch norms to those of a data set, as an average of models needs it.

    Arguments:
        loader: batches, or lists and tuples that start with one
        model: the model
        device: where batches are moved to; None: they stay
    """
    norms = [module for module in model.modules() if getattr(module, "running_mean", None) is not None]
    if not norms:
        return
    momenta, was_training = [norm.momentum for norm in norms], model.training
    model.train()
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        with turnout.no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(batch if device is None else batch.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Goes from the learning rate that it finds to another, and stays there (Izmailov et al., 2018).

    Arguments:
        optimizer: whose learning rates it sets
        swa_lr: the last learning rate, or one for each group
        anneal_epochs: in how many epochs
        anneal_strategy: "cos" or "linear"
        last_epoch: the epoch before the first, where training goes on; -1 where it begins
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        for group, rate in zip(checked(self, optimizer).param_groups, for_groups(self, "swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = rate
        check_one_of(self, "anneal_strategy", anneal_strategy, ANNEALING)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(f"SWALR: anneal_epochs must be an integer of at least 0, got {anneal_epochs!r}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates: Rates = []
        for group in self.optimizer.param_groups:
            rate, last = group["lr"], group["swa_lr"]
            first = last if before == 1 else (rate - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """Which share of the way is over."""
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return float(ANNEALING[self._anneal_strategy](0.0, 1.0, share))
