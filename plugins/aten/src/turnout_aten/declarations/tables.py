"""The generated tables of operators, as objects: `Table`, with an `Overload` per row.

A row holds the declaration of an operator in a form that does not need PyYAML: its schema, its public function, its kernels.
Schemas are parsed and operators defined only on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from turnout.config.tuples import NamedTuple
from turnout.registry import REGISTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout.schema import FunctionSchema

END = "\0"  # between the rows of a packet
# The tag of operators whose result shares memory but is not a view for gradients (detach).
SHARES_STORAGE = "shares_storage"
# The tag of operators that turn their first argument into another view of its memory (t_).
INPLACE_VIEW = "inplace_view"
# The tag of operators that give their first argument another shape and, if needed, more memory (resize_).
RESIZES = "resizes"
# The tag of operators that draw random numbers.
SEEDED = "nondeterministic_seeded"
# The tags of operators whose result has a shape that depends on values (nonzero), or is a number that does (item).
DYNAMIC_SHAPE, DATA_DEPENDENT = "dynamic_output_shape", "data_dependent_output"
# The tags of operators that compute each element from those in its place, and of those that compute one of several.
POINTWISE, REDUCTION = "pointwise", "reduction"
# The tags of operators that take all values of tensors whose shapes and dtypes they take, and of those that raise for some. Views
# and those tagged `pointwise` or `reduction` are total without saying so, unless they say `partial`.
TOTAL, PARTIAL = "total", "partial"
# The tag of operators that give finite numbers for finite real ones, which the setting `debug.kernels` checks.
FINITE = "finite"
# The tag of variants that autogen makes.
GENERATED = "generated"


class Row(NamedTuple):
    """What a table says of an overload.

    module        python_module of its public function, None without one
    device_check  whether devices are checked
    device_guard  whether its device is made current
    kernels       those that the yaml names: dispatch key and what runs. `module:function` is imported when the kernel is first
                  needed; `autogen:KIND:OPERATOR` calls another variant
    called        what a backend's row for it is called with, a text of `turnout_aten.kernels.contract`: rows are checked without
                  parsing schemas
    """

    schema: str
    module: str | None
    is_method: bool
    tags: tuple[str, ...]
    device_check: bool
    device_guard: bool
    kernels: tuple[tuple[str, str], ...]
    called: str

    def text(self) -> str:
        """The row as it stands in a generated file. The schema is the last field, so it may have any character."""
        flags = (word for word in ("is_method", "device_check", "device_guard") if getattr(self, word))
        module = "-" if self.module is None else self.module
        kernels = " ".join(f"{key}={what}" for key, what in self.kernels)
        return "\t".join((module, " ".join(flags), " ".join(self.tags), kernels, self.called, self.schema))

    @staticmethod
    def read(text: str) -> Row:
        """The row of such a text."""
        module, flags, tags, kernels, called, schema = text.split("\t", 5)
        pairs = [each.partition("=") for each in kernels.split()]
        return Row(
            schema, None if module == "-" else module, "is_method" in flags, tuple(tags.split()), "device_check" in flags,
            "device_guard" in flags, tuple([(key, what) for key, _, what in pairs]), called,
        )  # fmt: skip


class Overload:
    """One row of a table.

    `cache` is the operator's dict from key set to callable. It is made here because compiled functions refer to it, and it stays
    the same when the operator is undone and defined again.
    """

    __slots__ = (
        "_schema", "cache", "called", "device_check", "device_guard", "is_method", "kernels", "module", "namespace",
        "qualified_name", "schema_text", "tags",
    )  # fmt: skip

    def __init__(self, row: Row) -> None:
        self.schema_text, self.module, self.is_method, self.tags = row[:4]
        self.device_check, self.device_guard, self.kernels, self.called = row[4:]
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


def packet_of(qualified_name: str) -> str:
    """The packet of aten::add.Tensor, which is add."""
    return qualified_name.partition("::")[2].partition(".")[0]


class Table:
    """The overloads of a generated table by packet: `rows` is packet -> the texts of its rows, with `END` between them."""

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._rows = rows
        self._made: dict[str, tuple[Overload, ...]] = {}

    def overloads(self, packet: str) -> tuple[Overload, ...]:
        """The overloads of one name; empty for an unknown name. Every call, in every thread, returns the same objects."""
        made = self._made.get(packet)
        if made is None:
            rows = self._rows.get(packet)
            if rows is None:
                return ()
            made = self._made.setdefault(packet, tuple([Overload(Row.read(row)) for row in rows.split(END)]))
        return made

    def __iter__(self) -> Iterator[str]:
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
        return next(
            (found for found in self.overloads(packet_of(qualified_name)) if found.qualified_name == qualified_name), None
        )

    def knows(self, qualified_name: str) -> bool:
        """Whether the table has the overload aten::add.Tensor. No row is read for it."""
        return f"\t{qualified_name}(" in self._rows.get(packet_of(qualified_name), "")


_STANDARD: dict[str, Table] = {}


def standard() -> Table:
    """The table of the standard operators, a text that the first use loads."""
    found = _STANDARD.get("aten")
    if found is None:
        from turnout_aten.generated.rows import OPERATORS

        found = _STANDARD.setdefault("aten", Table(OPERATORS))
    return found
