"""What a row of a backend's table must do: take the arguments of its operator by position, and write all of its outputs.

The signature is checked when the row is registered, what the row returns at each call. What it writes is checked while the
setting `debug.kernels` is on (`rules`).
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from turnout.operators.tracebacks import VARARGS
from turnout_aten.errors import rows as errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout.schema import FunctionSchema
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]

# What `as_array` of an array library may take, though it is no result.
NOT_ARRAYS = frozenset({str, bytes, dict, set, list, tuple})


# ---- signatures


def row_signature(schema: FunctionSchema, precomputed: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], int, int]:
    """The names of what a row is called with, how many of them are outputs, and how many inputs have no default."""
    outputs = [a.name for a in schema.out_arguments]
    inputs = [a for a in schema.arguments if not a.is_out]
    extra = precomputed.get("", ())
    names = [name for a in inputs for name in precomputed.get(a.name, (a.name,))]
    required = sum(len(precomputed.get(a.name, (a.name,))) for a in inputs if a.default_text is None)
    return (*names, *extra, *outputs), len(outputs), required + len(extra)


def signature_text(names: Sequence[str], outputs: int, required: int) -> str:
    """What `row_signature` says, as it stands in the tables of operators."""
    return f"{' '.join(names)}/{outputs}/{required}"


def read_signature(text: str) -> tuple[tuple[str, ...], int, int]:
    """What `row_signature` said, from such a text."""
    names, outputs, required = text.split("/")
    return tuple(names.split()), int(outputs), int(required)


def misfit(fn: Any, *counts: int) -> str:
    """What a function takes, if it cannot be called with each of these numbers of positional arguments; "" if it can.

    A function that does not say what it takes, such as a builtin, is let through.
    """
    taken = _taken(fn)
    if taken is None:
        return ""
    least, most, keywords = taken
    if keywords:
        return f"the keyword-only {', '.join(keywords)}"
    if least <= min(counts) and (most is None or max(counts) <= most):
        return ""
    if most is None:
        return f"at least {least} positional arguments"
    number = str(least) if least == most else f"{least} to {most}"
    return f"{number} positional argument{'s' if most != 1 else ''}"


def _taken(fn: Any) -> tuple[int, int | None, list[str]] | None:
    """The least and the most positional arguments, and required keyword-only ones; None if that is not known."""
    if isinstance(fn, partial):
        inner = _taken(fn.func)
        if inner is None or (fn.keywords and not hasattr(fn.func, "__code__")):
            return None
        least, most, keywords = inner
        names = fn.func.__code__.co_varnames[: most or 0] if fn.keywords else ()
        by_name = sum(name in fn.keywords for name in names)
        count = len(fn.args)
        least, most = max(least - count - by_name, 0), None if most is None else most - count - by_name
        return least, most, [name for name in keywords if name not in fn.keywords]
    code = getattr(fn, "__code__", None) or getattr(getattr(fn, "__func__", None), "__code__", None)
    if code is None:
        nin, nargs = getattr(fn, "nin", None), getattr(fn, "nargs", None)
        return (nin, nargs, []) if isinstance(nin, int) and isinstance(nargs, int) else None  # a ufunc, or nothing that says it
    bound = fn.__class__ is not FunctionType and getattr(fn, "__self__", None) is not None
    most = code.co_argcount - bound
    defaults = getattr(fn, "__defaults__", None) or ()
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    given = getattr(fn, "__kwdefaults__", None) or {} if named else {}
    keywords = [name for name in named if name not in given]
    return max(most - len(defaults), 0), None if code.co_flags & VARARGS else most, keywords


# ---- calls


def check_returned(name: str, backend: TensorBackend, fn: Call, made: Any, outs: Sequence[Any]) -> None:
    """Raise RowError for a result that is neither None nor one of the outputs, which may not have been written."""
    for value in made if isinstance(made, (tuple, list)) else (made,):
        if value is not None and not any(value is out for out in outs):
            raise errors.returned(name, backend.name, fn, value)


def as_result_array(name: str, backend: TensorBackend, fn: Call) -> Call:
    """`backend.as_array` for results of a row that allocates. Raises RowError for what is no array and no number."""

    def as_array(value: Any) -> Any:
        if value.__class__ in NOT_ARRAYS:
            raise errors.not_an_array(name, backend.name, fn, value)
        return backend.as_array(value)

    return as_array
