"""Formulas against differences of the function's values, with operators only."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import turnout
from turnout.dtypes import float64
from turnout.errors import ArgumentError
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.checking.samples import (
    GradcheckError,
    cells,
    check_tracked,
    dot,
    flat,
    floating_outputs,
    is_checked,
    near,
    random_like,
    write_uncounted,
)
from turnout_autograd.passes.backward import grad

Table = list[list[float]]


class Check:
    """A function of real tensors at one point, and how far gradients and differences may be apart.

    checked    positions of the inputs to differentiate by
    constants  whether outputs that require no gradient are compared too, with a gradient of zero
    """

    def __init__(
        self, func: Callable[..., Any], args: tuple[Any, ...], eps: float, atol: float, rtol: float, constants: bool
    ) -> None:
        self.func = func
        self.args = args
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.checked = [i for i, a in enumerate(args) if is_checked(a)]
        self.inputs = [args[i] for i in self.checked]
        self._check_inputs()
        found = floating_outputs(func, args)
        self.constants = constants or not any(o.requires_grad for o in found)

    def _check_inputs(self) -> None:
        check_tracked("gradcheck", self.inputs)
        for i in self.checked:
            value = self.args[i]
            if value.dtype is not float64:
                warnings.warn(
                    f"gradcheck: input {i} is {value.dtype.name}; differences need float64 to mean something", stacklevel=5
                )
            if any(length > 1 and stride == 0 for length, stride in zip(value.shape, value.stride(), strict=True)):
                raise ArgumentError(
                    f"gradcheck: elements of input {i} share memory, so that they cannot be changed one by one; clone() it"
                )

    def outputs(self) -> list[Tensor]:
        """What is differentiated, computed anew."""
        found = floating_outputs(self.func, self.args)
        return found if self.constants else [o for o in found if o.requires_grad]

    def gradients(self, output: Tensor, seed: Tensor) -> list[Tensor | None]:
        """One output's gradients; None for all of a constant."""
        if not output.requires_grad:
            return [None] * len(self.inputs)
        return list(grad(output, self.inputs, seed, retain_graph=True, allow_unused=True))

    def run(self, nondet_tol: float, undefined: bool, batched: bool, fast: bool) -> None:
        """Raise GradcheckError at the first difference."""
        if fast:
            self.compare_directions(nondet_tol)
        else:
            self.compare_elements(nondet_tol)
        if undefined:
            self.compare_alone()
        if batched:
            self.compare_batched()

    # ---- every element

    def compare_elements(self, nondet_tol: float) -> None:
        """Both tables, per input and output: rows over input elements, columns over output elements."""
        analytic = self._analytic(nondet_tol)
        numeric = self._numeric()
        for i in self.checked:
            for j in range(len(self.outputs())):
                self._compare(i, j, analytic[i, j], numeric[i, j])

    def _compare(self, i: int, j: int, analytic: Table, numeric: Table) -> None:
        for row, (a, n) in enumerate(zip(analytic, numeric, strict=True)):
            for column, (x, y) in enumerate(zip(a, n, strict=True)):
                if not abs(x - y) <= self.atol + self.rtol * abs(y):
                    raise GradcheckError(
                        f"gradcheck: the gradient of output {j} with respect to input {i} is wrong\n"
                        f"  at        element {row} of the input, {column} of the output\n"
                        f"  numeric   {y:.9g}\n  formula   {x:.9g}"
                    )

    def _analytic(self, nondet_tol: float) -> dict[tuple[int, int], Table]:
        tables: dict[tuple[int, int], Table] = {}
        for j, output in enumerate(self.outputs()):
            columns: list[list[list[float]]] = []
            for position in range(output.numel()):
                one = [0.0] * output.numel()
                one[position] = 1.0
                seed = turnout.tensor(one, dtype=output.dtype, device=output.device).reshape(output.shape)
                columns.append(self._same_twice(j, output, seed, nondet_tol))
            for k, i in enumerate(self.checked):
                tables[i, j] = [[column[k][row] for column in columns] for row in range(self.args[i].numel())]
        return tables

    def _same_twice(self, j: int, output: Tensor, seed: Tensor, nondet_tol: float) -> list[list[float]]:
        """The gradients in a row per input, from two backward passes that must agree."""
        found, again = ([flat(g, x) for g, x in zip(self.gradients(output, seed), self.inputs, strict=True)] for _ in range(2))
        if any(abs(x - y) > nondet_tol for a, b in zip(found, again, strict=True) for x, y in zip(a, b, strict=True)):
            raise GradcheckError(f"gradcheck: the gradients of output {j} differ between two backward passes")
        return found

    def _numeric(self) -> dict[tuple[int, int], Table]:
        tables: dict[tuple[int, int], Table] = {}
        for i in self.checked:
            for cell in cells(self.args[i].detach()):
                for j, quotient in enumerate(self.differences(cell, self.eps)):
                    tables.setdefault((i, j), []).append(quotient)
            for j in range(len(self.outputs())):
                tables.setdefault((i, j), [])
        return tables

    def differences(self, place: Tensor, step: Any) -> list[list[float]]:
        """How much every output changes, per unit of `eps`, with what is written at `place`, which is restored."""
        before = place.clone()
        try:
            write_uncounted(place, before + step)
            above = self._values()
            write_uncounted(place, before - step)
            below = self._values()
        finally:
            write_uncounted(place, before)
        return [[(x - y) / (2 * self.eps) for x, y in zip(a, b, strict=True)] for a, b in zip(above, below, strict=True)]

    def _values(self) -> list[list[float]]:
        return [o.detach().reshape((-1,)).tolist() for o in self.outputs()]

    # ---- one direction

    def compare_directions(self, nondet_tol: float) -> None:
        """One number per input and output: a random row times the table times a random column."""
        random = Random(0)
        steps = [random_like(x, random).detach() for x in self.inputs]
        outputs = self.outputs()
        seeds = [random_like(o, random).detach() for o in outputs]
        sizes = [[sum(map(abs, flat(t, t))) for t in each] for each in (steps, seeds)]
        analytic = [self._same_twice(j, o, s, nondet_tol) for j, (o, s) in enumerate(zip(outputs, seeds, strict=True))]
        for k, (i, step) in enumerate(zip(self.checked, steps, strict=True)):
            changes = self.differences(self.args[i].detach(), step * self.eps)
            for j, (change, seed) in enumerate(zip(changes, seeds, strict=True)):
                numeric = dot(change, flat(seed, seed))
                formula = dot(analytic[j][k], flat(step, step))
                if not abs(formula - numeric) <= self.atol * sizes[0][k] * sizes[1][j] + self.rtol * abs(numeric):
                    raise GradcheckError(
                        f"gradcheck: the gradient of output {j} with respect to input {i} is wrong\n"
                        f"  at        a random direction through both\n  numeric   {numeric:.9g}\n  formula   {formula:.9g}"
                    )

    # ---- several gradients at once

    def compare_alone(self) -> None:
        """With only one of several outputs used, the gradients must be those of that output beside zeros for the others."""
        outputs = [o for o in self.outputs() if o.requires_grad]
        for j, output in enumerate(outputs if len(outputs) > 1 else []):
            seeds = [turnout.zeros_like(o) if k != j else turnout.ones_like(o) for k, o in enumerate(outputs)]
            alone = self.gradients(output, seeds[j])
            together = grad(outputs, self.inputs, seeds, retain_graph=True, allow_unused=True)
            for i, x, a, t in zip(self.checked, self.inputs, alone, together, strict=True):
                if not near(flat(a, x), flat(t, x)):
                    raise GradcheckError(f"gradcheck: input {i} gets another gradient when only output {j} is used")

    def compare_batched(self) -> None:
        """The gradients of two seeds, inside vmap, must be those of each."""
        random = Random(1)
        for j, output in enumerate(o for o in self.outputs() if o.requires_grad):
            seeds = [random_like(output, random).detach() for _ in range(2)]
            together = grad(
                output, self.inputs, turnout.stack(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True
            )
            for row, seed in enumerate(seeds):
                alone = self.gradients(output, seed)
                for i, x, a, t in zip(self.checked, self.inputs, alone, together, strict=True):
                    if not near(flat(a, x), flat(None if t is None else t[row], x)):
                        raise GradcheckError(f"gradcheck: input {i} gets another gradient of output {j} inside vmap than outside")
