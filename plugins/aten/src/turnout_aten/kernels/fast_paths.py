"""Parts of generated fast paths: when a row's kernel is called at once, the source of the call, and what follows if it raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from turnout.errors import KernelWarning
from turnout.operators.arguments import MISSING
from turnout.operators.stubs import python_name
from turnout_aten.errors import tensors as texts
from turnout_aten.kernels.cases import Case, choice
from turnout_aten.kernels.rows import BOOL, SAME, Row
from turnout_aten.kernels.stepping import steps_at_once
from turnout_aten.kernels.structured import Structured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


# What an argument of a fast path is: a tensor that is given, one that must be None, a number that is a tensor in another
# overload, or any other value.
TENSOR, ABSENT, NUMBER, VALUE = "tensor", "absent", "number", "value"


class Argument(NamedTuple):
    """An argument as a fast path takes it: one of the words above, its default or MISSING, the ndim that it must have or None."""

    name: str
    role: str
    default: Any
    rank: int | None


class Inputs:
    """The calls that a row's fast paths take: tensors of one dtype, which the row accepts. Texts test what is written here, and
    so does a compiled call path.

    arguments  what the kernel gets
    names      their names, as those of Python; the source of a fast path has the array of `x` as `x_a`
    tensors    the names of tensors that are given
    arrays     the arguments that are these tensors: their arrays, by name
    sized      the place of the argument whose elements are counted
    unsure     whether the result may have another dtype than the inputs
    kept       whether a number beside two-byte floats is left to the general path: the array module would round it, and the
               shape function says that it is not
    """

    def __init__(self, s: Structured, row: Row) -> None:
        ranks = iter(row.accepts.ranks)
        self.row = row
        self.arguments: list[Argument] = []
        for a in s.inputs:
            default = a.default if a.has_default else MISSING
            if not a.type.is_tensor:
                number = a.type.canonical == "Scalar" and not a.has_default
                self.arguments.append(Argument(a.name, NUMBER if number else VALUE, default, None))
            else:
                absent = a.type.canonical.endswith("?")
                self.arguments.append(
                    Argument(a.name, ABSENT if absent else TENSOR, MISSING, None if absent else next(ranks, None))
                )
        self.names = [python_name(a.name) for a in self.arguments]
        self.arrays = {a.name: f"{python_name(a.name)}_a" for a in self.arguments if a.role == TENSOR}
        self.tensors = self._with(TENSOR)
        self.sized = s.names.index(row.sizes.by) if row.sizes.by else self.names.index(self.tensors[0])
        numbers = self._with(NUMBER)
        self.unsure = row.allocates == SAME or bool(numbers and row.allocates != BOOL)
        self.kept = bool(numbers) and hasattr(s.shape, "keeps_numbers")

    def _with(self, role: str) -> list[str]:
        return [python_name(a.name) for a in self.arguments if a.role == role]

    def conditions(self) -> list[tuple[str, str]]:
        """When the row's kernel is called at once, as source. Each with what is so where it does not hold."""
        accepts = self.row.accepts
        (own, first), *rest = self.arrays.items()
        kinds = [(f"{array}.dtype is {first}.dtype", f"{name} has another dtype than {own}") for name, array in rest]
        absent = [(f"{name} is None", f"{name} is given") for name in self._with(ABSENT)]
        # A number in place of a tensor (mul.Scalar) may raise the dtype's category: int64 times 2.5.
        bools = [] if accepts.bools else [(f"{n}.__class__ is not bool", f"{n} is a bool") for n in self._with(NUMBER)]
        wide = f"({first}.dtype.itemsize != 2 or {first}.dtype.kind in 'iu')"
        halves = [(wide, "a number beside two-byte floats")] if self.kept else []
        kind = f"{first}.dtype.kind not in {accepts.refuses!r}"
        refused = [(kind, f"{own} has a dtype that needs a look")] if accepts.refuses else []
        ranks = [
            (f"{self.arrays[a.name]}.ndim == {a.rank}", f"{a.name} has not {a.rank} dims")
            for a in self.arguments
            if a.rank is not None
        ]
        return [*kinds, *absent, *bools, *halves, *refused, *ranks]

    def defaulted(self) -> list[str]:
        """The arguments that have defaults."""
        return [python_name(a.name) for a in self.arguments if a.default is not MISSING]

    def variables(self, cases: Sequence[Case]) -> dict[str, Any]:
        """The globals that the source of a fast path reads: the functions, and with what it compares arguments."""
        defaults = {f"DEFAULT_{python_name(a.name)}": a.default for a in self.arguments if a.default is not MISSING}
        return {case.name: case.run for case in cases} | defaults

    def call_source(self, cases: Sequence[Case]) -> str:
        """The expression that calls what serves the call."""
        given = [self.arrays.get(a.name, name) for a, name in zip(self.arguments, self.names, strict=True)]
        required = [value for a, value in zip(self.arguments, given, strict=True) if a.default is MISSING]
        # `is` is quicker than `==`. An equal value that is another object takes the next case, which gives the same result.
        standard = [f"{name} is DEFAULT_{name}" for name in self.defaulted()]
        calls = {case.name: f"{case.name}({', '.join(required if case.brief else given)})" for case in cases}
        return choice(cases, calls, [given[self.sized]], standard)


def computing_source(s: Structured, backend: TensorBackend, inputs: Inputs, cases: Sequence[Case]) -> tuple[str, dict[str, Any]]:
    """The source that makes `array` by the row's steps or its functions, in lines of the third level, and what it reads."""
    kernel = f"array = {inputs.call_source(cases)}"
    steps = steps_at_once(s, backend, inputs.row, inputs.arrays, out="array")
    if steps is None:
        return kernel, {}
    when, lines, variables = steps
    text = [f"if {when}:", *("    " + line for line in lines), "else:", f"    {kernel}"]
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
            import warnings

            warnings.warn(texts.fast_kernel_failed(op.qualified_name, backend.device_type, error), KernelWarning, stacklevel=3)
        return result

    return run_general
