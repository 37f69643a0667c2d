"""What modules, optimisers, schedulers and loaders say of arguments that they do not take."""

from __future__ import annotations

from typing import Any

import pytest
from turnout.optim import lr_scheduler as lrs
from turnout.optim import swa_utils
from turnout.utils import data

import turnout
from turnout import nn, optim


def sgd(*groups: Any) -> optim.SGD:
    return optim.SGD(groups or [turnout.zeros(2, requires_grad=True)], lr=0.1)


def weighted() -> nn.Linear:
    return nn.Linear(2, 2)


class Returning(nn.Module):
    """A parametrization that returns what it is given, and what stands before it."""

    def __init__(self, made: Any, inverse: Any = None) -> None:
        super().__init__()
        self.made, self.inverse = made, inverse

    def forward(self, *_: Any) -> Any:
        return self.made

    def right_inverse(self, value: Any) -> Any:
        return value if self.inverse is None else self.inverse


def stepped_with(**options: Any) -> None:
    weight = turnout.ones(2, 2, requires_grad=True)
    optimizer = optim.Muon([weight], **options)
    weight.sum().backward()
    optimizer.step()


def searched() -> None:
    weight = turnout.ones(2, requires_grad=True)
    optimizer = optim.LBFGS([weight], line_search_fn="bisection")

    def loss() -> Any:
        optimizer.zero_grad()
        value = (weight * weight).sum()
        value.backward()
        return value

    optimizer.step(loss)


def hooked() -> None:
    optimizer = sgd()
    optimizer.register_step_pre_hook(lambda *_: 3)
    optimizer.step()


def past_the_end() -> None:
    optimizer = sgd()
    scheduler = lrs.OneCycleLR(optimizer, 0.1, total_steps=2, cycle_momentum=False)
    for _ in range(3):
        optimizer.step()
        scheduler.step()


def grown() -> None:
    optimizer = sgd()
    scheduler = lrs.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0])
    optimizer.add_param_group({"params": [turnout.zeros(1, requires_grad=True)]})
    for _ in range(3):
        scheduler.step(1.0)


class Slow(data.Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        import time

        time.sleep(5)
        return index


def late() -> None:
    next(iter(data.DataLoader(Slow(), num_workers=1, timeout=0.05)))


def parametrized(module: nn.Module) -> None:
    nn.utils.parametrize.register_parametrization(weighted(), "weight", module)


FEWER = (
    "ReduceLROnPlateau: min_lr has 1 numbers, and the optimiser has 2 groups\n"
    "  to fix  add a number to `min_lrs` when a group is added"
)
ARGUMENT, CALL = "ArgumentError", "CallError"
# What is called -> the error's class and text.
TEXTS = {
    "data sets in two ways": (
        lambda: data.StackDataset(),
        ARGUMENT,
        "StackDataset: expected either data sets or data sets by name",
    ),
    "data sets of two lengths": (
        lambda: data.StackDataset([1], [1, 2]),
        ARGUMENT,
        "StackDataset: data sets must have one length, got [1, 2]",
    ),
    "nothing to join": (
        lambda: data.ConcatDataset([]),
        ARGUMENT,
        "ConcatDataset: expected data sets with samples at indices; ChainDataset takes iterable ones",
    ),
    "a list in a chain": (
        lambda: list(data.ChainDataset([[1]])),
        ARGUMENT,
        "ChainDataset: expected iterable data sets, got list",
    ),
    "no samples": (
        lambda: data.RandomSampler([1], num_samples=0),
        ARGUMENT,
        "RandomSampler: num_samples must be an integer above 0, got 0",
    ),
    "no weighted samples": (
        lambda: data.WeightedRandomSampler([1.0], 0),
        ARGUMENT,
        "WeightedRandomSampler: num_samples must be an integer above 0, got 0",
    ),
    "a matrix of weights": (
        lambda: data.WeightedRandomSampler([[1.0]], 1),
        ARGUMENT,
        "WeightedRandomSampler: weights must be a vector, got shape [1, 1]",
    ),
    "a slow worker": (late, "WorkerError", "DataLoader: worker 0 did not answer within 0.05 seconds"),
    "another search": (searched, ARGUMENT, "LBFGS: line_search_fn must be None or 'strong_wolfe', got 'bisection'"),
    "a factor of nothing": (
        lambda: lrs.LinearLR(sgd(), start_factor=0.0),
        ARGUMENT,
        "LinearLR: start_factor must be above 0 and at most 1, got 0",
    ),
    "a factor above one": (
        lambda: lrs.LinearLR(sgd(), end_factor=2.0),
        ARGUMENT,
        "LinearLR: end_factor must be between 0 and 1, got 2",
    ),
    "a rate that is text": (
        lambda: lrs.CosineAnnealingWarmRestarts(sgd(), 1, eta_min="0"),
        ARGUMENT,
        "CosineAnnealingWarmRestarts: eta_min must be a number, got '0'",
    ),
    "an epoch before the first": (
        lambda: lrs.CosineAnnealingWarmRestarts(sgd(), 1).step(-1),
        ARGUMENT,
        "CosineAnnealingWarmRestarts.step: epoch must be at least 0, got -1",
    ),
    "no schedulers": (lambda: lrs.ChainedScheduler([]), ARGUMENT, "ChainedScheduler: schedulers is empty"),
    "a number among schedulers": (
        lambda: lrs.ChainedScheduler([3]),
        CALL,
        "ChainedScheduler: schedulers[0] must be a scheduler, got int",
    ),
    "schedulers of two optimisers": (
        lambda: lrs.ChainedScheduler([lrs.ConstantLR(sgd()), lrs.ConstantLR(sgd())]),
        ARGUMENT,
        "ChainedScheduler: schedulers[1] belongs to another optimiser",
    ),
    "a plateau that raises": (
        lambda: lrs.ReduceLROnPlateau(sgd(), factor=1.0),
        ARGUMENT,
        "ReduceLROnPlateau: factor must be less than 1, got 1",
    ),
    "a group that came later": (grown, ARGUMENT, FEWER),
    "a share above one": (
        lambda: lrs.OneCycleLR(sgd(), 0.1, total_steps=2, pct_start=2.0),
        ARGUMENT,
        "OneCycleLR: pct_start must be a float between 0 and 1, got 2.0",
    ),
    "a step too many": (past_the_end, ARGUMENT, "OneCycleLR: step 3 is after the last of total_steps, 2"),
    "a number for a function": (
        lambda: lrs.MultiplicativeLR(sgd(), 3),
        CALL,
        "MultiplicativeLR: lr_lambda must be a function, got int",
    ),
    "too many rounds": (lambda: stepped_with(ns_steps=100), ARGUMENT, "Muon: ns_steps must be less than 100, got 100"),
    "two coefficients": (
        lambda: stepped_with(ns_coefficients=(1.0, 2.0)),
        ARGUMENT,
        "Muon: ns_coefficients must be three numbers, got 2",
    ),
    "a group that is a number": (lambda: sgd().add_param_group(3), CALL, "SGD: a group must be a dict, got int"),
    "names in one group": (
        lambda: sgd().add_param_group({"params": [("w", turnout.zeros(1, requires_grad=True))]}),
        ARGUMENT,
        "SGD: either all groups have names of parameters or none",
    ),
    "a hook that returns a number": (hooked, CALL, "a hook before a step must return None or a pair (args, kwargs), got 3"),
    "a decay above one": (
        lambda: swa_utils.get_ema_avg_fn(2.0),
        ARGUMENT,
        "get_ema_avg_fn: decay must be between 0 and 1, got 2",
    ),
    "two averages": (
        lambda: swa_utils.AveragedModel(weighted(), avg_fn=max, multi_avg_fn=max),
        ARGUMENT,
        "AveragedModel: avg_fn and multi_avg_fn exclude each other",
    ),
    "epochs below none": (
        lambda: swa_utils.SWALR(sgd(), 0.1, anneal_epochs=-1),
        ARGUMENT,
        "SWALR: anneal_epochs must be an integer of at least 0, got -1",
    ),
    "complex reflections": (
        lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2, dtype=turnout.complex64), orthogonal_map="householder"),
        ARGUMENT,
        "orthogonal: orthogonal_map 'householder' takes no complex weights",
    ),
    "a parametrization of text": (lambda: parametrized(Returning("w")), CALL, "a parametrization must return a tensor, got str"),
    "originals of text": (
        lambda: parametrized(Returning(turnout.zeros(2, 2), ["w"])),
        CALL,
        "right_inverse must return tensors, got str",
    ),
    "an original of text": (
        lambda: parametrized(Returning(turnout.zeros(2, 2), "w")),
        CALL,
        "right_inverse must return a tensor or several, got str",
    ),
    "numbers as metadata": (
        lambda: nn.save_safetensors({}, "unused", {"epoch": 3}),
        CALL,
        "save_safetensors: metadata must be text by name",
    ),
}


@pytest.mark.parametrize("what", TEXTS)
def test_it_says_what_is_wrong(what: str) -> None:
    call, kind, text = TEXTS[what]
    with pytest.raises(Exception) as caught:
        call()
    assert (type(caught.value).__name__, str(caught.value)) == (kind, text)
