"""`graph`: runs a function of a Python file and draws the graph of gradients behind what it returns, or prints what is compiled.

The function runs under `detect_anomaly`, so that every box shows the line it comes from, and with a profiler that keeps its
variables when it returns: these, and those of the file, are the names of tensors in the drawing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import click

from turnout.errors import TurnoutError
from turnout_cli.compiling import compile_option, compiled, without_warnings
from turnout_cli.main import Problem, json_option, missing
from turnout_cli.output import note, print_json

if TYPE_CHECKING:
    from turnout import Tensor

SUFFIXES = {".dot": "dot", ".gv": "dot", ".svg": "svg"}
DEPTH = 3  # of names: model.layers[0].weight
LONGEST = 1000  # entries of a container that are looked at for names
_TARGET = "FILE.py:FUNCTION"
_MODULE = "program_of_the_graph"  # the name of the file as a module: its own could be that of another


class ProgramError(TurnoutError, RuntimeError):
    """The user's program raised an error, which is the cause of this one."""


@click.command
@click.argument("target", metavar=_TARGET)
@click.option(
    "--format", "format_", type=click.Choice(["dot", "svg"]), help="The format: by default, that of the suffix of -o or dot."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write into this file.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Draw at most this many nodes and leaves, those nearest to the results."
)
@compile_option("Print instead the graph that turnout.compile gives to this engine, as recorded and as optimised.")
@json_option
def graph(target: str, format_: str | None, output: Path | None, limit: int | None, engine: str | None, as_json: bool) -> None:
    """Draw the graph of gradients behind what FUNCTION returns.

    The drawing is DOT or SVG, in UTF-8. Turnout calls FUNCTION of FILE.py without arguments. It must return a tensor, or
    tensors in tuples, lists or dicts.

    With --compile, FUNCTION is compiled, and the graph is printed as Python. Tensors of the file that it uses are inputs.
    """
    path, name = _parts(target)
    if engine is not None:
        if format_ is not None or limit is not None:
            raise click.UsageError("--format and --limit are about drawings: leave them or --compile out")
        return _print_compiled(target, engine, output, as_json)
    # Asked for before the program runs: where it is missing or broken, that is what is wrong.
    from turnout import autograd
    from turnout_aten.files import write_text

    draw = autograd.graph.draw
    format_ = format_ or ("dot" if output is None else SUFFIXES.get(output.suffix.lower(), "dot"))
    # The standard output is the drawing's.
    with redirect_stdout(sys.stderr), _loaded(path) as program:
        result, variables = _called(_function(program, path, name), target)
        tensors = _tracked(result, target)
        names = _names(result, variables, vars(program))
        text = draw(tensors, names=names, format=format_, **({} if limit is None else {"limit": limit}))
    if output is not None:
        write_text(output, text)
    if as_json:
        print_json({"format": format_, "file": "" if output is None else str(output), "drawing": text})
    elif output is None:
        click.echo(text.encode(), nl=False)


def _print_compiled(target: str, engine: str, output: Path | None, as_json: bool) -> None:
    """Print what the engine is given for the function."""
    import turnout
    from turnout_aten.files import write_text

    path, name = _parts(target)
    with redirect_stdout(sys.stderr), _loaded(path) as program:
        function = compiled(_function(program, path, name), engine)
        with _errors_of(target), without_warnings(engine):
            for _ in range(2):  # the first call may make state
                function()
        found = [each for each in turnout.compiler.signatures(function) if each.graph is not None]
        if not found:
            why = "; ".join(dict.fromkeys(each.why for each in turnout.compiler.signatures(function)))
            raise Problem(f"{target} runs eagerly: {why}")
    recorded, given, notes = found[-1].recorded, found[-1].graph, found[-1].notes
    assert recorded is not None
    assert given is not None
    text = (
        f"# recorded, {len(recorded.nodes)} operators\n{recorded.code.rstrip()}\n\n"
        f"# given to {engine}, {len(given.nodes)} operators\n{given.code.rstrip()}\n" + "".join(f"# {note}\n" for note in notes)
    )
    if output is not None:
        write_text(output, text)
    if as_json:
        facts = {"engine": engine, "recorded": recorded.code, "graph": given.code, "notes": list(notes)}
        print_json({**facts, "file": "" if output is None else str(output)})
    elif output is None:
        click.echo(text.encode(), nl=False)


def _parts(target: str) -> tuple[Path, str]:
    path, _, name = target.rpartition(":")
    if not (path and name):
        raise click.BadParameter(f"{target!r} names no function: write {_TARGET}", param_hint=_TARGET)
    return Path(path), name


# ---- the program


@contextmanager
def _loaded(path: Path) -> Iterator[ModuleType]:
    """The file as a module; modules beside it can be imported, as when Python runs it."""
    from importlib.util import module_from_spec, spec_from_file_location

    if not path.is_file():
        raise Problem(missing(path))
    spec = spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise Problem(f"{path} is not a Python file")
    program = module_from_spec(spec)
    beside = str(path.resolve().parent)
    sys.modules[_MODULE] = program  # where dataclasses and pickle look for it
    sys.path.insert(0, beside)
    try:
        with _errors_of(str(path)):
            spec.loader.exec_module(program)
        yield program
    finally:
        del sys.modules[_MODULE]
        sys.path.remove(beside)


def _function(program: ModuleType, path: Path, name: str) -> Callable[[], Any]:
    import inspect

    from turnout.errors.layout import near

    found: Any = getattr(program, name, None)
    if not callable(found):
        functions = ((key, value) for key, value in vars(program).items() if isinstance(value, FunctionType))
        there = [key for key, value in functions if value.__module__ == program.__name__]
        raise Problem(f"{path} has no function {name}{near(name, there) or '; it has ' + (', '.join(there) or 'none')}")
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise Problem(
            f"{path}:{name} cannot be called without arguments: {error}\n"
            "  to fix  name a function that makes its inputs itself, and calls this one"
        ) from None
    except ValueError:
        pass  # a callable without a signature: the call itself will show
    return found


def _called(function: Callable[[], Any], target: str) -> tuple[Any, dict[str, Any]]:
    """What the function returns, and its variables then."""
    import inspect

    from turnout import autograd

    variables: dict[str, Any] = {}
    code = getattr(inspect.unwrap(function), "__code__", None)
    with autograd.detect_anomaly(check_nan=False), _keeping_variables(code, variables), _errors_of(target):
        return function(), variables


@contextmanager
def _keeping_variables(code: CodeType | None, into: dict[str, Any]) -> Iterator[None]:
    """Put the variables of the code into a dict when it returns; the last return counts."""

    def profile(frame: Any, event: str, _arg: Any) -> None:
        if event == "return" and frame.f_code is code:
            into.clear()
            into.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def _errors_of(what: str) -> Iterator[None]:
    """Whatever the program raises, with the innermost of the file's own lines that it went through."""
    try:
        yield
    except (Exception, SystemExit) as error:  # of any kind: the program is the user's
        raise ProgramError(f"{what} raised {type(error).__name__}: {error}{_place(error)}") from error


def _place(error: BaseException) -> str:
    import traceback

    at: Any = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == _MODULE:
            at = traceback.FrameSummary(frame.f_code.co_filename, number, frame.f_code.co_name)
    return "" if at is None else f"\n  at  {at.filename}:{at.lineno}  {at.line}"


# ---- its tensors


def _tracked(result: Any, target: str) -> list[Tensor]:
    """The tensors that were returned and require a gradient; a note says how many do not."""
    from turnout import Tensor
    from turnout_aten import trees
    from turnout_aten.errors.tensors import REQUIRE

    leaves = trees.flatten(result)[0]
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if not tensors:
        kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
        raise Problem(f"{target} returned no tensor, but {kinds}")
    tracked = [tensor for tensor in tensors if tensor.requires_grad]
    if not tracked:
        raise Problem(f"{target} returned no tensor that requires a gradient, so there is no graph to draw\n{REQUIRE}")
    if len(tracked) < len(tensors):
        note(f"without {len(tensors) - len(tracked)} of {len(tensors)} tensors, which require no gradient")
    return tracked


def _names(result: Any, variables: dict[str, Any], of_file: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors by name: the keys of a dict that was returned, then variables of the function, then those of the file."""
    found: dict[str, Tensor] = {}
    for source in (result if isinstance(result, dict) else {}, variables, of_file):
        for name, tensor in _tensors_in(source):
            found.setdefault(name, tensor)
    return found


def _tensors_in(variables: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that variables lead to, each with the expression that does (model.layers[0].weight), short ones first."""
    from turnout import Tensor

    level = [(str(name), value) for name, value in variables.items()]
    for _ in range(DEPTH + 1):
        yield from [(name, value) for name, value in level if isinstance(value, Tensor)]
        level = [inner for name, value in level for inner in islice(_parts_of(name, value), LONGEST)]


def _parts_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a container or object holds, each with its expression."""
    from turnout import Tensor

    if isinstance(value, dict):
        return ((f"{name}[{key!r}]", each) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return ((f"{name}[{i}]", each) for i, each in enumerate(value))
    if isinstance(value, (Tensor, type, FunctionType, ModuleType)):
        return iter(())
    return ((f"{name}.{key}", each) for key, each in getattr(value, "__dict__", {}).items())
