"""`gradcheck` and `gradgradcheck`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from turnout.config.tuples import NamedTuple
from turnout.errors import ArgumentError
from turnout.operators.tracebacks import shortening
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.checking.differences import Check
from turnout_autograd.checking.samples import (
    GradcheckError,
    check_tracked,
    floating_outputs,
    in_real_numbers,
    is_checked,
    listed,
    random_like,
    real_leaf,
)
from turnout_autograd.checking.tangents import TangentCheck
from turnout_autograd.engine.recorded_levels import recording
from turnout_autograd.passes.backward import grad


@shortening
def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True,
    fast_mode: bool = False,
) -> bool:  # fmt: skip
    """Whether the gradients of `func` at `inputs` agree with differences of its values.

    Checked with respect to the inputs that require a gradient, best of float64 or complex128; a complex number counts as its two
    parts. Every output of float or complex dtype that requires a gradient is taken; where none does, all must be constant.

    Raises GradcheckError, or returns False without `raise_exception`; ArgumentError when no input requires a gradient, there is
    nothing to check, or the elements of an input share memory. What `func` itself raises is raised.

    Arguments:
        func: the function
        inputs: the arguments of `func`, one tensor or several
        eps: half the distance of the values whose difference is taken
        atol: the absolute tolerance
        rtol: the relative tolerance
        raise_exception: whether a difference raises GradcheckError; else the result is False
        nondet_tol: how much two backward passes may differ
        check_undefined_grad: whether, of several outputs, one alone must give the gradients that it gives beside
            zeros for the others; and of several inputs, a tangent of one alone the derivatives that it gives beside
            zeros for the others
        check_batched_grad: whether gradients of a batch of output gradients, inside vmap, must be those of each
        check_batched_forward_grad: whether derivatives along a batch of tangents, inside vmap, must be those along each
        check_forward_ad: whether derivatives along tangents, as `func.jvp` gives them, must be what the values say
            too
        check_backward_ad: whether gradients are checked
        fast_mode: whether one random direction through inputs and outputs is checked, instead of every element

    Example:
        >>> x = turnout.tensor([1.0, 2.0], dtype=turnout.float64, requires_grad=True)
        >>> turnout.autograd.gradcheck(lambda x: x * x, x)
        True
    """
    modes = Modes("gradcheck", "check_backward_ad", check_backward_ad, "check_forward_ad", check_forward_ad)
    modes.check(check_batched_grad, check_batched_forward_grad)
    func, args = in_real_numbers(func, listed(inputs))
    check = Check(func, args, eps, atol, rtol, constants=False)
    options = nondet_tol, check_undefined_grad, check_batched_grad, check_batched_forward_grad, fast_mode
    return modes.hold(check, *options, raises=raise_exception)


@shortening
def gradgradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], grad_outputs: Tensor | Sequence[Tensor] | None = None, *,
    eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False,
) -> bool:  # fmt: skip
    """`gradcheck` of the gradients themselves, with respect to the inputs and to `grad_outputs`.

    A gradient that does not require one must be constant.

    Arguments:
        func: the function
        inputs: the arguments of `func`, one tensor or several
        grad_outputs: the gradients of the results; random by default
        eps: half the distance of the values whose difference is taken
        atol: the absolute tolerance
        rtol: the relative tolerance
        gen_non_contig_grad_outputs: whether the random ones are spread in memory
        raise_exception: whether a difference raises GradcheckError; else the result is False
        nondet_tol: how much two backward passes may differ
        check_undefined_grad: whether, of several outputs, one alone must give the gradients that it gives beside
            zeros for the others
        check_batched_grad: whether gradients of a batch of output gradients, inside vmap, must be those of each
        check_fwd_over_rev: whether derivatives of the gradients along tangents are checked
        check_rev_over_rev: whether gradients of the gradients are checked
        fast_mode: whether one random direction through inputs and outputs is checked, instead of every element

    Example:
        >>> x = turnout.tensor([1.0, 2.0], dtype=turnout.float64, requires_grad=True)
        >>> turnout.autograd.gradgradcheck(lambda x: x * x * x, x)
        True
    """
    modes = Modes("gradgradcheck", "check_rev_over_rev", check_rev_over_rev, "check_fwd_over_rev", check_fwd_over_rev)
    modes.check(check_batched_grad, False)
    func, args = in_real_numbers(func, listed(inputs))
    check_tracked("gradgradcheck", args)
    outputs = [o for o in floating_outputs(func, args) if o.requires_grad]
    if not outputs:
        raise GradcheckError("gradgradcheck: no output requires a gradient")
    random = Random(0)
    if grad_outputs is None:
        given = [random_like(o, random, gen_non_contig_grad_outputs) for o in outputs]
    else:
        given = [_seed_leaf(g) for g in listed(grad_outputs)]
    count = len(args)

    def first(*values: Any) -> tuple[Any, ...]:
        wanted = [v for v in values[:count] if is_checked(v)]

        def recorded() -> tuple[Any, ...]:
            ends = [o for o in floating_outputs(func, values[:count]) if o.requires_grad]
            return grad(ends, wanted, values[count:], create_graph=True, allow_unused=True)

        found = recording(1, recorded)
        return tuple(g for g in found if g is not None)

    if not first(*args, *given):
        return True
    check = Check(first, (*args, *given), eps, atol, rtol, constants=True)
    return modes.hold(check, nondet_tol, check_undefined_grad, check_batched_grad, False, fast_mode, raises=raise_exception)


class Modes(NamedTuple):
    """Which derivatives of a function are checked, in reverse and in forward mode, and the arguments that say so."""

    name: str
    reverse_argument: str
    reverse: bool
    forward_argument: str
    forward: bool

    def check(self, batched: bool, batched_forward: bool) -> None:
        """Raise ArgumentError where nothing is checked, or where more is asked of what is not."""
        if not (self.reverse or self.forward):
            raise ArgumentError(
                f"{self.name}: with neither {self.reverse_argument} nor {self.forward_argument} there is nothing to check"
            )
        if batched and not self.reverse:
            raise ArgumentError(f"{self.name}: check_batched_grad needs {self.reverse_argument}")
        if batched_forward and not self.forward:
            raise ArgumentError(f"{self.name}: check_batched_forward_grad needs {self.forward_argument}")

    def hold(
        self, check: Check, nondet_tol: float, undefined: bool, batched: bool, batched_forward: bool, fast: bool, *, raises: bool
    ) -> bool:
        """Whether the derivatives are what differences say. A difference raises GradcheckError, if it is to raise."""
        try:
            if self.reverse:
                check.run(nondet_tol, undefined, batched, fast)
            if self.forward:
                TangentCheck(check).run(undefined, batched_forward, fast)
        except GradcheckError:
            if raises:
                raise
            return False
        return True


def _seed_leaf(value: Tensor) -> Tensor:
    """What a user gave as an output's gradient, as something to differentiate by."""
    value = real_leaf(value)
    return value if value.requires_grad else value.detach().requires_grad_()
