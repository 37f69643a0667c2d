"""Every error of gradients that is not core's: the classes, and the texts of all of them.

| module | texts about |
|---|---|
| `passes` | backward passes: what they start from, what they reach, and what goes wrong on the way |
| `recording` | recording: writes and views that gradients cannot follow, operators without a gradient |
| `hooks` | hooks on tensors, nodes and saved tensors: where they may be registered and what they must return |
| `functions` | `turnout.autograd.Function`: what `forward`, `backward` and the context's methods must do |
| `tangents` | derivatives along a tangent that nobody wrote a rule for |
| `transforms` | `turnout.func` and `turnout.autograd.functional`: arguments, and what the transformed function must return |
| `checkpointing` | `turnout.utils.checkpoint` |
| `modules` | `turnout.func.functional_call` and what it calls modules |
| `forward` | forward mode: dual tensors, levels, and operators that tangents cannot pass |
| `drawing` | `turnout.autograd.graph.draw` |
| `described` | tensors, inside the other texts |
"""

from turnout.errors import TurnoutError
from turnout_autograd.errors import checkpointing as checkpointing
from turnout_autograd.errors import drawing as drawing
from turnout_autograd.errors import forward as forward
from turnout_autograd.errors import functions as functions
from turnout_autograd.errors import hooks as hooks
from turnout_autograd.errors import modules as modules
from turnout_autograd.errors import passes as passes
from turnout_autograd.errors import recording as recording
from turnout_autograd.errors import tangents as tangents
from turnout_autograd.errors import transforms as transforms
from turnout_autograd.errors.described import tensor_text as tensor_text


class GradientError(TurnoutError, RuntimeError):
    """A gradient that cannot be computed."""


class KindError(GradientError, ValueError):
    """A tensor to be differentiated that is neither floating-point nor complex; PyTorch raises ValueError in forward mode."""


class DrawingError(TurnoutError, RuntimeError):
    """A drawing that cannot be made."""
