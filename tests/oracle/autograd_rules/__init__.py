"""Small programs on the rules of gradients, for PyTorch and for Turnout: `TABLES` has them by what they are about."""

from __future__ import annotations

from autograd_rules.backward import BACKWARD, LEAVES, SAVED
from autograd_rules.functions import FUNCTIONS
from autograd_rules.hooks import HOOKS
from autograd_rules.modes import MODES

TABLES = {
    "backward": BACKWARD, "saved": SAVED, "leaves": LEAVES, "modes": MODES, "hooks": HOOKS, "functions": FUNCTIONS,
}  # fmt: skip
