"""What a composite kernel usually comes down to, as data: one call of another operator.

What calls the kernel makes that call in its place, as does a compiled call path. It does so only where the call ends there;
anything else, a wrong argument included, runs the kernel. So an ending says nothing that the kernel does not do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.config.tuples import NamedTuple
from turnout.dtypes import DType
from turnout.operators.stubs import python_name
from turnout.registry import find_operator
from turnout_aten.kernels.facts import Function, fact, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROW_MAJOR: Any = object()  # the tensor is in row-major order
LENGTHS: Any = object()  # the list has no negative numbers, but for one that may be -1
OTHER_DTYPE: Any = object()  # the dtype is not that of the first argument
SAME_DTYPE: Any = object()  # it is
ZERO: Any = object()  # the float is 0.0


class Equal(NamedTuple):
    """As a condition: the argument is this int."""

    number: int


class Inferred(NamedTuple):
    """As an operand: sizes of which one may be -1, the argument of that name or a constant, with that one as it must be for the
    elements of the first argument."""

    sizes: Any


class Ending(NamedTuple):
    """A call of an operator.

    operator   its qualified name; "": the first operand is the result
    operands   names of the kernel's arguments, numbers, tuples and flags, `Inferred` sizes, or other endings
    item       which result is meant, of an operator with several
    when       argument -> what it must be: a number of dims, None, False, "contiguous_format", ROW_MAJOR, LENGTHS,
               OTHER_DTYPE, SAME_DTYPE, ZERO or `Equal` to an int
    keywords   how many of the last operands are the first keyword-only arguments
    """

    operator: str
    operands: tuple[Any, ...]
    item: int | None = None
    when: Mapping[str, Any] = {}
    keywords: int = 0


# What an argument must be, as source over its name and that of the first argument. Where a backend shows its dtypes, they need
# no frame.
_TESTS: dict[Any, str] = {
    None: "{0} is None",
    False: "{0} is False",
    "contiguous_format": "{0} == 'contiguous_format'",
    ROW_MAJOR: "{0}.__class__ is TENSOR and (_b := {0}.device.backend).row_major is not None"
    " and {0}.array.__class__ is _b.array_type and _b.row_major({0}.array)",
    SAME_DTYPE: "{1}.__class__ is TENSOR and (_known := {1}.device.backend.dtypes) is not None"
    " and {0} is _known[{1}.array.dtype]",
    OTHER_DTYPE: "{1}.__class__ is TENSOR and {0}.__class__ is DTYPE and {0} is not {1}.dtype",
    ZERO: "{0}.__class__ is float and {0} == 0.0",
}
_RANK = "{0}.__class__ is TENSOR and len({0}.array.shape) == {1}"
_EQUAL = "{0}.__class__ is int and {0} == {1}"


def ending_lines(endings: Sequence[Ending], names: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The source that sets `_result`, or returns an argument, where one of the endings applies, and its globals.

    It is `if` and `elif`. `names` are those of the kernel's arguments. From the first one whose text would save nothing, endings
    are left to the kernel.
    """
    lines: list[str] = []
    found: dict[str, Any] = {"DTYPE": DType}
    for i, ending in enumerate(endings):
        op = find_operator(ending.operator) if ending.operator else None
        unknown = any(value is LENGTHS for value in ending.when.values()) or (ending.operator and op is None)
        if unknown or any(isinstance(operand, Ending) for operand in ending.operands):
            break
        tests = [_test(name, value, names[0]) for name, value in ending.when.items()]
        operands = [operand.sizes if isinstance(operand, Inferred) else operand for operand in ending.operands]
        given = [operand if isinstance(operand, str) else repr(operand) for operand in operands]
        if op is not None:
            found[f"END_{i}"] = op
            keywords = [python_name(a.name) for a in op.schema.arguments if a.kwarg_only][: ending.keywords]
            split = len(given) - len(keywords)
            given = given[:split] + [f"{name}={value}" for name, value in zip(keywords, given[split:], strict=True)]
        lines.append(f"{'elif' if lines else 'if'} {' and '.join(tests) or 'True'}:")
        if op is None:
            lines.append(f"    return {given[0]}")
        else:
            lines.append(f"    _result = END_{i}.call({', '.join(given)}){'' if ending.item is None else f'[{ending.item}]'}")
    return lines, found


def _test(name: str, wanted: Any, first: str) -> str:
    """A condition on the argument `name` as source."""
    if isinstance(wanted, Equal):
        return _EQUAL.format(name, wanted.number)
    return _RANK.format(name, wanted) if wanted.__class__ is int else _TESTS[wanted].format(name, first)


def copies(into: str = "") -> Callable[[Function], Function]:
    """Says of a composite kernel that it copies its first argument, if that is row-major and all others are None or False.

    The argument `into` is the dtype of the copy. The kernel calls no operator.
    """
    return fact(copies=into)


def element(what: str) -> Callable[[Function], Function]:
    """Says in a word what a kernel does. A compiled call path does so at once, for ints and row-major arrays of few elements.

    alias      its argument's array, of any kind, in another tensor over the same storage
    read       the number of its argument
    copy       its second argument into its first, of the same shape
    count      ints from a start to an end
    space      floats from a start to an end; `identity` ones on the diagonal of a matrix
    fill where a number where a mask is true
    """
    return fact(element=what)


def ends_in(
    operator: str, *operands: Any, item: int | None = None, keywords: int = 0, **when: Any
) -> Callable[[Function], Function]:
    """Says of a composite kernel what it ends in. May be given several times; the first that applies is taken."""

    def mark(fn: Function) -> Function:
        return fact(endings=(Ending(operator, operands, item, when, keywords), *facts_of(fn).endings))(fn)

    return mark


def shortcut(around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[Function], Function]:
    """Says what to call in place of a composite kernel: `around(call)`, of the internal convention, for usual arguments.

    It must end in what cannot raise, and pass everything else on to `call`, which runs the kernel.
    """
    return fact(shortcut=around)
