"""Whose kernels come first at an operator and key, as configuration says: `kernels.choose` and `kernels.prefer`."""

from __future__ import annotations

from turnout import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.operators.kernels import Kernel

CHOOSE, PREFER = "kernels.choose", "kernels.prefer"


class Preference:
    """What configuration says of one operator and key.

    names    the libraries or distributions that come first, in their order
    setting  the name of the setting that decides
    equal    the name of another one that decides as much as it does; "" where there is none
    """

    __slots__ = ("equal", "names", "setting")

    def __init__(self, names: tuple[str, ...], setting: str, equal: str = "") -> None:
        self.names = names
        self.setting = setting
        self.equal = equal

    def decides(self, kernel: Kernel, stack: Sequence[Kernel]) -> bool:
        """Whether this is why a kernel wins among those at one key."""
        return self.place(kernel) < len(self.names) and len({id(k.library) for k in stack}) > 1

    def place(self, kernel: Kernel) -> int:
        """The place of a kernel's library among the names; behind them if none names it."""
        library = kernel.library
        own = () if library is None else (library.name, library.distribution)
        return next((i for i, name in enumerate(self.names) if name in own), len(self.names))


def preference(name: str, key: str) -> Preference | None:
    """What decides at an operator, by its qualified name, and a key; None where no setting does.

    `kernels.choose` comes before `kernels.prefer`, a whole name before a pattern, then a longer text before the first `*`. The
    order of the settings never counts.
    """
    chosen = config.choices(CHOOSE).get(f"{name}@{key}")
    if chosen is not None:
        return Preference((chosen,), f"{CHOOSE}.{name}@{key}")
    found = [(_weight(pattern), pattern, names) for pattern, names in config.choices(PREFER).items() if _fits(pattern, name, key)]
    if not found:
        return None
    found.sort(reverse=True)
    (weight, pattern, names), *others = found
    equal = f"{PREFER}.{others[0][1]}" if others and others[0][0] == weight else ""
    return Preference(tuple(names), f"{PREFER}.{pattern}", equal)


def has_preferences() -> bool:
    """Whether a setting says of any operator whose kernels come first."""
    return bool(config.choices(CHOOSE) or config.choices(PREFER))


def _fits(pattern: str, name: str, key: str) -> bool:
    """Whether a pattern is for an operator and a key. It may leave out the namespace, and the overload."""
    operators, _, at = pattern.rpartition("@")
    namespace, _, rest = operators.rpartition("::")
    own, _, whole = name.partition("::")
    return at == key and namespace in ("", own) and any(_matches(rest, each) for each in (whole, whole.partition(".")[0]))


def _matches(pattern: str, name: str) -> bool:
    """Whether each `*` stands for some text, or none: as `fnmatch`, which importing turnout does not load."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first) or len(name) < len(first) + len(rest[-1]) or not name.endswith(rest[-1]):
        return False
    at, end = len(first), len(name) - len(rest[-1])
    for part in rest[:-1]:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _weight(pattern: str) -> tuple[bool, int]:
    rest = pattern.rpartition("@")[0].rpartition("::")[2]
    return "*" not in rest, len(rest.partition("*")[0])
