"""`gradcheck` and `gradgradcheck`: formulas against differences of the function's values, with operators only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import turnout
from turnout.dtypes import FLOAT, float64
from turnout.tensors import Tensor
from turnout_autograd.calls import grad
from turnout_autograd.engine import recording
from turnout_autograd.errors import GradientError

Table = list[list[float]]


class GradcheckError(GradientError):
    """A gradient differs from the difference quotient."""


def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
) -> bool:  # fmt: skip
    """Whether the gradients of `func` at `inputs` are what its values say.

    Checked with respect to the inputs that require a gradient, best of float64 or complex128; a complex number counts as its two
    parts. Every output of float or complex dtype is taken. Raises GradcheckError, or returns False without `raise_exception`.
    """
    func, args = _in_real_numbers(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    try:
        _check(func, args, eps, atol, rtol, nondet_tol, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], grad_outputs: Tensor | Sequence[Tensor] | None = None, *,
    eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
) -> bool:  # fmt: skip
    """`gradcheck` of the gradients themselves, with respect to the inputs and to `grad_outputs` (random by default)."""
    func, args = _in_real_numbers(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    outputs = _outputs(func, args)
    random = Random(0)
    if grad_outputs is None:
        given = [_random_like(o, random) for o in outputs]
    else:
        given = [_real_leaf(g) for g in ([grad_outputs] if isinstance(grad_outputs, Tensor) else grad_outputs)]
    count = len(args)

    def first(*values: Any) -> tuple[Any, ...]:
        wanted = [v for v in values[:count] if _is_checked(v)]
        with recording(1):
            found = grad(_outputs(func, values[:count]), wanted, values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None and g.requires_grad)

    if not first(*args, *given):
        return True
    return gradcheck(
        first, (*args, *given), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=False,
    )  # fmt: skip


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


def _random_like(tensor: Tensor, random: Random) -> Tensor:
    values = [random.uniform(-1, 1) for _ in range(tensor.numel())]
    made = turnout.tensor(values, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)
    return made.requires_grad_()


def _is_checked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _outputs(func: Callable[..., Any], args: Sequence[Any]) -> list[Tensor]:
    """The outputs that can be differentiated."""
    found = func(*args)
    each = [found] if isinstance(found, Tensor) else list(found)
    return [t for t in each if isinstance(t, Tensor) and t.dtype.category >= FLOAT and t.requires_grad]


def _check(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    undefined: bool,
) -> None:
    checked = [i for i, a in enumerate(args) if _is_checked(a)]
    if not checked:
        raise ValueError("gradcheck: no input requires a gradient")
    for i in checked:
        if args[i].dtype is not float64:
            import warnings

            warnings.warn(
                f"gradcheck: input {i} is {args[i].dtype.name}; differences need float64 to mean something",
                stacklevel=3,
            )
    outputs = _outputs(func, args)
    if not outputs:
        raise GradcheckError("gradcheck: no output requires a gradient")
    analytic = _analytic(func, args, checked, nondet_tol)
    numeric = _numeric(func, args, checked, eps)
    for i in checked:
        for j in range(len(outputs)):
            _compare(i, j, analytic[i, j], numeric[i, j], atol, rtol)
    if undefined and len(outputs) > 1:
        _check_undefined(func, args, checked)


def _compare(i: int, j: int, analytic: Table, numeric: Table, atol: float, rtol: float) -> None:
    for row, (a, n) in enumerate(zip(analytic, numeric, strict=True)):
        for column, (x, y) in enumerate(zip(a, n, strict=True)):
            if not abs(x - y) <= atol + rtol * abs(y):
                raise GradcheckError(
                    f"gradcheck: the gradient of output {j} with respect to input {i} is wrong\n"
                    f"  at        element {row} of the input, {column} of the output\n"
                    f"  numeric   {y:.9g}\n  formula   {x:.9g}"
                )


def _analytic(
    func: Callable[..., Any], args: tuple[Any, ...], checked: list[int], nondet_tol: float
) -> dict[tuple[int, int], Table]:
    """Per input and output: rows over input elements, columns over output elements."""
    tables: dict[tuple[int, int], Table] = {}
    inputs = [args[i] for i in checked]
    outputs = _outputs(func, args)
    for j, output in enumerate(outputs):
        columns: list[list[list[float]]] = []
        for position in range(output.numel()):
            one = [0.0] * output.numel()
            one[position] = 1.0
            seed = turnout.tensor(one, dtype=output.dtype, device=output.device).reshape(output.shape)
            found = grad(output, inputs, seed, retain_graph=True, allow_unused=True)
            again = grad(output, inputs, seed, retain_graph=True, allow_unused=True)
            rows = [_flat(g, x) for g, x in zip(found, inputs, strict=True)]
            if any(
                abs(a - b) > nondet_tol
                for r, g, x in zip(rows, again, inputs, strict=True)
                for a, b in zip(r, _flat(g, x), strict=True)
                if a == a
            ):
                raise GradcheckError(f"gradcheck: the gradients of output {j} differ between two backward passes")
            columns.append(rows)
        for k, i in enumerate(checked):
            tables[i, j] = [[column[k][row] for column in columns] for row in range(args[i].numel())]
    return tables


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


def _numeric(
    func: Callable[..., Any], args: tuple[Any, ...], checked: list[int], eps: float
) -> dict[tuple[int, int], Table]:
    """The same tables from central differences. Inputs are changed in place and restored."""
    tables: dict[tuple[int, int], Table] = {}

    def values() -> list[list[float]]:
        return [o.detach().reshape((-1,)).tolist() for o in _outputs(func, args)]

    for i in checked:
        for cell in _cells(args[i].detach()):
            before = cell.clone()
            cell.copy_(before + eps)
            above = values()
            cell.copy_(before - eps)
            below = values()
            cell.copy_(before)
            for j, (a, b) in enumerate(zip(above, below, strict=True)):
                tables.setdefault((i, j), []).append([(x - y) / (2 * eps) for x, y in zip(a, b, strict=True)])
        for j in range(len(_outputs(func, args))):
            tables.setdefault((i, j), [])
    return tables


def _cells(tensor: Tensor) -> Iterator[Tensor]:
    """A 0-dim view per element, in row-major order."""
    for position in product(*map(range, tensor.shape)):
        cell = tensor
        for at in position:
            cell = cell.select(0, at)
        yield cell


def _check_undefined(func: Callable[..., Any], args: tuple[Any, ...], checked: list[int]) -> None:
    """With only one of several outputs used, the gradients must be those of that output alone."""
    inputs = [args[i] for i in checked]
    outputs = _outputs(func, args)
    for j, output in enumerate(outputs):
        seeds = [turnout.zeros_like(o) if k != j else turnout.ones_like(o) for k, o in enumerate(outputs)]
        alone = grad(output, inputs, seeds[j], retain_graph=True, allow_unused=True)
        together = grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True)
        for i, a, t in zip(checked, alone, together, strict=True):
            if any(abs(x - y) > 1e-9 for x, y in zip(_flat(a, args[i]), _flat(t, args[i]), strict=True) if x == x):
                raise GradcheckError(f"gradcheck: input {i} gets another gradient when only output {j} is used")
