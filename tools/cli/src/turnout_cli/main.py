"""The group of commands, and what they all share: short errors, exit codes, `--json` and `--traceback`.

Exit codes: 0 fine; 1 an error, or `doctor` found something broken, or `diff` a difference; 2 a wrong command line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

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
    "lock": "turnout_cli.slots",
    "diff": "turnout_cli.slots",
    "demo": "turnout_cli.demo",
    "new-plugin": "turnout_cli.new_plugin",
}


class Commands(click.Group):
    """Commands by name, loaded at first use; any error becomes a short message unless --traceback is given."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        return None if module is None else getattr(import_module(module), cmd_name.replace("-", "_"))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
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
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # any error becomes one message
            if ctx.meta.get("turnout.traceback"):
                raise
            raise Problem(_message(error)) from error


def _message(error: BaseException) -> str:
    from turnout.errors import TurnoutError

    if isinstance(error, (TurnoutError, OSError)):
        return str(error)
    return f"{type(error).__name__}: {error}\n  `--traceback` shows where it comes from"


class Problem(click.ClickException):
    """What ends a command early: a message, with exit code 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"turnout: {self.message}", err=True)


def _remember_traceback(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["turnout.traceback"] = True


def traceback_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--traceback`: let an error go through with its whole traceback."""
    return click.option(
        "--traceback", is_flag=True, expose_value=False, callback=_remember_traceback, help="Show errors with their traceback."
    )(command)


def facts(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that prints facts: `--json` (the parameter `as_json`) and `--traceback`."""
    return click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")(traceback_option(command))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@traceback_option
@click.version_option(package_name="turnout-cli", prog_name="turnout")
def turnout() -> None:
    """See what Turnout does: which plugins there are, which kernel serves which key, and why."""


def main() -> None:
    """The entry point of the command."""
    turnout(prog_name="turnout")
