"""Kernels of one package over those of a backend of another: they may leave any call to the kernel below.

A row that returns NotImplemented, before it has written anything, does not serve this dtype, layout or size. Better, it says so
with `Accepts(unless=...)`, which has a reason for `explain` and errors. The call goes on to what would serve it if the row were
not there: the row of another package, the backend's own or, where it has none, a composite kernel. So a package need not be
complete, and uninstalling it changes speed only. Which kernel is below is decided when a call is first resolved, and again
after any registration.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from turnout.errors import NoKernelError
from turnout.keys import IMPLICIT, TRACKED
from turnout.operators.kernels import ARRAY, INTERNAL, Kernel, bind
from turnout.registry import Registrations
from turnout.table import Entry, compute_entry
from turnout_aten.declarations.tables import standard
from turnout_aten.errors import rows as errors
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels.contract import misfit
from turnout_aten.kernels.rows import Accepts, Compiled, Move, Row, Sizes, Steps
from turnout_aten.kernels.rules import ASKED
from turnout_aten.kernels.structured import to_array
from turnout_aten.kernels.tables import PlainBinder, StructuredBinder, backend_at, binder_of, checked_rows, inputs_of, served_by
from turnout_aten.kernels.unstructured import finished, plain
from turnout_aten.shapes.extents import numel
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


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
        name: row if row.accepts.unless is None else _asking(row, inputs_of(name), library.origin)
        for name, row in checked_rows(library, backend, table, namespace).items()
    }

    def kernel(variant: str, name: str) -> Kernel:
        fn, binder = rows[name].fn, _Over(binder_of(variant, name, rows[name]))
        label = f"{getattr(fn, '__name__', 'kernel')}, or the kernel below"
        return Kernel(fn, ARRAY, library=library, binder=binder, yields=yields, may_decline=True, label=label)

    library.impl_table(backend, served_by(rows), kernel, yields=yields)
    for name in rows:
        if name not in STRUCTURED and _is_composed(library, name):
            _compose(library, name)


class Leaves(NamedTuple):
    """What is asked before the kernel of a row over others: the package, its question, and how many arguments are inputs."""

    package: str
    unless: Callable[..., str | None]
    inputs: int

    def reason(self, args: Sequence[Any]) -> str | None:
        """Why the row leaves a call with these arguments to what is below it."""
        return self.unless(*args[: self.inputs])


def _asking(row: Row, inputs: int, package: str) -> Row:
    """A row whose functions are called for calls that it does not leave, and nothing in their place."""
    assert row.accepts.unless is not None
    leaves = Leaves(package, row.accepts.unless, inputs)

    def around(word: str, fn: Call) -> Call:
        @wraps(fn)
        def kernel(*args: Any) -> Any:
            return fn(*args) if leaves.reason(args) is None else NotImplemented

        kernel.leaves = (leaves,)  # type: ignore[attr-defined]
        return kernel

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
            how: Any = {"form": INTERNAL, "tracked_only": True, "yields": True, "label": "composed of operators"}
            group.impl(name, "Autograd", None, binder=_composed, composes=_is_recorded, **how)
            _SHARED[key] = group, 0
        _SHARED[key] = _SHARED[key][0], _SHARED[key][1] + 1
        library.on_undo(release)


class _Over:
    """Binds a row over whatever is below it."""

    __slots__ = ("binder",)

    def __init__(self, binder: StructuredBinder | PlainBinder) -> None:
        self.binder = binder

    def __call__(self, op: Operator, kernel: Kernel, key: str) -> Call:
        made = self.structured(op, kernel, key)
        if made is not None:
            return made(op, kernel, key)
        entry, row, backend = entry_below(op, kernel, key), self.binder.row, backend_at(op, key)
        call = _missing(op, key, backend) if entry is None else _bound(op, entry, key)
        if isinstance(self.binder, StructuredBinder):
            return call
        return finished(op, backend, plain(op, backend, row.fn, below=call, row=row))

    def structured(self, op: Operator, kernel: Kernel, key: str) -> StructuredBinder | None:
        """Its row and those below as one; None where what is below has no outputs to write, or this has none."""
        mine, entry = self.binder, entry_below(op, kernel, key)
        if entry is None or not isinstance(mine, StructuredBinder):
            return None
        under = entry.kernel.binder
        below = under.structured(op, entry.kernel, key) if isinstance(under, _Over) else under
        if not isinstance(below, StructuredBinder):
            return None
        return StructuredBinder(combined(mine.row, below.row, op, inputs_of(mine.group)), mine.kind, mine.group, mine.precomputed)


def _bound(op: Operator, entry: Entry, key: str) -> Call:
    """What is below, as it would be called if it were there alone: an implicit composite counts its writes and records views.

    A kernel that copies calls no operators, and needs no guard.
    """
    free = entry.key == IMPLICIT or hasattr(getattr(entry.kernel.fn, "__wrapped__", None), "copies")
    call, question = bind(entry.kernel, op, key, below=None if free else ~op.registry.keys.guards), ASKED.question
    return call if question is None else question.below(call, is_array_kernel=entry.kernel.form == ARRAY)


def entry_below(op: Operator, kernel: Kernel, key: str) -> Entry | None:
    """What would serve a key without the kernels of this one's library and those that come before it; None if nothing would."""
    registry = op.registry
    left = {at: registry.winner(op, at, stack) for at in op.kernels if (stack := registry.behind(op, at, kernel))}
    return compute_entry(registry.keys.universe, key, left, registry.fallbacks_by_key)


def only_few(*args: Any) -> Any:
    """The kernel of a row that has a `Compiled` program and nothing else."""
    return NotImplemented


def combined(above: Row, below: Row, op: Operator, inputs: int) -> Row:
    """One row of two, for an operator with so many inputs. Arrays of up to the limit of the row above go to the row below."""
    first, second = above.fn, below.fn
    if first is only_few:
        return below.but(program=above.program)
    if misfit(getattr(first, "__wrapped__", first), [inputs]):  # it makes no result
        below = below.but(allocates="", accepts=Accepts(), sizes=below.sizes._replace(simple=None))

    def kernel(*args: Any) -> Any:
        made = first(*args)
        return second(*args) if made is NotImplemented else made

    kernel.__name__ = kernel.__qualname__ = getattr(first, "__name__", "kernel")
    kernel.leaves = (*getattr(first, "leaves", ()), *getattr(second, "leaves", ()))  # type: ignore[attr-defined]
    sizes, over = above.sizes, above.sizes.over
    few = (below.sizes.fn or second) if sizes.upto and op.schema.arguments[0].type.canonical == "Tensor" else None
    # Where every argument is required, the row below is its own `simple`.
    simple = below.sizes.simple or (None if any(a.has_default for a in op.schema.arguments) else few)
    both = [each for each in (sizes, below.sizes) if each.upto]
    return below.but(
        fn=kernel if over is None else over(kernel),
        pointwise=above.pointwise and below.pointwise,
        quiet=above.quiet and below.quiet,
        sizes=Sizes(
            min([each.upto for each in both], default=0), min([each.fewest for each in both], default=0), sizes.by,
            few if over is None else None,  # else it looks at few elements itself
            simple if sizes.upto else None,
        ),
        program=_program_of(above, below),
        prepares=_prepared_by(above, below),
    )  # fmt: skip


def _program_of(above: Row, below: Row) -> Steps | Move | Compiled | None:
    """The `Compiled` of the row above; else what the row below does, for few elements; of a row that takes any number of them,
    what it moves itself."""
    program, upto = below.program, above.sizes.upto
    if isinstance(above.program, Compiled) or not upto:
        return None if isinstance(above.program, Steps) else above.program
    return Steps(program.steps, min(upto, program.upto or upto)) if isinstance(program, Steps) else program


def _prepared_by(above: Row, below: Row) -> Call | None:
    """What prepares plans of two rows: that of the row above, or that of the row below for what the row above leaves to it."""
    first, second, few = above.prepares, below.prepares, above.sizes.fewest
    if first is None:
        if second is None or not few:
            return None

        def prepares(outs: Any, *args: Any) -> Any:
            return second(outs, *args) if args[0].size <= few and numel(outs[0].shape) <= few else None

        return prepares

    def either(outs: Any, *args: Any) -> Any:
        made = first(outs, *args)
        return second(outs, *args) if made is NotImplemented and second is not None else made

    return either


def _composed(op: Operator, kernel: Kernel, key: str) -> Call:
    """The operator's composite kernel, whose operators record their gradients. Where none is recorded, the call goes on below."""
    composite = bind(op.registry.winner(op, IMPLICIT, op.kernels[IMPLICIT]), op, key)

    def composed(ks: int, *args: Any) -> Any:
        if GRAD.get()[0] and _is_recorded(args):
            return composite(ks, *args)
        ks &= ~TRACKED
        return op.lookup(ks)(ks, *args)

    return composed


def _is_recorded(args: tuple[Any, ...]) -> bool:
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


def _missing(op: Operator, key: str, backend: TensorBackend) -> Call:
    def call_missing(ks: int, *args: Any) -> Any:
        arrays = [to_array(backend, each) for each in args]
        found = [each for k in op.kernels[key] for each in getattr(k.fn, "leaves", ())]
        reasons = [(leaves.package, reason) for leaves in found if (reason := leaves.reason(arrays)) is not None]
        raise NoKernelError(errors.all_leave(op.qualified_name, key, reasons))

    return call_missing
