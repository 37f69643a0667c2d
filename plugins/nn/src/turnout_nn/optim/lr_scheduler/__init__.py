"""`turnout.optim.lr_scheduler`: learning rates that change while a model is trained.

`scheduler.step()` after each epoch, or after each step, sets "lr" of the optimiser's groups. Start with `scheduler`, the base
class; a scheduler of `factors` says by what it multiplies, in `_factor`.
"""

from turnout_nn.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from turnout_nn.optim.lr_scheduler.cosines import CosineAnnealingLR, CosineAnnealingWarmRestarts
from turnout_nn.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from turnout_nn.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from turnout_nn.optim.lr_scheduler.plateau import ReduceLROnPlateau
from turnout_nn.optim.lr_scheduler.scheduler import LRScheduler

__all__ = [
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "SequentialLR",
    "CosineAnnealingLR", "ChainedScheduler", "ReduceLROnPlateau", "CyclicLR", "CosineAnnealingWarmRestarts", "OneCycleLR",
    "PolynomialLR", "LRScheduler",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
