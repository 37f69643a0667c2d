"""Shape functions of losses. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

from turnout.dtypes import FLOAT, int64, uint8
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast, broadcast_all, numel
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.shapes.promotion import result_type
from turnout_aten.shapes.specs import Out, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor

NONE, MEAN, SUM = 0, 1, 2


def nll_loss_forward(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> tuple[Out, Out]:
    """(output, total_weight) for log-probabilities [N, C] or [C] and class indices [N] or []."""
    shape, wanted = self.array.shape, target.array.shape
    _check_nll(self, target, weight, reduction)
    dtype = self.dtype
    batched = len(shape) == 2
    return Out(wanted if reduction == NONE and batched else (), dtype), Out((), dtype)


def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Out:
    """The gradient with respect to self."""
    _check_nll(self, target, weight, reduction)
    each, total = grad_output.array.shape, total_weight.array.shape
    if reduction == NONE and len(self.array.shape) == 2:
        if each != self.array.shape[:1]:
            raise ShapeError(texts.wrong_shape("nll_loss_backward", "grad_output", self.array.shape[:1], each))
    elif numel(each) != 1:
        raise ShapeError(f"nll_loss_backward: 'grad_output' must have one element, got shape {list(each)}")
    if numel(total) != 1:
        raise ShapeError(f"nll_loss_backward: 'total_weight' must have one element, got shape {list(total)}")
    return Out(self.array.shape, self.dtype)


def _check_nll(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> None:
    shape, wanted = self.array.shape, target.array.shape
    check_reduction("nll_loss", reduction)
    if len(shape) not in (1, 2):
        raise ShapeError(f"nll_loss: 'self' must be [N, C] or [C], got shape {list(shape)}")
    if len(wanted) > 1 or (len(shape) == 2 and wanted != shape[:1]) or (len(shape) == 1 and wanted not in ((), (1,))):
        raise ShapeError(texts.target_does_not_fit("nll_loss", wanted, shape))
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.not_float("nll_loss", self.dtype))
    if target.dtype is not int64 and target.dtype is not uint8:
        raise DTypeError(f"nll_loss: 'target' must hold class indices in int64 or uint8, got {target.dtype.name}")
    if weight is not None and weight.array.shape != shape[-1:]:
        raise ShapeError(texts.not_per_class("nll_loss", shape[-1], weight.array.shape))
    if weight is not None and weight.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype("nll_loss", "weight", self.dtype, weight.dtype))


def check_reduction(name: str, reduction: int) -> None:
    """Raise ArgumentError for a number that is not a reduction."""
    if reduction not in (NONE, MEAN, SUM):
        raise ArgumentError(f"{name}: reduction must be 0 (none), 1 (mean) or 2 (sum), got {reduction}")


def mse_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Out | Result:
    """The squared difference, broadcast; a number unless reduction is none."""
    check_reduction("mse_loss", reduction)
    computed = result_type(self, target)
    if computed.category < FLOAT:
        raise DTypeError(texts.undefined_for("mse_loss", computed))
    shape = broadcast(self.array.shape, target.array.shape)
    casts = {name: computed for name, t in (("self", self), ("target", target)) if t.dtype is not computed}
    out = Out((), computed) if reduction != NONE else Out(shape, computed, as_operands(shape, self, target))
    return Result(out, casts)


def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Out | Result:
    """The gradient with respect to self, of the broadcast shape."""
    check_reduction("mse_loss_backward", reduction)
    operands = {"grad_output": grad_output, "self": self, "target": target}
    computed = result_type(*operands.values())
    shape = broadcast_all([t.array.shape for t in operands.values()])
    return Result(Out(shape, computed), {n: computed for n, t in operands.items() if t.dtype is not computed})


# fmt: off
SHAPES: ShapeTable = {
    "nll_loss_forward.output": nll_loss_forward,
    "nll_loss_backward.grad_input": nll_loss_backward,
    "mse_loss.out": mse_loss,
    "mse_loss_backward.grad_input": mse_loss_backward,
}
# fmt: on
