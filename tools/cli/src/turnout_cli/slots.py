"""`lock` and `diff`: which kernel of which version serves each slot, as a file for bug reports and CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from turnout_cli.activation import activate_with_note
from turnout_cli.main import Problem, facts, json_option, missing
from turnout_cli.output import print_json, print_lines

if TYPE_CHECKING:
    from turnout.operators.kernels import Kernel

FORMAT = 1
LISTED = 10  # changes of slots of one kind that `diff` lists one by one
SECTIONS = ("versions", "plugins", "fallbacks", "slots")


def locked() -> dict[str, Any]:
    """The state of this process with all usable plugins active: versions, plugins, and what serves each slot.

    A slot is `[kernel, reason, distribution and version]`. Omitted are slots that fall through or have no kernel,
    and those that a fallback serves as it serves all operators: it stands under `fallbacks`.
    """
    import platform

    import turnout
    from turnout.registry import REGISTRY

    records = activate_with_note()
    fallbacks = REGISTRY.fallbacks_by_key
    slots = {
        name: {
            key: _slot(entry.kernel, entry.reason)
            for key, entry in op.entries().items()
            if not _is_left_out(entry.kernel, fallbacks.get(key))
        }
        for name, op in sorted(REGISTRY.operators.items())
        if op.is_defined
    }
    return {
        "format": FORMAT,
        "versions": {"turnout": turnout.__version__, "python": platform.python_version()},
        "plugins": {f"{r.name} of {r.distribution}": f"{r.version} {r.state}" for r in records},
        "fallbacks": {key: _slot(kernel, "backend fallback") for key, kernel in sorted(fallbacks.items())},
        "slots": slots,
    }


def _slot(kernel: Kernel | None, reason: str) -> list[str]:
    return ["", reason, ""] if kernel is None else [kernel.name, reason, kernel.origin]


def _is_left_out(kernel: Kernel | None, fallback: Kernel | None) -> bool:
    return kernel is not None and (kernel.is_fallthrough or kernel is fallback)


def text_of(found: dict[str, Any]) -> str:
    """A lock as JSON with a line for each operator, so that versions of the file can be compared line by line."""
    head = {key: value for key, value in found.items() if key != "slots"}
    lines = json.dumps(head, indent=1)[:-2] + ',\n "slots": {\n'
    rows = [f"  {json.dumps(name)}: {json.dumps(slots)}" for name, slots in found["slots"].items()]
    return lines + ",\n".join(rows) + "\n }\n}\n"


@click.command
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@json_option
def lock(output: Path | None, as_json: bool) -> None:
    """Write down which kernel of which version serves each slot.

    Without -o, it prints JSON, whether or not --json is given.
    """
    text = text_of(locked())
    if output is None:
        click.echo(text, nl=False)
        return
    from turnout_aten.files import write_text

    write_text(output, text)
    if as_json:
        print_json({"file": str(output)})
    else:
        print_lines(f"wrote {output}")


class WrongFile(Problem):
    """A file that is not a lock file."""

    exit_code = 2


def read(path: Path) -> dict[str, Any]:
    """A lock file. Raises WrongFile with the reason for any other file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WrongFile(missing(path)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise WrongFile(f"{path} cannot be read as a lock file: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise WrongFile(f"{path} is not a lock file of format {FORMAT}; `turnout lock -o FILE` writes one")
    wrong = [name for name in SECTIONS if not isinstance(found.get(name), dict)]
    if wrong:
        raise WrongFile(f"{path} has no table {wrong[0]!r}; `turnout lock -o FILE` writes a whole one")
    return found


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """What differs, as rows {what, old, new}; None where one side has nothing."""
    found = []
    for section in ("versions", "plugins", "fallbacks"):
        found += _different(section.removesuffix("s") + " ", old[section], new[section])
    for name in sorted(old["slots"].keys() | new["slots"].keys()):
        before, after = old["slots"].get(name), new["slots"].get(name)
        if before is None or after is None:
            found.append({"what": f"operator {name}", "old": _count(before), "new": _count(after)})
        else:
            found += _different(f"{name} @ ", before, after)
    return found


def _count(slots: dict[str, Any] | None) -> str | None:
    return None if slots is None else f"{len(slots)} slots"


def _different(label: str, old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    keys = sorted(old.keys() | new.keys())
    return [{"what": label + k, "old": old.get(k), "new": new.get(k)} for k in keys if old.get(k) != new.get(k)]


@click.command
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path), required=False)
@facts
@click.pass_context
def diff(ctx: click.Context, old: Path, new: Path | None, as_json: bool) -> None:
    """Show what changed from the lock file OLD to NEW.

    Without NEW, it compares OLD with this environment. Exit code 1 if something has changed.
    """
    found = changes(read(old), read(new) if new is not None else json.loads(text_of(locked())))
    if as_json:
        print_json(found)
    elif not found:
        print_lines("nothing has changed")
    else:
        print_lines(*_summary(found))
    if found:
        ctx.exit(1)


def _summary(found: list[dict[str, Any]]) -> list[Text]:
    """A line for each change, but one with a count where a whole package came, went or was replaced."""
    lines: list[Text] = []
    alike: dict[str, list[Text]] = {}
    for row in found:
        line = Text.assemble(f"{row['what']}: ", (_shown(row["old"]), "red"), " -> ", (_shown(row["new"]), "green"))
        group = _group(row)
        if group is None:
            lines.append(line)
        else:
            alike.setdefault(group, []).append(line)
    for group, members in sorted(alike.items()):
        lines += members if len(members) <= LISTED else [Text(f"{len(members)} {group}")]
    return lines


def _group(row: dict[str, Any]) -> str | None:
    """What a change of a slot has in common with others; None for a change of anything else."""
    old, new = row["old"], row["new"]
    _, at, key = row["what"].partition(" @ ")
    if not at:
        return None
    kernels = "the same kernels" if old and new and old[:2] == new[:2] else "kernels"
    return f"slots at {key}, {kernels}: {old[2] if old else 'nothing'} -> {new[2] if new else 'nothing'}"


def _shown(side: Any) -> str:
    if side is None:
        return "nothing"
    if isinstance(side, list):
        kernel, reason, origin = side
        return f"{kernel or 'none'} [{reason}] ({origin})"
    return str(side)
