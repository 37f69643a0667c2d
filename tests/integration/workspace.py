"""The distributions of this repository, read from their pyproject.toml files and their sources."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
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


def read(folder: Path) -> Distribution:
    return Distribution(folder, tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"])


def required_name(requirement: str) -> str:
    """The distribution that a requirement asks for, in the registries' spelling."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found.group()).lower()


@lru_cache(maxsize=1)  # trees take much memory
def modules(source: Path) -> list[tuple[str, ast.Module]]:
    """Each module below the package folder `source`: its full dotted name and its tree."""
    found = []
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        found.append((".".join(parts), ast.parse(path.read_text("utf-8"), str(path))))
    return found


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


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node, in functions too, but for those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in child.orelse:
                yield other
                yield from statements(other)
            continue
        yield child
        yield from statements(child)


def files(one: Distribution) -> Graph:
    """File -> the files of the same distribution that it imports. A package's name stands for its `__init__`."""
    return graph_of(dict(modules(one.source)))


def graph_of(trees: Mapping[str, ast.Module]) -> Graph:
    """The same of trees by their dotted names, `__init__` written out."""
    names = {module.removesuffix(".__init__") for module in trees}
    graph: Graph = {}
    for module, tree in trees.items():
        here = module.removesuffix(".__init__")
        graph[here] = set()
        for node in statements(tree):
            for name in imported(module, node):
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
