"""`KeySpace`: names and bits for the life of the process, and the functionalities and backends of the moment.

`DispatchKeySet` is a key set for users.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import reduce
from operator import or_

from turnout.errors import UniverseError, printed
from turnout.errors.layout import near
from turnout.keys.rows import STANDARD, BackendRow, Functionality
from turnout.keys.universe import AUTOGRAD, EXPLICIT, IMPLICIT, NON_FUNCTIONAL, OLD_NAMES, TRACKED, UNDEFINED, Universe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.keys.order import Placing


class KeySpace:
    """The live universe.

    Rows come from three sources: the standard list, the manifests of installed plugins (`set_installed`), and libraries,
    which add rows while they live. Mutators are called under the registry's lock. `universe` is replaced and never changed,
    so readers need no lock.
    """

    def __init__(self, fixed: Universe | None = None) -> None:
        """The standard functionalities without a backend, or the given universe, which cannot be extended."""
        self._bits: dict[str, int] = {}
        self._added: dict[str, Functionality] = {}
        self._installed: dict[str, Functionality] = {}
        self._added_backends: dict[str, BackendRow] = {}
        self._installed_backends: dict[str, BackendRow] = {}
        self._fixed = fixed
        self._discover: Callable[[], object] | None = None
        self.aliases: dict[str, tuple[str, ...]] = {}
        self.places: dict[str, str] = {}  # of functionalities that are not standard: why they stand where they do
        self.notes: dict[str, str] = {}  # and which of their anchors do not count
        if fixed is None:
            for row in STANDARD:
                if not row.each_backend:
                    row.bit = self.bit(row.name)
            self._rebuild()
        else:
            self.backend_rows = {name: BackendRow(name) for name in fixed.backends}
            guards = {row.name: row.on_tensors for row in STANDARD if row.guards_below}
            rows = [
                Functionality(name, prefix, guards_below=name in guards, on_tensors=guards.get(name, False))
                for name, prefix in fixed.functionalities
            ]
            self._adopt(rows, fixed)

    # ---- what is installed

    def discover_with(self, discover: Callable[[], object]) -> None:
        """Call `discover`, which calls `set_installed`, before the universe is first read."""
        self._discover = discover

    def discovered(self) -> None:
        """Make sure that the rows of installed plugins are present."""
        if self._discover is not None:
            self._discover()

    @property
    def universe(self) -> Universe:
        """The present functionalities and backends, those of installed plugins included."""
        self.discovered()
        return self._universe

    def set_installed(
        self, functionalities: Iterable[Functionality], backends: Iterable[BackendRow], known: Container[str] = ()
    ) -> dict[str, str]:
        """Replace the rows of installed plugins. Returns those that cannot be there, which are omitted: name -> why.

        A functionality may have no place, and a row may give a key that others give. Then the rows of core and those that are
        `known` by name stay; of others, none does.
        """
        from turnout.keys.order import Placing

        wanted = {row.name: row for row in functionalities}
        rows = {row.name: row for row in backends}
        clashes = _clashes(wanted, rows, known)
        self._installed_backends = {name: row for name, row in rows.items() if name not in clashes}
        self._sort_backends()  # a functionality may be placed by one that stands for a backend
        wanted = {name: row for name, row in wanted.items() if name not in clashes}
        placing = Placing(self._standard(), {**self._added, **wanted})
        problems = placing.problems
        self._installed = {name: row for name, row in wanted.items() if name not in problems}
        self._discover = None
        self._rebuild(None if problems else placing)
        return problems | clashes

    def is_installed_backend(self, name: str) -> bool:
        """Whether the backend's row comes from an installed plugin's manifest."""
        return name in self._installed_backends

    # ---- bits

    def bit(self, name: str) -> int:
        """The bit of a functionality or `backend:NAME`. A name gets it when it is first seen, and keeps it."""
        return self._bits.get(name) or self._bits.setdefault(name, 1 << (len(self._bits) + 1))  # bit 0 is TRACKED

    def backend_bit(self, backend: str) -> int:
        """The bit of a backend, whether it is present or not."""
        return self.bit("backend:" + backend)

    def switch_bit(self, functionality: str) -> int:
        """The bit that switches an opt-in functionality on while the state includes it."""
        return self.bit("switch:" + functionality)

    # ---- changes

    def add_backend(self, row: BackendRow) -> None:
        """Add a backend. Raises UniverseError when it exists already."""
        self.discovered()
        if row.name in self.backend_rows:
            raise UniverseError(f"backend {row.name} exists already")
        self._change(self._added_backends, row.name, row)

    def remove_backend(self, name: str) -> None:
        """Remove a backend that was added. Its bit stays reserved for its name."""
        self._change(self._added_backends, name)

    def add_functionality(self, functionality: Functionality) -> None:
        """Place a functionality. Raises UniverseError for an unknown anchor, a cycle or a name that is taken."""
        self.discovered()
        name = functionality.name
        if name in self._added or any(f.name == name for f in self.functionalities):
            raise UniverseError(f"functionality {name} exists already")
        if not functionality.before and not functionality.after:
            anchor = "before= or after= a functionality of the list, which goes from lowest to highest priority"
            raise UniverseError(f"functionality {name} needs a place: {anchor}")
        self._change(self._added, name, functionality)

    def remove_functionality(self, name: str) -> None:
        """Remove a functionality that was added. Raises UniverseError when another one is placed by it."""
        if leaning := sorted(f.name for f in self._added.values() if f.name != name and name in f.before + f.after):
            raise UniverseError(f"functionality {name} is still the anchor of {', '.join(leaning)}")
        self._change(self._added, name)

    def add_alias(self, alias: str, covered: Iterable[str]) -> None:
        """Declare an alias key of a functionality (rule 2.5 of the computed table)."""
        if self.universe.is_key(alias):
            raise UniverseError(f"{alias} is a key already")
        self._change(self.aliases, alias, tuple(covered))

    def remove_alias(self, alias: str) -> None:
        """Remove an alias key that was declared."""
        self._change(self.aliases, alias)

    def _change(self, rows: dict[str, Any], name: str, row: object = None) -> None:
        """Set a row, or remove it when there is none. Nothing is changed when this raises UniverseError."""
        old = dict(rows)
        rows.pop(name, None)
        if row is not None:
            rows[name] = row
        try:
            self._rebuild()
        except UniverseError:
            rows.clear()
            rows.update(old)
            self._rebuild()
            raise

    def _rebuild(self, placing: Placing | None = None) -> None:
        """Make the universe of the rows that there are. Raises UniverseError, unless the `placing` of all of them is given."""
        if self._fixed is not None:
            raise UniverseError("this key space is fixed: it was made from a universe")
        self._sort_backends()
        ordered = self._standard()
        if placed := {**self._added, **self._installed}:
            from turnout.keys.order import Placing  # not loaded by `import turnout`

            placing = placing or Placing(ordered, placed)
            for problem in placing.problems.values():
                raise UniverseError(problem)
            ordered, self.places, self.notes = placing.rows, placing.places, placing.notes
        pairs = [(f.name, f.prefix) for f in ordered]
        plain = Universe(pairs, self.backend_rows)
        aliases = {alias: set(covered) for alias, covered in plain.aliases.items()}
        # Dense, whose prefix is "", is covered already.
        more = {f.prefix + backend for f in ordered if f.backend_key and f.prefix for backend in self.backend_rows}
        for alias in (EXPLICIT, NON_FUNCTIONAL, IMPLICIT):
            aliases[alias] |= more
        if more:
            plain.backends_of["AutogradOther"] = (*plain.backends_of.get("AutogradOther", ()), *sorted(more))
        for row in self.backend_rows.values():
            if row.functional_only:
                aliases[NON_FUNCTIONAL] = {key for key in aliases[NON_FUNCTIONAL] if not key.endswith(row.name)}
        aliases |= {row.name: {row.name + backend for backend in self.backend_rows} for row in STANDARD if row.each_backend}
        aliases |= {alias: set(covered) for alias, covered in self.aliases.items()}
        self._adopt(ordered, Universe(pairs, self.backend_rows, aliases, plain.backends_of))

    def _sort_backends(self) -> None:
        rows = {**self._added_backends, **self._installed_backends}
        self.backend_rows = {row.name: row for row in sorted(rows.values(), key=lambda row: row.order)}

    def _adopt(self, ordered: list[Functionality], universe: Universe) -> None:
        """Make `universe` the present one."""
        for backend in self.backend_rows:  # before other plugins' bits: a key set below 2**30 is one digit, and cheaper
            self.tensor_bits(backend)
        for functionality in ordered:
            functionality.bit = self.bit(functionality.name)
            if functionality.opt_in:
                functionality.switch = self.switch_bit(functionality.name)
        self._universe = universe
        self.functionalities = tuple(ordered)
        self._descending = tuple(reversed(ordered))
        guards = [i for i, row in enumerate(ordered) if row.guards_below]
        self._guarded = frozenset(ordered[: guards[0]] if guards else ())
        self.guards = sum(ordered[i].bit for i in guards)
        self.plain_guards = sum(ordered[i].bit for i in guards if ordered[i].on_tensors)
        around = (f for f in ordered if not (f.backend_key or f.holds_values))
        self.around_calls = sum(f.switch if f.opt_in else f.bit for f in around)  # what does something to calls, not to tensors
        self.asking_lines = sum(f.bit for f in ordered if f.asks_lines)
        self.opt_in_switches = sum(f.switch for f in ordered if f.opt_in)
        self._backend_rank = tuple((b, self.backend_bit(b)) for b in reversed(self.backend_rows))
        self.backend_mask = sum(bit for _, bit in self._backend_rank)

    def _standard(self) -> list[Functionality]:
        """The standard list. A row with `each_backend` is replaced by one row for each backend."""
        return [each for row in STANDARD for each in (map(row.of, self.backend_rows) if row.each_backend else [row])]

    def is_guarded(self, functionality: Functionality) -> bool:
        """Whether it stands below all functionalities with `guards_below`, which its kernels must not reach again."""
        return functionality in self._guarded

    @property
    def backends(self) -> tuple[str, ...]:
        """The names of the backends, lowest rank first."""
        return tuple(self.backend_rows)

    @property
    def dataless_backends(self) -> tuple[str, ...]:
        """The backends whose tensors have no data."""
        self.discovered()
        return tuple(name for name, row in self.backend_rows.items() if row.dataless)

    # ---- reading key sets

    def active(self, ks: int) -> Iterator[tuple[str, Functionality]]:
        """The runtime keys of a key set with their functionalities, highest priority first."""
        backend = next((name for name, bit in self._backend_rank if ks & bit), None)
        for functionality in self._descending:
            if not functionality.takes_part(ks):
                continue
            if functionality.prefix is None:
                yield functionality.name, functionality
            elif backend is not None:
                yield functionality.prefix + backend, functionality

    def backends_in(self, ks: int) -> list[str]:
        """The backends whose bit is in a key set, highest rank first."""
        return [name for name, bit in self._backend_rank if ks & bit]

    def names(self, ks: int) -> list[str]:
        """The content of a key set for people: runtime keys, functionalities that are off, and "tracked"."""
        off = [f"{f.name} (off)" for f in self.functionalities if ks & f.bit and not f.takes_part(ks)]
        return [*(key for key, _ in self.active(ks)), *off, *(["tracked"] if ks & TRACKED else [])]

    def tensor_bits(self, backend: str) -> int:
        """The bits of every plain tensor of a backend: the backend's own and those of the rows with `on_tensors`."""
        names = (row.name + backend if row.each_backend else row.name for row in STANDARD if row.on_tensors)
        return reduce(or_, map(self.bit, names), self.backend_bit(backend))

    def listed(self, keys: str | Iterable[str]) -> list[str]:
        """A name, or several, as a list. Raises UniverseError for anything else."""
        names: list[Any] = [keys] if isinstance(keys, str) or not hasattr(keys, "__iter__") else list(keys)
        if not all(isinstance(name, str) for name in names):
            raise UniverseError(f"a key set is made of bits, or of names of keys, got {printed(keys)}")
        return names

    def mask(self, keys: str | Iterable[str] | int) -> int:
        """The bits of some keys, for include and exclude masks. An int is returned as it is.

        A name is that of a functionality or of a runtime key. A per-backend key such as AutogradCPU stands for its
        functionality and its backend. Raises UniverseError for an unknown name.
        """
        if isinstance(keys, int):
            return int(keys)
        names = self.listed(keys)
        return reduce(or_, map(self._mask_of, names), 0)

    def rows_of(self, name: str) -> list[Functionality]:
        """The row of a functionality, or those for which a name such as Autocast stands; empty for any other name."""
        self.discovered()
        return [row for row in self.functionalities if name in (row.name, row.family)]

    def _mask_of(self, key: str) -> int:
        if rows := self.rows_of(key):
            return sum(row.bit for row in rows)
        for row in self.functionalities:
            if row.prefix is not None and key.startswith(row.prefix) and key[len(row.prefix) :] in self.backend_rows:
                return row.bit | self.backend_bit(key[len(row.prefix) :])
        raise UniverseError(self.unknown_key(key))

    def unknown_key(self, key: str) -> str:
        """The error text for a key that does not exist, with the nearest name."""
        names = [*self.universe.runtime_keys, *self.universe.aliases, *(f.name for f in self.functionalities)]
        return f"unknown dispatch key {printed(key)}{near(key, names)}"

    def canonical(self, key: str) -> str:
        """The present name of a key at which kernels can be registered. Raises UniverseError for an unknown key."""
        key = OLD_NAMES.get(key, key)
        if not self.universe.is_key(key):
            raise UniverseError(self.unknown_key(key))
        return key


def _clashes(functionalities: Mapping[str, Functionality], backends: Iterable[str], known: Container[str]) -> dict[str, str]:
    """The rows of plugins that give a key of others: name -> why."""
    makers: dict[str, list[tuple[str, str]]] = {key: [("", "")] for key in (UNDEFINED, EXPLICIT, NON_FUNCTIONAL, IMPLICIT)}
    for row in (*STANDARD, *functionalities.values()):
        for key, backend in row.keys_of(backends).items():
            makers.setdefault(key, []).append((row.name, backend))
        if row.each_backend or row.name == AUTOGRAD:
            makers.setdefault(row.name, []).append((row.name, ""))  # the alias of all of them
    clashes = {}
    for key, pairs in makers.items():
        if len(pairs) > 1:
            own = [[name for name in pair if name in backends or name in functionalities] for pair in pairs]
            strange = [[name for name in pair if name not in known] for pair in own]
            clashes.update({name: f"its key {key} is the key of others too" for pair in strange for name in pair[:1]})
    return clashes


KEYS = KeySpace()


class DispatchKeySet(int):
    """A key set as users see it: an int of bits with methods to query, combine and print it.

    `keys` are bits, or names of keys. Dispatch itself uses plain ints.
    """

    def __new__(cls, keys: int | str | Iterable[str] = 0) -> DispatchKeySet:
        return int.__new__(cls, KEYS.mask(keys))

    def has(self, key: str) -> bool:
        """Whether a runtime key or functionality is in the set."""
        bits = KEYS.mask(key)
        return self & bits == bits

    def highest_priority(self) -> str:
        """The runtime key of highest rank, "Undefined" for an empty set."""
        return next(iter(self.keys()), UNDEFINED)

    def keys(self) -> list[str]:
        """The runtime keys, highest priority first."""
        return [key for key, _ in KEYS.active(self)]

    def add(self, keys: str | Iterable[str]) -> DispatchKeySet:
        """The set with these keys added."""
        return self | KEYS.mask(keys)

    def remove(self, keys: str | Iterable[str]) -> DispatchKeySet:
        """The set without these functionalities. Their backends stay."""
        return self & ~(KEYS.mask(keys) & ~KEYS.backend_mask)

    def __or__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) | int(other))

    def __and__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) & int(other))

    def __sub__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) & ~int(other))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(KEYS.names(self)) or 'empty'})"
