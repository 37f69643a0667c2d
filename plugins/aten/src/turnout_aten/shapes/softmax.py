"""Shape functions of softmax and its logarithm."""

from __future__ import annotations

from turnout.dtypes import COMPLEX, FLOAT, DType, float16, float32
from turnout.errors import DTypeError, ShapeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.shapes.specs import Out, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


def softmax(self: Tensor, dim: int, half_to_float: bool) -> Out | Result:
    """Along one dim; `half_to_float` computes float16 in float32."""
    dtype = self.dtype
    if dtype.category < FLOAT or (dtype.category == COMPLEX and self.numel()):
        raise DTypeError(f"{texts.undefined_for('softmax', dtype)}; pass dtype= a floating-point one")
    shape = self.array.shape
    wrap_dim(dim, len(shape))
    if half_to_float:
        if dtype is not float16:
            raise DTypeError(f"softmax: half_to_float takes float16 tensors, got {dtype.name}")
        return Result(Out(shape, float32), {"self": float32})
    return Out(shape, dtype)


def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType) -> Out | Result:
    """The gradient with respect to the input, in the input's dtype."""
    shape = grad_output.array.shape
    if output.array.shape != shape:
        raise ShapeError(f"grad_output of shape {list(shape)} must have the shape of output, {list(output.array.shape)}")
    wrap_dim(dim, len(shape))
    if input_dtype.category == COMPLEX:
        raise DTypeError(texts.undefined_for("", input_dtype))
    return Out(shape, input_dtype)


# fmt: off
SHAPES: ShapeTable = {
    "_softmax.out": softmax,
    "_log_softmax.out": softmax,
    "_softmax_backward_data.out": softmax_backward,
    "_log_softmax_backward_data.out": softmax_backward,
}
# fmt: on
