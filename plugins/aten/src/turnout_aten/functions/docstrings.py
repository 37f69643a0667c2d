"""The docstrings that the build made, by full name: "turnout.add", "turnout.Tensor.add"; and those of a module written by hand.

The first are in one text file, which is read when the first function or method is compiled: a docstring is an attribute of a
function and cannot be looked up later. A module of them would be compiled anew, in 20 ms, where Python may not write bytecode.
"""

from __future__ import annotations

import os
from functools import cache
from types import CodeType, FunctionType

from turnout.operators.tracebacks import VARARGS, VARKEYWORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "generated", "docstrings.txt")


def of(name: str) -> str | None:
    """The docstring of a public function or method; None if it has none."""
    text, head = _read(), f"\0{name}\n".encode()
    start = text.find(head)
    return None if start < 0 else text[start + len(head) : text.find(b"\0", start + len(head))].decode()


@cache
def _read() -> bytes:
    with open(FILE, "rb", buffering=0) as file:  # not taken apart, which takes four times as long
        return file.read()


def text_of(docstrings: dict[str, str]) -> str:
    """The text of the file: a zero character, a name, a new line and its docstring, for all of them; and a zero character."""
    return "".join(f"\0{name}\n{text}" for name, text in docstrings.items()) + "\0"


def describe(module: Mapping[str, Any], **arguments: str) -> list[str]:
    """Complete the docstrings of a module's public functions and classes, which is the last thing that the module does.

    An argument that a docstring does not describe itself, nor that of a base class, is described by the text of its name in
    `arguments`; and one of a class that is left then, as the `__function__` of the class describes it. Returns the names of those
    functions and classes, for `__all__`.
    """
    public = []
    for name, value in list(module.items()):
        inner: Any = value.__init__ if isinstance(value, type) else value  # type: ignore[misc]
        if isinstance(inner, FunctionType) and value.__module__ == module["__name__"] and not name.startswith("_"):
            public.append(name)
            while hasattr(inner, "__wrapped__"):
                inner = inner.__wrapped__
            if value.__doc__ is not None:  # python -OO has none
                bases = value.__mro__[-1:0:-1] if isinstance(value, type) else ()
                told = _parts(value.__function__.__doc__ or "")[1] if bases and hasattr(value, "__function__") else {}
                told |= {name: [f"    {name}: {text}"] for name, text in arguments.items()}
                for base in bases:
                    told |= _parts(base.__doc__ or "")[1]
                value.__doc__ = "\n".join(_described(value.__doc__, _parameters(inner.__code__), told))
    return sorted(public)


def _parameters(code: CodeType) -> list[str]:
    """The names of a function's parameters, as its signature has them."""
    positional, keywords = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames)
    starred = [names[keywords]] if code.co_flags & VARARGS else []
    options = [names[keywords + len(starred)]] if code.co_flags & VARKEYWORDS else []
    return [*names[:positional], *starred, *names[positional:keywords], *options]


def _described(docstring: str, names: list[str], told: Mapping[str, list[str]]) -> Iterator[str]:
    """The lines of a docstring that describes all arguments of these names that it can, in their order."""
    first, own, rest = _parts(docstring)
    yield from first
    yield ""
    known = {**told, **own}
    if not known.keys().isdisjoint(names):
        yield "Arguments:"
        for name in names:
            yield from known.get(name, ())
        yield ""
    yield from rest


def _parts(docstring: str) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """The lines of a docstring before its arguments, those of each argument, and those behind them."""
    first, *lines = docstring.split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    lines = [first, *(line[indent:].rstrip() for line in lines)]
    start = next((i for i, line in enumerate(lines) if line in ("Arguments:", "Raises:", "Example:")), len(lines))
    has_own = start < len(lines) and lines[start] == "Arguments:"
    end = next((i for i in range(start + 1, len(lines)) if lines[i][:1].strip()), len(lines)) if has_own else start
    own: dict[str, list[str]] = {}
    for line in filter(None, lines[start + 1 : end]):
        if not line.startswith("     "):
            name, _, text = line.strip().partition(": ")
            name = name.partition(" (")[0]  # without a type, which the docstrings that the build made name
            own[name] = told = []
            line = f"    {name}: {text}"
        told.append(line)
    return "\n".join(lines[:start]).rstrip().split("\n"), own, lines[end:]
