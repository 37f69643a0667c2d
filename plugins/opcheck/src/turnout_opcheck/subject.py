"""`Subject`: an operator with the arguments of a call, and the calls that are derived from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import turnout
from turnout import Tensor
from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, DType
from turnout.keys import IMPLICIT
from turnout.operators import Operator
from turnout_opcheck import derived
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import refused, run
from turnout_opcheck.report import NotTriedError

SEEDED = turnout.Tag.nondeterministic_seeded.value
DYNAMIC = (turnout.Tag.dynamic_output_shape, turnout.Tag.data_dependent_output)

# Other dtypes that are tried, by category.
OTHERS: dict[int, tuple[DType, ...]] = {
    FLOAT: (turnout.float32, turnout.float64, turnout.float16), COMPLEX: (turnout.complex64, turnout.complex128, turnout.float64),
    INT: (turnout.int64, turnout.int32, turnout.uint8), BOOL: (),
}  # fmt: skip


# Variants that checks ask for.
FASTEST, GAPS, REPEATED = "the first dim fastest", "gaps in memory", "repeated elements"
SHORT, EMPTY, SCALARS = "dims of length 1", "no elements", "0 dims"


@dataclass
class Variant:
    """Arguments derived from the given ones.

    layout  whether the values are those of the given arguments, in another layout
    error   what the operator raised on them, None if it accepts them
    """

    name: str
    args: Args
    layout: bool = False
    error: Exception | None = None


class Subject:
    """An operator and the arguments of a call, in schema order with all defaults.

    variants  the calls that are tried, the given one first; made once
    """

    def __init__(self, op: Operator, args: Args, kernel: Callable[[Args], Any] | None = None) -> None:
        self.op = op
        self._kernel = kernel
        self.args = derived.mapped(args, derived.remembered)
        self.schema = op.schema
        self._variants: list[Variant] | None = None

    # ---- what the operator is

    @property
    def is_random(self) -> bool:
        return SEEDED in self.op.tags

    @property
    def gives_numbers(self) -> bool:
        """Whether a result is no tensor."""
        return any(not r.type.is_tensor_like for r in self.schema.returns)

    @property
    def is_composite(self) -> bool:
        """Whether a CompositeImplicitAutograd kernel serves the tensors."""
        entry = self.entry(self.backend_key)
        return entry is not None and entry.key == IMPLICIT

    @property
    def backend_key(self) -> str:
        """The key of the backend of the arguments."""
        found = [t.device.backend.name for _, t in self.tensors() if t.ndim]
        found += [t.device.backend.name for _, t in self.tensors()]
        return str(found[0] if found else turnout.empty(0).device.backend.name)

    def entry(self, key: str) -> Any:
        """The entry of the table at a key, None where nothing serves it."""
        return self.op.entry(key)

    def has_rule(self, key: str) -> bool:
        """Whether somebody registered a kernel or a rule at a functionality's key, or at one of its keys for backends."""
        return any(k == key or (k.startswith(key) and k != "AutogradOther") for k, stack in self.op.kernels.items() if stack)

    def tensors(self) -> list[tuple[str, Tensor]]:
        """The tensors of the given call, with their names."""
        return list(derived.tensors(self.op, self.args))

    # ---- calls

    def need_tensors(self) -> None:
        """Raise NotTriedError where the operator takes no tensor."""
        if not self.tensors():
            raise NotTriedError("the operator takes no tensor")

    def need_tensor_results(self, why: str) -> None:
        """Raise NotTriedError where the operator takes no tensor, or returns a number, with what is wrong with that."""
        self.need_tensors()
        if self.gives_numbers:
            raise NotTriedError(f"the operator returns a number, which {why}")

    def variants(self) -> list[Variant]:
        """The given call and those derived from it. A call that the operator does not accept has its error."""
        if self._variants is None:
            self._variants = []
            for variant in self._derived():
                self._try(variant)
                self._variants.append(variant)
        return self._variants

    def accepted(self) -> Iterator[Variant]:
        """The variants that the operator accepts."""
        return (variant for variant in self.variants() if variant.error is None)

    def _try(self, variant: Variant) -> None:
        with turnout.no_grad():
            before = turnout.get_default_dtype()
            try:
                self.run(fresh(variant.args))
            except Exception as error:  # noqa: BLE001 - a kernel may raise anything; checks judge it
                variant.error = error
            finally:
                turnout.set_default_dtype(before)

    def _derived(self) -> Iterator[Variant]:
        yield Variant("the given arguments", self.args)
        if not self.tensors():
            return
        yield Variant("other values", self._changed(derived.other_values, ids_kept=True))
        yield Variant(FASTEST, self._changed(derived.reversed_dims), layout=True)
        yield Variant(GAPS, self._changed(derived.gaps), layout=True)
        yield Variant(REPEATED, self._changed(derived.broadcast, written=derived.copy))
        yield Variant(SHORT, self._changed(derived.shortened(1)))
        yield Variant("first dim of length 1", self._changed(derived.first_row))
        if len(self.tensors()) > 1:
            yield Variant("first dim of the first tensor of length 1", self._first_changed(derived.first_row))
        yield Variant(EMPTY, self._changed(derived.shortened(0)))
        yield Variant(SCALARS, self._changed(derived.first_element))
        dtypes = dict.fromkeys(t.dtype for _, t in self.tensors())
        for source in dtypes:
            for target in OTHERS[source.category]:
                if target is not source:
                    yield Variant(f"{target.name} in place of {source.name}", self._changed(derived.cast(source, target)))

    def _changed(self, change: derived.Change, written: derived.Change | None = None, ids_kept: bool = False) -> Args:
        targets = derived.written(self.op, self.args)
        return derived.mapped(self.args, lambda t: (written or change)(t) if id(t) in targets else change(t))

    def _first_changed(self, change: derived.Change) -> Args:
        first = self.tensors()[0][1]
        return derived.mapped(self.args, lambda t: change(t) if t is first else derived.copy(t))

    def unlike(self) -> Args:
        """Arguments of the same shapes with quite other values, as far as the operator accepts them."""
        for change in (derived.unlike, derived.negated, derived.other_values):
            args = derived.mapped(self.args, change)
            try:
                with turnout.no_grad():
                    self.run(fresh(args))
            except Exception:  # noqa: BLE001 - not accepted
                continue
            return args
        return self.args

    def run(self, args: Args) -> Any:
        """Call the operator, or the kernel that this subject is about."""
        return run(self.op, args) if self._kernel is None else self._kernel(args)

    def through(self, kernel: Callable[[Args], Any]) -> Subject:
        """The same calls, made to one kernel of the operator."""
        return Subject(self.op, self.args, kernel)

    def seeded(self, call: Callable[[], Any]) -> Any:
        """What a call returns when random numbers are drawn from a fixed seed."""
        turnout.manual_seed(1)
        return call()


def fresh(args: Args) -> Args:
    """Copies of arguments in their layouts; none requires a gradient."""
    return derived.mapped(args, derived.copy)


def fails_by_accident(error: Exception, resized: bool = False) -> bool:
    """Whether an error comes from code that did not expect the arguments, in place of refusing them.

    For other sizes, `resized`, an IndexError is a refusal: it says that there is no such dim.
    """
    return not refused(error) and not (resized and isinstance(error, IndexError))
