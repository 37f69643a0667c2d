"""Shapes of operators that write by index with a reduction."""

from __future__ import annotations

from turnout.dtypes import COMPLEX
from turnout.errors import ArgumentError, DTypeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.indexing import check_along
from turnout_aten.shapes.specs import Out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True) -> Out:
    """self with the elements of `src` reduced in where `index` says along `dim`."""
    if reduce not in REDUCTIONS:
        raise ArgumentError(texts.not_one_of("scatter_reduce", "reduce", REDUCTIONS, reduce))
    check_along("scatter_reduce", self, dim, index, src)
    if self.dtype.category == COMPLEX and reduce in ("amax", "amin"):
        raise DTypeError(f"scatter_reduce: {self.dtype.name} numbers have no order, which {reduce} needs")
    return Out(self.array.shape, self.dtype)


# fmt: off
SHAPES: ShapeTable = {
    "scatter_reduce.two_out": scatter_reduce,
}
# fmt: on
