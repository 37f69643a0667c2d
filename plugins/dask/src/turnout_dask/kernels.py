"""The table: how each operator runs. Rows are those of cpu, chunk by chunk, or on whole arrays where no other way is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from turnout_aten.backend.functional_rows import Wanted
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.tables import called_with
from turnout_aten.shapes.extents import dims_of
from turnout_dask import losses, reductions
from turnout_dask.backend import DaskBackend
from turnout_dask.blocks import OUTPUT, Labels, Length, by_blocks, own, pointwise, rows, split
from turnout_dask.matrix_products import ADDED, PRODUCTS, matrix_product
from turnout_dask.whole import whole

Call = Callable[..., Any]

# Operators that work along one dim, or some: row -> where the argument is that names it. The other dims keep their chunks.
# fmt: off
ALONG = {
    "_softmax.out": 1, "_log_softmax.out": 1, "_softmax_backward_data.out": 2, "_log_softmax_backward_data.out": 2,
    "cumsum.out": 1, "cumprod.out": 1, "logcumsumexp.out": 1, "cummax.out": 1, "cummin.out": 1,
    "sort.values_stable": 2, "topk.values": 2, "kthvalue.values": 2, "median.dim_values": 1, "nanmedian.dim_values": 1,
    "mode.values": 1, "max.dim_max": 1, "min.dim_min": 1, "argmax.out": 1, "argmin.out": 1,
    "linalg_cross.out": 2, "gather.out": 1, "scatter.src_out": 1, "scatter.value_out": 1,
    "scatter_add.out": 1, "scatter_reduce.two_out": 1, "glu.out": 1, "flip.out": 1,
    "_fft_r2c.out": 1, "_fft_c2r.out": 1, "_fft_c2c.out": 1,
}

# Operators that treat each image or matrix by itself: row -> how many dims at the end it needs in one piece. Arguments with other
# leading dims, such as the weight of a convolution, are whole.
_AT_END = {
    "upsample_nearest1d.out": 1, "upsample_nearest2d.out": 2, "upsample_nearest3d.out": 3, "upsample_linear1d.out": 1,
    "upsample_bilinear2d.out": 2, "upsample_trilinear3d.out": 3, "upsample_bicubic2d.out": 2,
    "max_pool2d_with_indices.out": 2, "max_pool3d_with_indices.out": 3, "avg_pool2d.out": 2, "avg_pool3d.out": 3,
    "_adaptive_avg_pool2d.out": 2, "_adaptive_avg_pool3d.out": 3, "adaptive_max_pool2d.out": 2, "adaptive_max_pool3d.out": 3,
    "avg_pool2d_backward.grad_input": 2, "avg_pool3d_backward.grad_input": 3,
    "_adaptive_avg_pool2d_backward.out": 2, "_adaptive_avg_pool3d_backward.out": 3,
    "linalg_cholesky_ex.L": 2, "_linalg_svd.U": 2, "_linalg_eigh.eigenvalues": 2, "linalg_qr.out": 2,
    "linalg_lu_factor_ex.out": 2, "linalg_matrix_exp.out": 2, "linalg_eig.out": 2,
}
# fmt: on

_INDEX = "index.Tensor_out"
INDEX = 100  # the labels of an index's dims, beside those of what it indexes

ENDS: dict[str, Call] = {name: lambda x, args, count=count: count for name, count in _AT_END.items()} | {
    "convolution.out": lambda x, args: x.ndim - 1,
    "constant_pad_nd.out": lambda x, args: len(args[1]) // 2,
    "native_layer_norm.out": lambda x, args: len(args[1]),
}


def kernels(backend: DaskBackend) -> dict[str, Row]:
    """Operator -> row that takes and returns values."""
    ways = {name: _way(name, row, backend) or _otherwise(name, backend) for name, row in sized().items()}
    return {name: Row(_row(name, way, backend), pointwise=rows()[name].pointwise) for name, way in ways.items()}


def sized() -> dict[str, Row]:
    """The rows that run here. Where one gets no outputs, the numbers say how large the result is: cpu computes it."""
    return {name: row for name, row in rows().items() if called_with(f"aten::{name}")[1]}


def in_one_piece(backend: DaskBackend) -> set[str]:
    """The rows of which nobody has said how chunks go through them: they run on whole arrays."""
    return {name for name, row in sized().items() if _way(name, row, backend) is None and name not in {*ALONG, *ENDS, _INDEX}}


def _way(name: str, row: Row, backend: DaskBackend) -> Call | None:
    """How an operator runs: a function of the arguments, what is wanted and the native dtypes. None for `_otherwise`."""
    special = _OWN.get(name)
    if special is not None:
        return special
    if row.pointwise:
        return partial(pointwise, name)
    if name in reductions.REDUCTIONS:
        return partial(reductions.reduced, name)
    if name in PRODUCTS or name in ADDED:
        return partial(matrix_product, name)

    if name in ("argmax.out", "argmin.out"):
        return _place(name, da.argmax if name == "argmax.out" else da.argmin, backend)
    return None


def _otherwise(name: str, backend: DaskBackend) -> Call:
    """Along whole dims where the operator has them, else on whole arrays."""

    def otherwise(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
        labelled = _labels(name, args, wanted)
        if labelled is None:
            return whole(name, args, wanted, native, backend.bytes_of("host_limit"))
        return by_blocks(name, args, wanted, native, *labelled)

    return otherwise


def _row(name: str, way: Call, backend: DaskBackend) -> Call:
    def kernel(*args: Any) -> Any:
        wanted = [a for a in args if a.__class__ is Wanted]
        given = args[: len(args) - len(wanted)]
        native = [backend.native_dtype(want.dtype) for want in wanted]
        if any(0 in a.shape for a in split(given)[0]):  # chunks without elements are no work for many
            return whole(name, given, wanted, native, backend.bytes_of("host_limit"))
        made = way(given, wanted, native)
        backend.check_growth(made[0] if isinstance(made, tuple) else made)
        return made

    return kernel


# ---- which chunks belong together


def _labels(name: str, args: Sequence[Any], wanted: Sequence[Wanted]) -> tuple[list[Labels], list[Labels]] | None:
    """Labels of the arrays and the outputs; None if the arrays have to be whole."""
    arrays, _ = split(args)
    x = arrays[0] if arrays else None
    if x is None or not x.ndim:
        return None
    if name == _INDEX:
        return _index(x, args[1], arrays)
    if name in ALONG:
        if args[ALONG[name]] is None:
            return None
        dims = set(dims_of(x.ndim, args[ALONG[name]]))
        return _along(x, arrays, wanted, dims)
    if name in ENDS:
        return _ends(x, arrays, wanted, ENDS[name](x, args))
    return None


def _along(x: Any, arrays: list[Any], wanted: Sequence[Wanted], dims: set[int]) -> Any:
    """All arrays have the dims of the first; outputs have them too, or lack those that are whole."""
    rest = [d for d in range(x.ndim) if d not in dims]
    labels = []
    for i, array in enumerate(arrays):
        if array.ndim != x.ndim or any(array.shape[d] != x.shape[d] for d in rest):
            return None
        labels.append(tuple([d if d in rest else own(i, d) for d in range(x.ndim)]))
    out_labels: list[Labels] = []
    for i, want in enumerate(wanted):
        if len(want.shape) == x.ndim:
            out_labels.append(tuple([d if d in rest else own(OUTPUT + i, d) for d in range(x.ndim)]))
        elif len(want.shape) == len(rest):
            out_labels.append(tuple(rest))
        else:
            return None
    return labels, out_labels


def _ends(x: Any, arrays: list[Any], wanted: Sequence[Wanted], count: int) -> Any:
    """Arrays and outputs with the leading dims of the first array keep their chunks there; others are whole."""
    lead = x.shape[: x.ndim - count]
    if not lead:
        return None

    def labelled(shape: Sequence[int], number: int, also: bool) -> Labels:
        batched = also and tuple(shape[: len(lead)]) == lead
        return tuple([d if batched and d < len(lead) else own(number, d) for d in range(len(shape))])

    # A weight may by chance have the leading dims of the images: only what has their number of dims, too, goes along.
    labels = [labelled(a.shape, i, i == 0 or (a.ndim == x.ndim and len(lead) > 1)) for i, a in enumerate(arrays)]
    out_labels = [labelled(w.shape, OUTPUT + i, True) for i, w in enumerate(wanted)]
    return None if any(0 not in each for each in out_labels) else (labels, out_labels)


def _index(x: Any, indices: Sequence[Any], arrays: list[Any]) -> Any:
    """One index of integers: the dims that it does not index keep their chunks, and its own dims its chunks."""
    places = [d for d, index in enumerate(indices) if index is not None]
    if len(places) != 1 or arrays[1].dtype.kind == "b":
        return None
    (d,), index = places, tuple([INDEX + e for e in range(arrays[1].ndim)])
    labels = [tuple([own(0, 0) if e == d else e for e in range(x.ndim)]), index]
    return labels, [(*range(d), *index, *range(d + 1, x.ndim))]


# ---- operators with functions of their own


def _cat(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    tensors, dim = args
    return da.concatenate([t if t.dtype == native[0] else t.astype(native[0]) for t in tensors], axis=dim)


def _triangle(lower: bool, args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """A triangle of matrices. `da.tril` warns for complex numbers, because it makes its mask like them."""
    x, diagonal = args
    mask = da.tri(*x.shape[-2:], k=diagonal if lower else diagonal - 1, dtype=bool, chunks=x.chunks[-2:])
    zero = np.zeros(1, x.dtype)
    return da.where(mask, x, zero) if lower else da.where(mask, zero, x)


def _index_select(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    x, dim, index = args
    if not x.ndim:
        return x.reshape(wanted[0].shape)
    (d,) = dims_of(x.ndim, dim)
    labels = [tuple([own(0, 0) if e == d else e for e in range(x.ndim)]), (INDEX,) * index.ndim]
    out = tuple([(INDEX if index.ndim else own(OUTPUT, 0)) if e == d else e for e in range(x.ndim)])
    return by_blocks("index_select.out", args, wanted, native, labels, [out])


def _group_norm(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    x, weight, bias, _, *rest = args
    images = (0, *[own(0, d) for d in range(1, x.ndim)])
    labels: list[Labels] = [images, *[(own(9, 0),) for p in (weight, bias) if p is not None]]
    statistics = (0, own(OUTPUT, 1))
    given = (x, weight, bias, Length(0), *rest)
    return by_blocks("native_group_norm.out", given, wanted, native, labels, [images, statistics, statistics])


def _place(name: str, function: Call, backend: DaskBackend) -> Call:
    along = _otherwise(name, backend)

    def place(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
        if args[1] is None and args[0].dtype.kind in "biuf" and args[0].ndim:
            return reductions.extreme_place(function, args, wanted, native)
        return along(args, wanted, native)

    return place


_OWN: dict[str, Call] = {
    "aminmax.out": reductions.aminmax,
    "linalg_vector_norm.out": reductions.vector_norm,
    "mse_loss.out": losses.mse_loss,
    "mse_loss_backward.grad_input": losses.mse_loss_backward,
    "nll_loss_forward.output": losses.nll_loss,
    "nll_loss_backward.grad_input": losses.nll_loss_backward,
    "native_group_norm.out": _group_norm,
    "mean.out": reductions.mean,
    "mean.dtype_out": reductions.mean,
    "var.correction_out": partial(reductions.variance, root=False),
    "std.correction_out": partial(reductions.variance, root=True),
    "cat.out": _cat,
    "tril.out": partial(_triangle, True),
    "triu.out": partial(_triangle, False),
    "index_select.out": _index_select,
}
