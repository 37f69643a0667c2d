"""`turnout.compiler`: what is known of the functions that `turnout.compile` made, and the errors and warnings of compiling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from turnout import plugins
from turnout.config.effects import effect
from turnout.operators.tracebacks import shortening
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.dynamic import DynamicCompiled
from turnout_tracer.compiling.errors import CompileError, CompileWarning, EngineError
from turnout_tracer.compiling.functions import FUNCTIONS, Compiled, Signature

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CompileError", "CompileWarning", "EngineError", "Signature", "compile", "explain", "reset", "signatures"]
__dir__ = __all__.copy

F = TypeVar("F", bound="Callable[..., Any]")


@overload
def compile(function: F, *, engine: str = "", dynamic: bool = False, strict: bool = False) -> F: ...
@overload
def compile(*, engine: str = "", dynamic: bool = False, strict: bool = False) -> Callable[[F], F]: ...
@shortening
def compile(function: Callable[..., Any] | None = None, *, engine: str = "", dynamic: bool = False, strict: bool = False) -> Any:
    """A function that does what `function` does, and computes it by a graph that an engine has compiled.

    The first call with a signature runs `function` itself and records its operators. Later calls with this signature run the
    compiled graph. A signature is what the operators depend on: shapes, dtypes, devices and strides of tensors, which of them
    are the same or share memory, their `.grad`, Python values, and what `function` reads from cells, globals and attributes.
    A call whose results record for gradients is one node, whose backward is compiled too. What cannot be compiled runs eagerly,
    with one CompileWarning that says why. Inside transforms, autocast, modes and traces, `function` itself runs.

    Raises PluginError where turnout-functionalize, turnout-meta or turnout-autograd is missing, CompileError when the engine
    is not there or fails, and, with `strict=True`, where a call would run eagerly.

    Arguments:
        function: the function; None returns a decorator
        engine: what compiles the graphs; "" means the setting `compile.engine`, else the engine that serves the device
        dynamic: whether one trace serves calls of all sizes for which it holds: the function then runs once more after the first
            call, on fake tensors whose sizes are symbols
        strict: whether what cannot be compiled is an error

    Example:
        >>> @turnout.compile(engine="eager")
        ... def scaled(x, factor):
        ...     return x * factor
        >>> x = turnout.tensor([1.0, 2.0])
        >>> scaled(x, 3.0)
        tensor([3., 6.])
        >>> scaled(x + 1, 3.0)
        tensor([6., 9.])
    """
    for needed in ("Tracer", "Functionalize", "Fake", "Autograd"):
        plugins.require_functionality(needed)
    if function is None:
        return lambda given: compile(given, engine=engine, dynamic=dynamic, strict=strict)
    if not callable(function):
        raise errors.CompileError(errors.not_callable(function))
    return (DynamicCompiled if dynamic else Compiled)(function, engine, strict)


@shortening
def explain(function: Callable[..., Any]) -> str:
    """What is known of a compiled function: its signatures, the graph and engine of each, or why it runs eagerly.

    Arguments:
        function: what `turnout.compile` returned

    Example:
        >>> f = turnout.compile(lambda x: x + 1, engine="eager")
        >>> y = f(turnout.ones(2))
        >>> print(turnout.compiler.explain(f).splitlines()[0])
        function: 1 signature
    """
    effect("compiler.explain()")
    if not isinstance(function, Compiled):
        raise errors.CompileError(errors.not_compiled_function("explain", function))
    return function.explained()


@shortening
def signatures(function: Callable[..., Any]) -> list[Signature]:
    """What `explain` prints, as data: the guards of each signature, its engine and graphs, or why it runs eagerly.

    Arguments:
        function: what `turnout.compile` returned

    Example:
        >>> f = turnout.compile(lambda x: (x + 1, x + 1), engine="eager")
        >>> y = f(turnout.ones(2))
        >>> [signature] = turnout.compiler.signatures(f)
        >>> len(signature.recorded.nodes), len(signature.graph.nodes)
        (2, 2)
    """
    effect("compiler.signatures()")
    if not isinstance(function, Compiled):
        raise errors.CompileError(errors.not_compiled_function("signatures", function))
    return function.signatures()


def reset() -> None:
    """Forget all compiled graphs of all functions.

    Example:
        >>> turnout.compiler.reset()
    """
    effect("compiler.reset()")
    for function in list(FUNCTIONS):
        function.reset()
