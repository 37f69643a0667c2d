"""Dispatch keys: the universe of functionalities and backends, their bits, and sets of keys.

The one idea: a bit is an *identity*, given once per name and never moved. A rank is a *position* in the present universe.
Key sets are ints of bits. Ranks are read only when a key set is resolved for the first time.

| module | holds |
|---|---|
| `universe` | `Universe`, a frozen value, and the names of alias keys; tests build other universes |
| `rows` | the standard functionalities as data, and the properties of a row |
| `order` | where functionalities stand that others add |
| `space` | `KEYS`, the live key space: name <-> bit, and the present rows; `DispatchKeySet` |
"""

from turnout.keys.rows import ALWAYS, NEVER, STANDARD, UNTRACKED, BackendRow, Functionality
from turnout.keys.space import KEYS, DispatchKeySet, KeySpace

from turnout.keys.universe import (  # isort: skip
    AUTOCAST, AUTOGRAD, EXPLICIT, IMPLICIT, IMPLICIT_NESTED, NON_FUNCTIONAL, OLD_NAMES, TABLE_ALIASES,
    TRACKED, UNDEFINED, Universe,
)  # fmt: skip

__all__ = ["ALWAYS", "AUTOCAST", "AUTOGRAD", "BackendRow", "DispatchKeySet", "EXPLICIT", "Functionality", "IMPLICIT",
    "IMPLICIT_NESTED", "KEYS", "KeySpace", "NEVER", "NON_FUNCTIONAL", "OLD_NAMES", "STANDARD", "TABLE_ALIASES", "TRACKED",
    "UNDEFINED", "UNTRACKED", "Universe"]  # fmt: skip
