"""`new-plugin`: writes the package of a plugin that works, to be filled with what it is for.

The packages are text files in `templates/`: those in `shared`, then those of the kind. A functional backend has those of a
backend, and some of its own in their place. `$name` and the like are replaced, the folder `package` becomes `src/turnout_NAME`,
and a name that begins with `dot-` begins with a dot. `RECORD` in the package has the hash of each file as it was written, by
which an update knows what its author has changed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import keyword
import re
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import NamedTuple

import click

from turnout.config.settings import NAME, NAMES
from turnout_cli.main import Problem, facts
from turnout_cli.output import print_json, print_lines

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".template"
RECORD = ".turnout-plugin.json"


class Kind(NamedTuple):
    """What the templates of a kind need to know, and what to say when they are written."""

    summary: str
    dependencies: tuple[str, ...]
    test_dependencies: tuple[str, ...]
    tests: str
    use: str
    files: tuple[str, ...]


FUNCTIONAL = "functional"  # the kind of a backend whose arrays cannot be written
ATEN = ("turnout-aten>=0.1", "turnout-core>=0.1")
TESTS = ("mypy", "pytest>=8", "ruff", "turnout-stubs>=0.1")
KINDS = {
    "backend": Kind(
        "The device $name for Turnout",
        ("numpy>=2.1", *ATEN, "turnout-cpu>=0.1"),
        (*TESTS, "turnout-conformance>=0.1"),
        "pytest --pyargs turnout_conformance --turnout-backend=$name",
        "turnout.ones(3, device='$name')",
        ("backend.py", "kernels.py"),
    ),
    FUNCTIONAL: Kind(
        "The device $name for Turnout, of arrays that cannot be written",
        ("ml_dtypes>=0.5", "numpy>=2.1", *ATEN, "turnout-arrays>=0.1", "turnout-cpu>=0.1"),
        (*TESTS, "turnout-conformance>=0.1"),
        "pytest --pyargs turnout_conformance --turnout-backend=$name",
        "turnout.ones(3, device='$name')",
        ("backend.py", "kernels.py"),
    ),
    "functionality": Kind(
        "The functionality $title for Turnout",
        ATEN,
        (*TESTS, "turnout-conformance>=0.1"),
        "pytest --pyargs turnout_conformance --turnout-key=$title",
        "with turnout.$name() as counts: ...",
        ("kernels.py",),
    ),
    "operators": Kind(
        "Operators for Turnout in the namespace $name",
        ("numpy>=2.1", *ATEN, "turnout-cpu>=0.1"),
        (
            *TESTS,
            "turnout-autograd>=0.1",
            "turnout-batched>=0.1",
            "turnout-functionalize>=0.1",
            "turnout-meta>=0.1",
            "turnout-opcheck>=0.1",
            "turnout-tracer>=0.1",
        ),
        "pytest",
        "turnout.ops.$name.soft_sign(x)",
        ("operators.py",),
    ),
}


@click.command("new-plugin")
@click.argument("name")
@click.option(
    "--kind", type=click.Choice([kind for kind in KINDS if kind != FUNCTIONAL]), required=True, help="What the plugin provides."
)
@click.option("--functional", is_flag=True, help="For a backend whose arrays cannot be written, like those of JAX and Dask.")
@click.option("--folder", type=click.Path(path_type=Path), help="Write the package into this folder. By default, NAME.")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@click.option("--update", is_flag=True, help="Update an earlier package. Files that you changed stay; a diff is shown.")
@facts
def new_plugin(name: str, kind: str, functional: bool, folder: Path | None, dry_run: bool, update: bool, as_json: bool) -> None:
    """Write the package of a new plugin.

    The plugin provides a device, a functionality or operators. You can install the package and run its tests at once. It has
    an example of each part, for you to replace.
    """
    if functional and kind != "backend":
        raise Problem(f"--functional is for --kind backend, and the kind is {kind}")
    kind = FUNCTIONAL if functional else kind
    problem = "" if update else name_problem(name, kind)
    if problem:
        raise Problem(problem)
    folder = Path(name) if folder is None else folder
    if folder.exists() and not update:
        ways = "remove it, write the plugin to another place with --folder, or bring it up to date with --update"
        raise Problem(f"{folder} exists already\n  to fix  {ways}")
    files, words = rendered(name, kind), names(name)
    written, differences = changes(folder, files) if update else (files, {})
    for path, text in () if dry_run else written.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    if as_json:
        print_json({"name": name, "kind": kind, "folder": str(folder), "files": list(written), "differ": list(differences)})
        return
    head = f"{Template(KINDS[kind].summary).substitute(words)}: {len(written)} files in {folder}"
    if dry_run or update:
        shown = [f"  {path}" for path in written]
        print_lines(
            head + (", not written" if dry_run else ""), *shown, *(line for text in differences.values() for line in text)
        )
        return
    print_lines(
        head,
        "",
        *missing(KINDS[kind].test_dependencies),
        f'  install  pip install --editable "{folder}[test]"',
        f"  use      {Template(KINDS[kind].use).substitute(words)}",
        f"  prove    {Template(KINDS[kind].tests).substitute(words)}",
        f"  fill in  {', '.join(str(folder / 'src' / words['package'] / file) for file in KINDS[kind].files)}",
    )


def changes(folder: Path, files: dict[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """What an update of a folder writes, path -> text, and diffs of files that both sides have changed. Raises Problem."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(
            f"{folder} cannot be brought up to date: {error}\n  to fix  name a folder that `turnout new-plugin` wrote"
        ) from error
    written, differences = {}, {}
    for path, text in files.items():
        place = folder / path
        now = place.read_text(encoding="utf-8") if place.is_file() else None
        if path == RECORD or now is None or (now != text and digest(now) == record.get(path)):
            written[path] = text
        elif now != text and digest(text) != record.get(path):
            lines = difflib.unified_diff(now.splitlines(), text.splitlines(), f"yours/{path}", f"new/{path}", lineterm="")
            differences[path] = list(lines)
    return written, differences


def digest(text: str) -> str:
    """What the record has of a file."""
    return hashlib.sha256(text.encode()).hexdigest()


def missing(requirements: tuple[str, ...]) -> list[str]:
    """The line that installs what of Turnout the plugin's tests require and is not there: no index may have it."""
    from turnout.plugins import install_command

    ours = [re.split(r"[^\w-]", text)[0] for text in requirements if text.startswith("turnout-")]
    absent = [name for name in ours if not any(distributions(name=name))]
    return [f"  first    {install_command(*absent)}"] if absent else []


def names(name: str) -> dict[str, str]:
    """The words of a plugin's name as the templates have them. my_chip: MyChip, turnout_my_chip, turnout-my-chip."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return {
        "name": name, "title": title, "package": f"turnout_{name}", "distribution": f"turnout-{name.replace('_', '-')}",
    }  # fmt: skip


def rendered(name: str, kind: str) -> dict[str, str]:
    """The files of a new plugin: path -> text."""
    about = KINDS[kind]
    words = names(name)
    words["summary"] = Template(about.summary).substitute(words)
    words["dependencies"] = _listed(about.dependencies)
    words["test_dependencies"] = _listed(about.test_dependencies)
    words["prove"] = Template(about.tests).substitute(words)
    files = {}
    for group in ("shared", "backend", FUNCTIONAL) if kind == FUNCTIONAL else ("shared", kind):
        for path in sorted((TEMPLATES / group).rglob(f"*{SUFFIX}")):
            parts = path.relative_to(TEMPLATES / group).parts
            parts = ("src", words["package"], *parts[1:]) if parts[0] == "package" else parts
            place = "/".join(re.sub("^dot-", ".", part) for part in parts).removesuffix(SUFFIX)
            files[place] = Template(path.read_text(encoding="utf-8")).substitute(words)
    files[RECORD] = json.dumps({path: digest(text) for path, text in sorted(files.items())}, indent=1) + "\n"
    return dict(sorted(files.items()))


def _listed(requirements: tuple[str, ...]) -> str:
    return ", ".join(f'"{text}"' for text in requirements)


def name_problem(name: str, kind: str) -> str:
    """Why a plugin of this kind cannot have the name, with what to do; "" if it can."""
    if keyword.iskeyword(name):
        return f"{name} cannot be the name of a plugin: it is a keyword of Python\n  to fix  choose another name"
    if not NAME.fullmatch(name):
        shown = re.sub(r"[^a-z0-9]+", "_", name.removeprefix("turnout-").lower()).strip("_")
        example = shown if NAME.fullmatch(shown) else "my_chip"
        return (
            f"{name!r} cannot be the name of a plugin\n  expected  {NAMES}\n  to fix    choose such a name, for example {example}"
        )
    taken = taken_by(name, kind)
    return f"the name {name} is taken: {taken}\n  to fix  choose another name" if taken else ""


def taken_by(name: str, kind: str) -> str:
    """What has the name, or another name that a plugin of this kind would have; "" if nothing has."""
    import turnout
    from turnout import plugins
    from turnout.registry import REGISTRY

    words = names(name)
    for record in plugins.all_plugins():
        where = f"{record.distribution} {record.version}"
        if record.name == name:
            return f"it is the plugin of {where}"
        provided = {
            "backend": f"device:{name}",
            FUNCTIONAL: f"device:{name}",
            "functionality": f"functionality:{words['title']}",
            "operators": f"namespace:{name}",
        }
        if provided[kind] in record.provides:
            return f"{where} provides the {provided[kind].replace(':', ' ')}"
    if find_spec(words["package"]) is not None:
        return f"the package {words['package']} is installed"
    if kind != "operators" and REGISTRY.keys.universe.is_key(words["title"]):
        return f"{words['title']} is a dispatch key"
    if kind == "functionality" and hasattr(turnout, name):
        return f"turnout.{name} is a public name"
    return ""
