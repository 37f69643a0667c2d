"""Dispatch keys: the universe of functionalities and backends, their bits, and sets of keys.

The one idea: a bit is an *identity* (given once per name, never moved), a rank is a *position* in the universe of the
moment. Key sets are ints of bits; ranks are read only when a key set is resolved for the first time.

`Universe` is a frozen value (tests build others, PyTorch's included); `KEYS` is the live key space that plugins extend.
"""

from __future__ import annotations

from turnout.errors import UniverseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

UNDEFINED = "Undefined"
AUTOGRAD = "Autograd"
AUTOCAST = "Autocast"  # in the live universe the alias of every Autocast<B>, those of later backends too
EXPLICIT = "CompositeExplicitAutograd"
NON_FUNCTIONAL = "CompositeExplicitAutogradNonFunctional"
IMPLICIT = "CompositeImplicitAutograd"
IMPLICIT_NESTED = "CompositeImplicitAutogradNestedTensor"

# Aliases of the computed table's own rules; every other alias belongs to a functionality (rule 2.5).
TABLE_ALIASES = frozenset({AUTOGRAD, EXPLICIT, NON_FUNCTIONAL, IMPLICIT, IMPLICIT_NESTED})
OLD_NAMES = {"DefaultBackend": EXPLICIT, "Math": IMPLICIT}

TRACKED = 1  # the marker bit: the tensor requires a gradient


class Universe:
    """An ordered list of functionalities, lowest priority first, and a set of backends.

    `functionalities` are pairs (name, prefix): prefix None for one key of that name, otherwise one key per backend named
    prefix + backend. `aliases` maps an alias key to the runtime keys it covers, `backends_of` an autograd key to
    its backend keys; where left out they are derived as the standard universe has them.
    """

    __slots__ = ("aliases", "backends", "backends_of", "functionalities", "rank", "runtime_keys")

    functionalities: tuple[tuple[str, str | None], ...]
    backends: tuple[str, ...]
    runtime_keys: tuple[str, ...]
    rank: dict[str, int]
    aliases: dict[str, frozenset[str]]
    backends_of: dict[str, tuple[str, ...]]

    def __init__(
        self,
        functionalities: Iterable[tuple[str, str | None]],
        backends: Iterable[str],
        aliases: Mapping[str, Iterable[str]] | None = None,
        backends_of: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.functionalities = tuple((name, prefix) for name, prefix in functionalities)
        self.backends = tuple(backends)
        keys = [UNDEFINED]
        for name, prefix in self.functionalities:
            keys += [name] if prefix is None else [prefix + backend for backend in self.backends]
        self.runtime_keys = tuple(keys)
        self.rank = {key: i for i, key in enumerate(keys)}
        if len(self.rank) != len(keys):
            twice = sorted({key for key in keys if keys.count(key) > 1})
            raise UniverseError(f"two functionalities give the same runtime key: {', '.join(twice)}")
        if backends_of is None:
            backends_of = self._derived_backends_of()
        if aliases is None:
            aliases = self._derived_aliases()
        self.aliases = {alias: frozenset(covered) for alias, covered in aliases.items()}
        self.backends_of = {key: tuple(covered) for key, covered in backends_of.items()}
        for alias, covered in self.aliases.items():
            if alias in self.rank:
                raise UniverseError(f"a functionality gives the runtime key {alias}, which is the name of an alias key")
            unknown = sorted(covered - self.rank.keys())
            if unknown:
                raise UniverseError(f"alias {alias} covers unknown keys: {', '.join(unknown)}")

    def _per_backend(self, functionality: str) -> list[str]:
        for name, prefix in self.functionalities:
            if name == functionality and prefix is not None:
                return [prefix + backend for backend in self.backends]
        return []

    def _derived_backends_of(self) -> dict[str, list[str]]:
        covered: dict[str, list[str]] = {"AutogradOther": []} if "AutogradOther" in self.rank else {}
        for backend, key in zip(self.backends, self._per_backend(AUTOGRAD), strict=False):
            covered[key] = [backend]
        return covered

    def _derived_aliases(self) -> dict[str, list[str]]:
        autograd = self._per_backend(AUTOGRAD) + (["AutogradOther"] if "AutogradOther" in self.rank else [])
        backend_keys = self._per_backend("Dense")
        return {
            AUTOGRAD: autograd,
            EXPLICIT: backend_keys,
            NON_FUNCTIONAL: backend_keys,
            IMPLICIT: backend_keys + autograd,
        }

    def is_key(self, name: str) -> bool:
        """Whether `name` is a runtime key or an alias key of this universe."""
        return name in self.rank or name in self.aliases


class Functionality:
    """One row of the live universe and how its slots behave.

    prefix       None, or what stands before the backend's name in its keys
    opt_in       starts excluded; takes part only while the state includes `switch` (Autocast)
    optional     an untracked call passes over a missing slot (Autograd before its plugin is active)
    backend_key  its per-backend keys count as backend keys for the composite aliases
    """

    __slots__ = ("after", "backend_key", "before", "bit", "name", "opt_in", "optional", "prefix", "switch")

    def __init__(
        self,
        name: str,
        prefix: str | None = None,
        *,
        before: str | None = None,
        after: str | None = None,
        opt_in: bool = False,
        optional: bool = False,
        backend_key: bool = False,
    ) -> None:
        self.name = name
        self.prefix = prefix
        self.before = before
        self.after = after
        self.opt_in = opt_in
        self.optional = optional
        self.backend_key = backend_key
        self.bit = 0
        self.switch = 0


# The standard functionalities, low to high. Autocast<B> stands between Tracer and Batched, one for each backend.
STANDARD: tuple[Functionality, ...] = (
    Functionality("Dense", "", backend_key=True),
    Functionality("BackendSelect"),
    Functionality("Fake"),
    Functionality("Functionalize"),
    Functionality("Python"),
    Functionality("ADInplaceOrView"),
    Functionality("AutogradOther", optional=True),
    Functionality(AUTOGRAD, "Autograd", optional=True),
    Functionality("Tracer"),
    Functionality("Batched"),
    Functionality("BatchedMode"),
)
_AUTOCAST_AFTER = "Tracer"


def _backend_order(name: str) -> tuple[int, str]:
    """CPU lowest, Meta highest, the rest by name: never the order of installation."""
    return ({"CPU": 0, "Meta": 2}.get(name, 1), name)


class KeySpace:
    """The live universe: name <-> bit for the life of the process, and the functionalities and backends of the moment.

    Mutators are called under the registry's lock. `universe` is replaced, never changed, so readers need no lock.
    """

    def __init__(self, fixed: Universe | None = None) -> None:
        """The standard functionalities and no backend, or exactly a given universe, which then cannot be extended."""
        self._bits: dict[str, int] = {}
        self._next = 1  # bit 0 is TRACKED
        self._added: dict[str, Functionality] = {}
        self._functional_only: set[str] = set()
        self._fixed = fixed
        self.backends: tuple[str, ...] = () if fixed is None else fixed.backends
        self.aliases: dict[str, tuple[str, ...]] = {}
        if fixed is None:
            for functionality in STANDARD:
                functionality.bit = self.bit(functionality.name)
            self._rebuild()
        else:
            self._adopt([Functionality(name, prefix) for name, prefix in fixed.functionalities], fixed)

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

    def add_backend(self, name: str, *, functional_only: bool = False) -> None:
        """Add a backend and its Autocast functionality. Raises UniverseError when it is there already."""
        if name in self.backends:
            raise UniverseError(f"backend {name} exists already")
        self._change(backends=(*self.backends, name))
        if functional_only:
            self._functional_only.add(name)
            self._rebuild()

    def remove_backend(self, name: str) -> None:
        """Take a backend out; its bits stay reserved for its name."""
        self._functional_only.discard(name)
        self._change(backends=tuple(b for b in self.backends if b != name))

    def add_functionality(self, functionality: Functionality) -> None:
        """Place a functionality. Raises UniverseError for an unknown anchor, a cycle or a name that is taken."""
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
        """Take a functionality out. Raises UniverseError when another one is placed by it."""
        rest = {n: f for n, f in self._added.items() if n != name}
        leaning = [f.name for f in rest.values() if name in (f.before, f.after)]
        if leaning:
            raise UniverseError(f"functionality {name} is still the anchor of {', '.join(sorted(leaning))}")
        self._change(added=rest)

    def add_alias(self, alias: str, covered: Iterable[str]) -> None:
        """Declare an alias key of a functionality (rule 2.5 of the computed table)."""
        covered = tuple(covered)
        if alias in self.universe.aliases or alias in self.universe.rank:
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
        self, *, backends: tuple[str, ...] | None = None, added: dict[str, Functionality] | None = None
    ) -> None:
        """Apply a change whole or not at all."""
        old = self.backends, self._added
        self.backends = tuple(sorted(self.backends if backends is None else backends, key=_backend_order))
        self._added = self._added if added is None else added
        try:
            self._rebuild()
        except UniverseError:
            self.backends, self._added = old
            self._rebuild()
            raise

    def _rebuild(self) -> None:
        if self._fixed is not None:
            raise UniverseError("this key space is fixed: it was made from a universe")
        ordered = self._ordered()
        pairs = [(f.name, f.prefix) for f in ordered]
        plain = Universe(pairs, self.backends)
        aliases = {alias: set(covered) for alias, covered in plain.aliases.items()}
        for functionality in ordered:
            if functionality.backend_key and functionality.name != "Dense" and functionality.prefix is not None:
                keys = {functionality.prefix + backend for backend in self.backends}
                for alias in (EXPLICIT, NON_FUNCTIONAL, IMPLICIT):
                    aliases[alias] |= keys
                others = tuple(sorted(keys))
                plain.backends_of["AutogradOther"] = (*plain.backends_of.get("AutogradOther", ()), *others)
        for backend in self._functional_only:
            aliases[NON_FUNCTIONAL] = {k for k in aliases[NON_FUNCTIONAL] if not k.endswith(backend)}
        aliases[AUTOCAST] = {AUTOCAST + backend for backend in self.backends}
        aliases.update({alias: set(covered) for alias, covered in self.aliases.items()})
        self._adopt(ordered, Universe(pairs, self.backends, aliases, plain.backends_of))

    def _adopt(self, ordered: list[Functionality], universe: Universe) -> None:
        """Make a universe the present one."""
        for functionality in ordered:
            functionality.bit = self.bit(functionality.name)
            if functionality.opt_in:
                functionality.switch = self.switch_bit(functionality.name)
        self.universe = universe
        self.functionalities = tuple(ordered)
        self._descending = tuple(reversed(ordered))
        names = [f.name for f in ordered]
        at = names.index("ADInplaceOrView") if "ADInplaceOrView" in names else 0
        self._below_bookkeeping = frozenset(ordered[:at])
        self._backend_rank = tuple((b, self.backend_bit(b)) for b in reversed(self.backends))
        self.backend_mask = sum(bit for _, bit in self._backend_rank)

    def _ordered(self) -> list[Functionality]:
        """The standard list with Autocast<B> and everything added in its place, independent of the order of adding."""
        chain: list[Functionality] = []
        for functionality in STANDARD:
            chain.append(functionality)
            if functionality.name == _AUTOCAST_AFTER:
                chain += [Functionality(AUTOCAST + backend, opt_in=True) for backend in self.backends]
        return place(chain, self._added)

    def is_below_bookkeeping(self, functionality: Functionality) -> bool:
        """Whether a functionality has lower priority than ADInplaceOrView: its kernels must not record again."""
        return functionality in self._below_bookkeeping

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
        """The bits of every plain tensor of a backend: the backend, Dense, Autograd, ADInplaceOrView, its Autocast."""
        return (
            self.backend_bit(backend) | self.bit("Dense") | self.bit(AUTOGRAD) | self.bit("ADInplaceOrView")
            | self.bit(AUTOCAST + backend)
        )  # fmt: skip

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
        for functionality in self.functionalities:
            if functionality.name == key:
                return functionality.bit
            if functionality.prefix is not None and key.startswith(functionality.prefix):
                backend = key[len(functionality.prefix) :]
                if backend in self.backends:
                    return functionality.bit | self.backend_bit(backend)
        raise UniverseError(self.unknown_key(key))

    def unknown_key(self, key: str) -> str:
        """The text for a key that does not exist, with the nearest name."""
        from difflib import get_close_matches

        names = [*self.universe.runtime_keys, *self.universe.aliases, *(f.name for f in self.functionalities)]
        near = get_close_matches(key, names, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"unknown dispatch key {key!r}{hint}"

    def canonical(self, key: str) -> str:
        """The present name of a key that kernels can be registered at. Raises UniverseError for an unknown one."""
        key = OLD_NAMES.get(key, key)
        if not self.universe.is_key(key):
            raise UniverseError(self.unknown_key(key))
        return key


def place(chain: Sequence[Functionality], added: Mapping[str, Functionality]) -> list[Functionality]:
    """Put `added` into `chain` by their anchors; the result depends on names and anchors only.

    `after=X` stands directly above X, `before=X` directly below; several at one place are ordered by name, lowest first.
    With both, it is directly above `after`, and must then be below `before`.
    Raises UniverseError for an unknown anchor or a cycle.
    """
    order = list(chain)
    waiting = dict(sorted(added.items()))
    known = {f.name for f in chain} | set(waiting)
    for functionality in waiting.values():
        for word, anchor in (("before", functionality.before), ("after", functionality.after)):
            if anchor is not None and anchor not in known:
                raise UniverseError(
                    f"functionality {functionality.name} is placed {word} {anchor}, which does not exist; "
                    f"there are {', '.join(f.name for f in chain)}"
                )
    placed_at: dict[tuple[str, str], int] = {}
    while waiting:
        names = [f.name for f in order]
        ready = [f for f in waiting.values() if all(a is None or a in names for a in (f.before, f.after))]
        if not ready:
            raise UniverseError(f"functionalities are placed in a cycle: {', '.join(waiting)}")
        functionality = ready[0]
        side, anchor = ("after", functionality.after) if functionality.after else ("before", functionality.before)
        assert anchor is not None
        count = placed_at.get((side, anchor), 0)
        placed_at[side, anchor] = count + 1
        at = names.index(anchor) + (1 + count if side == "after" else 0)
        if functionality.before is not None and side == "after" and names.index(functionality.before) < at:
            raise UniverseError(
                f"functionality {functionality.name} cannot stand after {functionality.after} and before "
                f"{functionality.before}: {functionality.before} is the lower one"
            )
        order.insert(at, functionality)
        del waiting[functionality.name]
    return order


KEYS = KeySpace()


class DispatchKeySet(int):
    """A key set at the edges of the system: an int of bits that can be asked, combined and printed."""

    def __new__(cls, keys: int | str | Iterable[str] = 0) -> DispatchKeySet:
        return int.__new__(cls, KEYS.mask(keys))

    def has(self, key: str) -> bool:
        """Whether a runtime key or functionality is in the set."""
        bits = KEYS.mask(key)
        return self & bits == bits

    def highest_priority(self) -> str:
        """The runtime key of highest rank; "Undefined" for an empty set."""
        return next((key for key, _ in KEYS.active(self)), UNDEFINED)

    def keys(self) -> list[str]:
        """The runtime keys, highest priority first."""
        return [key for key, _ in KEYS.active(self)]

    def add(self, keys: str | Iterable[str]) -> DispatchKeySet:
        """A set with these keys as well."""
        return self | KEYS.mask(keys)

    def remove(self, keys: str | Iterable[str]) -> DispatchKeySet:
        """A set without these functionalities; their backends stay."""
        return self & ~(KEYS.mask(keys) & ~KEYS.backend_mask)

    def __or__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) | int(other))

    def __and__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) & int(other))

    def __sub__(self, other: int) -> DispatchKeySet:
        return int.__new__(DispatchKeySet, int(self) & ~int(other))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(KEYS.names(self)) or 'empty'})"
