"""The documentation of operators: `docs/<family>.yaml`, beside the declarations of `native_functions.yaml`.

A file documents one family:

    arguments:              descriptions that hold for the family's arguments of these names
      dim: the dimension to reduce
    raises:                 errors of the family's operators: of all, of those with certain arguments, or of several tensors
      DTypeError: the reduction is not defined for the dtype
      DimError: {for: [dim], when: '`dim` is out of range'}
      ShapeError: {for: several tensors, when: the shapes do not broadcast}
    operators:
      amax:
        does: The largest elements along `dim`.
        arguments: {dim: ...}     where this operator's arguments mean something else
        raises: {ShapeError: ...} in place of the family's
        example: |
          >>> turnout.amax(turnout.tensor([1.0, 5.0]))
          tensor(5.)
        method: |                 where the method's example cannot be made from the function's
      special_erf: {alias: erf}

`docs/arguments.yaml` describes the arguments that mean the same everywhere. An in-place operator, `add_`, needs no entry: the one
of `add` says what it does. An entry for it holds what differs, such as an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnout.errors import SchemaError

FOLDER = Path(__file__).with_name("docs")
_FIELDS = {"does", "arguments", "raises", "example", "method", "alias"}


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written about one operator. An empty text means that nothing is written here."""

    name: str
    family: str
    does: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    raises: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    method: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """What holds for the operators of one file, unless an entry says otherwise."""

    arguments: Mapping[str, str]
    raises: Mapping[str, str | Mapping[str, Any]]

    def raised(self, operator: str, arguments: Set[str], tensors: int) -> Iterator[tuple[str, str]]:
        """The errors of an operator that has these arguments, among them so many tensors."""
        for error, when in self.raises.items():
            if isinstance(when, str):
                yield error, when
                continue
            several = when["for"] == "several tensors"
            if tensors > 1 if several else {operator, *arguments} & set(when["for"]):
                yield error, when["when"]


class Documentation:
    """All entries, by operator; the families, by name; the descriptions of arguments that all families share."""

    def __init__(self, entries: Mapping[str, Entry], families: Mapping[str, Family], shared: Mapping[str, str]) -> None:
        self.entries = entries
        self.families = families
        self.shared = shared

    def find(self, operator: str) -> Entry | None:
        """The entry that says what an operator does: its own, that of the operator it is another name of, or that of which it is
        the in-place version."""
        entry = self.entries.get(operator)
        if entry is not None and entry.alias:
            return self.find(entry.alias)
        if (entry is None or not entry.does) and operator.endswith("_"):
            return self.find(operator[:-1])
        return entry

    def argument(self, operator: str, name: str) -> str:
        """The description of an operator's argument; "" if there is none."""
        for each in self._entries(operator):
            for described in (each.arguments, self.families[each.family].arguments):
                if name in described:
                    return described[name]
        return self.shared.get(name, "")

    def raises(self, operator: str, arguments: Set[str], tensors: int) -> Mapping[str, str]:
        """Error class -> when an operator raises it that has these arguments, among them so many tensors."""
        for each in self._entries(operator):
            if each.raises:
                return each.raises
        entry = self.find(operator)
        return {} if entry is None else dict(self.families[entry.family].raised(entry.name, arguments, tensors))

    def _entries(self, operator: str) -> Iterator[Entry]:
        """The entries that describe an operator, nearest first."""
        own = self.entries.get(operator)
        if own is not None:
            yield own
        found = self.find(operator)
        if found is not None and found is not own:
            yield found


def read(folder: Path = FOLDER) -> Documentation:
    """Read all files of a folder. Raises SchemaError for an unknown field, for two entries of one operator, and for an entry that
    neither says what the operator does nor refers to another."""
    entries: dict[str, Entry] = {}
    families: dict[str, Family] = {}
    shared: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        given = _load(path)
        if path.name == "arguments.yaml":
            shared = given
            continue
        families[path.stem] = Family(given.get("arguments", {}), given.get("raises", {}))
        for name, written in given["operators"].items():
            unknown = set(written) - _FIELDS
            if unknown:
                raise SchemaError(f"{path.name}: {name}: unknown field {', '.join(sorted(unknown))}; known: {sorted(_FIELDS)}")
            if name in entries:
                raise SchemaError(f"{name} is documented in {entries[name].family}.yaml and in {path.name}; keep one entry")
            if not written.get("does") and not written.get("alias") and not name.endswith("_"):
                raise SchemaError(f"{path.name}: {name}: write what it does ('does'), or what it is another name of ('alias')")
            entries[name] = Entry(name, path.stem, **written)
    return Documentation(entries, families, shared)


def _load(path: Path) -> dict[str, Any]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 10 times as fast, where it was compiled
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
