"""Parts of generated fast paths: when a row's kernel is called at once, the source of the call, and what follows if it raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import float16
from turnout.errors import KernelWarning
from turnout.operators.stubs import python_name
from turnout_aten.errors import tensors as texts
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.stepping import steps_at_once
from turnout_aten.kernels.structured import Structured

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator
    from turnout.schema import Argument
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


def computing_source(
    s: Structured, backend: TensorBackend, row: Row, arguments: list[str], tensors: list[str], others: list[Argument]
) -> tuple[str, dict[str, Any]]:
    """The source that makes `array` by the row's steps or its kernel, and what it reads."""
    kernel = f"array = {_kernel_call(row, arguments, tensors, others)}"
    arrays = {name: f"{python_name(name)}_a" for name in s.names if python_name(name) in tensors}
    steps = steps_at_once(s, backend, row, arrays, out="array")
    if steps is None:
        return kernel, {}
    when, lines, variables = steps
    indented = [f"if {when}:", *("    " + line for line in lines), "else:", f"    {kernel}"]
    return "\n".join([indented[0], *("            " + line for line in indented[1:])]), variables


def half_dtype(backend: TensorBackend, row: Row) -> Any:
    """The backend's own object for float16, for rows that ask for it."""
    return None if row.halves else backend.empty((), float16, backend.current_device()).dtype


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
            import warnings

            warnings.warn(texts.fast_kernel_failed(op.qualified_name, backend.device_type, error), KernelWarning, stacklevel=3)
        return result

    return run_general


def admitted(row: Row, tensors: list[str]) -> list[str]:
    """The conditions from `refuses` and `ranks`."""
    kinds = [f"{tensors[0]}_a.dtype.kind not in {row.refuses!r}"] if row.refuses else []
    return kinds + [f"{t}_a.ndim == {n}" for t, n in zip(tensors, row.ranks, strict=False) if n is not None]


def numbers_of(others: list[Argument]) -> list[str]:
    """The arguments that are tensors in another overload."""
    return [python_name(a.name) for a in others if a.type.canonical == "Scalar" and not a.has_default]


def defaults(others: list[Argument]) -> dict[str, Any]:
    """The globals that `_kernel_call` compares with."""
    return {f"DEFAULT_{python_name(a.name)}": a.default for a in others if a.has_default}


def _kernel_call(row: Row, arguments: list[str], tensors: list[str], others: list[Argument]) -> str:
    """The expression that calls the row's kernel, or `simple` where the defaulted arguments have their defaults."""
    given = {a: f"{a}_a" if a in tensors else a for a in arguments}
    sized = given[row.sized_by or tensors[0]]
    kernel = f"{row.function_for(sized)}({', '.join(given.values())})"
    if row.simple is None:
        return kernel
    defaulted = {python_name(a.name): a for a in others if a.has_default}
    # `is` saves 15 ns over `==`. An equal value that is another object takes the row's kernel, which gives the same result.
    when = [f"{name} is DEFAULT_{name}" for name in defaulted]
    if row.limit:
        few, size = row.limit_of_halves, f"{sized}.size"
        # The smaller limit first: a size takes 20 ns to read, and most calls need one of them.
        within = f"({size} <= {few} or {size} <= {row.limit} and {sized}.dtype.itemsize != 2)"
        when.append(within if few < row.limit else f"{size} <= {row.limit}")
    simple = f"simple({', '.join(value for name, value in given.items() if name not in defaulted)})"
    return f"{simple} if {' and '.join(when)} else {kernel}" if when else simple
