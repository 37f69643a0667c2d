"""What share of wrong formulas and kernels do the samples of `make test` show? From the root of a checkout.

    python tests/suite_faults/samples.py

The wrong formulas are those of `tests/conformance/test_gradcheck.py`, changed by value and in their source; a wrong kernel of cpu
gives changed results. One counts if a sample of the operator cases shows it at all. The checkers run on the operator cases whose
test is in the fast selection.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "plugins"), str(TESTS / "conformance"), str(TESTS / "fixtures")]

import formulas  # noqa: E402
import test_forward  # noqa: E402
import test_gradcheck  # noqa: E402

import selection  # noqa: E402
import turnout  # noqa: E402
from turnout.library import get_kernel  # noqa: E402
from turnout.registry import Registrations  # noqa: E402
from turnout_conformance.cases import CASES  # noqa: E402
from turnout_conformance.comparing import each, find, form  # noqa: E402


def is_fast(file: str, test: str, parameters: str) -> bool:
    return selection.is_fast(f"tests/conformance/{file}.py::{test}[{parameters}]", selection.record())


# ---- formulas


def fast_calls() -> Iterator[formulas.Recorded]:
    """The calls whose gradients the fast selection compares with differences."""
    first = "test_gradients_are_what_differences_say"
    writes = "test_a_write_has_the_gradients_of_the_functional_operator_and_through_a_view_what_differences_say"
    for case in formulas.DIFFERENTIABLE:
        inplace = formulas.on_a_copy(form(find(case.op), "inplace")) if case in formulas.INPLACE else None
        for call in formulas.recorded_calls(case):
            if is_fast("test_gradients", first, f"gradcheck-{case.op}"):
                yield call
            if inplace is not None and call.result.shape == call.args[0].shape and is_fast("test_gradients", writes, case.op):
                yield from formulas.recorded(inplace, call.args, call.kwargs)


def formula_mutants() -> Iterator[tuple[str, formulas.Formula, Any]]:
    """Kind, formula and change."""
    for formula in formulas.reached():
        for kind, (_, change) in test_gradcheck.FIRST.items():
            yield kind, formula, lambda node, grad, edges, found, change=change: change(found, grad)
        for _, backward in test_gradcheck.source_mutants(formula):
            yield "source", formula, test_gradcheck.in_source(formula, backward)


def count_formulas() -> Iterator[tuple[str, bool]]:
    """Kind of each mutant that shows, and whether the fast samples show it."""
    fast = formulas.reached_by(fast_calls())
    for kind, formula, change in formula_mutants():
        if test_gradcheck.is_noticed(formula, change):
            yield kind, bool(test_gradcheck.is_noticed(formula, change, calls=fast.get(formula, ())))


# ---- kernels


def one_more(x: Any) -> Any:
    """Another last element."""
    changed = x.clone().reshape(-1)
    if changed.numel():
        changed[-1] = ~changed[-1] if x.dtype is turnout.bool else changed[-1] + 1
    return changed.reshape(x.shape)


KINDS: dict[str, Callable[[Any], Any]] = {
    "one percent more": lambda x: x * 1.01 if x.is_floating_point() or x.is_complex() else x,
    "another sign": lambda x: x if x.dtype is turnout.bool else -x,
    "zero": lambda x: turnout.zeros_like(x),
    "one element": one_more,
    "reversed": lambda x: x.flip(0) if x.dim() else x,
    "transposed": lambda x: x.transpose(0, 1).contiguous() if x.dim() > 1 and x.shape[0] == x.shape[1] else x,
}


class Changed:
    """While entered, cpu's kernel of an operator gives changed tensors; `shows` when that made a difference."""

    def __init__(self, op: Any, change: Callable[[Any], Any]) -> None:
        self.right = get_kernel(op, "CPU")
        self.change = change
        self.op = op
        self.shows = False
        self.inside = False

    def __enter__(self) -> Changed:
        self.library = Registrations("wrong kernels")
        self.library.impl(self.op.qualified_name, "CPU", self.kernel, allow_override=True)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.library.undo()

    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        found = self.right(*args, **kwargs)
        if self.inside:  # the change itself computes
            return found
        self.inside = True
        try:
            changed = each(found, self.changed)
        finally:
            self.inside = False
        return changed

    def changed(self, found: Any) -> Any:
        changed = self.change(found)
        self.shows = self.shows or str(changed.tolist()) != str(found.tolist())
        return changed


def count_kernels() -> Iterator[tuple[str, bool]]:
    """Kind of each mutant that shows, and whether the fast samples show it."""
    turnout.ones(1).add(1)  # the kernels are registered at the first use
    test = "test_operator_agrees_with_numpy_for_any_strides_and_on_a_second_device"
    for case in CASES:
        op = find(case.op)
        if "CPU" not in op.kernels:
            continue
        for kind, change in KINDS.items():
            with Changed(op, change) as mutant:
                try:
                    getattr(test_forward, test)(case)
                    noticed = False
                except Exception:  # noqa: BLE001 - a mutant may compute nonsense, and any refusal is one
                    noticed = True
            if mutant.shows:
                yield kind, noticed and is_fast("test_forward", test, case.op)


def main() -> None:
    for what, count in (("formulas", count_formulas), ("kernels of cpu", count_kernels)):
        shown: dict[str, list[bool]] = {}
        for kind, noticed in count():
            shown.setdefault(kind, []).append(noticed)
        for kind, those in shown.items():
            print(f"{what}: {kind}: {sum(those)} of {len(those)}")
        found, total = sum(map(sum, shown.values())), sum(map(len, shown.values()))
        print(f"{what}: {found} of {total}, {100 * found / total:.1f} %", flush=True)


if __name__ == "__main__":
    main()
