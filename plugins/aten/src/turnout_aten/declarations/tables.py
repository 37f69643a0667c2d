"""The generated tables of operators, as objects: `Table`, with an `Overload` per row.

A row holds the declaration of an operator in a form that does not need PyYAML: its schema, its public function, its kernels.
Schemas are parsed and operators defined only on request.
"""

from __future__ import annotations

from turnout.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from turnout.schema import FunctionSchema

    # Schema; python_module of the public function, None without one; whether it is a method; tags; whether devices are
    # checked; whether its device is made current; (dispatch key, what runs) of each kernel that the yaml names.
    Row = tuple[str, str | None, bool, tuple[str, ...], bool, bool, tuple[tuple[str, str], ...]]


class Overload:
    """One row of a table.

    `cache` is the operator's dict from key set to callable. It is made here because compiled functions refer to it, and it stays
    the same when the operator is undone and defined again.
    """

    __slots__ = (
        "_schema", "cache", "device_check", "device_guard", "is_method", "kernels", "module", "namespace",
        "qualified_name", "schema_text", "tags",
    )  # fmt: skip

    def __init__(self, row: Row) -> None:
        self.schema_text, self.module, self.is_method, self.tags, self.device_check, self.device_guard, self.kernels = row
        self.qualified_name = self.schema_text[: self.schema_text.index("(")]
        self.namespace = self.qualified_name.partition("::")[0]
        self.cache: dict[int, Callable[..., Any]] = {}
        self._schema: FunctionSchema | None = None

    @property
    def schema(self) -> FunctionSchema:
        """The parsed schema. The operator need not be defined."""
        if self._schema is None:
            from turnout.schema import FunctionSchema

            self._schema = FunctionSchema.parse(self.schema_text)
        return self._schema

    @property
    def stub(self) -> Callable[..., Any]:
        """The operator's call stub. Activates the plugin of its namespace if the operator is not defined yet.

        Raises UnknownOperatorError if no plugin defines it.
        """
        op = REGISTRY.get(self.qualified_name)
        if op is None or not op.is_defined:
            from turnout import plugins

            plugins.require_namespace(self.namespace)
            op = REGISTRY.find(self.qualified_name)
        return op.stub

    def __repr__(self) -> str:
        return f"<Overload {self.qualified_name}>"


class Table:
    """The overloads of a generated table by packet: `rows` is packet -> one row for each overload."""

    def __init__(self, rows: Mapping[str, tuple[Row, ...]]) -> None:
        self._rows = rows
        self._made: dict[str, tuple[Overload, ...]] = {}
        self._names: dict[str, tuple[str, ...]] = {}

    def overloads(self, packet: str) -> tuple[Overload, ...]:
        """The overloads of one name; empty for an unknown name. Every call, in every thread, returns the same objects."""
        made = self._made.get(packet)
        if made is None:
            rows = self._rows.get(packet)
            if rows is None:
                return ()
            made = self._made.setdefault(packet, tuple([Overload(row) for row in rows]))
        return made

    def __iter__(self) -> Any:
        return iter(self._rows)

    def find(self, identifier: str) -> Overload | None:
        """The overload whose stub is called `identifier`: aten::add.Tensor for `add__Tensor`."""
        at = len(identifier)
        while at >= 0:
            name, overload = identifier[:at], identifier[at + 2 :]
            for found in self.overloads(name):
                if found.qualified_name.partition("::")[2] == (f"{name}.{overload}" if overload else name):
                    return found
            at = identifier.rfind("__", 0, at + 1)
        return None

    def named(self, qualified_name: str) -> Overload | None:
        """The overload aten::add.Tensor."""
        packet = qualified_name.partition("::")[2].partition(".")[0]
        return next((found for found in self.overloads(packet) if found.qualified_name == qualified_name), None)

    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Packet -> the names of its overloads, of the whole table."""
        if not self._names:
            heads = {name: [row[0][: row[0].index("(")] for row in rows] for name, rows in self._rows.items()}
            self._names = {name: tuple([head.partition(".")[2] for head in own]) for name, own in heads.items()}
        return self._names


_STANDARD: dict[str, Table] = {}


def standard() -> Table:
    """The table of the standard operators. The first use loads it, which takes 0.6 ms for 1,926 rows."""
    found = _STANDARD.get("aten")
    if found is None:
        from turnout_aten.generated.rows import OPERATORS

        found = _STANDARD.setdefault("aten", Table(OPERATORS))
    return found
