"""`GradScaler` and `custom_fwd` against PyTorch's: the same training, with overflows in it, step by step."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

FACTORS = [1.0, 3.0, float("inf"), 1e-3, 1e38, 1.0, float("nan"), 2.0, 1e-38]


class Descent:
    """SGD for either library."""

    def __init__(self, lib, parameters):
        self.lib = lib
        self.param_groups = [{"params": parameters}]

    def step(self):
        with self.lib.no_grad():
            for parameter in self.param_groups[0]["params"]:
                parameter.sub_(parameter.grad * 0.01)


def history(lib, factors, options):
    parameters = [lib.ones(3, device="cpu"), lib.ones(2, dtype=lib.float64, device="cpu")]
    parameters = [p.requires_grad_() for p in parameters]
    descent, scaler = Descent(lib, parameters), lib.amp.GradScaler("cpu", **options)
    seen = []
    for i, factor in enumerate(factors):
        for parameter in parameters:
            parameter.grad = None
        scaler.scale(sum((p * factor).sum() for p in parameters)).backward()
        if i % 3 == 0:
            scaler.unscale_(descent)
        scaler.step(descent)
        scaler.update(*([2.0**10] if i == 17 else []))
        seen.append((scaler.state_dict(), [p.grad.tolist() for p in parameters], [p.tolist() for p in parameters]))
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_a_training_with_overflows_scales_and_steps_as_torch_does(seed):
    draw = random.Random(seed)
    factors = [draw.choice(FACTORS) for _ in range(30)]
    options = {"init_scale": draw.choice([2.0**16, 3e38, 1.0]), "growth_interval": draw.choice([1, 2, 3])}
    for step, (ours, theirs) in enumerate(zip(history(turnout, factors, options), history(torch, factors, options), strict=True)):
        assert repr(ours) == repr(theirs), step


@pytest.mark.parametrize("cast", ["float32", None])
@pytest.mark.parametrize("around", [True, False])
def test_custom_forward_and_backward_run_in_the_dtypes_of_torch(cast, around):
    def seen(lib):
        dtypes = []
        cast_inputs = None if cast is None else getattr(lib, cast)

        class Product(lib.autograd.Function):
            @staticmethod
            @lib.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                dtypes.append((x @ y).dtype)
                return x @ y

            @staticmethod
            @lib.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                dtypes.append((grad @ y.t()).dtype)
                return grad @ y.t(), x.t() @ grad

        x = lib.ones(2, 2, dtype=lib.bfloat16, device="cpu").requires_grad_()
        with lib.autocast("cpu", enabled=around):
            made = Product.apply(x, x)
        with lib.autocast("cpu", enabled=not around):
            made.sum().backward()
        return [str(d).removeprefix("torch.").removeprefix("turnout.") for d in (*dtypes, made.dtype, x.grad.dtype)]

    assert seen(turnout) == seen(torch)
