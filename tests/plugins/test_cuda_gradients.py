"""Gradients on the CUDA device: how many launches they are, and those of composed operators that are one node there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import cupy_stand_in
import pytest
from cuda_launches import DTYPES, OF_GRADIENTS, Devices, agree, kinds, numbers, recorded, work
from pretended_cuda import pretended

import turnout
from outcomes import flat
from turnout import func, nn
from turnout_aten.nn.losses import REDUCTIONS

F = nn.functional
Call = Callable[..., Any]
Shape = tuple[int, ...]


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


def attention(**options: Any) -> Call:
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)


def masked(kind: str, shape: Shape) -> Call:
    """Attention with a mask that allows nothing to the first query, or that is added, in the dtype of the query or in float32."""

    def call(q: Any, k: Any, v: Any) -> Any:
        at = turnout.arange(prod(shape), device=q.device).reshape(shape)
        mask = (at % 3 > 0) & (at >= shape[-1])
        if kind != "allowed":
            mask = at.double().cos().to(turnout.float32 if kind == "wide" else q.dtype)
            mask = mask.masked_fill((at % 3 == 1) & (shape[-1] > 1), float("-inf"))
        return attention(attn_mask=mask.mT.contiguous().mT if kind == "lying" else mask)(q, k, v)

    return call


def rms_norm(x: Any, w: Any = None, last: int = 1) -> Any:
    return F.rms_norm(x, tuple(x.shape[x.ndim - last :]), w)


# ---- launches

X = (96, 40)
PRODUCT = "cublasGemmStridedBatchedEx "
# (call of x [96, 40], a parameter [40] and classes [96]; what it starts, and what its gradient starts). Composed, `rms_norm`
# takes 7 launches and its gradient 17, causal attention 15 and its gradient 15.
STARTED: list[tuple[Call, str, str]] = [
    (
        lambda x, w, at: F.layer_norm(x, (40,), w, w),
        "normalise", "normalise_backward parameters_of_columns parameters_total of_add",
    ),
    (lambda x, w, at: F.layer_norm(x, (40,)), "normalise", "normalise_backward"),
    (lambda x, w, at: rms_norm(x, w), "normalise", "rms_backward parameters_of_columns parameters_total"),
    (lambda x, w, at: rms_norm(x.detach(), w), "normalise", "rms_backward parameters_of_columns parameters_total"),
    (lambda x, w, at: rms_norm(x, w.detach()), "normalise", "rms_backward"),
    (lambda x, w, at: rms_norm(x), "normalise", "rms_backward"),
    *[
        (
            lambda x, w, at, weight=weight, how=how: F.cross_entropy(x, at, weight and w.detach(), ignore_index=2, reduction=how),
            "softmax_rows likelihood", "likelihood_backward softmax_rows_backward",
        )
        for weight in (None, True) for how in REDUCTIONS
    ],
    *[
        (
            lambda x, w, at, causal=causal: attention(is_causal=causal)(x.view(4, 24, 40), at, at),
            f"{PRODUCT}softmax_of_scores {PRODUCT}", PRODUCT * 2 + "softmax_of_scores_backward " + PRODUCT,
        )
        for causal in (False, True)
    ],
    (
        lambda x, w, at: attention()(*x.view(4, 3, 8, 40).unbind(1)),
        f"{PRODUCT}softmax_of_scores {PRODUCT}", PRODUCT * 2 + "softmax_of_scores_backward " + PRODUCT * 3 + "place_rows " * 3,
    ),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize(("call", "forward", "backward"), STARTED)
def test_what_a_call_and_its_gradient_start(call: Call, forward: str, backward: str, dtype: str, backend: Any) -> None:
    x, w = (turnout.from_numpy(numbers(s, 1)).to("pretended", getattr(turnout, dtype)) for s in (X, (40,)))
    at = x.view(4, 24, 40) if PRODUCT in backward else turnout.arange(96, device="pretended") % 40
    with work() as started:
        y = call(x.requires_grad_(), w.requires_grad_(), at)
    assert started == forward.split()
    grad = turnout.ones_like(y)
    with work() as started:
        y.backward(grad)
    assert sorted(started) == sorted(backward.split())


def test_a_class_that_is_none_is_the_error_of_cpu_where_the_host_waits(backend: Any) -> None:
    for target, wrong in (([0, 3], 3), ([-1, 2], -1)):
        for place in ("cpu", "pretended"):
            x, at = turnout.ones(2, 3, device=place, requires_grad=True), turnout.tensor(target, device=place)
            with pytest.raises(IndexError, match=f"nll_loss: target {wrong} is out of bounds for 3 classes"):
                F.cross_entropy(x, at).item()


def test_a_class_that_is_made_wrong_behind_the_loss_is_no_silent_gradient(backend: Any) -> None:
    aten, x = turnout.ops.aten, turnout.zeros(2, 3, device="pretended")
    at, one = turnout.tensor([0, 2], device="pretended"), turnout.ones((), device="pretended")
    aten.nll_loss_forward(x, at, None, 2, -100)
    at[1] = 3
    grad = aten.nll_loss_backward(one, x, at, None, 2, -100, one)
    with pytest.raises(IndexError, match="nll_loss: target 3 is"):
        grad.tolist()
    assert str(grad.tolist()) == "[[-1.0, 0.0, 0.0], [nan, nan, nan]]"


# ---- values

# (call, shapes of its tensors)
CASES: list[tuple[Call, tuple[Shape, ...]]] = [
    *[(rms_norm, ((*lead, last), (last,))) for lead, last in [((3,), 5), ((96,), 40), ((2, 3), 1_300), ((), 7), ((300,), 1)]],
    (rms_norm, ((5, 64),)), (lambda x, w: rms_norm(x, w, 2), ((70, 2, 3), (2, 3))), (rms_norm, ((0, 3), (3,))),
    (lambda x, w: rms_norm(x.t(), w), ((40, 9), (40,))), (lambda x, w: rms_norm(x[:, ::2], w), ((9, 40), (20,))),
    *[
        (attention(is_causal=causal, scale=scale), ((*lead, queries, 4), (*lead, keys, 4), (*lead, keys, width)))
        for causal, scale in ((False, None), (True, 0.3))
        for lead, queries, keys, width in [((2, 3), 5, 7, 3), ((), 6, 6, 4), ((2,), 40, 33, 8), ((1,), 3, 1_100, 5)]
    ],
    *[(attention(), ((2, queries, 4), (2, keys, 4), (2, keys, width))) for queries, keys, width in [(0, 3, 2), (3, 2, 0)]],
    *[
        (masked(kind, shape), ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)))
        for kind in ("allowed", "added", "wide", "lying")
        for shape in [(5, 7), (2, 1, 1, 7), (2, 3, 5, 7), (1, 3, 1, 7), (3, 5, 1), (2, 1, 5, 7)]
    ],
    (masked("added", (40, 33)), ((40, 4), (33, 4), (33, 8))),
    (masked("allowed", (2, 5, 1, 1, 9)), ((2, 5, 3, 4, 8), (2, 5, 3, 9, 8), (2, 5, 3, 9, 8))),
    (masked("allowed", (2, 1, 3, 1, 9)), ((2, 5, 3, 4, 8), (2, 5, 3, 9, 8), (2, 5, 3, 9, 8))),
    (lambda q, k, v: attention()(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)), ((2, 5, 3, 4),) * 3),
    (lambda q: attention(is_causal=True)(q, q[:, :1].expand_as(q), q), ((2, 6, 4),)),
]  # fmt: skip


def gradients(case: tuple[Call, tuple[Shape, ...]], t: Devices, again: bool = False) -> Any:
    """A call's result and gradients; or with `again` the gradients of these. Their strides are those of a copy."""
    call, shapes = case
    given = [t(numbers(shape, seed)).requires_grad_() for seed, shape in enumerate(shapes)]
    y = call(*given)
    found = turnout.autograd.grad(y, given, t(numbers(tuple(y.shape), 9)), create_graph=again)
    if again:
        found = turnout.autograd.grad(sum((each * each).sum() for each in found), given)
    return [each.detach().contiguous() for each in (y, *found)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_those_of_cpu(dtype: str, backend: Any) -> None:
    with recorded() as launched:
        for case in CASES:
            agree(lambda t, case=case: gradients(case, t), dtype)
    assert {(name, dtype) for name in OF_GRADIENTS} <= set(launched)
    assert all(dtype in kinds(name) for name in OF_GRADIENTS)


def test_gradients_of_gradients_are_those_of_cpu(backend: Any) -> None:
    for case in CASES:
        agree(lambda t, case=case: gradients(case, t, again=True), "float64")


def transformed(call: Call, x: Any) -> Iterator[Any]:
    """Gradients of a function of one matrix, in transforms of all kinds."""

    def loss(x: Any) -> Any:
        return call(x).exp().sum()

    yield turnout.vmap(func.grad(loss))(x)
    yield func.grad(lambda x: turnout.vmap(call)(x).sin().sum())(x)
    yield func.jvp(call, (x[0],), (x[1],))
    yield func.jvp(func.grad(loss), (x[0],), (x[1],))
    yield func.vjp(call, x[0])[1](x[1])
    yield func.hessian(loss)(x[0])


@pytest.mark.parametrize("call", [lambda x: rms_norm(x, x[0]), lambda x: attention(is_causal=True)(x, x, x)])
def test_gradients_are_transformed_as_on_cpu(call: Call, backend: Any) -> None:
    agree(lambda t: [each.contiguous() for each in flat(tuple(transformed(call, t(numbers((3, 5, 5), 1)))))], "float64")


def test_a_traced_step_has_one_operator_for_each_gradient(backend: Any) -> None:
    def step(x: Any, w: Any) -> Any:
        attention()(rms_norm(x, w), x, x).sum().backward()
        found, w.grad = w.grad, None
        return found

    def traced(t: Devices) -> Any:
        x, w = t(numbers((6, 5), 1)), t(numbers((5,), 2)).requires_grad_()
        graph = turnout.trace(step)(x, w)
        names = [node.op.qualified_name for node in graph.nodes]
        if x.device.type == "pretended":
            assert [name for name in names if "backward" in name] == [
                "turnout_pretended::attention_backward", "turnout_pretended::rms_norm_backward",
            ]  # fmt: skip
        return graph(x, w), step(x, w)

    agree(traced, "float64")


def test_a_query_that_sees_nothing_has_no_gradient(backend: Any) -> None:
    q, mask = turnout.ones(2, 4, device="pretended", requires_grad=True), turnout.zeros(2, 2, device="pretended")
    mask[0] = float("-inf")
    y = attention(attn_mask=mask)(q, q.detach(), q.detach() * turnout.arange(4.0, device="pretended"))
    y.sum().backward()
    assert y[0].tolist() == q.grad[0].tolist() == [0.0] * 4


# ---- calls that stay composed

COMPOSED: list[tuple[Call, tuple[Shape, ...]]] = [
    (lambda x, w: F.rms_norm(x.float(), (5,), w.double()), ((3, 5), (5,))),
    (lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), ((1, 4, 3, 5), (1, 2, 3, 5))),
    (lambda q, k: attention()(q, k, k), ((2, 3, 5), (3, 5))),
    (lambda q, m: attention(attn_mask=m)(q, q, q), ((3, 5), (3, 3))),
]


@pytest.mark.parametrize("case", COMPOSED)
def test_other_calls_stay_composed(case: Any, backend: Any) -> None:
    cupy_stand_in.launched.clear()
    agree(lambda t: gradients(case, t), "float64", within="float32")
    assert not OF_GRADIENTS & {name for name, _ in cupy_stand_in.launched}


def test_errors_are_those_without_a_gradient(backend: Any) -> None:
    x, w = turnout.ones(3, 4, device="pretended"), turnout.ones(3, device="pretended")
    for call in (lambda x: rms_norm(x, w), lambda x: attention()(x, x[:, :2], x), lambda x: rms_norm(x, turnout.ones(4))):
        texts = []
        for given in (x, x.detach().requires_grad_()):
            with pytest.raises(turnout.errors.TurnoutError) as caught:
                call(given)
            texts.append(str(caught.value).split("\n")[0])
        assert texts[0] == texts[1]
