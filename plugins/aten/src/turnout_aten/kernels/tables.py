"""Registration of a backend's table of array kernels.

The left side names an operator; the right side is a plain function on arrays, or a `Row` with options. The row of a structured
out operator serves all variants that share its shape function: functional, in-place, out, and overloads that delegate to it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import turnout.schema  # noqa: F401 - rows are checked under the lock, where nothing may be imported
from turnout import plugins
from turnout.errors import RegistrationError
from turnout.operators.kernels import ARRAY, Kernel
from turnout.registry import REGISTRY
from turnout_aten.declarations.tables import standard
from turnout_aten.errors import backends as texts
from turnout_aten.errors import rows as errors
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.contract import misfit, row_signature
from turnout_aten.kernels.functional import functional
from turnout_aten.kernels.inplace import inplace
from turnout_aten.kernels.outputs import out
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.rules import ruled
from turnout_aten.kernels.standing import does
from turnout_aten.kernels.structured import Structured
from turnout_aten.kernels.unstructured import finished, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from turnout.operators import Operator
    from turnout.registry import Registrations
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]

# The kind of a variant -> what makes its wrapper.
VARIANTS = {"functional": functional, "inplace": inplace, "out": out}


def structured(kind: str, s: Structured, backend: TensorBackend, row: Row) -> Call:
    """The wrapper of a variant of an operator with a shape function."""
    return VARIANTS[kind](s, backend, ruled(s.op, backend, row, s))


def register_kernels(
    library: Registrations, backend: TensorBackend, table: Mapping[str, Any], *, namespace: str = "aten"
) -> None:
    """Register a backend's table at its key.

    A row is called with all arguments by position, the outputs last. One RegistrationError reports all rows that name no operator
    or cannot be called so, before anything is registered. Another is about a backend whose row and class disagree about
    whether its arrays can be written.
    """
    if library.registry.keys.backend_rows[backend.name].functional_only is not backend.is_functional:
        text = texts.not_declared_functional if backend.is_functional else texts.not_functional
        raise RegistrationError(text(library.origin, type(backend).__name__, backend.name))
    rows = checked_rows(library, backend.name, table, namespace)

    def kernel(variant: str, name: str) -> Kernel:
        return Kernel(rows[name].fn, ARRAY, library=library, binder=binder_of(variant, name, rows[name]))

    library.impl_table(backend.name, served_by(rows), kernel)
    if namespace == "aten":
        plugins.require_namespace(namespace)  # kernels of other packages for this backend are there from its first use on


def checked_rows(library: Registrations, backend: str, table: Mapping[str, Any], namespace: str) -> dict[str, Row]:
    """Qualified name -> row. Raises RegistrationError for all rows that name no operator or cannot be called."""
    rows = {f"{namespace}::{name}" if "::" not in name else name: row for name, row in table.items()}
    unknown = [name for name in rows if not REGISTRY.knows(name)]
    if len(unknown) == len(rows) and rows:
        raise RegistrationError(
            f"{library.origin}: no operator of namespace {namespace!r} is defined yet\n"
            f"  to fix  name the plugin that defines them in the manifest of {library.name}: requires_plugins = [...]"
        )
    if unknown:
        raise RegistrationError(f"{library.origin}: the table of {backend} names no operator: {', '.join(unknown)}")
    made = {name: value if isinstance(value, Row) else Row(value) for name, value in rows.items()}
    problems = [(name, fn, takes, given) for name, row in made.items() for fn, takes, given in _misfits(name, row)]
    if problems:
        raise RegistrationError(errors.not_callable_so(library.origin, backend, problems))
    unfit = [(name, problem) for name, row in made.items() if (problem := row.problem(called_with(name)[0]))]
    if unfit:
        raise RegistrationError(errors.options_unfit(library.origin, backend, unfit))
    return made


def served_by(rows: Iterable[str]) -> dict[str, str]:
    """The operators that rows serve: each with the name of its row."""
    return {variant: name for name in rows for variant in (STRUCTURED[name][0] if name in STRUCTURED else (name,))}


def binder_of(variant: str, name: str, row: Row) -> StructuredBinder | PlainBinder:
    """What binds the row of this name to one of the operators that it serves."""
    if name not in STRUCTURED:
        return PlainBinder(row)
    served, precomputed, *_ = STRUCTURED[name]
    return StructuredBinder(row, served[variant], name, precomputed)


def _misfits(name: str, row: Row) -> Iterator[tuple[Call, str, tuple[str, ...]]]:
    """The functions of a row that cannot be called, with what they take and what they are called with."""
    given, outputs, required = called_with(name)
    inputs = len(given) - outputs
    takes = misfit(row.fn, [len(given), inputs] if row.allocates else [len(given)])
    if takes:
        yield row.fn, takes, given
    simple = row.sizes.simple
    if simple is not None and misfit(simple, [required]):
        yield simple, misfit(simple, [required]), given[:required]


def called_with(name: str) -> tuple[tuple[str, ...], int, int]:
    """The names of what an operator's row is called with, how many are outputs, and how many inputs have no default."""
    if name in STRUCTURED:
        return STRUCTURED[name][2]
    overload = standard().named(name)  # this does not define the operator
    return row_signature(REGISTRY.find(name).schema if overload is None else overload.schema, {})


def inputs_of(name: str) -> int:
    """How many inputs the row of an operator gets, before the outputs."""
    given, outputs, _ = called_with(name)
    return len(given) - outputs


class StructuredBinder:
    """Binds a row to one variant of a structured operator."""

    __slots__ = ("group", "kind", "precomputed", "row")

    def __init__(self, row: Row, kind: str, group: str, precomputed: Mapping[str, Any]) -> None:
        self.row, self.kind, self.group, self.precomputed = row, kind, group, precomputed

    def __call__(self, op: Operator, kernel: Kernel, key: str) -> Call:
        facts = Structured(op, shape_function(self.group), self.precomputed)
        return does(self.row.move or "row", structured(self.kind, facts, backend_at(op, key), self.row))


class PlainBinder:
    """Binds a row to an operator without a shape function."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row

    def __call__(self, op: Operator, kernel: Kernel, key: str) -> Call:
        backend = backend_at(op, key)
        return finished(op, backend, plain(op, backend, self.row.fn, row=self.row))


def backend_at(op: Operator, key: str) -> TensorBackend:
    """The backend with this key, which has tables of rows only if it holds tensors."""
    backend: Any = op.registry.backends[key]
    return backend


def shape_function(group: str) -> Call:
    """The shape function of a standard structured operator, by its out variant's name."""
    family = import_module(f"turnout_aten.shapes.{STRUCTURED[group][3]}")
    return family.SHAPES[group.removeprefix("aten::")]


def structured_operators() -> list[str]:
    """The qualified names of the standard structured out operators. A backend's table should have a row for each."""
    return list(STRUCTURED)
