"""Views and in-place operators under gradients: whose history a write becomes, what is noticed, what is refused."""

from __future__ import annotations

import math

import pytest

import turnout
from outcomes import refused
from turnout import autograd


@pytest.fixture
def m():
    return turnout.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=turnout.float64).requires_grad_()


def gradient(result, of):
    return autograd.grad(result.sum(), of, retain_graph=True)[0].tolist()


# ---- histories follow the memory


def test_an_untracked_write_is_no_history(x):
    y = x * 2
    node = y.grad_fn
    with turnout.no_grad():
        y.mul_(5)
        x.sub_(1)
    assert y.grad_fn is node
    assert x.is_leaf
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_integers_take_values_without_history(x):
    whole = turnout.zeros(3, dtype=turnout.int64)
    whole.copy_(x)
    assert not whole.requires_grad
    assert whole.tolist() == [1, 2, 3]


def test_as_strided_of_a_view_follows_its_base_beyond_the_view():
    x = turnout.arange(6, dtype=turnout.float64).requires_grad_()
    y = x * 1
    pairs = y[2:4].as_strided((2, 2), (3, 1), 0)
    y.mul_(2)
    assert pairs.tolist() == [[0.0, 2.0], [6.0, 8.0]]
    assert gradient(pairs, x) == [2.0, 2.0, 0.0, 2.0, 2.0, 0.0]


def test_as_strided_counts_from_the_start_of_the_memory_in_the_gradient_too(x):
    base = turnout.zeros(6, dtype=turnout.float64)[2:].detach()
    base.as_strided((2,), (2,), 3).copy_(x[:2])
    assert base.tolist() == [0.0, 1.0, 0.0, 2.0]
    assert gradient(base * turnout.tensor([1.0, 10.0, 100.0, 1000.0]), x) == [10.0, 1000.0, 0.0]


def test_a_view_of_a_base_that_was_detached_and_written_has_no_gradient_to_give(m):
    y = m * 1
    row = y[0]
    y.detach_()
    assert gradient(row, m) == [[1.0, 1.0], [0.0, 0.0]]
    y.zero_()
    assert row.requires_grad
    assert autograd.grad(row.sum(), m, allow_unused=True) == (None,)


def test_hooks_on_a_view_as_it_was_see_nothing_of_later_gradients(x):
    y = x * 1
    part = y[1:]
    part.register_hook(lambda g: g * 1000)
    part.exp_()
    first = autograd.grad(y.sum(), x, create_graph=True)[0]
    assert gradient(first, x) == pytest.approx([0.0, math.exp(2.0), math.exp(3.0)])


def test_retain_grad_follows_a_base_that_is_written_through_a_view(x):
    y = x * 1
    y.retain_grad()
    y[1:].mul_(3)
    (y * y).sum().backward()
    assert y.grad.tolist() == [2.0, 12.0, 18.0]


def test_retain_grad_follows_a_view_that_is_written_or_whose_base_is(x):
    y = x * 1
    part = y[1:]
    part.retain_grad()
    y.mul_(3)
    part.mul_(2)
    (part * part).sum().backward()
    assert part.grad.tolist() == [24.0, 36.0]


def test_retain_grad_stays_with_the_shape_that_a_tensor_had(m):
    y = m * turnout.tensor([1.0, 2.0])
    y.retain_grad()
    y.t_()
    (y * turnout.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert y.grad.tolist() == [[1.0, 3.0], [2.0, 4.0]]


# ---- what is saved


def test_only_what_a_wanted_gradient_needs_is_saved(x):
    weight = turnout.ones(3, dtype=turnout.float64)
    y = x * weight
    z = y * 3
    with turnout.no_grad():
        y.mul_(2)
    assert gradient(z, x) == [3.0, 3.0, 3.0]


# ---- what cannot be written


def test_only_a_leaf_can_be_made_to_require_a_gradient(x):
    y = x * 1

    def switch():
        y.requires_grad = True

    assert refused(RuntimeError, switch) == "requires_grad can be set on leaves only; this tensor has a history, which decides"
    assert y.requires_grad_() is y


@pytest.mark.parametrize("name", ["unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"])
def test_parts_of_an_unsafe_split_are_written_one_by_one(x, name):
    y = x * 1
    how = {"unsafe_split": 1, "unsafe_split_with_sizes": [1, 1, 1], "unsafe_chunk": 3}[name]
    first, second, _ = getattr(y, name)(how)
    first.mul_(second)
    assert (first._version, second._version, y._version) == (1, 0, 0)
    first.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0, 0.0]
    plain = turnout.tensor([1.0, 2.0, 3.0], dtype=turnout.float64)
    getattr(plain, name)(how)[0].mul_(second)
    assert not plain.requires_grad


OTHER_MODE = (
    "aten::mul_.{}: self is a view made under no_grad, but this write happens while gradients are recorded\n"
    "  to fix  make the view and write into it in the same mode"
)
LATER = (
    "a view made under no_grad was used after aten::mul.{} wrote into its base; its gradient cannot follow that write\n"
    "  to fix  write before the view is made, or clone() the view"
)


def test_a_view_made_under_no_grad_is_refused_where_gradients_are_recorded(x):
    y, base = x * 1, turnout.zeros(3, dtype=turnout.float64)
    with turnout.no_grad():
        *views, plain = x[:2], y[:2], base[:2]
        views[0].mul_(2)
    for view in views:  # of a leaf and of a result: a constant would be the history of what is tracked
        assert refused(RuntimeError, view.mul_, 2) == OTHER_MODE.format("Scalar")
    assert (x._version, y._version) == (1, 0)
    plain.mul_(2)
    assert refused(RuntimeError, plain.mul_, x[:2]) == OTHER_MODE.format("Tensor")
    base.mul_(x)
    assert refused(RuntimeError, lambda: plain * 1) == LATER.format("Tensor")
    assert views[1].grad_fn is None
    y.mul_(2)
    assert refused(RuntimeError, lambda: views[1].grad_fn) == LATER.format("Scalar")


def test_a_result_that_is_a_view_of_something_of_its_own_may_be_written_and_detached(x):
    table = turnout.arange(6, dtype=turnout.float64).view((3, 2))
    with turnout.no_grad():
        rows = turnout.ops.aten.embedding(table, turnout.tensor([2, 0, 2]))
    assert rows._base is None  # it is a view of a temporary
    rows[:, 0].mul_(x)
    assert gradient(rows * rows, x) == [32.0, 0.0, 96.0]
    with turnout.no_grad():
        rows = turnout.ops.aten.embedding(table, turnout.tensor([2, 0, 2]))
    assert gradient(rows.add_(x.unsqueeze(1)), x) == [2.0, 2.0, 2.0]
    turned = turnout.roll(x, 1)
    assert turned._base is None
    assert not turned.detach_().requires_grad


@pytest.mark.parametrize(
    ("shape", "wrap", "places"),
    [((2, 3), True, [0, 4]), ((3, 2), False, [0, 3]), ((5, 2), True, [0, 3, 6, 9]), ((2, 2, 2), False, [0, 7])],
)
def test_a_diagonal_that_is_filled_has_no_gradient_there(shape, wrap, places):
    leaf = turnout.ones(shape, requires_grad=True)
    y = leaf * 2
    assert y.fill_diagonal_(5.0, wrap) is y
    assert y.flatten().tolist() == [5.0 if i in places else 2.0 for i in range(y.numel())]
    y.sum().backward()
    assert leaf.grad.flatten().tolist() == [0.0 if i in places else 2.0 for i in range(y.numel())]


def test_out_is_for_what_has_no_gradient(x):
    with turnout.no_grad():
        assert turnout.add(x, x, out=turnout.empty(3, dtype=turnout.float64)).tolist() == [2.0, 4.0, 6.0]
    mask = turnout.empty(3, dtype=turnout.bool)
    assert turnout.gt(x, 1.5, out=mask) is mask
    assert turnout.argmax(x, 0, out=turnout.empty((), dtype=turnout.int64)).item() == 2
    assert "'out' requires a gradient" in refused(RuntimeError, lambda: turnout.gt(x, 1.5, out=x * 1))
    assert "'self' requires a gradient" in refused(
        RuntimeError, lambda: turnout.sort(x, out=(turnout.empty(3), turnout.empty(3, dtype=turnout.int64)))
    )


def test_what_has_no_gradient_passes_by(x):
    assert not (x > 1).requires_grad
    assert not turnout.zeros_like(x).requires_grad
    assert not x.detach().requires_grad
    assert not x.to(turnout.int64).requires_grad
    values, indices = x.max(0)
    assert values.requires_grad
    assert not indices.requires_grad


def test_what_whole_numbers_are_written_from_needs_no_history():
    base = turnout.tensor([1.5, -2.5], requires_grad=True) * 1
    first, second = base.split(1)
    base.abs_()
    whole = turnout.zeros(1, dtype=turnout.int64)
    whole.copy_(second)
    assert (whole.tolist(), whole.requires_grad) == ([2], False)
    assert "a view that aten::split.Tensor returned together with others was used after" in refused(
        turnout.errors.AliasError, lambda: turnout.zeros(1).copy_(first)
    )
