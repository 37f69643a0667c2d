"""Operators that copy the elements of a view, and operators that overwrite them in a copy.

A `*_copy` is its view and a row-major clone; both are differentiable, so nothing else is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import expands_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.tensor.tensor import Tensor

    Copy = Callable[..., Any]


def _copy_of(view: str) -> Copy:
    """The kernel that copies the result, or each result, of the view operator `view`."""

    def copy(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        made = getattr(aten, view)(self, *args, **kwargs)
        if isinstance(made, list):
            return [aten.clone(each, memory_format="contiguous_format") for each in made]
        return aten.clone(made, memory_format="contiguous_format")

    return copy


view_copy = _copy_of("view")
view_copy_dtype = _copy_of("view__dtype")
reshape_alias_copy = _copy_of("_reshape_alias")
as_strided_copy = _copy_of("as_strided")
alias_copy = _copy_of("alias")
detach_copy = _copy_of("detach")
diagonal_copy = _copy_of("diagonal")
expand_copy = _copy_of("expand")
permute_copy = _copy_of("permute")
transpose_copy = _copy_of("transpose__int")
t_copy = _copy_of("t")
select_copy = _copy_of("select__int")
slice_copy = _copy_of("slice__Tensor")
squeeze_copy = _copy_of("squeeze")
squeeze_copy_dim = _copy_of("squeeze__dim")
squeeze_copy_dims = _copy_of("squeeze__dims")
unsqueeze_copy = _copy_of("unsqueeze")
unfold_copy = _copy_of("unfold")
narrow_copy = _copy_of("narrow")
split_copy = _copy_of("split__Tensor")
split_with_sizes_copy = _copy_of("split_with_sizes")
unbind_copy = _copy_of("unbind__int")


# ---- written over in a copy


def _over(name: str, made: Tensor, view: Tensor, src: Tensor) -> Tensor:
    """`made`, of which `view` shows a part, with `src` written there."""
    if view.shape != src.shape:
        raise ShapeError(
            f"{name}: 'src' must have shape {list(view.shape)}, that of the elements it replaces; got {list(src.shape)}"
        )
    aten.copy_(view, src)
    return made


def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of self with `src` at one index of a dim."""
    made = _writable_copy(self)
    return _over("select_scatter", made, aten.select__int(made, dim, index), src)


def slice_scatter(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of self with `src`, expanded, at start:end:step of a dim."""
    made = _writable_copy(self)
    view = aten.slice__Tensor(made, dim, start, end, step)
    return _over("slice_scatter", made, view, aten.expand(src, view.shape) if expands_to(src.shape, view.shape) else src)


def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of self with `src` on a diagonal."""
    made = _writable_copy(self)
    return _over("diagonal_scatter", made, aten.diagonal(made, offset, dim1, dim2), src)


def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of self's memory with `src` written by shape and strides."""
    made = _writable_copy(self)
    return _over("as_strided_scatter", made, aten.as_strided(made, size, stride, storage_offset), src)


def _writable_copy(self: Tensor) -> Tensor:
    """A dense copy of self, with its layout if that is dense.

    # differs from torch: `select_scatter`, `slice_scatter`, `diagonal_scatter` and `copy` keep the order of a tensor's dims in
    memory, not gaps between its elements.
    """
    return aten.clone(self)
