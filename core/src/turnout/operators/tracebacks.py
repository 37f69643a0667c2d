"""`shorten`: an error that leaves a call of Turnout shows the lines of the program, not those of Turnout.

Public functions, methods and operators catch an error that leaves them, call `shorten` and raise it again with a bare `raise`,
which adds no frame. Without an error, a `try` costs nothing; with one, each such call on its way takes a few microseconds. What a
functionality reads in a traceback, it reads before its own public function raises the error again.
"""

from __future__ import annotations

from functools import wraps

from turnout import config
from turnout.config.installed import installed
from turnout.errors import CallError, ConfigError, TurnoutError
from turnout.errors import calls as texts
from turnout.operators.values import is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

# An error of these says what is wrong with a call, wherever it was raised.
_ABOUT_CALLS = (TurnoutError, Warning)
_UNTOUCHED = (StopIteration, StopAsyncIteration)  # Python's own protocols


def shorten(error: Exception) -> None:
    """Take the frames of Turnout out of the tracebacks of an error, its causes and its contexts.

    An error that Turnout neither wrote nor passed on from elsewhere is a fault in Turnout: its traceback stays whole. Frames of
    kernels, hooks and functions that are not Turnout's stay. The setting `traceback = "full"` keeps all.
    """
    if isinstance(error, _UNTOUCHED) or _shows_all():
        return
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            _shorten(each)
            left += [each.__cause__, each.__context__]


def shortening(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: the function shortens the errors that leave it. It costs a frame, so small functions have their own `try`.

    A call that the signature does not take shows no frame of Turnout. Where an argument that is annotated as a tensor is none,
    what the function ran into is a CallError that names the argument.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            try:
                return function(*args, **kwargs)
            except (AttributeError, TypeError) as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is None and not _shows_all():
                    error.__traceback__ = None  # the signature does not take the call
                elif wrong := _no_tensor(function, args, kwargs, error):
                    raise wrong from None
                raise
        except Exception as error:
            shorten(error)
            raise

    return call


def shortening_as(named: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`shortening`, of a function that stands for `named`: the result has the name, signature and text of that one."""

    def around(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(named)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                shorten(error)
                raise

        return call

    return around


def _no_tensor(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], error: Exception) -> CallError | None:
    """What is wrong with a call, if an argument that is annotated as a tensor is none and Turnout's own code met with that."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if isinstance(error, TurnoutError) or last is None or not _ours(last):
        return None
    from inspect import signature

    parameters = signature(function).parameters
    for name, value in signature(function).bind(*args, **kwargs).arguments.items():
        annotation = parameters[name].annotation
        if (annotation == "Tensor" or (annotation == "Tensor | None" and value is not None)) and not is_tensor(value):
            return CallError(texts.wrong_type(function.__name__, name, "a tensor", value))
    return None


def _ours(entry: TracebackType) -> bool:
    return installed().is_ours(str(entry.tb_frame.f_globals.get("__name__", "")))


def _shows_all() -> bool:
    try:
        return bool(config.get("traceback") == "full")
    except ConfigError:  # which may be the error that is to be shown
        return False


def _shorten(error: BaseException) -> None:
    entries: list[tuple[TracebackType, bool]] = []
    entry = error.__traceback__
    while entry is not None:
        entries.append((entry, _ours(entry)))
        entry = entry.tb_next
    if not any(ours for _, ours in entries) or (entries[-1][1] and not isinstance(error, _ABOUT_CALLS)):
        return
    kept: TracebackType | None = None
    for entry, ours in reversed(entries):
        if not ours:
            kept = entry if entry.tb_next is kept else type(entry)(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = kept
