"""The symbols of one FakeMode, and what is known of them: bounds, facts, and for inputs the values seen (hints)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from turnout.config.lock import new_lock
from turnout.errors import ArgumentError
from turnout_meta.symbols import errors
from turnout_meta.symbols.expressions import Assumption, Atom, Bounds, Division, Expression, Symbol

if TYPE_CHECKING:
    from turnout_meta.symbols.sizes import SymInt

_LOCK = new_lock()


def _general(low: float, high: float) -> Bounds:
    """The bounds of a size, without 0 and 1 if it may be larger."""
    return (max(low, 2), high) if low >= 0 and high >= 2 else (low, high)


def _never_zero(difference: Expression) -> bool:
    """Whether it leaves a remainder at every division by a number that divides all its terms with symbols: `u0*2 - 5`."""
    number = difference.divisor
    return number > 1 and dict(difference.terms).get((), 0) % number != 0


def _larger(low: float, high: float) -> Bounds:
    """The bounds of a symbol without 0 and 1. One that is at most 1 counts as 2: what larger sizes get is right for it too."""
    return _general(low, max(high, 2) if low < high else high)


@dataclass(slots=True)
class Known:
    """What is known of a symbol: its bounds, what made it, and its value in this run if it is an input's size."""

    low: float
    high: float
    origin: str
    hint: int | None = None


class Scope:
    """Symbols and facts.

    decisions  what was decided by the values of inputs, and what checks have stated, in order
    """

    def __init__(self) -> None:
        self.known: dict[Symbol, Known] = {}
        self.decisions: list[Assumption] = []
        self._not_negative: list[Expression] = []
        self._not_zero: set[Expression] = set()
        self._equal: dict[Atom, Expression] = {}
        self._settled: dict[Expression, Expression] = {}  # what `settled` found, until something more is known

    # ---- making symbols

    def unbacked(self, origin: str, low: int | None = 0, high: int | None = None) -> SymInt:
        """A symbol for a number that depends on data: `u0`, `u1`, ..."""
        return self._add("u", Known(-inf if low is None else low, inf if high is None else high, origin))

    def backed(self, origin: str, hint: int) -> SymInt:
        """A symbol for a size of an input, which is 2 or more: `s0`, `s1`, ..."""
        return self._add("s", Known(2, inf, origin, hint))

    def _add(self, prefix: str, known: Known) -> SymInt:
        from turnout_meta.symbols.sizes import SymInt

        with _LOCK:
            symbol = Symbol(f"{prefix}{sum(s.name[0] == prefix for s in self.known)}")
            self.known[symbol] = known
        return SymInt(Expression.atom(symbol), self)

    # ---- reading

    def assumptions(self) -> list[Assumption]:
        """What has to hold of other values for the decisions to be right: sizes of inputs are not 0 or 1, and all decisions."""
        two = Expression.constant(2)
        sizes = [Expression.atom(symbol) for symbol, known in list(self.known.items()) if known.hint is not None]
        return [*[Assumption(size, ">=", two) for size in sizes], *self.decisions]

    def settled(self, expression: Expression) -> Expression:
        """With everything replaced that is known to equal something else."""
        if not self._equal:
            return expression
        found = self._settled.get(expression)
        if found is None:
            known, made = self._settled, self._multiplied(expression.replaced(self._settled_atom))
            found = known[expression] = made
        return found

    def _multiplied(self, expression: Expression) -> Expression:
        """With `(a // n)*n` as `a` where `a % n` is known to be 0."""
        for monomial, factor in expression.terms:
            for atom in monomial:
                if not isinstance(atom, Division) or atom.sign != "//" or not atom.right.value or factor % atom.right.value:
                    continue
                rest = self._equal.get(Division("%", atom.left, atom.right))
                if rest is not None and not rest.terms:
                    others = list(monomial)
                    others.remove(atom)
                    gone = Expression.of({monomial: factor})
                    whole = atom.left * Expression.of({tuple(others): factor // atom.right.value})
                    return self._multiplied(expression - gone + whole)
        return expression

    def _settled_atom(self, atom: Atom) -> Expression:
        found = self._equal.get(atom)
        if found is not None:
            return self.settled(found)
        if isinstance(atom, Symbol):
            return Expression.atom(atom)
        parts = self.settled(atom.left).divided(self.settled(atom.right))
        made = parts[atom.sign == "%"]
        lone = made.lone
        return self._equal.get(lone, made) if lone is not None else made

    def bounds(self, expression: Expression) -> Bounds:
        """The least and the greatest value."""
        return expression.bounds(lambda symbol: (self.known[symbol].low, self.known[symbol].high))

    def _general_bounds(self, expression: Expression) -> Bounds:
        """The bounds when symbols, and the sum of the terms with symbols, are no 0 or 1 where they are sizes that may be more."""
        low, high = expression.bounds(lambda symbol: _larger(self.known[symbol].low, self.known[symbol].high))
        number = dict(expression.terms).get((), 0)
        size = expression - Expression.constant(number)
        a, b = _general(*self.bounds(size))
        c, d = _general(*self.bounds(-size))
        return max(low, a + number, -d + number), min(high, b + number, -c + number)

    def hint(self, expression: Expression) -> int | None:
        """The value in this run; None if it depends on data."""
        values: list[int | None] = [self.known[symbol].hint for symbol in expression.symbols()]
        if None in values:
            return None

        def of_atom(atom: Atom) -> Expression:
            if isinstance(atom, Symbol):
                value = self.known[atom].hint
                assert value is not None
                return Expression.constant(value)
            return atom.left.replaced(of_atom).divided(atom.right.replaced(of_atom))[atom.sign == "%"]

        return expression.replaced(of_atom).value

    def decided(self, difference: Expression, relation: str, *, general: bool = False) -> bool | None:
        """Whether `difference` is == 0 or >= 0, or None if both can be."""
        difference = self.settled(difference)
        if relation == "==" and _never_zero(difference):
            return False
        difference = difference.reduced()
        low, high = self._general_bounds(difference) if general else self.bounds(difference)
        if relation == ">=":
            if low >= 0 or any(self.bounds(difference - fact)[0] >= 0 for fact in self._not_negative):
                return True
            below = Expression.constant(-1) - difference
            return False if high < 0 or any(self.bounds(below - fact)[0] >= 0 for fact in self._not_negative) else None
        if not difference.terms:
            return True
        if low > 0 or high < 0 or difference in self._not_zero or -difference in self._not_zero:
            return False
        for one in (difference, -difference):  # one - 1 >= 0
            if any(self.bounds(one - Expression.constant(1) - fact)[0] >= 0 for fact in self._not_negative):
                return False
        return None

    # ---- learning

    def assume(self, difference: Expression, relation: str, holds: bool) -> None:
        """Take as a fact that `difference` is == 0 or >= 0, or that it is not."""
        with _LOCK:
            difference = self.settled(difference)
            if relation == ">=":
                self._assume_not_negative((difference if holds else Expression.constant(-1) - difference).reduced())
            elif _never_zero(difference):
                pass  # it was decided before
            elif holds:
                self._assume_zero(difference.reduced())
            else:
                self._not_zero.add(difference.reduced())
                self._exclude_an_end(difference.reduced())

    def _assume_not_negative(self, difference: Expression) -> None:
        self._not_negative.append(difference)
        rest = [(monomial, factor) for monomial, factor in difference.terms if monomial]
        if len(rest) != 1 or len(rest[0][0]) != 1 or not isinstance(rest[0][0][0], Symbol):
            return
        ((symbol,), factor), constant = rest[0], difference.terms[-1][1] if len(difference.terms) > 1 else 0
        assert isinstance(symbol, Symbol)
        known = self.known[symbol]
        if factor > 0:  # factor * symbol >= -constant
            known.low = max(known.low, -(constant // factor))
        else:
            known.high = min(known.high, constant // -factor)
        if known.low > known.high:
            raise ArgumentError(errors.contradiction(str(symbol), known.origin))
        if known.low == known.high:
            self._learn(symbol, Expression.constant(int(known.low)))

    def _assume_zero(self, difference: Expression) -> None:
        """Replace an atom that occurs once, with a factor of 1 or -1: a symbol of data before an input's."""
        lone = [(m[0], f) for m, f in difference.terms if len(m) == 1 and abs(f) == 1]
        lone.sort(key=lambda term: (isinstance(term[0], Symbol), str(term[0])), reverse=True)
        for atom, factor in lone:
            others = difference - Expression.atom(atom) * Expression.constant(factor)
            inside = [a for monomial, _ in others.terms for a in monomial]
            if atom in inside or (isinstance(atom, Symbol) and atom in others.symbols()):
                continue
            value = -others if factor > 0 else others
            if isinstance(atom, Symbol):
                self._share_bounds(atom, value)
            self._learn(atom, value)
            return
        self._not_negative += [difference, -difference]

    def _learn(self, atom: Atom, value: Expression) -> None:
        self._equal[atom] = value
        self._settled = {}  # another thread may still write into the old one

    def _share_bounds(self, symbol: Symbol, value: Expression) -> None:
        """The expression that replaces a symbol stays within its bounds."""
        known = self.known[symbol]
        if known.low > -inf:
            self._assume_not_negative(value - Expression.constant(int(known.low)))
        if known.high < inf:
            self._assume_not_negative(Expression.constant(int(known.high)) - value)

    def _exclude_an_end(self, difference: Expression) -> None:
        low, high = self.bounds(difference)
        if low == 0:
            self._assume_not_negative(difference - Expression.constant(1))
        elif high == 0:
            self._assume_not_negative(-difference - Expression.constant(1))

    def origins(self, expression: Expression) -> list[tuple[str, str]]:
        """What is known of each symbol that depends on data, for an error."""
        found = []
        for symbol in dict.fromkeys(expression.symbols()):
            known = self.known[symbol]
            found.append((str(symbol), errors.described(known.low, known.high, known.origin)))
        return found
