"""The functional, in-place and out variants of an operator come to the same compiled kernel, or all to the one below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout.registry import find_operator
from turnout_aten.generated.groups import STRUCTURED

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels.table import kernels

SIZES = (7, 32, 33, 1100, 5000, 70_000)
LAYOUTS = ("contiguous", "transposed", "every second", "row")
DTYPES = ("float32", "float16", "bfloat16")
Make = Callable[..., turnout.Tensor]


def numbers(rows: int, columns: int, layout: str, dtype: str, seed: int) -> turnout.Tensor:
    """A tensor with positive and negative numbers."""
    turnout.manual_seed(seed)
    shapes = {"transposed": (columns, rows), "every second": (rows, 2 * columns), "row": (1, columns)}
    made = turnout.randn(shapes.get(layout, (rows, columns))).to(getattr(turnout, dtype))
    views = {"transposed": lambda: made.t(), "every second": lambda: made[:, ::2], "row": lambda: made.expand(rows, columns)}
    return views.get(layout, lambda: made)()


def index(x: turnout.Tensor, bound: int) -> turnout.Tensor:
    return (turnout.arange(x.numel()) * 7 % bound).reshape(x.shape)


# Arguments before the outputs, of rows that take more than tensors of one shape and numbers; x and y are such tensors.
# fmt: off
ARGUMENTS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "_softmax.out":                   lambda x, y: (x, 1, False),
    "_log_softmax.out":               lambda x, y: (x, 0, False),
    "_softmax_backward_data.out":     lambda x, y: (x, y, 1, x.dtype),
    "_log_softmax_backward_data.out": lambda x, y: (x, y, 0, x.dtype),
    "native_layer_norm.out":          lambda x, y: (x, [x.shape[1]], y[0], None, 1e-5),
    "native_group_norm.out":          lambda x, y: (x, None, None, 1, 1, x.numel(), 1, 1e-5),
    "sum.IntList_out":                lambda x, y: (x, [1]),
    "mean.out":                       lambda x, y: (x, [0]),
    "prod.int_out":                   lambda x, y: (x, 1),
    "amax.out":                       lambda x, y: (x, [0]),
    "amin.out":                       lambda x, y: (x, [1]),
    "var.correction_out":             lambda x, y: (x, [0]),
    "std.correction_out":             lambda x, y: (x, [1]),
    "linalg_vector_norm.out":         lambda x, y: (x, 2, [0]),
    "argmax.out":                     lambda x, y: (x, 0),
    "argmin.out":                     lambda x, y: (x, 1),
    "max.dim_max":                    lambda x, y: (x, 0),
    "min.dim_min":                    lambda x, y: (x, 1),
    "mse_loss.out":                   lambda x, y: (x, y),
    "mse_loss_backward.grad_input":   lambda x, y: (turnout.ones((), dtype=x.dtype), x, y, 1),
    "cumsum.out":                     lambda x, y: (x, 0),
    "cumprod.out":                    lambda x, y: (x, 1),
    "cummax.out":                     lambda x, y: (x, 0),
    "cummin.out":                     lambda x, y: (x, 1),
    "topk.values":                    lambda x, y: (x, 2),
    "gather.out":                     lambda x, y: (x, 0, index(x, x.shape[0])),
    "scatter_add.out":                lambda x, y: (x, 1, index(x, x.shape[1]), y),
    "index_select.out":               lambda x, y: (x, 0, index(x[:, 0], x.shape[0])),
    "index.Tensor_out":               lambda x, y: (x, [index(x[:, 0], x.shape[0])]),
    "mm.out":                         lambda x, y: (x, y.t()),
    "bmm.out":                        lambda x, y: (x.expand(5, *x.shape), y.t().expand(5, *y.t().shape)),
    "addmm.out":                      lambda x, y: (y[:, 0], x, y.t()),
    "index_add.out":                  lambda x, y: (x, 0, index(x[:, 0], x.shape[0]), y),
    "index_put.out":                  lambda x, y: (x, [index(x[:, 0], x.shape[0])], y, True),
    "cat.out":                        lambda x, y: ([x, y], 1),
    "flip.out":                       lambda x, y: (x, [1]),
    "_adaptive_avg_pool2d.out":       lambda x, y: (x[None, None], [2, 3]),
    "tril.out":                       lambda x, y: (x,),
    "triu.out":                       lambda x, y: (x, 1),
    "clamp.out":                      lambda x, y: (x, -0.5, 0.7),
    "where.self_out":                 lambda x, y: (x > 0, x, y),
    "convolution.out":                lambda x, y: (image(x), weight(x), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 2),
    "max_pool2d_with_indices.out":    lambda x, y: (image(x), [1, 2], [1, 2], [0, 0], [1, 1]),
    "avg_pool2d.out":                 lambda x, y: (image(x), [1, 2], [1, 1], [0, 1]),
    "upsample_bilinear2d.out":        lambda x, y: (image(x), [2 * x.shape[0], x.shape[1]], False),
    "upsample_nearest2d.out":         lambda x, y: (image(x), [2 * x.shape[0], x.shape[1]]),
    "upsample_linear1d.out":          lambda x, y: (x[None], [2 * x.shape[1]], False),
    "upsample_nearest1d.out":         lambda x, y: (x[None], [2 * x.shape[1]]),
}
# fmt: on


def image(x: turnout.Tensor) -> turnout.Tensor:
    """Two channels."""
    return turnout.stack([x, x])[None]


def weight(x: turnout.Tensor) -> turnout.Tensor:
    return numbers(2, 9, "contiguous", str(x.dtype).removeprefix("turnout."), 3).reshape(2, 1, 3, 3)


def arguments(name: str, x: turnout.Tensor, y: turnout.Tensor) -> tuple[Any, ...]:
    """Arguments of a row before its outputs."""
    if name in ARGUMENTS:
        return ARGUMENTS[name](x, y)
    schema = find_operator(f"aten::{name}").schema
    made: list[Any] = []
    tensors = [x, y, x]
    for argument in schema.arguments[: len(schema.arguments) - len(schema.out_arguments)]:
        kind = argument.type.canonical
        if argument.has_default:
            break
        made.append(tensors.pop(0) if kind == "Tensor" else 0.7)
    return tuple(made)


def variants(name: str) -> dict[str, str]:
    """Kind -> the operator, of a row with outputs that takes these arguments."""
    members = STRUCTURED[f"aten::{name}"][0]
    written = len(find_operator(f"aten::{name}").schema.out_arguments)
    wanted = [str(a.type) for a in find_operator(f"aten::{name}").schema.arguments][:-written]
    found = {}
    for op, kind in members.items():
        given = [str(a.type).replace("(a!)", "") for a in find_operator(op).schema.arguments]
        if (given[:-written] if kind == "out" else given) == wanted:
            found[kind] = op
    return found


STRUCTURED_ROWS = [name for name in kernels() if f"aten::{name}" in STRUCTURED]


def bits(found: Any) -> list[bytes]:
    return [t.float().contiguous().numpy().tobytes() for t in (found if isinstance(found, (tuple, list)) else [found])]


@pytest.mark.parametrize("name", STRUCTURED_ROWS)
def test_all_variants_give_the_same_bits_from_the_first_call_on(name: str) -> None:
    of = {kind: find_operator(op) for kind, op in variants(name).items()}
    assert {"functional", "out"} <= set(of)
    names = [a.name for a in of["out"].schema.out_arguments]
    for size in SIZES:
        rows = max(1, int(size**0.5))
        columns = -(-size // rows)
        for layout, dtype in [(layout, dtype) for layout in LAYOUTS for dtype in DTYPES]:
            x, y = numbers(rows, columns, layout, dtype, 1), numbers(rows, columns, "contiguous", dtype, 2).abs() + 0.1
            given = arguments(name, x, y)
            first = bits(of["functional"](*given))
            where = (name, size, layout, dtype)
            assert bits(of["functional"](*given)) == first, (*where, "second call")
            shapes = of["functional"](*given)
            outs = [turnout.empty_like(t) for t in (shapes if isinstance(shapes, (tuple, list)) else [shapes])]
            assert bits(of["out"](*given, **dict(zip(names, outs, strict=True)))) == first, (*where, "out")
            gaps = [turnout.stack([t, t], -1)[..., 0] for t in outs]
            assert bits(of["out"](*given, **dict(zip(names, gaps, strict=True)))) == first, (*where, "an output with gaps")
            if "inplace" in of and layout != "row" and given[0].shape == outs[0].shape and given[0].dtype is outs[0].dtype:
                target = given[0].clone()
                assert bits(of["inplace"](target, *given[1:])) == first, (*where, "in place")


@pytest.mark.parametrize("alpha", [1, -1, 0.25, 3, 0.0, float("inf")])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_all_variants_scale_the_second_tensor_with_the_same_bits(name: str, alpha: float) -> None:
    call, inplace = getattr(turnout, name), f"{name}_"
    for size in SIZES:
        rows = max(1, int(size**0.5))
        for layout, dtype in [(layout, dtype) for layout in LAYOUTS for dtype in (*DTYPES, "float64")]:
            x, y = (numbers(rows, -(-size // rows), how, dtype, 1) for how in (layout, "contiguous"))
            first = call(x, y, alpha=alpha)
            where = (size, layout, dtype)
            assert bits(call(x, y, alpha=alpha, out=turnout.empty_like(first))) == bits(first), (*where, "out")
            gaps = turnout.stack([first, first], -1)[..., 0]
            assert bits(call(x, y, alpha=alpha, out=gaps)) == bits(first), (*where, "an output with gaps")
            assert bits(getattr(x.clone(), inplace)(y, alpha=alpha)) == bits(first), (*where, "in place")
            assert bits(getattr(x.contiguous().clone(), inplace)(y, alpha=alpha)) == bits(first), (*where, "a copy in place")
            wanted = x.double() + (y.double() if name == "add" else -y.double()) * alpha
            turnout.testing.assert_close(first.double(), wanted, rtol=2e-2 if "16" in dtype else 1e-5, atol=1e-2, equal_nan=True)


def test_other_rows_have_one_variant_with_a_kernel() -> None:
    assert {name for name in kernels() if name not in STRUCTURED_ROWS} == {
        "_native_batch_norm_legit.no_stats", "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training",
        "_to_copy", "clone", "convolution_backward", "embedding_dense_backward", "gru.input", "hardswish_backward",
        "hardtanh_backward", "huber_loss", "l1_loss", "leaky_relu_backward", "linalg_matmul", "logsumexp", "lstm.input",
        "masked_select", "native_batch_norm_backward", "native_dropout", "native_group_norm_backward",
        "native_layer_norm_backward", "nonzero",
        "rand", "rand.generator", "randint", "randint.generator", "randint.low", "randint.low_generator", "randn",
        "randn.generator", "rms_norm", "scaled_dot_product_attention", "select_backward", "silu_backward", "slice_backward",
        "smooth_l1_loss",
    }  # fmt: skip
