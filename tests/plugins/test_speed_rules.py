"""Rules of vmap and of forward mode without Python frames around them: plain calls give what the Python kernel beside gives."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any

import pytest
from compiled_calls import blocks_left_by, seen, taken, watched
from turnout.autograd import forward_ad
from turnout.func import grad, hessian, jacfwd, jvp, vmap

import turnout
from outcomes import agree, refused
from turnout.registry import find_operator
from turnout_autograd.forward import kernels as forward
from turnout_batched.errors import VmapError
from turnout_batched.kernels import NAMES, decide, entered

_rules = pytest.importorskip("turnout_speed._rules", reason="turnout-speed was installed without a C compiler")
VARIABLES = forward.GRAD, forward.DISPATCH, forward.ACTIVE


pytestmark = pytest.mark.usefixtures("compiled_path")


def ones(*shape: int) -> turnout.Tensor:
    return turnout.arange(1.0, 1.0 + turnout.Size(shape).numel()).reshape(shape)


PLAIN: list[tuple[Any, ...]] = [
    (lambda x: x.tanh(), 0),
    (lambda x: x.tanh(), 1),
    (lambda x, y: x + y, 0, 0),
    (lambda x, y: x + y, 0, None),
    (lambda x, y: x * y[0], 1, 0),
    (lambda x, y: turnout.where(x > y, x, y), 0, 1),
    (lambda x: x.sum(0), 0),
    (lambda x: x.t() if x.ndim == 2 else x.flip(0), 0),
    (lambda x, y: x @ y.t() if y.ndim == 2 else x @ y, 0, None),
    (lambda x: x.reshape(-1, 1), 0),
]


@pytest.mark.parametrize("place", range(len(PLAIN)))
def test_a_plain_call_is_taken_and_gives_what_the_loop_gives(place: int) -> None:
    function, *dims = PLAIN[place]
    given = [ones(3, 3) * (i + 1) for i in range(len(dims))]
    mapped = vmap(function, tuple(dims))
    assert taken(_rules.taken, lambda: mapped(*given)) > 0
    rows = [function(*[g if d is None else g.select(d, i) for g, d in zip(given, dims, strict=True)]) for i in range(3)]
    assert turnout.equal(mapped(*given), turnout.stack(rows))


@pytest.mark.parametrize("name", ["tanh", "mul.Tensor", "add.Tensor", "sum.dim_IntList", "transpose.int", "matmul", "reshape"])
def test_nested_levels_give_what_the_python_kernel_gives(name: str) -> None:
    op = find_operator(f"aten::{name}")
    rest: dict[str, tuple[Any, ...]] = {
        "mul.Tensor": (ones(4, 4),), "add.Tensor": (ones(4, 4),), "matmul": (ones(4, 4),), "sum.dim_IntList": ((0,),),
        "transpose.int": (0, 1), "reshape": ((2, 8),),
    }  # fmt: skip
    python = entered(op, decide(op)[0])

    def through(kernel: Any) -> Any:
        return vmap(vmap(lambda x: kernel(x.keys, *op.bind((x, *rest.get(name, ())), {})), 1), 0, 1)(ones(2, 4, 3, 4))

    assert taken(_rules.taken, lambda: through(lambda ks, *args: op.lookup(ks)(ks, *args))) > 0
    assert turnout.equal(through(lambda ks, *args: op.lookup(ks)(ks, *args)), through(python))


def test_a_call_under_autocast_and_one_that_a_debugger_watches_are_left_to_python() -> None:
    mapped = vmap(lambda x: x.tanh())
    with turnout.autocast("cpu", dtype=turnout.bfloat16):
        assert taken(_rules.taken, lambda: mapped(ones(2, 3))) == 0
    assert taken(_rules.taken, lambda: watched(lambda: mapped(ones(2, 3)))) == 0
    assert "call_rule" in [code.co_name for code in seen(lambda: mapped(ones(2, 3)))]


def test_a_tensor_of_an_ended_vmap_is_refused_as_it_is_by_the_python_kernel() -> None:
    kept: list[turnout.Tensor] = []
    vmap(lambda x: kept.append(x) or x)(ones(2, 3))
    for call in (kept[0].tanh, lambda: vmap(lambda x: x + kept[0])(ones(2, 3))):
        assert "is used outside of it" in refused(VmapError, call)


def test_what_a_vmap_shares_and_a_gradient_inside_tracks_gets_a_gradient_for_each_example() -> None:
    def loss(w: turnout.Tensor, x: turnout.Tensor) -> turnout.Tensor:
        return (w * x).sum()

    mapped = vmap(grad(loss), (None, 0))
    w, x = ones(3), ones(2, 3)
    assert taken(_rules.taken, lambda: mapped(w, x)) > 0
    assert turnout.equal(mapped(w, x), x)


def test_an_error_of_a_rule_is_the_one_that_python_raises_and_leaves_nothing_behind() -> None:
    for _ in range(2):
        assert refused(IndexError, vmap(lambda x: x.sum(5)), ones(2, 3)).startswith("dim 5 is out of range")
    assert turnout.equal(vmap(lambda x: x.sum(0))(ones(2, 3)), ones(2, 3).sum(1))


def test_calls_good_and_bad_leave_no_memory() -> None:
    x, w = ones(4, 3), ones(3)

    def work() -> None:
        vmap(lambda a: (a.tanh() + w).sum() * a)(x)
        vmap(grad(lambda v, a: (v * a).sum()), (None, 0))(w, x)
        refused(IndexError, vmap(lambda a: a.sum(5)), x)

    assert blocks_left_by(work, 200) < 150  # one object lost in each round would be 200


# ---- tangents


FUNCTIONS: list[Callable[[turnout.Tensor], turnout.Tensor]] = [
    lambda x: x.tanh() * 2,
    lambda x: x.t() @ x,
    lambda x: x[1:] * x[:-1],
    lambda x: x.reshape(-1)[2:].sin(),
    lambda x: turnout.where(x > 2, x, x * x),
    lambda x: (x * x.detach()).sum(0),
    lambda x: x.expand(2, 3, 3).clone().mul_(2).sum(0) / x,
    lambda x: turnout.cat([x, x.exp() / 9]),
]


@pytest.mark.parametrize("place", range(len(FUNCTIONS)))
def test_tangents_are_pushed_and_are_those_of_the_python_kernel(place: int) -> None:
    function = FUNCTIONS[place]

    def all_of_them() -> list[turnout.Tensor]:
        x, v = ones(3, 3) / 4, ones(3, 3).flip(0)
        both = jvp(lambda y: jvp(function, (y,), (v,))[1], (x,), (v * v,))
        return [
            *both,
            *jvp(function, (x,), (v,)),
            jacfwd(function)(x),
            vmap(lambda y: jvp(function, (y,), (v,))[1])(turnout.stack([x, v])),
        ]

    assert taken(_rules.pushed, all_of_them) > 0
    assert taken(_rules.pushed, lambda: watched(all_of_them)) == 0
    agree(all_of_them(), watched(all_of_them))


def test_calls_of_tensors_without_tangents_or_outside_of_their_level_are_left_to_python() -> None:
    kept: list[turnout.Tensor] = []
    assert taken(_rules.pushed, lambda: ones(3).tanh() * 2) == 0
    jvp(lambda x: kept.append(x) or x * 2, (ones(3),), (ones(3),))
    assert taken(_rules.pushed, lambda: kept[0] * 2) == 0


def test_a_hessian_through_saved_outputs_is_that_of_the_python_kernel() -> None:
    def loss(x: turnout.Tensor) -> turnout.Tensor:
        return (x.tanh().exp() * x[:2].sum()).sum()

    x = ones(4) / 5
    assert taken(_rules.pushed, lambda: hessian(loss)(x)) > 0
    assert turnout.equal(hessian(loss)(x), watched(lambda: hessian(loss)(x)))
    assert turnout.equal(vmap(hessian(loss))(ones(2, 4)), watched(lambda: vmap(hessian(loss))(ones(2, 4))))


def test_an_error_below_or_in_a_rule_leaves_the_levels_as_they_were() -> None:
    def broken(x: turnout.Tensor) -> turnout.Tensor:
        assert refused(IndexError, x.sum, 5).startswith("sum: dim 5 is out of range")
        return x.sum(0) * x[0]

    expected = jvp(lambda x: x.sum(0) * x[0], (ones(3),), (ones(3),))
    for _ in range(2):
        agree(jvp(broken, (ones(3),), (ones(3),)), expected)
    op = find_operator("aten::tanh")

    def refuse(*_: Any) -> Any:
        raise ZeroDivisionError("the rule")

    kernel = forward.tangent_kernel(op, refuse, None, forward.NAMES)

    def through(x: turnout.Tensor) -> turnout.Tensor:
        before = [variable.get() for variable in (*VARIABLES, forward.LEVELS)]
        assert refused(ZeroDivisionError, kernel, x.keys, x) == "the rule"
        assert before == [variable.get() for variable in (*VARIABLES, forward.LEVELS)]
        return x.tanh()

    assert taken(_rules.pushed, lambda: jvp(through, (ones(3),), (ones(3),))) == 2
    assert turnout.equal(jacfwd(through)(ones(3)), jacfwd(lambda x: x.tanh())(ones(3)))


def test_tangents_leave_no_memory() -> None:
    x = ones(4) / 9

    def work() -> None:
        jvp(lambda y: (y[1:].tanh() * y[:-1]).reshape(-1).sum(), (x,), (x,))
        with turnout.no_grad():
            refused(IndexError, jvp, lambda y: y.sum(5), (x,), (x,))

    assert blocks_left_by(work, 200) < 150  # one object lost in each round would be 200


def test_tangents_are_pushed_inside_of_blocks_and_where_a_block_was_left_elsewhere() -> None:
    def work() -> Any:
        return vmap(lambda x: jvp(lambda y: y.tanh() * 2, (x,), (x,)))(ones(2, 3))

    def inside() -> Any:
        with turnout.no_grad(), turnout.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            return work()

    def dual() -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(forward_ad.make_dual(ones(3), ones(3)).tanh() * 2)

    def left_elsewhere() -> Any:
        guard = turnout.no_grad()
        guard.__enter__()
        copy_context().run(guard.__exit__, None, None, None)
        assert isinstance(forward.GRAD.get(), list)
        return work()

    expected = taken(_rules.pushed, work)
    assert expected > 0
    assert taken(_rules.pushed, inside) == expected
    assert taken(_rules.pushed, lambda: Context().run(left_elsewhere)) == expected
    assert taken(_rules.pushed, dual) > 0
    for run in (inside, dual, lambda: Context().run(left_elsewhere)):
        agree(run(), watched(run))


def test_an_error_inside_of_a_block_leaves_its_lists_as_they_were() -> None:
    def work(x: turnout.Tensor) -> turnout.Tensor:
        with turnout.no_grad():
            before = [variable.get() for variable in VARIABLES]
            assert refused(IndexError, x.sum, 5).startswith("sum: dim 5 is out of range")
            x.tanh()
            after = [variable.get() for variable in VARIABLES]
            assert all(now is then for now, then in zip(after, before, strict=True))
        return x.tanh()

    assert taken(_rules.pushed, lambda: jvp(work, (ones(3),), (ones(3),))) > 0


def f() -> None: ...


GIVEN = f, f, 1, (0,)
RULE = partial(_rules.rule_kernel, kind=0, call=None, switches=0)
TANGENT = partial(_rules.tangent_kernel, cache={}, resolve=f)
# A maker, its arguments, what it says.
REFUSED: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (RULE, (*GIVEN, {}), KeyError, "'LEVELS'"),
    (partial(RULE, kind=7), (*GIVEN, NAMES), ValueError, "not the parts of a rule"),
    (partial(RULE, kind=1), (*GIVEN, NAMES), ValueError, "not the parts of a rule"),
    (_rules.rule_kernel, (*GIVEN, NAMES), ValueError, "not the parts of a rule"),
    (RULE, (f, f, 1, (3,), NAMES | {}), ValueError, "no such argument"),
    (RULE, (*GIVEN, NAMES | {"Value": type("Value", (), {"value": 1})}), TypeError, "Value.value is not a slot"),
    (TANGENT, (*GIVEN, {}), KeyError, "'ACTIVE'"),
    (TANGENT, (*GIVEN, forward.NAMES | {"Tangents": int}), ValueError, "not the parts of a tangent"),
    (_rules.tangent_kernel, (*GIVEN, forward.NAMES), ValueError, "not the parts of a tangent"),
    (TANGENT, (f, f, 1, (3,), forward.NAMES), ValueError, "no such argument"),
    (TANGENT, (*GIVEN, forward.NAMES | {"Level": type("Level", (), {"columns": 1})}), TypeError,
     "Level.columns is not a slot"),
]  # fmt: skip


def test_the_makers_refuse_what_they_cannot_read() -> None:
    for make, arguments, error, text in REFUSED:
        assert refused(error, make, *arguments) == text
