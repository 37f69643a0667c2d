"""The group of commands, and what they all share: short errors, exit codes, `--json`, `--wide` and `--traceback`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from turnout_cli.output import WIDE, columns, folded, note

# What scripts can rely on; the end of `turnout --help`, the README and docs/cli.md say it in these words.
EXIT_CODES = (
    "Exit codes: 0 fine; 1 an error, nothing found, something broken (doctor, verify), a key that cannot be switched on (keys), "
    "a difference (diff, run); 2 a wrong command line or lock file."
)

# Command -> the module that holds a click command of that name, imported when it is asked for.
COMMANDS = {
    "plugins": "turnout_cli.environment",
    "doctor": "turnout_cli.environment",
    "config": "turnout_cli.environment",
    "keys": "turnout_cli.keys",
    "table": "turnout_cli.operators",
    "explain": "turnout_cli.operators",
    "coverage": "turnout_cli.coverage",
    "graph": "turnout_cli.graph",
    "run": "turnout_cli.running",
    "lock": "turnout_cli.slots",
    "diff": "turnout_cli.slots",
    "demo": "turnout_cli.demo",
    "completion": "turnout_cli.completion",
    "new-plugin": "turnout_cli.new_plugin",
    "verify": "turnout_cli.verify",
}


class Commands(click.Group):
    """Commands by name, loaded at first use; any error becomes a short message unless --traceback is given."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        return None if module is None else getattr(import_module(module), cmd_name.replace("-", "_"))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing and not args[0].startswith("-"):
            from turnout.errors.layout import near

            ctx.fail(f"there is no command {args[0]!r}{near(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        from turnout.errors import PluginWarning

        try:
            with warnings.catch_warnings():
                # The commands say themselves what is broken.
                warnings.simplefilter("ignore", PluginWarning)
                return super().invoke(ctx)
        except click.UsageError as error:
            raise click.UsageError(_folded(error.format_message()), error.ctx) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # any error becomes one message
            if ctx.meta.get("turnout.traceback"):
                raise
            raise Problem(_message(error)) from error


def _message(error: BaseException) -> str:
    from turnout.errors import TurnoutError

    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        return missing(Path(error.filename))
    if isinstance(error, (TurnoutError, OSError)):
        return str(error)
    return f"{type(error).__name__}: {error}\n  `--traceback` shows where it comes from"


def missing(path: Path) -> str:
    """What is said of a file that does not exist, or whose folder does not."""
    return f"the file {path} does not exist" if path.parent.is_dir() else f"the folder {path.parent} does not exist"


class Problem(click.ClickException):
    """What ends a command early: a message, with exit code 1."""

    def show(self, file: Any = None) -> None:
        note(f"turnout: {self.message}")


def _folded(text: str) -> str:
    """A message that fits a terminal, where click would let words break; click puts "Error: " before it."""
    head = "Error: "
    return "\n".join(line.plain for line in folded(Text(head + text), columns(stderr=True), 2)).removeprefix(head)


def _remembered(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    """What puts a flag into the meta of the context, which all commands of the line share."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[name] = True

    return remember


def traceback_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--traceback`: let an error go through with its whole traceback."""

    def remember(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        _remembered("turnout.traceback")(ctx, parameter, value)
        if value:
            from turnout import config, errors

            with suppress(errors.ConfigError):  # the command itself says what is wrong
                ctx.with_resource(config.override(traceback="full"))

    return click.option(
        "--traceback", is_flag=True, expose_value=False, callback=remember, help="Show errors with their traceback."
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command: `--json` (the parameter `as_json`) and `--traceback`."""
    return click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")(traceback_option(command))


def facts(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that prints facts for people: those of every command, and `--wide`."""
    wide = click.option(
        "--wide", is_flag=True, expose_value=False, callback=_remembered(WIDE), help="Do not fold tables and lines to fit."
    )
    return wide(json_option(command))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@traceback_option
@click.version_option(None, "-V", "--version", package_name="turnout-cli", prog_name="turnout")
def turnout() -> None:
    """See what Turnout does: which plugins there are, which kernel serves which key, and why."""


def main() -> None:
    """The entry point of the command."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # what the terminal's encoding lacks is shown as \u2026 instead of being an error
        reconfigure(errors="backslashreplace")
    if "_TURNOUT_COMPLETE" in os.environ:
        import_module("turnout_cli.completion")  # which knows the shells
    turnout(prog_name="turnout")
