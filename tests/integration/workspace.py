"""The distributions of this repository, read from their pyproject.toml files and their sources."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Distribution(NamedTuple):
    """One pyproject.toml with a [project] table."""

    folder: Path
    project: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.project["name"])

    @property
    def module(self) -> str:
        """The name of its package: what it is imported by, unless it is one of stubs."""
        if self.name == "turnout-core":
            return "turnout"
        return self.name if self.is_stubs else self.name.replace("-", "_")

    @property
    def is_stubs(self) -> bool:
        """Whether it is a package of type stubs, which nothing imports."""
        return self.name.endswith("-stubs")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.module

    def requirements(self) -> list[str]:
        """Every requirement as written, those of the extras included."""
        extras = self.project.get("optional-dependencies", {})
        return [*self.project.get("dependencies", []), *(text for texts in extras.values() for text in texts)]


def distributions() -> list[Distribution]:
    """Those with code: the core, the plugins and the tools, the stubs among them."""
    folders = [ROOT / "core", *sorted(ROOT.glob("plugins/*")), *sorted(ROOT.glob("tools/*"))]
    return [read(folder) for folder in folders if (folder / "pyproject.toml").exists()]


def manifests() -> list[Path]:
    """The manifests of the plugins among them."""
    return [path for one in distributions() if (path := one.source / "plugin.toml").exists()]


def read(folder: Path) -> Distribution:
    return Distribution(folder, tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"])


def required_name(requirement: str) -> str:
    """The distribution that a requirement asks for, in the registries' spelling."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found.group()).lower()


class Module(NamedTuple):
    """What a file imports, each with its line, and of that what runs; the names with a leading underscore that it reads."""

    imports: list[tuple[int, str]]
    run: set[str]
    private: list[tuple[int, str]]


@cache
def modules(source: Path) -> dict[str, Module]:
    """Each module below the package folder `source` by its full dotted name, `__init__` written out."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        name = ".".join(path.relative_to(source.parent).with_suffix("").parts)
        found[name] = module(name, path.read_text("utf-8"))
    return found


def module(name: str, text: str) -> Module:
    """What a text has as the module of this name."""
    tree = ast.parse(text)
    attributes = ast.walk(tree) if re.search(r"\bturnout[\w.]*\._(?!_)", text) else ()
    return Module(
        [(node.lineno, each) for node in statements(tree) for each in imported(name, node)],
        {each for node in statements(tree, run=True) for each in imported(name, node)},
        [(n.lineno, ast.unparse(n)) for n in attributes if isinstance(n, ast.Attribute) and re.match(r"_(?!_)", n.attr)],
    )


def imported(module: str, node: ast.AST) -> Iterator[str]:
    """The absolute dotted names that one import statement of `module` may load or bind.

    `module` is spelled as `modules` does, with `__init__` written out, so that its package is what stands before the
    last dot. `from a.b import c` yields `a.b.c`: whether c is a module or a name makes no difference to the callers.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = module.split(".")[: -node.level] if node.level else []
        prefix = ".".join([*package, *([node.module] if node.module else [])])
        yield from (f"{prefix}.{alias.name}" for alias in node.names)


# ---- who imports whom inside a distribution: files, the rooms they stand in, and circles

Graph = dict[str, set[str]]


def statements(node: ast.AST, *, run: bool = False) -> Iterator[ast.stmt]:
    """Every statement below a node, in functions too; with `run` not those that only type checkers read."""
    work = [node]
    while work:
        inside = ast.iter_child_nodes(work.pop())
        for child in (each for each in inside if isinstance(each, (ast.stmt, ast.excepthandler, ast.match_case))):
            if run and isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                work.append(ast.Module(child.orelse, []))
                continue
            work.append(child)
            if isinstance(child, ast.stmt):
                yield child


def files(one: Distribution) -> Graph:
    """File -> the files of the same distribution that it imports. A package's name stands for its `__init__`."""
    return graph_of(modules(one.source))


def graph_of(found: Mapping[str, Module]) -> Graph:
    """The same of modules by their dotted names, `__init__` written out."""
    names = {name.removesuffix(".__init__") for name in found}
    graph: Graph = {}
    for module, read in found.items():
        here = module.removesuffix(".__init__")
        graph[here] = set()
        for name in read.run:
            while name and name not in names:
                name = name.rpartition(".")[0]
            if name and name != here:
                graph[here].add(name)
    return graph


def rooms(graph: Graph) -> Graph:
    """The same for folders and files directly below the package; the package's own `__init__` is left out."""
    found: Graph = {}
    for module, imports in graph.items():
        if "." in module:
            inside = found.setdefault(_room(module), set())
            inside.update(_room(other) for other in imports if "." in other and _room(other) != _room(module))
    return found


def _room(module: str) -> str:
    return module.split(".")[1]


def circles(graph: Graph) -> list[list[str]]:
    """Groups of two and more that reach each other."""
    reach = {node: set(reached(graph, node)) for node in graph}
    groups = {tuple(sorted(other for other in reach[node] if node in reach[other])) for node in graph}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def reached(graph: Graph, start: str) -> Iterator[str]:
    """What a node imports, itself or through others."""
    seen: set[str] = set()
    work = [start]
    while work:
        new = graph[work.pop()] - seen
        yield from new
        seen |= new
        work += new
