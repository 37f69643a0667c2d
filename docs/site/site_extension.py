"""What the site asks of Sphinx beyond its settings.

- The pages that are made from the program are written before any page is read.
- Links to files outside of docs/ lead to the pages that show them.
- A link that names a file, such as `[manifest.md](manifest.md)`, has the title of its page: who reads the site sees no files.
- A public name in code, such as `turnout.add`, is a link to its place in the reference.
- Short code in a sentence is not broken at the end of a line.
- A page that would load something from a network is a warning.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import generated_pages
from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# A file outside of docs/ -> the page that shows it.
PAGES = {
    "../README.md": "smallest-backend.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
    "../tools/conformance/README.md": "conformance.md",
    "../plugins/opcheck/README.md": "opcheck.md",
    "../tools/export/README.md": "export.md",
}
# What a browser loads by itself, from somewhere else. A link that a reader may follow is no such thing.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]*"|<link\b[^>]*\bhref="(?:https?:)?//[^"]*"|"""
    r"""url\(["']?(?:https?:)?//[^)]*|@import[^;]*//[^;]*"""
)
NAME = re.compile(r"(turnout(?:\.\w+)+)(\(.*\))?")
FILE = re.compile(r"[\w./-]+\.md")
LONGEST_UNBROKEN = 36  # characters of code, which fit a line of a small screen


def write_pages(app: Sphinx) -> None:
    """Write the pages that are made from the program."""
    generated_pages.write(Path(app.srcdir) / "generated")


def turn_links(app: Sphinx, document: str, source: list[str]) -> None:
    """Turn links to files outside of docs/ to the pages that show them."""
    folder = "../" * document.count("/")
    for file, page in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(folder + file)}(?=[)#])", f"]({folder}{page}", source[0])
    source[0] = re.sub(r"\]\(\.\./examples/(\w+)/README\.md", r"](generated/examples/\1.md", source[0])


def name_pages(app: Sphinx, document: nodes.document, name: str) -> None:
    """Give links whose text is the path of a file the title of the page that they lead to."""
    pages = {app.builder.get_relative_uri(name, each): title for each, title in app.env.titles.items()}
    for link in document.findall(nodes.reference):
        page = link.get("refuri", "").partition("#")[0]
        if FILE.fullmatch(link.astext()) and page in pages:
            link.children = []
            link += nodes.Text(pages[page].astext())


def keep_short_code_together(app: Sphinx, document: nodes.document, name: str) -> None:
    """Mark the code in sentences that a line has room for."""
    for literal in document.findall(nodes.literal):
        if len(literal.astext()) <= LONGEST_UNBROKEN:
            literal["classes"].append("short")


def link_names(app: Sphinx, document: nodes.document, name: str) -> None:
    """Make links of the public names that stand in code inside of sentences."""
    objects = app.env.domains["py"].data["objects"]
    for literal in document.findall(nodes.literal):
        match = NAME.fullmatch(literal.astext())
        if match is None or match[1] not in objects or _is_inside_link(literal):
            continue
        found = objects[match[1]]
        target = app.builder.get_relative_uri(name, found.docname) + "#" + found.node_id
        literal.replace_self(nodes.reference("", "", literal.deepcopy(), internal=True, refuri=target))


def check_loads_nothing(app: Sphinx, error: Exception | None) -> None:
    """Warn of pages and style sheets that do not work without a network."""
    for path in sorted(Path(app.outdir).rglob("*.*ml")) + sorted(Path(app.outdir).rglob("*.css")):
        for found in LOADED.findall(path.read_text(encoding="utf-8")) if error is None else ():
            logging.getLogger(__name__).warning("%s loads from a network: %s", path.relative_to(app.outdir), found)


def _is_inside_link(node: nodes.Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, (nodes.reference, nodes.title, addnodes.desc_signature)):
            return True
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", turn_links)
    app.connect("doctree-resolved", name_pages)
    app.connect("doctree-resolved", keep_short_code_together)
    app.connect("doctree-resolved", link_names)
    app.connect("build-finished", check_loads_nothing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
