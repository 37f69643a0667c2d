"""`user_frame`: the line of the program that a call comes from.

Frames of Turnout, of functionalities and of generated code are passed over. A frame may stand for a call that was made earlier,
as in a backward pass. Its module, or the text that it runs, then has a function `__user_frame__(frame)`: it returns the line that
was kept, None where none was, or NotImplemented for a frame like any other.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from turnout.config.tuples import NamedTuple
from turnout.plugins import is_ours
from turnout.registry import REGISTRY

if TYPE_CHECKING:
    from types import FrameType


class UserFrame(NamedTuple):
    """A line of the program: `file`, `line` and the name of the `function`."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def user_frame() -> UserFrame | None:
    """The line of the program that the running call comes from; None if there is none.

    Passed over are the frames of Turnout, of the packages whose functionalities have a fallback, and of the package that asks. A
    functionality with `asks_lines` also gets an answer in a backward pass and in the replay of a graph: the line of the forward
    call, if it was kept because the functionality was on then.

    Example:
        >>> line = turnout.user_frame()  # in a fallback: where the program called the operator
        >>> line is None or line.line > 0
        True
    """
    frame: FrameType | None = sys._getframe(1)
    assert frame is not None
    asking = _package(frame)
    passed = {asking, *(kernel.library.package for kernel in REGISTRY.fallbacks.values() if kernel.library is not None)}
    while frame is not None:
        package = _package(frame)
        if is_ours(package):
            stands = frame.f_globals.get("__user_frame__")
            if stands is not None and (found := stands(frame)) is not NotImplemented:
                return found  # type: ignore[no-any-return]
            if asking == "__main__":
                passed.discard(asking)  # the program itself has the functionality: its frames above this one are others
        elif package not in passed and package != "importlib":
            return UserFrame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
