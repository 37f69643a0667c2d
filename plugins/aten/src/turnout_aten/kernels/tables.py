"""Registration of a backend's table of array kernels.

The left side names an operator; the right side is a plain function on arrays, or a `Row` with options. The row of a structured
out operator serves all variants that share its shape function: functional, in-place, out, and overloads that delegate to it.
"""

from __future__ import annotations

from functools import wraps
from inspect import unwrap
from typing import TYPE_CHECKING, Any

import turnout.schema  # noqa: F401 - rows are checked under the lock, where nothing may be imported
from turnout import plugins
from turnout.errors import RegistrationError
from turnout.keys import IMPLICIT, TRACKED
from turnout.operators.kernels import ARRAY, INTERNAL, Kernel, bind
from turnout.registry import REGISTRY, Registrations
from turnout_aten.declarations.tables import standard
from turnout_aten.errors import backends as texts
from turnout_aten.errors import rows as errors
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.binding import Over, binder_of
from turnout_aten.kernels.contract import misfit, read_signature, row_signature
from turnout_aten.kernels.rows import Leaves, Row, leaving
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]
    Around = Callable[[str, Call], Call]


# The names of functions without one of their own: what makes a function for each operator calls it `kernel`; partials have none.
_NAMELESS = ("kernel", "<lambda>", "")


def register_kernels(
    library: Registrations, backend: TensorBackend, table: Mapping[str, Any], *, namespace: str = "aten"
) -> None:
    """Register a backend's table at its key.

    A row is called with all arguments by position, the outputs last. One RegistrationError reports all rows that name no operator
    or cannot be called so, before anything is registered. Another is about a backend whose row and class disagree about
    whether its arrays can be written. `explain` shows the name of a row's function. It shows that of the operator where the
    function is a lambda, or is called `kernel`.
    """
    register_through(library, backend, table, namespace, None)


def register_through(
    library: Registrations,
    backend: TensorBackend,
    table: Mapping[str, Any],
    namespace: str,
    around: Callable[[str], Around] | None,
) -> None:
    """`register_kernels` with what stands around the functions of each row, by its name: a function for `Row.through`."""
    if library.registry.keys.backend_rows[backend.name].functional_only is not backend.is_functional:
        text = texts.not_declared_functional if backend.is_functional else texts.not_functional
        raise RegistrationError(text(library.origin, type(backend).__name__, backend.name))
    rows = checked_rows(library, backend.name, table, namespace)
    if around is not None:
        rows = {name: row.through(around(name)) for name, row in rows.items()}

    def kernel(variant: str, name: str) -> Kernel:
        fn, binder = rows[name].fn, binder_of(variant, name, rows[name])
        return Kernel(fn, ARRAY, library=library, binder=binder, label=_label(name, fn))

    library.impl_table(backend.name, served_by(rows), kernel)
    if namespace == "aten":
        plugins.require_namespace(namespace)  # kernels of other packages for this backend are there from its first use on


def register_over(
    library: Registrations, backend: str, table: Mapping[str, Any], *, namespace: str = "aten", yields: bool = True
) -> None:
    """Register rows for a backend of another package, by its name in dispatch keys. The backend may come later.

    A row is that of `register_kernels`, and may return NotImplemented. One whose `sizes` say `upto` is not asked where the first
    tensor (or the size) and the output have up to so many elements, so that small calls are as fast as without it. If the
    operator is composed of others for its gradient (CompositeImplicitAutograd), calls that record a gradient stay composed.
    Kernels that a program registers come before these.

    With `yields=False` they are rows of the backend's own library, over composite kernels: those of other packages come first.
    """
    rows = {
        name: row if row.accepts.unless is None else asking(row, inputs_of(name), library.origin)
        for name, row in checked_rows(library, backend, table, namespace).items()
    }

    def kernel(variant: str, name: str) -> Kernel:
        fn, binder = rows[name].fn, Over(binder_of(variant, name, rows[name]))
        label = f"{_label(name, fn)}, or the kernel below"
        return Kernel(fn, ARRAY, library=library, binder=binder, yields=yields, may_decline=True, label=label)

    library.impl_table(backend, served_by(rows), kernel, yields=yields)
    for name in rows:
        if name not in STRUCTURED and _is_composed(library, name):
            _compose(library, name)


def _label(name: str, fn: Call) -> str:
    """What `explain` calls the kernel of a row: its function, or the operator if that has no name of its own."""
    own = getattr(unwrap(fn), "__name__", "")
    return name.partition("::")[2].partition(".")[0] if own in _NAMELESS else own


def group_above(library: Registrations) -> Registrations:
    """A group of the same plugin, undone with `library`, for `register_over`: what its rows do not serve goes on to the row of
    `library`, or to what would be there without it."""
    made = Registrations(library.name, distribution=library.distribution, version=library.version, registry=library.registry)
    library.on_undo(made.undo)
    return made


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
    problems: list[tuple[str, Call, str, tuple[str, ...]]] = []
    unfit: list[tuple[str, str]] = []
    for name, row in made.items():
        given, outputs, required = called_with(name)
        problems += [(name, *each) for each in _misfits(row, given, outputs, required)]
        if problem := row.problem(given):
            unfit.append((name, problem))
    if problems:
        raise RegistrationError(errors.not_callable_so(library.origin, backend, problems))
    if unfit:
        raise RegistrationError(errors.options_unfit(library.origin, backend, unfit))
    return made


def served_by(rows: Iterable[str]) -> dict[str, str]:
    """The operators that rows serve: each with the name of its row."""
    return {variant: name for name in rows for variant in (STRUCTURED[name][0] if name in STRUCTURED else (name,))}


def _misfits(row: Row, given: tuple[str, ...], outputs: int, required: int) -> Iterator[tuple[Call, str, tuple[str, ...]]]:
    """The functions of a row that cannot be called, with what they take and what they are called with."""
    takes = misfit(row.fn, len(given), len(given) - (outputs if row.allocates else 0))
    if takes:
        yield row.fn, takes, given
    simple = row.sizes.simple
    if simple is not None and (takes := misfit(simple, required)):
        yield simple, takes, given[:required]


def called_with(name: str) -> tuple[tuple[str, ...], int, int]:
    """The names of what an operator's row is called with, how many are outputs, and how many inputs have no default."""
    if name in STRUCTURED:
        return STRUCTURED[name][2]
    overload = standard().named(name)  # this does not define the operator
    return row_signature(REGISTRY.find(name).schema, {}) if overload is None else read_signature(overload.called)


def inputs_of(name: str) -> int:
    """How many inputs the row of an operator gets, before the outputs."""
    given, outputs, _ = called_with(name)
    return len(given) - outputs


def structured_operators() -> list[str]:
    """The qualified names of the standard structured out operators. A backend's table should have a row for each."""
    return list(STRUCTURED)


# ---- rows over those of others


def asking(row: Row, inputs: int, package: str) -> Row:
    """A row whose functions are called for calls that it does not leave, and nothing in their place."""
    assert row.accepts.unless is not None
    leaves = Leaves(package, row.accepts.unless, inputs)

    def around(word: str, fn: Call) -> Call:
        @wraps(fn)
        def kernel(*args: Any) -> Any:
            return fn(*args) if leaves.reason(args) is None else NotImplemented

        return leaving(kernel, leaves)

    return row.but(sizes=row.sizes._replace(simple=None)).through(around)


def _is_composed(library: Registrations, name: str) -> bool:
    """Whether an operator is composed of others for its gradient. A standard operator is not defined for the question."""
    overload = standard().named(name)
    return IMPLICIT in (library.registry.find(name).kernels if overload is None else dict(overload.kernels))


# (registry, operator) -> the group that has its composed kernel, and how many packages need it.
_SHARED: dict[tuple[int, str], tuple[Registrations, int]] = {}


def _compose(library: Registrations, name: str) -> None:
    """Keep calls that record a gradient composed, until `library` is undone: one kernel for all packages with such a row."""
    key = id(library.registry), name

    def release() -> None:
        group, count = _SHARED.pop(key)
        if count > 1:
            _SHARED[key] = group, count - 1
        else:
            group.undo()

    with library.registry.lock:
        if key not in _SHARED:
            group = Registrations("composed", package="turnout_aten", registry=library.registry)
            register_recording(group, name, "Autograd", "composed of operators")
            _SHARED[key] = group, 0
        _SHARED[key] = _SHARED[key][0], _SHARED[key][1] + 1
        library.on_undo(release)


def register_recording(
    library: Registrations, name: str, key: str, label: str, *,
    fn: Call | None = None, recorded: Callable[[Operator], Call] | None = None, serves: Call | None = None,
) -> None:  # fmt: skip
    """Register at a key of Autograd what calls that record a gradient run: the composite kernel, whose operators record theirs,
    or, where `serves` is true of the arguments, what `recorded` makes for the operator. Other calls go on below. `fn` is what
    `explain` names."""

    def binder(op: Operator, kernel: Kernel, key: str) -> Call:
        composed = bind(op.registry.winner(op, IMPLICIT), op, key)
        other = composed if recorded is None else recorded(op)

        def call(ks: int, *args: Any) -> Any:
            if GRAD.get()[0] and is_recorded(args):
                return (composed if serves is None or not serves(*args) else other)(ks, *args)
            ks &= ~TRACKED
            return op.lookup(ks)(ks, *args)

        return call

    composes = is_recorded if serves is None else lambda args: is_recorded(args) and not serves(*args)
    how: Any = {"form": INTERNAL, "tracked_only": True, "yields": True, "label": label}
    library.impl(name, key, fn, binder=binder, composes=composes, **how)


def is_recorded(args: tuple[Any, ...]) -> bool:
    """Whether a call records a gradient. Loops, because a generator would cost small calls a tenth of their time."""
    enabled = GRAD.get()[0]
    for value in args:
        if isinstance(value, Tensor):
            if value.gmask & enabled:
                return True
        elif value.__class__ is list or value.__class__ is tuple:
            for each in value:
                if isinstance(each, Tensor) and each.gmask & enabled:
                    return True
    return False
