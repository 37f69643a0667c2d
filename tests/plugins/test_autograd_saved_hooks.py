"""`turnout.autograd.graph.saved_tensors_hooks` and what is made of it: what nodes save passes through two functions."""

from __future__ import annotations

import weakref

import pytest
from turnout.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)

import turnout
from collector import collector_off
from outcomes import in_threads, printed, refused
from turnout import autograd
from turnout.errors import AliasError, CallError
from turnout.registry import find_operator


def leaf(*values):
    return turnout.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def noting(log, name=""):
    """Hooks that keep values as a list, and note each call."""
    return saved_tensors_hooks(
        lambda t: log.append(f"pack {name}".strip()) or t.tolist(),
        lambda kept: log.append(f"unpack {name}".strip()) or turnout.tensor(kept),
    )


def same(tensor):
    return tensor


def test_what_is_saved_is_packed_at_the_call_and_unpacked_at_backward():
    log = []
    x, y = leaf(), leaf(2.0, 2.0, 2.0)
    with noting(log):
        product = x * y
        assert log == ["pack", "pack"]
        result = (product + x).sum()
        assert log == ["pack", "pack"]
    result.backward()
    assert log == ["pack", "pack", "unpack", "unpack"]
    assert (x.grad.tolist(), y.grad.tolist()) == ([3.0, 3.0, 3.0], [1.0, 2.0, 3.0])


def writes_into_views(x):
    base = x * 2
    base[1:].mul_(x[1:])
    base[:2].mul_(x[:2]).exp_()
    return base


@pytest.mark.parametrize(
    "program",
    [
        turnout.exp,
        writes_into_views,
        lambda x: (x * x).sin(),
        lambda x: turnout.cat([x.exp(), x, x * 2]).prod(),
        lambda x: turnout.stack([x, x]).var(0) + x.norm(),
        lambda x: x.sort()[0] / x.max(),
        lambda x: turnout.nn.functional.layer_norm(x * x, [3]),
        lambda x: turnout.einsum("i,j->ij", x, x.tanh()),
        lambda x: turnout.nn.functional.cross_entropy(x * x, turnout.tensor(1)),
        lambda x: (x * 2).mul_(x).add_(x),
        lambda x: turnout.where(x > 1, x.log(), x.square()),
    ],
)
def test_gradients_of_first_and_second_order_are_those_without_hooks(program):
    found = []
    for context in (disable_saved_tensors_hooks("no"), noting([]), saved_tensors_hooks(turnout.clone, same)):
        x = leaf(0.5, 1.5, 2.5)
        with context:
            result = (program(x) ** 2).sum()
        first = autograd.grad(result, x, create_graph=True)[0]
        found.append((first.tolist(), autograd.grad(first.square().sum(), x)[0].tolist()))
    assert found[0] == found[1] == found[2]


def test_tangents_pass_through_hooks():
    program = lambda x: ((x * 2).exp() * x.sin().tanh()).cumsum(0).sort()[0].prod()  # noqa: E731

    def packed(x):
        with saved_tensors_hooks(lambda tensor: tensor.tolist(), turnout.tensor):
            return program(x)

    x = turnout.tensor([0.5, 1.5, 2.5])
    for derivative in (
        turnout.func.hessian,
        lambda f: lambda x: turnout.func.jvp(turnout.func.grad(f), (x,), (x,))[1],
        lambda f: turnout.func.grad(lambda x: turnout.func.jvp(f, (x,), (x,))[1]),
    ):
        assert turnout.allclose(derivative(packed)(x), derivative(program)(x))


def test_an_argument_over_the_memory_that_a_call_writes_is_packed_as_it_was_before():
    x = leaf()
    with noting([]):
        y = x * 1
        y.mul_(y)
        y[1:].mul_(y[1:])
        assert "share part of their memory" in refused(AliasError, lambda: y[1:].mul_(y[:2]))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4 * 2.0**3, 4 * 3.0**3]


def test_the_innermost_hooks_count_and_the_outer_ones_are_back_after_them():
    log = []
    x = leaf()
    with noting(log, "outer"):
        first = x.exp()
        with noting(log, "inner"):
            second = x.exp()
        third = x.exp()
    assert log == ["pack outer", "pack inner", "pack outer"]
    (first + second + third).sum().backward()
    assert sorted(log[3:]) == ["unpack inner", "unpack outer", "unpack outer"]
    x.exp()
    assert len(log) == 6


def test_hooks_that_are_entered_twice_at_once_leave_in_order():
    log = []
    hooks = noting(log)
    x = leaf()
    with hooks, hooks:
        x.exp()
    with hooks:
        x.exp()
    x.exp()
    assert log == ["pack", "pack"]


def test_an_error_leaves_the_hooks_behind():
    x = leaf()
    with pytest.raises(ZeroDivisionError), noting([]):
        raise ZeroDivisionError
    log = []
    with noting(log), pytest.raises(ValueError, match="from pack"), saved_tensors_hooks(raising, same):
        x.exp()
    x.exp()
    assert log == []


def raising(tensor):
    raise ValueError("from pack")


def test_hooks_are_those_of_the_thread_that_entered_them():
    log = []
    x = leaf()
    with noting(log):
        in_threads(x.exp)
    assert log == []


def test_pack_gets_a_tensor_without_history_over_the_same_memory_and_is_not_recorded():
    x = leaf()
    seen = []
    with saved_tensors_hooks(lambda t: seen.append((t.requires_grad, t.is_alias_of(x), (t * 2).grad_fn)) or t, same):
        x * 3 * x
    assert seen[0] == (False, True, None)


@pytest.mark.parametrize(
    "context", [saved_tensors_hooks(turnout.clone, same), save_on_cpu(pin_memory=True)], ids=["clone", "cpu"]
)
def test_a_packed_tensor_may_be_written_later_and_what_was_packed_counts(context):
    x = leaf()
    with context:
        y = (x * x).sum()
    with turnout.no_grad():
        x.zero_()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_a_second_backward_finds_nothing_and_unpacks_nothing():
    log = []
    x = leaf()
    with noting(log):
        y = x.exp().sum()
    y.backward()
    assert "aten::exp: an earlier backward pass freed the values saved for it" in refused(autograd.GradientError, y.backward)
    assert log == ["pack", "unpack"]


def test_a_retained_graph_unpacks_each_time():
    log = []
    x = leaf()
    with noting(log):
        y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert log == ["pack"] * 2 + ["unpack"] * 4
    assert x.grad.tolist() == [4.0, 8.0, 12.0]


class Exponential(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(x, None, result)
        return result

    @staticmethod
    def backward(ctx, grad):
        x, nothing, result = ctx.saved_tensors
        assert nothing is None
        return grad * result + 0 * x


def test_what_a_function_saves_is_packed():
    log = []
    x = leaf()
    with noting(log):
        y = Exponential.apply(x)
    assert log == ["pack", "pack"]
    (first,) = autograd.grad(y.sum(), x, create_graph=True)
    assert log[2:] == ["unpack", "unpack"]
    assert first.tolist() == y.tolist()
    assert autograd.grad(first.sum(), x)[0].tolist() == y.tolist()


def test_anomaly_mode_still_names_the_line_of_a_packed_node():
    with autograd.detect_anomaly():
        with noting([]):
            y = leaf(-1.0).sqrt()  # the line
        with pytest.raises(autograd.GradientError) as caught:
            y.backward()
    assert "# the line" in str(caught.value)


def test_packed_nodes_keep_their_names_hooks_and_places_in_the_graph():
    x = leaf()
    with noting([]):
        y = x.exp()
    assert (y.grad_fn.name(), isinstance(y.grad_fn, autograd.graph.Node)) == ("ExpBackward0", True)
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(grads[0].tolist()))
    y.sum().backward()
    assert seen == [[1.0, 1.0, 1.0]]
    with noting([]):
        several = turnout.stack([x, x]).prod(), x.exp()
    drawn = autograd.graph.draw(several)
    assert drawn.count("packed by a hook") == 3


def test_what_was_packed_goes_when_the_graph_does():
    class Box:
        pass

    boxes = []

    def pack(tensor):
        box = Box()
        boxes.append(weakref.ref(box))
        return box, tensor

    with collector_off():
        x = leaf()
        with saved_tensors_hooks(pack, lambda kept: kept[1]):
            y = (x.exp() * x).sum()
        y.backward()
        assert len(boxes) == 3
        assert [box() for box in boxes] == [None] * 3
        with saved_tensors_hooks(pack, lambda kept: kept[1]):
            y = (x.exp() * x).sum()
        del y
        assert [box() for box in boxes] == [None] * 6


def test_the_key_is_in_the_universe_from_the_first_discovery_on_whether_or_not_hooks_are_used():
    code = (
        "import turnout; from turnout.keys import KEYS; print('SavedTensors' in KEYS.universe.rank)\n"
        "x = turnout.ones(2, requires_grad=True); x.exp().sum().backward()\n"
        "with turnout.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t): x.exp()\n"
        "print('SavedTensors' in KEYS.universe.rank)\n"
        "turnout.plugins.deactivate('autograd'); print('SavedTensors' in KEYS.universe.rank)"
    )
    assert printed(code).split() == ["True", "True", "True"]


# ---- errors


def test_a_pack_hook_may_not_write_into_what_it_is_given():
    with pytest.raises(AliasError) as caught, saved_tensors_hooks(lambda t: t.add_(1), same):
        leaf().exp()
    assert str(caught.value) == (
        "a pack hook of saved_tensors_hooks wrote into the tensor it was given, but the program still uses that tensor\n"
        "  to fix  return something new, such as a clone()"
    )


def test_an_unpack_hook_must_return_a_tensor():
    with saved_tensors_hooks(same, lambda kept: 3):
        y = leaf().exp().sum()
    assert refused(CallError, y.backward) == "aten::exp: the unpack hook of saved_tensors_hooks must return a tensor, got int"


def test_an_unpack_hook_that_returns_another_shape_is_noticed_at_the_leaf():
    w = turnout.ones(3, 2, requires_grad=True)
    with saved_tensors_hooks(same, lambda kept: turnout.ones(4, 5)):
        y = (turnout.ones(4, 3) @ w).sum()
    assert refused(autograd.GradientError, y.backward) == (
        "a gradient of shape [5, 2] came back for a leaf of shape [3, 2]: a formula or hook gives the wrong shape"
    )
    assert w.grad is None


def test_hooks_can_be_disabled_with_a_message_of_ones_own():
    with disable_saved_tensors_hooks("not in here"):
        with pytest.raises(autograd.GradientError, match=r"^not in here$"), noting([]):
            pass
        leaf().exp()
    with (
        noting([]),
        pytest.raises(autograd.GradientError, match=r"^nor around it$"),
        disable_saved_tensors_hooks("nor around it"),
    ):
        pass
    with noting([]):
        pass


# ---- made of hooks


def test_saved_tensors_may_be_written_where_mutation_is_allowed():
    x = leaf()
    with allow_mutation_on_saved_tensors():
        y = x * 1
        square = y * y
        y.add_(5)
        square.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_increment_version_tells_of_a_write_by_other_means():
    x, y = leaf(), leaf()
    product = (x * y).sum()
    increment_version([x, y])
    assert (x._version, y._version) == (1, 1)
    increment_version(x)
    assert "was changed in place after it was used" in refused(AliasError, product.backward)
    assert refused(CallError, increment_version, 3.0) == "increment_version: expected a tensor or several tensors, got float"


def test_operators_called_by_name_are_packed_too():
    log = []
    with noting(log):
        find_operator("aten::exp").call(leaf())
    assert log == ["pack"]
