"""The error of a row that breaks its contract, and its texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.errors import TurnoutError, report


class RowError(TurnoutError, RuntimeError):
    """A row of a backend's table did something else than its contract says."""


class KernelFault(BaseException):
    """What the setting `debug.kernels` found out about an array kernel.

    It is no Exception, like KeyboardInterrupt: after an Exception, a call goes on where a kernel is called otherwise, which would
    hide what was found.
    """


def _who(op_name: str, backend: str, fn: Any) -> str:
    return f"{op_name}: the row of {backend}, {described(fn)},"


def described(fn: Any) -> str:
    """A function by its name and place."""
    code = getattr(fn, "__code__", None)
    name = getattr(fn, "__qualname__", None) or getattr(fn, "__name__", type(fn).__name__)
    name = str(name).rpartition("<locals>.")[2]
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def returned(op_name: str, backend: str, fn: Any, value: Any) -> RowError:
    """A row that returned its result and may not have written it."""
    return RowError(
        f"{_who(op_name, backend, fn)} returned {_kind(value)}; what a row returns is not the result\n"
        "  to fix  write the result into the last argument and return None or that argument, such as numpy.exp(x, out)"
    )


def not_an_array(op_name: str, backend: str, fn: Any, value: Any) -> RowError:
    """A row that allocates and returned something else than an array."""
    return RowError(
        f"{_who(op_name, backend, fn)} returned {_kind(value)}, which is not an array\n"
        "  to fix  return an array of the backend, or raise NotImplementedError where the row needs its output argument"
    )


def changed(op_name: str, backend: str, fn: Any, expected: tuple[Any, str], found: tuple[Any, str]) -> RowError:
    """A row that resized or retyped its output, or returned an array of another shape or dtype."""
    return RowError(
        f"{_who(op_name, backend, fn)} gave an array of shape {list(found[0])} and dtype {found[1]}; "
        f"expected shape {list(expected[0])} and dtype {expected[1]}"
    )


def not_written(op_name: str, backend: str, fn: Any) -> RowError:
    """A row whose output depends on what the memory held before."""
    return RowError(
        f"{_who(op_name, backend, fn)} does not write every element of its output\n"
        "  to fix  write the whole output: its memory is not initialised"
    )


def foreign(op_name: str, backend: str, fn: Any, value: Any) -> RowError:
    """A kernel that is called with an array of another backend."""
    return RowError(f"{op_name}: the kernel of {backend}, {described(fn)}, was given {_kind(value)}, an array of another backend")


def not_finite(op_name: str, backend: str, fn: Any) -> RowError:
    """A kernel that gives nan or infinity where its operator gives finite numbers for finite ones."""
    return RowError(f"{op_name}: the kernel of {backend}, {described(fn)}, gave nan or infinity for finite arguments")


def too_few_values(op_name: str, backend: str, fn: Any, found: int, expected: int) -> RowError:
    """A row that returned another number of values than its operator has outputs."""
    return RowError(f"{_who(op_name, backend, fn)} returned {found} values; expected {expected}")


def all_leave(op_name: str, key: str, reasons: Sequence[tuple[str, str]]) -> str:
    """For a call that every row leaves to what is below it: the packages that say why, and their reasons."""
    head = f"{op_name}: the kernel of {key} leaves this call to the one below, and there is none"
    return report(head, *[("why", f"{package}: {reason}") for package, reason in sorted(reasons)])


def not_callable_so(owner: str, backend: str, problems: Sequence[tuple[str, Any, str, Sequence[str]]]) -> str:
    """Rows whose signature does not fit: name, function, what it takes, what it is called with."""
    rows = [
        f"\n  {name}  {described(fn)} takes {takes}; it is called with {len(given)}: {', '.join(given)}"
        for name, fn, takes, given in problems
    ]
    return f"{owner}: the table of {backend} has rows that cannot be called as their operators call them" + "".join(rows)


def options_unfit(owner: str, backend: str, problems: Sequence[tuple[str, str]]) -> str:
    """Rows with options that do not fit together: name, what is wrong."""
    return f"{owner}: the table of {backend} has rows whose options do not fit" + "".join(
        f"\n  {name}  {problem}" for name, problem in problems
    )


def _kind(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {list(shape)}" if isinstance(shape, tuple) else "")
