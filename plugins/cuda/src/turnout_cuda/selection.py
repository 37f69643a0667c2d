"""What a mask selects, in three launches: the places of its true elements, or the elements of another array there.

The host waits for their number between the second and the third, as the result is that long.
"""

from __future__ import annotations

from typing import Any

from turnout.errors import CallError
from turnout_cuda.programs import MOVED, NARROW, Programs, name_of

Table = dict[str, Any]
_CHUNK = 4096  # elements of a block, as in kernels/selection.cu
_THREADS, _MOST_THREADS = 256, 1024
_MOST_DIMS = 4
_ANY = "float32"  # a kind of elements for kernels that have none


class Masks:
    """Masks of an array module."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.programs: Programs = xp.programs

    def starts(self, mask: Any) -> tuple[Any, int, int]:
        """(how many true elements are before each block, blocks, the number of all)."""
        if self.xp.cuda.get_current_stream().is_capturing():
            raise CallError("cuda graph: values decide how much a mask selects, and none is read while work is recorded")
        blocks = -(-mask.size // _CHUNK)
        counts = self.xp.empty(blocks + 1, "int64")
        self.programs.start("count_true", _ANY, (blocks,), (_THREADS,), (mask, counts, mask.size))
        adding = min(-(-blocks // 32) * 32, _MOST_THREADS)
        self.programs.start("starts_of_blocks", _ANY, (1,), (adding,), (counts, blocks))
        return counts, blocks, int(counts[blocks].item())

    def places(self, mask: Any) -> Any:
        """The indices [dims, n] of the true elements; None for a mask that the kernel does not serve."""
        if mask.dtype.kind != "b" or not 0 < mask.ndim <= _MOST_DIMS or not mask.size or not mask.flags.c_contiguous:
            return None
        counts, blocks, total = self.starts(mask)
        made = self.xp.empty((mask.ndim, total), "int64")
        if total:
            lengths = (*mask.shape[1:], *(1,) * (_MOST_DIMS - mask.ndim))
            args = (mask, counts, made, mask.size, int(mask.size < NARROW), total, mask.ndim, *lengths)
            self.programs.start("true_places", _ANY, (blocks,), (_THREADS,), args)
        return made

    def selected(self, array: Any, mask: Any) -> Any:
        """The elements at the true ones of a mask; None for arrays that the kernel does not serve."""
        moved = MOVED.get(array.dtype.itemsize)
        lie = array.flags.c_contiguous and mask.flags.c_contiguous and array.shape == mask.shape
        if moved is None or mask.dtype.kind != "b" or not lie or not mask.size or not mask.ndim:
            return None
        counts, blocks, total = self.starts(mask)
        made = self.xp.empty(total, array.dtype)
        if total:
            args = (array.view(moved), mask, counts, made.view(moved), mask.size)
            self.programs.start("select_true", moved, (blocks,), (_THREADS,), args)
        return made


def kernels(xp: Any) -> Table:
    """The rows of this module."""
    masks: Masks = xp.masks

    def nonzero(self: Any) -> Any:
        found = masks.places(self if self.dtype.kind == "b" else xp.not_equal(self, 0)) if self.ndim else None
        if found is None:
            return NotImplemented
        return found.reshape(-1, 1) if self.ndim == 1 else found.T

    def masked_select(self: Any, mask: Any) -> Any:
        found = masks.selected(self, mask)
        return NotImplemented if found is None else found

    def unique(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
        """For dtypes that CuPy sorts as they are."""
        if return_inverse or return_counts or not self.size or self.dtype.kind not in "iuf" or name_of(self) == "float16":
            return NotImplemented
        ordered = xp.sort(self.reshape(-1))
        differs = xp.empty(ordered.shape, "bool")
        differs[:1] = True
        xp.not_equal(ordered[1:], ordered[:-1], differs[1:])
        return masks.selected(ordered, differs), xp.empty(0, "int64"), xp.empty(0, "int64")

    return {"nonzero": nonzero, "masked_select": masked_select, "_unique2": unique}
