"""What is installed, for the layers below `turnout.plugins`: configuration, devices, errors and the registry ask here.

`turnout.plugins` stands above them and connects itself when it is imported. Until then nothing is installed.
"""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeVar

    Make = TypeVar("Make", bound=Callable[..., Any])

    class Answers(Protocol):
        """The functions of `turnout.plugins` that are called from below."""

        def catalog(self) -> Any: ...
        def check_device(self, device_type: str) -> None: ...
        def is_ours(self, module: str) -> bool: ...
        def require_device(self, device_type: str, asked: str = "") -> None: ...
        def require_namespace(self, namespace: str) -> bool: ...
        def remedy_for(self, kind: str, name: str, *, activate: bool) -> str: ...
        def default_device_type(self) -> str: ...
        def activate_all(self) -> None: ...
        def enabled_keys(self) -> Any: ...
        def replacements(self) -> dict[str, Callable[..., Any]]: ...
        def shorten(self, error: Exception) -> None: ...


_answers: Answers | None = None
MARKED: set[str] = set()  # "module:function" of what is replaceable, of all modules that are loaded


def connect(answers: Answers) -> None:
    """Called by `turnout.plugins`."""
    global _answers
    _answers = answers


def installed() -> Answers:
    """`turnout.plugins`."""
    assert _answers is not None, "turnout.plugins connects itself when `turnout` is imported"
    return _answers


def replaceable(make: Make) -> Make:
    """Mark a function that makes callables: an installed plugin may exchange what it made for what does the same."""
    name = f"{make.__module__}:{make.__qualname__}"
    MARKED.add(name)

    @wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        found, replace = make(*args, **kwargs), installed().replacements().get(name)
        return found if replace is None else replace(found, *args, **kwargs)

    return made  # type: ignore[return-value]
