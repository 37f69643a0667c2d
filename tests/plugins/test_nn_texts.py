"""What modules, optimisers, schedulers and loaders say of arguments that they do not take, and of which they warn."""

from __future__ import annotations

from typing import Any

import pytest
from turnout.optim import lr_scheduler as lrs
from turnout.optim import swa_utils  # noqa: F401 - of a row
from turnout.utils import data

import turnout
from refusal_tables import rows, said
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


TEXTS = """
data.StackDataset()
    ArgumentError: StackDataset: expected either data sets or data sets by name
data.StackDataset([1], [1, 2])
    ArgumentError: StackDataset: data sets must have one length, got [1, 2]
data.ConcatDataset([])
    ArgumentError: ConcatDataset: expected data sets with samples at indices; ChainDataset takes iterable ones
list(data.ChainDataset([[1]]))
    ArgumentError: ChainDataset: expected iterable data sets, got list
data.RandomSampler([1], num_samples=0)
    ArgumentError: RandomSampler: num_samples must be an integer above 0, or None, got 0
data.WeightedRandomSampler([1.0], 0)
    ArgumentError: WeightedRandomSampler: num_samples must be an integer above 0, got 0
data.WeightedRandomSampler(turnout.ones(1, 1), 1)
    ArgumentError: WeightedRandomSampler: weights must be a vector, got shape [1, 1]
late()
    WorkerError: DataLoader: worker 0 did not answer within 0.05 seconds
searched()
    ArgumentError: LBFGS: line_search_fn must be None or 'strong_wolfe', got 'bisection'
lrs.LinearLR(sgd(), start_factor=0.0)
    ArgumentError: LinearLR: start_factor must be above 0 and at most 1, got 0
lrs.LinearLR(sgd(), end_factor=2.0)
    ArgumentError: LinearLR: end_factor must be between 0 and 1, got 2
lrs.CosineAnnealingWarmRestarts(sgd(), 1, eta_min='0')
    ArgumentError: CosineAnnealingWarmRestarts: eta_min must be a number, got '0'
lrs.CosineAnnealingWarmRestarts(sgd(), 1).step(-1)
    ArgumentError: CosineAnnealingWarmRestarts.step: epoch must be at least 0, got -1
lrs.ChainedScheduler([])
    ArgumentError: ChainedScheduler: schedulers is empty
lrs.ChainedScheduler([3])
    CallError: ChainedScheduler: schedulers[0] must be a scheduler, got int
lrs.ChainedScheduler([lrs.ConstantLR(sgd()), lrs.ConstantLR(sgd())])
    ArgumentError: ChainedScheduler: schedulers[1] belongs to another optimiser
lrs.ReduceLROnPlateau(sgd(), factor=1.0)
    ArgumentError: ReduceLROnPlateau: factor must be less than 1, got 1
grown()
    ArgumentError: ReduceLROnPlateau: min_lr has 1 values, and the optimiser has 2 groups
      to fix  add a number to `min_lrs` when a group is added
lrs.OneCycleLR(sgd(), 0.1, total_steps=2, pct_start=2.0)
    ArgumentError: OneCycleLR: pct_start must be a float between 0 and 1, got 2.0
past_the_end()
    ArgumentError: OneCycleLR: step 3 is after the last of total_steps, 2
lrs.MultiplicativeLR(sgd(), 3)
    CallError: MultiplicativeLR: lr_lambda must be a function, got int
stepped_with(ns_steps=100)
    ArgumentError: Muon: ns_steps must be less than 100, got 100
stepped_with(ns_coefficients=(1.0, 2.0))
    ArgumentError: Muon: ns_coefficients must be three numbers, got 2
sgd().add_param_group(3)
    CallError: SGD: a group must be a dict, got int
sgd().add_param_group({'params': [('w', turnout.zeros(1, requires_grad=True))]})
    ArgumentError: SGD: either all groups have names of parameters or none
hooked()
    CallError: a hook before a step must return None or a pair (args, kwargs), got 3
swa_utils.get_ema_avg_fn(2.0)
    ArgumentError: get_ema_avg_fn: decay must be between 0 and 1, got 2
swa_utils.AveragedModel(3)
    CallError: AveragedModel: model must be a Module, got int
optim.SGD(3)
    CallError: SGD: params must be an iterable of tensors or groups, got int
lrs.MultiStepLR(sgd(), 3)
    CallError: MultiStepLR: milestones must be an iterable of epochs, got int
data.StackDataset(3)
    CallError: StackDataset: a data set must have a length, got int
nn.Upsample(scale_factor='2')
    CallError: Upsample: scale_factor must be a number, or one for each dimension, got str
nn.Embedding('3', 2)
    CallError: Embedding: argument 'num_embeddings' must be an int, got str '3'
nn.ModuleList()['x']
    CallError: ModuleList: argument 'idx' must be an int or a slice, got str 'x'
swa_utils.AveragedModel(weighted(), avg_fn=max, multi_avg_fn=max)
    ArgumentError: AveragedModel: avg_fn and multi_avg_fn exclude each other
swa_utils.SWALR(sgd(), 0.1, anneal_epochs=-1)
    ArgumentError: SWALR: anneal_epochs must be an integer of at least 0, got -1
nn.utils.parametrizations.orthogonal(nn.Linear(2, 2, dtype=turnout.complex64), orthogonal_map='householder')
    ArgumentError: orthogonal: orthogonal_map 'householder' takes no complex weights
parametrized(Returning('w'))
    CallError: a parametrization must return a tensor, got str
parametrized(Returning(turnout.zeros(2, 2), ['w']))
    CallError: right_inverse must return tensors, got str
parametrized(Returning(turnout.zeros(2, 2), 'w'))
    CallError: right_inverse must return a tensor or several, got str
nn.save_safetensors({}, 'unused', {'epoch': 3})
    CallError: save_safetensors: metadata must be text by name
optim.SGD([weight := turnout.zeros(2, requires_grad=True), weight], lr=0.1)
    UserWarning: SGD: a parameter is twice in a group, so each step changes it twice
lrs.StepLR(sgd(), 1).step()
    UserWarning: StepLR.step() is called before optimizer.step(), so the first learning rate is never used
[made := lrs.StepLR(sgd(), 1), made.optimizer.step(), made.step(3)]
    UserWarning: StepLR.step: epoch is PyTorch's old form; call step() once for each epoch
lrs.ReduceLROnPlateau(sgd()).step(1.0, 3)
    UserWarning: ReduceLROnPlateau.step: epoch is PyTorch's old form; call step(metrics) once for each epoch
nn.Dropout2d()(turnout.ones(2, 2))
    UserWarning: dropout2d: 'input' should have 3 or 4 dimensions, got shape [2, 2]; channels are dim 1
"""


@pytest.mark.parametrize(("call", "says"), rows(TEXTS))
def test_it_says_what_is_wrong(call: str, says: str) -> None:
    assert said(call, globals()) == says
