"""What an array kernel is for those who call it: a `KernelSpec`, which `binding` makes of a row, an operator and a backend.

Wrappers are written from it. What each says of itself, a `Wrapper`, has it too, for those who put something quicker in the place
of its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnout.config.tuples import NamedTuple
from turnout.operators.arguments import MISSING
from turnout.operators.stubs import python_name
from turnout.plugins import replaceable
from turnout_aten.kernels.contract import check_returned
from turnout_aten.kernels.rows import BOOL, SAME, Accepts, Compiled, Move, Steps

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.operators.calls import Line, Source
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.kernels.structured import Structured

Call = Callable[..., Any]

# How a wrapper calls its kernel: it makes the result; it gets outputs that are allocated by a kept answer; the result is copied
# into a given tensor; it has no shape function; it is a user's and runs once.
MAKES, PLANNED, INTO, SHAPELESS, CUSTOM = "makes", "planned", "into", "shapeless", "custom"


class Case(NamedTuple):
    """A function of a kernel, and which calls it serves. The first case that serves a call is taken; the last one serves all.

    name    "simple", "few" or "kernel"
    run     the function
    upto    the most elements (0: any number)
    halves  the same for two-byte elements
    brief   it serves calls whose other arguments have their defaults, and gets the required ones only
    """

    name: str
    run: Call
    upto: int = 0
    halves: int = 0
    brief: bool = False


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
    """The calls for which a kernel makes its result at once: tensors of one dtype, which it accepts. Texts test what is written
    here, and so does a compiled call path.

    arguments  what the kernel gets
    names      their names, as those of Python; the source of a fast path has the array of `x` as `x_a`
    tensors    the names of tensors that are given
    arrays     the arguments that are these tensors: their arrays, by name
    accepts    what the row says of such calls
    allocates  what it says of the result's dtype
    unsure     whether the result may have another dtype than the inputs
    kept       whether a number beside two-byte floats is left to the general path: the array module would round it, and the
               shape function says that it is not
    """

    def __init__(self, s: Structured, accepts: Accepts, allocates: str) -> None:
        ranks = iter(accepts.ranks)
        self.accepts, self.allocates = accepts, allocates
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
        numbers = self._with(NUMBER)
        self.unsure = allocates == SAME or bool(numbers and allocates != BOOL)
        self.kept = bool(numbers) and s.facts.keeps_numbers

    def _with(self, role: str) -> list[str]:
        return [python_name(a.name) for a in self.arguments if a.role == role]

    def conditions(self) -> list[tuple[str, str]]:
        """When the kernel is called at once, as source. Each with what is so where it does not hold."""
        accepts = self.accepts
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
            (f"{self.arrays[a.name]}.ndim == {a.rank}", f"{a.name} does not have {a.rank} dims")
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

    def call_source(self, cases: Sequence[Case], sized: int) -> str:
        """The expression that calls what serves the call, by the elements of the argument at `sized`."""
        given = [self.arrays.get(a.name, name) for a, name in zip(self.arguments, self.names, strict=True)]
        required = [value for a, value in zip(self.arguments, given, strict=True) if a.default is MISSING]
        # `is` is quicker than `==`. An equal value that is another object takes the next case, which gives the same result.
        standard = [f"{name} is DEFAULT_{name}" for name in self.defaulted()]
        calls = {case.name: f"{case.name}({', '.join(required if case.brief else given)})" for case in cases}
        return choice(cases, calls, [given[sized]], standard)


class KernelSpec(NamedTuple):
    """An array kernel of one operator at one backend. What holds for all kernels stands around its functions.

    op          the operator
    backend     the backend
    fn          the kernel, which errors name
    cases       the functions that serve a call which has outputs, in order
    making      those that serve a call in which the kernel makes its result
    structured  the operator with its shape function; None without one
    inputs      the calls for which it makes its result; None: it never does
    sized       the place of the argument whose elements are counted
    few         so many elements are few: of a kernel without a shape function, they are left to what is below it
    pointwise   an output may be the same array as an input
    quiet       it is called outside the backend's context
    program     what it does, for whoever can do it without the kernel
    prepares    `Row.prepares`
    """

    op: Operator
    backend: TensorBackend
    fn: Call
    cases: tuple[Case, ...]
    making: tuple[Case, ...] = ()
    structured: Structured | None = None
    inputs: Inputs | None = None
    sized: int = 0
    few: int = 0
    pointwise: bool = False
    quiet: bool = False
    program: Steps | Move | Compiled | None = None
    prepares: Call | None = None

    @property
    def shaped(self) -> Structured:
        """The operator with its shape function, of a kernel that has one."""
        assert self.structured is not None
        return self.structured

    def invoking(self) -> Callable[[Sequence[Any], Sequence[Any]], None]:
        """`invoke(arrays, outs)`, by which general paths call the kernel: the case that serves them, in the backend's context.

        Raises RowError where it returns something that is no output.
        """
        choose = chooser(in_context(self.backend, self.cases), self.sized, self.backend.array_type)
        name, backend, fn = self.op.qualified_name, self.backend, self.fn

        def invoke(arrays: Sequence[Any], outs: Sequence[Any]) -> None:
            made = choose(arrays, outs[0])(*arrays, *outs)
            if made is not None:
                check_returned(name, backend, fn, made, outs)

        return invoke


class Wrapper(NamedTuple):
    """How a wrapper calls its kernel.

    form        one of the words above
    kernel      the kernel
    cases       the functions that may serve a call, in order, in the backend's context where they need that
    general     what serves the calls that this wrapper leaves; None: there are none
    as_array    makes an array of what a kernel returns in place of one
    inputs      of a wrapper whose kernel makes the result: the calls that it takes
    large       of one that copies: what writes many elements straight into the first tensor, or None
    below       of one that copies: the wrapper of the functional variant
    lines       the lines of its text that call something, by what they call
    conditions  when this wrapper serves a call by itself: expressions of its text, each with what is so where it does not hold
    """

    form: str
    kernel: KernelSpec
    cases: tuple[Case, ...]
    general: Call | None
    as_array: Call | None = None
    inputs: Inputs | None = None
    large: Call | None = None
    below: Call | None = None
    lines: Mapping[str, Line] = MappingProxyType({})
    conditions: Sequence[tuple[str, str]] = ()


@replaceable
def wrapper(function: Call, spec: Wrapper, source: Source) -> Call:
    """The wrapper of a text; a plugin may put what does the same in its place. The text's frames have its description."""
    source.variables["DESCRIBED"] = spec, function.__code__
    return function


# ---- which case serves a call


def in_context(backend: TensorBackend, cases: Sequence[Case]) -> tuple[Case, ...]:
    """Cases whose functions run in the backend's context."""
    return tuple([case._replace(run=backend.in_kernel_context(case.run)) for case in cases])


def choice(cases: Sequence[Case], calls: Mapping[str, str], sized: Sequence[str], standard: Sequence[str] = ()) -> str:
    """The cases as an expression: what is written for each, tests of the arrays `sized`, tests that other arguments have their
    defaults."""
    *first, last = cases
    text = calls[last.name]
    for case in reversed(first):
        tests = [*(standard if case.brief else ()), *(_within(case, array) for array in sized if case.upto)]
        text = f"{calls[case.name]} if {' and '.join(tests)} else {text}" if tests else calls[case.name]
    return text


def _within(case: Case, array: str) -> str:
    size = f"{array}.size"
    if case.halves == case.upto:
        return f"{size} <= {case.upto}"
    # The smaller limit first: for few elements it is read once.
    return f"({size} <= {case.halves} or {size} <= {case.upto} and {array}.dtype.itemsize != 2)"


def chooser(cases: Sequence[Case], at: int, array_type: type | None) -> Callable[[Sequence[Any], Any], Call]:
    """A function of a kernel's arguments and its first output: what serves them. The elements of the argument at `at` are
    counted; where it is a number, the last case serves the call."""
    *first, last = cases

    def choose(given: Sequence[Any], written: Any) -> Call:
        sized = given[at]
        for case in first if sized.__class__ is array_type else ():
            if max(sized.size, written.size) <= case.halves:
                return case.run
        return last.run

    return choose
