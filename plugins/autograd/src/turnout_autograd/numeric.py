"""`gradcheck` and `gradgradcheck`: formulas against differences of the function's values, with operators only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import turnout
from turnout.dtypes import FLOAT, float64
from turnout.errors import ArgumentError
from turnout.state import below_adinplaceorview
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.calls import grad
from turnout_autograd.engine import recording
from turnout_autograd.errors import GradientError

Table = list[list[float]]


class GradcheckError(GradientError):
    """A gradient differs from the difference quotient."""


def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_batched_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
) -> bool:  # fmt: skip
    """Whether the gradients of `func` at `inputs` are what its values say.

    Checked with respect to the inputs that require a gradient, best of float64 or complex128; a complex number counts as its two
    parts. Every output of float or complex dtype that requires a gradient is taken; where none does, all must be constant.

    nondet_tol            how much two backward passes may differ
    check_undefined_grad  of several outputs, one alone must give the gradients that it gives beside zeros for the others
    check_batched_grad    gradients of a batch of output gradients, inside vmap, must be those of each
    check_forward_ad      derivatives along tangents, as `func.jvp` gives them, must be what the values say too
    check_backward_ad     whether gradients are checked
    fast_mode             one random direction through inputs and outputs, instead of every element

    Raises GradcheckError, or returns False without `raise_exception`; ValueError when no input requires a gradient or there is
    nothing to check, ArgumentError for an input whose elements share memory. What `func` itself raises is raised.
    """
    if not (check_backward_ad or check_forward_ad):
        raise ValueError("gradcheck: with neither check_backward_ad nor check_forward_ad there is nothing to check")
    func, args = _in_real_numbers(func, _listed(inputs))
    check = _Check(func, args, eps, atol, rtol, constants=False)
    try:
        if check_backward_ad:
            check.run(nondet_tol, check_undefined_grad, check_batched_grad, fast_mode)
        if check_forward_ad:
            check.compare_tangents(fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], grad_outputs: Tensor | Sequence[Tensor] | None = None, *,
    eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_batched_grad: bool = False,
    fast_mode: bool = False,
) -> bool:  # fmt: skip
    """`gradcheck` of the gradients themselves, with respect to the inputs and to `grad_outputs` (random by default).

    A gradient that does not require one must be constant. `gen_non_contig_grad_outputs` spreads the random ones in memory.
    """
    func, args = _in_real_numbers(func, _listed(inputs))
    _check_tracked("gradgradcheck", args)
    outputs = [o for o in _floating(func, args) if o.requires_grad]
    if not outputs:
        raise GradcheckError("gradgradcheck: no output requires a gradient")
    random = Random(0)
    if grad_outputs is None:
        given = [_random_like(o, random, gen_non_contig_grad_outputs) for o in outputs]
    else:
        given = [_seed_leaf(g) for g in _listed(grad_outputs)]
    count = len(args)

    def first(*values: Any) -> tuple[Any, ...]:
        wanted = [v for v in values[:count] if _is_checked(v)]
        with recording(1):
            ends = [o for o in _floating(func, values[:count]) if o.requires_grad]
            found = grad(ends, wanted, values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    if not first(*args, *given):
        return True
    check = _Check(first, (*args, *given), eps, atol, rtol, constants=True)
    try:
        check.run(nondet_tol, check_undefined_grad, check_batched_grad, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


# ---- inputs and outputs


def _listed(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, Tensor) else tuple(values)


def _in_real_numbers(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and its arguments with a last dim of two real numbers for every complex one that is checked."""
    replaced = [_is_checked(a) and a.is_complex() for a in args]

    def call(*values: Any) -> Any:
        found = func(*[turnout.view_as_complex(v) if r else v for v, r in zip(values, replaced, strict=True)])
        each = [found] if isinstance(found, Tensor) else list(found)
        return [turnout.view_as_real(t) if isinstance(t, Tensor) and t.is_complex() else t for t in each]

    return call, tuple([_real_leaf(a) if r else a for a, r in zip(args, replaced, strict=True)])


def _real_leaf(value: Tensor) -> Tensor:
    """A complex tensor as a leaf of real numbers, any other as it is."""
    return turnout.view_as_real(value.detach()).requires_grad_() if value.is_complex() else value


def _seed_leaf(value: Tensor) -> Tensor:
    """What a user gave as an output's gradient, as something to differentiate by."""
    value = _real_leaf(value)
    return value if value.requires_grad else value.detach().requires_grad_()


def _random_like(tensor: Tensor, random: Random, spread: bool = False) -> Tensor:
    values = [random.uniform(-1, 1) for _ in range(tensor.numel())]
    made = turnout.tensor(values, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)
    if spread:
        made = turnout.stack([made, made], -1)[..., 0]
    return made.detach().requires_grad_()


def _is_checked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _check_tracked(name: str, args: Sequence[Any]) -> None:
    if not any(map(_is_checked, args)):
        raise ValueError(f"{name}: no input requires a gradient")


def _floating(func: Callable[..., Any], args: Sequence[Any]) -> list[Tensor]:
    """The outputs of float or complex dtype."""
    found = func(*args)
    each = [found] if isinstance(found, Tensor) else list(found)
    return [t for t in each if isinstance(t, Tensor) and t.dtype.category >= FLOAT]


# ---- the check


class _Check:
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
        self.checked = [i for i, a in enumerate(args) if _is_checked(a)]
        self.inputs = [args[i] for i in self.checked]
        self._check_inputs()
        found = _floating(func, args)
        self.constants = constants or not any(o.requires_grad for o in found)

    def _check_inputs(self) -> None:
        _check_tracked("gradcheck", self.inputs)
        for i in self.checked:
            value = self.args[i]
            if value.dtype is not float64:
                warnings.warn(
                    f"gradcheck: input {i} is {value.dtype.name}; differences need float64 to mean something",
                    stacklevel=4,
                )
            if any(length > 1 and stride == 0 for length, stride in zip(value.shape, value.stride(), strict=True)):
                raise ArgumentError(
                    f"gradcheck: elements of input {i} share memory, so that they cannot be changed one by one; clone() it"
                )

    def outputs(self) -> list[Tensor]:
        """What is differentiated, computed anew."""
        found = _floating(self.func, self.args)
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
        found, again = (
            [_flat(g, x) for g, x in zip(self.gradients(output, seed), self.inputs, strict=True)] for _ in range(2)
        )
        if any(abs(x - y) > nondet_tol for a, b in zip(found, again, strict=True) for x, y in zip(a, b, strict=True)):
            raise GradcheckError(f"gradcheck: the gradients of output {j} differ between two backward passes")
        return found

    def _numeric(self) -> dict[tuple[int, int], Table]:
        tables: dict[tuple[int, int], Table] = {}
        for i in self.checked:
            for cell in _cells(self.args[i].detach()):
                for j, quotient in enumerate(self._differences(cell, self.eps)):
                    tables.setdefault((i, j), []).append(quotient)
            for j in range(len(self.outputs())):
                tables.setdefault((i, j), [])
        return tables

    def _differences(self, place: Tensor, step: Any) -> list[list[float]]:
        """How much every output changes, per unit of `eps`, with what is written at `place`, which is restored."""
        before = place.clone()
        try:
            _write(place, before + step)
            above = self._values()
            _write(place, before - step)
            below = self._values()
        finally:
            _write(place, before)
        return [
            [(x - y) / (2 * self.eps) for x, y in zip(a, b, strict=True)] for a, b in zip(above, below, strict=True)
        ]

    def _values(self) -> list[list[float]]:
        return [o.detach().reshape((-1,)).tolist() for o in self.outputs()]

    # ---- one direction

    def compare_directions(self, nondet_tol: float) -> None:
        """One number per input and output: a random row times the table times a random column."""
        random = Random(0)
        steps = [_random_like(x, random).detach() for x in self.inputs]
        outputs = self.outputs()
        seeds = [_random_like(o, random).detach() for o in outputs]
        sizes = [[sum(map(abs, _flat(t, t))) for t in each] for each in (steps, seeds)]
        analytic = [self._same_twice(j, o, s, nondet_tol) for j, (o, s) in enumerate(zip(outputs, seeds, strict=True))]
        for k, (i, step) in enumerate(zip(self.checked, steps, strict=True)):
            changes = self._differences(self.args[i].detach(), step * self.eps)
            for j, (change, seed) in enumerate(zip(changes, seeds, strict=True)):
                numeric = _dot(change, _flat(seed, seed))
                formula = _dot(analytic[j][k], _flat(step, step))
                if not abs(formula - numeric) <= self.atol * sizes[0][k] * sizes[1][j] + self.rtol * abs(numeric):
                    raise GradcheckError(
                        f"gradcheck: the gradient of output {j} with respect to input {i} is wrong\n"
                        f"  at        a random direction through both\n  numeric   {numeric:.9g}\n  formula   {formula:.9g}"
                    )

    # ---- along tangents

    def compare_tangents(self, fast: bool) -> None:
        """The derivatives along each element of each input, or along a random direction of it."""
        from turnout_autograd.transforms import basis, linearize  # which few programs need

        kept = [o.requires_grad or self.constants for o in _floating(self.func, self.args)]

        def function(*inputs: Tensor) -> tuple[Tensor, ...]:
            given = dict(zip(self.checked, inputs, strict=True))
            found = _floating(self.func, [given.get(i, a) for i, a in enumerate(self.args)])
            return tuple(o for o, wanted in zip(found, kept, strict=True) if wanted)

        push = linearize(function, *[x.detach().clone() for x in self.inputs])[1]  # the inputs are written below
        zeros = [turnout.zeros_like(x).detach() for x in self.inputs]
        random = Random(0)
        for k, i in enumerate(self.checked):
            x = self.args[i].detach()
            for row, tangent in enumerate([_random_like(x, random).detach()] if fast else basis(x)):
                found = push(*zeros[:k], tangent, *zeros[k + 1 :])
                numeric = self._differences(x, tangent * self.eps)
                at = "a random direction" if fast else f"element {row}"
                for j, (derivative, quotients) in enumerate(zip(found, numeric, strict=True)):
                    self._compare_tangent(f"{at} of input {i}", j, _flat(derivative, derivative), quotients)

    def _compare_tangent(self, at: str, j: int, found: list[float], numeric: list[float]) -> None:
        for column, (x, y) in enumerate(zip(found, numeric, strict=True)):
            if not abs(x - y) <= self.atol + self.rtol * abs(y):
                raise GradcheckError(
                    f"gradcheck: the derivative of output {j} along a tangent is wrong\n"
                    f"  at        {at}, element {column} of the output\n  numeric   {y:.9g}\n  formula   {x:.9g}"
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
                if not _near(_flat(a, x), _flat(t, x)):
                    raise GradcheckError(f"gradcheck: input {i} gets another gradient when only output {j} is used")

    def compare_batched(self) -> None:
        """The gradients of two seeds, inside vmap, must be those of each."""
        random = Random(1)
        for j, output in enumerate(o for o in self.outputs() if o.requires_grad):
            seeds = [_random_like(output, random).detach() for _ in range(2)]
            together = grad(
                output, self.inputs, turnout.stack(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True
            )
            for row, seed in enumerate(seeds):
                alone = self.gradients(output, seed)
                for i, x, a, t in zip(self.checked, self.inputs, alone, together, strict=True):
                    if not _near(_flat(a, x), _flat(None if t is None else t[row], x)):
                        raise GradcheckError(
                            f"gradcheck: input {i} gets another gradient of output {j} inside vmap than outside"
                        )


def _write(place: Tensor, value: Tensor) -> None:
    """Uncounted: in the end the memory is as it was, and graphs that were recorded before may still use it."""
    with below_adinplaceorview():
        place.copy_(value)


def _flat(gradient: Tensor | None, like: Tensor) -> list[float]:
    if gradient is None:
        return [0.0] * like.numel()
    if gradient.shape != like.shape or gradient.dtype is not like.dtype:
        raise GradcheckError(
            f"gradcheck: a gradient is {gradient.dtype.name} {list(gradient.shape)}, "
            f"its input {like.dtype.name} {list(like.shape)}"
        )
    flat: list[float] = gradient.detach().reshape((-1,)).tolist()
    return flat


def _near(a: list[float], b: list[float]) -> bool:
    """Whether two ways to the same gradient agree, up to rounding; NaN only with NaN."""
    return all(abs(x - y) <= 1e-9 + 1e-9 * abs(y) or (x != x and y != y) for x, y in zip(a, b, strict=True))


def _dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _cells(tensor: Tensor) -> Iterator[Tensor]:
    """A 0-dim view per element, in row-major order."""
    for position in product(*map(range, tensor.shape)):
        cell = tensor
        for at in position:
            cell = cell.select(0, at)
        yield cell
