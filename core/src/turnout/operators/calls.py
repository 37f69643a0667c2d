"""What an entry point says of its calls: which overloads they may be, and where each argument comes from.

Stubs, public functions and methods are generated as texts. Whoever writes such a text describes it, too, from the same schema, so
that nobody has to read it.
"""

from __future__ import annotations

from functools import lru_cache
from types import CodeType, FunctionType

from turnout.config.installed import replaceable
from turnout.config.tuples import NamedTuple
from turnout.operators.tracebacks import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from turnout.schema import FunctionSchema

    class Overload(Protocol):
        """An operator, or the row of a table."""

        @property
        def schema(self) -> FunctionSchema: ...
        @property
        def cache(self) -> dict[int, Callable[..., Any]]: ...


class Given(NamedTuple):
    """Where an argument comes from. Without a position and a keyword, it always has its default."""

    position: int = -1
    keyword: str = ""


class Target(NamedTuple):
    """An overload that a call may be, if its arguments are of the types of the schema. It is looked up by their key set.

    arguments   where each argument of the schema comes from
    parameters  how many arguments may be given by position
    rest        the position from which on all are ints that stand for one list, or -1
    alone       whether a call with such ints takes no keywords
    """

    overload: Any
    arguments: tuple[Given, ...]
    parameters: int
    rest: int = -1
    alone: bool = False


class Line(NamedTuple):
    """A statement of a text: the number of its line, and the names that it uses. Blanks before it are those in the function."""

    number: int
    statement: str
    names: Sequence[str]

    @classmethod
    def of(cls, lines: Sequence[str], statement: str, names: Sequence[str]) -> Line:
        """A line of a function. `public_lines` moves it down by one."""
        at = next(i for i, line in enumerate(lines) if line.strip() == statement.strip())
        return cls(at + 2, lines[at].removeprefix("    "), names)

    @classmethod
    def last(cls, lines: Sequence[str], names: Sequence[str]) -> Line:
        """The last line of a function, which uses these names. `public_lines` moves it down by one."""
        return cls(len(lines) + 1, lines[-1].strip(), names)


class Choice(NamedTuple):
    """The overloads that are chosen by the types of a call, under the name of the text's variable for them.

    A call with `least` to `most` positional arguments is passed on as it is; `most` is None for any number. `line` is where the
    text calls one that was chosen before, for `after` positional arguments or more without keywords, none of them a list.
    """

    variable: str
    least: int
    most: int | None
    line: Line | None = None
    after: int = 0


def public_lines(lines: Sequence[str], origin: str) -> list[str]:
    """The lines of functions as they are compiled: each says where it comes from, for `inspect.getsource`, and shortens the
    tracebacks of errors that leave it.
    """
    made: list[str] = []
    inside = False
    for line in [*lines, ""]:
        if inside and not line.startswith(" "):
            made += _SHORTENING
            inside = False
        if line.startswith("def "):
            made += [f"{line}  # {origin}", "    try:"]
            inside = True
        else:
            made.append(f"    {line}" if inside else line)
    return made


_SHORTENING = ("    except Exception as _error:", "        SHORTEN(_error)", "        raise")


class CallSpec(NamedTuple):
    """What the calls of one entry point may be.

    targets  they are tried in this order
    last     the text's last line, if it calls the kernel of the first target
    results  the name of the text's variable for the class of several results, or ""
    packet   what is tried last, or None
    """

    targets: tuple[Target, ...] = ()
    last: Line | None = None
    results: str = ""
    packet: Choice | None = None


class Source(NamedTuple):
    """Where a generated function is shown: the file that tracebacks name, the function's name, and its global variables."""

    file: str
    function: str
    variables: dict[str, Any]

    def line(self, line: Line) -> Callable[..., Any]:
        """A line as a function of the names that it uses. Called, it has the frame that the whole function would have."""
        number, statement, names = line
        text = [f"def line({', '.join(names)}):", "    try:", f"        {statement}", *_SHORTENING, ""]
        self.variables.setdefault("SHORTEN", shorten)  # a kernel's text does not have it
        return self._made("\n".join(text), max(number - 2, 1), self.variables)

    def framed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function in a frame of this text, to which filters of warnings look."""
        variables = {"__name__": self.variables["__name__"], "fn": function}
        return self._made("def line(*args): return fn(*args)\n", 1, variables)

    def _made(self, text: str, first: int, variables: dict[str, Any]) -> Callable[..., Any]:
        name = self.function
        code = _compiled(text).replace(co_filename=self.file, co_name=name, co_qualname=name, co_firstlineno=first)
        return FunctionType(code, variables, name)


@lru_cache(512)  # many functions have the same lines
def _compiled(text: str) -> CodeType:
    """The code of a text's function."""
    module = compile(text, "", "exec", dont_inherit=True)
    return next(each for each in module.co_consts if isinstance(each, CodeType))


@replaceable
def entry_point(function: Callable[..., Any], spec: CallSpec, source: Source) -> Callable[..., Any]:
    """The function of a text; a plugin may put what does the same in its place."""
    return function
