"""The rooms of turnout-autograd: which may import which, and that no file is in an import circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import turnout_autograd

PACKAGE = Path(turnout_autograd.__file__).parent
NAME = PACKAGE.name
# Each imports only those before it. Importing a family of `generated` is what `recording` does when an operator is first used.
ORDER = (
    "errors", "declarations", "generation", "duals", "formulas", "tangents", "engine", "recording", "transforms", "forward",
    "hooks", "function", "passes", "functional", "checkpointing", "modules", "checking", "drawing", "public", "service", "plugin",
)  # fmt: skip
FILES = {
    ".".join([NAME, *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
    if "generated" not in path.parts
}


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module without what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from at_run_time(child)


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, in functions too."""
    found = set()
    for node in at_run_time(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == NAME:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] == NAME}
    return found & FILES.keys()


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_no_file_is_in_an_import_circle():
    TopologicalSorter({module: imports(path) - {module} for module, path in FILES.items()}).prepare()


def test_each_room_imports_only_those_before_it():
    assert {room(module) for module in FILES} - {""} == set(ORDER)
    wrong = [
        f"{module} imports {other}"
        for module, path in FILES.items()
        for other in imports(path)
        if room(module) and room(other) and ORDER.index(room(module)) < ORDER.index(room(other))
    ]
    assert not wrong


def test_each_room_is_in_the_map_and_says_what_it_holds():
    text = (PACKAGE / "__init__.py").read_text("utf-8")
    for folder in (path for path in PACKAGE.iterdir() if path.is_dir() and path.name not in ("generated", "__pycache__")):
        assert f"| `{folder.name}` |" in text
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))
