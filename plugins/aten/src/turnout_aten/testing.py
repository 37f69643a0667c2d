"""`turnout.testing`: `assert_close`, for tests that compare tensors, numbers and structures of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from turnout.config.tuples import NamedTuple
from turnout.dtypes import complex128, float64, int64
from turnout.errors import ArgumentError, CallError, TurnoutError
from turnout.errors.layout import report
from turnout_aten import operators as aten
from turnout_aten.dtypes import WIDE_UNSIGNED, promote_types
from turnout_aten.functions.call_forms import is_number, python_number
from turnout_aten.tensor.creation import as_tensor
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnout.dtypes import DType

__all__ = ["assert_close"]
__dir__ = __all__.copy

# dtype -> (rtol, atol), those of PyTorch; for all others, elements must be equal.
TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = {int: int64, float: float64, complex: complex128}


class _Rules(NamedTuple):
    """How two values are compared: the arguments of `assert_close`."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_stride: bool

    def tolerances(self, *dtypes: DType) -> tuple[float, float]:
        """(rtol, atol): those that were given, or the largest of the dtypes'."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        each = [TOLERANCES.get(dtype.name, (0.0, 0.0)) for dtype in dtypes]
        return max(rtol for rtol, _ in each), max(atol for _, atol in each)


class _Pair(NamedTuple):
    """Two values at one place of the structures: `where` is the place, such as "[0]['weight']"."""

    actual: Any
    expected: Any
    where: str

    def differ(self, how: str, *rows: tuple[str, object]) -> str:
        return report(f"actual{self.where} and expected{self.where} {how}", *rows)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless `actual` and `expected` agree: |actual - expected| <= atol + rtol * |expected|.

    Both are tensors, arrays, numbers, bools or None, or sequences and mappings of them, nested alike. Tolerances that are not
    given depend on the dtype: rtol 1.3e-6 and atol 1e-5 for float32, 0 for integers. On the device meta only shapes, dtypes and
    strides are compared. Raises CallError for values that cannot be compared, such as a tensor and a number, and ArgumentError
    if only one tolerance is given.

    Arguments:
        actual: what was computed
        expected: what it should be
        allow_subclasses: whether one may be of a class that is derived from the other's class
        rtol: the relative tolerance; `atol` must be given too
        atol: the absolute tolerance; `rtol` must be given too
        equal_nan: whether nan equals nan
        check_device: whether the devices must be the same
        check_dtype: whether the dtypes, or the types of numbers, must be the same
        check_layout: accepted, and without effect, as all tensors are strided
        check_stride: whether the strides must be the same
        msg: the text of the error, or a function that makes it from the usual text

    Example:
        >>> turnout.testing.assert_close(turnout.tensor([1.0, 2.0]) / 3 * 3, turnout.tensor([1.0, 2.0]))
        >>> turnout.testing.assert_close({"n": 1}, {"n": 2})
        Traceback (most recent call last):
            ...
        AssertionError: actual['n'] and expected['n'] are not equal: 1 and 2
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        given, other = ("rtol", "atol") if atol is None else ("atol", "rtol")
        raise ArgumentError(f"assert_close: {given} was given without {other}; give both or neither")
    rules = _Rules(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    pairs: list[_Pair] = []
    problem = ""
    for pair in _pairs(actual, expected, "", rules):  # structures that differ, and what cannot be compared, come before values
        if isinstance(pair, str):
            problem = pair
            break
        pairs.append(pair)
    problem = problem or next(filter(None, (_difference(pair, rules) for pair in pairs)), "")
    if problem:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


def _pairs(actual: Any, expected: Any, where: str, rules: _Rules) -> Iterator[_Pair | str]:
    """The values to compare, at every place of the structures; a text where the structures differ."""
    pair = _Pair(actual, expected, where)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            yield pair.differ(f"have different lengths: {len(actual)} and {len(expected)}")
            return
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            yield from _pairs(a, e, f"{where}[{i}]", rules)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        only = [k for k in actual if k not in expected], [k for k in expected if k not in actual]
        if any(only):
            rows = [(name, ", ".join(map(repr, keys))) for name, keys in zip(("only actual", "only expected"), only, strict=True)]
            yield pair.differ("have different keys", *rows)
            return
        for key in sorted(actual, key=repr):
            yield from _pairs(actual[key], expected[key], f"{where}[{key!r}]", rules)
    else:
        yield _comparable(pair, rules)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _comparable(pair: _Pair, rules: _Rules) -> _Pair:
    """The pair with numbers as Python has them and arrays as tensors. Raises CallError where the two cannot be compared."""
    a, e = pair.actual, pair.expected
    if a is None or e is None:
        return pair
    numbers = _number(a), _number(e)
    if None not in numbers and isinstance(numbers[0], bool) == isinstance(numbers[1], bool):
        return _Pair(*numbers, pair.where)
    related = isinstance(a, type(e)) or isinstance(e, type(a)) if rules.allow_subclasses else type(a) is type(e)
    if related and numbers == (None, None):
        try:
            return _Pair(as_tensor(a), as_tensor(e), pair.where)
        except (TurnoutError, TypeError, ValueError):
            pass
    text = f"assert_close: cannot compare actual{pair.where}, {_named(a)}, with expected{pair.where}, {_named(e)}"
    raise CallError(
        report(text, ("to fix", "compare tensors with tensors, arrays with arrays, numbers with numbers and bools with bools"))
    )


def _number(value: Any) -> Any:
    """A number of Python or of an array library as Python has it; None for anything else."""
    return python_number(value) if is_number(value) else None


def _difference(pair: _Pair, rules: _Rules) -> str:
    """How the two values of a pair differ; "" if they do not."""
    a, e = pair.actual, pair.expected
    if a is None or e is None:
        return "" if a is e else pair.differ(f"are not equal: {_short(a)} and {_short(e)}")
    if not isinstance(a, Tensor):
        return _of_numbers(pair, rules)
    return _of_tensors(pair, rules)


def _named(value: Any) -> str:
    """What a value is: "a Tensor", "an ndarray"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _short(value: Any) -> str:
    return _named(value) if isinstance(value, Tensor) else repr(value)


def _of_numbers(pair: _Pair, rules: _Rules) -> str:
    a, e = pair.actual, pair.expected
    if isinstance(a, bool) and isinstance(e, bool):
        return "" if a is e else pair.differ(f"are not equal: {a} and {e}")
    if rules.check_dtype and type(a) is not type(e):
        return pair.differ(f"are of different types: {type(a).__name__} and {type(e).__name__}")
    rtol, atol = rules.tolerances(*[_NUMBERS.get(type(each), int64) for each in (a, e)])
    if _close(a, e, rtol, atol, rules.equal_nan):
        return ""
    if not rtol and not atol:
        return pair.differ(f"are not equal: {a} and {e}")
    rows = [("absolute", f"{_distance(a, e)}; {atol} is allowed"), ("relative", f"{_relative(a, e)}; {rtol} is allowed")]
    return pair.differ(f"are not close: {a} and {e}", *rows)


def _close(a: Any, e: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    if a == e or (equal_nan and a != a and e != e):
        return True
    distance: float = _distance(a, e)
    return bool(distance < float("inf") and distance <= atol + rtol * _distance(e, 0))


def _distance(a: Any, e: Any) -> Any:
    try:
        return abs(a - e)
    except OverflowError:  # of an int too large for a float
        return float("inf")


def _relative(a: Any, e: Any) -> Any:
    return _distance(a, e) / abs(e) if e else float("inf")


def _of_tensors(pair: _Pair, rules: _Rules) -> str:
    a, e = pair.actual, pair.expected
    facts: list[tuple[str, Any, Any, bool]] = [
        ("shapes", list(a.shape), list(e.shape), True),
        ("devices", a.device, e.device, rules.check_device),
        ("dtypes", a.dtype, e.dtype, rules.check_dtype),
        ("strides", a.stride(), e.stride(), rules.check_stride),
    ]
    for what, mine, theirs, checked in facts:
        if checked and mine != theirs:
            return pair.differ(f"have different {what}: {mine} and {theirs}")
    if a.is_meta or e.is_meta:
        return ""
    rtol, atol = rules.tolerances(a.dtype, e.dtype)
    with no_grad():
        a, e = a.detach(), e.detach().to(a.device)
        if a.dtype is not e.dtype:
            common = int64 if a.dtype in WIDE_UNSIGNED or e.dtype in WIDE_UNSIGNED else promote_types(a.dtype, e.dtype)
            a, e = a.to(common), e.to(common)
        wrong = aten.logical_not(aten.isclose(a, e, rtol, atol, rules.equal_nan))
        if not wrong.any().item():
            return ""
        return _of_elements(_Pair(a, e, pair.where), wrong, rtol, atol)


def _of_elements(pair: _Pair, wrong: Tensor, rtol: float, atol: float) -> str:
    """The report on elements that are not close: how many there are, and the largest differences."""
    word = "close" if rtol or atol else "equal"
    pairs = list(zip(pair.actual[wrong].tolist(), pair.expected[wrong].tolist(), strict=True))
    places = [tuple(place) for place in wrong.nonzero().tolist()]
    rows = []
    for label, measure, allowed in (("absolute", _distance, atol), ("relative", _relative, rtol)):
        sizes = [measure(a, e) for a, e in pairs]
        worst = max(range(len(sizes)), key=lambda i: (sizes[i] != sizes[i], sizes[i]))  # nan is the worst
        where = f" at {places[worst]}" if places[worst] else ""
        limit = f"; {allowed} is allowed" if word == "close" else ""
        rows.append((label, f"at most {sizes[worst]}{where}: {pairs[worst][0]} and {pairs[worst][1]}{limit}"))
    if not places[0]:
        return pair.differ(
            f"are not {word}: {pairs[0][0]} and {pairs[0][1]}", *[(n, t.removeprefix("at most ")) for n, t in rows]
        )
    total = wrong.numel()
    return pair.differ(f"are not {word} in {len(pairs)} of {total} elements ({100 * len(pairs) / total:.1f}%)", *rows)
