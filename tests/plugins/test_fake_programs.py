"""Random programs on fake tensors, against the same programs on real ones: shapes, strides, dtypes and what sizes compare as."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import turnout
from random_programs.fakes import static_program, symbolic_program
from random_programs.running import Lines, check, run, says
from turnout.errors import DimError, NoDataError, ShapeError
from turnout_meta.symbols.expressions import Expression, Symbol


class Values:
    """The real values of the symbols of a program, learnt from the shapes of its results."""

    def __init__(self, mode: turnout.FakeMode) -> None:
        self.mode = mode
        self.known: dict[Symbol, int] = {}

    def of(self, size: Any) -> int | None:
        """The real value of a size; None if one of its symbols has not been seen alone."""
        if isinstance(size, int):
            return size
        if any(symbol not in self.known for symbol in size.expression.symbols()):
            return None
        return self._value(size.expression)

    def _value(self, expression: Expression) -> int:
        def of_atom(atom: Any) -> Expression:
            if isinstance(atom, Symbol):
                return Expression.constant(self.known[atom])
            left, right = (Expression.constant(self._value(side)) for side in (atom.left, atom.right))
            return left.divided(right)[atom.sign == "%"]

        value = expression.replaced(of_atom).value
        assert value is not None
        return value

    def fault(self, size: Any, real: int) -> str:
        """What is wrong with a size whose real value is known; a symbol that is new gets the value."""
        if isinstance(size, turnout.SymInt) and isinstance(size.expression.lone, Symbol):
            self.known.setdefault(size.expression.lone, real)
        value = self.of(size)
        if isinstance(size, turnout.SymInt) and not size.bounds[0] <= real <= size.bounds[1]:
            return f"the size {size} has bounds {size.bounds}, and is {real}"
        return "" if value in (None, real) else f"the size {size} is {value}, expected {real}"

    def is_special(self) -> bool:
        """Whether a size is 0 or 1, which kernels take for larger."""
        return any(value < 2 for value in self.known.values())


def difference(fake: turnout.Tensor, real: turnout.Tensor, values: Values, *, strides: bool) -> str:
    if fake.dtype is not real.dtype or fake.device != real.device or fake.ndim != real.ndim:
        return f"{fake}, expected {real.dtype} {list(real.shape)} on {real.device}"
    for size, expected in zip(fake.shape, real.shape, strict=True):
        fault = values.fault(size, expected)
        if fault:
            return fault
    if strides and all(n > 1 for n in real.shape):
        for stride, expected in zip(fake.stride(), real.stride(), strict=True):
            if values.of(stride) not in (None, expected):
                return f"strides {fake.stride()}, expected {real.stride()}"
    return ""


def judge(data: Callable[[], list[turnout.Tensor]]) -> Callable[[Lines], str]:
    """What differs between a program on real tensors and on fake ones."""

    def judge_program(lines: Lines) -> str:
        mode = turnout.FakeMode()
        values = Values(mode)
        given, overlap = data(), False
        real: dict[str, Any] = {"t": turnout, "data": given}
        fake: dict[str, Any] = {"t": turnout, "data": [mode.from_tensor(x) for x in given]}
        for line in lines:
            name = line.partition(" ")[0]
            with mode:
                promised = run(line, fake)
            happened = run(line, real)
            if isinstance(promised, NoDataError):
                real.pop(name, None)
                continue
            # Whether an index is in range depends on values, a reduction of no elements is refused, and `meta` has no symbols.
            matter_of_values = isinstance(happened, (DimError, NoDataError)) or (happened is not None and values.is_special())
            if promised is None and matter_of_values:
                fake.pop(name)
                continue
            if isinstance(promised, ShapeError) and happened is None and values.is_special():
                real.pop(name)  # a composite has refused sizes that only fit when one of them is 0 or 1
                continue
            if (promised is None) != (happened is None):
                return f"{line}\n  {says(promised)}, expected {says(happened)}"
            # NumPy orders the dims of a result otherwise where elements of an operand share memory.
            overlap = overlap or "expand" in line or "unfold" in line
            if promised is None:
                fault = difference(fake[name], real[name], values, strides=not overlap)
                if fault:
                    return f"{line}\n  {fault}"
        return compared(fake, values)

    return judge_program


def compared(scope: dict[str, Any], values: Values) -> str:
    """A comparison of two sizes whose answer is wrong."""
    sizes = [n for x in scope.values() if isinstance(x, turnout.Tensor) for n in (*x.shape, x.numel())]
    symbols = [n for n in dict.fromkeys(map(repr, sizes)) if not n.isdigit()]
    by_text = {repr(n): n for n in sizes}
    for a in symbols[:6]:
        for b in [*symbols[:6], 0, 2, 5]:
            left, right = by_text[a], by_text.get(b, b)
            x, y = values.of(left), values.of(right)
            if x is None or y is None:
                continue
            for text, found, expected in (
                ("==", left == right, x == y),
                (">=", left >= right, x >= y),
                ("<", left < right, x < y),
            ):
                if isinstance(found, bool) and found is not expected:
                    return f"{left} {text} {right} is {found}, and {x} {text} {y} is {expected}"
    return ""


def some_data(seed: int) -> Callable[[], list[turnout.Tensor]]:
    """Three tensors with small integers, many of them 0."""

    def make() -> list[turnout.Tensor]:
        random = Random(seed)
        shapes = [(3, 4), (4,), (3, 2)]
        found = []
        for shape in shapes:
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            numbers = [random.choice([0, 0, 1, 2, 3]) for _ in range(count)]
            found.append(turnout.tensor(numbers).view(shape))
        return found

    return make


def test_a_program_without_sizes_that_depend_on_values_gives_what_it_gives_on_real_tensors(seeds):
    check({seed: static_program(seed, ("'cpu'", "'meta'")) for seed in seeds(60)}, judge(list))


def test_sizes_that_depend_on_values_are_symbols_that_stand_for_the_real_sizes(seeds):
    for seed in seeds(150):
        check({seed: symbolic_program(seed)}, judge(some_data(seed)))
