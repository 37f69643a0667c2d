"""Calls that are made again: they give and refuse what the first one did, until somebody replaces a kernel below them."""

from __future__ import annotations

import contextvars
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import turnout
from outcomes import flat, refused
from turnout.errors import TurnoutError, UnknownOperatorError
from turnout.library import Library
from turnout.registry import find_operator
from turnout_aten.functions.call_forms import packet
from turnout_aten.kernels import planning, plans
from turnout_aten.shapes import indexing, promotion
from turnout_aten.shapes.specs import Out, Result

F = turnout.nn.functional
TIMES = 3
NAN, INF = float("nan"), float("inf")
tensor, ones, zeros = turnout.tensor, turnout.ones, turnout.zeros


def ramp(*shape: int, dtype: Any = turnout.float32) -> turnout.Tensor:
    return (turnout.arange(int(np.prod(shape)), dtype=turnout.float64) * 1.25 - 3).to(dtype).reshape(shape)


def put(index: Any, value: Any, target: turnout.Tensor) -> turnout.Tensor:
    target[index] = value
    return target


def told(found: Any) -> list[Any]:
    """What is seen of results: dtypes, layouts, places in memory, versions, elements to the last bit."""
    return [
        (t.dtype, t.shape, t.stride(), t.storage_offset(), t._version, t.contiguous().numpy().tobytes())
        if isinstance(t, turnout.Tensor)
        else t
        for t in flat(found)
    ]


# ---- the same at every call

MASK = tensor([True, False, True])
PLACES = tensor([2, 0, -1])
# A call, and the operators that it is written in.
CALLS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "stack": (lambda: turnout.stack([ramp(3), ramp(3)]), ("cat", "view")),
    "linear": (lambda: F.linear(ramp(2, 3), ramp(4, 3), ramp(4)), ("addmm",)),
    "roll": (lambda: ramp(5).roll(2), ("slice.Tensor", "cat")),
    "roll backwards": (lambda: ramp(5).roll(-7), ("slice.Tensor", "cat")),
    "outer": (lambda: turnout.outer(ramp(3), ramp(2)), ("unsqueeze", "mul.Tensor")),
    "chunk": (lambda: ramp(5, 2).chunk(2), ("split_with_sizes",)),
    "take": (lambda: ramp(2, 3).take(PLACES), ("reshape", "view", "index.Tensor")),
    "take one": (lambda: ramp(2, 3).take(tensor(-1)), ("reshape", "view", "index.Tensor")),
    "einsum": (lambda: turnout.einsum("ij,jk->ik", ramp(2, 3), ramp(3, 4)), ("permute", "reshape", "bmm")),
    "einsum of vectors": (lambda: turnout.einsum("i,i->", ramp(3), ramp(3)), ("reshape", "bmm")),
    "einsum of a batch": (lambda: turnout.einsum("bij,bkj->bik", ramp(2, 3, 4), ramp(2, 5, 4)), ("permute", "reshape", "bmm")),
    "a float at a mask": (lambda: put(MASK, 0.1, ramp(3)), ("index_put_",)),
    "a float at places": (lambda: put(PLACES, 0.1, ramp(4, 2)), ("index_put_",)),
    "a float at an int": (lambda: put(-1, 0.1, ramp(3, 2)), ("select.int", "fill_.Scalar")),
    "a float at slices": (lambda: put((slice(1, None), slice(None, -9)), 0.1, ramp(3, 2)), ("slice.Tensor", "fill_.Scalar")),
    "a float at a slice": (lambda: put(slice(0, None, 2), 0.1, ramp(3, 2)), ("slice.Tensor", "fill_.Scalar")),
    "a slice and a number": (lambda: ramp(3, 4, 5)[1:, 2], ("select.int", "slice.Tensor")),
    "a narrow part": (lambda: ramp(3, 4, 5).narrow(0, 1, 2), ("slice.Tensor",)),
    "one dim": (lambda: ramp(3, 4, 5).reshape(-1), ("view",)),
    "flat": (lambda: ramp(3, 4, 5).flatten(), ("view",)),
    "a copy with another dtype": (lambda: ramp(2, 2).to(turnout.int64), ()),
    "a copy of a turned one": (lambda: ramp(2, 2).t().contiguous(), ()),
    "a product": (lambda: ramp(2, 2) @ ramp(2, 2), ()),
    "logsumexp": (lambda: turnout.logsumexp(ramp(2, 2), 1), ()),
    "few that are joined": (lambda: turnout.cat([ramp(2, 3), ramp(2, 3)], 1), ()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_at_any_time_what_its_operators_give(name: str) -> None:
    call, _ = CALLS[name]
    with turnout.trace_dispatch():  # which the operators see
        expected = told(call())
    for _ in range(TIMES):
        assert told(call()) == expected


@pytest.mark.parametrize(("name", "operator"), [(name, operator) for name, (_, names) in CALLS.items() for operator in names])
def test_a_kernel_that_somebody_registers_is_called_its_error_is_raised_once_and_it_is_gone_again(
    name: str, operator: str
) -> None:
    call, called, breaks = CALLS[name][0], [], []
    expected = told(call())
    before = find_operator(f"aten::{operator}").kernel("CPU")

    def counted(*args: Any, **kwargs: Any) -> Any:
        called.append(operator)
        if breaks:
            raise ValueError("from this kernel")
        return before(*args, **kwargs)

    with Library("aten", "IMPL") as library:
        library.impl(operator, counted, "CPU", allow_override=True)
        assert [(t[0], t[1], t[-1]) for t in told(call())] == [(t[0], t[1], t[-1]) for t in expected]
        assert called
        breaks.append(True)
        for _ in range(TIMES):
            called.clear()
            assert refused(ValueError, call) == "from this kernel"
            assert called == [operator]
    called.clear()
    assert told(call()) == expected
    assert not called


A = ramp(3, 4, 5)
INDICES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a slice and a number": (lambda x: x[1:, 2], lambda x: x.slice(0, 1, None).select(1, 2)),
    "two numbers": (lambda x: x[0, -1], lambda x: x.select(0, 0).select(0, -1)),
    "three numbers": (lambda x: x[2, 1, 0], lambda x: x.select(0, 2).select(0, 1).select(0, 0)),
    "a new dim": (lambda x: x[None, :, 1], lambda x: x.unsqueeze(0).select(2, 1)),
    "dims that are left out": (lambda x: x[..., 1:, ::2], lambda x: x.slice(1, 1, None).slice(2, None, None, 2)),
    "a slice without elements": (lambda x: x[3:, 1], lambda x: x.slice(0, 3, None).select(1, 1)),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("transposed", [False, True])
def test_an_index_of_several_views_is_one_view_after_the_other(name: str, transposed: bool) -> None:
    for _ in range(2):
        leaves, bases, views = [A.clone().requires_grad_() for _ in range(2)], [], []
        for leaf, index in zip(leaves, INDICES[name], strict=True):
            bases.append((leaf * 1).transpose(0, 2) if transposed else leaf * 1)
            views.append(index(bases[-1]))
        assert told(views[0].detach()) == told(views[1].detach())
        assert views[0].is_alias_of(bases[0])
        for view, base in zip(views, bases, strict=True):
            view.mul_(3.0)  # in the base, too, and recorded there
            base.sum().backward()
        assert told(bases[0].detach()) == told(bases[1].detach())
        assert told(leaves[0].grad) == told(leaves[1].grad)


WRITES: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "exp": (lambda o: turnout.exp(zeros(4), out=o), [1.0, 1.0, 1.0, 1.0]),
    "add to itself": (lambda o: turnout.add(o, o, out=o), [0.0, 2.0, 4.0, 6.0]),
    "a scaled number": (lambda o: turnout.add(o, 1, alpha=2, out=o), [2.0, 3.0, 4.0, 5.0]),
    "two dtypes": (lambda o: turnout.add(ones(4), ones(4, dtype=turnout.int64), out=o), [2.0, 2.0, 2.0, 2.0]),
    "sum": (lambda o: turnout.sum(turnout.arange(8.0).view(2, 4), 0, out=o), [4.0, 6.0, 8.0, 10.0]),
    "sigmoid_": (lambda o: o.sigmoid_(), [0.5, 0.7310585975646973, 0.8807970285415649, 0.9525741338729858]),
    "clamp_": (lambda o: o.clamp_(1, 2), [1.0, 1.0, 2.0, 2.0]),
    "lerp_": (lambda o: o.lerp_(zeros(4), 0.5), [0.0, 0.5, 1.0, 1.5]),
    "cumsum_": (lambda o: o.cumsum_(0), [0.0, 1.0, 3.0, 6.0]),
    "index_put_": (lambda o: o.index_put_([tensor([3, 0])], tensor([7.0, 8.0])), [8.0, 1.0, 2.0, 7.0]),
    "copy_": (lambda o: o.copy_(ones(4)), [1.0, 1.0, 1.0, 1.0]),
    "a float at an int": (lambda o: put(0, 9.0, o), [9.0, 1.0, 2.0, 3.0]),
    "a float at a slice": (lambda o: put(slice(1, 3), 9.0, o), [0.0, 9.0, 9.0, 3.0]),
    "a float at places": (lambda o: put(tensor([2, 0]), 9.0, o), [9.0, 1.0, 9.0, 3.0]),
    "a float at a mask": (lambda o: put(tensor([True, False, True, False]), 9.0, o), [9.0, 1.0, 9.0, 3.0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_gives_the_same_numbers_and_one_version_at_every_call_in_views_too(name: str) -> None:
    write, expected = WRITES[name]
    for _ in range(TIMES):
        x, base = turnout.arange(4.0), turnout.arange(6.0) - 1
        written, view = x.clone(), base[1:5]
        for target in (written, view):
            before = target.version()
            assert write(target) is target
            assert (target.tolist(), target.version()) == (expected, before + 1)
        assert (base.tolist(), base.version()) == ([-1.0, *expected, 4.0], view.version())


VALUES = [1.5, -0.0, NAN, 3e38, -2.25, 1e-40, 7.0]
ANYHOW: dict[str, Callable[[turnout.Tensor], turnout.Tensor]] = {
    "sum": lambda x: x.sum(),
    "sum over a dim": lambda x: x.sum(0, keepdim=True),
    "sum over all dims": lambda x: x.sum((0,)),
    "sum into": lambda x: turnout.sum(x, 0, out=turnout.empty((), dtype=x.dtype)),
    "mean": lambda x: x.mean(),
    "mean over a dim": lambda x: x.mean(-1),
    "max": lambda x: x.max(),
    "amin": lambda x: x.amin(0),
    "prod": lambda x: x.prod(0),
    "var": lambda x: x.var(),
    "var of all": lambda x: turnout.var(x, correction=0.5),
    "no freedom": lambda x: turnout.var(x, correction=x.numel()),
    "std": lambda x: x.std(0, keepdim=True),
    "norm": lambda x: x.norm(),
    "another norm": lambda x: turnout.linalg.vector_norm(x, 1),
    "clamp": lambda x: x.clamp(-1, 2.5),
    "clamp_": lambda x: x.add_(0.0).clamp_(-1, 2.5),
    "one bound": lambda x: x.clamp(min=0.0),
    "maximum": lambda x: turnout.maximum(x, x * 0),
    "maximum into": lambda x: turnout.maximum(x, x * 0, out=turnout.empty(len(x), dtype=x.dtype)),
    "add into": lambda x: turnout.add(x, x, out=turnout.empty(len(x), dtype=x.dtype)),
    "scaled, into": lambda x: turnout.add(x, x, alpha=3, out=turnout.empty(len(x), dtype=x.dtype)),
    "exp into": lambda x: turnout.exp(x, out=turnout.empty(len(x), dtype=x.dtype)),
    "lerp": lambda x: turnout.lerp(x, x * 2, 0.75),
    "running sums": lambda x: x.cumsum(0),
    "flip": lambda x: x.flip(0),
}


@pytest.mark.parametrize("dtype", [turnout.float32, turnout.float64, turnout.float16])
@pytest.mark.parametrize("name", ANYHOW)
def test_memory_in_a_row_gives_the_bits_of_memory_with_gaps(name: str, dtype: turnout.dtype) -> None:
    for count in (1, 2, 7):
        values = [v if abs(v) < 1e30 or dtype is not turnout.float16 else 60000.0 for v in VALUES[:count]]
        for _ in range(TIMES):
            one = ANYHOW[name](tensor(values, dtype=dtype))
            other = ANYHOW[name](tensor([[v, 0.0] for v in values], dtype=dtype)[:, 0])
            assert (one.shape, one.dtype, one.numpy().tobytes()) == (other.shape, other.dtype, other.numpy().tobytes())


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [turnout.float32, turnout.bfloat16, turnout.int64, turnout.bool], ids=lambda d: d.name)
def test_few_tensors_are_joined_as_many_are(dim: int, dtype: Any) -> None:
    x, y = ramp(2, 3, dtype=dtype), ramp(2, 3, dtype=dtype)
    none = x[:0] if dim == 0 else x[:, :0]
    for few in ([x, y], [x.t().contiguous().t(), y.t().contiguous().t()], [x], [x, y.to(turnout.float64)], [x, none]):
        assert told(turnout.cat(few, dim)) == told(turnout.cat([*few, *[none] * 9], dim))


NUMBERS = [
    ([1.5, NAN], turnout.float32), ([1e300], turnout.float32), ([True, False], turnout.bool), ([True, 2], turnout.int64),
    ([[1, 2], [3, -4]], turnout.int64), ([2**62, -(2**63)], turnout.int64), ([[], []], turnout.float32),
    ([1, 2.5], turnout.float32), (3, turnout.int64),
]  # fmt: skip


@pytest.mark.parametrize(("data", "dtype"), NUMBERS)
def test_lists_of_numbers_become_tensors_of_the_usual_dtype_with_the_same_numbers(data: Any, dtype: turnout.dtype) -> None:
    assert told(tensor(data)) == told(tensor(data, dtype=dtype))


def test_a_number_beyond_float32_in_a_list_is_infinite() -> None:
    assert tensor([1e300]).tolist() == [INF]


def test_zeros_of_both_signs_are_told_apart() -> None:
    x, mask, at = tensor([1.0, -0.0]), tensor([True, False]), tensor([0])
    calls: dict[str, Callable[[float], turnout.Tensor]] = {
        "where": lambda zero: turnout.where(mask, zero, x),
        "where, other": lambda zero: turnout.where(mask, x, zero),
        "scatter": lambda zero: x.scatter(0, at, zero),
        "pad": lambda zero: F.pad(x, (1, 1), value=zero),
        "lerp": lambda zero: turnout.lerp(x, x + 1.0, zero),
    }
    for name, call in calls.items():
        plus, minus, *again = (told(call(zero)) for zero in (0.0, -0.0, 0.0, -0.0))
        assert again == [plus, minus], name
        assert plus != minus or name == "lerp", name


def test_equal_compares_as_the_elements_do() -> None:
    nan, zero = tensor([NAN]), tensor([0.0])
    alike = [(zero, -zero), (zero, zero.long()), (tensor([[1, 2]]), tensor([[1], [2]]).t()), (turnout.empty(0), turnout.empty(0))]
    assert [turnout.equal(*pair) for pair in [*alike, (zero.bfloat16(), zero.bfloat16())]] == [True] * 5
    assert [turnout.equal(nan, nan), turnout.equal(zero, zero[None])] == [False, False]


def test_a_copy_that_changes_nothing_is_the_tensor_itself() -> None:
    x = ramp(2, 2)
    for _ in range(TIMES):
        assert x.contiguous() is x
        assert x.float() is x
        assert x.to(turnout.float32, copy=True) is not x


# ---- outputs

OUT_CALLS: dict[str, tuple[Callable[..., turnout.Tensor], int]] = {
    "add": (turnout.add, 2),
    "mul": (turnout.mul, 2),
    "exp": (turnout.exp, 1),
    "log": (turnout.log, 1),
    "maximum": (turnout.maximum, 2),
}
SPECIAL = [0.0, -0.0, NAN, INF, -1.5, 2.0, 1e-40, 7.25]


@pytest.mark.parametrize("name", OUT_CALLS)
def test_an_output_gets_the_bits_of_a_new_tensor(name: str) -> None:
    function, count = OUT_CALLS[name]
    for dtype in (turnout.float32, turnout.float64, turnout.bfloat16):
        given = [tensor(SPECIAL, dtype=dtype) + i for i in range(count)]
        wanted = function(*given).to(turnout.float64).numpy().tobytes()
        targets = {
            "new": turnout.empty(8, dtype=dtype),
            "with gaps": turnout.empty(8, 2, dtype=dtype)[:, 0],
            "wider": turnout.empty(8, dtype=turnout.float64),
            "an input": given[0].clone(),
            "empty": turnout.empty(0, dtype=dtype),
        }
        for what, target in targets.items():
            args = [target, *given[1:]] if what == "an input" else given
            for _ in range(2 if what != "an input" else 1):
                version = target._version
                assert function(*args, out=target) is target
                assert target._version > version
                assert target.to(turnout.float64).numpy().tobytes() == wanted or what == "wider", (what, dtype)


def test_an_output_of_another_shape_is_resized_with_a_warning_after_calls_that_fit() -> None:
    x = ones(2, 4)
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda o: turnout.sum(x, 0, out=o),
        lambda o: turnout.exp(zeros(4), out=o).add_(1),
        lambda o: turnout.add(x[0], x[0], out=o),
        lambda o: turnout.mean(x * 2, 0, out=o),
        lambda o: turnout.amax(x[:, 0] * 2, 0, out=o),
    )
    for call in calls:
        wanted = call(turnout.empty(0)).clone()
        for shape in (wanted.shape, (3,), (1, 4), (0,), (2, 1, 2)):
            out = zeros(shape)
            silent = shape in (wanted.shape, (0,))
            with nullcontext() if silent else pytest.warns(UserWarning, match=f"an output with {out.numel()} elements of shape"):
                assert call(out) is out
            assert (out.shape, out.tolist()) == (wanted.shape, wanted.tolist())


# ---- refused at every call


def read_only(count: int) -> turnout.Tensor:
    array = np.zeros(count, np.float32)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only"):
        return turnout.from_numpy(array)


def apart(x: turnout.Tensor) -> tuple[turnout.Tensor, turnout.Tensor]:
    return x[1:], x[:4]


EXPANDED, BEYOND = "cannot write into an expanded tensor", "index {} is out of bounds for a dimension of size 4"
OUTSIDE = [((2,), (6,), 0), ((7,), (1,), 0), ((1,), (1,), 6), ((2,), (1 << 62,), 0), ((1 << 62, 4), (4, 1), 0)]
INDEXED: dict[str, Callable[[Any], Any]] = {
    "index_select": lambda index: turnout.arange(4.0).index_select(0, index),
    "gather": lambda index: turnout.arange(4.0).gather(0, index),
    "scatter": lambda index: turnout.arange(4.0).scatter(0, index, 1.0),
    "nll_loss": lambda index: F.nll_loss(turnout.arange(8.0).view(2, 4), index),
    "index_put_": lambda index: zeros(4).index_put_([index], tensor(1.0)),
}
EVERYWHERE = {"an int": 0, "a slice": slice(2), "a mask": MASK, "places": PLACES}
# What is wrong -> (a call of one argument, a right one, a wrong one, what the error says). Functions make an argument anew.
REFUSED: dict[str, tuple[Callable[[Any], Any], Any, Any, str]] = {
    "an output's dtype": (
        lambda o: turnout.add(ones(4), ones(4), out=o), lambda: zeros(4), lambda: zeros(4, dtype=turnout.int64),
        "the result has dtype float32, which cannot be written into int64",
    ),
    "a shape": (
        lambda o: o.lerp_(ones(4), 0.5), lambda: zeros(4), lambda: zeros(1),
        "self of shape [1] cannot hold the result of shape [4]",
    ),
    "clamp_ of an expanded one": (lambda o: o.clamp_(0, 1), lambda: zeros(4), lambda: zeros(1).expand(4), EXPANDED),
    "fill_ of an expanded one": (lambda o: o.fill_(2), lambda: zeros(4), lambda: zeros(1).expand(4), EXPANDED),
    "zero_ of an expanded one": (lambda o: o.zero_(), lambda: zeros(4), lambda: zeros(1).expand(4), EXPANDED),
    "memory that is shared in part": (
        lambda both: both[0].lerp_(both[1], 0.5), lambda: (ones(4), zeros(4)), lambda: apart(ones(5)),
        "the output and an input share part of their memory",
    ),
    "a read-only output": (lambda o: turnout.add(ones(3), ones(3), out=o), lambda: zeros(3), lambda: read_only(3), "read-only"),
    "a mask": (
        lambda mask: put(mask, 1, tensor([1, 2, 3])), MASK, tensor([True, False]),
        "index: a mask of shape [2] does not fit shape [3] at dim 0",
    ),
    "the dtype of values": (
        lambda value: put(tensor([0]), value, tensor([1, 2, 3])), tensor(7), tensor(7.0),
        "index_put: 'values' must have dtype int64, got float32",
    ),
    "a product": (lambda y: ramp(2, 2) @ y, ones(2, 2), ones(3, 2), "mm"),
    "shapes that are joined": (
        lambda y: turnout.cat([ones(2), y]), ones(2), ones(2, 2), "cat: shapes [2] and [2, 2] must be equal apart from dim 0",
    ),
    "lengths that are joined": (lambda y: turnout.cat([ones(2, 3), y]), ones(1, 3), ones(3, 2), "must be equal apart from dim 0"),
    "a dim that is joined": (lambda d: turnout.cat([ones(2, 3), ones(2, 3)], d), 1, 2, "dim 2 is out of range"),
    "a dim that is joined from the end": (lambda d: turnout.cat([ones(2, 3), ones(2, 3)], d), -1, -3, "dim -3 is out of range"),
    "a dim of a sum": (lambda d: ones(2).sum(d), 0, 2, "sum: dim 2 is out of range"),
    "a dim of a mean": (lambda d: ones(2).mean(d), 0, -3, "mean: dim -3 is out of range"),
    "an index": (
        lambda i: put(i, 1.0, ramp(3, 2)), 2, 4, "select: index 4 is out of range for dim 0 of length 3",
    ),
    "a step": (lambda n: put(slice(None, None, n), 1.0, ramp(3, 2)), 1, 0, "slice: step must be positive, got 0"),
    "too many indices": (lambda i: put(i, 1.0, ramp(3, 2)), (0, 0), (0, 0, 0), "too many indices"),
    "places": (lambda i: put(i, 1.0, ramp(3, 2)), tensor([0, 2]), tensor([0, 3]), "index 3 is out of bounds"),
    "a mask of rows": (lambda i: put(i, 1.0, ramp(3, 2)), MASK, tensor([True, False]), "a mask of shape"),
    "an index of a view": (lambda i: A[:, i], 3, 4, "select: index 4 is out of range for dim 1 of length 4"),
    "a step of a view": (lambda n: A[::n, 1], 1, 0, "slice: step must be positive, got 0"),
    "too many indices of a view": (lambda i: A[i], (0, 0, 0), (0, 0, 0, 0), "too many indices"),
    "a count of chunks": (lambda n: ramp(3).chunk(n), 2, 0, "chunk"),
    "a dim of chunks": (lambda d: ramp(3).chunk(2, d), 0, 1, "dim 1 is out of range"),
    "a place that is taken": (lambda at: ramp(2, 2).take(tensor([at])), 3, 4, "index 4 is out of bounds"),
    "a source that is empty": (lambda n: ramp(n).take(tensor([0])), 1, 0, "take"),
    "shapes that are stacked": (lambda y: turnout.stack([ramp(2, 2), y]), ramp(2, 2), ramp(2, 3), "stack"),
    "a dim of a stack": (lambda d: turnout.stack([ramp(2), ramp(2)], d), 1, 3, "dim 3 is out of range"),
    "outer of a matrix": (lambda x: turnout.outer(x, ramp(2)), ramp(2), ramp(2, 2), "outer"),
    "lengths of einsum": (lambda y: turnout.einsum("ij,jk->ik", ramp(2, 3), y), ramp(3, 2), ramp(2, 3), "einsum"),
    "dtypes of einsum": (
        lambda y: turnout.einsum("ij,jk->ik", ramp(2, 2), y), ramp(2, 2), ramp(2, 2, dtype=turnout.float64), "",
    ),
    "weights of linear": (lambda w: F.linear(ramp(2, 3), w, ramp(4)), ramp(4, 3), ramp(4, 2), ""),
    "dims of roll": (lambda n: ramp(3).roll(n, (0,)), (1,), (1, 2), "roll"),
    "an int beyond int64": (tensor, [2**63 - 1], [2**63], "9223372036854775808, which does not fit in int64"),
    "an int below int64": (tensor, [-(2**63)], [0, -(2**63) - 1], ""),
    **{
        f"{name} at {at}": (call, tensor([1, 3]), tensor([1, at]), f"{at} is out of bounds")
        for name, call in INDEXED.items() for at in (-1, 4, 7) if name != "index_put_" or at > 0
    },
    **{
        f"{at[0]} by {at[1]} at {at[2]} of six": (
            lambda a: turnout.arange(6.0).as_strided(*a), ((2,), (2,), 1), at, "of a storage with 6",
        )
        for at in OUTSIDE
    },
    **{
        f"a number beyond float32 at {name}": (lambda v, i=i: put(i, v, ramp(3)), 1.0, 1e300, "1e+300")
        for name, i in EVERYWHERE.items()
    },
    **{
        f"a number in read-only memory at {name}": (
            lambda x, i=i: put(i, 1.0, x), lambda: zeros(3), lambda: read_only(3), "read-only",
        )
        for name, i in EVERYWHERE.items()
    },
    **{
        f"a number in an expanded one at {name}": (
            lambda x, i=i: put(i, 1.0, x), lambda: zeros(3), lambda: zeros(1).expand(3), "expanded",
        )
        for name, i in EVERYWHERE.items() if name in ("a slice", "a mask")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_in_the_words_of_the_operators_and_nothing_is_written(name: str) -> None:
    call, right, wrong, says = REFUSED[name]
    texts = set()

    def refuse() -> None:
        given = wrong() if callable(wrong) else wrong
        before = told(given)
        texts.add(refused((TurnoutError, OverflowError), call, given))
        assert told(given) == before

    for _ in range(TIMES):
        call(right() if callable(right) else right)
        refuse()
    with turnout.trace_dispatch():  # which the operators see
        refuse()
    (text,) = texts
    assert says in text


def test_a_step_that_raises_leaves_the_call_to_the_general_path() -> None:
    large = tensor([3e38, 3e38])
    for _ in range(TIMES):
        with np.errstate(all="raise"):
            assert [large.sum().item(), large.mean().item(), large.norm().item()] == [INF] * 3
            assert turnout.add(large, large, out=turnout.empty(2)).tolist() == [INF] * 2


def test_kernels_leave_what_the_program_told_numpy_about_errors() -> None:
    def overflow() -> dict[str, str]:
        with np.errstate(over="raise", invalid="call", divide="warn"):
            x = tensor([1e30, -1.0])
            turnout.lerp(x * x, x, 0.5)
            x.clone().lerp_(x * 1e30, 0.5)
            turnout.exp(x, out=turnout.empty(2))
            x.long()
            return np.geterr()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = np.geterr()
        assert contextvars.copy_context().run(overflow) | {"under": "ignore"} == {
            "over": "raise", "invalid": "call", "divide": "warn", "under": "ignore",
        }  # fmt: skip
        assert np.geterr() == before


# ---- what is kept


def test_calls_that_look_alike_ask_the_shape_function_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def counting(self: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
        asked.append((self.array.shape, self.stride(), dim))
        return gather(self, dim, index, sparse_grad)

    gather = indexing.SHAPES["gather.out"]
    op = turnout.ops.aten.gather.default
    x, index = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), tensor([[2, 0]])
    with monkeypatch.context() as patch:
        patch.setitem(indexing.SHAPES, "gather.out", counting)
        op.cache.clear()  # the next call binds the kernel anew
        for _ in range(3):
            assert x.gather(1, index).tolist() == [[3.0, 1.0]]
        assert asked == [((2, 3), (3, 1), 1)]
        for _ in range(2):
            assert x.t().gather(1, tensor([[1, 0]])).tolist() == [[4.0, 1.0]]
            assert x.gather(0, tensor([[1, 0, 1]])).tolist() == [[4.0, 2.0, 6.0]]
        assert asked[1:] == [((3, 2), (1, 3), 1), ((2, 3), (3, 1), 0)]
    op.cache.clear()


def test_one_and_true_and_one_point_zero_have_answers_of_their_own() -> None:
    x, mask = tensor([2, 3], dtype=turnout.int32), tensor([True, False])
    dtypes = [turnout.where(mask, x, number).dtype for number in (1, 1.0, True, 1, 1.0, True)]
    assert dtypes == [turnout.int32, turnout.float32, turnout.int32] * 2


def test_an_answer_that_depends_on_the_default_dtype_is_not_kept() -> None:
    x, mask = tensor([2, 3]), tensor([True, False])

    def dtypes() -> list[Any]:
        found = turnout.where(mask, x, 0.5), turnout.atan2(x, x), turnout.var(tensor([1.0, 2.0], dtype=turnout.float32))
        return [t.dtype for t in found]

    assert dtypes() == [turnout.float32] * 3
    turnout.set_default_dtype(turnout.float64)
    try:
        assert dtypes() == [turnout.float64, turnout.float64, turnout.float32]
    finally:
        turnout.set_default_dtype(turnout.float32)
    assert dtypes() == [turnout.float32] * 3


def test_masks_select_and_write_by_their_values_whatever_was_selected_before() -> None:
    for values in ([True, False, True], [False, False, False], [True, True, True], [False, True, False]) * 2:
        x, mask = tensor([1, 2, 3]), tensor(values)
        assert x[mask].tolist() == [v for v, chosen in zip([1, 2, 3], values, strict=True) if chosen]
        for value in (0, tensor(7.0)):
            expected = [int(value) if chosen else v for v, chosen in zip([1, 2, 3], values, strict=True)]
            assert put(mask, value, x.clone()).tolist() == expected


def test_the_positions_of_a_mask_are_not_made_again_for_the_answer_that_was_just_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x, found = turnout.arange(100_003.0), []
    backend = x.device.backend
    monkeypatch.setattr(type(backend), "positions", lambda self, mask: found.append(mask.shape) or mask.nonzero())
    assert x[x > 100_000].tolist() == [100_001, 100_002]
    assert len(found) <= 2  # the compiled call path looks once itself, and keeps nothing


def test_an_operator_keeps_a_bounded_number_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "LIMIT", 4)
    kept = plans.Plans(ones(1).device.backend, ["self"], ["n"], {})
    for n in range(10):
        kept.answer(n, lambda n: Result(Out((n,), turnout.float32)), n)
        assert len(kept.known) == len(kept.results) <= 4


def test_calls_of_many_shapes_keep_a_bounded_number_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[plans.Plans] = []

    class Kept(plans.Plans):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(plans, "LIMIT", 4)
    for module in (planning, sys.modules.get("turnout_speed.replacements")):
        if module is not None:
            monkeypatch.setattr(module, "Plans", Kept)
    op = turnout.ops.aten.index.Tensor
    op.cache.clear()  # the next call binds the kernel anew
    for n in range(1, 11):
        assert turnout.arange(n)[tensor([n - 1])].tolist() == [n - 1]
        assert max(len(kept.known) for kept in made) in range(1, 5)
    op.cache.clear()


def test_an_error_shows_the_same_lines_before_an_answer_is_kept_and_afterwards() -> None:
    def shown(x: turnout.Tensor) -> list[tuple[str, str | None]]:
        with turnout.config.override(traceback="full"), pytest.raises(turnout.errors.DimError) as refusal:
            x[tensor([7, 0, 0])]
        return [(frame.name, frame.line) for frame in traceback.extract_tb(refusal.value.__traceback__)]

    shown(ones(6))  # what serves the call is looked up
    found = [shown(ones(5)), shown(ones(5))]
    assert found[0] == found[1]
    assert ("planned", "return compute((self, indices,), _answer)") in found[0]


def test_what_promotion_reads_of_the_default_dtype_is_noticed() -> None:
    whole, real = tensor([1]), tensor([1.0])
    for values, reads in [((whole, 0.5), True), ((real, 0.5), False), ((0.5, real), False), ((whole, 1), False), ((0.5,), True)]:
        promotion.DEFAULT_READ[0] = mark = object()
        promotion.result_type(*values)
        assert (promotion.DEFAULT_READ[0] is not mark) is reads, values


def test_a_kernel_that_is_called_with_a_list_in_place_of_a_tuple_asks_each_time() -> None:
    x, out = tensor([1.0, 2.0]), zeros(2)
    functional, writing = turnout.ops.aten.flip.default, turnout.ops.aten.flip.out
    for _ in range(2):
        assert functional.resolve(x.keys)(x.keys, x, [0]).tolist() == [2.0, 1.0]
        assert writing.resolve(x.keys)(x.keys, x, [0], out).tolist() == [2.0, 1.0]


def test_a_call_by_keywords_is_found_until_its_overload_is_removed() -> None:
    with Library("repeated_calls", "DEF") as library:
        library.define("f.one(Tensor x, *, int by) -> int")
        library.define("f.two(Tensor x, Tensor y, *, int by) -> int")
        library.impl("f.one", lambda x, *, by: by, "CompositeExplicitAutograd")
        library.impl("f.two", lambda x, y, *, by: -by, "CompositeExplicitAutograd")
        overloads, x = packet("repeated_calls", "f"), ones(2)
        assert [overloads(x, by=n) for n in (1, 2, 3)] == [1, 2, 3]
        assert [overloads(x, x, by=n) for n in (1, 2, 3)] == [-1, -2, -3]
    assert "repeated_calls::f" in refused(UnknownOperatorError, overloads, x, by=1)
    out = turnout.empty(2)
    assert [turnout.add(x, x, out=out).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    assert [turnout.sum(ramp(2, 2), dim=1, keepdim=True).shape for _ in range(3)] == [(2, 1)] * 3
