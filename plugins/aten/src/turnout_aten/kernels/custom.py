"""Wrappers for custom kernels on arrays, and the quick test of results from custom kernels on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout.library.results import call_arguments, verify
from turnout.operators import Operator
from turnout.operators.calls import Line, Source
from turnout.operators.kernels import Kernel
from turnout.operators.stubs import compile_function
from turnout_aten.kernels.outputs import check_writable
from turnout_aten.kernels.rows import KERNEL
from turnout_aten.kernels.rules import ruled_kernel
from turnout_aten.kernels.specs import CUSTOM, Case, KernelSpec, Wrapper, wrapper
from turnout_aten.kernels.structured import to_array
from turnout_aten.kernels.unstructured import wrap_result
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.tensor import Tensor, wrapping_lines

if TYPE_CHECKING:
    from turnout_aten.backend.tensor_backend import TensorBackend

Call = Callable[..., Any]


def fresh_result(result: str, inputs: list[tuple[str, bool]]) -> tuple[str, dict[str, Any]]:
    """See `TensorBackend.fresh_result`."""
    # Without a storage record, no tensor shares the memory. But a new tensor can still hold the array of an argument.
    tests = [f"{result}.__class__ is Tensor", f"{result}.storage is None"]
    for name, optional in inputs:
        apart = f"{result} is not {name} and {result}.array is not {name}.array"
        tests.append(f"({name} is None or ({apart}))" if optional else apart)
    return " and ".join(tests), {"Tensor": Tensor}


def bind_array_kernel(op: Operator, kernel: Kernel, backend: TensorBackend) -> Call:
    """A kernel on the backend's arrays, as a callable of the internal convention."""
    kernel = ruled_kernel(op, backend, kernel)
    general = _general(op, kernel, backend)
    returns = op.schema.returns
    kinds = [str(a.type) for a in op.schema.arguments]
    tensors = [f"a{i}" for i, kind in enumerate(kinds) if kind == "Tensor"]
    plain_arguments = not op.schema.is_mutable and all(
        str(a.type) == "Tensor" or not a.type.is_tensor_like for a in op.schema.arguments
    )
    plain_result = len(returns) == 1 and str(returns[0].type) == "Tensor" and returns[0].annotation is None
    if not (plain_arguments and plain_result and tensors and backend.array_type is not None):
        return general
    return on_arrays(op, kernel, backend, general, tensors)


def on_arrays(op: Operator, kernel: Kernel, backend: TensorBackend, general: Call, tensors: list[str]) -> Call:
    """The wrapper of a kernel of plain values and of tensors, the arguments `tensors`, that gives one array."""
    kinds = [str(a.type) for a in op.schema.arguments]
    given = call_arguments(op, [f"a{i}.array" if kind == "Tensor" else f"a{i}" for i, kind in enumerate(kinds)])
    names = [f"a{i}" for i in range(len(kinds))]
    args = ", ".join(names)
    good = " and ".join(["array.__class__ is ARRAY", *(f"array is not {t}.array" for t in tensors)])
    # A warning raised as an error goes to the general path, which runs with the backend's warnings off.
    made = [f"        {line}" for line in wrapping_lines(keys="KEYS", device=f"{tensors[0]}.device")]
    running, after, finishing = f"kernel({given})", f"return general(ks, {args})", f"return finish(array, ({args},))"
    lines = [
        f"def on_arrays(ks, {args}):", "    try:", f"        array = {running}", "    except Warning:",
        f"        {after}", f"    if {good}:", *made, "        return t",
        f"    {finishing}",
    ]  # fmt: skip
    called = {
        "kernel": Line(3, f"return {running}", names), "general": Line(5, after, ["ks", *names]),
        "finish": Line(len(lines), finishing, ["array", *names]),
    }  # fmt: skip
    namespace = {
        "__name__": backend.wrapper_module, "kernel": kernel.fn, "general": general, "ARRAY": backend.array_type,
        "Tensor": Tensor, "KEYS": backend.keys, "CLOCK": CLOCK,
        "finish": lambda made, args: verify(op, kernel, wrap_result(backend, made, args), args),
    }  # fmt: skip
    source = Source(f"<kernel of {op.qualified_name} at {backend.name}>", "on_arrays", namespace)
    described = KernelSpec(op, backend, kernel.fn, (Case(KERNEL, kernel.fn),))
    spec = Wrapper(CUSTOM, described, described.cases, general, lines=called)
    return wrapper(compile_function("\n".join(lines) + "\n", source.function, source.file, namespace), spec, source)


def _general(op: Operator, kernel: Kernel, backend: Any) -> Call:
    written = op.schema.mutated_places
    returned = [_returned_argument(op, r) for r in op.schema.returns]

    def general(ks: int, *args: Any) -> Any:
        for i in written:
            for each in args[i] if isinstance(args[i], (list, tuple)) else (args[i],):
                if isinstance(each, Tensor):
                    check_writable(op, backend, each, ())
        given, keywords = op.schema.by_keyword(tuple([to_array(backend, value) for value in args]))
        with backend.kernel_context():
            made = kernel.fn(*given, **keywords)
        if returned and None not in returned:
            # Return the tensors that the schema names, because an array does not say which tensor it belongs to.
            targets = tuple(args[i] for i in returned if i is not None)
            return targets[0] if len(targets) == 1 else targets
        return verify(op, kernel, wrap_result(backend, made, args), args)

    return general


def _returned_argument(op: Operator, declared: Any) -> int | None:
    """The written argument that a return stands for, by its alias annotation."""
    sets = declared.annotation.sets if declared.annotation is not None and declared.is_write else frozenset()
    for i, argument in enumerate(op.schema.arguments):
        if argument.annotation is not None and argument.annotation.sets & sets:
            return i
    return None
