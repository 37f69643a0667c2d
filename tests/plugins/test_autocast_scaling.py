"""`GradScaler`, and `custom_fwd` with `custom_bwd`."""

from __future__ import annotations

import copy
import pickle

import pytest

import turnout
from outcomes import refused
from turnout import amp, autograd
from turnout.errors import CallError, DTypeError

INF = float("inf")


class Descent:
    """The smallest optimiser: a step against the gradient."""

    def __init__(self, *parameters):
        self.param_groups = [{"params": list(parameters)}]
        self.steps = 0

    def step(self):
        self.steps += 1
        with turnout.no_grad():
            for parameter in self.param_groups[0]["params"]:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad)
        return "stepped"

    def zero_grad(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None


def weight(*values):
    return turnout.tensor(list(values), device="cpu", requires_grad=True)


def test_a_step_is_that_of_training_without_a_scaler():
    w = weight(1.0, 2.0)
    descent, scaler = Descent(w), amp.GradScaler("cpu", init_scale=1024.0)
    loss = (w * w).sum()
    scaled = scaler.scale(loss)
    assert scaled.item() == 1024.0 * loss.item()
    scaled.backward()
    assert w.grad.tolist() == [2048.0, 4096.0]
    assert scaler.step(descent) == "stepped"
    assert w.grad.tolist() == [2.0, 4.0]
    assert w.tolist() == [-1.0, -2.0]
    scaler.update()
    assert scaler.get_scale() == 1024.0


@pytest.mark.parametrize("bad", [INF, -INF, float("nan")])
def test_a_gradient_that_overflowed_leaves_the_step_out_and_shrinks_the_scale(bad):
    w, other = weight(1.0, 2.0), weight(3.0)
    descent, scaler = Descent(other, w), amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((w * turnout.tensor([1.0, bad], device="cpu")).sum() + other.sum()).backward()
    assert scaler.step(descent) is None
    assert descent.steps == 0
    assert w.tolist() == [1.0, 2.0]
    scaler.update()
    assert scaler.get_scale() == 4.0


@pytest.mark.parametrize(
    ("options", "factors", "scales"),
    [
        ({"init_scale": 4.0, "growth_factor": 3.0, "backoff_factor": 0.25}, (1, 1, 1, INF, 1, 1), [4, 12, 12, 3, 3, 9]),
        ({"init_scale": 3e38}, (1e-30, 1e-30), [3e38, 3e38]),
    ],
    ids=["grows", "would be infinite"],
)
def test_the_scale_grows_after_so_many_good_steps_in_a_row_unless_it_would_be_infinite(options, factors, scales):
    w = weight(1.0)
    descent, scaler = Descent(w), amp.GradScaler("cpu", growth_interval=2, **options)
    for factor, scale in zip(factors, scales, strict=True):
        descent.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(descent)
        scaler.update()
        assert scaler.get_scale() == pytest.approx(scale)


def test_gradients_can_be_clipped_between_unscale_and_step():
    w = weight(1.0)
    descent, scaler = Descent(w), amp.GradScaler("cpu", init_scale=16.0)
    scaler.scale((w * 5.0).sum()).backward()
    scaler.unscale_(descent)
    assert w.grad.tolist() == [5.0]
    w.grad.clamp_(max=1.0)
    scaler.step(descent)
    assert w.tolist() == [0.0]


def test_several_outputs_are_scaled_and_keep_their_container():
    scaler = amp.GradScaler("cpu", init_scale=2.0)
    one, two = turnout.ones(2, device="cpu"), turnout.ones((), dtype=turnout.float16, device="cpu")
    found = scaler.scale([one, (two,)])
    assert [found[0].tolist(), found[1][0].tolist()] == [[2.0, 2.0], 2.0]
    assert isinstance(found[1], tuple)
    assert [t.tolist() for t in scaler.scale(iter([one]))] == [[2.0, 2.0]]
    assert amp.GradScaler("cpu").scale(two).dtype is turnout.float32, "65536 is no float16"
    assert refused(CallError, scaler.scale, 3) == "GradScaler.scale: expected a tensor or an iterable of them, got int"


def test_two_optimisers_share_the_scale_and_step_on_their_own():
    a, b = weight(1.0), weight(1.0)
    first, second = Descent(a), Descent(b)
    scaler = amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(a.sum() + (b * INF).sum()).backward()
    assert scaler.step(first) == "stepped"
    assert scaler.step(second) is None
    scaler.update()
    assert scaler.get_scale() == 1.0


def test_methods_out_of_order_are_errors():
    w = weight(1.0)
    descent, scaler = Descent(w), amp.GradScaler("cpu")

    def error(call, *args, **kwargs):
        return refused((RuntimeError, TypeError), lambda: call(*args, **kwargs))

    for method, call in (("update", scaler.update), ("unscale_", lambda: scaler.step(descent))):
        assert error(call) == f"GradScaler.{method}: nothing was scaled yet\n  to fix  call scaler.scale(loss).backward() first"
    loss = scaler.scale(w.sum())
    assert error(scaler.update) == "GradScaler.update: no optimiser stepped since the last one"
    assert error(scaler.step, descent) == "GradScaler.step: no parameter of the optimiser has a gradient"
    scaler.update(65536.0)
    loss.backward()
    text = "GradScaler: optimizer must have param_groups, as those of turnout.optim do; got int"
    assert error(scaler.step, 3) == error(scaler.unscale_, 3) == text
    assert error(scaler.step, descent, closure=print) == (
        "GradScaler.step: an optimiser that takes a closure cannot be used while the scaler is enabled"
    )
    scaler.unscale_(descent)
    once = "\n  to fix  call update() once after each step"
    assert error(scaler.unscale_, descent) == f"GradScaler.unscale_: the gradients were unscaled already{once}"
    assert error(pickle.dumps, scaler) == (
        "GradScaler: pickled between unscale_() or step() and update(); pickle it after update()"
    )
    scaler.step(descent)
    assert error(scaler.unscale_, descent) == f"GradScaler.unscale_: step() was called already{once}"
    assert error(scaler.step, descent) == f"GradScaler.step: step() was called already for this optimiser{once}"
    assert descent.steps == 1
    assert refused(CallError, amp.GradScaler, growth_factor=1.0) == (
        "GradScaler: growth_factor must be greater than 1 and backoff_factor less than 1, got 1.0 and 0.5"
    )


def test_float16_gradients_are_refused():
    w = turnout.ones(2, dtype=turnout.float16, device="cpu", requires_grad=True)
    scaler = amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    assert refused(DTypeError, lambda: scaler.unscale_(Descent(w))) == (
        "GradScaler.unscale_: a gradient is float16, where unscaling overflows and underflows\n"
        "  to fix  keep the parameters in float32 and let autocast cast them"
    )


def test_one_that_is_not_enabled_changes_nothing():
    w = weight(1.0)
    descent, scaler = Descent(w), amp.GradScaler("cpu", enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(descent)
    assert scaler.step(descent) == "stepped"
    scaler.update()
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
    assert refused(RuntimeError, lambda: amp.GradScaler().load_state_dict({})) == (
        "GradScaler.load_state_dict: the state is empty; it was saved by a scaler that was not enabled"
    )


def test_its_state_continues_in_another_one():
    w = weight(1.0)
    descent, scaler = Descent(w), amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    scaler.scale(w.sum()).backward()
    scaler.step(descent)
    scaler.update()
    state = {"scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1}
    assert scaler.state_dict() == state
    loaded = amp.GradScaler("cpu")
    loaded.load_state_dict(state)
    for other in (loaded, pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        assert other.state_dict() == state
        other.scale(w.sum()).backward()
        other.step(descent)
        other.update()
        assert other.get_scale() == 8.0


# ---- custom_fwd and custom_bwd


class Product(autograd.Function):
    """x @ y, noting in which dtypes it ran."""

    seen: list = []

    @staticmethod
    @amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        made = x @ y
        Product.seen.append(made.dtype.name)
        return made

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        made = grad @ y.t()
        Product.seen.append(made.dtype.name)
        return made, x.t() @ grad


class Single(Product):
    """The same in float32, whatever is around it."""

    @staticmethod
    @amp.custom_fwd(device_type="cpu", cast_inputs=turnout.float32)
    def forward(ctx, x, y):
        assert not amp.is_autocast_enabled("cpu")
        return Product.forward.__wrapped__(ctx, x, y)


def test_backward_runs_in_the_casts_of_forward():
    Product.seen.clear()
    x = turnout.ones(2, 2, device="cpu", requires_grad=True)
    with turnout.autocast("cpu"):
        y = Product.apply(x, x)
    y.float().sum().backward()
    assert Product.seen == ["bfloat16", "bfloat16"]
    Product.seen.clear()
    y = Product.apply(x, x)
    with turnout.autocast("cpu"):
        y.sum().backward()
    assert Product.seen == ["float32", "float32"]


def test_inputs_are_cast_and_autocast_is_off_inside_forward_and_backward():
    Product.seen.clear()
    x = turnout.ones(2, 2, dtype=turnout.bfloat16, device="cpu", requires_grad=True)
    with turnout.autocast("cpu"):
        y = Single.apply(x, x)
        y.sum().backward()
    assert Product.seen == ["float32", "float32"]
    assert x.grad.dtype is turnout.bfloat16
