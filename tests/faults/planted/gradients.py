"""Gradients, their registration, and replays of traces."""

from __future__ import annotations

import turnout
from faults.correct import CORRECT, CUBE, of
from faults.model import given, values
from faults.planted.fault import GRADIENTS, LATEST, ONE, REGISTRATION, REPLAY, TWO, plant

# ---- gradients


def half_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * 1.5 * x * x


def writes_grad(ctx, grad):
    (x,) = ctx.saved_tensors
    grad.mul_(3)
    return grad * x * x


def saved_copy(ctx, inputs, output):
    ctx.x = inputs[0].detach().clone()


def global_setup(ctx, inputs, output):
    LATEST["saved"] = inputs[0]


def late_backward(ctx, grad):
    return grad * 3 * LATEST["saved"] * LATEST["saved"]


plant(
    "gradient_of_half_the_size",
    GRADIENTS,
    "the gradient of output 0 with respect to input 0 is wrong",
    CUBE,
    backward=half_backward,
)
plant("gradient_of_the_wrong_sign", GRADIENTS, "is wrong", CUBE, backward=lambda ctx, grad: -3 * grad * ctx.saved_tensors[0] ** 2)
plant(
    "gradient_that_ignores_the_incoming_one",
    GRADIENTS,
    "is wrong",
    CUBE,
    backward=lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2,
)
plant("gradient_that_is_none", GRADIENTS, "is wrong", CUBE, backward=lambda ctx, grad: None)
plant("gradient_of_another_shape", GRADIENTS, "raised", CUBE, backward=lambda ctx, grad: grad.reshape((-1,))[:-1])
plant(
    "gradients_for_too_few_inputs", GRADIENTS, "raised", CORRECT["outer"], backward=lambda ctx, grad: grad @ ctx.saved_tensors[1]
)
plant(
    "gradients_in_the_wrong_order",
    GRADIENTS,
    "is wrong",
    TWO,
    kernel=lambda x, y: x + y * 2,
    backward=lambda ctx, grad: (grad * 2, grad),
)
plant("gradient_writes_the_incoming_one", GRADIENTS, "writes the incoming gradient", CUBE, backward=writes_grad)
plant("gradient_kept_in_a_global", GRADIENTS, "of the latest call", CUBE, backward=late_backward, setup=global_setup)
plant(
    "gradient_without_a_second_one",
    GRADIENTS,
    "second",
    CUBE,
    setup=saved_copy,
    backward=lambda ctx, grad: grad * 3 * ctx.x * ctx.x,
)
plant(
    "gradient_detached_by_numpy",
    GRADIENTS,
    "second",
    CUBE,
    backward=lambda ctx, grad: of(grad.detach().numpy() * 3 * ctx.saved_tensors[0].detach().numpy() ** 2),
)
plant(
    "gradient_wrong_where_one_input_is_tracked",
    GRADIENTS,
    "is wrong",
    TWO,
    backward=lambda ctx, grad: (grad if ctx.needs_input_grad[1] else grad * 2, grad),
)
plant("gradient_of_the_wrong_results", GRADIENTS, "is wrong", CORRECT["signs"], backward=lambda ctx, up, down: up + down)
plant(
    "gradient_without_the_scale",
    GRADIENTS,
    "is wrong",
    CORRECT["weighted"],
    backward=lambda ctx, grad: ([grad] * len(ctx.weights), None),
)
plant(
    "gradient_not_conjugated",
    GRADIENTS,
    "is wrong",
    CORRECT["conj_product"],
    backward=lambda ctx, grad: (grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]),
)
plant(
    "gradient_of_another_dtype",
    GRADIENTS,
    "raised",
    CUBE,
    backward=lambda ctx, grad: (grad * 3 * ctx.saved_tensors[0] ** 2).to(turnout.complex128),
)


# ---- registration of gradients


def detached_autograd(x):
    return x.detach() * 2


class _Doubled:
    """Makes the Function at first use."""

    @staticmethod
    def apply(x):
        class Doubled(turnout.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        return Doubled.apply(x)


plant(
    "autograd_kernel_without_gradient", REGISTRATION, "does not require a gradient", ONE, kernels={"Autograd": detached_autograd}
)
plant(
    "gradient_recorded_below_autograd",
    REGISTRATION,
    "below Autograd",
    ONE,
    key="CPU",
    kernel=lambda x: _Doubled.apply(turnout.tensor(x.tolist(), dtype=x.dtype, requires_grad=x.is_floating_point())),
)

plant(
    "refuses_tracked_arguments",
    REGISTRATION,
    "require a gradient",
    CORRECT["positives"],
    kernel=lambda x: int((x.numpy() > 0).sum()),
)

# ---- replays


def reads_first_value(x, slope=1.5):
    return x * slope if x.reshape((-1,))[0].item() > 0 else x * -slope


plant(
    "composite_branches_on_values",
    REPLAY,
    "a replay",
    CORRECT["soft"],
    kernel=reads_first_value,
    inputs=lambda: given(values(2, 3), 2.0),
)
plant(
    "composite_bakes_in_a_number",
    REPLAY,
    "a replay",
    CORRECT["soft"],
    kernel=lambda x, slope=1.5: x * float(x.detach().sum().item()),
)
