"""`SymInt`, a size whose value is not known, and `SymBool`, what a comparison of one gives. `check` states facts about them.

Python code computes with a SymInt as with an int, until something needs its value. That is an error, unless the symbol is the
size of an input: then the value of the present input decides, and the decision is noted (`FakeMode.guards`).
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from math import inf
from numbers import Integral
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.errors import ArgumentError, CallError, DataDependentSizeError, DimError
from turnout_aten.errors import arguments as texts
from turnout_aten.tensor.size import NEGATIONS, Size
from turnout_meta.symbols import errors
from turnout_meta.symbols.expressions import Assumption, Expression, Symbol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnout_meta.symbols.scope import Scope

# The comparisons that the running call has answered for sizes other than 0 and 1.
ASSUMED: ContextVar[tuple[SymBool, ...]] = ContextVar("turnout_meta.assumed", default=())

_SIGNS = {(">=", True): ">=", (">=", False): "<", ("==", True): "==", ("==", False): "!="}


class SymInt:
    """A size that is known only as an expression: `u0`, `s0*4`. See `turnout.FakeMode`.

    `+`, `-`, `*`, `//`, `%` and comparisons work as for ints. Beside a float it becomes a number. A comparison that the bounds of
    the symbols do not decide is a SymBool. The truth of that, or `int(size)`, raises DataDependentSizeError for a size that
    depends on data.
    """

    __slots__ = ("_expression", "_scope")
    __unwrapped__ = ("*",)  # shape functions calculate with them
    schema_type = "SymInt"
    symbolic_length = True  # `turnout.Size` takes it for a length

    def __init__(self, expression: Expression, scope: Scope) -> None:
        self._expression = expression
        self._scope = scope

    # ---- reading

    @property
    def expression(self) -> Expression:
        """Its present form, after what was learnt from checks."""
        return self._scope.settled(self._expression)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value that it can have; infinite where nothing is known."""
        return self._scope.bounds(self.expression)

    @property
    def hint(self) -> int | None:
        """The value for the present inputs, or None if it depends on data."""
        return self._scope.hint(self.expression)

    @property
    def symbol(self) -> str:
        """The name of the symbol that it was made as; "" if it was computed."""
        lone = self._expression.lone
        return lone.name if isinstance(lone, Symbol) else ""

    @property
    def symbols(self) -> list[str]:
        """The names of the symbols that it was computed from."""
        return list(dict.fromkeys(symbol.name for symbol in self._expression.symbols()))

    def computed(self, values: Mapping[str, Any]) -> Any:
        """The result for values of these symbols, by name: numbers, or whatever computes as numbers do."""
        return self._expression.computed(values)

    def __repr__(self) -> str:
        return str(self.expression)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    # Not known, so no key: two that are written alike may be of different modes, and a comparison may be a fact to note. What
    # remembers answers by sizes computes these anew.
    __hash__ = None  # type: ignore[assignment]

    def __index__(self) -> int:
        expression = self.expression
        value = expression.value
        if value is None:
            value = self._scope.hint(expression)
            if value is None:
                raise DataDependentSizeError(errors.no_number(str(expression), self._scope.origins(expression)))
            number = Expression.constant(value)
            self._scope.decisions.append(Assumption(expression, "==", number))
            self._scope.assume(expression - number, "==", True)
        return value

    def __int__(self) -> int:
        return self.__index__()

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        nonzero = self != 0
        return nonzero.answer(kernel=_asked_by_a_kernel()) if isinstance(nonzero, SymBool) else bool(nonzero)

    # ---- computing

    def _made(self, expression: Expression) -> Any:
        value = self._scope.settled(expression).value
        return SymInt(expression, self._scope) if value is None else value

    def _other(self, other: Any) -> Expression | None:
        if isinstance(other, SymInt):
            if other._scope is not self._scope:
                raise CallError(f"{self} and {other} are sizes of two fake modes; make all fake tensors with one FakeMode")
            return other.expression
        return Expression.constant(int(other)) if isinstance(other, (int, SymBool)) else None

    def __add__(self, other: Any) -> Any:
        if isinstance(other, float):
            return int(self) + other
        right = self._other(other)
        return NotImplemented if right is None else self._made(self.expression + right)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self._made(-self.expression)

    def __pos__(self) -> SymInt:
        return self

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, float):
            return int(self) - other
        right = self._other(other)
        return NotImplemented if right is None else self._made(self.expression - right)

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, float):
            return other - int(self)
        left = self._other(other)
        return NotImplemented if left is None else self._made(left - self.expression)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, float):
            return int(self) * other
        right = self._other(other)
        return NotImplemented if right is None else self._made(self.expression * right)

    __rmul__ = __mul__

    def __divmod__(self, other: Any) -> Any:
        right = self._other(other)
        if right is None:
            return NotImplemented
        quotient, rest = self.expression.divided(right)
        return self._made(quotient), self._made(rest)

    def __rdivmod__(self, other: Any) -> Any:
        left = self._other(other)
        if left is None:
            return NotImplemented
        quotient, rest = left.divided(self.expression)
        return self._made(quotient), self._made(rest)

    def __floordiv__(self, other: Any) -> Any:
        return _part(self.__divmod__(other), 0)

    def __rfloordiv__(self, other: Any) -> Any:
        return _part(self.__rdivmod__(other), 0)

    def __mod__(self, other: Any) -> Any:
        return _part(self.__divmod__(other), 1)

    def __rmod__(self, other: Any) -> Any:
        return _part(self.__rdivmod__(other), 1)

    def __truediv__(self, other: Any) -> Any:
        return int(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / int(self)

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    # ---- as a length or an index, for views

    def is_exactly(self, value: int) -> bool:
        """Whether it is a number. Raises DataDependentSizeError where that depends on data, also for 0 and 1."""
        equal = self == value
        found = _known(equal)
        if found is None:
            raise equal.undecided()
        return found

    def index_of(self, length: Any, index: Any, dim: int) -> Any:
        """An index of a dim, counted from 0; it or the length is this size. Raises DimError for one that is never in the dim.

        An index that may be in it is taken to be, as the elements of index tensors are.
        """
        if _known(index >= length) or _known(index < -length):
            raise DimError(texts.no_such_index("select", index, dim, length))
        if _known(index >= 0):
            return index
        return length + index if _known(index < 0) else self._scope.unbacked(f"the index {index}", 0)

    def slice_of(self, length: Any, start: Any, end: Any, step: Any) -> tuple[Any, Any]:
        """(first index, number of elements) of a slice in which this size occurs; a new symbol for what is not known."""
        first = 0 if start is None else _clamped(start, length)
        if first is None and _known(start >= 0):
            first = start  # past the end the slice is empty, and where it starts means nothing
        last = length if end is None else _clamped(end, length)
        if first is not None and last is not None:
            if _known(first >= last):
                return first, 0
            if _known(first <= last):
                return first, (last - first + step - 1) // step
        return self._some_of(first, length, end, step)

    def _some_of(self, first: Any, length: Any, end: Any, step: Any) -> tuple[Any, Any]:
        limits = [length - first if isinstance(first, int) else length]
        limits += [end] if end is not None and _known(end >= 0) else []
        highest = min(v if isinstance(v, int) else v.bounds[1] for v in limits)
        high = None if highest == inf else -(-int(max(highest, 0)) // step) if isinstance(step, int) else int(highest)
        count = self._scope.unbacked(f"a slice of a dim of length {length}", 0, high)
        return (self._scope.unbacked("the start of a slice", 0) if first is None else first), count

    # ---- comparing

    def _compared(self, other: Any, relation: str, holds: bool, *, swapped: bool = False) -> Any:
        right = self._other(other)
        if right is None:
            return NotImplemented
        left = self.expression
        made = SymBool(self._scope, right if swapped else left, left if swapped else right, relation, holds, swapped)
        found = made.decided()
        return made if found is None else found

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==", True)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, "==", False)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=", True)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, ">=", False)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, ">=", True, swapped=True)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">=", False, swapped=True)


Integral.register(SymInt)  # it may stand where an operator takes a number


class SymBool:
    """A comparison of sizes that their bounds do not decide. `turnout.check` makes it a fact; its truth may be an error."""

    __unwrapped__ = ("*",)
    __slots__ = ("_difference", "_holds", "_left", "_relation", "_right", "_scope", "_sign")

    def __init__(
        self, scope: Scope, left: Expression, right: Expression, relation: str, holds: bool, swapped: bool = False
    ) -> None:
        self._scope = scope
        self._difference = left - right
        self._relation = relation
        self._holds = holds
        sign = _SIGNS[relation, holds]
        if swapped:
            left, right, sign = right, left, {">=": "<=", "<": ">"}[sign]
        self._left, self._sign, self._right = left, sign, right

    def __repr__(self) -> str:
        return f"{self._left} {self._sign} {self._right}"

    def decided(self, *, general: bool = False) -> bool | None:
        """The answer that holds for all values, or None. `general`: for sizes other than 0 and 1."""
        found = self._scope.decided(self._difference, self._relation, general=general)
        return None if found is None else found is self._holds

    def assume(self) -> None:
        """Take it for a fact."""
        self._scope.decisions.append(Assumption(self._left, self._sign, self._right, checked=True))
        self._scope.assume(self._difference, self._relation, self._holds)

    def known(self) -> bool | None:
        """The answer for all values, else for the present inputs, which is noted as a guard; None if it depends on data."""
        found = self.decided()
        if found is None:
            found = self._for_the_inputs()
            if found is not None:
                sign = self._sign if found else NEGATIONS[self._sign]
                self._scope.decisions.append(Assumption(self._left, sign, self._right))
                self._scope.assume(self._difference, self._relation, found is self._holds)
        return found

    def __bool__(self) -> bool:
        return self.answer(kernel=_asked_by_a_kernel())

    def __int__(self) -> int:
        return int(bool(self))

    def _for_the_inputs(self) -> bool | None:
        """The answer for the present inputs; None if it depends on data."""
        value = self._scope.hint(self._scope.settled(self._difference))
        return None if value is None else (value == 0 if self._relation == "==" else value >= 0) is self._holds

    def answer(self, *, kernel: bool) -> bool:
        """Its truth. `kernel`: sizes beside 0 and 1 may be taken to be none of them. Raises DataDependentSizeError."""
        found = self.decided()
        if found is None and kernel and {0, 1} & {self._left.value, self._right.value}:
            found = self.decided(general=True)
            if self._for_the_inputs() not in (None, found):  # s0 % 2 is 0 for many sizes
                found = None
            if found is not None:
                ASSUMED.set((*ASSUMED.get(), self))
        if found is None:
            found = self.known()
        if found is None:
            raise self.undecided()
        return found

    def undecided(self) -> DataDependentSizeError:
        """The error of a question that only data can answer."""
        rows = self._scope.origins(self._scope.settled(self._difference))
        return DataDependentSizeError(errors.undecided(repr(self), rows))


class Strides(tuple[int, ...]):
    """Strides with sizes that are not known.

    They differ from others of another length, and from others with a size that surely differs.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self._equals(other, kernel=_asked_by_a_kernel()) if isinstance(other, tuple) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self._equals(other, kernel=_asked_by_a_kernel()) if isinstance(other, tuple) else NotImplemented

    def _equals(self, other: tuple[Any, ...], *, kernel: bool) -> bool:
        if len(self) != len(other):
            return False
        answers = [a == b for a, b in zip(self, other, strict=True)]
        if any(answer is False for answer in answers):
            return False
        return all(a.answer(kernel=kernel) if isinstance(a, SymBool) else a for a in answers)

    __hash__ = tuple.__hash__


class Sizes(Strides, Size):
    """A shape with sizes that are not known. It differs from others as `Strides` do."""

    __slots__ = ()


def as_shape(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape as an array holds it."""
    return Sizes(shape) if SymInt in map(type, shape) else shape


def as_strides(strides: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides as an array holds them."""
    return Strides(strides) if SymInt in map(type, strides) else strides


def _known(condition: Any) -> bool | None:
    """What a comparison is for all values, or for the present inputs; None if it depends on data."""
    return condition.known() if isinstance(condition, SymBool) else condition


def _part(both: Any, at: int) -> Any:
    """The quotient (0) or the rest (1) of a division."""
    return both if both is NotImplemented else both[at]


def _clamped(index: Any, length: Any) -> Any:
    """A bound of a slice, counted from 0 and within the dim; None if that depends on data."""
    if _known(index < 0):
        index = length + index
        if _known(index >= 0):
            return index
        return 0 if _known(index < 0) else None
    if not _known(index >= 0):
        return None
    if _known(index <= length):
        return index
    return length if _known(index >= length) else None


def _asked_by_a_kernel() -> bool:
    """Whether the truth of a comparison is asked for by code of Turnout.

    Shape functions and composites ask whether a size is 0 or 1, to expand it or to leave work out. Their answer for other sizes
    is right for these too, but for strides of empty results, which mean nothing. So for them a size that depends on data is
    none of the two; a call that refuses its arguments after such an answer raises DataDependentSizeError instead. A program
    that asks is told that nobody knows.
    """
    return plugins.is_ours(sys._getframe(2).f_globals.get("__name__", ""))


def check(condition: Any, message: str = "") -> None:
    """State that a condition holds. For sizes that depend on data, it is known from then on.

    Raises ArgumentError when it does not hold, or when no size fulfils it.

    Arguments:
        condition: a bool, or a comparison of sizes
        message: the text of the error

    Example:
        >>> with turnout.FakeMode():
        ...     found = turnout.nonzero(turnout.ones(3))
        ...     turnout.check(found.shape[0] >= 2)
        ...     print(found.shape[0] >= 1)
        True
    """
    if isinstance(condition, SymBool):
        found = condition.decided()
        if found is None:
            condition.assume()
            return
        condition, message = found, message or errors.failed(repr(condition))
    if not condition:
        raise ArgumentError(message or errors.failed("the condition"))


def representative(size: SymInt) -> int:
    """One of the values that a size can have."""
    low, high = size.bounds
    return int(max(low, 1) if high >= 1 else max(low, high))
