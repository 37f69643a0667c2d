"""Casts: which tensors, how often, and what gradients come back through them; rules of custom operators."""

from __future__ import annotations

import gc
import weakref

import pytest

import turnout
from outcomes import refused
from turnout import amp, library
from turnout.dtypes import dtype_named
from turnout.errors import CallError, DTypeError
from turnout.registry import find_operator
from turnout_autocast import errors
from turnout_autocast.rules import ACCELERATOR, OVERLOADS
from turnout_conformance.cases import CASES, calls


def ones(*shape, **options):
    return turnout.ones(*shape, device="cpu", **options)


def casts(log):
    """How often something was cast."""
    return sum(call.op == "aten::_to_copy" and call.key == "CPU" for call in log.walk())


def counted(function):
    with turnout.trace_dispatch() as log:
        function()
    return casts(log)


def twenty(x, w):
    with turnout.autocast("cpu"):
        for i in range(20):
            with turnout.autocast("cpu", enabled=i % 3 > 0), turnout.autocast("cpu"):
                x @ w


def without_the_cache(x, w):
    with turnout.autocast("cpu", cache_enabled=False):
        assert not amp.is_autocast_cache_enabled()
        for _ in range(3):
            x @ w


def cleared(x, w):
    with turnout.autocast("cpu"):
        x @ w
        amp.clear_autocast_cache()
        x @ w


def of_activations_and_views(x, w):
    with turnout.autocast("cpu"):
        for _ in range(2):
            x @ w.t()
            x @ (w * 1)


@pytest.mark.parametrize(("uses", "times"), [(twenty, 1), (without_the_cache, 3), (cleared, 2), (of_activations_and_views, 4)])
def test_a_weight_is_cast_once_in_an_outermost_context_that_keeps_it(uses, times):
    w, x = ones(3, 3, requires_grad=True), ones(3, 3, dtype=turnout.bfloat16)
    for _ in range(2):
        assert counted(lambda: uses(x, w)) == times
    assert amp.is_autocast_cache_enabled()


def test_a_weight_that_was_written_is_cast_anew():
    w, x = ones(2, 2, requires_grad=True), ones(2, 2)
    with turnout.autocast("cpu"):
        assert (x @ w).tolist() == [[2, 2], [2, 2]]
        with turnout.no_grad():
            w.add_(1)
        assert (x @ w).tolist() == [[4, 4], [4, 4]]
        w.detach().add_(1)
        assert (x @ w).tolist() == [[6, 6], [6, 6]]


def test_a_cast_made_under_no_grad_takes_no_gradient_away():
    w, x = ones(2, 2, requires_grad=True), ones(2, 2)
    with turnout.autocast("cpu"):
        with turnout.no_grad():
            assert not (x @ w).requires_grad
        loss = (x @ w).sum()
        with turnout.no_grad():
            assert not (x @ w).requires_grad
    loss.backward()
    assert w.grad.tolist() == [[2, 2], [2, 2]]
    assert w.grad.dtype is turnout.float32


def test_the_cache_keeps_nothing_beyond_the_context():
    w = ones(2, 2, requires_grad=True)
    with turnout.autocast("cpu"):
        result = ones(2, 2) @ w
    alive = weakref.ref(w)
    del w, result
    gc.collect()
    assert alive() is None


def test_backward_runs_in_the_dtype_that_forward_ran_in():
    w, x = ones(2, 2, requires_grad=True), ones(2, 2)
    with turnout.autocast("cpu"):
        loss = turnout.nn.functional.mse_loss(x @ w, x)
    assert loss.dtype is turnout.float32
    with turnout.trace_dispatch(arguments=True) as log:
        loss.backward()
    products = [call for call in log.walk() if call.op == "aten::mm" and call.key == "CPU"]
    assert products
    assert all("bfloat16" in text for call in products for text in call.arguments), [c.arguments for c in products]
    assert w.grad.dtype is turnout.float32


def test_two_backwards_through_one_cached_cast_inside_a_context():
    w, x = ones(2, 2, requires_grad=True), ones(2, 2)
    with turnout.autocast("cpu"):
        for times in (1, 2):
            (x @ w).sum().backward()
            assert w.grad.tolist() == [[2 * times] * 2] * 2


def test_functional_gradients_and_captured_weights_compose_with_the_cache():
    w, x = ones(2, 2, requires_grad=True), ones(2, 2)
    with turnout.autocast("cpu"):
        first, second = x @ w, x @ w
        (grad,) = turnout.autograd.grad(first.sum() + second.float().sum(), [w])
    assert grad.tolist() == [[4, 4], [4, 4]]


def test_float64_integers_and_other_devices_are_not_cast():
    meta = turnout.ones(2, 2, device="meta")
    with turnout.autocast("cpu"):
        assert (ones(2, 2, dtype=turnout.float64) @ ones(2, 2, dtype=turnout.float64)).dtype is turnout.float64
        assert (ones(2, 2, dtype=turnout.int64) @ ones(2, 2, dtype=turnout.int64)).dtype is turnout.int64
        assert (meta @ meta).dtype is turnout.float32


def test_two_lower_precisions_are_promoted_to_float32():
    with turnout.autocast("cpu"):
        found = turnout.cat([ones(1, dtype=turnout.float16), ones(1, dtype=turnout.bfloat16)])
    assert found.dtype is turnout.float32


def test_optional_tensors_that_are_not_given_stay_so():
    with turnout.autocast("cpu"):
        assert turnout.nn.functional.linear(ones(2, 3), ones(4, 3)).dtype is turnout.bfloat16


def test_a_float32_result_is_asked_for_where_the_list_says_so():
    x = turnout.ones(2, 3, device="meta", dtype=turnout.float16)
    with turnout.autocast("meta"):
        assert turnout.softmax(x, 1).dtype is turnout.float32
        assert turnout.softmax(x, 1, dtype=turnout.float16).dtype is turnout.float16
        assert x.sum().dtype is turnout.float32
        assert turnout.sum(x.double()).dtype is turnout.float64
        assert turnout.ones(2, device="meta", dtype=turnout.int64).sum().dtype is turnout.int64


def test_cached_cast_casts_what_is_eligible():
    w = ones(2, requires_grad=True)
    with turnout.autocast("cpu"):
        assert amp.cached_cast(turnout.bfloat16, w) is amp.cached_cast(turnout.bfloat16, w)
        assert amp.cached_cast(turnout.bfloat16, None) is None
        both = amp.cached_cast(turnout.float16, [w, ones(1, dtype=turnout.float64)])
        assert [t.dtype for t in both] == [turnout.float16, turnout.float64]
        assert amp.cached_cast(turnout.bfloat16, w, "meta") is w
        assert amp.cached_cast(turnout.float32, w) is w
    assert amp.cached_cast(turnout.bfloat16, w) is not amp.cached_cast(turnout.bfloat16, w), "no context, no cache"
    assert refused(CallError, amp.cached_cast, turnout.bfloat16, "text") == (
        "cached_cast: expected a tensor, None, or a list or tuple of them, got str"
    )
    assert refused(DTypeError, amp.cached_cast, turnout.int64, w) == (
        "cached_cast: tensors are cast to a floating dtype, got int64"
    )


def test_promote_type_is_the_widest_of_the_eligible_tensors():
    half, single, double = (ones(1, dtype=d) for d in (turnout.float16, turnout.float32, turnout.float64))
    assert amp.promote_type(turnout.float16, half, half) is turnout.float16
    assert amp.promote_type(turnout.float16, half, [half, single]) is turnout.float32
    assert amp.promote_type(turnout.float16, single, half, None) is turnout.float32
    assert amp.promote_type(turnout.float16, double, half) is turnout.float16
    assert amp.promote_type(turnout.float16, single, device_type="meta") is turnout.float16


LOWER = ("lower precision", "promote")  # float16, which the samples are in


@pytest.mark.parametrize(
    "case", [c for c in CASES if ACCELERATOR.get(c.op, "refused") != "refused" and "float32" in c.dtypes], ids=str
)
def test_every_rule_of_the_accelerators_gives_its_dtype(case):
    name = case.op
    op = find_operator(f"aten::{name}")

    def make(data, dtype):
        return turnout.tensor(data, dtype=dtype_named(dtype), device="cpu").to("meta")

    for args, kwargs in calls(case, "float16", make):
        with turnout.autocast("meta"):
            made = op(*args, **kwargs)
        found = made[0] if isinstance(made, (list, tuple)) else made
        assert found.dtype is (turnout.float16 if ACCELERATOR[name] in LOWER else turnout.float32)
    if ACCELERATOR[name] == "promote":
        args, kwargs = next(calls(case, "float16", make))
        with turnout.autocast("meta"):
            found = op(args[0].float(), *args[1:], **kwargs)
        assert found.dtype is turnout.float32


def test_a_rule_may_run_another_overload(monkeypatch):
    with library.Library("aten", "FRAGMENT") as lib:
        for text in ("norm.Tested(Tensor self) -> Tensor", "norm.Dtyped(Tensor self, *, ScalarType dtype) -> Tensor"):
            lib.define(text)
        lib.impl("norm.Tested", lambda self: self, "CompositeImplicitAutograd")
        lib.impl("norm.Dtyped", lambda self, *, dtype: self.to(dtype), "CompositeImplicitAutograd")
        monkeypatch.setitem(ACCELERATOR, "norm.Tested", "float32 overload")
        monkeypatch.setitem(OVERLOADS, "norm.Tested", "norm.Dtyped")
        x = ones(2, dtype=turnout.float16).to("meta")
        with turnout.autocast("meta"):
            assert turnout.ops.aten.norm.Tested(x).dtype is turnout.float32
            assert turnout.ops.aten.norm.Tested(x.double()).dtype is turnout.float64


def test_what_overflows_in_the_lower_precision_is_refused_on_accelerators(own):
    assert ACCELERATOR["binary_cross_entropy"] == "refused"
    assert errors.refused("aten::binary_cross_entropy", "cuda") == (
        "aten::binary_cross_entropy: it cannot run inside autocast for 'cuda': its argument may be 0 or 1 in the lower "
        "precision, where the logarithm overflows\n"
        "  to fix  use binary_cross_entropy_with_logits, which takes the argument before the sigmoid"
    )
    op = next((c for c in CASES if c.op == "binary_cross_entropy"), None)
    if op is not None:
        args, kwargs = next(calls(op, "float32", lambda d, t: ones(0).new_tensor(d).to("meta")))
        with turnout.autocast("meta"), pytest.raises(DTypeError):
            find_operator("aten::binary_cross_entropy")(*args, **kwargs)


# ---- rules of custom operators


@pytest.fixture
def own():
    with library.Library("autocast_tests", "FRAGMENT") as lib:
        yield lib


def test_a_kernel_at_the_alias_serves_every_backend(own):
    own.define("product(Tensor a, Tensor b) -> Tensor")
    own.impl("product", lambda a, b: a * b, "CompositeImplicitAutograd")
    op = turnout.ops.autocast_tests.product

    def product_autocast(a, b):
        with turnout.state.exclude("AutocastCPU"), turnout.state.exclude("AutocastMeta"):
            return op(amp.cached_cast(turnout.float16, a), amp.cached_cast(turnout.float16, b))

    own.impl("product", product_autocast, "Autocast")
    for device in ("cpu", "meta"):
        x = turnout.ones(2, device=device)
        with turnout.autocast(device):
            assert op(x, x).dtype is turnout.float16
        assert op(x, x).dtype is turnout.float32


def test_register_autocast_casts_the_floating_tensors_of_a_device(own):
    own.define("pick(Tensor x, Tensor[] more, int n, *, Tensor? weight=None) -> Tensor")
    seen = []

    def pick(x, more, n, *, weight=None):
        seen[:] = [x.dtype, *(t.dtype for t in more), None if weight is None else weight.dtype]
        assert not amp.is_autocast_enabled("cpu")
        return x * n

    own.impl("pick", pick, "CompositeExplicitAutograd")
    library.register_autocast("autocast_tests::pick", "cpu", turnout.float16, lib=own)
    op = turnout.ops.autocast_tests.pick
    x = ones(2, requires_grad=True)
    more = [ones(1, dtype=turnout.float64), ones(1, dtype=turnout.int64), ones(1)]
    with turnout.autocast("cpu", turnout.bfloat16):
        made = op(x, more, 3, weight=ones(1))
    assert seen == [turnout.float16, turnout.float64, turnout.int64, turnout.float16, turnout.float16]
    assert made.dtype is turnout.float16
    assert "autocast to float16" in str(_explained(op, x, more, 3))


def _explained(op, *args):
    with turnout.autocast("cpu"):
        return turnout.explain(op, *args)


def test_the_rule_of_a_custom_op_is_recorded_by_its_gradient():
    @library.custom_op("autocast_tests_op::square", mutates_args=())
    def square(x: turnout.Tensor) -> turnout.Tensor:
        return x * x

    square.register_autograd(lambda ctx, g: g * 2 * ctx.saved_tensors[0], setup_context=_save)
    square.register_autocast("cpu", turnout.bfloat16)
    square.register_autocast("cpu", turnout.float16)  # the newest one counts
    x = turnout.tensor([3.0], device="cpu", requires_grad=True)
    with turnout.autocast("cpu"):
        y = square(x)
    assert y.dtype is turnout.float16
    y.backward(ones(1, dtype=turnout.float16))
    assert (x.grad.dtype, x.grad.tolist()) == (turnout.float32, [6.0])
    assert square(x).dtype is turnout.float32


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def test_wrong_rules_are_refused():
    for error, rule, text in [
        (CallError, ("aten::sin", 3, turnout.float16), "register_autocast: device_type must be a str such as 'cpu', got int"),
        (DTypeError, ("aten::sin", "cpu", turnout.int64), "register_autocast: tensors are cast to a floating dtype, got int64"),
    ]:
        assert refused(error, library.register_autocast, *rule) == text


def test_products_that_are_a_number_have_the_dtypes_of_pytorch():
    x = ones(2, 2)
    with turnout.autocast("cpu"):
        single = [turnout.inner(x[0], x[0]), turnout.tensordot(x, x, 2), turnout.tensordot(x[0], x[0], 1)]
        lower = [turnout.inner(x, x), turnout.tensordot(x, x, 1)]
    assert [y.dtype.name for y in single + lower] == ["float32"] * 3 + ["bfloat16"] * 2


@pytest.mark.parametrize("cls", [turnout.nn.LSTM, turnout.nn.GRU])
def test_a_recurrent_layer_has_the_dtype_of_its_states_and_multiplies_in_the_lower_one(cls):
    layer, x = cls(4, 5), ones(3, 1, 4)
    wide, states = layer(x)
    with turnout.autocast("cpu"):
        output, states = layer(x)
    assert {t.dtype for t in (output, *(states if isinstance(states, tuple) else [states]))} == {turnout.float32}
    assert 0 < (output - wide).abs().max().item() < 0.01


@pytest.mark.parametrize("pseudo_inverse", [turnout.linalg.pinv, turnout.vmap(turnout.linalg.pinv)])
def test_a_pseudo_inverse_has_the_dtype_of_its_input_inside_vmap_and_outside(pseudo_inverse):
    x = ones(2, 2, 3)
    with turnout.autocast("cpu"):
        assert (x @ x.mT).dtype is turnout.bfloat16
        assert pseudo_inverse(x).dtype is turnout.float32
