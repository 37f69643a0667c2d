"""`KeySpace`: names and bits for the life of the process, and the functionalities and backends of the moment."""

from __future__ import annotations

from turnout.errors import UniverseError
from turnout.errors.layout import near
from turnout.keys.rows import STANDARD, BackendRow, Functionality
from turnout.keys.universe import (
    EXPLICIT,
    IMPLICIT,
    NON_FUNCTIONAL,
    OLD_NAMES,
    TRACKED,
    Universe,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


class KeySpace:
    """The live universe: name <-> bit for the life of the process, and the functionalities and backends of the moment.

    Rows come from three sources: the standard ones, those of the installed plugins' manifests (`set_installed`), and those that
    a library adds while it lives. Mutators are called under the registry's lock. `universe` is replaced, never changed, so
    readers need no lock.
    """

    def __init__(self, fixed: Universe | None = None) -> None:
        """The standard functionalities and no backend, or exactly a given universe, which then cannot be extended."""
        self._bits: dict[str, int] = {}
        self._next = 1  # bit 0 is TRACKED
        self._added: dict[str, Functionality] = {}
        self._installed: dict[str, Functionality] = {}
        self._added_backends: dict[str, BackendRow] = {}
        self._installed_backends: dict[str, BackendRow] = {}
        self._fixed = fixed
        self._discover: Callable[[], object] | None = None
        self.aliases: dict[str, tuple[str, ...]] = {}
        if fixed is None:
            for row in STANDARD:
                if not row.each_backend:
                    row.bit = self.bit(row.name)
            self._rebuild()
        else:
            self.backend_rows = {name: BackendRow(name) for name in fixed.backends}
            standard = {row.name: row for row in STANDARD if row.guards_below}
            rows = [
                Functionality(
                    name,
                    prefix,
                    guards_below=name in standard,
                    on_tensors=name in standard and standard[name].on_tensors,
                )
                for name, prefix in fixed.functionalities
            ]
            self._adopt(rows, fixed)

    # ---- what is installed

    def discover_with(self, discover: Callable[[], object]) -> None:
        """Before the universe is looked at for the first time, call `discover`, which calls `set_installed`."""
        self._discover = discover

    def discovered(self) -> None:
        """Make sure that the rows of installed plugins are there."""
        if self._discover is not None:
            self._discover()

    @property
    def universe(self) -> Universe:
        """The functionalities and backends of the moment, those of installed plugins included."""
        if self._discover is not None:
            self._discover()
        return self._universe

    def set_installed(self, functionalities: Iterable[Functionality], backends: Iterable[BackendRow]) -> dict[str, str]:
        """Replace the rows of installed plugins. Returns the functionalities without a place, name -> why; they are left out."""
        self._installed_backends = {row.name: row for row in backends}
        self._sort_backends()  # a functionality may be placed by one that stands for a backend
        wanted = {row.name: row for row in functionalities}
        _, problems = place(self._standard(), {**self._added, **wanted})
        self._installed = {name: row for name, row in wanted.items() if name not in problems}
        self._discover = None
        self._rebuild()
        return problems

    def is_installed_backend(self, name: str) -> bool:
        """Whether an installed plugin's manifest has brought the backend's row."""
        return name in self._installed_backends

    # ---- bits

    def bit(self, name: str) -> int:
        """The bit of a functionality or `backend:NAME`, given out at first sight and kept for good."""
        found = self._bits.get(name)
        if found is None:
            found = self._bits[name] = 1 << self._next
            self._next += 1
        return found

    def backend_bit(self, backend: str) -> int:
        """The identity bit of a backend, present or not."""
        return self.bit("backend:" + backend)

    def switch_bit(self, functionality: str) -> int:
        """The bit that switches an opt-in functionality on where the state includes it; its identity, present or not."""
        return self.bit("switch:" + functionality)

    # ---- changes

    def add_backend(self, row: BackendRow) -> None:
        """Add a backend. Raises UniverseError when it is there already."""
        self.discovered()
        if row.name in self.backend_rows:
            raise UniverseError(f"backend {row.name} exists already")
        self._change(backends={**self._added_backends, row.name: row})

    def remove_backend(self, name: str) -> None:
        """Take out a backend that was added; its bits stay reserved for its name."""
        self._change(backends={n: row for n, row in self._added_backends.items() if n != name})

    def add_functionality(self, functionality: Functionality) -> None:
        """Place a functionality. Raises UniverseError for an unknown anchor, a cycle or a name that is taken."""
        self.discovered()
        name = functionality.name
        if name in self._added or any(f.name == name for f in self.functionalities):
            raise UniverseError(f"functionality {name} exists already")
        if functionality.before is None and functionality.after is None:
            raise UniverseError(
                f"functionality {name} needs a place: before= or after= a functionality of the list, "
                "which goes from lowest to highest priority"
            )
        self._change(added={**self._added, name: functionality})

    def remove_functionality(self, name: str) -> None:
        """Take out a functionality that was added. Raises UniverseError when another one is placed by it."""
        rest = {n: f for n, f in self._added.items() if n != name}
        leaning = [f.name for f in rest.values() if name in (f.before, f.after)]
        if leaning:
            raise UniverseError(f"functionality {name} is still the anchor of {', '.join(sorted(leaning))}")
        self._change(added=rest)

    def add_alias(self, alias: str, covered: Iterable[str]) -> None:
        """Declare an alias key of a functionality (rule 2.5 of the computed table)."""
        covered = tuple(covered)
        universe = self.universe
        if alias in universe.aliases or alias in universe.rank:
            raise UniverseError(f"{alias} is a key already")
        self.aliases[alias] = covered
        try:
            self._rebuild()
        except UniverseError:
            del self.aliases[alias]
            self._rebuild()
            raise

    def remove_alias(self, alias: str) -> None:
        """Take an alias of a functionality back."""
        self.aliases.pop(alias, None)
        self._rebuild()

    def _change(
        self, *, backends: dict[str, BackendRow] | None = None, added: dict[str, Functionality] | None = None
    ) -> None:
        """Apply a change whole or not at all."""
        old = self._added_backends, self._added
        self._added_backends = self._added_backends if backends is None else backends
        self._added = self._added if added is None else added
        try:
            self._rebuild()
        except UniverseError:
            self._added_backends, self._added = old
            self._rebuild()
            raise

    def _rebuild(self) -> None:
        if self._fixed is not None:
            raise UniverseError("this key space is fixed: it was made from a universe")
        self._sort_backends()
        ordered, problems = place(self._standard(), {**self._added, **self._installed})
        for problem in problems.values():
            raise UniverseError(problem)
        pairs = [(f.name, f.prefix) for f in ordered]
        backends = tuple(self.backend_rows)
        plain = Universe(pairs, backends)
        aliases = {alias: set(covered) for alias, covered in plain.aliases.items()}
        for functionality in ordered:
            if functionality.backend_key and functionality.prefix:  # Dense, whose prefix is "", is there already
                keys = {functionality.prefix + backend for backend in backends}
                for alias in (EXPLICIT, NON_FUNCTIONAL, IMPLICIT):
                    aliases[alias] |= keys
                others = tuple(sorted(keys))
                plain.backends_of["AutogradOther"] = (*plain.backends_of.get("AutogradOther", ()), *others)
        for row in self.backend_rows.values():
            if row.functional_only:
                aliases[NON_FUNCTIONAL] = {key for key in aliases[NON_FUNCTIONAL] if not key.endswith(row.name)}
        for standard in STANDARD:
            if standard.each_backend:
                aliases[standard.name] = {standard.name + backend for backend in backends}
        aliases.update({alias: set(covered) for alias, covered in self.aliases.items()})
        self._adopt(ordered, Universe(pairs, backends, aliases, plain.backends_of))

    def _sort_backends(self) -> None:
        rows = {**self._added_backends, **self._installed_backends}
        self.backend_rows = {row.name: row for row in sorted(rows.values(), key=lambda row: row.order)}

    def _adopt(self, ordered: list[Functionality], universe: Universe) -> None:
        """Make a universe the present one."""
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
        self._backend_rank = tuple((b, self.backend_bit(b)) for b in reversed(self.backend_rows))
        self.backend_mask = sum(bit for _, bit in self._backend_rank)

    def _standard(self) -> list[Functionality]:
        """The standard list, rows with `each_backend` replaced by one for each backend."""
        chain: list[Functionality] = []
        for row in STANDARD:
            chain += [row.of(backend) for backend in self.backend_rows] if row.each_backend else [row]
        return chain

    def is_guarded(self, functionality: Functionality) -> bool:
        """Whether it stands below all functionalities that guard what is below: its kernels must not reach them again."""
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
            if not ks & functionality.bit or (functionality.opt_in and not ks & functionality.switch):
                continue
            if functionality.prefix is None:
                yield functionality.name, functionality
            elif backend is not None:
                yield functionality.prefix + backend, functionality

    def backends_in(self, ks: int) -> list[str]:
        """The backends whose bit is in a key set, highest rank first."""
        return [name for name, bit in self._backend_rank if ks & bit]

    def names(self, ks: int) -> list[str]:
        """All that a key set holds, readable: runtime keys, then backends that no per-backend functionality goes with."""
        found = [key for key, _ in self.active(ks)]
        for functionality in self.functionalities:
            if functionality.opt_in and ks & functionality.bit and not ks & functionality.switch:
                found.append(functionality.name + " (off)")
        if ks & TRACKED:
            found.append("tracked")
        return found

    def tensor_bits(self, backend: str) -> int:
        """The bits of every plain tensor of a backend: the backend's own, and those of the rows with `on_tensors`."""
        bits = self.backend_bit(backend)
        for row in STANDARD:
            if row.on_tensors:
                bits |= self.bit(row.name + backend if row.each_backend else row.name)
        return bits

    def mask(self, keys: str | Iterable[str] | int) -> int:
        """The functionality bits of some keys, for include and exclude masks.

        Takes names of functionalities, of runtime keys, or of the alias Autograd; a key set int is passed through. A
        per-backend key such as AutogradCPU stands for its functionality and its backend. Unknown names raise UniverseError.
        """
        if isinstance(keys, int):
            return int(keys)
        if isinstance(keys, str):
            keys = (keys,)
        bits = 0
        for key in keys:
            bits |= self._mask_of(key)
        return bits

    def _mask_of(self, key: str) -> int:
        self.discovered()
        for functionality in self.functionalities:
            if functionality.name == key:
                return functionality.bit
            if functionality.prefix is not None and key.startswith(functionality.prefix):
                backend = key[len(functionality.prefix) :]
                if backend in self.backend_rows:
                    return functionality.bit | self.backend_bit(backend)
        raise UniverseError(self.unknown_key(key))

    def unknown_key(self, key: str) -> str:
        """The text for a key that does not exist, with the nearest name."""
        names = [*self.universe.runtime_keys, *self.universe.aliases, *(f.name for f in self.functionalities)]
        return f"unknown dispatch key {key!r}{near(key, names)}"

    def canonical(self, key: str) -> str:
        """The present name of a key that kernels can be registered at. Raises UniverseError for an unknown one."""
        key = OLD_NAMES.get(key, key)
        if not self.universe.is_key(key):
            raise UniverseError(self.unknown_key(key))
        return key


def place(
    chain: Sequence[Functionality], added: Mapping[str, Functionality]
) -> tuple[list[Functionality], dict[str, str]]:
    """`added` put into `chain` by their anchors, and those that have no place: name -> why.

    The result depends on names and anchors only. `after=X` stands directly above X, `before=X` directly below; several at one
    place are ordered by name, lowest first. With both, it is directly above `after`, and must then be below `before`.
    """
    order = list(chain)
    waiting = dict(sorted(added.items()))
    problems = _without_anchor(chain, waiting)
    placed_at: dict[tuple[str, str], int] = {}
    while waiting:
        names = [f.name for f in order]
        ready = [f for f in waiting.values() if all(a is None or a in names for a in (f.before, f.after))]
        if not ready:
            text = f"functionalities are placed in a cycle: {', '.join(waiting)}"
            return order, {**problems, **dict.fromkeys(waiting, text)}
        functionality = ready[0]
        del waiting[functionality.name]
        side, anchor = ("after", functionality.after) if functionality.after else ("before", functionality.before)
        assert anchor is not None
        count = placed_at.get((side, anchor), 0)
        placed_at[side, anchor] = count + 1
        at = names.index(anchor) + (1 + count if side == "after" else 0)
        if functionality.before is not None and side == "after" and names.index(functionality.before) < at:
            problems[functionality.name] = (
                f"functionality {functionality.name} cannot stand after {functionality.after} and before "
                f"{functionality.before}: {functionality.before} is the lower one"
            )
            problems.update(_without_anchor(order, waiting))
            continue
        order.insert(at, functionality)
    return order, problems


def _without_anchor(chain: Sequence[Functionality], waiting: dict[str, Functionality]) -> dict[str, str]:
    """Take out of `waiting` what is placed by something that does not exist; name -> why."""
    problems: dict[str, str] = {}
    while True:
        known = {f.name for f in chain} | waiting.keys()
        for functionality in list(waiting.values()):
            for word, anchor in (("before", functionality.before), ("after", functionality.after)):
                if anchor is not None and anchor not in known and functionality.name in waiting:
                    del waiting[functionality.name]
                    problems[functionality.name] = (
                        f"functionality {functionality.name} is placed {word} {anchor}, which does not exist; "
                        f"there are {', '.join(f.name for f in chain)}"
                    )
        if known == {f.name for f in chain} | waiting.keys():
            return problems


KEYS = KeySpace()
