"""The wrappers of functional variants: they allocate the results."""

from __future__ import annotations

from sys import maxsize
from typing import TYPE_CHECKING, Any

from turnout.operators.calls import Source
from turnout.operators.stubs import compile_function, python_name
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.cases import cases_of
from turnout_aten.kernels.contract import as_result_array
from turnout_aten.kernels.described import MAKES, KernelSpec, wrapper
from turnout_aten.kernels.fast_paths import Inputs, after_failure, computing_source
from turnout_aten.kernels.planning import planned
from turnout_aten.kernels.plans import array_lines
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.structured import Structured, first_device, invoking
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrap, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


def functional(s: Structured, backend: TensorBackend, row: Row) -> Call:
    """The wrapper of the functional variant."""
    empty, invoke = backend.empty, invoking(s, backend, row)

    def compute(args: tuple[Any, ...], answer: Call) -> Any:
        try:
            result = answer(*args)
            device = args[0].device if args[0].__class__ is Tensor else first_device(args)
            arrays = [empty(out.shape, out.dtype, device, out.strides) for out in result.outs]
            invoke(s.kernel_arguments(backend, args, result), arrays)
        except Exception as error:
            retell(s.op, error, args)
            raise
        if len(arrays) == 1:
            return wrap(arrays[0], device)
        return tuple([wrap(array, device) for array in arrays])

    def general(ks: int, *args: Any) -> Any:
        return compute(args, s.answer)

    if backend.array_type is None:
        kept = backend.keeps_answers and s.plannable and not hasattr(s.shape, "prepare")
        return planned(s, backend, row, general, compute) if kept else general
    if (backend.new_array is not None or backend.keeps_answers) and s.plannable:
        general = planned(s, backend, row, general, compute)
    known = not row.pointwise or backend.row_major is not None
    if row.allocates and known and not s.precomputed and s.tensors:
        return fast_functional(s, backend, row, general)
    return general


def fast_functional(s: Structured, backend: TensorBackend, row: Row, general: Call) -> Call:
    """The functional variant as generated source: the fast path, then `general`."""
    inputs, cases = Inputs(s, row), cases_of(row, makes=True)
    arguments, tensors, first = inputs.names, inputs.tensors, f"{inputs.tensors[0]}_a"
    # How a pointwise result lies is the shape function's to say, unless all inputs are row-major, in that order, or of one dim.
    arrays = list(inputs.arrays.values())
    lies = f"({' and '.join([f'({array}.ndim < 2 or ROW_MAJOR({array}))' for array in arrays])} or ORDERED({', '.join(arrays)}))"
    said = f"{' or '.join(inputs.arrays)} does not lie row by row"
    conditions = inputs.conditions() + ([(lies, said)] if row.pointwise else [])
    applies = [source for source, _ in conditions]
    made = "\n".join("    " + line for line in wrapping_lines(keys="KEYS", device=f"{tensors[0]}.device"))
    computing, computed_by = computing_source(s, backend, inputs, cases)
    text = f"""\
def wrapped({", ".join(["ks", *arguments])}):
    {"; ".join(array_lines(a, python_name(a.name)) for a in s.inputs if python_name(a.name) in tensors)}
    array = failure = None
    {f"if {' and '.join(applies)}:" if applies else "if True:"}
        try:
            {computing}
        except Exception as raised:
            failure = raised.with_traceback(None)  # its frame would keep it alive in a cycle
    if array.__class__ is not ARRAY:
        if failure is not None:
            return after(failure, general, ks, {", ".join(arguments)})
        if array is None:
            return general(ks, {", ".join(arguments)})
        array = as_array(array)
    {f"if array.dtype is not {first}.dtype: return general(ks, {', '.join(arguments)})" if inputs.unsure else ""}
{made}
    return t
"""
    as_array = as_result_array(s.op.qualified_name, backend, row.fn)
    namespace = {
        "__name__": backend.wrapper_module, "general": general, "ARRAY": backend.array_type,
        "as_array": as_array, "Tensor": Tensor, "KEYS": backend.keys, "CLOCK": CLOCK, "after": after_failure(s.op, backend),
        "ROW_MAJOR": backend.row_major, "ORDERED": ordered,
        **computed_by, **inputs.variables(cases),
    }  # fmt: skip
    source = Source(f"<{backend.name} wrapper of {s.op.qualified_name}>", "wrapped", namespace)
    spec = KernelSpec(MAKES, s.op, backend, cases, general, row, s, inputs, as_array, conditions=conditions)
    return wrapper(compile_function(text, source.function, source.file, namespace), spec, source)


def ordered(*arrays: Any) -> bool:
    """Whether the dims of each array, but those of stride 0 or length 1, lie in row-major order: so does a pointwise result."""
    for array in arrays:
        before = maxsize
        for length, stride in zip(array.shape, array.strides):  # noqa: B905  (both have a number for each dim)
            if length != 1 and stride:
                if not 0 < stride < before:
                    return False
                before = stride
    return True
