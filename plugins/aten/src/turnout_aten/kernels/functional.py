"""The wrappers of functional variants: the general path, which allocates the results, and the fast path, whose kernel does."""

from __future__ import annotations

from sys import maxsize
from typing import TYPE_CHECKING, Any

from turnout.errors import KernelWarning
from turnout.errors.plugins import warn
from turnout.operators.calls import Source
from turnout.operators.stubs import compile_function, python_name
from turnout.plugins import is_ours
from turnout_aten.errors import tensors as texts
from turnout_aten.errors.failures import retell
from turnout_aten.kernels.contract import as_result_array
from turnout_aten.kernels.planning import planned
from turnout_aten.kernels.plans import array_lines
from turnout_aten.kernels.specs import MAKES, Inputs, KernelSpec, Wrapper, wrapper
from turnout_aten.kernels.stepping import steps_at_once
from turnout_aten.kernels.structured import first_device
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrap, wrapping_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


def functional(kernel: KernelSpec) -> Call:
    """The wrapper of the functional variant."""
    s, backend, invoke = kernel.shaped, kernel.backend, kernel.invoking()
    empty = backend.empty

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
        kept = backend.keeps_answers and s.plannable and s.facts.prepare is None
        return planned(kernel, general, compute) if kept else general
    if (backend.new_array is not None or backend.keeps_answers) and s.plannable:
        general = planned(kernel, general, compute)
    known = not kernel.pointwise or backend.row_major is not None
    return general if kernel.inputs is None or not known else fast_functional(kernel, kernel.inputs, general)


def fast_functional(kernel: KernelSpec, inputs: Inputs, general: Call) -> Call:
    """The functional variant as generated source: the fast path, then `general`."""
    s, backend = kernel.shaped, kernel.backend
    arguments, tensors, first = inputs.names, inputs.tensors, f"{inputs.tensors[0]}_a"
    # How a pointwise result lies is the shape function's to say, unless all inputs are row-major, in that order, or of one dim.
    arrays = list(inputs.arrays.values())
    lies = f"({' and '.join([f'({array}.ndim < 2 or ROW_MAJOR({array}))' for array in arrays])} or ORDERED({', '.join(arrays)}))"
    said = f"{' or '.join(inputs.arrays)} does not lie row by row"
    conditions = inputs.conditions() + ([(lies, said)] if kernel.pointwise else [])
    applies = [source for source, _ in conditions]
    made = "\n".join("    " + line for line in wrapping_lines(keys="KEYS", device=f"{tensors[0]}.device"))
    computing, computed_by = _computing(kernel, inputs)
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
    as_array = as_result_array(s.op.qualified_name, backend, kernel.fn)
    namespace = {
        "__name__": backend.wrapper_module, "general": general, "ARRAY": backend.array_type,
        "as_array": as_array, "Tensor": Tensor, "KEYS": backend.keys, "CLOCK": CLOCK, "after": after_failure(s.op, backend),
        "ROW_MAJOR": backend.row_major, "ORDERED": ordered,
        **computed_by, **inputs.variables(kernel.making),
    }  # fmt: skip
    source = Source(f"<{backend.name} wrapper of {s.op.qualified_name}>", "wrapped", namespace)
    spec = Wrapper(MAKES, kernel, kernel.making, general, as_array, inputs, conditions=conditions)
    return wrapper(compile_function(text, source.function, source.file, namespace), spec, source)


def _computing(kernel: KernelSpec, inputs: Inputs) -> tuple[str, dict[str, Any]]:
    """The source that makes `array` by the kernel's steps or its functions, in lines of the third level, and what it reads."""
    call = f"array = {inputs.call_source(kernel.making, kernel.sized)}"
    steps = steps_at_once(kernel, inputs.arrays, out="array")
    if steps is None:
        return call, {}
    when, lines, variables = steps
    text = [f"if {when}:", *("    " + line for line in lines), "else:", f"    {call}"]
    return f"\n{'    ' * 3}".join(text), variables


def after_failure(op: Operator, backend: TensorBackend) -> Call:
    """Called when the kernel of a fast path raised: the general path runs and raises the usual error.

    If the general path succeeds, the kernel refused arguments that the shape function accepts, and a KernelWarning names the
    kernel. There are three exceptions: warnings of the array library that were turned into errors, because the general path runs
    with these off; NotImplementedError, by which a kernel asks for its output argument; and OverflowError, by which it refuses a
    number outside the dtype, which the shape function wraps or refuses.
    """

    def run_general(error: Exception, general: Call, ks: int, *args: Any) -> Any:
        result = general(ks, *args)
        if not isinstance(error, (Warning, FloatingPointError, NotImplementedError, OverflowError)):
            warn(texts.fast_kernel_failed(op.qualified_name, backend.device_type, error), is_ours, KernelWarning)
        return result

    return run_general


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
