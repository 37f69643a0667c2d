"""Gradients of operators that are composed of others: one node, whose gradient is an operator of this package with a raw kernel.

Composed, the gradient of `rms_norm` takes 17 launches, and that of causal attention 15. Here the first takes 1 for the input and
1 or 2 for the weight; the second takes 5 products of matrices and 1 launch between them. Nothing but the inputs is kept: the
deviations and the softmax are computed again.

Each gradient is composed of operators, too, for what has no kernel: tensors of vmap, and gradients that are differentiated again.
Calls of which a gradient takes other arguments than `serves` says stay composed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from turnout import plugins
from turnout.dtypes import bool_, float32
from turnout.keys import AUTOGRAD, IMPLICIT
from turnout.operators import Operator
from turnout.registry import Registrations
from turnout_aten import operators as aten
from turnout_aten.composites.attention import attention_weights
from turnout_aten.composites.conversions import converted
from turnout_aten.composites.normalisation import grad_of_scaled, rms_factor
from turnout_aten.dtypes import WIDE
from turnout_aten.kernels.tables import is_recorded, register_recording
from turnout_aten.shapes.attention import default_scale
from turnout_aten.shapes.extents import expands_to
from turnout_aten.shapes.normalisation import RMS_EPS
from turnout_aten.tensor.tensor import Tensor
from turnout_cuda.programs import DTYPES

Call = Callable[..., Any]


@dataclass(frozen=True)
class Gradient:
    """The gradient of a composed operator.

    schema    that of the operator which computes it, without a namespace
    composed  that operator, composed of others
    serves    for which arguments of the operator it is the gradient
    kept      the places of the tensors that it needs
    slopes    `slopes(op, grad, tensors, needed, args)`: the gradients of the tensors that are kept, by a call of that operator;
              `args` are the operator's without tensors
    """

    schema: str
    composed: Call
    serves: Call
    kept: tuple[int, ...]
    slopes: Call


def define(library: Registrations, namespace: str) -> None:
    """Define the operators of gradients."""
    for gradient in GRADIENTS.values():
        op = library.define(gradient.schema, namespace=namespace)
        library.impl(op.qualified_name, IMPLICIT, gradient.composed)


def register(library: Registrations, key: str, namespace: str) -> None:
    """Record calls on a backend by these gradients."""
    for name, gradient in GRADIENTS.items():
        slope = library.registry.find(f"{namespace}::{gradient.schema.partition('(')[0]}")
        how: Any = {"fn": gradient.composed, "recorded": _recorder(gradient, slope), "serves": gradient.serves}
        register_recording(library, f"aten::{name}", AUTOGRAD + key, "recorded as one, or composed of operators", **how)


def _recorder(gradient: Gradient, slope: Operator) -> Callable[[Operator], Call]:
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: dict[str, Any] | None = None) -> None:
        ctx.given = [None if isinstance(each, Tensor) else each for each in (*inputs, *(keyword_only_inputs or {}).values())]
        ctx.save_for_backward(*[inputs[at] for at in gradient.kept])

    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        found: list[Any] = [None] * len(ctx.given)
        needed = [ctx.needs_input_grad[at] for at in gradient.kept]
        for at, each in zip(gradient.kept, gradient.slopes(slope, grad, ctx.saved_tensors, needed, ctx.given), strict=True):
            found[at] = each
        return tuple(found[: len(ctx.needs_input_grad)])

    def recorded(op: Operator) -> Call:
        return plugins.service(AUTOGRAD).custom_rule(op, backward, setup)

    return recorded


def _of_floats(*tensors: Any) -> bool:
    """Whether all are of one dtype that raw kernels compute in."""
    dtype = tensors[0].dtype
    return dtype.name in DTYPES and all(each.dtype is dtype for each in tensors)


def _wide(x: Tensor) -> Tensor:
    return converted(x, WIDE[x.dtype])


# ---- rms_norm


def rms_norm_backward(
    grad: Tensor, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float, output_mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of (input, weight); None where the mask is False."""
    x, g = _wide(input), _wide(grad)
    dims = tuple(range(-len(normalized_shape), 0))
    factor = rms_factor(x, dims, eps)
    normal = aten.mul__Tensor(x, factor)
    found: list[Tensor | None] = [None, None]
    if output_mask[0]:
        each = g if weight is None else aten.mul__Tensor(g, _wide(weight))
        found[0] = converted(grad_of_scaled(each, normal, factor, dims), input.dtype)
    if output_mask[1] and weight is not None:
        rows = aten.reshape(aten.mul__Tensor(g, normal), (-1, *weight.shape))
        found[1] = converted(aten.sum__dim_IntList(rows, (0,)), weight.dtype)
    return found[0], found[1]


def _serves_rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None) -> bool:
    last, shapes = input.shape[input.ndim - len(normalized_shape) :], [tuple(normalized_shape)]
    shapes += [] if weight is None else [tuple(weight.shape)]
    fits = bool(last) and 0 not in input.shape and all(shape == tuple(last) for shape in shapes)
    return fits and _of_floats(input, input if weight is None else weight)


def _rms_norm_slopes(op: Call, grad: Tensor, tensors: Any, needed: list[bool], given: Any) -> Any:
    input, weight = tensors
    eps = RMS_EPS[input.dtype] if given[3] is None else given[3]
    return op(grad, input, given[1], weight, eps, needed)


# ---- attention


def attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of (query, key, value); None where the mask is False."""
    weights, v = attention_weights(query, key, value, is_causal, attn_mask, scale)
    g, q, k = (_wide(each) for each in (grad, query, key))
    slopes = aten.matmul(g, aten.transpose__int(v, -2, -1))
    along = aten.sum__dim_IntList(aten.mul__Tensor(weights, slopes), (-1,), True)
    of_scores = aten.mul__Scalar(aten.mul__Tensor(weights, aten.sub__Tensor(slopes, along)), scale)
    turned, shown = aten.transpose__int(of_scores, -2, -1), aten.transpose__int(weights, -2, -1)
    factors = zip(output_mask, ((of_scores, k, query), (turned, q, key), (shown, g, value)), strict=True)
    return tuple([converted(aten.matmul(a, b), x.dtype) if wanted else None for wanted, (a, b, x) in factors])


def _serves_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool, scale: Any,
    enable_gqa: bool,
) -> bool:  # fmt: skip
    if dropout_p or min(query.ndim, key.ndim, value.ndim) < 2 or not _of_floats(query, key, value):
        return False
    if attn_mask is not None and (is_causal or is_recorded((attn_mask,)) or attn_mask.dtype not in (bool_, float32, query.dtype)):
        return False
    lead, (length, keys) = query.shape[:-2], (query.shape[-2], key.shape[-2])
    if attn_mask is not None and not expands_to(attn_mask.shape, (*lead, length, keys)):
        return False
    same = key.shape == (*lead, keys, query.shape[-1]) and value.shape == (*lead, keys, value.shape[-1])
    return same and query.numel() * key.numel() * value.numel() > 0


def _attention_slopes(op: Call, grad: Tensor, tensors: Any, needed: list[bool], given: Any) -> Any:
    width, scale = tensors[0].shape[-1], given[6]
    return *op(grad, *tensors, given[5], default_scale(width) if scale is None else scale, needed[:3]), None


GRADIENTS = {
    "rms_norm": Gradient(
        "rms_norm_backward(Tensor grad, Tensor input, SymInt[] normalized_shape, Tensor? weight, float eps, bool[2] output_mask)"
        " -> (Tensor, Tensor)",
        rms_norm_backward, _serves_rms_norm, (0, 2), _rms_norm_slopes,
    ),
    "scaled_dot_product_attention": Gradient(
        "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale, "
        "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        attention_backward, _serves_attention, (0, 1, 2, 3), _attention_slopes,
    ),
}  # fmt: skip
