"""The wrappers of in-place variants: they write into self."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX, FLOAT
from turnout.errors import DTypeError, ShapeError
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.outputs import check_result_dtype, check_writable
from turnout_aten.kernels.planning import kept_answers
from turnout_aten.kernels.specs import KernelSpec
from turnout_aten.kernels.writes import copying, is_result
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[..., Any]


def inplace(kernel: KernelSpec, below: Call | None) -> Call:
    """The wrapper of the in-place variant: writes into self's array if the kernel can, else copies the result into it. `below` is
    the wrapper of the functional variant, or None."""
    s, backend, invoke = kernel.shaped, kernel.backend, kernel.invoking()
    answer, pointwise, row_major = kept_answers(kernel), kernel.pointwise, backend.row_major

    def general(ks: int, *args: Any, made: Tensor | None = None) -> Any:
        target: Tensor = args[0]
        try:
            args = s.inputs_for(target, args)
            result = answer(*args)
            out = result.outs[0]
            if out.shape != target.shape:
                raise ShapeError(texts.too_small(s.op.qualified_name, target.shape, out.shape))
            check_result_dtype(s.op, out, target)
            if out.dtype.category == FLOAT and target.dtype.category == COMPLEX:
                raise DTypeError(
                    f"{s.op.qualified_name}: the result is real, but self is complex and cannot become real in place; "
                    "call the variant that returns a new tensor"
                )
            check_writable(s.op, backend, target, args[1:])
            array = target.array
            if made is not None and is_result(made, out, backend):
                backend.copy(array, made.array)
                return target
            direct = pointwise and backend.dtype_of(array) is out.dtype and result.casts.get("self") in (None, out.dtype)
            given = s.kernel_arguments(backend, args, result)
            if result.ready is not None and direct and row_major is not None and row_major(array):
                result.ready(*given, array)
                return target
            written = array if direct else backend.empty(out.shape, out.dtype, target.device)
            invoke(given, (written,))
            if written is not array:
                backend.copy(array, written)
        except Exception as error:
            retell(s.op, error, args)
            raise
        return target

    return copying(kernel, below, general)
