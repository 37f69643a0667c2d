"""The commands of `turnout`, from the parser that runs them: how each is called, what it does, its arguments and options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from turnout_cli.main import turnout


def fragment() -> str:
    """A section for every command, in the order of `turnout --help`."""
    context = click.Context(turnout, info_name="turnout", **turnout.context_settings)
    return "\n\n".join(_sections(turnout, context)) + "\n"


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```"
    yield _prose(inspect.cleandoc(command.help or ""))
    records = [each.get_help_record(context) for each in command.get_params(context)]
    options = [record for record in records if record is not None and record[1]]
    if options:
        yield "\n".join(["| option | does |", "|---|---|", *(f"| {_spelled(name)} | {_cell(help)} |" for name, help in options)])
    if isinstance(command, click.Group):
        names = command.list_commands(context)
        found = [(name, each) for name in names if (each := command.get_command(context, name)) is not None]
        for name, each in found:
            yield from _sections(each, click.Context(each, info_name=name, parent=context))


def _prose(text: str) -> str:
    r"""Help as Markdown. A paragraph after `\b` is shown as it is written."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.partition("\f")[0]):
        if paragraph.startswith("\b"):
            parts.append(f"```text\n{inspect.cleandoc(paragraph.removeprefix(chr(8)))}\n```")
        elif paragraph:
            parts.append(_escaped(" ".join(paragraph.split())))
    return "\n\n".join(parts)


def _spelled(option: str) -> str:
    return f"`{option}`".replace("|", r"\|")


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", r"\|")


def _escaped(text: str) -> str:
    """Text of which only what stands in backticks is markup."""
    parts = text.split("`")
    return "`".join(part if i % 2 else re.sub(r"([\\*_\[\]<>])", r"\\\1", part) for i, part in enumerate(parts))
