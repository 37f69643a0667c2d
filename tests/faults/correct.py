"""Correct operators of every kind, in many of which something is odd: no check may raise an alarm on them."""

from __future__ import annotations

from typing import Any

import numpy as np

import turnout
from faults.model import COMPOSITE, Spec, given, values, whole
from turnout import library


def of(array: Any) -> turnout.Tensor:
    """A new tensor of an array's values."""
    return turnout.from_numpy(np.array(array, order="C"))


def save_inputs(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def like(x: Any, *rest: Any, **kwargs: Any) -> Any:
    return turnout.empty(x.shape, dtype=x.dtype, device=x.device)


def broadcast_like(*tensors: Any) -> Any:
    shape = turnout.broadcast_shapes(*[t.shape for t in tensors])
    return turnout.empty(shape, dtype=tensors[0].dtype, device=tensors[0].device)


def at_front(x: Any, dim: int | None) -> Any:
    return x if dim is None else x.movedim(dim, 0)


# ---- one tensor


def rows_forward(x, eps=1e-5):
    a = x.numpy()
    return of(a / (np.abs(a).sum(-1, keepdims=True) + eps))


def rows_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.eps = inputs[1]


def rows_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    total = x.abs().sum(-1, keepdim=True) + ctx.eps
    return grad / total - (grad * x).sum(-1, keepdim=True) * x.sign() / (total * total), None


def clipped(x, lo=None, hi=None):
    a = x.numpy()
    a = a if lo is None else np.maximum(a, np.asarray(lo, a.dtype))
    return of(a if hi is None else np.minimum(a, np.asarray(hi, a.dtype)))


def total_setup(ctx, inputs, output):
    ctx.shape = inputs[0].shape


def total_vmap(info, in_dims, x):
    x = at_front(x, in_dims[0])
    return x.reshape((x.shape[0], -1)).sum(1, dtype=x.dtype), 0


def largest(x):
    a = x.numpy()
    if not a.size:
        raise ValueError("largest: x has no element")
    return of(a.max())


def power_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.exponent = inputs[1]


def reduced(x, how="sum"):
    a = x.numpy()
    return of({"sum": lambda: a.sum(dtype=a.dtype), "count": lambda: np.asarray(a.size, a.dtype)}[how]())


# ---- several tensors


def add_scaled(x, y, *, alpha=1.0):
    return of(x.numpy() + y.numpy() * np.asarray(alpha, np.result_type(x.numpy(), y.numpy())))


def add_scaled_fake(x, y, *, alpha=1.0):
    shape = turnout.broadcast_shapes(x.shape, y.shape)
    return turnout.empty(shape, dtype=turnout.promote_types(x.dtype, y.dtype), device=x.device)


def add_scaled_setup(ctx, inputs, keyword_only_inputs, output):
    ctx.shapes = [t.shape for t in inputs]
    ctx.alpha = keyword_only_inputs["alpha"]


def summed_to(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(0)
    dims = [i for i, n in enumerate(shape) if n == 1 and grad.shape[i] != 1]
    return grad.sum(dims, keepdim=True) if dims else grad


def outer_forward(x, y):
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("outer: x and y have one dim")
    return of(np.outer(x.numpy(), y.numpy()))


def outer_vmap(info, in_dims, x, y):
    x, y = (
        at_front(t, d) if d is not None else t.expand((info.batch_size, *t.shape)) for t, d in zip((x, y), in_dims, strict=True)
    )
    return x.unsqueeze(2) * y.unsqueeze(1), 0


def linear(x, w, b=None):
    made = x.numpy() @ w.numpy().T
    return of(made if b is None else made + b.numpy())


def linear_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.has_bias = inputs[2] is not None


# ---- lists, optional tensors, several results


def weighted(xs, weights):
    if not xs:
        raise ValueError("weighted: there is no tensor")
    return of(sum(x.numpy() * np.asarray(w, x.numpy().dtype) for x, w in zip(xs, weights, strict=True)))


def weighted_setup(ctx, inputs, output):
    ctx.weights = inputs[1]


def top(x, k=1):
    order = np.argsort(-x.numpy(), kind="stable")[:k]
    return of(x.numpy()[order]), of(order)


def top_setup(ctx, inputs, output):
    ctx.save_for_backward(output[1])
    ctx.shape = inputs[0].shape


# ---- writes


def fill(x, value):
    x.fill_(value)


def add_out(x, y, *, out):
    out.copy_(x + y)
    return out


def swap(x, y):
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)


def scale_all(xs, by):
    for x in xs:
        x.mul_(by)


def count_up(state, x):
    state.add_(1)
    return x * 2


# ---- symmetric matrices


def lower_squares(x):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError("x must be a square matrix")
    return of((np.tril(x.numpy()) ** 2).sum((-2, -1), dtype=x.numpy().dtype))


def lower_squares_fake(x):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError("x must be a square matrix")
    return x.new_empty(x.shape[:-2])


def lower_squares_backward(ctx, grad):
    lower = ctx.saved_tensors[0].tril()
    return (lower + lower.mT) * grad[..., None, None]  # of a symmetric matrix: half of 2 * lower in each triangle


# ---- integer, complex, numbers, no tensor, sizes that depend on data, random numbers


def complex_values():
    return turnout.complex(values(3), values(3, seed=5)), turnout.complex(values(3, seed=3), values(3, seed=7))


def found_fake(x):
    return x.new_empty((library.get_ctx().new_dynamic_size(), x.ndim), dtype=turnout.int64)


def noisy(x, scale=1.0):
    return x + turnout.rand(x.shape, dtype=x.dtype) * scale


# ---- composites, several kernels


def padded(x, pads, value=0.0):
    left, right = pads
    end = (*x.shape[:-1],)
    return turnout.cat([x.new_full((*end, left), value), x, x.new_full((*end, right), value)], -1)


def mean_over(x, dim=None, keepdim=False):
    dims = tuple(range(x.ndim)) if dim is None else tuple(dim)
    return x.mean(dims, keepdim) if dims else x.clone()


# fmt: off
CORRECT: dict[str, Spec] = {made.name: made for made in [
    # ---- one tensor
    Spec("cube", "(Tensor x) -> Tensor", lambda x: of(x.numpy() ** 3), lambda: given(values(2, 3)), fake=like,
         backward=lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] * ctx.saved_tensors[0], setup=save_inputs,
         vmap=lambda info, dims, x: (x * x * x, dims[0])),
    Spec("exp_of_arrays", "(Tensor x) -> Tensor", np.exp, lambda: given(values(3)), key="CPU", arrays=True,
         fake=lambda x: x.new_empty(x.shape, dtype=x.dtype if x.is_floating_point() or x.is_complex() else turnout.float64),
         backward=lambda ctx, grad: grad * ctx.saved_tensors[0].exp(), setup=save_inputs),
    Spec("checked_square", "(Tensor x) -> Tensor", lambda x: of(x.numpy() * x.numpy()), lambda: given(values(2, 2)), fake=like,
         backward=lambda ctx, grad: grad * 2 * ctx.saved_tensors[0], setup=save_inputs, checked=True),
    Spec("normalised_rows", "(Tensor x, float eps=1e-05) -> Tensor", rows_forward, lambda: given(values(2, 3)), fake=like,
         backward=rows_backward, setup=rows_setup),
    Spec("clipped", "(Tensor x, float? lo=None, float? hi=None) -> Tensor", clipped, lambda: given(values(4), -1.0, 1.0),
         fake=like),
    Spec("total", "(Tensor x) -> Tensor", lambda x: of(x.numpy().sum(dtype=x.numpy().dtype)), lambda: given(values(2, 3)),
         fake=lambda x: x.new_empty(()), backward=lambda ctx, grad: grad.expand(ctx.shape), setup=total_setup, vmap=total_vmap),
    Spec("largest", "(Tensor x) -> Tensor", largest, lambda: given(values(5)), fake=lambda x: x.new_empty(())),
    Spec("power", "(Tensor x, Scalar exponent=2) -> Tensor", lambda x, exponent=2: x**exponent,
         lambda: given(values(3, low=0.5, high=2.0), 3), fake=lambda x, exponent=2: x**exponent,
         backward=lambda ctx, grad: (grad * ctx.exponent * ctx.saved_tensors[0] ** (ctx.exponent - 1), None), setup=power_setup),
    Spec("reduced", '(Tensor x, str how="sum") -> Tensor', reduced, lambda: given(values(3)),
         fake=lambda x, how="sum": x.new_empty(())),
    Spec("as_dtype", "(Tensor x, ScalarType dtype) -> Tensor", lambda x, dtype: x.to(dtype, copy=True),
         lambda: given(values(3), turnout.float32), fake=lambda x, dtype: turnout.empty_like(x, dtype=dtype)),
    # ---- several tensors
    Spec("add_scaled", "(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor", add_scaled,
         lambda: given(values(2, 3), values(3, seed=3), alpha=2.0), fake=add_scaled_fake, setup=add_scaled_setup,
         backward=lambda ctx, grad: (summed_to(grad, ctx.shapes[0]), summed_to(grad * ctx.alpha, ctx.shapes[1]))),
    Spec("outer", "(Tensor x, Tensor y) -> Tensor", outer_forward, lambda: given(values(2), values(3, seed=3)),
         fake=lambda x, y: turnout.empty(
             (x.shape[0], y.shape[0]), dtype=turnout.promote_types(x.dtype, y.dtype), device=x.device),
         backward=lambda ctx, grad: (grad @ ctx.saved_tensors[1], grad.transpose(0, 1) @ ctx.saved_tensors[0]), setup=save_inputs,
         vmap=outer_vmap),
    Spec("linear", "(Tensor x, Tensor w, Tensor? b=None) -> Tensor", linear,
         lambda: given(values(2, 3), values(4, 3, seed=3), values(4, seed=5)),
         fake=lambda x, w, b=None: x.new_empty((x.shape[0], w.shape[0])), setup=linear_setup,
         backward=lambda ctx, g: (
             g @ ctx.saved_tensors[1], g.transpose(0, 1) @ ctx.saved_tensors[0], g.sum(0) if ctx.has_bias else None)),
    Spec("product", "(Tensor x, Tensor y) -> Tensor", lambda x, y: x @ y, lambda: given(values(2, 3), values(3, 2, seed=3)),
         fake=lambda x, y: x.new_empty((x.shape[0], y.shape[1])),
         backward=lambda ctx, grad: (grad @ ctx.saved_tensors[1].transpose(0, 1), ctx.saved_tensors[0].transpose(0, 1) @ grad),
         setup=save_inputs, autocast=turnout.bfloat16),
    Spec("taken_rows", "(Tensor x, Tensor index) -> Tensor", lambda x, index: of(x.numpy()[index.numpy()]),
         lambda: given(values(4, 2), whole(3, high=4)), fake=lambda x, index: x.new_empty((*index.shape, *x.shape[1:]))),
    Spec("near", "(Tensor x, Tensor y, float tolerance=0.5) -> Tensor",
         lambda x, y, tolerance=0.5: of(np.abs(x.numpy() - y.numpy()) <= tolerance), lambda: given(values(3), values(3, seed=3)),
         fake=lambda x, y, tolerance=0.5: turnout.empty(
             turnout.broadcast_shapes(x.shape, y.shape), dtype=turnout.bool, device=x.device)),
    # ---- lists, optional tensors, several results
    Spec("weighted", "(Tensor[] xs, float[] weights) -> Tensor", weighted,
         lambda: given([values(2, 3), values(2, 3, seed=3)], [0.5, 2.0]), fake=lambda xs, weights: broadcast_like(*xs),
         backward=lambda ctx, grad: ([grad * w for w in ctx.weights], None), setup=weighted_setup),
    Spec("halves", "(Tensor x) -> Tensor[]",
         lambda x: [p.clone(memory_format=turnout.contiguous_format) for p in (x[: x.shape[0] // 2], x[x.shape[0] // 2 :])],
         lambda: given(values(4, 2)), fake=lambda x: [like(x[: x.shape[0] // 2]), like(x[x.shape[0] // 2 :])],
         backward=lambda ctx, grads: turnout.cat(list(grads))),
    Spec("sum_of_some", "(Tensor?[] xs) -> Tensor", lambda xs: of(sum(x.numpy() for x in xs if x is not None)),
         lambda: given([values(3), None, values(3, seed=3)]),
         fake=lambda xs: broadcast_like(*[x for x in xs if x is not None])),
    Spec("signs", "(Tensor x) -> (Tensor, Tensor)", lambda x: (of(np.maximum(x.numpy(), 0)), of(np.minimum(x.numpy(), 0))),
         lambda: given(values(2, 3)), fake=lambda x: (like(x), like(x)), setup=save_inputs,
         backward=lambda ctx, up, down: up * (ctx.saved_tensors[0] > 0) + down * (ctx.saved_tensors[0] < 0)),
    Spec("top", "(Tensor x, int k=1) -> (Tensor values, Tensor indices)", top, lambda: given(values(5), 2),
         fake=lambda x, k=1: (x.new_empty((min(k, x.shape[0]),)), x.new_empty((min(k, x.shape[0]),), dtype=turnout.int64)),
         backward=lambda ctx, grad, unused: (grad.new_zeros(ctx.shape).index_add(0, ctx.saved_tensors[0], grad), None),
         setup=top_setup),
    # ---- writes
    Spec("fill_", "(Tensor(a!) x, float value) -> ()", fill, lambda: given(values(2, 3), 5.0), fake=lambda x, value: None),
    Spec("scale_", "(Tensor(a!) x, float by) -> Tensor(a!)", lambda x, by: x.mul_(by), lambda: given(values(2, 3), 5.0),
         fake=lambda x, by: x),
    Spec("add_out", "(Tensor x, Tensor y, *, Tensor(a!) out) -> Tensor(a!)", add_out,
         lambda: given(values(2, 3), values(2, 3, seed=3), out=turnout.zeros(2, 3, dtype=turnout.float64)),
         fake=lambda x, y, *, out: out),
    Spec("swap_", "(Tensor(a!) x, Tensor(b!) y) -> ()", swap, lambda: given(values(3), values(3, seed=3)),
         fake=lambda x, y: None),
    Spec("scale_all_", "(Tensor(a!)[] xs, float by) -> ()", scale_all, lambda: given([values(3), values(2, 2)], 3.0),
         fake=lambda xs, by: None),
    Spec("counted", "(Tensor(a!) state, Tensor x) -> Tensor", count_up, lambda: given(whole(1), values(3)),
         fake=lambda state, x: like(x)),
    # ---- symmetric matrices
    Spec("squares_of_a_triangle", "(Tensor x) -> Tensor", lower_squares, lambda: given(values(3, 3) + values(3, 3).t()),
         fake=lower_squares_fake, backward=lower_squares_backward, setup=save_inputs),
    # ---- views
    Spec("first_row", "(Tensor(a) x) -> Tensor(a)", lambda x: x[0], lambda: given(values(2, 3)), key=COMPOSITE),
    Spec("flipped_dims", "(Tensor(a) x) -> Tensor(a)", lambda x: x.permute(tuple(reversed(range(x.ndim)))),
         lambda: given(values(2, 3)), key=COMPOSITE),
    Spec("pieces", "(Tensor(a -> *) x) -> Tensor(a)[]", lambda x: list(x.unbind(0)), lambda: given(values(2, 3)), key=COMPOSITE),
    Spec("row_major", "(Tensor(a) x) -> Tensor(a)", lambda x: x.contiguous(), lambda: given(values(2, 3)), key=COMPOSITE),
    # ---- integer, complex, numbers, no tensor, sizes that depend on data, random numbers
    Spec("mixed_bits", "(Tensor x, Tensor y) -> Tensor", lambda x, y: of((x.numpy() ^ y.numpy()) & 0xFF),
         lambda: given(whole(4), whole(4, seed=3)), fake=broadcast_like),
    Spec("conj_product", "(Tensor x, Tensor y) -> Tensor", lambda x, y: of(np.conj(x.numpy()) * y.numpy()),
         lambda: given(*complex_values()), fake=broadcast_like,
         backward=lambda ctx, grad: (grad.conj() * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]), setup=save_inputs),
    Spec("positives", "(Tensor x) -> int", lambda x: int((x.detach().numpy() > 0).sum()), lambda: given(values(5))),
    Spec("any_negative", "(Tensor x) -> bool", lambda x: bool((x.detach().numpy() < 0).any()), lambda: given(values(5))),
    Spec("ramp", "(int n, float step=1.0, *, Device? device=None) -> Tensor",
         lambda n, step=1.0, *, device=None: turnout.arange(n, dtype=turnout.float64, device=device) * step,
         lambda: given(4, 0.5),
         fake=lambda n, step=1.0, *, device=None: turnout.empty((n,), dtype=turnout.float64, device=device)),
    Spec("counts", "(Tensor x, int bins) -> Tensor",
         lambda x, bins: of(np.bincount(x.numpy(), minlength=bins)[:bins].astype(np.int64)), lambda: given(whole(6, high=4), 4),
         fake=lambda x, bins: x.new_empty((bins,), dtype=turnout.int64)),
    Spec("found", "(Tensor x) -> Tensor", lambda x: of(np.argwhere(x.numpy() > 0)), lambda: given(values(4)), fake=found_fake,
         tags=("dynamic_output_shape",)),
    Spec("noisy", "(Tensor x, float scale=1.0) -> Tensor", noisy, lambda: given(values(3)), fake=like,
         tags=("nondeterministic_seeded",), backward=lambda ctx, grad: (grad, None)),
    # ---- composites, several kernels
    Spec("soft", "(Tensor x, float slope=1.5) -> Tensor", lambda x, slope=1.5: x * (x * slope).sigmoid(),
         lambda: given(values(2, 3)), key=COMPOSITE),
    Spec("padded", "(Tensor x, int[] pads, float value=0.0) -> Tensor", padded, lambda: given(values(2, 2), [1, 2], 3.0),
         key=COMPOSITE),
    Spec("twice_served", "(Tensor x) -> Tensor", lambda x: x * 2 + 1, lambda: given(values(3)), fake=like,
         kernels={"CPU": lambda x: of(x.numpy() * np.asarray(2, x.numpy().dtype) + np.asarray(1, x.numpy().dtype))},
         backward=lambda ctx, grad: grad * 2),
    Spec("mean_over", "(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor", mean_over, lambda: given(values(2, 3), [1]),
         key=COMPOSITE),
]}
# fmt: on

CUBE = CORRECT["cube"]
