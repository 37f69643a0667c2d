"""Rows of a backend's table: an array kernel, what its wrappers may do with it, and what may run in its place.

Three options of a `Row` are values of their own: which calls the kernel may be given at once (`Accepts`), what
serves few elements (`Sizes`), and what a compiled call path runs in place of the kernel (`Steps`, a `Move` or `Compiled`).
`problem` says which options do not fit together; it is asked when rows are registered. Note 0001 draws where a row goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import ModuleType
from typing import Any

from turnout.config.tuples import NamedTuple

Call = Callable[..., Any]

SIMPLE, FEW, KERNEL = "simple", "few", "kernel"  # what texts call the functions of a row
PREPARED = "prepared"  # the word for what a plan calls in their place

ALWAYS = "always"  # inputs of one dtype give that dtype, for every dtype that the kernel accepts
SAME = "same"  # the result is used only if it has the inputs' dtype; otherwise the general path converts
BOOL = "bool"  # inputs of one dtype give bool (comparisons)

# In steps: the number of elements that are reduced to one, and that less the argument `correction`, or 1.
COUNT: Any = object()
FREEDOM: Any = object()


class Accepts(NamedTuple):
    """Which calls a kernel gets. Those that a kernel that allocates does not get at once take the general path, where the shape
    function looks first.

    refuses  dtypes (as NumPy kinds) that the shape function refuses and the kernel does not, and those from which a result of
             another dtype comes for certain, as floats of ints: the kernel would run for nothing
    bools    False: a bool in place of a number may be refused
    ranks    the ndim of each tensor, None for any
    unless   of a row over another one: `unless(*inputs)`, asked before the kernel, says why the row leaves a call to what is
             below it, or returns None. It looks at shapes, dtypes and other arguments, and changes nothing
    """

    refuses: str = ""
    bools: bool = True
    ranks: tuple[int | None, ...] = ()
    unless: Callable[..., str | None] | None = None


class Sizes(NamedTuple):
    """What serves few elements in place of a row's kernel.

    upto    as many elements are few, of the first tensor and the first output (0: any number)
    halves  the same for two-byte elements (0: as `upto`)
    by      the name of the tensor whose elements are counted, if not the first one's
    fn      a kernel of the same arguments. None: the row's own or, of a row over another one, that of the row below
    simple  a function of the required arguments only, which makes its result. The fast path calls it where the other arguments
            have their defaults: it saves a Python frame (`numpy.add` for `add` with alpha=1)
    over    of a row over another one that looks at its arguments itself, few or many: makes the kernel, from one that may get
            any call
    """

    upto: int = 0
    halves: int = 0
    by: str = ""
    fn: Call | None = None
    simple: Call | None = None
    over: Callable[[Call], Call] | None = None

    @property
    def fewest(self) -> int:
        """So many elements of any dtype are few."""
        return self.halves or self.upto


class Steps(NamedTuple):
    """What a kernel computes, bit by bit, for row-major tensors of one float dtype.

    steps  (function of the array module, operand, ...). An operand is the name of an argument, the number of an earlier step, a
           float, COUNT or FREEDOM. A function of two operands that has one reduces over `dim`
    upto   they serve results of up to so many elements (0: any), and so large second factors of products
    """

    steps: tuple[tuple[Any, ...], ...]
    upto: int = 0


class Move(Enum):
    """What a kernel does that only moves elements. A compiled call path has a function for it, which serves few elements of
    row-major arrays; the row's kernel serves all other calls."""

    JOIN = "join"  # cat
    PICK = "pick"  # index: by a list of indices
    PUT = "put"  # index_put


class Compiled(NamedTuple):
    """A function in C of another package, which computes what a kernel does, bit by bit, for few elements of row-major arrays.

    Of a kernel without a tensor among its arguments, those of `rand`, it draws random numbers of the device's generator.

    functions  a capsule of the package that has it, as `compiled_functions.h` beside this file describes it
    name       which of its functions is meant
    """

    functions: Any
    name: str


class Row(NamedTuple):
    """An array kernel with options.

    fn         the kernel
    allocates  ALWAYS, SAME or BOOL: opts in to the fast path, in which the kernel allocates the result. If it raises
               NotImplementedError, the call takes the general path
    pointwise  an output may be the same array as an input
    quiet      the array library warns of nothing that the kernel does, or only from frames that `wrapper_module` and its filter
               cover: the kernel moves elements, or calls ufuncs by itself. The planned path calls it outside `kernel_context`
    accepts    which calls the fast path takes
    sizes      what serves few elements
    program    `Steps`, a `Move` or `Compiled`: what the kernel does, for whoever can do it without the kernel
    prepares   `prepares(outs, *arguments)` makes what a plan calls in place of the kernel, of what the shape function said of the
               outputs and the first call's arguments: a function of the same arguments and outputs, for all calls with arrays of
               the same shapes, strides and dtypes, and equal other arguments (so a float 0.0 may come as -0.0; no argument is
               complex). None where the kernel itself must serve them; NotImplemented, of a row over another one, where the row
               below would. Outputs are row-major
    """

    fn: Call
    allocates: str = ""
    pointwise: bool = False
    quiet: bool = False
    accepts: Accepts = Accepts()
    sizes: Sizes = Sizes()
    program: Steps | Move | Compiled | None = None
    prepares: Call | None = None

    def but(self, **options: Any) -> Row:
        """This row with other options in place of some of its own."""
        return self._replace(**options)

    def through(self, around: Callable[[str, Call], Call]) -> Row:
        """This row with `around(word, function)` in place of each of its functions, and without what computes in their place."""
        sizes, prepares = self.sizes, self.prepares

        def prepared(outs: Any, *args: Any) -> Any:
            assert prepares is not None
            ready = prepares(outs, *args)
            return ready if ready is None or ready is NotImplemented else around(PREPARED, ready)

        few = None if sizes.fn is None else around(FEW, sizes.fn)
        simple = None if sizes.simple is None else around(SIMPLE, sizes.simple)
        return self.but(
            fn=around(KERNEL, self.fn), sizes=sizes._replace(fn=few, simple=simple), program=None,
            prepares=None if prepares is None else prepared,
        )  # fmt: skip

    def problem(self, arguments: Sequence[str]) -> str:
        """Why its options do not fit together, for an operator with these arguments; "" if they do."""
        return next(self._problems(arguments), "")

    def _problems(self, arguments: Sequence[str]) -> Iterator[str]:
        sizes, accepts = self.sizes, self.accepts
        if self.allocates not in ("", ALWAYS, SAME, BOOL):
            yield f"allocates is {self.allocates!r}; expected 'always', 'same' or 'bool'"
        for name, wanted in (("accepts", Accepts), ("sizes", Sizes)):
            if not isinstance(getattr(self, name), wanted):
                yield f"{name} is {getattr(self, name)!r}; expected {wanted.__name__}(...)"
                return
        if self.program is not None and not isinstance(self.program, (Steps, Move, Compiled)):
            yield f"program is {self.program!r}; expected Steps(...), a Move or Compiled(...)"
        if not self.allocates and accepts != Accepts(unless=accepts.unless):
            yield "refuses, bools and ranks are about calls for which the kernel allocates the result; give allocates, too"
        if accepts.refuses.strip("biufcV"):
            yield f"refuses is {accepts.refuses!r}; expected letters of 'biufcV'"
        if not self.allocates and sizes.simple is not None:
            yield "simple makes its result; give allocates, too"
        if sizes.halves > sizes.upto:
            yield f"halves is {sizes.halves}, above upto, which is {sizes.upto}"
        if sizes.fn is not None and not sizes.upto:
            yield "fn serves few elements; say with upto how many"
        if sizes.by and sizes.by not in arguments:
            yield f"by is {sizes.by!r}, which is not an argument"
        for at, (_, *operands) in enumerate(self.program.steps if isinstance(self.program, Steps) else ()):
            for operand in operands:
                if operand.__class__ is str and operand not in arguments:
                    yield f"step {at} reads {operand!r}, which is not an argument"
                if operand.__class__ is int and not 0 <= operand < at:
                    yield f"step {at} reads step {operand}, which is not before it"


class Leaves(NamedTuple):
    """What is asked before the kernel of a row over another one: the package, its question, and how many arguments are inputs."""

    package: str
    unless: Callable[..., str | None]
    inputs: int

    def reason(self, args: Sequence[Any]) -> str | None:
        """Why the row leaves a call with these arguments to what is below it."""
        return self.unless(*args[: self.inputs])


def leaving(kernel: Call, *leaves: Leaves) -> Call:
    """A kernel that leaves calls to what is below it, and says of which."""
    kernel.leaves = leaves  # type: ignore[attr-defined]
    return kernel


def leaves_of(kernel: Call) -> tuple[Leaves, ...]:
    """What is asked before a kernel, in order."""
    return getattr(kernel, "leaves", ())


def only_few(*args: Any) -> Any:
    """The kernel of a row that has a `Compiled` program and nothing else."""
    return NotImplemented


def table_of(families: Iterable[ModuleType], rows: Callable[[Any], Mapping[str, Any]]) -> dict[str, Any]:
    """The table of a backend whose rows stand in several modules: `rows(module)` of each. No row stands in two."""
    table: dict[str, Any] = {}
    for family in families:
        found = rows(family)
        assert not table.keys() & found.keys(), f"{family.__name__} repeats a row"
        table |= found
    return table
