"""`turnout.autograd.forward_ad`: tensors with tangents by hand, inside a dual level.

A dual tensor is an alias of its primal: a write into one is one into the other. There is one dual level at a time; transforms in
forward mode (`turnout.func.jvp`) nest inside it and around it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.config.effects import effect
from turnout.config.tuples import NamedTuple
from turnout.dtypes import FLOAT
from turnout.guards import Guard
from turnout.state import DISPATCH
from turnout_aten.tensor.grad_mode import INFERENCE
from turnout_aten.tensor.levels import LEVELS, lower, peel, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.carried import tangent_of
from turnout_autograd.duals.levels import ACTIVE, FORWARD, ForwardLevel, active, at_levels, kept_at
from turnout_autograd.transforms.arguments import check_tensor, of_dtype
from turnout_autograd.transforms.dual_runs import dual, lowered, primal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.guards import Changes

# The level of the innermost `dual_level`, in a sequence of at most one; and whether tangents were switched off by hand.
_DUAL: ContextVar[Sequence[DualLevel]] = ContextVar("turnout_autograd.dual_level", default=())
_OFF: ContextVar[Sequence[bool]] = ContextVar("turnout_autograd.forward_mode_off", default=(False,))


class DualLevel(ForwardLevel):
    """The level of a `dual_level`, and the guard that entered it."""

    __slots__ = ("guard",)
    guard: dual_level


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the primal, and its tangent or None."""

    primal: Tensor
    tangent: Tensor | None


class dual_level(Guard):
    """While entered, tensors can have tangents: `make_dual` gives them, operators pass them on, `unpack_dual` takes them.

    Tangents end with the block. Raises GradientError inside of another dual level.

    Example:
        >>> with turnout.autograd.forward_ad.dual_level():
        ...     x = turnout.autograd.forward_ad.make_dual(turnout.tensor(3.0), turnout.tensor(1.0))
        ...     turnout.autograd.forward_ad.unpack_dual(x * x).tangent
        tensor(6.)
    """

    def sets(self) -> Changes:
        if _DUAL.get():
            raise errors.GradientError(errors.forward.nested())
        plugins.service("Autograd")  # raises where autograd is disabled
        level = DualLevel()
        level.guard = self
        include, keep = DISPATCH.get()
        if is_fwd_grad_enabled():
            keep = kept_at((level,), include, keep)
        return (ACTIVE, [*active(), level]), (_DUAL, [level]), (DISPATCH, [include, keep])


class set_fwd_grad_enabled(Guard):
    """While entered, tangents are passed on, or with a `mode` of False they are not: results have none, and no tensor shows one.

    A transform (`turnout.func.jvp`) inside works as ever; tangents from around it do not enter it.

    # differs from torch: a view that was made inside `set_fwd_grad_enabled(False)` has no tangent, as other results have
    none; in PyTorch it takes that of its base after the block.

    # differs from torch: `set_fwd_grad_enabled(True)` inside `inference_mode` passes tangents on. In PyTorch operators drop
    them, though it is said to be enabled.

    # differs from torch: `inference_mode(False)` inside `set_fwd_grad_enabled(False)` switches tangents on in PyTorch. Here it
    ends inference mode and nothing else.

    # differs from torch: `turnout.func.linearize` inside `set_fwd_grad_enabled(False)` gives the derivative, as `jvp` does;
    PyTorch gives zeros.
    """

    def __init__(self, mode: bool) -> None:
        self._mode = mode

    def sets(self) -> Changes:
        include, keep = DISPATCH.get()
        return (DISPATCH, [include, keep | FORWARD if self._mode else keep & ~FORWARD]), (_OFF, [not self._mode])


def is_fwd_grad_enabled() -> bool:
    """Whether tangents are passed on here: not inside `set_fwd_grad_enabled(False)` and `inference_mode`.

    Example:
        >>> turnout.autograd.forward_ad.is_fwd_grad_enabled()
        True
    """
    include, keep = DISPATCH.get()
    (off,) = _OFF.get()
    # The rule of an outermost level runs without the key too.
    return bool(keep & FORWARD) or not (off or include & INFERENCE)


def enter_dual_level() -> int:
    """Enter a dual level until `exit_dual_level`; returns its number, 0. `dual_level` does both.

    Example:
        >>> turnout.autograd.forward_ad.enter_dual_level()
        0
        >>> turnout.autograd.forward_ad.exit_dual_level()
    """
    effect("enter_dual_level()")
    dual_level().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the dual level that `enter_dual_level` entered. Raises GradientError if there is none.

    Arguments:
        level: the number that `enter_dual_level` returned

    Example:
        >>> number = turnout.autograd.forward_ad.enter_dual_level()
        >>> turnout.autograd.forward_ad.exit_dual_level(level=number)
    """
    effect("exit_dual_level()")
    guard = _level("exit_dual_level", level).guard
    guard.__exit__(None, None, None)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """An alias of `tensor` that carries a tangent. Raises GradientError outside of a dual level, and for what does not fit.

    Inside `set_fwd_grad_enabled(False)` the tangent is not shown, but it is kept; inside `inference_mode` there is none.

    # differs from torch: `make_dual` converts the tangent to the dtype of the tensor.

    Arguments:
        tensor: the primal, floating-point or complex
        tangent: a tensor of the same shape
        level: the number of the dual level

    Example:
        >>> with turnout.autograd.forward_ad.dual_level():
        ...     x = turnout.autograd.forward_ad.make_dual(turnout.tensor(3.0), turnout.tensor(1.0))
        ...     turnout.autograd.forward_ad.unpack_dual(x.exp()).tangent
        tensor(20.0855)
    """
    current = _level("make_dual", level)
    for what, value in (("the tensor", tensor), ("the tangent", tangent)):
        if check_tensor("make_dual", what, value).dtype.category < FLOAT:
            raise errors.KindError(errors.transforms.not_differentiable("make_dual", what, value))
    if tangent.shape != tensor.shape:
        raise errors.GradientError(errors.forward.tangent_shape(tangent, tensor))
    if is_fwd_grad_enabled() and tangent_of(peel(tensor)[0], current) is not None:
        raise errors.GradientError(errors.forward.dual_already())
    if DISPATCH.get()[0] & INFERENCE:
        return _without_tangent(tensor, peel(tensor)[1])
    tangent = of_dtype("make_dual", "the tangent", tangent, tensor)
    return dual(current, tensor, *lowered(LEVELS.get(), tensor, tangent))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a tensor: an alias without the tangent, and that. The tangent is None for zero.

    Arguments:
        tensor: any tensor
        level: the number of the dual level

    Example:
        >>> turnout.autograd.forward_ad.unpack_dual(turnout.tensor(3.0)).tangent is None
        True
    """
    check_tensor("unpack_dual", "the argument", tensor)
    if level is None and not _DUAL.get():
        return UnpackedDualTensor(tensor, None)
    current = _level("unpack_dual", level)
    vmaps = peel(tensor)[1]
    low = lower(tensor, vmaps)
    if not is_fwd_grad_enabled():
        return UnpackedDualTensor(_without_tangent(tensor, vmaps), None)
    tangent = tangent_of(low, current)
    primal = at_levels(current.outside(), primal_of, low)
    return UnpackedDualTensor(raise_(primal, vmaps), None if tangent is None else raise_(low.shown_like(tangent), vmaps))


def _without_tangent(tensor: Tensor, vmaps: tuple[Any, ...]) -> Tensor:
    """An alias that no level has a tangent of."""
    return raise_(at_levels((), primal_of, lower(tensor, vmaps)), vmaps)


def _level(name: str, number: int | None) -> DualLevel:
    """The dual level that is entered. Raises GradientError if there is none, or if it has another number."""
    found: Any = _DUAL.get()
    if not found:
        raise errors.GradientError(errors.forward.no_level(name))
    if number not in (None, 0):
        raise errors.GradientError(errors.forward.other_level(name, number))
    return found[0]
