"""`checkpoint` and `checkpoint_sequential`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

from turnout.config.effects import effect
from turnout.errors import ArgumentError, CallError
from turnout.guards import Changes, Guard
from turnout.operators.tracebacks import shortening
from turnout_aten.errors import transforms as transform_texts
from turnout_aten.tensor.grad_mode import is_grad_enabled
from turnout_autograd import errors
from turnout_autograd.checkpointing.recomputation import Recomputation

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
# Whether calls stop early, whatever their argument says; None where nothing was set.
_EARLY_STOP: ContextVar[Sequence[bool | None]] = ContextVar("turnout_autograd.checkpoint_early_stop", default=(None,))


class set_checkpoint_early_stop(Guard):
    """While entered, calls of `checkpoint` stop early when they run again, or do not, whatever their `early_stop` says.

    enable  whether they do
    """

    def __init__(self, enable: bool) -> None:
        self._enable = bool(enable)

    def sets(self) -> Changes:
        return ((_EARLY_STOP, [self._enable]),)


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing: what `context_fn` is by default.

    Example:
        >>> forward, again = turnout.utils.checkpoint.noop_context_fn()
    """
    return nullcontext(), nullcontext()


@shortening
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, which keeps its arguments for the backward pass, and runs again there for what it saves.

    It takes memory for its arguments and results only, and about a third more time for a training step. Where nothing is
    recorded it is a plain call. The function runs again with the casts of `autocast` and the random states that it ran with.

    Calls nest. Raises ArgumentError for `use_reentrant=True` and `debug=True`; in the backward pass CheckpointError when the
    function saves other tensors than at first, AliasError when an argument was written since.

    # differs from torch: `checkpoint` does not have to be told `use_reentrant`; True, the older variant, is an error.

    # differs from torch: the random states that `checkpoint` keeps are those of all default generators, not of one device.

    Arguments:
        function: the function; it must compute the same when it runs again
        args: its arguments; tensors may be in nested tuples, lists and dicts
        use_reentrant: False or None
        context_fn: returns two context managers, in which the function runs the first time and again
        determinism_check: "default" compares shape, dtype and device of what is saved with those of the first time; "none" does
            not
        debug: must be false
        early_stop: whether the function is left when it has saved what is needed
        preserve_rng_state: whether random numbers are those of the first time
        kwargs: arguments of the function

    Example:
        >>> x = turnout.tensor([1.0, 2.0], requires_grad=True)
        >>> turnout.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x).sum().backward()
        >>> turnout.allclose(x.grad, x.exp().cos() * x.exp())
        True
    """
    _check("checkpoint", use_reentrant, debug, determinism_check)
    if not callable(function):
        raise CallError(transform_texts.not_callable("checkpoint", "function", function))
    contexts = context_fn()
    if not isinstance(contexts, (tuple, list)) or len(contexts) != 2:
        raise ArgumentError(errors.checkpointing.contexts("checkpoint", contexts))
    forward, again = contexts
    if not is_grad_enabled():
        with forward:
            return function(*args, **kwargs)
    effect("checkpoint()")
    (forced,) = _EARLY_STOP.get()
    call = Recomputation(
        function,
        args,
        kwargs,
        context=again,
        is_checked=determinism_check == "default",
        stops_early=bool(early_stop) if forced is None else forced,
        keeps_random=bool(preserve_rng_state),
    )
    return call.run(forward, args, kwargs)


@shortening
def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """The functions applied one after the other, in segments that are checkpointed, all but the last one.

    Raises ArgumentError where there are fewer functions than segments.

    Arguments:
        functions: functions of one argument
        segments: how many segments there are; the last one takes what is left over
        input: the argument of the first function
        use_reentrant: False or None
        preserve_rng_state: whether random numbers are those of the first time
        kwargs: none; other names are an error

    Example:
        >>> x = turnout.tensor([1.0, 2.0], requires_grad=True)
        >>> y = turnout.utils.checkpoint.checkpoint_sequential([turnout.exp, turnout.sin, turnout.sum], 2, x)
        >>> y.backward()
    """
    if kwargs:
        raise ArgumentError(errors.checkpointing.unexpected(list(kwargs)))
    _check("checkpoint_sequential", use_reentrant, False, "default")
    functions = list(functions)
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= len(functions):
        raise ArgumentError(errors.checkpointing.segments(segments, len(functions)))
    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(_chain(functions[start : start + size]), input, preserve_rng_state=preserve_rng_state)
    return _chain(functions[size * (segments - 1) :])(input)


def _check(name: str, use_reentrant: object, debug: object, determinism_check: object) -> None:
    if use_reentrant is True:
        raise ArgumentError(errors.checkpointing.reentrant(name))
    if use_reentrant is not None and use_reentrant is not False:
        raise ArgumentError(errors.checkpointing.use_reentrant_kind(name, use_reentrant))
    if debug:
        raise ArgumentError(errors.checkpointing.no_debug(name))
    if determinism_check not in ("default", "none"):
        raise ArgumentError(errors.checkpointing.determinism_kind(name, determinism_check))


def _chain(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return run
