"""The calls that a block makes of some operators, noted with copies of their arguments, and checked afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from turnout import Tensor
from turnout.guards import restore
from turnout.operators import Operator
from turnout.registry import REGISTRY
from turnout.table import Plan
from turnout_opcheck import derived
from turnout_opcheck.checking import opcheck
from turnout_opcheck.derived import Args

Kind = tuple[Any, ...]

# Whether a call is being noted: what a kernel calls is not a call of the block.
_INSIDE: ContextVar[bool] = ContextVar("turnout_opcheck.calls", default=False)


class Calls:
    """While entered, notes the first call of each kind of the operators of some namespaces, in all threads.

    names  namespaces, "mylib", or operators, "mylib::f" with all overloads, "mylib::f.out" with one
    """

    _undo: Callable[[], None]

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self.noted: dict[Kind, tuple[Operator, Args]] = {}

    def __enter__(self) -> Calls:
        self._undo = REGISTRY.instrument(self._noted)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._undo()

    def _noted(self, op: Operator, plan: Plan, run: Callable[..., Any]) -> Callable[..., Any]:
        names = (op.namespace, f"{op.namespace}::{op.name}", op.qualified_name)
        if self.names.isdisjoint(names):
            return run

        def run_and_note(ks: int, *args: Any) -> Any:
            if _INSIDE.get() or not all(map(_is_plain, args)):
                return run(ks, *args)
            kind = _kind(op, args)
            try:
                _INSIDE.set(True)
                if kind not in self.noted:
                    self.noted[kind] = (op, derived.mapped(args, derived.remembered))
                return run(ks, *args)
            finally:
                try:
                    _INSIDE.set(False)
                except MemoryError:
                    restore(_INSIDE, False)

        return run_and_note

    def check(self, done: set[Kind]) -> list[str]:
        """Check what was noted and is not in `done`, which grows. Returns the texts of the failures."""
        failures = []
        for kind, (op, args) in self.noted.items():
            if kind in done or not op.is_defined:
                continue
            done.add(kind)
            try:
                report = opcheck(op, *op.schema.by_keyword(args), raise_exception=False)
            except Exception:  # noqa: BLE001 - the test called it where it raises, which the test judges
                continue
            if report.found:
                failures.append(report.failures())
        return failures


def _is_plain(value: Any) -> bool:
    """Whether a value is neither a tensor of a transform, such as one inside vmap, nor one without data."""
    return all(_has_data(t) for _, t in derived.named("", value))


def _has_data(tensor: Tensor) -> bool:
    backend = tensor.device.backend
    return type(tensor) is Tensor and backend.has_values and backend.adopt(tensor.array) is not None


def _kind(op: Operator, args: Args) -> Kind:
    return (op.qualified_name, *[_sort(value) for value in args])


def _sort(value: Any) -> Any:
    if isinstance(value, Tensor):
        return (value.dtype.name, value.device.type, value.ndim, value.requires_grad, value.is_contiguous())
    if isinstance(value, (list, tuple)):
        return tuple([_sort(v) for v in value])
    return type(value).__name__
