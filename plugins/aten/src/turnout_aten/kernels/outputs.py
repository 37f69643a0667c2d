"""The wrapper of out variants, and what every write into a given tensor checks first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError, DTypeError, ShapeError
from turnout.errors.plugins import warn
from turnout.plugins import is_ours
from turnout_aten.dtypes import can_cast
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.planning import kept_answers
from turnout_aten.kernels.specs import KernelSpec
from turnout_aten.kernels.writes import copying, is_result
from turnout_aten.shapes.extents import preserved_strides
from turnout_aten.shapes.specs import Out
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


def out(kernel: KernelSpec, below: Call | None) -> Call:
    """The wrapper of the out variant. Outputs of the wrong shape are resized with a warning; the kernel writes them directly, or
    through a proxy. `below` is the wrapper of the functional variant, of an operator with one output, or None."""
    s, backend, invoke = kernel.shaped, kernel.backend, kernel.invoking()
    answer, pointwise = kept_answers(kernel), kernel.pointwise
    count = s.outs

    def wrapped(ks: int, *args: Any, made: Tensor | None = None) -> Any:
        inputs, targets = args[: len(args) - count], args[len(args) - count :]
        try:
            inputs = s.inputs_for(targets[0], inputs)
            result = answer(*inputs)
            for spec, target in zip(result.outs, targets, strict=True):
                check_result_dtype(s.op, spec, target)
                check_writable(s.op, backend, target, ())
                if pointwise and target.shape != spec.shape and any(target is value for value in inputs):
                    raise ShapeError(
                        f"{s.op.qualified_name}: an output of shape {list(target.shape)} that is an input too cannot hold the "
                        f"result of shape {list(spec.shape)}"
                    )
            # Before outputs are resized, for one of them may be an input.
            arguments = s.kernel_arguments(backend, inputs, result)
            ready = is_result(made, result.outs[0], backend)
            written = [made.array] if ready and made is not None else []
            for spec, target in zip(result.outs, targets, strict=True):
                resize_output(s.op, backend, target, spec.shape, spec.strides)
                check_writable(s.op, backend, target, inputs)
                direct = backend.dtype_of(target.array) is spec.dtype and target.is_contiguous() and spec.strides is None
                direct = direct and (pointwise or not any(shares(target, value) for value in inputs))
                if not ready:
                    written.append(target.array if direct else backend.empty(spec.shape, spec.dtype, target.device, spec.strides))
            if not ready:
                invoke(arguments, written)
            for array, target in zip(written, targets, strict=True):
                if array is not target.array:
                    backend.copy(target.array, array)
        except Exception as error:
            retell(s.op, error, args)
            raise
        return targets[0] if count == 1 else targets

    return copying(kernel, below, wrapped)


# ---- checks of what is written


def shares(target: Tensor, value: Any) -> bool:
    """Whether an argument may share memory with an output, judged by storage."""
    if isinstance(value, (list, tuple)):
        return any(shares(target, v) for v in value)
    return isinstance(value, Tensor) and value.is_alias_of(target)


def check_result_dtype(op: Operator, out: Out, target: Tensor) -> None:
    """Raise DTypeError when the result's category is above the output's, or the output must have another dtype.

    # differs from torch: `out=` of a wider dtype takes the floating-point result of most operators. PyTorch converts that of
    element-wise operators and reductions only.

    # differs from torch: `out=` of `abs`, `neg`, `sign`, `sgn`, `ceil`, `floor`, `round`, `trunc`, `frac`, `bitwise_not`, `clamp`
    and `nan_to_num` may have another dtype that holds the kind of the result. PyTorch wants that of the argument.
    """
    if not (target.dtype in out.exact if out.exact else can_cast(out.dtype, target.dtype)):
        raise DTypeError(texts.unwritable_result(op.qualified_name, out.dtype, target.dtype))


def check_expanded(name: str, backend: TensorBackend, target: Tensor) -> None:
    """Raise AliasError if elements of an output overlap each other."""
    array = target.array
    strides = backend.strides(array)
    if 0 in strides and any(length > 1 and not stride for length, stride in zip(array.shape, strides, strict=True)):
        raise AliasError(
            f"{name}: cannot write into an expanded tensor: several of its elements are one memory location; clone() it first"
        )


def check_writable(op: Operator, backend: TensorBackend, target: Tensor, inputs: Sequence[Any]) -> None:
    """Raise AliasError if elements of an output overlap each other, or if it overlaps part of an input."""
    check_expanded(op.qualified_name, backend, target)
    if target.storage is None or not inputs:
        return
    array = target.array
    for value in inputs:
        for element in value if isinstance(value, (list, tuple)) else (value,):
            aliased = isinstance(element, Tensor) and element is not target and element.is_alias_of(target)
            if aliased and backend.partly_overlap(array, element.array):
                raise AliasError(
                    f"{op.qualified_name}: the output and an input share part of their memory; clone() one of them first"
                )


def resize_output(
    op: Operator, backend: TensorBackend, target: Tensor, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> None:
    """Resize an output to the result's shape, laid out with its strides. Warns if it had elements of another shape.

    Raises AliasError for a part of a larger memory: it would grow over the elements of others.
    """
    if target.shape == shape:
        return
    storage = target.storage
    if storage is not None and (target.offset or target.numel() != backend.storage_size(storage.array)):
        # differs from torch: `out=` of another size that is part of a larger memory is refused; PyTorch resizes it over the
        # elements behind it.
        raise AliasError(
            f"{op.qualified_name}: an output of shape {list(target.shape)} that is part of a larger memory cannot take the shape "
            f"{list(shape)}; pass one of that shape, or an empty tensor with memory of its own"
        )
    if target.numel():
        warn(
            f"{op.qualified_name}: an output with {target.numel()} elements of shape {list(target.shape)} was resized to "
            f"{list(shape)}; pass an empty tensor or one of the right shape",
            is_ours,
            UserWarning,
        )
    target.resize_(shape)
    if strides is not None:
        target.as_strided_(shape, strides)


def resize_output_as(op: Operator, target: Tensor, value: Tensor) -> None:
    """Resize an output to the shape of a value that will be written into it, laid out as that lies."""
    # differs from torch: an empty `out=` always gets the layout of what the function returns. PyTorch's is row-major for
    # `cholesky`, `cholesky_solve`, `kron`, `nanquantile`, `quantile`, `slice_scatter`, `abs` of complex numbers and `nan_to_num`
    # of integers, and that of the index for `take`.
    if target.shape != value.shape:
        resize_output(op, target.device.backend, target, value.shape, preserved_strides(value))
