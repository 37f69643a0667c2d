"""`shorten`: an error that leaves a call of Turnout shows the lines of the program, not those of Turnout.

Public functions, methods and operators catch an error that leaves them, call `shorten` and raise it again with a bare `raise`,
which adds no frame. Without an error, a `try` costs nothing; with one, each such call on its way takes a few microseconds. What a
functionality reads in a traceback, it reads before its own public function raises the error again.
"""

from __future__ import annotations

from functools import partial, wraps
from types import FunctionType, UnionType
from weakref import WeakSet

from turnout import config
from turnout.config.installed import installed
from turnout.dtypes import DType
from turnout.errors import CallError, ConfigError, TurnoutError
from turnout.errors import calls as texts
from turnout.operators.values import is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType
    from typing import Any, ParamSpec, TypeVar

    _Kind = tuple[str, Callable[[Any], bool]]
    P = ParamSpec("P")
    R = TypeVar("R")

# An error of these says what is wrong with a call, wherever it was raised.
_ABOUT_CALLS = (TurnoutError, NotImplementedError, BufferError, Warning)
# What code raises that an argument of a wrong kind reaches.
_OF_ARGUMENTS = (AttributeError, TypeError, ValueError)
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
    """A decorator: the function shortens the errors that leave it; a generator function, those that leave its steps. It costs a
    frame, so small functions have their own `try`.

    A call that the signature does not take shows no frame of Turnout. Where an argument is not what its annotation says, what the
    function ran into is a CallError that names the argument. So it is where a constructor passed the argument on to another call.
    """
    code: CodeType = getattr(function, "__code__")  # noqa: B009 - which a Callable does not have
    steps = _steps if code.co_flags & GENERATOR else None

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            try:
                # `**` copies the dict, even an empty one: 40 ns.
                made = function(*args, **kwargs) if kwargs else function(*args)  # type: ignore[call-arg]
                return made if steps is None else steps(made, function, args, kwargs)
            except _OF_ARGUMENTS as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is None and not _shows_all():
                    error.__traceback__ = None  # the signature does not take the call
                else:
                    _name_argument(function, args, kwargs, error)
                raise
        except Exception as error:
            shorten(error)
            raise

    return call


def _steps(generator: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        try:
            return (yield from generator)
        except _OF_ARGUMENTS as error:
            _name_argument(function, args, kwargs, error)
            raise
    except Exception as error:
        shorten(error)
        raise


def shorten_class(cls: type) -> None:
    """Let the constructor and the public methods of a class of Turnout and of its bases shorten the errors that leave them.

    They are wrapped in place, once. Functions that call `shorten` themselves stay as they are, and so do those that the class
    or a base names in `__unwrapped__`, because a call of them must not cost a frame more. "*" is all of a class and its bases.
    """
    for each in cls.__mro__:
        if "*" in vars(each).get("__unwrapped__", ()):
            return
        if each in _SHORTENED or each.__module__ == "builtins" or not _is_ours(each.__module__):
            continue
        _SHORTENED.add(each)
        left = {name for base in each.__mro__ for name in vars(base).get("__unwrapped__", ())}
        for name, value in list(vars(each).items()):
            if (name[0] != "_" or name in _CALLED_BY_SYNTAX) and name not in left and (made := _wrapped(value)) is not None:
                setattr(each, name, made)


_SHORTENED: WeakSet[type] = WeakSet()
_CALLED_BY_SYNTAX = {
    "__new__", "__init__", "__call__", "__enter__", "__exit__", "__getitem__", "__setitem__", "__delitem__", "__contains__",
    "__iter__", "__next__", "__len__", "__add__", "__iadd__", "__mul__",
}  # fmt: skip
VARARGS, VARKEYWORDS, GENERATOR = 0x04, 0x08, 0x20  # bits of `co_flags`, as in inspect, whose import is slow


def _wrapped(value: Any) -> Any:
    """What replaces a member of a class; None for one that stays."""
    if isinstance(value, (classmethod, staticmethod)):
        inner = _wrapped(value.__func__)
        return None if inner is None else type(value)(inner)
    if not isinstance(value, FunctionType) or value.__globals__ is globals() or "shorten" in value.__code__.co_names:
        return None
    if not _is_ours(str(value.__globals__.get("__name__", ""))):
        return None
    return shortening(value)


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


def _name_argument(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], error: Exception) -> None:
    """Raise CallError if an argument is not what its annotation says and Turnout's own code met with that."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    called = function.__name__
    if called in _CALLED_BY_SYNTAX and args:
        called = _class_of(args[0]).__name__
    told = str(error).startswith(f"{called}:") and not hasattr(error, "by_base")
    told = isinstance(error, TurnoutError) and (told or function.__name__ != "__init__")
    if told or last is None or not _ours(last):
        return
    from inspect import signature

    parameters, names = signature(function).parameters, getattr(function, "__globals__", {})
    for name, given in signature(function).bind(*args, **kwargs).arguments.items():
        kinds = _kinds(str(parameters[name].annotation), names)
        for label, value in _labelled(name, given, str(parameters[name])):
            if all(kind is not None and not kind[1](value) for kind in kinds):
                wanted = " or ".join(kind[0] for kind in kinds if kind is not None)
                wrong = CallError(texts.wrong_type(called, label, wanted, value))
                vars(wrong)["by_base"] = True  # the constructor of a derived class may know the argument by another name
                raise wrong from None


def _kinds(annotation: str, names: dict[str, Any]) -> list[_Kind | None]:
    """What an annotation says that a value may be; None for a part that says nothing here. `names` has its classes and unions."""
    kinds: list[_Kind | None] = []
    for part in _parts(annotation):
        name, _, inside = part.partition("[")
        elements = _KINDS.get(inside.removesuffix(",...]").removesuffix("]"))
        found = names.get(name)
        if type(found) is UnionType:
            kinds += _kinds(str(found), names)
        elif name in ("tuple", "list", "Sequence") and elements is not None:
            kinds.append(_of_elements(_KINDS[name], elements))
        elif name not in _KINDS and isinstance(found, type) and _is_ours(f"{found.__module__}."):
            kinds.append((f"{'an' if name[0] in 'AEIOU' else 'a'} {name}", partial(_is_a, found)))
        else:
            kinds.append(_KINDS.get(name))
    return kinds


def _of_elements(holder: _Kind, kind: _Kind) -> _Kind:
    words = f"{holder[0]} of {kind[0].split(' ', 1)[-1]}s"
    return words, lambda value: holder[1](value) and (not isinstance(value, (tuple, list, str)) or all(map(kind[1], value)))


def _is_a(cls: type, value: Any) -> bool:
    return isinstance(value, cls)


def _labelled(name: str, given: Any, parameter: str) -> list[tuple[str, Any]]:
    """The values of a parameter, each with its name: of one with a star, those that it collects."""
    if parameter.startswith("**"):
        return list(given.items())
    if parameter.startswith("*"):
        return [(f"{name}[{at}]", value) for at, value in enumerate(given)]
    return [(name, given)]


def _parts(annotation: str) -> list[str]:
    """What stands between the bars of an annotation that are outside of its brackets."""
    parts, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append("")
        elif letter != " ":
            parts[-1] += letter
    return parts


def _class_of(first: Any) -> type:
    return first if isinstance(first, type) else type(first)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") or hasattr(value, "__index__") or is_tensor(value)


# A part of an annotation -> what it is in words, and whether a value is one. An annotation with any other part says nothing.
_KINDS: dict[str, _Kind] = {
    "Tensor": ("a tensor", is_tensor),
    "None": ("None", lambda value: value is None),
    "bool": ("a bool", lambda value: True),  # anything is true or false
    "int": ("an int", lambda value: hasattr(value, "__index__")),
    "float": ("a number", _is_number),
    "str": ("a str", lambda value: isinstance(value, str)),
    "slice": ("a slice", lambda value: isinstance(value, slice)),
    "DType": (texts.A_DTYPE, lambda value: isinstance(value, (DType, type))),  # types as `float`
    "set": ("a set", lambda value: isinstance(value, set)),
    "tuple": ("a tuple", lambda value: isinstance(value, tuple)),
    "list": ("a list", lambda value: isinstance(value, list)),
    "dict": ("a dict", lambda value: isinstance(value, dict)),
    "Sequence": ("a sequence", lambda value: hasattr(value, "__getitem__") and hasattr(value, "__len__")),
    "Iterable": ("an iterable", lambda value: hasattr(value, "__iter__") or hasattr(value, "__getitem__")),
    "Mapping": ("a mapping", lambda value: hasattr(value, "keys")),
    "Callable": ("callable", callable),
}


def _ours(entry: TracebackType) -> bool:
    return _is_ours(str(entry.tb_frame.f_globals.get("__name__", "")))


def _is_ours(module: str) -> bool:
    return module.startswith("turnout.") or installed().is_ours(module)


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
