"""The gradient mode (no_grad, enable_grad, inference_mode) and the levels that track a tensor.

Recording and differentiating are the work of the plugin that provides Autograd.
"""

from __future__ import annotations

from turnout.guards import Guard
from turnout.keys import KEYS, TRACKED
from turnout.operators.tracebacks import GENERATOR, shorten, shortening
from turnout.registry import REGISTRY
from turnout.state import DISPATCH
from turnout_aten.tensor.levels import GRAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any

    from turnout.guards import Changes
    from turnout_aten.tensor.tensor import Tensor


INFERENCE = KEYS.bit("Inference")
FORWARD = KEYS.bit("Forward")


def tracked_levels(tensor: Tensor) -> int:
    """The gradient levels that track a tensor now: imperative autograd and functional levels that are still active.

    If the base of a view was written after the view was made, the view is brought up to date first. That may raise AliasError.
    """
    if tensor.view_of is not None and tensor.keys & TRACKED:
        service = REGISTRY.services.get("Autograd")
        if service is not None:
            service.refresh(tensor)
    return tensor.gmask & (GRAD.get()[1] | 1)


def grad_fn(tensor: Tensor) -> Any:
    """The tape's node that made a tensor. For a view whose base was written since, it is the node of the new value.

    None for leaves, for untracked tensors, and for the inputs of a functional transform inside it.
    """
    service = REGISTRY.services.get("Autograd")
    if service is None:
        return tensor.node
    return service.current_node(tensor) if tracked_levels(tensor) else None


def context_note() -> str:
    """The line that `explain` prints when the mode records nothing; "" otherwise."""
    return "" if GRAD.get()[0] else "no_grad  gradients are not recorded"


class _Mode(Guard):
    """Sets GRAD while entered. As a decorator, it is entered for each call of a function, or each step of a generator."""

    __slots__ = ()
    __unwrapped__ = ("*",)

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        if function is None:
            return made
        try:
            return made(function)  # `@no_grad` without brackets
        except Exception as error:
            shorten(error)
            raise

    def _again(self) -> _Mode:
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from functools import wraps

        if getattr(getattr(function, "__code__", None), "co_flags", 0) & GENERATOR:
            return wraps(function)(lambda *args, **kwargs: self._steps(function(*args, **kwargs)))

        @wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return in_mode

    def _steps(self, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The generator, with the mode entered while its own code runs and left while its consumer's code runs."""
        step: Callable[..., Any] = generator.send
        given: Any = None
        while True:
            try:
                with self._again():
                    found = step(given)
            except StopIteration as end:
                return end.value
            try:
                given = yield found
                step = generator.send
            except GeneratorExit:
                with self._again():
                    generator.close()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the consumer; the generator may handle it
                given = error
                step = generator.throw


class no_grad(_Mode):
    """Stop recording at every level while entered. A context manager and a decorator."""

    __slots__ = ()

    def sets(self) -> Changes:
        return ((GRAD, [0, GRAD.get()[1]]),)


class enable_grad(_Mode):
    """Resume recording inside `no_grad`, at every level that was recording when the innermost level was entered."""

    __slots__ = ()

    def sets(self) -> Changes:
        allowed = GRAD.get()[1]
        return ((GRAD, [allowed, allowed]),)


class set_grad_enabled(_Mode):
    """`enable_grad` or `no_grad`, as `mode` is true or false. Takes effect at once; a `with` statement undoes it on exit."""

    __slots__ = ("_before", "_mode")
    _before: Sequence[int] | None

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        try:
            self._mode = bool(mode)
        except Exception as error:
            shorten(error)
            raise
        self._before = GRAD.get()
        ((_, value),) = self.sets()
        GRAD.set(value)

    def sets(self) -> Changes:
        allowed = GRAD.get()[1]
        return ((GRAD, [allowed if self._mode else 0, allowed]),)

    def __enter__(self) -> Any:
        self._undo()  # the block sets it from here on
        return super().__enter__()

    def _undo(self) -> None:
        """Take back what making the object has set."""
        before, self._before = self._before, None
        if before is not None:
            GRAD.set(before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self._undo()
        return (enable_grad() if self._mode else no_grad())(function)


class inference_mode(_Mode):
    """`no_grad` for code that will never need gradients: the tensors made in it are inference tensors, and have no tangents.

    An inference tensor has no version and cannot be saved for a backward pass: a recorded call that would save it raises
    AliasError, and so does a write into it outside the mode. A `clone()` made outside is a normal tensor. Normal tensors and
    views of them stay normal inside the mode. With a `mode` of False it switches the mode off inside it.
    """

    __slots__ = ("_mode",)

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        made = object.__new__(cls)
        try:
            made._mode = mode is True or bool(mode)
            return made(mode) if callable(mode) else made
        except Exception as error:
            shorten(error)
            raise

    _mode: bool

    def sets(self) -> Changes:
        include, keep = DISPATCH.get()
        if self._mode:
            include, keep = include | INFERENCE, keep & ~FORWARD
        elif include & INFERENCE:
            include, keep = include & ~INFERENCE, keep | FORWARD
        allowed = GRAD.get()[1]
        return (DISPATCH, [include, keep]), (GRAD, [0 if self._mode else allowed, allowed])

    def _again(self) -> _Mode:
        return inference_mode(self._mode)


def is_grad_enabled() -> bool:
    """Whether anything is recorded now, by imperative autograd or by the functional transform that is running.

    Example:
        >>> turnout.is_grad_enabled()
        True
    """
    return GRAD.get()[0] != 0


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on here.

    Example:
        >>> turnout.is_inference_mode_enabled()
        False
    """
    return bool(DISPATCH.get()[0] & INFERENCE)


@shortening
def is_inference(tensor: Tensor) -> bool:
    """Whether a tensor was made in `inference_mode`.

    Arguments:
        tensor: the tensor

    Example:
        >>> turnout.is_inference(turnout.tensor([1]))
        False
    """
    return tensor.is_inference()
