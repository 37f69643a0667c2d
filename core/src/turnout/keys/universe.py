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

    def __init__(
        self, functionalities: Iterable[tuple[str, str | None]], backends: Iterable[str],
        aliases: Mapping[str, Iterable[str]] | None = None, backends_of: Mapping[str, Iterable[str]] | None = None,
    ) -> None:  # fmt: skip
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
        derived, derived_backends = self._derived()
        self.aliases = {alias: frozenset(covered) for alias, covered in (derived if aliases is None else aliases).items()}
        given = derived_backends if backends_of is None else backends_of
        self.backends_of = {key: tuple(covered) for key, covered in given.items()}
        for alias, covered in self.aliases.items():
            if alias in self.rank:
                raise UniverseError(f"the runtime key {alias} of a functionality has the name of an alias key")
            if unknown := sorted(covered - self.rank.keys()):
                raise UniverseError(f"alias {alias} covers unknown keys: {', '.join(unknown)}")

    def _derived(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """The aliases of the standard universe, and its backend keys of each autograd key."""
        per_backend = {name: [prefix + b for b in self.backends] for name, prefix in self.functionalities if prefix is not None}
        dense, own, other = per_backend.get("Dense", []), per_backend.get(AUTOGRAD, []), self.rank.keys() & {"AutogradOther"}
        autograd = [*own, *other]
        aliases = {AUTOGRAD: autograd, EXPLICIT: dense, NON_FUNCTIONAL: dense, IMPLICIT: dense + autograd}
        backends_of: dict[str, list[str]] = {key: [] for key in other}
        return aliases, backends_of | {key: [backend] for backend, key in zip(self.backends, own, strict=False)}

    def is_key(self, name: str) -> bool:
        """Whether `name` is a runtime key or an alias key of this universe."""
        return name in self.rank or name in self.aliases
