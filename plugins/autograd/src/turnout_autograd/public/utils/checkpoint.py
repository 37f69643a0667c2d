"""`turnout.utils.checkpoint`: functions that run again in the backward pass, instead of keeping what they save."""

from turnout_autograd.checkpointing.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_early_stop,
)
from turnout_autograd.checkpointing.recomputation import CheckpointError

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_early_stop"]
__dir__ = __all__.copy
