"""Gradients, their registration, and replays of traces."""

from __future__ import annotations

import turnout
from faults.correct import CORRECT, CUBE, of
from faults.model import given, values
from faults.planted.fault import GRADIENTS, LATEST, ONE, REGISTRATION, REPLAY, TWO, fault
from own_functions import function

# ---- gradients


def writes_grad(ctx, grad):
    (x,) = ctx.saved_tensors
    grad.mul_(3)
    return grad * x * x


def saved_copy(ctx, inputs, output):
    ctx.x = inputs[0].detach().clone()


def global_setup(ctx, inputs, output):
    LATEST["saved"] = inputs[0]


# ---- registration of gradients


def doubled(x):
    """Twice the values of x, with a gradient that is recorded where the kernel runs."""
    made = function(lambda ctx, x: x * 2, lambda ctx, grad: grad * 2)
    return made.apply(turnout.tensor(x.tolist(), dtype=x.dtype, requires_grad=x.is_floating_point()))


# fmt: off
FAULTS = [
    # ---- gradients
    fault("gradient_of_half_the_size", GRADIENTS, "the gradient of output 0 with respect to input 0 is wrong", CUBE,
          backward=lambda ctx, grad: grad * 1.5 * ctx.saved_tensors[0] ** 2),
    fault("gradient_of_the_wrong_sign", GRADIENTS, "is wrong", CUBE,
          backward=lambda ctx, grad: -3 * grad * ctx.saved_tensors[0] ** 2),
    fault("gradient_that_ignores_the_incoming_one", GRADIENTS, "is wrong", CUBE,
          backward=lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2),
    fault("gradient_that_is_none", GRADIENTS, "is wrong", CUBE, backward=lambda ctx, grad: None),
    fault("gradient_of_another_shape", GRADIENTS, "raised", CUBE, backward=lambda ctx, grad: grad.reshape((-1,))[:-1]),
    fault("gradients_for_too_few_inputs", GRADIENTS, "raised", CORRECT["outer"],
          backward=lambda ctx, grad: grad @ ctx.saved_tensors[1]),
    fault("gradients_in_the_wrong_order", GRADIENTS, "is wrong", TWO, kernel=lambda x, y: x + y * 2,
          backward=lambda ctx, grad: (grad * 2, grad)),
    fault("gradient_writes_the_incoming_one", GRADIENTS, "writes the incoming gradient", CUBE, backward=writes_grad),
    fault("gradient_kept_in_a_global", GRADIENTS, "of the latest call", CUBE, setup=global_setup,
          backward=lambda ctx, grad: grad * 3 * LATEST["saved"] * LATEST["saved"]),
    fault("gradient_without_a_second_one", GRADIENTS, "second", CUBE, setup=saved_copy,
          backward=lambda ctx, grad: grad * 3 * ctx.x * ctx.x),
    fault("gradient_detached_by_numpy", GRADIENTS, "second", CUBE,
          backward=lambda ctx, grad: of(grad.detach().numpy() * 3 * ctx.saved_tensors[0].detach().numpy() ** 2)),
    fault("gradient_wrong_where_one_input_is_tracked", GRADIENTS, "is wrong", TWO,
          backward=lambda ctx, grad: (grad if ctx.needs_input_grad[1] else grad * 2, grad)),
    fault("gradient_of_the_wrong_results", GRADIENTS, "is wrong", CORRECT["signs"], backward=lambda ctx, up, down: up + down),
    fault("gradient_without_the_scale", GRADIENTS, "is wrong", CORRECT["weighted"],
          backward=lambda ctx, grad: ([grad] * len(ctx.weights), None)),
    fault("gradient_not_conjugated", GRADIENTS, "is wrong", CORRECT["conj_product"],
          backward=lambda ctx, grad: (grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0])),
    fault("gradient_of_another_dtype", GRADIENTS, "raised", CUBE,
          backward=lambda ctx, grad: (grad * 3 * ctx.saved_tensors[0] ** 2).to(turnout.complex128)),
    # ---- registration of gradients
    fault("autograd_kernel_without_gradient", REGISTRATION, "does not require a gradient", ONE,
          kernels={"Autograd": lambda x: x.detach() * 2}),
    fault("gradient_recorded_below_autograd", REGISTRATION, "below Autograd", ONE, key="CPU",
          kernel=doubled),
    fault("refuses_tracked_arguments", REGISTRATION, "require a gradient", CORRECT["positives"],
          kernel=lambda x: int((x.numpy() > 0).sum())),
    # ---- replays
    fault("composite_branches_on_values", REPLAY, "a replay", CORRECT["soft"],
          kernel=lambda x, slope=1.5: x * slope if x.reshape((-1,))[0].item() > 0 else x * -slope,
          inputs=lambda: given(values(2, 3), 2.0)),
    fault("composite_bakes_in_a_number", REPLAY, "a replay", CORRECT["soft"],
          kernel=lambda x, slope=1.5: x * float(x.detach().sum().item())),
]
# fmt: on
