"""The layout of error texts: a head, labelled rows below it, and the nearest known name."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def report(head: str, *rows: tuple[str, object]) -> str:
    """`head` and below it a line for each row, labels aligned; rows with an empty text are omitted."""
    kept = [(label, str(text)) for label, text in rows if str(text)]
    width = max((len(label) for label, _ in kept), default=0)
    return head + "".join(f"\n  {label:{width}}  {text}" for label, text in kept)


def printed(value: object, spell: Callable[[object], str] = repr) -> str:
    """The text of a value, also of what Python cannot print: an error must not become another one."""
    if isinstance(value, int) and int.bit_length(value) > 128:
        return hex(value)
    try:
        return spell(value)
    except Exception:  # noqa: BLE001 - a class of the program's own, a list of lists without end
        return f"<{type(value).__name__} that cannot be printed>"


def near(word: object, known: Iterable[str], *, count: int = 1, cutoff: float = 0.6, spell: Callable[[str], str] = str) -> str:
    """`; did you mean X?` for the known names nearest to `word`, "" when none is near, or for what is no word."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), count, cutoff) if isinstance(word, str) else ()
    return f"; did you mean {' or '.join(map(spell, found))}?" if found else ""
