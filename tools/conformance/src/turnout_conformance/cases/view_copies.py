"""Copies of what views show, and views written over in a copy. A copy has the samples and the reference of its view."""

from __future__ import annotations

from typing import Any

from turnout_conformance.cases.model import M, OperatorCase, S, row, some
from turnout_conformance.cases.views import CASES as VIEWS

_OF = {case.op: case for case in VIEWS}

_COPIES = {
    "view_copy": "view", "_reshape_alias_copy": "_reshape_alias", "as_strided_copy": "as_strided", "alias_copy": "alias",
    "detach_copy": "detach", "diagonal_copy": "diagonal", "expand_copy": "expand", "permute_copy": "permute",
    "transpose_copy.int": "transpose.int", "t_copy": "t", "select_copy.int": "select.int", "slice_copy.Tensor": "slice.Tensor",
    "squeeze_copy": "squeeze", "squeeze_copy.dim": "squeeze.dim", "squeeze_copy.dims": "squeeze.dims",
    "unsqueeze_copy": "unsqueeze", "unfold_copy": "unfold", "narrow_copy": "narrow", "split_copy.Tensor": "split.Tensor",
    "split_with_sizes_copy": "split_with_sizes", "unbind_copy.int": "unbind.int", "unsafe_split.Tensor": "split.Tensor",
    "unsafe_split_with_sizes": "split_with_sizes", "unsafe_chunk": "chunk", "view_copy.dtype": "view.dtype",
}  # fmt: skip


def _written(np: Any, x: Any, source: Any, at: Any) -> Any:
    made = x.copy()
    made[at] = source
    return made


def _on_diagonal(np: Any, x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    made = np.moveaxis(x.copy(), (dim1, dim2), (-2, -1))
    i = np.arange(source.shape[-1])
    made[..., i + max(-offset, 0), i + max(offset, 0)] = source
    return np.moveaxis(made, (-2, -1), (dim1, dim2))


def _by_strides(np: Any, x: Any, source: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    made = x.reshape(-1).copy()
    places = sum(
        np.arange(n).reshape((-1,) + (1,) * (len(size) - i - 1)) * s for i, (n, s) in enumerate(zip(size, stride, strict=True))
    )
    made[offset + places] = source
    return made.reshape(x.shape)


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    *(row(op, _OF[view].samples, _OF[view].reference, _OF[view].dtypes, differentiable=_OF[view].differentiable) for op, view in _COPIES.items()),
    row("select_scatter", (S(M, some(3, seed=3), 0, 1), S(M, some(2, seed=3), -1, -3)), lambda np, x, s, d, i: _written(np, x, s, (slice(None),) * (d % x.ndim) + (i,))),
    row("slice_scatter", (S(M, some(2, 2, seed=3), 1, 1, 3), S(M, some(1, 3, seed=3), 0, None, None, 2)), lambda np, x, s, d=0, a=None, b=None, n=1: _written(np, x, s, (slice(None),) * d + (slice(a, b, n),))),
    row("diagonal_scatter", (S(M, some(2, seed=3)), S(some(2, 3, 2), some(2, 2, seed=3), -1, 1, 2)), _on_diagonal),
    row("as_strided_scatter", S(M, some(2, 2, seed=3), [2, 2], [1, 3], 1), _by_strides),
)
# fmt: on
