"""Dispatch keys: the universe of functionalities and backends, their bits, and sets of keys.

The one idea: a bit is an *identity*, given once per name and never moved. A rank is a *position* in the present universe.
Key sets are ints of bits. Ranks are read only when a key set is resolved for the first time.

| module | holds |
|---|---|
| `universe` | `Universe`, a frozen value, and the names of alias keys; tests build other universes |
| `rows` | the standard functionalities as data, and the properties of a row |
| `space` | `KEYS`, the live key space: name <-> bit, and the present rows; `DispatchKeySet` |
"""

from __future__ import annotations

from turnout.keys.rows import (  # isort: skip
    ALWAYS as ALWAYS, NEVER as NEVER, STANDARD as STANDARD, UNTRACKED as UNTRACKED, BackendRow as BackendRow,
    Functionality as Functionality,
)  # fmt: skip
from turnout.keys.space import KEYS as KEYS
from turnout.keys.space import DispatchKeySet as DispatchKeySet
from turnout.keys.space import KeySpace as KeySpace

from turnout.keys.universe import (  # isort: skip
    AUTOCAST as AUTOCAST, AUTOGRAD as AUTOGRAD, EXPLICIT as EXPLICIT, IMPLICIT as IMPLICIT,
    IMPLICIT_NESTED as IMPLICIT_NESTED, NON_FUNCTIONAL as NON_FUNCTIONAL, OLD_NAMES as OLD_NAMES,
    TABLE_ALIASES as TABLE_ALIASES, TRACKED as TRACKED, UNDEFINED as UNDEFINED, Universe as Universe,
)  # fmt: skip
