"""`turnout.optim`: optimisers, learning rates over time (`lr_scheduler`) and averages of weights (`swa_utils`).

Start with `optimizer`: the base class holds groups of parameters, states, hooks and their saving, and runs a step. An optimiser
adds the state with which a parameter starts and one rule, which says how a step changes a parameter. A rule calls methods of
tensors; `operands` has what may stand in a tensor's place, so that the same rule serves a list of tensors in one call and a step
that is itself differentiated.
"""

from turnout_nn.optim import lr_scheduler, swa_utils
from turnout_nn.optim.adafactor import Adafactor
from turnout_nn.optim.lbfgs import LBFGS
from turnout_nn.optim.moments import Adam, Adamax, AdamW, NAdam, RAdam
from turnout_nn.optim.momentum import SGD, Muon
from turnout_nn.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from turnout_nn.optim.signs import ASGD, Rprop
from turnout_nn.optim.squares import Adadelta, Adagrad, RMSprop

__all__ = [
    "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop", "SGD", "lr_scheduler", "swa_utils", "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
