"""docs/plugin-api.md: the names are there, and examples, scaffolds, pages and turnout-nn import nothing else of Turnout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module

from pages import ROOT, blocks, tracked

PAGE = ROOT / "docs" / "plugin-api.md"
ROWS = re.findall(r"^\| `(turnout[\w.]*)` \| (`.*`) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
PROMISED = {module: set(re.findall(r"`(\w+)`", names)) for module, names in ROWS}
OURS = {path.name for parent in ("plugins", "tools") for path in ROOT.glob(f"{parent}/*/src/*")} | {"turnout"}
PAGES = ("README.md", "docs/write-a-backend.md", "docs/write-a-functionality.md", "docs/custom-operators.md", "docs/manifest.md")


def programs() -> Iterator[tuple[str, str]]:
    """Where it stands and its text: files of examples, scaffolds and turnout-nn, Python blocks of the pages for authors."""
    for name in tracked(("examples", "tools/cli/src/turnout_cli/templates", "plugins/nn/src")):
        if name.endswith((".py", ".py.template")):
            text = (ROOT / name).read_text("utf-8")
            yield name, re.sub(r"\$\{?\w+\}?", "placeholder", text) if name.endswith(".template") else text
    for page in PAGES:
        for block in blocks(ROOT / page):
            if block.kind == "python":
                yield f"{page}:{block.line}", block.text


def imported(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of what a program imports from Turnout's own packages; the name is "" for `import module`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in OURS:
            yield from ((node.module, each.name) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names if each.name.partition(".")[0] in OURS)


def test_the_promise_is_small_and_kept() -> None:
    assert len(PROMISED) <= 12
    assert sum(map(len, PROMISED.values())) <= 80
    missing = [f"{m}.{name}" for m, names in PROMISED.items() for name in names if name not in import_module(m).__all__]
    assert missing == []


def test_examples_scaffolds_and_pages_import_what_is_promised() -> None:
    sources = list(programs())
    assert len(sources) > 60
    outside = [
        f"{where}: {module} {name}"
        for where, text in sources
        for module, name in imported(text)
        if not module.startswith("turnout_nn")
        if (name not in PROMISED.get(module, ()) if name else module not in PROMISED) and not public(module, name)
    ]
    assert outside == []


def test_a_plugin_here_is_written_for_the_promise_or_for_the_modules_inside() -> None:
    mixed = []
    for plugin in tracked(("plugins",)):
        if plugin.endswith("/pyproject.toml"):
            texts = [path.read_text("utf-8") for path in (ROOT / plugin).parent.glob("src/**/*.py")]
            asked = {module for text in texts for module, _ in imported(text) if module.startswith("turnout_aten")}
            mixed += [plugin] if "turnout_aten.plugin_api" in asked and len(asked) > 1 else []
    assert mixed == []


def public(module: str, name: str) -> bool:
    """Whether it is a name of `turnout` or of a public module, such as `turnout.nn`, which plugins provide."""
    if module in ("turnout", "turnout.errors", "turnout.autograd", "turnout.optim") or module.startswith("turnout.nn"):
        return not name or name in import_module(module).__all__
    return False
