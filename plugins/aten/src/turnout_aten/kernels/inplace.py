"""The wrappers of in-place variants: they write into self."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX, FLOAT
from turnout.errors import DTypeError, ShapeError
from turnout.operators.calls import Source
from turnout.operators.stubs import compile_function, python_name
from turnout.plugins import replaceable
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.cases import cases_of
from turnout_aten.kernels.contract import check_returned
from turnout_aten.kernels.described import COPIES, KernelSpec, wrapper
from turnout_aten.kernels.fast_paths import NUMBER, VALUE, Inputs, after_failure, computing_source
from turnout_aten.kernels.outputs import check_result_dtype, check_writable
from turnout_aten.kernels.planning import kept_answers, planned_write
from turnout_aten.kernels.rows import ALWAYS, SAME, Row
from turnout_aten.kernels.structured import Structured, kernel_by_size, row_function
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


@replaceable
def inplace(s: Structured, backend: TensorBackend, row: Row) -> Call:
    """The wrapper of the in-place variant: writes into self's array if the kernel can, else copies the result into it."""
    fn, debug = row_function(s, backend, row)
    answer = s.answer if debug else kept_answers(s, backend)
    kernel_for = kernel_by_size(s, backend, row, fn, debug)

    def general(ks: int, *args: Any) -> Any:
        target: Tensor = args[0]
        try:
            args = s.inputs_for(target, args)
            result = answer(*args)
            out = result.outs[0]
            if out.shape != target.shape:
                raise ShapeError(
                    f"{s.op.qualified_name}: self of shape {list(target.shape)} cannot hold the result of shape {list(out.shape)}"
                )
            check_result_dtype(s.op, out, target)
            if out.dtype.category == FLOAT and target.dtype.category == COMPLEX:
                raise DTypeError(
                    f"{s.op.qualified_name}: the result is real, but self is complex and cannot become real in place; "
                    "call the variant that returns a new tensor"
                )
            check_writable(s.op, backend, target, args[1:])
            array = target.array
            direct = row.pointwise and backend.dtype_of(array) is out.dtype and result.casts.get("self") in (None, out.dtype)
            written = array if direct and not debug else backend.empty(out.shape, out.dtype, target.device)
            given = s.kernel_arguments(backend, args, result)
            made = kernel_for(given, written)(*given, written)
            if made is not None:
                check_returned(s.op.qualified_name, backend, fn, made, (written,))
            if written is not array:
                backend.copy(array, written)
        except Exception as error:
            retell(s.op, error, args)
            raise
        return target

    if debug:
        return general
    kernel = planned_write(s, backend, row, general, into=s.names[0])
    if row.allocates in (ALWAYS, SAME) and not s.precomputed and backend.array_type is not None:
        return fast_inplace(s, backend, row, kernel)
    return kernel


# Up to this many elements, an in-place call computes into a new array and copies. The kernel may raise after it has written (if
# floating-point warnings are errors), and the general path must then find self unchanged.
_ASIDE = 4096


def fast_inplace(s: Structured, backend: TensorBackend, row: Row, general: Call) -> Call:
    """The in-place variant with two fast paths: for small tensors, and for large ones with equal shapes and dtypes."""
    inputs, cases = Inputs(s, backend, row), cases_of(row, makes=True)
    large = row.pointwise and row.allocates == ALWAYS
    arguments, tensors, first = inputs.names, inputs.tensors, inputs.tensors[0]
    # If elements of an aliased self share memory with each other or with another argument, the general path must refuse the call.
    apart = "".join(
        f" and ({t}.storage is None or {t}.storage is not {first}.storage and {t}.storage.is_owner and {first}.storage.is_owner)"
        for t in tensors[1:]
    )
    applies = [f"({first}.storage is None or {first}_a.flags.c_contiguous{apart})", *inputs.conditions()]
    computing, computed_by = computing_source(s, backend, inputs, cases, level=4)
    text = f"""\
def wrapped({", ".join(["ks", *arguments])}):
    {"; ".join(f"{t}_a = {t}.array" for t in tensors)}
    array = failure = None
    if {" and ".join(applies)}:
        if {first}_a.size <= {_ASIDE}:
            try:
                {computing}
            except Exception as raised:
                failure = raised.with_traceback(None)  # its frame would keep it alive in a cycle
{_large_inplace(inputs) if large else ""}
    if array is None or array.dtype is not {first}_a.dtype or array.shape != {first}_a.shape:
        if failure is not None:
            return after(failure, general, ks, {", ".join(arguments)})
        return general(ks, {", ".join(arguments)})
    try:
        {first}_a[...] = array
    except Exception as raised:  # the memory of self is read-only
        return after(raised, general, ks, {", ".join(arguments)})
    return {first}
"""
    namespace = {
        "__name__": backend.wrapper_module, "general": general, "context": backend.kernel_context,
        "after": after_failure(s.op, backend), **computed_by, **inputs.variables(cases),
    }  # fmt: skip
    source = Source(f"<{backend.name} wrapper of {s.op.qualified_name}>", "wrapped", namespace)
    spec = KernelSpec(
        COPIES, s.op, backend, cases, general, row, s, inputs, large=backend.in_kernel_context(row.fn) if large else None
    )
    return wrapper(compile_function(text, source.function, source.file, namespace), spec, source)


def _large_inplace(inputs: Inputs) -> str:
    """The branch in which the kernel writes into self: with equal operands and warnings off, it cannot raise."""
    first, *rest = inputs.tensors
    alike = [f"{first}_a.dtype.kind == 'f'", f"{first}_a.flags.c_contiguous"]
    alike += [f"{t}_a.shape == {first}_a.shape" for t in rest]
    alike += [f"{python_name(a.name)}.__class__ in (float, int)" for a in inputs.arguments if a.role in (NUMBER, VALUE)]
    given = ", ".join([f"{a}_a" if a in inputs.tensors else a for a in inputs.names])
    return f"""\
        elif {" and ".join(alike)}:
            try:
                with context():
                    kernel({given}, {first}_a)
            except Exception as raised:  # the memory of self is read-only
                return after(raised, general, ks, {", ".join(inputs.names)})
            return {first}"""
