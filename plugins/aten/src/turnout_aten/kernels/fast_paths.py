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
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


class Inputs:
    """The inputs of a row as its fast paths see them.

    names    those that its kernel takes, as names of Python
    tensors  the tensors among them that cannot be None; the source of a fast path has the array of `x` as `x_a`
    arrays   the arguments that are these tensors: their arrays, by name
    others   the arguments that are no tensors
    numbers  those that are tensors in another overload
    """

    def __init__(self, s: Structured) -> None:
        optional = [a.name for a in s.op.schema.arguments if a.type.canonical.endswith("?")]
        given = [n for n in s.tensors if n not in optional]
        self.names = [python_name(n) for n in s.names]
        self.tensors = [python_name(n) for n in given]
        self.arrays = {n: f"{python_name(n)}_a" for n in given}
        self.others = [a for a in s.op.schema.arguments if a.name in s.names and a.name not in s.tensors]
        self.numbers = [python_name(a.name) for a in self.others if a.type.canonical == "Scalar" and not a.has_default]
        self._absent = [python_name(n) for n in s.tensors if n in optional]

    def conditions(self, row: Row) -> list[str]:
        """When the row's kernel is called at once: for tensors of one dtype, which the row takes."""
        first, *rest = self.arrays.values()
        kinds = [f"{array}.dtype is {first}.dtype" for array in rest]
        absent = [f"{name} is None" for name in self._absent]
        # A number in place of a tensor (mul.Scalar) may raise the dtype's category: int64 times 2.5.
        bools = [] if row.accepts.bools else [f"{name}.__class__ is not bool" for name in self.numbers]
        halves = [f"{first}.dtype is not HALF"] if self.numbers and not row.accepts.halves else []
        refused = [f"{first}.dtype.kind not in {row.accepts.refuses!r}"] if row.accepts.refuses else []
        ranks = [f"{a}.ndim == {n}" for a, n in zip(self.arrays.values(), row.accepts.ranks, strict=False) if n is not None]
        return [*kinds, *absent, *bools, *halves, *refused, *ranks]

    def defaults(self) -> dict[str, Any]:
        """The globals with which the source of a call compares arguments."""
        return {f"DEFAULT_{python_name(a.name)}": a.default for a in self.others if a.has_default}


def computing_source(
    s: Structured, backend: TensorBackend, row: Row, inputs: Inputs, *, level: int = 3
) -> tuple[str, dict[str, Any]]:
    """The source that makes `array` by the row's steps or its kernel, in lines of that level, and what it reads."""
    kernel = f"array = {_kernel_call(row, inputs)}"
    steps = steps_at_once(s, backend, row, inputs.arrays, out="array")
    if steps is None:
        return kernel, {}
    when, lines, variables = steps
    text = [f"if {when}:", *("    " + line for line in lines), "else:", f"    {kernel}"]
    return f"\n{'    ' * level}".join(text), variables


def half_dtype(backend: TensorBackend, row: Row) -> Any:
    """The backend's own object for float16, for rows that ask for it."""
    return None if row.accepts.halves else backend.empty((), float16, backend.current_device()).dtype


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


def _kernel_call(row: Row, inputs: Inputs) -> str:
    """The expression that calls the row's kernel, or `simple` where the defaulted arguments have their defaults."""
    given = {name: f"{name}_a" if name in inputs.tensors else name for name in inputs.names}
    sized = given[row.sizes.by or inputs.tensors[0]]
    kernel = f"{row.function_for(sized)}({', '.join(given.values())})"
    sizes = row.sizes
    if sizes.simple is None:
        return kernel
    defaulted = [python_name(a.name) for a in inputs.others if a.has_default]
    # `is` saves 15 ns over `==`. An equal value that is another object takes the row's kernel, which gives the same result.
    when = [f"{name} is DEFAULT_{name}" for name in defaulted]
    if sizes.upto:
        few, size = sizes.fewest, f"{sized}.size"
        # The smaller limit first: a size takes 14 ns to read, and for few elements it is read once.
        within = f"({size} <= {few} or {size} <= {sizes.upto} and {sized}.dtype.itemsize != 2)"
        when.append(within if few < sizes.upto else f"{size} <= {sizes.upto}")
    simple = f"simple({', '.join(value for name, value in given.items() if name not in defaulted)})"
    return f"{simple} if {' and '.join(when)} else {kernel}" if when else simple
