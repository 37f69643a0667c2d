"""From a row to the wrapper of an operator: what happens when a call is first resolved. No module below sees the row.

A row over those of another package is put together with what is below it, what holds for all kernels is put around its functions
(`rules`), and a `KernelSpec` is made of it. The wrappers are written from that.

Kernels of one package over those of a backend of another may leave any call to the kernel below. A row that returns
NotImplemented, before it has written anything, does not serve this dtype, layout or size. Better, it says so with
`Accepts(unless=...)`, which has a reason for `explain` and errors. The call goes on to what would serve it if the row were not
there: the row of another package, the backend's own or, where it has none, a composite kernel. So a package need not be complete,
and uninstalling it changes speed only. Which kernel is below is decided when a call is first resolved, and again after any
registration.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnout.errors import NoKernelError
from turnout.keys import IMPLICIT
from turnout.operators.kernels import ARRAY, Kernel, bind
from turnout.table import Entry, compute_entry
from turnout_aten.errors import rows as errors
from turnout_aten.generated.groups import STRUCTURED
from turnout_aten.kernels import rules
from turnout_aten.kernels.contract import misfit
from turnout_aten.kernels.facts import facts_of
from turnout_aten.kernels.functional import functional
from turnout_aten.kernels.inplace import inplace
from turnout_aten.kernels.outputs import out
from turnout_aten.kernels.rows import (
    FEW,
    KERNEL,
    SIMPLE,
    Accepts,
    Compiled,
    Move,
    Row,
    Sizes,
    Steps,
    leaves_of,
    leaving,
    only_few,
)
from turnout_aten.kernels.specs import Case, Inputs, KernelSpec
from turnout_aten.kernels.standing import does
from turnout_aten.kernels.structured import Structured, to_array
from turnout_aten.kernels.unstructured import finished, plain
from turnout_aten.kernels.writes import same_inputs
from turnout_aten.shapes.extents import numel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from turnout.operators import Operator
    from turnout_aten.backend.tensor_backend import TensorBackend

    Call = Callable[..., Any]


# ---- what a kernel that has a row is bound by


def binder_of(variant: str, name: str, row: Row) -> StructuredBinder | PlainBinder:
    """What binds the row of this name to one of the operators that it serves."""
    if name not in STRUCTURED:
        return PlainBinder(row)
    served, precomputed, *_ = STRUCTURED[name]
    return StructuredBinder(row, served[variant], name, precomputed)


class StructuredBinder:
    """Binds a row to one variant of a structured operator."""

    __slots__ = ("group", "kind", "precomputed", "row")

    def __init__(self, row: Row, kind: str, group: str, precomputed: Mapping[str, Any]) -> None:
        self.row, self.kind, self.group, self.precomputed = row, kind, group, precomputed

    def __call__(self, op: Operator, kernel: Kernel, key: str) -> Call:
        facts, program = Structured(op, shape_function(self.group), self.precomputed), self.row.program
        word = program.value if isinstance(program, Move) else "row"
        return does(word, structured(self.kind, facts, backend_at(op, key), self.row))


class PlainBinder:
    """Binds a row to an operator without a shape function."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row

    def __call__(self, op: Operator, kernel: Kernel, key: str) -> Call:
        backend = backend_at(op, key)
        return finished(op, backend, unstructured(op, backend, self.row))


class Over:
    """Binds a row over whatever is below it."""

    __slots__ = ("binder",)

    def __init__(self, binder: StructuredBinder | PlainBinder) -> None:
        self.binder = binder

    def __call__(self, op: Operator, kernel: Kernel, key: str) -> Call:
        made = self.structured(op, kernel, key)
        if made is not None:
            return made(op, kernel, key)
        entry, backend = entry_below(op, kernel, key), backend_at(op, key)
        call = _missing(op, key, backend) if entry is None else _bound(op, entry, key)
        if isinstance(self.binder, StructuredBinder):
            return call
        return finished(op, backend, unstructured(op, backend, self.binder.row, call))

    def structured(self, op: Operator, kernel: Kernel, key: str) -> StructuredBinder | None:
        """Its row and those below as one; None where what is below has no outputs to write, or this has none."""
        mine, entry = self.binder, entry_below(op, kernel, key)
        if entry is None or not isinstance(mine, StructuredBinder):
            return None
        under = entry.kernel.binder
        below = under.structured(op, entry.kernel, key) if isinstance(under, Over) else under
        if not isinstance(below, StructuredBinder):
            return None
        given, outputs, _ = STRUCTURED[mine.group][2]
        row = combined(mine.row, below.row, op, len(given) - outputs)
        return StructuredBinder(row, mine.kind, mine.group, mine.precomputed)


def backend_at(op: Operator, key: str) -> TensorBackend:
    """The backend with this key, which has tables of rows only if it holds tensors."""
    backend: Any = op.registry.backends[key]
    return backend


def shape_function(group: str) -> Call:
    """The shape function of a standard structured operator, by its out variant's name."""
    family = import_module(f"turnout_aten.shapes.{STRUCTURED[group][3]}")
    return family.SHAPES[group.removeprefix("aten::")]


# ---- from a row to a wrapper


def structured(kind: str, s: Structured, backend: TensorBackend, row: Row | Call) -> Call:
    """The wrapper of a variant of an operator with a shape function, for a row or a kernel without options."""
    row = row if isinstance(row, Row) else Row(row)
    kernel = _kernel(s.op, backend, row, s)
    if kind == "functional":
        return functional(kernel)
    copies = backend.array_type is not None and backend.new_array is not None
    same = same_inputs(s) if copies else None
    below = None if same is None else functional(_kernel(s.op, backend, row, same))
    return inplace(kernel, below) if kind == "inplace" else out(kernel, below)


def unstructured(op: Operator, backend: TensorBackend, row: Row | Call, below: Call | None = None) -> Call:
    """The wrapper of an operator without a shape function, for a row, or for a kernel of the user, which may run once."""
    repeatable = isinstance(row, Row)
    return plain(_kernel(op, backend, row if isinstance(row, Row) else Row(row)), below, repeatable=repeatable)


def _kernel(op: Operator, backend: TensorBackend, row: Row, s: Structured | None = None) -> KernelSpec:
    """The kernel of a row. What holds for all kernels is around its functions, and names `op`.

    `s` is the operator that is served, which may be the functional variant below `op`; None without a shape function.
    """
    around = rules.around(op, backend, s, row.allocates, programmed=row.program is not None)
    if around is not None:
        program = row.program if rules.keeps_program(op) else None
        row = row.through(around).but(program=program)
    sizes = row.sizes
    cases: tuple[Case, ...] = (Case(KERNEL, row.fn),)
    if s is None:
        return KernelSpec(op, backend, row.fn, cases, few=sizes.upto, quiet=row.quiet, program=row.program)
    if sizes.fn is not None:
        cases = (Case(FEW, sizes.fn, sizes.fewest, sizes.fewest), *cases)
    simple = () if sizes.simple is None else (Case(SIMPLE, sizes.simple, sizes.upto, sizes.fewest, brief=True),)
    makes = bool(row.allocates and s.tensors) and not s.precomputed and backend.array_type is not None
    sized = s.names.index(sizes.by) if sizes.by else next(i for i, a in enumerate(s.inputs) if a.type.is_tensor_like)
    return KernelSpec(
        s.op, backend, row.fn, cases, (*simple, *cases), s, Inputs(s, row.accepts, row.allocates) if makes else None, sized,
        sizes.upto, row.pointwise, row.quiet, row.program, row.prepares,
    )  # fmt: skip


# ---- what is below a row


def _bound(op: Operator, entry: Entry, key: str) -> Call:
    """What is below, as it would be called if it were there alone: an implicit composite counts its writes and records views.

    A kernel that copies calls no operators, and needs no guard.
    """
    free = entry.key == IMPLICIT or facts_of(getattr(entry.kernel.fn, "__wrapped__", None)).copies is not None
    call, question = bind(entry.kernel, op, key, below=None if free else ~op.registry.keys.guards), rules.ASKED.question
    return call if question is None else question.below(call, is_array_kernel=entry.kernel.form == ARRAY)


def entry_below(op: Operator, kernel: Kernel, key: str) -> Entry | None:
    """What would serve a key without the kernels of this one's library and those that come before it; None if nothing would."""
    registry = op.registry
    left = {at: registry.winner(op, at, stack) for at in op.kernels if (stack := registry.behind(op, at, kernel))}
    return compute_entry(registry.keys.universe, key, left, registry.fallbacks_by_key)


def _missing(op: Operator, key: str, backend: TensorBackend) -> Call:
    def call_missing(ks: int, *args: Any) -> Any:
        arrays = [to_array(backend, each) for each in args]
        found = [each for k in op.kernels[key] for each in leaves_of(k.fn)]
        reasons = [(leaves.package, reason) for leaves in found if (reason := leaves.reason(arrays)) is not None]
        raise NoKernelError(errors.all_leave(op.qualified_name, key, reasons))

    return call_missing


# ---- two rows as one


def combined(above: Row, below: Row, op: Operator, inputs: int) -> Row:
    """One row of two, for an operator with so many inputs. Arrays of up to the limit of the row above go to the row below."""
    first, second = above.fn, below.fn
    if first is only_few:
        return below.but(program=above.program)
    if misfit(getattr(first, "__wrapped__", first), inputs):  # it makes no result
        below = below.but(allocates="", accepts=Accepts(), sizes=below.sizes._replace(simple=None))

    def kernel(*args: Any) -> Any:
        made = first(*args)
        return second(*args) if made is NotImplemented else made

    leaving(kernel, *leaves_of(first), *leaves_of(second))
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
