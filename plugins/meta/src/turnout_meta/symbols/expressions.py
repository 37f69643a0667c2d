"""Integer expressions: polynomials with integer coefficients in atoms. An atom is a symbol, a quotient or a remainder.

Sums, differences and products are exact, so two expressions that are equal as polynomials have one representation. A quotient or
remainder that does not come out even is an atom of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, inf
from typing import Any

from turnout_aten.errors.arguments import NO_QUOTIENT

Monomial = tuple["Atom", ...]  # its factors, sorted by text; () for the constant
Bounds = tuple[float, float]  # ints, or infinite


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size whose value is not known. Its bounds are in the scope that made it."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Division:
    """A quotient (`//`) or remainder (`%`) of two expressions."""

    sign: str
    left: Expression
    right: Expression

    def computed(self, values: Mapping[str, Any]) -> Any:
        """The result for values of the symbols, by name."""
        left, right = self.left.computed(values), self.right.computed(values)
        return left // right if self.sign == "//" else left % right

    def __str__(self) -> str:
        return f"{_nested(self.left)} {self.sign} {_nested(self.right)}"


Atom = Symbol | Division


@dataclass(frozen=True, slots=True)
class Assumption:
    """A comparison that is taken to hold. `checked`: a check stated it; else it was decided for the present inputs."""

    left: Expression
    sign: str
    right: Expression
    checked: bool = False

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class Expression:
    """A sum of monomials with coefficients other than 0, in a fixed order."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Expression:
        """The expression of monomials and coefficients."""
        kept = [(monomial, factor) for monomial, factor in terms.items() if factor]
        if len(kept) < 2:
            return Expression(tuple(kept))
        return Expression(tuple(sorted(kept, key=lambda term: (not term[0], [str(atom) for atom in term[0]]))))

    @staticmethod
    def constant(value: int) -> Expression:
        """A number."""
        return Expression.of({(): value})

    @staticmethod
    def atom(atom: Atom) -> Expression:
        """One atom."""
        return Expression((((atom,), 1),))

    @property
    def value(self) -> int | None:
        """The number that it is, or None."""
        if not self.terms:
            return 0
        (monomial, factor), *more = self.terms
        return factor if not monomial and not more else None

    @property
    def lone(self) -> Atom | None:
        """The atom that it is, or None."""
        if len(self.terms) != 1 or self.terms[0][1] != 1 or len(self.terms[0][0]) != 1:
            return None
        return self.terms[0][0][0]

    def __add__(self, other: Expression) -> Expression:
        terms = dict(self.terms)
        for monomial, factor in other.terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return Expression.of(terms)

    def __neg__(self) -> Expression:
        return Expression(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Expression) -> Expression:
        return self + -other

    def __mul__(self, other: Expression) -> Expression:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted((*left, *right), key=str))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Expression.of(terms)

    def divided(self, other: Expression) -> tuple[Expression, Expression]:
        """The floored quotient and the remainder. Raises ZeroDivisionError for a divisor that is 0."""
        if other.value == 0:
            raise ZeroDivisionError(NO_QUOTIENT)
        if self.value is not None and other.value is not None:
            return Expression.constant(self.value // other.value), Expression.constant(self.value % other.value)
        even: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, factor in self.terms:
            found = _exact(monomial, factor, other)
            if found is None:
                rest[monomial] = factor
            else:
                even[found[0]] = found[1]
        quotient, left = Expression.of(even), Expression.of(rest)
        if not left.terms:
            return quotient, left
        if left.value is not None and other.value is not None:
            return quotient + Expression.constant(left.value // other.value), Expression.constant(left.value % other.value)
        return quotient + Expression.atom(Division("//", left, other)), Expression.atom(Division("%", left, other))

    @property
    def divisor(self) -> int:
        """The greatest number that divides the factors of all its atoms; 0 for a number."""
        return gcd(*[factor for monomial, factor in self.terms if monomial])

    def reduced(self) -> Expression:
        """With those factors divided by their divisor, and the constant too, rounded down: it is negative where this one is."""
        number = self.divisor
        if number < 2:
            return self
        return Expression.of({monomial: factor // number for monomial, factor in self.terms})

    def replaced(self, change: Callable[[Atom], Expression]) -> Expression:
        """With every atom changed."""
        total = Expression(())
        for monomial, factor in self.terms:
            product = Expression.constant(factor)
            for atom in monomial:
                product = product * change(atom)
            total = total + product
        return total

    def symbols(self) -> Iterator[Symbol]:
        """The symbols in it, also inside of quotients and remainders."""
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, Symbol):
                    yield atom
                else:
                    yield from atom.left.symbols()
                    yield from atom.right.symbols()

    def computed(self, values: Mapping[str, Any]) -> Any:
        """The result for values of the symbols, by name: numbers, or whatever computes as numbers do."""
        total: Any = None
        for monomial, factor in self.terms:
            product: Any = None
            for atom in monomial:
                value = values[atom.name] if isinstance(atom, Symbol) else atom.computed(values)
                product = value if product is None else product * value
            product = factor if product is None else product if factor == 1 else product * factor
            total = product if total is None else total + product
        return 0 if total is None else total

    def bounds(self, of_symbol: Callable[[Symbol], Bounds]) -> Bounds:
        """The least and the greatest value that it can have, from those of its symbols. They may be wider than it is."""
        low = high = 0.0
        for monomial, factor in self.terms:
            part: Bounds = (1, 1)
            i = 0
            while i < len(monomial):
                power = monomial.count(monomial[i])
                part = _times(part, _power(_bounds_of(monomial[i], of_symbol), power))
                i += power
            a, b = _times(part, (factor, factor))
            low, high = _sum(low, a), _sum(high, b)
        return low, high

    def __str__(self) -> str:
        if self.lone is not None:
            return str(self.lone)
        text = ""
        for monomial, factor in self.terms:
            factors = [f"({atom})" if isinstance(atom, Division) else str(atom) for atom in monomial]
            if abs(factor) != 1 or not factors:
                factors.append(str(abs(factor)))
            part = "*".join(factors)
            if text:
                text += f" - {part}" if factor < 0 else f" + {part}"
            else:
                text = f"-{part}" if factor < 0 else part
        return text or "0"


def _nested(expression: Expression) -> str:
    text = str(expression)
    return text if expression.value is not None or isinstance(expression.lone, Symbol) else f"({text})"


def _exact(monomial: Monomial, factor: int, divisor: Expression) -> tuple[Monomial, int] | None:
    """One term divided by a divisor of one term, or None if that leaves something."""
    if len(divisor.terms) != 1:
        return None
    atoms, number = divisor.terms[0]
    if factor % number:
        return None
    left = list(monomial)
    for atom in atoms:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left), factor // number


def _bounds_of(atom: Atom, of_symbol: Callable[[Symbol], Bounds]) -> Bounds:
    if isinstance(atom, Symbol):
        return of_symbol(atom)
    low, high = atom.right.bounds(of_symbol)
    if low <= 0:
        return -inf, inf
    first, last = atom.left.bounds(of_symbol)
    if atom.sign == "%":
        return (first, last) if first >= 0 and last < low else (0, high - 1)
    return _floored(first, low if first < 0 else high), _floored(last, high if last < 0 else low)


def _floored(value: float, divisor: float) -> float:
    if divisor == inf:
        return -1 if value < 0 else 0
    return value if value in (inf, -inf) else value // divisor


def _sum(a: float, b: float) -> float:
    return a if a in (inf, -inf) else a + b


def _times(a: Bounds, b: Bounds) -> Bounds:
    products = [0 if not x or not y else x * y for x in a for y in b]
    return min(products), max(products)


def _power(bounds: Bounds, power: int) -> Bounds:
    result: Bounds = (1, 1)
    for _ in range(power):
        result = _times(result, bounds)
    return (max(result[0], 0), result[1]) if power % 2 == 0 else result
