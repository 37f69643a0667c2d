"""`turnout.utils.checkpoint`: what is saved is computed again, and gradients are those of a plain call."""

from __future__ import annotations

import contextlib
import weakref

import pytest
from turnout.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_early_stop,
)

import turnout
from outcomes import refused
from random_programs import checkpoints
from refusal_tables import rows, said
from turnout import autograd
from turnout.errors import AliasError

F = turnout.nn.functional


def leaf(*values):
    return turnout.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def counted(function):
    def call(*args, **kwargs):
        call.count += 1
        return function(*args, **kwargs)

    call.count = 0
    return call


def test_gradients_of_random_programs_are_those_without_checkpoints(seeds):
    for seed in seeds(80):
        checkpoints.compare(seed, early_stop=seed % 2 == 0, determinism_check="default" if seed % 4 < 2 else "none")


def test_nothing_that_the_function_saves_is_alive_between_forward_and_backward():
    made = []

    def function(x):
        y = x.exp()
        made.append(weakref.ref(y))
        return y.sin().sum()

    x = leaf()
    plain = function(x)
    assert made[-1]() is not None
    loss = checkpoint(function, x)
    assert made[-1]() is None
    loss.backward()
    (gradient,) = autograd.grad(plain, x)
    assert x.grad.tolist() == gradient.tolist()
    assert made[-1]() is None


def test_the_function_runs_again_once_in_each_backward_pass():
    function = counted(lambda x, w: (x @ w).exp().sin().sum())
    x, w = turnout.ones(2, 2, requires_grad=True), turnout.ones(2, 2, requires_grad=True)
    loss = checkpoint(function, x, w)
    assert function.count == 1
    loss.backward(retain_graph=True)
    assert function.count == 2
    loss.backward()
    assert function.count == 3
    refused(autograd.GradientError, loss.backward)


def test_nested_calls_run_again_as_their_depth_says():
    calls = []

    def inner(x):
        calls.append("inner")
        return x.exp().sin()

    def outer(x):
        calls.append("outer")
        return checkpoint(inner, x.sin()).exp() * x

    x = leaf()
    loss = checkpoint(outer, x).sum()
    loss.backward()
    assert calls == ["outer", "inner", "outer", "inner", "inner"]


def test_a_function_is_left_when_it_has_saved_what_is_needed():
    ends = []

    def function(x):
        y = x.exp().sin().sum()
        ends.append(True)
        return y

    for early, forced, count in [(True, None, 1), (False, None, 2), (True, False, 2), (False, True, 1)]:
        ends.clear()
        with contextlib.nullcontext() if forced is None else set_checkpoint_early_stop(forced):
            loss = checkpoint(function, leaf(), early_stop=early)
        loss.backward()
        assert len(ends) == count


def test_only_what_is_still_needed_decides_when_a_function_is_left():
    ends = []

    def function(x, w):
        y = (x * w).sum()
        ends.append("first")
        z = w.exp().sin().sum()
        ends.append("second")
        return y, z

    x, w = leaf(), leaf()
    y, z = checkpoint(function, x, w)
    del z
    ends.clear()
    y.backward()
    assert ends == []


def test_except_exception_in_the_function_does_not_keep_it_running():
    reached = []

    def function(x):
        try:
            y = x.exp()
        except Exception:  # noqa: BLE001 - what users write
            y = x
        reached.append(y)
        return y.sum()

    x = leaf()
    checkpoint(function, x).backward()
    assert len(reached) == 1
    assert x.grad.tolist() == x.exp().tolist()


def test_random_numbers_are_those_of_the_first_time_and_later_ones_are_not_touched():
    function = lambda x: F.dropout(x.exp(), 0.5) * turnout.rand(3)  # noqa: E731
    found = []
    for call in (lambda x: function(x), lambda x: checkpoint(function, x)):
        turnout.manual_seed(5)
        x = leaf()
        loss = call(x).sum()
        between = turnout.rand(1)
        loss.backward()
        found.append((x.grad.tolist(), between.tolist(), turnout.rand(2).tolist()))
    assert found[0] == found[1]


def test_without_preserve_rng_state_new_numbers_are_drawn():
    def function(x):
        drawn.append(turnout.rand(3).tolist())
        return (x.exp() * turnout.tensor(drawn[-1])).sum()

    drawn = []
    turnout.manual_seed(5)
    checkpoint(function, leaf(), preserve_rng_state=False).backward()
    assert drawn[0] != drawn[1]
    drawn.clear()
    turnout.manual_seed(5)
    checkpoint(function, leaf()).backward()
    assert drawn[0] == drawn[1]


def test_the_function_runs_again_with_the_casts_of_the_first_time():
    dtypes = []

    def function(a, b):
        product = a @ b
        dtypes.append(product.dtype)
        return product.exp()

    a, b = turnout.ones(2, 2, requires_grad=True), turnout.ones(2, 2, requires_grad=True)
    with turnout.autocast("cpu"):
        result = checkpoint(function, a, b)
    result.float().sum().backward()
    result = checkpoint(function, a, b)
    with turnout.autocast("cpu"):
        result.sum().backward()
    with turnout.autocast("cpu", turnout.float16):
        result = checkpoint(function, a, b)
    with turnout.autocast("cpu", turnout.bfloat16):
        result.float().sum().backward()
    half, single = [turnout.bfloat16] * 2, [turnout.float32] * 2
    assert dtypes == [*half, *single, turnout.float16, turnout.float16]


def test_arguments_by_name_and_in_trees_are_given_again():
    def function(tree, *, scale, note):
        assert note == "as it is"
        return (tree["w"][0] * tree["b"]).exp().sum() * scale

    w, b, scale = leaf(), leaf(0.5, 0.5, 0.5), turnout.tensor(2.0, requires_grad=True)
    checkpoint(function, {"w": [w], "b": b}, scale=scale, note="as it is").backward()
    found = [t.grad.tolist() for t in (w, b, scale)]
    for t in (w, b, scale):
        t.grad = None
    function({"w": [w], "b": b}, scale=scale, note="as it is").backward()
    assert found == [t.grad.tolist() for t in (w, b, scale)]


def test_second_order_gradients_are_those_without_checkpoints():
    function = lambda x, w: (x @ w).exp().sin()  # noqa: E731
    x, w = turnout.randn(3, 4, requires_grad=True), turnout.randn(4, 4, requires_grad=True)
    found = []
    for call in (function, lambda x, w: checkpoint(function, x, w)):
        first = autograd.grad(call(x, w).square().sum(), (x, w), create_graph=True)
        second = autograd.grad(sum(g.square().sum() for g in first), (x, w))
        found.append([g.tolist() for g in (*first, *second)])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f, x: turnout.func.grad(f)(x[0]),
        lambda f, x: turnout.func.hessian(f)(x[0]),
        lambda f, x: turnout.func.jvp(f, (x[0],), (x[1],))[1],
        lambda f, x: turnout.func.jvp(turnout.func.grad(f), (x[0],), (x[1],))[1],
        lambda f, x: turnout.func.grad(lambda x: turnout.func.jvp(f, (x,), (x * x,))[1])(x[0]),
        lambda f, x: turnout.func.linearize(turnout.func.grad(f), x[0])[1](x[1]),
        lambda f, x: turnout.vmap(turnout.func.grad(f))(x),
        lambda f, x: turnout.func.grad(lambda x: turnout.vmap(f)(x).sum())(x),
        lambda f, x: turnout.vmap(lambda row: autograd.grad(f(row), row)[0])(x.requires_grad_()),
        lambda f, x: turnout.vmap(turnout.func.jacrev(turnout.func.grad(f)))(x),
    ],
)
def test_checkpoints_inside_transforms_change_nothing(transformed):
    plain = lambda x: x.exp().sin().prod()  # noqa: E731
    x = turnout.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    assert transformed(lambda x: checkpoint(plain, x), x).tolist() == transformed(plain, x).tolist()


def test_autograd_functions_inside_are_recomputed_too():
    class Cube(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            (again,) = ctx.saved_tensors
            assert again.tolist() == x.tolist()
            return 3 * x * x * grad

    x = leaf()
    checkpoint(lambda x: Cube.apply(x.sin()).sum(), x).backward()
    expected = leaf()
    (expected.sin() ** 3).sum().backward()
    assert turnout.allclose(x.grad, expected.grad)


@pytest.mark.parametrize("early", [True, False])
def test_a_function_may_compute_gradients_inside_itself(early):
    def function(x):
        y = (x.exp() * x).sum()
        (g,) = autograd.grad(y, x, create_graph=True)
        return (g.square() * x).sum()

    x = leaf(0.1, 0.2)
    checkpoint(function, x, early_stop=early).backward()
    expected = leaf(0.1, 0.2)
    function(expected).backward()
    assert x.grad.tolist() == expected.grad.tolist()


def test_tensors_of_the_surroundings_get_gradients():
    w = leaf()
    checkpoint(lambda x: (x * w).exp().sum(), turnout.ones(3)).backward()
    assert w.grad.tolist() == w.exp().tolist()


def test_where_nothing_is_recorded_the_call_is_a_plain_one():
    function = counted(lambda x: x.exp())
    with turnout.no_grad():
        assert not checkpoint(function, leaf()).requires_grad
    assert not checkpoint(function, turnout.ones(2)).requires_grad
    assert function.count == 2


def test_the_function_runs_again_inside_no_grad_too():
    x = leaf()
    loss = checkpoint(lambda x: x.exp().sum(), x)
    with turnout.no_grad():
        loss.backward()
    assert x.grad.tolist() == x.exp().tolist()


def test_the_contexts_of_context_fn_are_entered_the_first_time_and_again():
    log = []

    @contextlib.contextmanager
    def noting(name):
        log.append(f"enter {name}")
        try:
            yield
        finally:
            log.append(f"leave {name}")

    x = leaf()
    loss = checkpoint(lambda x: x.exp().sum(), x, context_fn=lambda: (noting("first"), noting("again")))
    assert log == ["enter first", "leave first"]
    loss.backward()
    assert log == ["enter first", "leave first", "enter again", "leave again"]
    assert [type(each) for each in noop_context_fn()] == [contextlib.nullcontext] * 2


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_checkpoint_sequential_applies_all_functions(segments):
    counts = [counted(function) for function in (turnout.exp, turnout.sin, turnout.tanh, turnout.square, turnout.sum)]
    x = leaf()
    checkpoint_sequential(counts, segments, x, use_reentrant=False).backward()
    expected = leaf()
    expected.exp().sin().tanh().square().sum().backward()
    assert x.grad.tolist() == expected.grad.tolist()
    size = 5 // segments
    last = 5 - size * (segments - 1)
    assert all(each.count == 1 for each in counts[5 - last :])
    assert all(each.count == 2 for each in counts[: 5 - last])


TO_FIX = (
    "  to fix  make the function compute the same from the same arguments, or pass determinism_check='none' if the difference "
    "does not matter"
)


def changing(*functions):
    rest = list(functions)
    return lambda x: rest.pop(0)(x)


@pytest.mark.parametrize(
    ("first", "again", "text"),
    [
        (
            lambda x: x.exp().sum(),
            lambda x: x[:2].exp().sum(),
            "checkpoint: tensor 0 that the function saves was float32 [3] on cpu at first, and is float32 [2] on cpu in the "
            "second run\n" + TO_FIX,
        ),
        (
            lambda x: x.exp().sum(),
            lambda x: x.double().exp().sum(),
            "checkpoint: tensor 0 that the function saves was float32 [3] on cpu at first, and is float64 [3] on cpu in the "
            "second run\n" + TO_FIX,
        ),
        (
            lambda x: x.exp().sin().sum(),
            lambda x: x.exp().sum(),
            "checkpoint: the function saved 2 tensors at first, and 1 in the second run\n" + TO_FIX,
        ),
        (
            lambda x: x.exp().sum(),
            lambda x: x.sum(),
            "checkpoint: the function saved 1 tensor at first, and 0 in the second run\n" + TO_FIX,
        ),
        (
            lambda x: x.exp().sum(),
            lambda x: x.exp().sin().sum(),
            "checkpoint: the function saved 1 tensor at first, and saves more in the second run\n" + TO_FIX,
        ),
    ],
)
def test_a_function_that_saves_something_else_is_an_error(first, again, text):
    loss = checkpoint(changing(first, again), leaf(), early_stop=False)
    with pytest.raises(CheckpointError) as raised:
        loss.backward()
    assert str(raised.value) == text
    assert isinstance(raised.value, RuntimeError)


def test_with_determinism_check_none_other_tensors_are_used_as_they_are():
    x = leaf()
    checkpoint(changing(lambda x: x.exp().sum(), lambda x: x.double().exp().sin().sum()), x, determinism_check="none").backward()
    assert turnout.allclose(x.grad, x.exp())


def test_an_argument_that_was_written_is_an_error():
    x = leaf() * 1
    loss = checkpoint(lambda x: x.exp().sum(), x)
    x.mul_(2)
    assert refused(AliasError, loss.backward) == (
        "checkpoint: the function must run again, but an argument, float32 [3], was written since: it is at version 1, and was "
        "at version 0\n"
        "  to fix  pass a clone() to the function, or write into one"
    )


REFUSED = """
checkpoint(turnout.exp, leaf(), use_reentrant=True)
    ArgumentError: checkpoint: use_reentrant=True is not available
      to fix  leave it out, or pass use_reentrant=False: that variant can do everything that the other one can
checkpoint(turnout.exp, leaf(), use_reentrant='no')
    ArgumentError: checkpoint: use_reentrant must be False or None, got 'no'
checkpoint(turnout.exp, leaf(), debug=True)
    ArgumentError: checkpoint: debug=True is not available
      to fix  run the function twice inside turnout.trace_dispatch() and compare the two lists
checkpoint(turnout.exp, leaf(), determinism_check='all')
    ArgumentError: checkpoint: determinism_check must be 'default' or 'none', got 'all'
checkpoint(leaf())
    CallError: checkpoint: argument 'function' must be callable, got Tensor
checkpoint(turnout.exp, leaf(), context_fn=contextlib.nullcontext)
    ArgumentError: checkpoint: context_fn must return a tuple of two context managers, one for the first run and one for the
        second; got nullcontext
checkpoint_sequential([turnout.exp], 2, leaf())
    ArgumentError: checkpoint_sequential: segments must be an int from 1 to the number of functions, 1; got 2
checkpoint_sequential([turnout.exp], 1, leaf(), early=1, late=2)
    ArgumentError: checkpoint_sequential: unexpected arguments 'early', 'late'
checkpoint_sequential([turnout.exp], 1, leaf(), use_reentrant=True)
    ArgumentError: checkpoint_sequential: use_reentrant=True is not available
      to fix  leave it out, or pass use_reentrant=False: that variant can do everything that the other one can
"""


@pytest.mark.parametrize(("call", "says"), rows(REFUSED))
def test_wrong_arguments_are_named(call, says):
    assert said(call, globals()) == says


def test_an_error_in_the_function_that_runs_again_leaves_the_state_as_it_was():
    def fail(x):
        raise ValueError("no")

    x = leaf()
    turnout.manual_seed(1)
    loss = checkpoint(changing(lambda x: x.exp().sum(), fail), x)
    states = turnout.get_rng_state()
    turnout.rand(3)
    before = turnout.get_rng_state()
    assert before != states
    assert "no" in refused(ValueError, loss.backward)
    assert turnout.get_rng_state() == before
    assert turnout.is_grad_enabled()
    assert x.grad is None
    turnout.autograd.backward(x.exp().sum())
    assert x.grad.tolist() == x.exp().tolist()


def test_what_hooks_around_a_checkpoint_pack_are_its_arguments():
    packed = []
    hooks = autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.tolist()) or t.clone(), lambda t: t)
    x = leaf()
    with hooks:
        loss = checkpoint(lambda x: x.exp().sin().sum(), x)
    assert packed == [[1.0, 2.0, 3.0]]
    loss.backward()
    assert turnout.allclose(x.grad, x.exp().cos() * x.exp())
