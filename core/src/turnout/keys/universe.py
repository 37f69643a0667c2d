"""`Universe`: an ordered list of functionalities and a set of backends, as a frozen value; and the names of alias keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from turnout.errors import UniverseError

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

    `functionalities` are pairs (name, prefix): a prefix of None means one key of that name, any other one key per backend,
    named prefix + backend. `aliases` maps an alias key to the runtime keys that it covers, `backends_of` an autograd key to
    its backend keys. When they are omitted they are derived as in the standard universe.
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
                raise UniverseError(f"the runtime key {alias} of a functionality has the name of an alias key")
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
        return {AUTOGRAD: autograd, EXPLICIT: backend_keys, NON_FUNCTIONAL: backend_keys, IMPLICIT: backend_keys + autograd}

    def is_key(self, name: str) -> bool:
        """Whether `name` is a runtime key or an alias key of this universe."""
        return name in self.rank or name in self.aliases
