"""no_grad, enable_grad, set_grad_enabled, inference_mode: as blocks, decorators and calls; what inference tensors may not do."""

from __future__ import annotations

import asyncio
import copy
import pickle

import numpy
import pytest

import turnout
from outcomes import in_threads, refused
from own_functions import function
from turnout import autograd, config, func, plugins
from turnout.errors import DisabledError
from turnout.state import DISPATCH
from turnout_aten.tensor.levels import GRAD


@pytest.fixture
def p():
    return turnout.tensor([4.0, 5.0, 6.0], dtype=turnout.float64)


def inference(call):
    with turnout.inference_mode():
        return call()


MODES = {
    "no_grad": (turnout.no_grad, False),
    "enable_grad": (turnout.enable_grad, True),
    "set_grad_enabled(False)": (lambda: turnout.set_grad_enabled(False), False),
    "set_grad_enabled(True)": (lambda: turnout.set_grad_enabled(True), True),
    "inference_mode": (turnout.inference_mode, False),
    "inference_mode(False)": (lambda: turnout.inference_mode(False), True),
}
each_mode = pytest.mark.parametrize("name", MODES)


@each_mode
@pytest.mark.parametrize("around", [True, False])
def test_a_mode_holds_inside_its_block_and_an_exception_leaves_what_was_before(name, around):
    mode, enabled = MODES[name]
    with turnout.set_grad_enabled(around):
        before = GRAD.get(), DISPATCH.get()
        with mode():
            assert turnout.is_grad_enabled() is enabled
            assert turnout.is_inference_mode_enabled() is (name == "inference_mode")
        assert (GRAD.get(), DISPATCH.get()) == before
        with pytest.raises(KeyError), mode():
            raise KeyError
        assert (GRAD.get(), DISPATCH.get()) == before


@each_mode
def test_a_mode_decorates_functions_and_generators(name):
    mode, enabled = MODES[name]
    outside = not enabled

    @mode()
    def function(value, *, key=1):
        """Its text."""
        return value, key, turnout.is_grad_enabled()

    @mode()
    def generator():
        got = "start"
        try:
            while got != "stop":
                try:
                    got = yield got, turnout.is_grad_enabled()
                except KeyError:
                    got = "caught"
            return turnout.is_grad_enabled()
        finally:
            ended.append(turnout.is_grad_enabled())

    ended = []
    with turnout.set_grad_enabled(outside):
        assert function(3, key=4) == (3, 4, enabled)
        assert (function.__name__, function.__doc__) == ("function", "Its text.")
        made = generator()
        assert [next(made), made.send("a"), made.throw(KeyError())] == [(v, enabled) for v in ("start", "a", "caught")]
        assert turnout.is_grad_enabled() is outside
        with pytest.raises(StopIteration) as caught:
            made.send("stop")
        assert caught.value.value is enabled
        made = generator()
        next(made)
        made.close()
        assert ended == [enabled, enabled]
        assert turnout.is_grad_enabled() is outside


def test_modes_without_arguments_decorate_without_brackets():
    @turnout.no_grad
    def plain():
        return turnout.is_grad_enabled()

    @turnout.inference_mode
    def inferring():
        return turnout.is_inference_mode_enabled()

    @turnout.no_grad
    @turnout.enable_grad
    def recording():
        return turnout.is_grad_enabled()

    assert (plain(), inferring(), recording()) == (False, True, True)
    assert turnout.is_grad_enabled()


def test_set_grad_enabled_acts_at_once_and_the_block_ends_it():
    mode = turnout.set_grad_enabled(False)
    assert not turnout.is_grad_enabled()
    turnout.set_grad_enabled(True)
    with mode:
        assert not turnout.is_grad_enabled()
    assert turnout.is_grad_enabled()


def test_modes_are_of_one_thread_and_of_one_task():
    found = []

    async def inside():
        with turnout.inference_mode():
            await asyncio.sleep(0.01)
            found.append(turnout.ones(1).is_inference())

    async def outside():
        await asyncio.sleep(0.005)
        found.append(turnout.ones(1).is_inference())

    async def both():
        await asyncio.gather(inside(), outside())

    asyncio.run(both())
    assert found == [False, True]
    with turnout.inference_mode():
        assert in_threads(lambda: turnout.ones(1).is_inference()) == [False]


# ---- inference tensors


def test_everything_that_is_made_inside_is_an_inference_tensor(x):
    made = {
        "result": lambda: x * 2,
        "factory": lambda: turnout.zeros(3),
        "like": lambda: turnout.ones_like(x),
        "random": lambda: turnout.rand(3),
        "data": lambda: turnout.tensor([1.0]),
        "array": lambda: turnout.from_numpy(numpy.ones(3)),
        "as_tensor": lambda: turnout.as_tensor(numpy.ones(3)),
        "dlpack": lambda: turnout.from_dlpack(numpy.ones(3)),
        "meta": lambda: turnout.zeros(3, device="meta") + 1,
        "composite": lambda: turnout.einsum("i,j->ij", x, x),
        "several": lambda: turnout.sort(x)[1],
        "list": lambda: (x * 1).unbind(0)[1],
        "view": lambda: (x * 1)[1:].view(2, 1),
        "retyped": lambda: (x * 1).view(turnout.int64),
        "in place": lambda: (x * 1).add_(1),
        "turned": lambda: turnout.ones(2, 3).t_(),
        "out": lambda: turnout.add(x, x, out=turnout.ones(3, dtype=turnout.float64)),
        "converted": lambda: x.to(turnout.float32),
        "vmap": lambda: turnout.vmap(lambda t: t * 2)(x),
        "gradient": lambda: autograd.grad(total, x)[0],
        "under enable_grad": lambda: turnout.enable_grad()(lambda: x * 2)(),
    }
    total = (x * 2).sum()
    for name, make in made.items():
        tensor = inference(make)
        assert tensor.is_inference(), name
        assert turnout.is_inference(tensor), name
        assert not tensor.requires_grad, name
        assert tensor.is_leaf, name


def test_normal_tensors_stay_normal_inside_and_so_do_their_views(x, p):
    y = x * 1
    view = inference(lambda: p[:2])
    assert not view.is_inference()
    assert view._base is p
    assert not inference(lambda: p.detach()).is_inference()
    assert not inference(lambda: p.add_(1)).is_inference()
    assert p._version == 1
    z = (y * y).sum()
    inference(lambda: y.mul_(2))
    assert "was changed in place after it was used" in refused(RuntimeError, z.backward)


def test_outside_a_clone_is_normal_and_views_are_not(x):
    made = inference(lambda: x * 2)
    assert [t.is_inference() for t in (made[1:], made.detach(), made.reshape(3, 1), made.to(turnout.float64))] == [True] * 4
    assert [t.is_inference() for t in (made.clone(), made + 1, copy.deepcopy(made))] == [False] * 3
    assert not pickle.loads(pickle.dumps(made)).is_inference()
    (made.clone() * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_what_needs_no_saved_value_takes_them(x):
    made = inference(lambda: turnout.ones(3, dtype=turnout.float64))
    (x + made).sum().backward()
    (x * 1).copy_(made).sum().backward()
    (x * 2).backward(made)
    assert x.grad.tolist() == [3.0] * 3
    with turnout.no_grad():
        assert (x * made).tolist() == [1.0, 2.0, 3.0]


SAVED = (
    "an inference tensor cannot be saved for the backward pass: it has no version, so later writes would go unnoticed\n"
    "  to fix  clone() it to get a normal tensor, or make it under no_grad instead of inference_mode"
)


Keep = function(lambda ctx, x, y: ctx.save_for_backward(y) or x * 1, lambda ctx, grad: (grad, None))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x * y,
        lambda x, y: y * x,
        lambda x, y: x @ y,
        lambda x, y: x[inference(lambda: turnout.tensor([0, 1]))],
        lambda x, y: turnout.addcmul(x, x, y[:]),
        lambda x, y: (x * 1).mul_(y),
        lambda x, y: (x * 1)[:2].mul_(y[:2]),
        lambda x, y: Keep.apply(x, y),
    ],
)
def test_they_are_never_saved_for_backward(x, call):
    made = inference(lambda: turnout.ones(3, dtype=turnout.float64))
    assert refused(RuntimeError, lambda: call(x, made)) == SAVED


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("aten::add_.Scalar", lambda t: t.add_(1)),
        ("aten::mul_.Scalar", lambda t: t[1:].mul_(1)),
        ("aten::mul_.Tensor", lambda t: t.mul_(turnout.ones(3, dtype=turnout.float64, requires_grad=True))),
        ("aten::fill_.Scalar", lambda t: t.detach().fill_(1)),
        ("aten::t_", lambda t: t.view(3, 1).t_()),
        ("aten::resize_", lambda t: t.resize_(5)),
    ],
)
def test_they_are_never_written_outside(x, name, write):
    made = inference(lambda: x * 2)
    for mode in (turnout.enable_grad, turnout.no_grad):
        with mode():
            assert refused(RuntimeError, lambda: write(made)) == (
                f"{name}: 'self' is an inference tensor, which cannot be changed in place outside inference_mode\n"
                "  to fix  clone() it to get a normal tensor, or write inside inference_mode"
            )
    assert made.tolist() == [2.0, 4.0, 6.0]
    assert inference(lambda: made.add_(1)) is made


def test_out_names_its_own_argument(p):
    made = inference(lambda: p * 2)
    assert refused(RuntimeError, lambda: turnout.add(p, p, out=made)).startswith("aten::add.out: 'out' is an inference tensor")


def test_they_have_no_version_and_require_gradients_only_inside(p):
    made = inference(lambda: p * 2)
    assert refused(RuntimeError, lambda: made._version) == "an inference tensor has no version: writes into it are not counted"
    for ask in (made.requires_grad_, lambda: setattr(made, "requires_grad", True)):
        assert refused(RuntimeError, ask) == (
            "an inference tensor cannot require gradients outside of inference_mode; clone() it for a normal tensor"
        )
    leaf = inference(lambda: turnout.ones(3, dtype=turnout.float64, requires_grad=True))
    (leaf[:2] + 1).sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0, 0.0]
    assert refused(RuntimeError, lambda: leaf * leaf) == SAVED


def test_a_view_of_a_normal_tensor_from_inside_cannot_be_written_where_gradients_are_recorded(x, p):
    view = inference(lambda: p[:2])
    assert refused(RuntimeError, lambda: view.mul_(x[:2])).startswith("aten::mul_.Tensor: self is a view made under no_grad")
    with turnout.no_grad():
        view.mul_(2)
    assert p.tolist() == [8.0, 10.0, 6.0]


def test_functional_gradients_do_not_care(p):
    def cube(t):
        return (t**3 * made / made).sum()

    made = inference(lambda: p * 2)
    expected = [48.0, 75.0, 108.0]
    assert turnout.func.grad(cube)(made / 2).tolist() == pytest.approx(expected)
    assert turnout.func.grad(lambda t: (t**3).sum())(inference(lambda: p * 1)).tolist() == pytest.approx(expected)
    inside = inference(lambda: turnout.func.grad(cube)(p))
    assert inside.tolist() == pytest.approx(expected)
    assert inference(lambda: turnout.func.hessian(cube)(made)).shape == (3, 3)
    assert refused(RuntimeError, lambda: turnout.func.grad(lambda t: made.mul_(t).sum())(p)).startswith(
        "aten::mul_.Tensor: 'self' is an inference tensor"
    )


def test_a_write_after_a_functional_gradient_has_saved_an_inference_tensor_is_noticed(p):
    with turnout.inference_mode():
        made = turnout.ones(3, dtype=turnout.float64)
        _, pull = turnout.func.vjp(lambda t: t * made, p)
        assert pull(p)[0].tolist() == p.tolist()
        made.add_(1)
        assert refused(RuntimeError, lambda: pull(p)).startswith(
            "aten::mul.Tensor: its saved 'other', a tensor float64 [3], was changed"
        )


def test_backward_inside_accumulates_normal_gradients(x):
    total = (x * x).sum()
    inference(total.backward)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0, 8.0]


def test_the_key_is_seen(p):
    made = inference(lambda: p * 2)
    with turnout.inference_mode():
        assert turnout.explain(turnout.ops.aten.mul.Tensor, p, p).path[0].key == "Inference"
    assert [step.key for step in turnout.explain(turnout.ops.aten.mul.Tensor, p, p).path] == ["CPU"]
    assert turnout.explain(turnout.ops.aten.mul.Tensor, made, p).path[0].key == "Inference"


# ---- autograd switched off by configuration


@pytest.fixture
def disabled():
    """A gradient function that was made before autograd was disabled."""
    made = func.grad(lambda t: (t * t).sum())
    made(turnout.ones(2))
    config.set({"keys.disable": ["Autograd"]})
    try:
        yield made
    finally:
        config.unset("keys.disable")


@pytest.mark.parametrize(
    "call",
    [
        lambda made: made(turnout.ones(2)),
        lambda made: func.grad(turnout.sum),
        lambda made: func.grad_and_value(turnout.sum),
        lambda made: func.vjp(turnout.sum, turnout.ones(2)),
        lambda made: func.jvp(turnout.sum, (turnout.ones(2),), (turnout.ones(2),)),
        lambda made: func.linearize(turnout.sum, turnout.ones(2)),
        lambda made: func.jacrev(turnout.sum),
        lambda made: func.jacfwd(turnout.sum),
        lambda made: func.hessian(turnout.sum),
        lambda made: autograd.functional.jacobian(turnout.sum, turnout.ones(2)),
    ],
    ids=["made before", "grad", "grad_and_value", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "hessian", "jacobian"],
)
def test_a_transform_while_autograd_is_disabled_is_an_error(disabled, call):
    assert "Autograd was asked for, but keys.disable switches it off" in refused(DisabledError, call, disabled)
    assert func.vmap(lambda t: t * 2)(turnout.ones(2)).tolist() == [2.0, 2.0]


def test_the_names_of_func_are_those_of_two_plugins():
    assert {"grad", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "loop_counts", "vjp", "vmap"} <= set(dir(func))
    assert func.vmap is plugins.service("Batched").vmap
    with pytest.raises(AttributeError, match=r"module 'turnout\.func' has no attribute 'pmap'"):
        _ = func.pmap
