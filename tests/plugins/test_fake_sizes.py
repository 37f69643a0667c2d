"""Sizes whose values are not known: how they compute, compare and print, what checks teach, inputs with dynamic sizes."""

from __future__ import annotations

from operator import add, floordiv, mod, mul, sub
from random import Random

import pytest

import turnout
from outcomes import refused
from turnout.errors import ArgumentError, CallError, DataDependentSizeError, DimError
from turnout_meta.symbols.scope import Scope


@pytest.fixture
def scope():
    return Scope()


def test_sizes_compute_as_ints_and_print_as_expressions(scope):
    u, v = scope.unbacked("a test", 0, 10), scope.unbacked("a test", 1)
    shown = [
        u,
        u * 4,
        4 * u + 1,
        u - v,
        -u,
        u * v * 2 - 3,
        (u + 1) // 2,
        ((u + 1) // 2) * u,
        u % v,
        7 // v,
        (u * 4) // 2,
        (u * 4) % 2,
    ]
    assert [str(s) for s in shown] == [
        "u0", "u0*4", "u0*4 + 1", "u0 - u1", "-u0", "u0*u1*2 - 3", "(u0 + 1) // 2", "((u0 + 1) // 2)*u0", "u0 % u1", "7 // u1",
        "u0*2", "0",
    ]  # fmt: skip
    assert (u - u, (u + v) * 2 - 2 * v == u * 2, u * v // v == u) == (0, True, True)
    assert f"{u * 4:>6}" == "  u0*4"


def test_sizes_of_two_modes_that_are_written_alike_are_not_taken_for_each_other():
    real = turnout.ones(4, 6)

    def shapes():
        with turnout.FakeMode() as mode:
            x = mode.from_tensor(real, dynamic=[0])
            return [x.reshape(-1), x.reshape(x.shape[0], 3, 2), x.t().view(6, 1, x.shape[0]), *x.split(2, 1), *x.unbind(1)], mode

    (first, mode), (second, other) = shapes(), shapes()
    assert repr(second) == repr(first)
    assert "unhashable type: 'SymInt'" in refused(TypeError, lambda: hash(first[1].shape))
    for tensor in second:
        for size in (*tensor.shape, *tensor.stride()):
            int(size)
    assert mode.guards == []
    assert other.guards[0] == "s0*6 == 24"
    assert "s0" in repr(first)
    assert "s0" not in repr(second)


def test_bounds_decide_comparisons(scope):
    u = scope.unbacked("a test", 2, 10)
    assert (u >= 2, u > 10, u < 2, u == 11, u != 1, u * 2 >= 4, 3 * u + 1 == 0, u <= u + 1) == (
        True, False, False, False, True, True, False, True,
    )  # fmt: skip
    assert isinstance(u >= 3, turnout.SymBool)
    assert repr(u < 3) == "u0 < 3"
    assert repr(u <= 3) == "u0 <= 3"
    assert u.bounds == (2, 10)
    assert (u % 4).bounds == (0, 3)
    assert (u // 3).bounds == (0, 3)
    assert u.hint is None


def test_what_divides_all_symbols_decides_comparisons(scope):
    u, v = scope.unbacked("a test", 0), scope.unbacked("a test", 0)
    assert (u * 2 == 5, u * 2 != 5, u * 2 + v * 4 == 7, u * 3 - v * 6 == 1) == (False, True, False, False)
    assert isinstance(u * 2 == 6, turnout.SymBool)
    assert refused(ArgumentError, lambda: turnout.check(u * 2 == 5)) == "check: the condition does not hold"
    turnout.check(u * 2 == 6)
    assert u + 0 == 3
    turnout.check(v * 3 >= 7)
    assert (v.bounds[0], v * 2 > 4) == (3, True)
    turnout.check(v * 2 != 8)
    assert v != 4


def test_an_undecided_comparison_and_a_number_are_errors(scope):
    u = scope.unbacked("aten::nonzero", 0, 20)
    assert refused(DataDependentSizeError, lambda: bool(u * 2 > 7)) == (
        "u0*2 > 7 cannot be decided without data\n"
        "  u0      0 to 20, from aten::nonzero\n"
        "  to fix  if it always holds, say so: turnout.check(...) of u0*2 > 7, in terms of the program's sizes"
    )
    for use in (int, float, range, bool, lambda s: [0] * s):
        refused(DataDependentSizeError, use, u)
    assert refused(DataDependentSizeError, int, u) == (
        "u0 has no known value, and a number is needed here\n"
        "  u0      0 to 20, from aten::nonzero\n"
        "  to fix  if it is always the same, say so: turnout.check(u0 == number); or keep it as a size"
    )


def test_checks_teach_bounds_equalities_and_divisors(scope):
    u, v, w = (scope.unbacked("a test", 0, 20) for _ in range(3))
    turnout.check(u >= 2)
    turnout.check(2 * u < 15)
    assert u.bounds == (2, 7)
    turnout.check(v == u + 1)
    assert (str(v), v > u, (v - u), v * 2) == ("u0 + 1", True, 1, 2 * u + 2)
    turnout.check(w % 4 == 0)
    assert (w % 4, w // 4 * 4 == w) == (0, True)
    a, b = scope.unbacked("a test"), scope.unbacked("a test")
    turnout.check(a >= b * 2)
    assert (a >= b * 2, a >= b, a < 2 * b, a + 1 > 2 * b) == (True, True, False, True)
    turnout.check(a != 0)
    assert (a >= 1, a == 0) == (True, False)
    turnout.check(a <= 1)
    assert (a == 1, int(a), str(a)) == (True, 1, "1")


def test_a_check_that_does_not_hold_is_an_error(scope):
    u = scope.unbacked("a test", 2, 5)
    kept = u <= 2
    assert refused(ArgumentError, lambda: turnout.check(u > 5)) == "check: the condition does not hold"
    turnout.check(u >= 3)
    assert refused(ArgumentError, turnout.check, kept) == "check: u0 <= 2 does not hold"
    assert refused(ArgumentError, turnout.check, False, "too few") == "too few"
    turnout.check(True)
    a = scope.unbacked("aten::nonzero", 0, 4)
    turnout.check(a * 2 >= 3)
    assert a.bounds == (2, 4)
    kept = a * 3 <= 8
    turnout.check(a * 2 >= 5)
    assert refused(ArgumentError, turnout.check, kept) == "check: u1*3 <= 8 does not hold"
    b, fives = scope.unbacked("a test", 3, 4), scope.unbacked("aten::nonzero", 0, 4)
    assert refused(ArgumentError, lambda: turnout.check(b == 5 * fives)) == (
        "check: no value of u3 fulfils this and what is known already\n  u3  from aten::nonzero"
    )


def test_sizes_of_two_modes_do_not_mix(scope):
    assert refused(CallError, lambda: scope.unbacked("a test") + Scope().unbacked("a test")) == (
        "u0 and u0 are sizes of two fake modes; make all fake tensors with one FakeMode"
    )


def test_random_expressions_are_right_for_all_values(seeds):
    for seed in seeds(300):
        random, scope = Random(seed), Scope()
        known = [(scope.unbacked("a test", 0, 9), random.randint(0, 9)) for _ in range(3)]
        known += [(n, n) for n in (random.randint(-3, 5), 2)]
        for _ in range(12):
            (a, x), (b, y) = random.choice(known), random.choice(known)
            kind = random.choice("+-*/%")
            if kind in "/%" and (y == 0 or (isinstance(b, int) and b == 0)):
                continue
            operation = {"+": add, "-": sub, "*": mul, "/": floordiv, "%": mod}[kind]
            made, real = operation(a, b), operation(x, y)
            if isinstance(made, turnout.SymInt):
                assert made.bounds[0] <= real <= made.bounds[1], (seed, made, real, made.bounds)
            else:
                assert made == real, (seed, made, real)
            if len(str(made)) < 60:
                known.append((made, real))
        for _ in range(40):
            (a, x), (b, y) = random.choice(known), random.choice(known)
            for found, expected in ((a == b, x == y), (a >= b, x >= y), (a < b, x < y), (a != b, x != y)):
                assert not isinstance(found, bool) or found is expected, (seed, a, b, x, y)


# ---- in operators


def test_sizes_flow_through_operators():
    with turnout.FakeMode():
        x = turnout.ones(4, 5).nonzero()
        shapes = [
            x.shape, x.reshape(-1).shape, turnout.cat([x, x]).shape, turnout.stack([x, x]).shape,
            (x.float() @ turnout.ones(2, 7)).shape,
            x.sum(0).shape, x.repeat(2, 3).shape, turnout.zeros(x.shape[0] * 2 + 1).shape, turnout.arange(x.shape[0]).shape,
            x.unsqueeze(0).expand(3, -1, 2).shape, turnout.nn.functional.pad(x, (1, 2)).shape, (x * x.shape[0]).shape,
        ]  # fmt: skip
        assert [str(tuple(s)) for s in shapes] == [
            "(u0, 2)", "(u0*2,)", "(u0*2, 2)", "(2, u0, 2)", "(u0, 7)", "(2,)", "(u0*2, 6)", "(u0*2 + 1,)", "(u0,)", "(3, u0, 2)",
            "(u0, 5)", "(u0, 2)",
        ]  # fmt: skip
        assert str((x.numel(), x.contiguous().stride(), x.t().contiguous().stride())) == "(u0*2, (2, 1), (u0, 1))"
        assert repr(x) == "FakeTensor(..., size=(u0, 2), dtype=turnout.int64)"


@pytest.mark.parametrize("dtype", [turnout.bool, turnout.float32])
def test_a_fake_bincount_refuses_what_one_with_data_refuses(dtype):
    says = refused(ArgumentError, turnout.bincount, turnout.ones(3, dtype=dtype))
    assert says == f"bincount: needs integers in one dimension, got {dtype.name} of shape [3]"
    with turnout.FakeMode():
        assert refused(ArgumentError, turnout.bincount, turnout.ones(3, dtype=dtype)) == says


@pytest.mark.parametrize("dtype", [None, turnout.float16, turnout.float32, turnout.float64, turnout.int32])
def test_a_fake_bincount_has_the_dtype_of_one_with_data(dtype):
    def counted():
        return turnout.tensor([1, 3, 1]).bincount(None if dtype is None else turnout.ones(3, dtype=dtype)).dtype

    expected = turnout.int64 if dtype is None else turnout.float32 if dtype is turnout.float32 else turnout.float64
    assert counted() is expected
    with turnout.FakeMode():
        assert counted() is expected


def test_unlike_sizes_need_a_check_to_meet():
    with turnout.FakeMode():
        x = turnout.ones(4)
        a, b = x[x > 0], x[x > 1]
        assert "u0 == u1 cannot be decided without data" in refused(DataDependentSizeError, lambda: a + b)
        assert "u0 == 4 cannot be decided without data" in refused(DataDependentSizeError, lambda: a + x)
        turnout.check(a.shape[0] == b.shape[0])
        assert str(tuple((a + b).shape)) == "(u0,)"
        assert str(tuple((a.unsqueeze(1) + turnout.ones(1, 3)).shape)) == "(u0, 3)"


def test_the_same_values_give_the_same_size_until_they_are_written():
    with turnout.FakeMode():
        x = turnout.ones(4, 5)
        first = x.nonzero().shape[0]
        assert (x.nonzero().shape[0] == first) is True
        x.add_(1)
        assert (x.nonzero().shape[0] == first) is not True


def test_gradients_pass_sizes_that_depend_on_values():
    with turnout.FakeMode():
        x, y = turnout.ones(6, requires_grad=True), turnout.ones(2, 3, requires_grad=True)
        w = turnout.ones(2, 4, requires_grad=True)
        (x[x > 0].exp().sum() + y[y > 0].mean()).backward()
        (y.nonzero().float() @ w).softmax(0).sum().backward()
        assert (x.grad.shape, y.grad.shape, w.grad.shape) == ((6,), (2, 3), (2, 4))


def test_shapes_of_other_lengths_and_with_another_known_size_differ():
    with turnout.FakeMode():
        x = turnout.ones(4).nonzero()
        assert x.shape != (4,)
        assert x.shape != (4, 3)
        assert x.shape == x.clone().shape
        with pytest.raises(DataDependentSizeError, match="u0 == 4 cannot be decided"):
            assert x.shape != (4, 1)
        with pytest.raises(DataDependentSizeError, match="u0 == 1 cannot be decided"):
            assert x.shape != (1, 1)


def test_a_size_that_may_be_one_makes_no_refusal():
    with turnout.FakeMode():
        x = turnout.ones(4)
        short = x[x > 0][:2]
        assert "u1 != 1 cannot be decided without data" in refused(DataDependentSizeError, lambda: short + turnout.ones(3))


def test_a_size_that_is_at_most_one_passes_shape_functions_as_larger_ones_do():
    with turnout.FakeMode():
        found = turnout.nonzero(turnout.ones(1))
        size = found.shape[0]
        assert (size <= 1, str(size >= 1)) == (True, "u0 >= 1")
        assert [str(made.shape) for made in (found + 1, found.expand(-1, 3), found + turnout.ones(1, 1), found.sum(1))] == [
            "turnout.Size([u0, 1])", "turnout.Size([u0, 3])", "turnout.Size([u0, 1])", "turnout.Size([u0])",
        ]  # fmt: skip
        with pytest.raises(DataDependentSizeError):
            found + turnout.ones(5, 1)  # right for 1, wrong for 0


def test_slices_and_indices_of_unknown_lengths():
    with turnout.FakeMode():
        x = turnout.ones(4, 5).nonzero()
        assert x[-1].shape == x[0].shape == (2,)
        assert x[1:].shape[0].bounds == (0, 19)
        assert x[:3].shape[0].bounds == (0, 3)
        assert str(tuple(x[::2].shape)) == "((u0 + 1) // 2, 2)"
        turnout.check(x.shape[0] >= 5)
        assert str((*map(tuple, (x[1:].shape, x[:3].shape, x[2:-1].shape)),)) == "((u0 - 1, 2), (3, 2), (u0 - 3, 2))"
        assert refused(DimError, lambda: x[25]) == "select: index 25 is out of range for dim 0 of length u0"
        assert "u0 has no known value" in refused(DataDependentSizeError, list, x)


def test_squeeze_asks_whether_a_size_is_one():
    with turnout.FakeMode():
        x = turnout.ones(4).nonzero()
        assert "u0 == 1 cannot be decided" in refused(DataDependentSizeError, x.squeeze)
        assert str(tuple(x.squeeze(1).shape)) == "(u0,)"


# ---- inputs with dynamic sizes


def test_dynamic_dims_of_an_input_are_symbols_with_hints():
    mode = turnout.FakeMode()
    x = mode.from_tensor(turnout.zeros(4, 5, 1), dynamic=(0, -1))
    assert (str(tuple(x.shape)), x.stride(), x.shape[0].hint, x.shape[0].bounds[0]) == ("(s0, 5, 1)", (5, 1, 1), 4, 2)
    y = turnout.FakeMode(dynamic=True).from_tensor(turnout.zeros(4, 5).t())
    assert str((tuple(y.shape), y.stride())) == "((s1, s0), (1, s1))"


def test_the_value_of_an_input_decides_and_is_noted():
    mode = turnout.FakeMode()
    x, y = (mode.from_tensor(turnout.zeros(4), dynamic=(0,)) for _ in range(2))
    with mode:
        assert str(tuple((x + 1).shape)) == "(s0,)"
        assert mode.guards == []
        assert str(tuple((x + y).shape)) in ("(s0,)", "(s1,)")
        assert mode.guards == ["s0 == s1"]
        assert list(range(x.shape[0])) == [0, 1, 2, 3]
        assert mode.guards in (["s0 == s1", "s1 == 4"], ["s0 == s1", "s0 == 4"])
        assert x.shape == (4,)


def test_the_size_of_an_input_becomes_a_number_beside_a_float():
    mode = turnout.FakeMode()
    (size,) = mode.from_tensor(turnout.zeros(6), dynamic=(0,)).shape
    assert (size * 2.5, 2.5 * size, size + 0.5, 0.5 + size, size - 0.5, 0.5 - size) == (15.0, 15.0, 6.5, 6.5, 5.5, -5.5)
    assert mode.guards == ["s0 == 6"]


def test_a_number_of_data_beside_a_float_is_an_error():
    with turnout.FakeMode():
        (size, _) = turnout.ones(3).nonzero().shape
        refused(DataDependentSizeError, lambda: size * 0.5)


def test_a_comparison_of_sizes_adds_up_as_0_or_1():
    mode = turnout.FakeMode()
    (size,) = mode.from_tensor(turnout.zeros(6), dynamic=(0,)).shape
    assert str(size + (size > 4)) == "s0 + 1"


def test_shape_functions_ask_the_input_whether_a_size_is_a_multiple():
    mode = turnout.FakeMode()
    x = mode.from_tensor(turnout.zeros(8, 2, 2), dynamic=(0,))
    assert turnout.nn.functional.pixel_shuffle(x, 2).shape[1:] == (4, 4)
    assert mode.guards == ["s0 % 4 == 0"]


def test_sizes_that_are_passed_as_a_shape_stay_symbols():
    mode = turnout.FakeMode()
    x = mode.from_tensor(turnout.zeros(5, 3), dynamic=(0, 1))
    with mode:
        for made in (turnout.empty(x.shape), turnout.zeros(x.shape), x.new_empty(x.shape), x[:1].expand(x.shape)):
            assert str(tuple(made.shape)) == "(s0, s1)"
    assert mode.guards == []
