"""Dispatch keys: the universe of functionalities and backends, their bits, and sets of keys.

The one idea: a bit is an *identity* (given once per name, never moved), a rank is a *position* in the universe of the
moment. Key sets are ints of bits; ranks are read only when a key set is resolved for the first time.

| module | holds |
|---|---|
| `universe` | `Universe`, a frozen value (tests build others, PyTorch's included), and the names of alias keys |
| `rows` | the standard functionalities as data, and the properties of a row |
| `space` | `KEYS`, the live key space: name <-> bit, and the rows of the moment |
| `sets` | `DispatchKeySet` |
"""

from __future__ import annotations

from turnout.keys.rows import ALWAYS as ALWAYS
from turnout.keys.rows import NEVER as NEVER
from turnout.keys.rows import STANDARD as STANDARD
from turnout.keys.rows import UNTRACKED as UNTRACKED
from turnout.keys.rows import BackendRow as BackendRow
from turnout.keys.rows import Functionality as Functionality
from turnout.keys.sets import DispatchKeySet as DispatchKeySet
from turnout.keys.space import KEYS as KEYS
from turnout.keys.space import KeySpace as KeySpace
from turnout.keys.universe import AUTOCAST as AUTOCAST
from turnout.keys.universe import AUTOGRAD as AUTOGRAD
from turnout.keys.universe import EXPLICIT as EXPLICIT
from turnout.keys.universe import IMPLICIT as IMPLICIT
from turnout.keys.universe import IMPLICIT_NESTED as IMPLICIT_NESTED
from turnout.keys.universe import NON_FUNCTIONAL as NON_FUNCTIONAL
from turnout.keys.universe import OLD_NAMES as OLD_NAMES
from turnout.keys.universe import TABLE_ALIASES as TABLE_ALIASES
from turnout.keys.universe import TRACKED as TRACKED
from turnout.keys.universe import UNDEFINED as UNDEFINED
from turnout.keys.universe import Universe as Universe
