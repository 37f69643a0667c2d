"""`--compile ENGINE`: functions through `turnout.compile`. It does not warn: what ran eagerly, and why, is part of the facts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from turnout_cli.main import Problem
from turnout_cli.names import engine_names


def compile_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--compile ENGINE`, the parameter `engine`."""
    return click.option("--compile", "engine", metavar="ENGINE", shell_complete=engine_names, help=text)


def compiled(function: Callable[..., Any], engine: str) -> Callable[..., Any]:
    """The function, compiled. Raises Problem for an engine that is not there, before anything runs."""
    import turnout
    from turnout.errors.layout import near

    made: Callable[..., Any] = turnout.compile(function, engine=engine)  # says what is missing for that
    known = sorted({row.name for _, row in turnout.plugins.engines()})
    if engine not in known:
        raise Problem(f"there is no engine {engine!r}{near(engine, known)}\n  known   {', '.join(known)}")
    return made


@contextmanager
def without_warnings(engine: str | None) -> Iterator[None]:
    """A block in which functions that an engine compiles do not warn; without an engine, what compiles may not be installed."""
    import turnout

    with warnings.catch_warnings():
        if engine is not None:
            warnings.simplefilter("ignore", turnout.compiler.CompileWarning)
        yield


def compiled_facts(function: Callable[..., Any]) -> dict[str, Any]:
    """What became of a compiled function's calls: how many ran a graph, and why others did not."""
    import turnout

    found = turnout.compiler.signatures(function)
    return {
        "signatures": len(found),
        "calls": sum(signature.calls for signature in found),
        "why": list(dict.fromkeys(signature.why for signature in found if signature.why)),
    }
