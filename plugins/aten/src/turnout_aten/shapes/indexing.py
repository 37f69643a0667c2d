"""Shape functions of operators that select by index tensors, or join.

They do not read index values: a kernel raises DimError for an index that is out of range. Bool masks are the exception. The
length of their selection depends on values, so their indices are computed here, by the operator `nonzero`.
"""

from __future__ import annotations

from turnout.dtypes import bool_, int8, int16, int32, int64, uint8
from turnout.errors import DimError, DTypeError, IndexKindError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import LEFT_OUT, broadcast, contiguous_strides, iterated_strides, wrap_dim
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.shapes.promotion import result_type
from turnout_aten.shapes.specs import Out, Result, prepared_by
from turnout_aten.tensor.tensor import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor

INDEX_DTYPES = (int64, int32, int16, int8)
MASK_DTYPES = (bool_, uint8)  # a uint8 tensor is a mask that says where it is not 0

# ---- self[indices]


def check_mask(shape: tuple[int, ...], dim: int, mask: tuple[int, ...]) -> None:
    """Raise DimError unless a mask of this shape fits a tensor of `shape` at `dim`."""
    if shape[dim : dim + len(mask)] != mask:
        raise DimError(f"index: a mask of shape {list(mask)} does not fit shape {list(shape)} at dim {dim}")
    if not mask:
        # The caller has added a dim of length 1 for a 0-dim mask.
        raise DimError("index: a 0-dim mask needs a separate dimension; use x[mask]")


def plain_indices(self: Tensor, indices: Sequence[Tensor | None]) -> tuple[list[Tensor | None], bool]:
    """The indices with every mask replaced by the integer indices of its true elements, and whether there were masks."""
    found: list[Tensor | None] = []
    shape = self.array.shape
    masks = False
    for index in indices:
        if index is None or index.dtype not in MASK_DTYPES:
            if index is not None and index.dtype not in INDEX_DTYPES:
                raise IndexKindError(f"index: an index tensor must be an integer or bool one, got {index.dtype.name}")
            found.append(index)
            continue
        masks = True
        mask = index.array.shape
        check_mask(shape, len(found), mask)
        known = index.device.backend.positions(index.array)
        if known is not None:
            found += [wrap(array, index.device) for array in known]
            continue
        positions = aten.nonzero(index)
        found += [aten.select__int(positions, 1, d) for d in range(len(mask))]
    if len(found) > len(shape):
        raise DimError(texts.too_many_indices("index", len(found), len(shape)))
    return found, masks


def with_positions(self: Tensor, indices: Sequence[Tensor | None], *rest: Any) -> tuple[Any, ...] | None:
    """The arguments with the positions of the true elements in place of masks; None without masks, or for wrong ones.

    What a shape function answers for masks depends on values, what it answers for positions does not.
    """
    found: list[Tensor | None] = []
    shape = self.array.shape
    masks = False
    for index in indices:
        if index is None or index.dtype not in MASK_DTYPES:
            found.append(index)
            continue
        masks = True
        mask = index.array.shape
        fits = mask and shape[len(found) : len(found) + len(mask)] == mask
        known = index.device.backend.positions(index.array) if fits else None
        if known is None:
            return None
        found += [wrap(array, index.device) for array in known]
    return (self, found, *rest) if masks else None


def selected(self: Tensor, indices: Sequence[Tensor | None]) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """The shape of self[indices], and where the broadcast shape of the index tensors stands in it.

    It replaces the indexed dims. If these are not adjacent, it comes first.
    """
    shape: tuple[int, ...] = self.array.shape
    at = [d for d, index in enumerate(indices) if index is not None]
    if not at:
        return shape, 0, ()
    chosen: tuple[int, ...] = ()
    try:
        for index in indices:
            chosen = chosen if index is None else broadcast(chosen, index.array.shape)
    except ShapeError:
        raise DimError(
            f"index: index tensors of shapes {', '.join(str(list(i.array.shape)) for i in indices if i is not None)} "
            "do not broadcast"
        ) from None
    if 0 not in chosen:
        for d in at:
            if shape[d] == 0:
                raise DimError(f"index: cannot select from dim {d} of shape {list(shape)}, which has length 0")
    kept = tuple([n for d, n in enumerate(shape) if d not in at])
    lead = at[0] if at[-1] - at[0] == len(at) - 1 else 0
    return kept[:lead] + chosen + kept[lead:], lead, chosen


def _selected_strides(
    self: Tensor, indices: Sequence[Tensor | None], shape: tuple[int, ...], lead: int, chosen: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides of self[indices], which follow those of self and of the index tensors."""
    strides = self.stride()
    if len(chosen) < 2 and strides == contiguous_strides(self.array.shape):
        return None
    kept = tuple([s for d, s in enumerate(strides) if d >= len(indices) or indices[d] is None])
    operands = [kept[:lead] + (0,) * len(chosen) + kept[lead:]]
    for index in indices:
        if index is not None:
            own = (0,) * (len(chosen) - len(index.array.shape)) + index.stride()
            lengths = (1,) * (len(chosen) - len(index.array.shape)) + index.array.shape
            repeated = [0 if n == 1 != m else s for n, m, s in zip(lengths, chosen, own, strict=True)]
            # An index tensor has dims of length 1 for those that it does not select.
            before = [index.numel() if n == 1 else 0 for n in shape[:lead]]
            after = [1 if n == 1 else 0 for n in shape[lead + len(chosen) :]]
            operands.append((*before, *repeated, *after))
    return iterated_strides(shape, operands)


@prepared_by(with_positions)
def index(self: Tensor, indices: Sequence[Tensor | None]) -> Out | Result:
    """self[indices]; None keeps a dim. The kernel gets integer index tensors only."""
    plain, masks = plain_indices(self, indices)
    shape, lead, chosen = selected(self, plain)
    out = Out(shape, self.dtype, _selected_strides(self, plain, shape, lead, chosen))
    return Result(out, None, {"indices": plain}) if masks else out


# ---- along one dim


def check_index(name: str, index: Tensor) -> None:
    """Raise DTypeError for an index of another dtype than int64 and int32."""
    if index.dtype not in (int64, int32):
        raise DTypeError(f"{name}: 'index' must be an int64 or int32 tensor, got {index.dtype.name}")


def index_select(self: Tensor, dim: int, index: Tensor) -> Out:
    """The slices along `dim` at a 1-dim index."""
    shape = self.array.shape
    dim = wrap_dim(dim, len(shape))
    check_index("index_select", index)
    picked = index.array.shape
    if len(picked) > 1:
        raise DimError(texts.not_one_dim("index_select", "index", picked))
    if not shape:
        if picked and picked[0] != 1:
            raise DimError(f"index_select: 'index' must have one element for a 0-dim tensor, got shape {list(picked)}")
        return Out((), self.dtype, exact=True)
    return Out((*shape[:dim], picked[0] if picked else 1, *shape[dim + 1 :]), self.dtype, exact=True)


def check_along(name: str, self: Tensor, dim: int, index: Tensor, src: Tensor | None = None) -> None:
    """The checks of gather and scatter: equal ranks, and an index no longer than the others in the other dims."""
    shape, wanted = self.array.shape or (1,), index.array.shape or (1,)
    dim = wrap_dim(dim, len(self.array.shape))
    if 0 in wanted:
        return
    check_index(name, index)
    if len(shape) != len(wanted):
        raise ShapeError(f"{name}: 'index' of shape {list(wanted)} must have as many dimensions as 'self', {list(shape)}")
    if any(n > shape[d] for d, n in enumerate(wanted) if d != dim):
        raise ShapeError(f"{name}: 'index' of shape {list(wanted)} is longer than 'self', {list(shape)}, apart from dim {dim}")
    if src is None:
        return
    source = src.array.shape or (1,)
    if len(source) != len(wanted):
        raise ShapeError(f"{name}: 'index' of shape {list(wanted)} must have as many dimensions as 'src', {list(source)}")
    if any(n > m for n, m in zip(wanted, source, strict=True)):
        raise ShapeError(f"{name}: 'index' of shape {list(wanted)} is longer than 'src', {list(source)}")
    if src.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype(name, "src", self.dtype, src.dtype))


def gather(self: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Out:
    """The elements at `index` along `dim`, in the shape of `index`."""
    check_along("gather", self, dim, index)
    return Out(index.array.shape, self.dtype, exact=True)


# ---- joining and rearranging


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Result:
    """Tensors joined along a dim, in their common dtype. The kernel gets those that are not left out."""
    for i, tensor in enumerate(tensors):
        if not tensor.array.shape:
            raise ShapeError(f"cat: tensors[{i}] has no dimension to join along; use stack")
    joined = [t for t in tensors if t.array.shape != LEFT_OUT]
    dtype = result_type(*tensors)
    if not joined:
        wrap_dim(dim, 1)
        return Result(Out((0,), dtype), {"tensors": dtype})
    first = joined[0].array.shape
    dim = wrap_dim(dim, len(first))
    length = 0
    for tensor in joined:
        shape = tensor.array.shape
        if len(shape) != len(first) or shape[:dim] + shape[dim + 1 :] != first[:dim] + first[dim + 1 :]:
            raise ShapeError(f"cat: shapes {list(first)} and {list(shape)} must be equal apart from dim {dim}")
        length += shape[dim]
    out = Out((*first[:dim], length, *first[dim + 1 :]), dtype)
    casts = {"tensors": dtype} if any(t.dtype is not dtype for t in joined) else None
    return Result(out, casts, {"tensors": joined} if len(joined) != len(tensors) else None)


def flip(self: Tensor, dims: Sequence[int]) -> Out:
    """The order of some dims reversed."""
    shape = self.array.shape
    found = [wrap_dim(d, len(shape)) for d in dims]
    if len(set(found)) != len(found):
        raise ShapeError(texts.named_twice("flip", dims))
    return Out(shape, self.dtype, as_operands(shape, self))


def triangle(self: Tensor, diagonal: int = 0) -> Result:
    """The lower or upper triangle of the last two dims."""
    shape = self.array.shape
    if len(shape) < 2:
        raise ShapeError(texts.few_dims("", "self", 2, shape))
    # Beyond the corners, all diagonals are the same; array modules want one that fits in their integers.
    limit = shape[-2] + shape[-1]
    return Result(Out(shape, self.dtype), precomputed={"diagonal": min(max(diagonal, -limit), limit)})


# fmt: off
SHAPES: ShapeTable = {
    "index.Tensor_out": index,
    "index_select.out": index_select,
    "gather.out": gather,
    "cat.out": cat,
    "flip.out": flip,
    "tril.out": triangle,
    "triu.out": triangle,
}
# fmt: on
