"""`verify`: what discovery would say of a plugin, before it is installed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnout_cli.main import Problem, facts, missing
from turnout_cli.output import print_json, print_lines

if TYPE_CHECKING:
    from turnout.plugins.discovery import Found


@click.command
@click.argument("path", type=click.Path(path_type=Path))
@facts
@click.pass_context
def verify(ctx: click.Context, path: Path, as_json: bool) -> None:
    """Check a plugin before it is installed.

    PATH is a manifest, or the folder of a project whose pyproject.toml names manifests. None of its code runs. Exit code 1 if
    something is wrong.
    """
    if not path.exists():
        raise Problem(missing(path))
    plugins = [checked(found) for found in (of_project(path) if path.is_dir() else [of_manifest(path)])]
    if as_json:
        print_json(plugins)
    for each in () if as_json else plugins:
        lines = [f"  problem  {problem}" for problem in each["problems"]] or [
            f"  fine     provides {', '.join(each['provides'])}"
        ]
        print_lines(f"{each['name']}: the manifest {each['manifest']}", *lines)
    if any(each["problems"] for each in plugins):
        ctx.exit(1)


def of_project(folder: Path) -> Iterator[Found]:
    """The plugins that the pyproject.toml of a folder names, as they would be found. Raises Problem."""
    from turnout.plugins.discovery import GROUP, Found

    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        entries = dict(project.get("entry-points", {}).get(GROUP, {}))
    except FileNotFoundError:
        raise Problem(f"{folder} has no pyproject.toml\n  to fix  name a project's folder, or a manifest") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise Problem(f"{folder / 'pyproject.toml'} cannot be read: {error}") from error
    if not entries:
        text = f'[project.entry-points."{GROUP}"]\n          NAME = "PACKAGE:plugin.toml"'
        raise Problem(f"{folder / 'pyproject.toml'} names no plugin\n  to fix  add {text}")
    for name, value in entries.items():
        package, _, file = str(value).partition(":")
        parts = (*package.split("."), file)
        places = [folder.joinpath(*above, *parts) for above in (("src",), ())]
        found = next((place for place in places if place.is_file()), None)
        if not file or found is None:
            looked = ", ".join(map(str, places)) if file else "expected 'PACKAGE:plugin.toml'"
            raise Problem(f"the manifest of {name} = {value!r} is not there: {looked}")
        yield Found(name, str(project.get("name", "")), str(project.get("version", "")), str(value), found)


def of_manifest(path: Path) -> Found:
    """A plugin of which only the manifest is known: what belongs to it is taken from there."""
    from turnout.plugins.discovery import Found
    from turnout.plugins.manifest import load

    document, _ = load(path, path.name)
    name, distribution, module = (str(document.get(field, "")) for field in ("name", "distribution", "module"))
    return Found(name, distribution, "", f"{module.partition('.')[0]}:{path.name}", path)


def checked(found: Found) -> dict[str, Any]:
    """What is to be said of a plugin: what it provides, and what is wrong."""
    from turnout.plugins import PLUGIN_API, catalog
    from turnout.plugins.discovery import content

    said = content(found, PLUGIN_API)
    problems = [*(str(error) for error in [said.error] if error is not None), *filter(None, [said.incompatible])]
    manifest = said.manifest
    if manifest is not None and found.version:  # of a project: its modules are there
        parts = manifest.module.split(".")
        top = Path(str(found.path)).parents[len(found.entry.partition(":")[0].split("."))]
        if not (top.joinpath(*parts).with_suffix(".py").is_file() or top.joinpath(*parts, "__init__.py").is_file()):
            problems.append(f"module: there is no {manifest.module} in {top}")
    for claim in sorted(said.claims):
        kind, _, name = claim.partition(":")
        others = [other.owner for other in catalog().claiming(kind, name) if other.distribution != found.distribution]
        standard = kind == "functionality" and manifest is not None and name not in {key.name for key in manifest.new_keys}
        if others and kind != "namespace" and not standard:  # several plugins may have kernels in one namespace
            problems.append(f"the {kind} {name} is provided by {', '.join(others)} too")
    return {"name": found.name, "manifest": str(found.path), "provides": sorted(said.claims), "problems": problems}
